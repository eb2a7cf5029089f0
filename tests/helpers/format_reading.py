"""What deltatape makes of a tape, in the JSON of recordings/conformance/README.md.

The JSON has everything that the format tells of exchanges, so that two readers that make the same
of a tape have read it alike.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from deltatape.errors import TapeFormatError
from deltatape.model.exchange import Exchange, MaskedSpan, ResponseHead
from deltatape.model.websocket import FramePiece
from deltatape.redact.audit import Auditor, ProblemKind
from deltatape.store.reader import Tape, open_tape
from deltatape.tape import fields
from deltatape.tape.payload import (
    ClientRecord,
    LogLine,
    MaskedSpans,
    RemarkRecord,
    RequestHeadRecord,
    Stop,
    watch_to_json,
)
from deltatape.tape.record import Header

Json = dict[str, object]


def reading(path: Path) -> Json:
    """Return what deltatape makes of the tape at `path`."""
    try:
        tape = open_tape(path)
    except TapeFormatError:
        return _Reading().to_json(refused={"what": "tape", "line": 1}, reported=[])
    read = _Reading(tape.header)
    refused_line = read.exchanges_of(tape)
    read.own_records_of(tape)
    refused = {"what": "line", "line": refused_line} if refused_line else None
    with path.open("rb") as file:
        lines = file.readlines()[: refused_line - 1 if refused_line else None]
    return read.to_json(refused=refused, reported=_reported(lines))


def _reported(lines: list[bytes]) -> list[int]:
    """Return the lines that a checker reports."""
    auditor = Auditor(header=lines[0])
    for _ in auditor.records(enumerate(lines[1:], 2)):
        pass
    problems = auditor.report(recording=False).problems
    return sorted({each.line for each in problems if each.kind is ProblemKind.ORDER})


class _Reading:
    """The parts of the JSON."""

    def __init__(self, header: Header | None = None) -> None:
        self._header = header
        self._exchanges: dict[int, Json] = {}
        self._clients: list[Json] = []
        self._logs: list[Json] = []
        self._notes: list[Json] = []
        self._stop: Json | None = None
        self._torn = 0

    def to_json(self, *, refused: Json | None, reported: list[int]) -> Json:
        """Return the whole."""
        header = self._header
        return {
            "refused": refused,
            "reported": reported,
            "header": None if header is None else _header(header),
            "exchanges": [self._exchanges[number] for number in sorted(self._exchanges)],
            "clients": self._clients,
            "logs": self._logs,
            "notes": self._notes,
            "stop": self._stop,
            "torn": self._torn,
        }

    def exchanges_of(self, tape: Tape) -> int:
        """Take the exchanges up to a damaged line; return that, or 0."""
        try:
            for exchange in tape.exchanges():
                self._exchanges[exchange.number] = _exchange(exchange)
        except TapeFormatError as error:
            return error.line
        self._torn = tape.torn
        return 0

    def own_records_of(self, tape: Tape) -> None:
        """Take what is about the tape, and what an `Exchange` does not tell as it stands."""
        masked: tuple[MaskedSpan, ...] = ()
        requested: set[int] = set()
        try:
            for _, (t_ns, number, payload) in tape.records():
                self._stop = None
                match payload:
                    case RequestHeadRecord() if number in self._exchanges:
                        if number not in requested and payload.watched is not None:
                            self._exchanges[number]["watched"] = watch_to_json(payload.watched)
                        requested.add(number)
                    case _ if number:
                        pass
                    case ClientRecord():
                        self._clients.append({"t": t_ns, **_object(payload.to_json())})
                    case MaskedSpans(spans=spans):
                        masked = spans or masked
                    case LogLine(stream=stream, line=line):
                        kept = [span for span in masked if span[1] <= len(line)]
                        log = {"stream": stream.value, "line": fields.bytes_to_json(line)}
                        self._logs.append({"t": t_ns, **log, "masked": _spans(kept)})
                        masked = ()
                    case RemarkRecord(text=text):
                        self._notes.append({"t": t_ns, "text": text})
                    case Stop(reason=reason, exit_code=code):
                        self._stop = {"t": t_ns, "reason": reason, "code": code}
                    case _:
                        pass
        except TapeFormatError:
            self._stop = None


def _object(value: object) -> Json:
    assert isinstance(value, dict)
    return value


def _header(header: Header) -> Json:
    return {
        "id": header.id,
        "tool": header.tool,
        "recorded_at": header.recorded_at,
        "source": header.source.value,
        "shard": None if header.shard is None else header.shard.to_json(),
        "volatile": [*header.volatile],
    }


def _exchange(exchange: Exchange) -> Json:
    request, end = exchange.request, exchange.end
    head = {
        "t": request.t_ns,
        "method": request.method,
        "target": [fields.value_to_json(part) for part in request.target],
        "upstream": request.upstream,
        "http": request.http,
        "headers": fields.headers_to_json(request.headers),
    }
    return {
        "number": exchange.number,
        "id": exchange.id,
        "tap": exchange.tap.value,
        "watched": None,
        "request": {
            "head": None if request.line is None else head,
            "body": fields.bytes_to_json(request.body),
            "masked": _spans(request.masked),
            "decoded": _spans(request.hidden),
            "ended": request.t_end_ns,
        },
        "sent": None
        if exchange.sent is None
        else {
            "t": exchange.sent.t_ns,
            "connect_ns": exchange.sent.connect_ns,
            "tls_ns": exchange.sent.tls_ns,
            "reused": exchange.sent.reused,
        },
        "informational": [_head(each) for each in exchange.informational],
        "response": None
        if exchange.response is None
        else {**_head(exchange.response), "framing": exchange.response.framing.value},
        "body": {
            "bytes": len(exchange.body),
            "sha256": hashlib.sha256(exchange.body).hexdigest(),
        },
        "reads": [
            {
                "t": read.t_ns,
                "data": fields.bytes_to_json(read.data),
                "chunk_ends": None if read.boundaries is None else [*read.boundaries],
                "masked": _spans(read.masked),
                "decoded": _spans(read.hidden),
            }
            for read in exchange.reads
        ],
        "frames": [_frame(piece) for piece in exchange.frames],
        "trailers": fields.headers_to_json(exchange.trailers),
        "delivered": [{"t": each.t_ns, "bytes": each.bytes} for each in exchange.delivered],
        "idle": [*exchange.idle_ns],
        "notes": [{"t": note.t_ns, "text": note.text} for note in exchange.notes],
        "end": None
        if end is None
        else {
            "t": end.t_ns,
            "reason": end.reason.value,
            "bytes": end.bytes,
            "sha256": end.sha256,
            "detail": end.detail,
            "recorder": dict(end.recorder),
            "frames": None if end.frames is None else end.frames._asdict(),
        },
    }


def _head(head: ResponseHead) -> Json:
    return {
        "t": head.t_ns,
        "status": head.status,
        "reason": fields.bytes_to_json(head.reason),
        "http": head.http,
        "headers": fields.headers_to_json(head.headers),
    }


def _frame(piece: FramePiece) -> Json:
    head = piece.head
    return {
        "t": piece.t_ns,
        "side": piece.side.value,
        "raw": piece.raw,
        "opcode": piece.opcode,
        "head": None
        if head is None
        else {
            "fin": head.fin,
            "rsv": head.rsv,
            "mask": head.mask.hex(),
            "length": head.length,
            "wide": head.wide,
        },
        "at": piece.at,
        "more": piece.more,
        "data": fields.bytes_to_json(piece.data),
        "wire": None if piece.wire is None else fields.bytes_to_json(piece.wire),
        "masked": _spans(piece.masked),
    }


def _spans(spans: Iterable[MaskedSpan]) -> list[object]:
    return [list(span) for span in spans]
