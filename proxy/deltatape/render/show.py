"""The parts of a tape as text: calls, events and reads of exchanges, and the app's log."""

import itertools
import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from deltatape.diagnose.rebuild import Analysis, batches, body_bytes
from deltatape.diagnose.websocket import read_socket
from deltatape.model.exchange import Exchange, Headers, Request
from deltatape.model.exchange_row import ExchangeRow, Mark
from deltatape.model.explanation import CallPlace, TimeAxis
from deltatape.model.reply import CallKind, CallStatus, Channel, ToolCall
from deltatape.model.request_summary import RequestSummary
from deltatape.model.rule_settings import DEFAULTS, Settings
from deltatape.model.stream import Comment, Event
from deltatape.model.tape_summary import LogEntry
from deltatape.model.websocket import (
    BINARY,
    CLOSE,
    CONTINUATION,
    PING,
    PONG,
    TEXT,
    FramePiece,
)
from deltatape.printable import count, escape, excerpt
from deltatape.render.exchange_rows import row_object
from deltatape.render.json_document import document, long_document
from deltatape.render.lines import (
    BOLD,
    DIM,
    GOOD,
    LEAST,
    WIDTH,
    Cell,
    Line,
    StyledText,
    line,
    measured,
    table,
    wrapped,
)
from deltatape.render.numbers import NO_TIMES, seconds, since_request
from deltatape.rules.event_contribution import ContributionKind
from deltatape.secret_text.search import without_secrets
from deltatape.tape.mask import credential_spans, must_be_masked, without_userinfo
from deltatape.why.exchange_index import ExchangeIndexer, check_all
from deltatape.why.tape_context import printed_around
from deltatape.why.timeline import (
    call_places,
    contributions_of,
    ending_of,
    news,
    numbered_choices,
    time_axis,
)
from deltatape.wire.websocket import read_closure

_BROKEN = "red"
_FINE = frozenset({CallStatus.COMPLETE, CallStatus.EMPTY_OK})
_PREFIXES = {
    CallKind.SERVER: "server ",
    CallKind.BUILT_IN: "built-in ",
    CallKind.MCP: "mcp ",
    CallKind.TEXT: "text ",
}
"""Kinds of calls that are counted for themselves: they are not the application's to run."""
_CUT = "..."
_LINE_END = re.compile(r"[ \t]*+[\r\n]\s*+")
_USUAL = "message"
"""The type of events that name none."""


def call_lines(analyses: Sequence[Analysis], width: int = WIDTH) -> list[Line]:
    """Format the rebuilt calls of all exchanges, one per line."""
    head = [
        StyledText(word, BOLD) for word in ("exchange", "call", "id", "name", "status", "arguments")
    ]
    rows = [
        [f"#{analysis.exchange.number}", *call_cells(call)]
        for analysis in analyses
        for choice in analysis.reply.choices
        for call in choice.every_call
    ]
    if not rows:
        return [line(StyledText("no calls", DIM))]
    return table([head, *rows], width=width, give=dict.fromkeys((2, 3, 5), LEAST))


def call_cells(call: ToolCall) -> list[Cell]:
    """Return a call's cells: index with kind, id, name, status with repairs, arguments."""
    style = GOOD if call.status in _FINE else _BROKEN
    repairs = f" ({', '.join(call.repairs)})" if call.repairs else ""
    return [
        f"{_PREFIXES.get(call.kind, '')}{call.index}",
        excerpt(call.id or "-", 40),
        excerpt(call.name or "-", 40),
        StyledText(f"{call.status}{repairs}", style),
        excerpt(_on_one_line(call)) or "(no bytes)",
    ]


def _on_one_line(call: ToolCall) -> str:
    """Return the arguments; complete ones without line breaks."""
    return _LINE_END.sub(" ", call.arguments) if call.status in _FINE else call.arguments


def event_lines(analysis: Analysis, width: int = WIDTH) -> list[Line]:
    """Format events and comments by position, with time, span and contribution."""
    stream, exchange = analysis.stream, analysis.exchange
    news_by_event = dict(
        zip((event.number for event in stream.events), news(analysis), strict=True)
    )
    units: list[Event | Comment] = sorted(
        [*stream.events, *stream.comments], key=lambda unit: unit.place.span
    )
    if not units:
        return [line(StyledText("no events", DIM))]
    typed = any(event.type != _USUAL for event in stream.events)
    names = ("event", "seconds", "bytes", *(("type",) if typed else ()), "what is new")
    rows = [list(_event_cells(unit, exchange, news_by_event, typed=typed)) for unit in units]
    head = [StyledText(word, BOLD) for word in names]
    give = dict.fromkeys((len(names) - 1, *((3,) if typed else ())), LEAST)
    return [_clock(exchange), *table([head, *rows], right=(0, 1), width=width, give=give)]


def _event_cells(
    unit: Event | Comment, exchange: Exchange, news_by_event: dict[int, str], *, typed: bool
) -> Iterator[Cell]:
    start, end = unit.place.span
    yield str(unit.number) if isinstance(unit, Event) else ":"
    yield _elapsed(unit.place.t_ns, exchange)
    yield f"{start}-{end}"
    if typed:
        yield excerpt(unit.type, 30) if isinstance(unit, Event) else ""
    if isinstance(unit, Event):
        yield excerpt(news_by_event[unit.number])
    else:
        yield StyledText(f"comment: {excerpt(unit.text.lstrip())}", DIM)


def read_lines(exchange: Exchange, width: int = WIDTH) -> list[Line]:
    """Format the reads from the upstream socket: time, offset, size, first and last bytes."""
    if exchange.upgraded:
        return _frame_lines(exchange, width)
    if not exchange.reads:
        return [line(StyledText("no reads", DIM))]
    head: list[Cell] = [
        StyledText(word, BOLD) for word in ("read", "seconds", "offset", "bytes", "data")
    ]
    rows: list[list[Cell]] = []
    offset = 0
    for number, read in enumerate(exchange.reads):
        time = _elapsed(read.t_ns, exchange)
        rows.append([str(number), time, str(offset), str(len(read.data))])
        offset += len(read.data)
    room = max(LEAST, width - measured(table([head[:-1], *rows], right=(0, 1, 2, 3))[0]) - 2)
    for row, read in zip(rows, exchange.reads, strict=True):
        row.append(_ends(read.data, room))
    return [_clock(exchange), *table([head, *rows], right=(0, 1, 2, 3), width=width)]


_FRAMES = {
    CONTINUATION: "continuation",
    TEXT: "text",
    BINARY: "binary",
    CLOSE: "close",
    PING: "ping",
    PONG: "pong",
}


def _frame_lines(exchange: Exchange, width: int) -> list[Line]:
    """Format what was read of a WebSocket, of both sides, and what is forbidden in it."""
    if not exchange.frames:
        return [line(StyledText("no frames", DIM))]
    names = ("read", "seconds", "side", "frame", "bytes", "data")
    head: list[Cell] = [StyledText(name, BOLD) for name in names]
    rows: list[list[Cell]] = []
    for number, piece in enumerate(exchange.frames):
        size = len(piece.data if piece.wire is None else piece.wire)
        time = _elapsed(piece.t_ns, exchange)
        rows.append([str(number), time, piece.side.value, frame_name(piece), str(size)])
    room = max(LEAST, width - measured(table([head[:-1], *rows], right=(0, 1, 4))[0]) - 2)
    for row, piece in zip(rows, exchange.frames, strict=True):
        closes = piece.opcode == CLOSE and piece.head is not None and not piece.raw
        row.append(escape(str(read_closure(piece.data))) if closes else _ends(piece.data, room))
    socket = read_socket(exchange)
    broken = [
        line(
            StyledText(
                f"{_elapsed(each.t_ns, exchange)} s: the {each.side} sent {each.detail}", _BROKEN
            )
        )
        for each in socket.violations
    ]
    return [
        _clock(exchange),
        *table([head, *rows], right=(0, 1, 4), width=width, give={5: LEAST}),
        *broken,
        line(StyledText(escape(str(socket)), DIM)),
    ]


def frame_name(piece: FramePiece) -> str:
    """Return a piece's name: `text`, `text...` if more follows, `...text` if it continues one."""
    if piece.raw:
        return "no frame"
    name = _FRAMES.get(piece.opcode, f"opcode {piece.opcode}")
    begins, fin = piece.head is not None, piece.head is None or piece.head.fin
    return f"{'' if begins else '...'}{name}{'' if fin and not piece.more else '...'}"


def _ends(data: bytes, room: int) -> str:
    """Shorten `data` to its beginning and its end."""
    if len(data) > 2 * room:
        data = data[:room] + data[-room:]
    text = without_secrets(data.decode("utf-8", "backslashreplace"))
    shown = [escape(character) for character in text]
    if sum(map(len, shown)) <= room:
        return "".join(shown)
    front = (room - len(_CUT)) // 3
    back = room - len(_CUT) - front
    return "".join(
        [
            *_fitting_characters(shown, front),
            _CUT,
            *reversed(_fitting_characters(shown[::-1], back)),
        ]
    )


def _fitting_characters(shown: Sequence[str], room: int) -> list[str]:
    """Return the characters that fit, without splitting an escape."""
    ends = itertools.accumulate(map(len, shown))
    return [each for each, end in zip(shown, ends, strict=True) if end <= room]


def _elapsed(t_ns: int, exchange: Exchange) -> str:
    return seconds(t_ns - exchange.request.t_ns) if exchange.has_times else "-"


def _clock(exchange: Exchange) -> Line:
    unit = since_request(exchange.request.t_ns) if exchange.has_times else NO_TIMES
    return line(StyledText(unit, DIM))


def log_lines(entries: Sequence[LogEntry], width: int = WIDTH) -> list[Line]:
    """Format the program's output: time, stream, text."""
    if not entries:
        return [line(StyledText("no log: the tape holds nothing that a program printed", DIM))]
    lines = [line(StyledText("seconds since the tape began, stream, text", DIM))]
    longest = max(len(each.stream) for each in entries)
    for each in entries:
        front = f"{seconds(each.t_ns):>9}  {each.stream:<{longest}}  "
        text = each.line.decode("utf-8", "backslashreplace").rstrip("\r")
        first, *more = wrapped(text, len(front), width=width)
        lines += [(StyledText(front, DIM), *first[1:]), *more]
    return lines


def log_hint(lines: int, tape: str) -> Line:
    """Return how many log lines there are, and how to see them."""
    number = count(lines, "line")
    return line(StyledText(f"{number} that the app printed: deltatape show {tape} --log", DIM))


# `show --format json`.
#
# The keys of the JSON are a contract: they are added to, never renamed. docs/show.schema.json says
# what each means.


def calls_json(analyses: Iterable[Analysis]) -> str:
    """`show --calls --format json`."""
    rows: dict[str, list[dict[str, object]]] = {name: [] for name in _LISTS}
    for analysis in analyses:
        number, dialect = analysis.exchange.number, analysis.reply.dialect
        for name, calls in call_lists(call_places(analysis), number, dialect).items():
            rows[name] += calls
    return document(**rows)


def call_lists(
    places: Iterable[CallPlace], exchange: int, dialect: str
) -> dict[str, list[dict[str, object]]]:
    """Return the lists of calls of an exchange, with the keys of the contract."""
    rows: dict[str, list[dict[str, object]]] = {name: [] for name in _LISTS}
    for place in places:
        rows[place.list].append(_call(place, exchange, dialect))
    return rows


_LISTS = ("calls", "server_calls", "text_calls")


def _call(place: CallPlace, exchange: int, dialect: str) -> dict[str, object]:
    call, written = place.call, place.written
    return {
        "exchange": exchange,
        "dialect": dialect,
        "choice": place.choice,
        "index": call.index,
        "wire_index": call.wire_index,
        "id": call.id,
        "name": call.name,
        "kind": call.kind,
        "arguments": call.arguments,
        "arguments_raw": call.arguments_raw,
        "status": call.status,
        "repairs": list(call.repairs),
        "start_event": place.numbers[call.start_event],
        "fragments": [_fragment_object(each) for each in shown_fragments(place)],
        **(
            {"family": written.family, "channel": written.channel, "closed": written.closed}
            if written
            else {}
        ),
    }


class ShownFragment(NamedTuple):
    """A fragment in the text that is shown: arguments, or a choice."""

    event: int
    text: str
    range: tuple[int, int]


def shown_fragments(place: CallPlace) -> Iterator[ShownFragment]:
    """Yield the fragments of a call's raw arguments, with the events of the whole exchange."""
    call = place.call
    pieces = [(place.numbers[each.event], each.text) for each in call.fragments]
    return fragments_without_secrets(call.arguments_raw, pieces)


def fragments_without_secrets(
    whole: str, pieces: Iterable[tuple[int, str]]
) -> Iterator[ShownFragment]:
    """Yield the pieces of a text without secrets: not even those that span several of them.

    Args:
        whole: the text.
        pieces: its parts, each after the number of its event.
    """
    shown = without_secrets(whole).encode(*_CODING)
    start = at = 0
    for event, piece in pieces:
        end = start + len(piece.encode(*_CODING))
        text = shown[start:end].decode(*_CODING)
        yield ShownFragment(event, text, (at, at + len(text)))
        start, at = end, at + len(text)


_CODING = ("utf-8", "surrogatepass")
"""Asterisks are as many as the bytes that they hide."""


def _fragment_object(fragment: ShownFragment) -> dict[str, object]:
    return {"event": fragment.event, "text": fragment.text, "range": list(fragment.range)}


def events_json(analysis: Analysis) -> str:
    """`show --events --format json`."""
    return long_document(events=list(_events(analysis)))


def _events(analysis: Analysis) -> Iterator[dict[str, object]]:
    exchange, contributions = analysis.exchange, contributions_of(analysis)
    places = {id(place.call): place for place in call_places(analysis)}
    fragments: dict[tuple[int, int], list[ShownFragment]] = {}
    for key, place in places.items():
        for fragment in shown_fragments(place):
            fragments.setdefault((key, fragment.event), []).append(fragment)
    lines = [each.line for each in exchange.frames] or [each.line for each in exchange.reads]
    read_by_line: dict[int | None, int] = {
        line: number for number, line in enumerate(lines) if line is not None
    }
    ends = list(itertools.accumulate(len(read.data) for read in exchange.reads))
    plain, has_times = analysis.stream.body == exchange.body, exchange.has_times
    added = news(analysis, contributions)
    for event, new in zip(analysis.stream.events, added, strict=True):
        brings: list[dict[str, object]] = []
        for each in contributions.get(event.number, ()):
            reference, part = None, None
            if each.call is not None:
                of = places[id(each.call)]
                reference = {"list": of.list, "choice": of.choice, "index": of.call.index}
                if each.what is ContributionKind.ARGUMENTS:
                    part = fragments[id(each.call), event.number].pop(0)
            brings.append(
                {
                    "what": each.what,
                    "text": part.text if part else each.text,
                    "call": reference,
                    "range": list(part.range) if part else None,
                }
            )
        yield {
            "exchange": exchange.number,
            "event": event.number,
            "type": event.type,
            "id": event.id,
            "data": event.data,
            "new": new,
            "brings": brings,
            "span": list(event.place.span),
            "first_read": bisect_right(ends, event.start) if plain else None,
            "read": read_by_line.get(event.line),
            "line": event.line,
            "t_ns": event.t_ns if has_times else None,
        }


def reads_json(exchange: Exchange) -> str:
    """`show --reads --format json`; data that is not UTF-8 is in hexadecimal."""
    return long_document(reads=_frames(exchange) if exchange.upgraded else _reads(exchange))


def _frames(exchange: Exchange) -> list[dict[str, object]]:
    has_times = exchange.has_times
    return [
        {
            "t_ns": piece.t_ns if has_times else None,
            "line": piece.line,
            "bytes": len(piece.data),
            "side": piece.side.value,
            "frame": frame_name(piece),
            **_text_or_hex("data", piece.data),
        }
        for piece in exchange.frames
    ]


def _reads(exchange: Exchange) -> list[dict[str, object]]:
    has_times = exchange.has_times
    ends = itertools.accumulate(len(read.data) for read in exchange.reads)
    return [
        {
            "t_ns": read.t_ns if has_times else None,
            "line": read.line,
            "span": [end - len(read.data), end],
            "bytes": len(read.data),
            **_text_or_hex("data", read.data),
        }
        for read, end in zip(exchange.reads, ends, strict=True)
    ]


def log_json(entries: Iterable[LogEntry]) -> str:
    """`show --log --format json`; a line that is not UTF-8 is in hexadecimal."""
    return document(log=_log(entries))


def _log(entries: Iterable[LogEntry]) -> list[dict[str, object]]:
    return [
        {"t_ns": entry.t_ns, "stream": entry.stream, **_text_or_hex("line", entry.line)}
        for entry in entries
    ]


def _text_or_hex(name: str, data: bytes) -> dict[str, str]:
    """Return `data` as text under `name`; as hexadecimal under "hex" if it is not UTF-8."""
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {"hex": data.hex()}


# The whole of an exchange.


def surrounded_json(
    exchanges: Sequence[Exchange],
    number: int,
    settings: Settings = DEFAULTS,
    logs: Sequence[LogEntry] = (),
    *,
    alone: bool = False,
) -> str:
    """`show TAPE#N --format json`; see `surrounded_object`."""
    return long_document(**surrounded_object(exchanges, number, settings, logs, alone=alone))


class Surroundings:
    """The exchanges of a tape: some are shown, with what the others say about them.

    Args:
        exchanges: the exchanges of the tape, in the order of their requests.
        numbers: the numbers of those that are shown.
        settings: the thresholds.
        logs: what the app printed.
        alone: whether others of the conversations are missing, so that nothing is known of them.
    """

    def __init__(
        self,
        exchanges: Sequence[Exchange],
        numbers: Collection[int],
        settings: Settings = DEFAULTS,
        logs: Sequence[LogEntry] = (),
        *,
        alone: bool = False,
    ) -> None:
        self._exchanges, self._settings, self._logs = exchanges, settings, logs
        self._analyses: dict[int, Analysis] = {}
        indexer = ExchangeIndexer(settings, logs=logs, alone=alone)
        rows: list[ExchangeRow] = []
        for batch in batches(exchanges, body_bytes):
            for checked in check_all(batch, settings):
                rows += indexer.add_checked(checked)
                number = checked.analysis.exchange.number
                if number in numbers:
                    self._analyses[number] = checked.analysis
        rows += indexer.end()
        self.rows = {row.exchange: row for row in rows}
        """By number; of several for an exchange, the last one counts."""

    def shown(self, number: int) -> dict[str, object]:
        """Return one exchange as a JSON object; see `exchange_object`."""
        analysis = self._analyses[number]
        log = printed_around(analysis.exchange, self._exchanges, self._logs)
        return exchange_object(analysis, self.rows[number], log, self._settings)


def surrounded_object(
    exchanges: Sequence[Exchange],
    number: int,
    settings: Settings = DEFAULTS,
    logs: Sequence[LogEntry] = (),
    *,
    alone: bool = False,
) -> dict[str, object]:
    """Return `exchange_object` of an exchange; see `Surroundings`."""
    return Surroundings(exchanges, (number,), settings, logs, alone=alone).shown(number)


def exchange_object(
    analysis: Analysis,
    row: ExchangeRow,
    log: Iterable[LogEntry] = (),
    settings: Settings = DEFAULTS,
) -> dict[str, object]:
    """Return the whole of an exchange with the keys of the contract; `document` hides its secrets.

    Args:
        analysis: the analysis of the exchange.
        row: the row of the exchange, in the list of exchanges.
        log: what the app printed around it.
        settings: the thresholds by which its findings were found.
    """
    exchange = analysis.exchange
    return {
        "exchange": row_object(row),
        "recording": _recording(exchange),
        "request": _request(analysis),
        "response": _response(exchange),
        "reply": _reply(analysis),
        **call_lists(call_places(analysis), exchange.number, analysis.reply.dialect),
        "text": list(_texts(analysis)),
        "turns": list(_turns(analysis)),
        "events": list(_events(analysis)),
        "reads": _reads(exchange),
        "frames": _frames(exchange),
        "delivered": list(_delivered(exchange)),
        "log": _log(log),
        "axis": axis_object(
            time_axis(analysis, row.codes, settings, unanswered=Mark.UNANSWERED in row.marks)
        ),
    }


def _recording(exchange: Exchange) -> dict[str, object]:
    has_times = exchange.has_times
    return {
        "id": exchange.id,
        "source": exchange.source.value,
        "tap": exchange.tap.value,
        "recorded_at": exchange.recorded_at or None,
        "ended": ending_of(exchange),
        "notes": [
            {"t_ns": note.t_ns if has_times else None, "text": note.text} for note in exchange.notes
        ],
    }


def _request(analysis: Analysis) -> dict[str, object]:
    request, sent = analysis.exchange.request, analysis.exchange.sent
    return {
        "method": request.method,
        "target": _target(request),
        "upstream": without_userinfo(request.upstream),
        "http": request.http,
        "headers": _headers(request.headers),
        "bytes": len(request.body),
        **_text_or_hex("body", request.content),
        "fault": request.content_fault or None,
        "connection": {"reused": sent.reused, "connect_ns": sent.connect_ns, "tls_ns": sent.tls_ns}
        if sent
        else None,
        **_asked(analysis.request),
    }


def _asked(request: RequestSummary) -> dict[str, object]:
    return {
        "known": request.known,
        "model": request.model,
        "stream": request.stream,
        "tool_choice": request.tool_choice,
        "tools": [{"name": each.name, "parameters": each.parameters} for each in request.tools],
        "messages": [
            {
                "role": each.role,
                "text": each.text,
                "calls": [
                    {"id": call.id, "name": call.name, "arguments": call.arguments}
                    for call in each.calls
                ],
                "call_id": each.call_id,
            }
            for each in request.history
        ],
    }


def _response(exchange: Exchange) -> dict[str, object] | None:
    head = exchange.response
    if head is None:
        return None
    return {
        "status": head.status,
        "reason": head.reason.decode("latin-1"),
        "http": head.http,
        "framing": head.framing.value,
        "headers": _headers(head.headers),
        "trailers": _headers(exchange.trailers),
        "bytes": exchange.body_size,
    }


def _headers(headers: Headers) -> list[dict[str, object]]:
    """Return header fields in wire order, without the credentials that an imported file has."""
    found: list[dict[str, object]] = []
    for name, value in headers:
        masked = not isinstance(value, bytes) or must_be_masked(name, value)
        size = len(value) if isinstance(value, bytes) else value.length
        shown = value.decode("latin-1") if isinstance(value, bytes) and not masked else "*" * size
        found.append({"name": name.decode("latin-1"), "value": shown, "masked": masked})
    return found


def _target(request: Request) -> str:
    target = bytearray(request.target_bytes)
    for start, end in credential_spans(request.target_bytes):
        target[start:end] = b"*" * (end - start)
    return target.decode("latin-1")


def _reply(analysis: Analysis) -> dict[str, object]:
    reply = analysis.reply
    return {
        "dialect": reply.dialect,
        "id": reply.id,
        "model": reply.model,
        "error": reply.error,
        "terminated": reply.terminated,
        "terminator": reply.terminator,
        "usage": reply.usage,
        "finishes": [
            {
                "choice": each.index,
                "reason": each.finish_reason_raw,
                "detail": each.finish_detail,
            }
            for each in reply.choices
        ],
    }


def _texts(analysis: Analysis) -> Iterator[dict[str, object]]:
    """Yield the texts of each choice: what is shown, reasoning, refusal."""
    for choice, numbers in numbered_choices(analysis):
        for channel in Channel:
            pieces = [each for each in choice.pieces if each.channel is channel]
            if not pieces:
                continue
            whole = "".join(each.text for each in pieces)
            shown = fragments_without_secrets(
                whole, [(numbers[each.event], each.text) for each in pieces]
            )
            fragments = [_fragment_object(each) for each in shown]
            yield {
                "choice": choice.index,
                "channel": channel.value,
                "text": whole,
                "fragments": fragments,
            }


def _turns(analysis: Analysis) -> Iterator[dict[str, object]]:
    """Yield the responses that came over a WebSocket, with their requests."""
    choice = 0
    for turn in analysis.turns:
        yield {
            "choice": choice,
            "t_ns": turn.exchange.request.t_ns if analysis.exchange.has_times else None,
            "line": turn.exchange.request.line,
            "events": list(turn.numbers),
            **_asked(turn.request),
        }
        choice += len(turn.reply.choices)


def _delivered(exchange: Exchange) -> Iterator[dict[str, object]]:
    """Yield how far a slow client had got, beside the read that brought the last of it."""
    ends = list(itertools.accumulate(len(read.data) for read in exchange.reads))
    for each in exchange.delivered:
        read = bisect_left(ends, max(1, each.bytes))
        known = read < len(ends)
        yield {
            "t_ns": each.t_ns,
            "bytes": each.bytes,
            "read": read if known else None,
            "late_ns": each.t_ns - exchange.reads[read].t_ns if known else None,
        }


def axis_object(axis: TimeAxis) -> dict[str, object]:
    """Return a time axis with the keys of the contract."""
    return {
        "request_ns": axis.request_ns,
        "sent_ns": axis.sent_ns,
        "head_ns": axis.head_ns,
        "first_event_ns": axis.first_event_ns,
        "end_ns": axis.end_ns,
        "phases": [
            {"name": each.name, "from_ns": each.start_ns, "to_ns": each.end_ns}
            for each in axis.phases
        ],
        "dead_zones": [
            {
                "phase": each.phase,
                "from_ns": each.start_ns,
                "to_ns": each.end_ns,
                "event": each.event,
                "code": each.code,
            }
            for each in axis.dead_zones
        ],
    }
