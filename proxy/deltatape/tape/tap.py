"""What a recorder feeds: the calls of one exchange in, the lines of the tape out.

A shell (the gateway, a proxy's addon) tells an `ExchangeTap` what it saw, with the time at which
it saw it; the tap masks, counts, hashes, and hands finished lines to `put`. It does no I/O, keeps
no bytes, and never raises for what was on the wire.

Invariants: what is handed to `put` is a whole line; after `end` an exchange writes nothing more
(a closing race cannot make a tape contradict its own byte count); no record is made of more than
`PIECE` bytes of a body.

Format: recordings/README.md, "Codes" and "Order".
"""

import hashlib
from collections.abc import Callable, Mapping

from deltatape.model.exchange import EndReason, Framing, Headers
from deltatape.tape import encode
from deltatape.tape.heads import Informational, RequestHead, ResponseStart, Trailers
from deltatape.tape.mask import Masker, without_userinfo
from deltatape.tape.payload import (
    Boundaries,
    Client,
    ClientState,
    DeliveredSoFar,
    Ending,
    Idle,
    Remark,
    RequestEnd,
    SentUpstream,
    Stop,
)
from deltatape.tape.record import Payload

PIECE = 1 << 20
"""The most body bytes in one record."""

Put = Callable[[int, bytes], None]
"""Takes an exchange's number and a line of it."""


class ExchangeTap:
    """The recorder's side of one exchange; every method takes the time first.

    Args:
        number: the exchange's number on the tape, from 1.
        put: takes each line.
        masker: makes credentials unreadable.
    """

    __slots__ = ("_body", "_ended", "_hash", "_masker", "_number", "_put", "_read", "_total")

    def __init__(self, number: int, put: Put, masker: Masker) -> None:
        self._number = number
        self._put = put
        self._masker = masker
        self._ended = False
        self._total = 0
        self._hash = hashlib.sha256()
        self._read = f',{number},"read",'
        self._body = f',{number},"request-body",'

    def request(  # noqa: PLR0913 - a request line and where it goes have this many parts
        self,
        t_ns: int,
        *,
        id: str,  # noqa: A002 - the name on the tape
        method: str,
        target: bytes,
        upstream: str,
        http: str,
        headers: Headers,
    ) -> None:
        """The request's head, as it is sent upstream."""
        self._write(
            t_ns,
            RequestHead(
                id=id,
                method=method,
                target=self._masker.target(target),
                upstream=without_userinfo(upstream),
                http=http,
                headers=self._masker.headers(headers),
            ),
        )

    def request_body(self, t_ns: int, data: bytes) -> None:
        """A piece of the request's body, in the order of arrival."""
        if self._ended:
            return
        for at in range(0, len(data), PIECE):
            self._put(self._number, encode.data_record(t_ns, self._body, data[at : at + PIECE]))

    def request_end(self, t_ns: int) -> None:
        """The last byte of the request has been read."""
        self._write(t_ns, RequestEnd())

    def sent(self, t_ns: int, *, connect_ns: int, tls_ns: int, reused: bool) -> None:
        """The request's head has left; both durations are 0 on a reused connection."""
        self._write(t_ns, SentUpstream(connect_ns=connect_ns, tls_ns=tls_ns, reused=reused))

    def informational(
        self, t_ns: int, *, status: int, reason: bytes, http: str, headers: Headers
    ) -> None:
        """A 1xx response."""
        self._write(
            t_ns,
            Informational(
                status=status, reason=reason, http=http, headers=self._masker.headers(headers)
            ),
        )

    def response(
        self,
        t_ns: int,
        *,
        status: int,
        reason: bytes,
        http: str,
        framing: Framing,
        headers: Headers,
    ) -> None:
        """The head of the response."""
        self._write(
            t_ns,
            ResponseStart(
                status=status,
                reason=reason,
                http=http,
                framing=framing,
                headers=self._masker.headers(headers),
            ),
        )

    def read(self, t_ns: int, data: bytes, chunk_ends: tuple[int, ...] | None) -> None:
        """Body bytes of one read from the upstream socket, >= 1.

        Args:
            t_ns: when.
            data: after transfer-coding, before content-coding.
            chunk_ends: ascending offsets into `data` at which HTTP chunks end (0: the previous
                read's chunk ended just before this one); None when the body is not chunked.
        """
        if self._ended:
            return
        size = len(data)
        if size > PIECE:
            self._long_read(t_ns, data, chunk_ends)
            return
        # One chunk per read is by far the commonest case and needs no record.
        if chunk_ends is not None and chunk_ends != (size,):
            self._write(t_ns, Boundaries(ends=chunk_ends))
        self._put(self._number, encode.data_record(t_ns, self._read, data))
        self._total += size
        self._hash.update(data)

    def _long_read(self, t_ns: int, data: bytes, chunk_ends: tuple[int, ...] | None) -> None:
        for at in range(0, len(data), PIECE):
            piece = data[at : at + PIECE]
            ends = chunk_ends
            if ends is not None:
                lowest = at + 1 if at else 0
                ends = tuple(end - at for end in ends if lowest <= end <= at + len(piece))
            self.read(t_ns, piece, ends)

    def trailers(self, t_ns: int, headers: Headers) -> None:
        """The fields after the last chunk."""
        self._write(t_ns, Trailers(headers=self._masker.headers(headers)))

    def delivered(self, t_ns: int, total_bytes: int) -> None:
        """The client, which had lagged, has taken this many bytes of the body in all."""
        self._write(t_ns, DeliveredSoFar(bytes=total_bytes))

    def idle(self, t_ns: int) -> None:
        """Nothing has come for a while, and the recorder is still watching."""
        self._write(t_ns, Idle())

    def note(self, t_ns: int, text: str) -> None:
        """A remark about this exchange."""
        self._write(t_ns, Remark(text=text))

    def end(
        self,
        t_ns: int,
        reason: EndReason,
        *,
        detail: str = "",
        recorder: Mapping[str, object] | None = None,
    ) -> None:
        """The transport's end. `recorder` is what taping lost: `TapeWriter.losses`."""
        self._write(
            t_ns,
            Ending(
                reason=reason,
                bytes=self._total,
                sha256=self._hash.hexdigest(),
                detail=detail,
                recorder=recorder or {},
            ),
        )
        self._ended = True

    def _write(self, t_ns: int, payload: Payload) -> None:
        if not self._ended:
            self._put(self._number, encode.payload_record(t_ns, self._number, payload))


class TapeTap:
    """The recorder's side of the tape itself: exchange 0."""

    __slots__ = ("_put",)

    def __init__(self, put: Put) -> None:
        self._put = put

    def client(self, t_ns: int, *, connection: int, state: ClientState) -> None:
        """A client connection, counted from 1, was opened or closed."""
        self._write(t_ns, Client(connection=connection, state=state))

    def note(self, t_ns: int, text: str) -> None:
        """A remark about the tape as a whole."""
        self._write(t_ns, Remark(text=text))

    def stop(self, t_ns: int, reason: str, code: int | None) -> None:
        """The last record: recording ended in good order; `code` is the child's exit code."""
        self._write(t_ns, Stop(reason=reason, exit_code=code))

    def _write(self, t_ns: int, payload: Payload) -> None:
        self._put(0, encode.payload_record(t_ns, 0, payload))
