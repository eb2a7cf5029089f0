"""Import what `curl --trace FILE` writes: every request an exchange, every read of curl a read.

Format: https://curl.se/docs/manpage.html#--trace. A line says what was sent or received, with the
time of the day after `--trace-time`; lines with offsets dump the bytes. What `--trace-ascii` writes
is refused: it shows line feeds as dots, so that events cannot be told apart. curl shows chunked
data as it came, with the sizes of the chunks; they are undone here.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from deltatape.diagnose.exchange_parts import HTTP_MESSAGES, Part
from deltatape.errors import UsageError
from deltatape.importers.parts import (
    ImportedRequest,
    ImportedResponse,
    ImportSource,
    PlainHeaders,
    build,
)
from deltatape.model.exchange import Exchange, Framing, Read
from deltatape.printable import excerpt

_STEP = re.compile(
    r"(?:(\d\d):(\d\d):(\d\d)\.(\d{6}) )?(?:\[[0-9x]+-[0-9x]+\] )?(=>|<=|==) "
    r"(?:(Send|Recv) (header|data|SSL data), (\d+) bytes \(0x[0-9a-f]+\)|Info: (.*))\r?"
)
_DUMP = re.compile(r"[0-9a-f]{4,}: ((?:[0-9a-f]{2} ){1,16}) *.{0,16}\r?", re.DOTALL)
_REQUEST = re.compile(rb"([A-Z]+) (\S+) HTTP/([0-9](?:\.[0-9])?)")
_STATUS = re.compile(rb"HTTP/([0-9](?:\.[0-9])?) ([1-9][0-9]{2}) ?([^\r\n]*)")
_FIELD = re.compile(rb"([^:\s]+):[ \t]*([^\r\n]*?)[ \t]*\r?")
_SIZE = re.compile(rb"(?:\r\n)?([0-9A-Fa-f]{1,12})(?:;[^\r\n]*)?\r\n")
_FINAL = 200
_DAY_NS = 86_400_000_000_000
_PROBLEMS = (
    "transfer closed",
    "Connection reset",
    "Recv failure",
    "Operation timed out",
    "Failure",
)


@dataclass(frozen=True, slots=True)
class _Step:
    """What curl did: `data` is what it sent or received, `info` what it remarked."""

    t_ns: int
    kind: str
    data: bytes
    info: str


@dataclass(slots=True)
class _Exchange:
    """The parts of an exchange, as they come."""

    request: list[_Step] = field(default_factory=list)
    heads: list[_Step] = field(default_factory=list)
    data: list[_Step] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    asked: bytes = b""
    tls: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether a request line was sent: curl speaks other protocols, too."""
        return bool(self.request) and _REQUEST.match(self.request[0].data) is not None


_LOOKED_AT = 4096


class CurlTraceImporter:
    """Imports a trace of curl."""

    name = "a trace of curl"
    accepts = "what `curl --trace FILE --trace-time` wrote"
    is_body = False
    holds = HTTP_MESSAGES | {Part.REASON, Part.HTTP, Part.FIELD_ORDER, Part.CODED, Part.EVENT_TIMES}
    remark = "with `--trace-time`, the times of curl's reads"

    def claims(self, source: ImportSource) -> bool:
        start = (source.only or b"")[:_LOOKED_AT].decode(errors="replace")
        return _STEP.fullmatch(start.lstrip("\ufeff\r\n").partition("\n")[0]) is not None

    def read(self, source: ImportSource) -> Sequence[Exchange]:
        """See `Importer.read`.

        Raises:
            UsageError: it is torn, or of `--trace-ascii`.
        """
        found = list(_exchanges(_steps(source)))
        begun = found[0].request[0].t_ns if found else 0
        return [_built(source.name, each, begun) for each in found]


def _steps(source: ImportSource) -> Iterator[_Step]:
    lines = (source.only or b"").decode(errors="replace").lstrip("\ufeff").split("\n")
    at, day_ns, before_ns = 0, 0, 0
    while at < len(lines):
        step = _STEP.fullmatch(lines[at])
        at += 1
        if step is None:
            continue  # of what curl prints about its progress
        data = bytearray()
        while at < len(lines) and (dump := _DUMP.fullmatch(lines[at])):
            data += bytes.fromhex(dump[1])
            at += 1
        if len(data) != int(step[8] or 0):
            raise UsageError(
                f"{source.name}: is a trace of curl, but torn in line {at + 1}, or made by"
                " --trace-ascii, which shows line feeds as dots; use curl --trace FILE --trace-time"
            )
        clock_ns = _clock_ns(step)
        day_ns += _DAY_NS if clock_ns < before_ns else 0
        before_ns = clock_ns
        kind = f"{step[6]} {step[7]}" if step[6] else "Info"
        yield _Step(day_ns + clock_ns, kind, bytes(data), step[9] or "")


def _clock_ns(step: re.Match[str]) -> int:
    if step[1] is None:
        return 0
    seconds = (int(step[1]) * 60 + int(step[2])) * 60 + int(step[3])
    return (seconds * 1_000_000 + int(step[4])) * 1000


def _exchanges(steps: Iterator[_Step]) -> Iterator[_Exchange]:
    """Yield the exchanges: each begins where a request's head is sent."""
    current = _Exchange()
    tls = False
    for step in steps:
        match step.kind:
            case "Send header":
                if current.is_whole:
                    yield current
                current = _Exchange(request=[step], tls=tls)
            case "Send data":
                current.asked += step.data
                current.request.append(step)
            case "Recv header":
                current.heads.append(step)
            case "Recv data":
                current.data.append(step)
            case "Send SSL data" | "Recv SSL data":
                tls = True
            case _:
                if any(problem in step.info for problem in _PROBLEMS):
                    current.problems.append(step.info)
    if current.is_whole:
        yield current


def _built(name: str, found: _Exchange, begun_ns: int) -> Exchange:
    sent, *lines = found.request[0].data.split(b"\r\n")
    line = _REQUEST.match(sent)
    assert line  # `_exchanges` yields no other
    headers = _headers(lines)
    host = next((value for key, value in headers if key.lower() == b"host"), b"")
    target = line[2].decode("utf-8", "replace")
    scheme = "https" if found.tls else "http"
    request = ImportedRequest(
        method=line[1].decode(),
        url=f"{scheme}://{host.decode('latin-1')}{target}" if target.startswith("/") else target,
        http=line[3].decode(),
        headers=headers,
        body=found.asked,
    )
    notes = [f"curl: {excerpt(problem)}" for problem in found.problems]
    response = _response(b"".join(head.data for head in found.heads))
    reads, rest = (
        ([], ["curl: no response came"]) if response is None else _reads(found.data, response)
    )
    body = b"".join(read.data for read in reads)
    exchange = build(name, request, response, body, [*notes, *rest])
    head = exchange.response
    if head is not None:
        head = replace(head, t_ns=found.heads[-1].t_ns - begun_ns)
    chunked = head is not None and head.framing is Framing.CHUNKED
    return replace(
        exchange,
        request=replace(
            exchange.request,
            t_ns=found.request[0].t_ns - begun_ns,
            t_end_ns=found.request[-1].t_ns - begun_ns,
        ),
        response=head,
        reads=tuple(
            read._replace(
                t_ns=read.t_ns - begun_ns, boundaries=read.boundaries if chunked else None
            )
            for read in reads
        ),
    )


def _headers(lines: Sequence[bytes]) -> PlainHeaders:
    fields = filter(None, map(_FIELD.fullmatch, lines))
    return tuple((found[1], found[2]) for found in fields if not found[1].startswith(b":"))


def _response(heads: bytes) -> ImportedResponse | None:
    """Return the final head: those before it are informational, or of a proxy."""
    final = None
    for text in heads.split(b"\r\n\r\n"):
        first, *lines = text.split(b"\r\n")
        status = _STATUS.match(first)
        if status and int(status[2]) >= _FINAL:
            final = ImportedResponse(
                status=int(status[2]),
                reason=status[3],
                http=status[1].decode(),
                headers=_headers(lines),
            )
    return final


def _reads(steps: Sequence[_Step], response: ImportedResponse) -> tuple[list[Read], list[str]]:
    """Return the reads without their chunks' framing, and notes."""
    coding = [value for name, value in response.headers if name.lower() == b"transfer-encoding"]
    whole = b"".join(step.data for step in steps)
    chunked = bool(coding) and _SIZE.match(whole) is not None
    decoder = _Chunks() if chunked else None
    reads = []
    for step in steps:
        data, ends = decoder.feed(step.data) if decoder else (step.data, (len(step.data),))
        if data:
            reads.append(Read(t_ns=step.t_ns, data=data, boundaries=ends, line=None))
    if decoder and not decoder.ended:
        return reads, ["curl: the last chunk did not come"]
    return reads, []


class _Chunks:
    """Undoes chunked transfer coding."""

    def __init__(self) -> None:
        self._held = b""
        self._left = 0
        self.ended = False

    def feed(self, data: bytes) -> tuple[bytes, tuple[int, ...]]:
        """Return the content in the next piece, and the offsets in it at which chunks end."""
        self._held += data
        content = bytearray()
        ends = []
        while self._held and not self.ended:
            if self._left:
                part = self._held[: self._left]
                content += part
                self._held = self._held[len(part) :]
                self._left -= len(part)
                if not self._left:
                    ends.append(len(content))
                continue
            size = _SIZE.match(self._held)
            if size is None:
                break
            self._held = self._held[size.end() :]
            self._left = int(size[1], 16)
            self.ended = self._left == 0
        return bytes(content), tuple(ends)
