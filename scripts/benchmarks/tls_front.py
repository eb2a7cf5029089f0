"""A TLS server in front of the provider, a program: decrypts, and passes every byte on.

Prints its port; ends with standard input.
"""

import argparse
import asyncio
import contextlib
import ssl
import sys

_READ_BYTES = 65536


class Front:
    """Accepts TLS connections, each of which gets one of its own to the provider."""

    def __init__(self, provider: int) -> None:
        self._provider = provider

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass bytes on in both directions, until one side ends."""
        behind, before = await asyncio.open_connection("127.0.0.1", self._provider)
        both = {asyncio.ensure_future(_pass(*way)) for way in ((reader, before), (behind, writer))}
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        for one in both:
            one.cancel()
        await asyncio.wait(both)
        before.close()
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(_READ_BYTES):
            writer.write(data)
            await writer.drain()


async def _serve(provider: int, context: ssl.SSLContext) -> None:
    server = await asyncio.start_server(Front(provider).serve, "127.0.0.1", 0, ssl=context)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    server.close()


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(prog="tls_front")
    parser.add_argument("--provider", type=int, required=True)
    parser.add_argument("--certificate", required=True, help="a PEM file, with its key")
    options = parser.parse_args()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(options.certificate)
    asyncio.run(_serve(options.provider, context))


if __name__ == "__main__":
    main()
