"""Fake keys in every place and spelling, through the real recorder: who can read them afterwards.

Each case has a key of its own, which holds the case's number, and a tape of its own: so that one
run of the recorder and a few of the commands tell about all of them.
"""

import asyncio
import base64
import gzip
import html
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

import brotli  # type: ignore[import-untyped]
import zstandard

from deltatape.model.content_coding import ContentDecoder, parse_codings
from deltatape.model.exchange import MaskedCredential, header
from deltatape.render.report import FORMATS
from deltatape.store.reader import open_tape
from helpers.console import called
from helpers.program import program
from helpers.upstream import Peer, chunk, connect, provider, run

SPELLINGS: Mapping[str, Callable[[str], str]] = {
    "plain": lambda key: key,
    "\\u": lambda key: "".join(f"\\u{ord(each):04x}" for each in key),
    "entities": lambda key: "".join(f"&#{ord(each)};" for each in key),
    "percent": lambda key: "".join(f"%{ord(each):02X}" for each in key),
    "percent twice": lambda key: "".join(f"%25{ord(each):02X}" for each in key),
    "base64": lambda key: base64.b64encode(key.encode()).decode(),
    "hex": lambda key: key.encode().hex(),
}

_DELTA = '{"choices":[{"index":0,"delta":%s}]}'
_ERROR = '{"error":{"message":"Incorrect API key provided: %s","type":"auth"}}'
_OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What goes over the wire. `target`, `fields` and `body` are of the request."""

    target: str = "/v1/chat/completions"
    fields: str = ""
    body: bytes = b'{"model":"m","stream":true,"messages":[]}'
    chunked: bytes = b""
    """The request's body with its chunks, instead of `body`."""
    answer: tuple[bytes, ...] = (_OK,)
    """Pieces of the whole response, in order."""


def _answered(body: bytes, *fields: str, status: str = "200 OK") -> Sent:
    lines = (f"HTTP/1.1 {status}", *fields, f"Content-Length: {len(body)}", "", "")
    return Sent(answer=("\r\n".join(lines).encode() + body,))


def _error(key: str) -> bytes:
    return (_ERROR % key).encode()


def _coded(coding: str, encode: Callable[[bytes], bytes]) -> Callable[[str], Sent]:
    def place(key: str) -> Sent:
        body = encode(_error(key))
        fields = ("Content-Type: application/json", f"Content-Encoding: {coding}")
        return _answered(body, *fields, status="401 Unauthorized")

    return place


def _streamed(*deltas: str, coding: str = "") -> Sent:
    events = [f"data: {_DELTA % each}\n\n".encode() for each in deltas]
    if coding:
        packer = zlib.compressobj(wbits=31)
        events = [packer.compress(each) + packer.flush(zlib.Z_SYNC_FLUSH) for each in events]
        coding = "Content-Encoding: gzip\r\n"
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{coding}\r\n"
    return Sent(answer=(head.encode(), *events))


def _call(arguments: str) -> str:
    function = {"name": "f", "arguments": "@"}
    call = {"index": 0, "id": "c", "type": "function", "function": function}
    return json.dumps({"tool_calls": [call]}).replace("@", arguments)


def _trailing(key: str) -> Sent:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Key\r\n\r\n"
    return Sent(answer=(head + chunk(b"{}") + f"0\r\nX-Debug: {key}\r\n\r\n".encode(),))


def _basic(key: str) -> str:
    return base64.b64encode(f"user:{key}".encode()).decode()


CREDENTIALS: Mapping[str, Callable[[str], Sent]] = {
    "`Authorization: Bearer`": lambda key: Sent(fields=f"Authorization: Bearer {key}\r\n"),
    "`Authorization: Basic`": lambda key: Sent(fields=f"Authorization: Basic {_basic(key)}\r\n"),
    "`x-api-key`": lambda key: Sent(fields=f"x-api-key: {key}\r\n"),
    "`X-Custom-Auth-Token`": lambda key: Sent(fields=f"X-Custom-Auth-Token: {key}\r\n"),
    "`Cookie`": lambda key: Sent(fields=f"Cookie: a=b; session={key}\r\n"),
    "`?key=` of the target": lambda key: Sent(target=f"/v1/models?a=b&key={key}"),
    "fragment of the target": lambda key: Sent(target=f"/v1/models#access_token={key}"),
    "path segment `/bot<token>/`": lambda key: Sent(target=f"/bot12345678:AAfake{key}/send"),
    "configuration header (JSON)": lambda key: Sent(
        fields=f'x-portkey-config: {{"provider":"openai","api_key":"{key}"}}\r\n'
    ),
    "request trailer `x-api-key`": lambda key: Sent(
        chunked=chunk(b"{}") + f"0\r\nx-api-key: {key}\r\n\r\n".encode()
    ),
    "`Set-Cookie`": lambda key: _answered(b"{}", f"Set-Cookie: sid={key}; Path=/"),
    "`Set-Cookie` of a cut head": lambda key: Sent(
        answer=(f"HTTP/1.1 200 OK\r\nSet-Cookie: sid={key}; Path=/\r\nX".encode(),)
    ),
    "`Set-Cookie` of a refused head": lambda key: Sent(
        answer=(
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n",
            f"Set-Cookie: sid={key}; Path=/\r\n\r\n{{}}".encode(),
        )
    ),
    "`Set-Cookie` of a head in pieces": lambda key: Sent(
        answer=(
            f"HTTP/1.1 200 OK\nSet-Cookie: sid={key[: len(key) // 2]}".encode(),
            f"{key[len(key) // 2 :]}; Path=/\n\n{{}}".encode(),
        )
    ),
    "`Location` with `?token=`": lambda key: _answered(
        b"", f"Location: https://x.example/?token={key}", status="302 Found"
    ),
    "refused target (absolute form)": lambda key: Sent(target=f"http://evil.example/?key={key}"),
}
"""Where the format promises that a credential is masked; the key comes nowhere else."""

ELSEWHERE: Mapping[str, Callable[[str], Sent]] = {
    "path segment": lambda key: Sent(target=f"/v1/{key}/models"),
    "`?q=` of the target": lambda key: Sent(target=f"/v1/models?q={key}"),
    "a header": lambda key: Sent(fields=f"X-Debug: {key}\r\n"),
    "member of the request's JSON": lambda key: Sent(body=f'{{"api_key":"{key}"}}'.encode()),
    "text in the request's JSON": lambda key: Sent(
        body=f'{{"messages":[{{"role":"user","content":"it is {key}, ok"}}]}}'.encode()
    ),
    "request body, gzip": lambda key: Sent(
        fields="Content-Encoding: gzip\r\n", body=gzip.compress(f'{{"a":"{key}"}}'.encode())
    ),
    "reason phrase": lambda key: _answered(b"{}", status=f"401 {key}"),
    "response header": lambda key: _answered(b"{}", f"X-Echo: {key}"),
    "103 `Link`": lambda key: Sent(
        answer=(f"HTTP/1.1 103 Early Hints\r\nLink: <{key}>\r\n\r\n".encode() + _OK,)
    ),
    "error body": lambda key: _answered(
        _error(key), "Content-Type: application/json", status="401 Unauthorized"
    ),
    "HTML error body": lambda key: _answered(
        f"<h1>Bad key {key} here</h1>".encode(), "Content-Type: text/html", status="403 Forbidden"
    ),
    "error body, gzip": _coded("gzip", gzip.compress),
    "error body, deflate": _coded("deflate", zlib.compress),
    "error body, br": _coded("br", brotli.compress),
    "error body, zstd": _coded("zstd", zstandard.compress),
    "streamed text": lambda key: _streamed(f'{{"content":"it is {key}, ok"}}'),
    "streamed text, gzip": lambda key: _streamed(
        '{"content":"hi"}', f'{{"content":"it is {key}, ok"}}', coding="gzip"
    ),
    "streamed arguments": lambda key: _streamed(_call(f'{{\\"k\\":\\"{key}')),
    "streamed arguments, gzip": lambda key: _streamed(_call(f'{{\\"k\\":\\"{key}'), coding="gzip"),
    "response trailer": _trailing,
}
"""Where nobody expects one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One key in one place; `known`: the request's `Authorization` has it, too."""

    number: int
    place: str
    spelling: str
    known: bool
    sent: Sent
    key: str

    @property
    def name(self) -> str:
        """Of its tape."""
        return f"c{self.number:04}"

    def request(self) -> bytes:
        """The bytes that the app sends."""
        target = self.sent.target
        if not target.startswith("http:"):
            target = f"/s/{self.name}{target}"
        lines = [f"POST {target} HTTP/1.1", "Host: 127.0.0.1", "Connection: close"]
        lines += (f"X-Case: {self.number}", "Content-Type: application/json")
        lines.append(
            "Transfer-Encoding: chunked"
            if self.sent.chunked
            else f"Content-Length: {len(self.sent.body)}"
        )
        if self.known:
            lines.append(f"Authorization: Bearer {self.key}")
        head = "\r\n".join(lines) + f"\r\n{self.sent.fields}\r\n"
        return head.encode() + (self.sent.chunked or self.sent.body)

    def readable_in(self, *texts: bytes | str) -> bool:
        """Check whether one of `texts` shows the key, spelled in any way, or broken into lines."""
        core = _core(self.number)
        forms = {core, core.encode().hex()}
        for shift in range(3):
            coded = base64.b64encode(b"_" * shift + core.encode()).decode().rstrip("=")
            forms.add(coded[4 if shift else 0 : -4])
        return any(
            form in shown
            for text in texts
            for shown in _undone(text if isinstance(text, str) else text.decode("latin-1"))
            for form in forms
        )


def _core(number: int) -> str:
    return f"xWv3{number:04}Kp9ZtR"


_BACKSLASH_U = re.compile(r"\\+u([0-9a-f]{4})")
_NUMERIC = re.compile(r"(?:&amp;|&)\\?#(?:<!-- -->)?(\d{2,3});")


def _undone(text: str) -> Iterator[str]:
    """Yield `text`, and without breaks and escapes: what a person makes of it, or a program."""
    for _ in range(3):
        yield text
        yield "".join(text.split())
        before = text
        text = _BACKSLASH_U.sub(lambda match: chr(int(match[1], 16)), text)
        text = _NUMERIC.sub(lambda match: chr(int(match[1])), html.unescape(unquote(text)))
        if text == before:
            return


def cases(spellings: Iterable[str]) -> list[Case]:
    """Every place and spelling, each with a key that looks like one, and one that is sent."""
    found: list[Case] = []
    spellings = tuple(spellings)

    def add(place: str, make: Callable[[str], Sent], spelling: str, *, known: bool) -> None:
        number = len(found) + 1
        start = "" if known else "sk-"
        key = f"{start}fakeQ7q{_core(number)}fake0f"
        sent = make(SPELLINGS[spelling](key))
        found.append(
            Case(number=number, place=place, spelling=spelling, known=known, sent=sent, key=key)
        )

    for place, make in CREDENTIALS.items():
        add(place, make, "plain", known=False)
    for known in (False, True):
        for place, make in ELSEWHERE.items():
            for spelling in spellings:
                add(place, make, spelling, known=known)
    return found


async def _answer(peer: Peer, every: Mapping[int, Case]) -> None:
    head = await peer.until(b"\r\n\r\n")
    number = int(re.findall(rb"X-Case: (\d+)", head)[0])
    length = re.findall(rb"(?i)content-length: (\d+)", head)
    if length:
        await peer.reader.readexactly(int(length[0]))
    else:
        await peer.until(b"\r\n0\r\n")
        await peer.until(b"\r\n\r\n")
    for piece in every[number].sent.answer:
        await peer.send(piece)
        await asyncio.sleep(0.01)  # a read of its own
    peer.close()


def record(folder: Path, every: list[Case]) -> str:
    """Send all cases through `deltatape record`; return what it printed."""
    by_number = {case.number: case for case in every}

    async def one(port: int, case: Case, room: asyncio.Semaphore) -> None:
        async with room:
            peer = await connect(port)
            await peer.send(case.request())
            await peer.rest()
            peer.close()

    async def scenario() -> str:
        async with provider(lambda peer: _answer(peer, by_number)) as upstream:
            arguments = ("record", "--listen", "127.0.0.1:0", "--to", "tapes")
            url = f"http://127.0.0.1:{upstream}"
            with program(*arguments, "--upstream", url, folder=folder) as running:
                port = await asyncio.to_thread(lambda: running.port)
                room = asyncio.Semaphore(8)
                await asyncio.gather(*(one(port, case, room) for case in every))
                return (await asyncio.to_thread(running.stop))[1]

    return run(scenario(), limit_s=300)


def readable_bytes(path: Path) -> list[bytes]:
    """All that stands on a tape, content-codings undone."""
    found = [path.read_bytes()]
    for exchange in open_tape(path):
        request = exchange.request
        found += [request.body, exchange.body]
        heads = [(request.headers, request.body)]
        if exchange.response is not None:
            heads.append((exchange.response.headers, exchange.body))
        for headers, body in heads:
            found += [value for _, value in headers if not isinstance(value, MaskedCredential)]
            decoder = ContentDecoder(parse_codings(header(headers, "content-encoding")))
            found.append(decoder.feed(body))
    return found


TITLES = {
    False: "A key that looks like one",
    True: "A credential of any form, sent with the request",
}
"""Of the page's tables, by `Case.known`."""
SHOWN: Mapping[str, tuple[str, ...]] = {
    "why": ("why", "{}#1", "--suspects"),
    "why md": ("why", "{}#1", "--format", "md"),
    "why json": ("why", "{}#1", "--format", "json"),
    "why html": ("why", "{}#1", "--short", "--html", "{}.html"),
    "show": ("show", "{}"),
    "show calls": ("show", "{}", "--calls"),
    "show calls json": ("show", "{}", "--calls", "--format", "json"),
    "show events": ("show", "{}#1", "--events"),
    "show events json": ("show", "{}#1", "--events", "--format", "json"),
    "show reads": ("show", "{}#1", "--reads"),
    "show reads json": ("show", "{}#1", "--reads", "--format", "json"),
    **{f"check {form}": ("check", "{}", "--format", form) for form in FORMATS},
    "fsck": ("fsck", "{}"),
}
"""What shows a tape to people and programs; `{}` is the tape. `ls` shows all of them at once."""


@dataclass(slots=True)
class Outcome:
    """The spellings in which the keys of one place can be read, or are found."""

    on_tape: list[str] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    found: list[str] = field(default_factory=list)
    """By `fsck`."""
    left: list[str] = field(default_factory=list)
    """On the tape after `redact`."""
    shown_by: dict[str, list[str]] = field(default_factory=dict)
    """For each of `shown`."""

    def cells(self, spellings: Iterable[str]) -> list[str]:
        """Return the columns of the table."""
        every = list(spellings)
        lists = (self.on_tape, self.shown, self.found, self.left)
        return ["no" if not each else "yes" if each == every else ", ".join(each) for each in lists]


Outcomes = dict[tuple[str, bool], Outcome]
"""By place, and by `Case.known`."""


def outcomes(folder: Path, every: list[Case]) -> Outcomes:
    """Record all cases and look at what is left."""
    found: Outcomes = {}
    printed = record(folder, every)
    listed = called("ls", "tapes", "--full", folder=folder).stdout
    for case in every:
        outcome = found.setdefault((case.place, case.known), Outcome())
        path = folder / "tapes" / f"{case.name}.tape"
        shown_by = ["the recorder"] if case.readable_in(printed) else []
        if path.exists():  # what is refused has none
            shown_by += _showing(case, path, folder)
            shown_by += ["ls"] if case.readable_in(listed) else []
            assert case.name.encode() in listed
            if b"secret" in called("fsck", path, folder=folder).stdout:
                outcome.found.append(case.spelling)
            if case.readable_in(*readable_bytes(path)):
                outcome.on_tape.append(case.spelling)
            called("redact", path, "--in-place", folder=folder)
            if case.readable_in(*readable_bytes(path)):
                outcome.left.append(case.spelling)
        if shown_by:
            outcome.shown.append(case.spelling)
            outcome.shown_by[case.spelling] = shown_by
    return found


def _showing(case: Case, path: Path, folder: Path) -> list[str]:
    """Return the reports that show the key."""
    found = []
    for what, arguments in SHOWN.items():
        result = called(*(each.format(path) for each in arguments), folder=folder)
        assert b"Traceback" not in result.stderr
        page = Path(f"{path}.html")
        texts = [result.stdout, result.stderr, page.read_bytes() if page.exists() else b""]
        page.unlink(missing_ok=True)
        if case.readable_in(*texts):
            found.append(what)
    return found


def rows(found: Outcomes, *, known: bool, spellings: Iterable[str]) -> dict[str, list[str]]:
    """Return the rows of a table, by place."""
    spellings = tuple(spellings)
    return {
        place: outcome.cells(("plain",) if place in CREDENTIALS else spellings)
        for (place, is_known), outcome in found.items()
        if is_known is known
    }


def rows_of_page(page: str, title: str, spelling: str) -> dict[str, list[str]]:
    """Return the rows below a title of the page, as they are for one spelling alone."""
    found = {}
    for line in page.partition(f"## {title}\n")[2].partition("\n## ")[0].split("\n"):
        place, *cells = (cell.strip() for cell in line.strip("| ").split(" | "))
        if len(cells) == len(Outcome().cells(())) and "---" not in line and place != "place":
            listed = [cell == "yes" or spelling in cell.split(", ") for cell in cells]
            found[place] = ["yes" if each else "no" for each in listed]
    return found
