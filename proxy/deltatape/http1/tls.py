"""TLS connections of asyncio that can be read without it.

Asyncio reads TLS in a dozen calls in Python, which cost as much as all else that is done for a
delta. A connection whose context comes from here does all that asyncio does, but what its socket
has received can also be decrypted directly: both ways go through the same buffer, so they may
alternate.
"""

import ssl

TLS_BUFFER_BYTES = 16 * 1024
"""How much is read at once from a TLS connection: the most that one record holds."""


class ReadableTLS(ssl.SSLObject):
    """A TLS connection; asyncio's `ssl_object`."""

    received: ssl.MemoryBIO
    """What asyncio has received and OpenSSL has not yet taken."""
    ended: ssl.SSLError | bool = False
    """Whether the peer has ended the connection (close_notify), or why it is broken."""

    def decrypt(self, data: bytes) -> bytes:
        """Return what the records hold that are complete with `data`; then see `ended`."""
        received = self.received
        received.write(data)
        parts: list[bytes] = []
        try:
            # OpenSSL takes one record at a time, and no byte of the next one.
            while part := self.read(TLS_BUFFER_BYTES):
                if not received.pending and not parts:
                    return part
                parts.append(part)
            self.ended = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            self.ended = error.with_traceback(None)
        return b"".join(parts)


class ReadableTLSContext(ssl.SSLContext):
    """A context whose connections asyncio need not read."""

    sslobject_class = ReadableTLS

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,  # noqa: FBT001, FBT002 - the standard library's own signature
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        """See `ssl.SSLContext.wrap_bio`, which asyncio calls."""
        made = super().wrap_bio(incoming, outgoing, server_side, server_hostname, session)
        if isinstance(made, ReadableTLS):
            made.received = incoming
        return made
