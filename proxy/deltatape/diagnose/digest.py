"""Digest an exchange: what is needed to read replies back, without the exchange itself."""

import hashlib
import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime  # noqa: TID251 - they read no clock
from functools import reduce
from itertools import accumulate, chain, takewhile
from operator import attrgetter, is_
from typing import NamedTuple

from deltatape.diagnose.rebuild import Analysis, analyse
from deltatape.diagnose.tool_server import read_talk
from deltatape.model.app_names import CONTRACT, AppNames
from deltatape.model.digest import MAX_CONTENT, DeliveredCall, Digest, HistoryMessage
from deltatape.model.exchange import EndReason, Exchange, Tap, header, wall_time
from deltatape.model.reply import CallStatus, Channel, Choice, Reply, TextFragment, ToolCall
from deltatape.model.request_summary import Message, RepeatedCall, RequestSummary
from deltatape.model.rule_settings import DEFAULTS, Settings
from deltatape.model.stream import Span
from deltatape.model.tool_server import ToolServerTalk
from deltatape.printable import count
from deltatape.rules.finish import FinishMeaning, finish_of
from deltatape.rules.loss import is_lossy
from deltatape.rules.parser_errors import in_message
from deltatape.rules.progress import lags
from deltatape.rules.small_talk import small_talk

_SYSTEM = frozenset({"system", "developer"})
_ASSISTANT = frozenset({"assistant", "model"})
_FREE = frozenset({None, "auto", "none"})
_ANY = frozenset({"required", "any"})
_CUT = frozenset({FinishMeaning.LENGTH, FinishMeaning.FILTER})
_USER = "user"
_HTTP_ERROR = 400
_DECODER = json.JSONDecoder(parse_int=str)
_NUMBER = re.compile(rb"\d{1,9}(?:\.\d{1,9})?")
_DATE = "%a, %d %b %Y %H:%M:%S GMT"
_data = attrgetter("data")
_CONTINUES = 0x80
"""The upper bits of a UTF-8 continuation byte."""
_PART = re.compile(
    r'"(?:output_index|content_index|item_id|index|contentBlockIndex)" ?: ?("[^"]{0,200}"|\d+)'
)
"""Keys that name the part of a message that an event's text belongs to."""
_CLOSERS = frozenset("<[]`{,|)")
"""What may follow the JSON of a text call: a tag, a fence, the next call."""
_HISTORIES = 8
"""How many histories are cached."""
_SHORT = 8
"""Shorter histories are not cached."""


class HistoryDigest(NamedTuple):
    """What is kept of a history, with a hash of each prefix of its messages."""

    messages: tuple[HistoryMessage, ...]
    prefixes: tuple[str, ...]


class _RememberedHistory(NamedTuple):
    digest_message: Callable[[Message], HistoryMessage]
    messages: Sequence[Message]
    made: HistoryDigest


_memory: tuple[_RememberedHistory, ...] = ()
"""The last histories, the latest first. Replaced, never changed: several threads read it."""


def digest(exchange: Exchange, app: AppNames = CONTRACT) -> Digest:
    """Return the digest of `exchange`, which `check_conversation` compares, also across tapes.

    Args:
        exchange: with or without a response.
        app: what an application calls the events of its own endpoint.
    """
    return digest_analysis(analyse(exchange, app))


def digests_of(analysis: Analysis, settings: Settings = DEFAULTS) -> tuple[Digest, ...]:
    """Return the digests of an exchange: one, or one for each response that a WebSocket brought.

    Args: see `digest_analysis`.
    """
    if not analysis.turns:
        return (digest_analysis(analysis, settings),)
    found = (digest_analysis(turn, settings) for turn in analysis.turns)
    lossy = is_lossy(analysis.exchange)
    return tuple([replace(each, lossy=True) if lossy else each for each in found])


def in_order(groups: Iterable[Sequence[Digest]]) -> list[Digest]:
    """Return the digests of exchanges in the order of their requests.

    Args:
        groups: what `digests_of` returns for each exchange, in the order in which they began.
    """
    groups = tuple(groups)
    found = [each for group in groups for each in group]
    if any(len(group) > 1 for group in groups) and all(each.t_ns is not None for each in found):
        # Other exchanges may have begun between two requests on one WebSocket.
        found.sort(key=lambda each: each.t_ns or 0)
    return found


def digest_analysis(analysis: Analysis, settings: Settings = DEFAULTS) -> Digest:
    """Return the digest of an exchange that is analysed already.

    Args:
        analysis: the analysis of the exchange.
        settings: say which messages are small talk.
    """
    exchange, asked, reply = analysis.exchange, analysis.request, analysis.reply
    said = [message for message in asked.history if message.role not in _SYSTEM]
    system = [message for message in asked.history if message.role in _SYSTEM]
    # Requests that continue different stored replies share no history, even if their messages do.
    start = stored_history(asked.previous) if asked.previous else _EMPTY_HASH
    kept = digest_history(said, _digest_message, _link, start)
    request = _Request(
        system=reduce(_link, system, _EMPTY_HASH),
        kept=kept,
        small_talk=_small_talk(said, settings),
        asked_at=argument_spans(exchange.request.content, _last_calls(said)),
    )
    events = analysis.stream.events
    said_ns = events[-1].t_ns if events and exchange.timed else None
    return _digest(exchange, asked, reply, request, said_ns, read_talk(analysis))


def stored_history(reply_id: str) -> str:
    """Return the hash of what the provider keeps up to a reply: see `Digest.prefixes`."""
    return _hash(reply_id)


class _Request(NamedTuple):
    """The history of a request."""

    system: str
    kept: HistoryDigest
    small_talk: str
    asked_at: tuple[tuple[RepeatedCall, Span], ...]


def _digest(
    exchange: Exchange,
    asked: RequestSummary,
    reply: Reply,
    request: _Request,
    said_ns: int | None,
    talk: ToolServerTalk | None,
) -> Digest:
    choice = reply.choices[0]
    cuts = _cuts(exchange)
    return Digest(
        tape=exchange.tape,
        exchange=exchange.number,
        id=exchange.id,
        line=exchange.request.line,
        t_ns=exchange.request.t_ns if exchange.timed else None,
        end_ns=exchange.end.t_ns if exchange.end else None,
        end_line=exchange.end.line if exchange.end else None,
        watch=exchange.watch if exchange.timed else None,
        tap=Tap.APP if reply.from_app else exchange.tap,
        path=exchange.request.path,
        stream=asked.stream,
        left=exchange.end is not None and exchange.end.reason is EndReason.CLIENT_CLOSED,
        # One digest cannot tell which response each request over a WebSocket repeats.
        known=asked.known and bool(asked.history) and not exchange.upgraded,
        dialect=reply.dialect,
        system=request.system,
        history=request.kept.messages,
        prefixes=request.kept.prefixes,
        forced=_is_forced(asked),
        whole=_is_whole(reply) and not exchange.upgraded,
        text=_text_hash(choice.text),
        calls=_calls(exchange, choice, cuts),
        results=_results(asked),
        summary=_summary(reply, choice),
        tools=tuple([tool.name for tool in asked.tools]),
        tools_elsewhere=asked.tools_elsewhere,
        tool_choice=asked.tool_choice,
        status=exchange.response.status if exchange.response else None,
        error=reply.error,
        wait_s=_wait_s(exchange),
        small_talk=request.small_talk,
        reply_id=reply.id,
        previous=asked.previous,
        text_calls=tuple([_text_call(one.call) for one in choice.text_calls]),
        asked_at=request.asked_at,
        failed=_is_failed(exchange, reply),
        content=choice.text[:MAX_CONTENT],
        content_ends=_content_ends(choice),
        torn=_torn(
            cuts,
            (each.carrier.place.span for each in choice.pieces if each.channel is Channel.TEXT),
        ),
        model=asked.model,
        instructed=request.system != _EMPTY_HASH,
        instructions=asked.instructions,
        schemas=_schemas(asked, choice),
        called_ns=_first_call_ns(choice) if exchange.timed else None,
        said_ns=said_ns,
        limited=finish_of(choice) in _CUT,
        lossy=is_lossy(exchange),
        reported=exchange.reported,
        thoughts=choice.thoughts if choice.tool_calls else (),
        signed_text=choice.signed_text if choice.tool_calls else None,
        thinking=asked.thinking,
        store=asked.store,
        served=talk.calls if talk is not None else (),
        listed=talk.tools if talk is not None else (),
    )


def _calls(exchange: Exchange, choice: Choice, cuts: Sequence[int]) -> tuple[DeliveredCall, ...]:
    if not choice.tool_calls:
        return ()
    finish = choice.finish_event
    taken = [(lag.start_ns, lag.end_ns) for lag in lags(exchange)]
    return tuple([_call(exchange, call, finish, taken, cuts) for call in choice.tool_calls])


def _call(
    exchange: Exchange,
    call: ToolCall,
    finish: int | None,
    taken: Sequence[tuple[int, int]],
    cuts: Sequence[int],
) -> DeliveredCall:
    """Return a call with what the order of events shows.

    Args:
        exchange: the exchange that delivered it.
        call: the call.
        finish: the event with the finish reason, if there was one.
        taken: for a lagging client, when reads arrived and when it had taken them.
        cuts: see `_cuts`.
    """
    came_ns = call.fragments[-1].place.t_ns if call.fragments else call.start.t_ns
    late_ns = next((end_ns for start_ns, end_ns in taken if start_ns >= came_ns), came_ns)
    return replace(
        _delivered_call(call),
        t_ns=max(came_ns, late_ns) if exchange.timed else None,
        after_finish=finish is not None and call.start_event > finish,
        torn=_torn(cuts, (each.place.span for each in call.fragments)),
    )


def _content_ends(choice: Choice) -> tuple[int, ...]:
    pieces = [piece for piece in choice.pieces if piece.channel is Channel.TEXT]
    if len(pieces) > 1 and _are_parts(pieces[0], pieces[-1]):
        return ()
    lengths = (len(piece.text) for piece in pieces)
    return tuple(takewhile(lambda end: end <= MAX_CONTENT, accumulate(lengths)))


def _are_parts(first: TextFragment, last: TextFragment) -> bool:
    """Return whether two pieces of text belong to different parts of a message.

    Parts come one after the other, each event naming its own.
    """
    if first.event == last.event:
        return True
    one, other = _PART.findall(first.carrier.data), _PART.findall(last.carrier.data)
    return len(one) == len(other) and one != other


def _cuts(exchange: Exchange) -> Sequence[int]:
    """Return where in the body a read ended within a character's bytes.

    Unknown with a content coding: then these bytes are not those of the text.
    """
    # Nearly every read of nearly every exchange begins with ASCII.
    if b"".join([data[:1] for data in map(_data, exchange.reads)]).isascii():
        return ()
    if exchange.response is None or header(exchange.response.headers, "content-encoding"):
        return ()
    ends = accumulate(len(read.data) for read in exchange.reads)
    after = [read.data[:1] for read in exchange.reads[1:]]
    return [
        end for end, byte in zip(ends, after, strict=False) if byte and byte[0] & 0xC0 == _CONTINUES
    ]


def _torn(cuts: Sequence[int], spans: Iterable[Span]) -> tuple[int, ...]:
    """Return the places of the spans in which a character was cut."""
    if not cuts:
        return ()
    return tuple(
        place
        for place, span in enumerate(spans)
        if bisect_left(cuts, span.end) > bisect_right(cuts, span.start)
    )


def _first_call_ns(choice: Choice) -> int | None:
    in_text = (one.call for one in choice.text_calls)
    return min((call.start.t_ns for call in chain(choice.tool_calls, in_text)), default=None)


def _schemas(asked: RequestSummary, choice: Choice) -> Mapping[str, Mapping[str, object]]:
    called = {call.name for call in choice.tool_calls}
    return {
        tool.name: tool.parameters
        for tool in (asked.tools if called else ())
        if tool.name in called and tool.parameters is not None
    }


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _text_hash(text: str) -> str:
    bare = text.strip()
    return _hash(bare) if bare else ""


_EMPTY_HASH = _hash()


def _link(so_far: str, message: Message) -> str:
    return _hash(so_far, message.digest)


def _digest_message(message: Message) -> HistoryMessage:
    return HistoryMessage(
        role=message.role,
        text=_text_hash(message.text),
        calls=message.calls,
        call_id=message.call_id,
        error=None
        if message.role in _ASSISTANT
        else in_message(message.text, alone=message.role == _USER),
        owns=message.owns,
        content=message.text[:MAX_CONTENT],
        thoughts=message.thoughts,
        digest=message.digest,
    )


def _last_calls(messages: Sequence[Message]) -> list[RepeatedCall]:
    """Return the calls of the last assistant messages with calls: mostly new in this request."""
    end = next((at + 1 for at in range(len(messages) - 1, -1, -1) if messages[at].calls), 0)
    start = end
    while start and messages[start - 1].role in _ASSISTANT:
        start -= 1
    return [call for message in messages[start:end] for call in message.calls]


def _small_talk(messages: Sequence[Message], settings: Settings) -> str:
    if not messages or messages[-1].role != _USER or messages[-1].call_id:
        return ""
    return small_talk(messages[-1].text, settings.small_talk_words, settings.small_talk)


def _wait_s(exchange: Exchange) -> float:
    head = exchange.response
    if head is None:
        return 0
    in_ms, after = (header(head.headers, name) or b"" for name in ("retry-after-ms", "retry-after"))
    if _NUMBER.fullmatch(in_ms):
        return float(in_ms) / 1000
    if _NUMBER.fullmatch(after):
        return float(after)
    until, now = _moment(after), wall_time(exchange.recorded_at, head.t_ns)
    return max((until - now).total_seconds(), 0) if until is not None and now is not None else 0


def _moment(date: bytes) -> datetime | None:
    try:
        return datetime.strptime(date.decode("latin-1"), _DATE).replace(tzinfo=UTC)
    except ValueError:
        return None


def _is_failed(exchange: Exchange, reply: Reply) -> bool:
    if exchange.open:
        return False
    response = exchange.response
    refused = response is None or response.status >= _HTTP_ERROR
    return refused or reply.error is not None or not reply.terminated


def _delivered_call(call: ToolCall) -> DeliveredCall:
    return DeliveredCall(
        index=call.index,
        id=call.id,
        ids=call.ids,
        name=call.name,
        kind=call.kind,
        arguments=call.arguments,
        fragments=tuple([fragment.text for fragment in call.fragments]),
        status=call.status,
        span=_span(call),
        line=call.fragments[-1].place.line if call.fragments else call.start.line,
    )


def _text_call(call: ToolCall) -> DeliveredCall:
    """Return a text call, incomplete unless its end follows the JSON directly.

    Clients that parse calls from text read everything between the tags.
    """
    delivered, raw = _delivered_call(call), call.arguments_raw
    try:
        end = _DECODER.raw_decode(raw, raw.index("{"))[1]
    except (ValueError, RecursionError):
        return delivered
    rest = raw[end:].lstrip()
    closed = not rest or rest[0] in _CLOSERS
    return delivered if closed else replace(delivered, status=CallStatus.EXTRA_DATA)


def _span(call: ToolCall) -> Span:
    """Return the span from the event that opens a call to the last byte of its arguments."""
    first, last = call.start.span, call.start.span
    if call.fragments:
        first, last = call.fragments[0].place.span, call.fragments[-1].place.span
    return Span(min(call.start.span.start, first.start), max(call.start.span.end, last.end))


def _is_forced(asked: RequestSummary) -> bool:
    if asked.tool_choice in _ANY:
        return len(asked.tools) == 1
    return asked.tool_choice not in _FREE


def _is_whole(reply: Reply) -> bool:
    """Return whether there is a single answer that ended without an error or a limit."""
    regular = reply.terminated and reply.error is None and len(reply.choices) == 1
    return regular and finish_of(reply.choices[0]) not in _CUT


def _results(asked: RequestSummary) -> tuple[str, ...]:
    found: list[str] = []
    for message in reversed(asked.history):
        if message.role in _ASSISTANT:
            break
        if message.call_id:
            found.insert(0, message.call_id)
    return tuple(found)


def _summary(reply: Reply, choice: Choice) -> str:
    parts = [reply.dialect, *([reply.model] if reply.model else [])]
    if choice.text:
        parts.append(f"{len(choice.text)} characters of text")
    if choice.tool_calls:
        names = ", ".join(call.name or "?" for call in choice.tool_calls)
        parts.append(f"{count(len(choice.tool_calls), 'call')}: {names}")
    if reply.error is not None:
        parts.append(f"error: {reply.error}")
    parts.append(f"finish {choice.finish_reason_raw or 'unknown'}")
    return "; ".join(parts)


# Digests histories, each message once.
#
# Requests of one conversation share the objects of equal messages (see `dialects._shared`), so that
# the digest of a message is reused when a later request repeats it. Without that, time and memory
# would grow with the square of the conversation's length.
#
# The last few histories are cached. No result depends on the cache, only time and memory.


def digest_history(
    messages: Sequence[Message],
    digest_message: Callable[[Message], HistoryMessage],
    link: Callable[[str, Message], str],
    start: str,
) -> HistoryDigest:
    """Return what `digest_message` keeps of each of `messages`, and the prefix hashes.

    Args:
        messages: a history, without those of the system.
        digest_message: looks at the message alone.
        link: the hash for one message more.
        start: the hash of no messages.
    """
    global _memory  # noqa: PLW0603 - as a cache of functools: no result depends on it
    known, count = (
        _nearest(messages, digest_message, start) if len(messages) >= _SHORT else (None, 0)
    )
    digested = list(known.made.messages[:count]) if known else []
    prefixes = list(known.made.prefixes[: count + 1]) if known else [start]
    for message in messages[count:]:
        digested.append(digest_message(message))
        prefixes.append(link(prefixes[-1], message))
    made = HistoryDigest(tuple(digested), tuple(prefixes))
    if len(messages) >= _SHORT:
        old = known if known and 2 * count >= len(known.messages) else None
        others = [each for each in _memory if each is not old]
        _memory = (_RememberedHistory(digest_message, messages, made), *others[: _HISTORIES - 1])
    return made


def _nearest(
    messages: Sequence[Message], digest_message: Callable[[Message], HistoryMessage], start: str
) -> tuple[_RememberedHistory | None, int]:
    """Return the remembered history that shares most messages, and their number."""
    found, most = None, 0
    for known in _memory:
        if known.digest_message is not digest_message or known.made.prefixes[0] != start:
            continue
        shared = list(map(is_, messages, known.messages))
        count = len(shared) if all(shared) else shared.index(False)
        if count > most:
            found, most = known, count
    return found, most


# The spans of repeated calls' arguments in a request's body.
#
# Strategy: the id of a call first appears beside its arguments; the result with it comes later.
# So search for the id, then for the member with the arguments after it, and accept the place only
# if it decodes to the arguments of the parsed request. Calls without an id are searched by their
# arguments alone, from the end.

_MEMBER = re.compile(rb'"(?:arguments|input|args)"[ \t\r\n]*+:[ \t\r\n]*+')
_NEAR = 4096
"""How far behind an id the arguments of its call may begin, in bytes."""
_LEAST = 3
"""Without an id, shorter arguments are not searched for: `{}` is everywhere."""


def argument_spans(
    body: bytes, calls: Iterable[RepeatedCall]
) -> tuple[tuple[RepeatedCall, Span], ...]:
    """Return the calls whose arguments were found, with the spans of these, quotes included.

    Args:
        body: the body of the request.
        calls: what it was read as.
    """
    found = []
    at = 0
    for call in calls:
        span = _by_id(body, call, at) if call.id else _by_text(body, call)
        if span is not None:
            found.append((call, span))
            at = span.start if call.id else at
    return tuple(found)


def _by_id(body: bytes, call: RepeatedCall, start: int) -> Span | None:
    """Return the span of the call's arguments; the search begins at `start`."""
    quoted = json.dumps(call.id).encode()
    at = body.find(quoted, start)
    at = body.find(quoted) if at < 0 else at
    member = _MEMBER.search(body, at, at + _NEAR) if at >= 0 else None
    if member is None:
        return None
    start = member.end()
    for text in _spellings(call.arguments):
        if body.startswith(text, start):
            return Span(start, start + len(text))
    return None


def _by_text(body: bytes, call: RepeatedCall) -> Span | None:
    for text in _spellings(call.arguments):
        at = body.rfind(text) if len(text) >= _LEAST else -1
        if at >= 0:
            return Span(at, at + len(text))
    return None


def _spellings(arguments: str) -> Iterator[bytes]:
    """Yield the ways to write arguments: as a JSON string, in ASCII or not, or as an object."""
    yield json.dumps(arguments, ensure_ascii=False).encode("utf-8", "surrogatepass")
    yield json.dumps(arguments).encode()
    yield arguments.encode("utf-8", "surrogatepass")
