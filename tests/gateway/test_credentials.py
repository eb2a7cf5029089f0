"""Credentials planted everywhere, on real sockets in random pieces, and looked for on the disk."""

import asyncio
import itertools
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deltatape.model.tape_summary import LogStream
from deltatape.store.reader import open_tape
from deltatape.tape.credentials import is_word
from helpers.recording import Recording, recording
from helpers.upstream import Peer, chunk, eventually, provider, run

SAFE = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~+/="
KEYS = st.text(SAFE, min_size=8, max_size=60).filter(
    lambda key: len(set(key)) > 4 and not is_word(key.encode())
)
CUTS = st.lists(st.integers(1, 400), max_size=12)


@dataclass(frozen=True)
class Planted:
    """Credentials, and how bodies and logs are cut."""

    bearer: str
    query: str
    cookie: str
    fragment: str
    protocol: str
    odd_name: str
    cuts: tuple[int, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """As they are."""
        return (
            *(self.bearer, self.query, self.cookie),
            *(self.fragment, self.protocol, self.odd_name),
        )

    @property
    def all(self) -> tuple[str, ...]:
        """Each form in which one may be looked for."""
        keys = self.keys
        return (*keys, *(json.dumps(k)[1:-1].replace("/", "\\/") for k in keys), *map(quote, keys))

    def pieces(self, data: bytes) -> list[bytes]:
        """`data`, cut."""
        ends = sorted({0, len(data), *(cut for cut in self.cuts if cut < len(data))})
        return [data[a:b] for a, b in itertools.pairwise(ends)]

    def body(self, event: str) -> bytes:
        """A body that repeats them all, plainly and as JSON strings do."""
        plain = " ".join(self.keys)
        escaped = json.dumps(plain).replace("/", "\\/")
        return f'{event}{{"error":{{"message":{escaped},"raw":"{plain}"}}}}\n\n'.encode()

    @property
    def request(self) -> bytes:
        """Heads, query and body with them."""
        body = self.body("")
        head = (
            f"POST /v1/x?key={quote(self.query, safe='')} HTTP/1.1\r\nHost: localhost\r\n"
            f"Authorization: Bearer {self.bearer}\r\nCookie: sid={self.cookie}1\r\n"
            f"Referer: https://app.test/cb#access_token={quote(self.fragment, safe='')}&a=1\r\n"
            f"Sec-WebSocket-Protocol: a, openai-insecure-api-key.{self.protocol}, b\r\n"
            f"X-Auth-Header: Bearer {self.odd_name}\r\n"
            f"X-Api-Key: {self.cookie}\r\nX-Debug: {self.bearer}\r\nX-Note: key {self.query}\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        return head.encode() + body

    @property
    def answer(self) -> bytes:
        """A refusal that repeats them: reason, fields and trailers, too."""
        return (
            f"HTTP/1.1 401 No {self.bearer}\r\nContent-Type: text/event-stream\r\n"
            f"X-Seen: {self.query}\r\nSet-Cookie: sid={self.cookie}; Path=/\r\n"
            "Trailer: X-Last\r\nTransfer-Encoding: chunked\r\n\r\n"
        ).encode()

    @property
    def log(self) -> bytes:
        """What a careless application prints."""
        return f"using key {self.bearer} and {self.cookie}\nhalf a line: {self.query}".encode()


async def exchange(running: Recording, planted: Planted) -> None:
    client = await running.client()
    for piece in planted.pieces(planted.request):
        await client.send(piece)
        await asyncio.sleep(0)
    # What is printed before anybody has seen a key, and is in no variable, cannot be known.
    await eventually(lambda: running.recorder.counts.exchanges == 1, "the request's head")
    for piece in planted.pieces(planted.log):
        running.recorder.book.log(LogStream.STDERR, piece)
    await client.rest()


def on_disk(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.builds(Planted, *[KEYS] * 6, CUTS.map(tuple)))
def test_no_planted_credential_is_found_on_the_disk(planted: Planted) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(planted.answer)
        for piece in planted.pieces(planted.body("data: ")):
            await peer.send(chunk(piece))
            await asyncio.sleep(0)
        await peer.send(f"0\r\nX-Last: {planted.bearer}\r\n\r\n".encode())

    async def scenario(folder: Path) -> None:
        async with provider(script) as port, recording(folder, port) as running:
            await exchange(running, planted)
            await eventually(lambda: len(running.seen.exchanges) == 1, "the end")
            running.recorder.book.log_end()

    with tempfile.TemporaryDirectory() as name:
        run(scenario(Path(name)))
        found = [each for each in planted.all if each.encode() in on_disk(Path(name))]
        assert not found
        (taped,) = open_tape(next(Path(name).glob("*.tape")))
        assert len(taped.body) == len(planted.body("data: "))
        assert len(taped.request.body) == len(planted.body(""))
        assert taped.masked
