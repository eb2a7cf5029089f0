"""Runs clients over one delivered stream, and compares them with the documented client.

The steps that a client gets depend on framing and decoding only; so they are kept per pair of
these, and every other axis costs one pass over them. Long runs of argument fragments are joined
first: what a client does with the hundredth fragment it does with the thousandth.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from deltatape.model.request_summary import RepeatedCall
from deltatape.model.stream import Event, Format
from deltatape.model.suspect import ClientReading
from deltatape.suspects.accumulate import ClientResult, accumulate, bodies, tag_outcome
from deltatape.suspects.client import CORRECT, ClientModel, Preset, mistakes_of
from deltatape.suspects.delivered import DeliveredResponse
from deltatape.suspects.mistakes import MISTAKES
from deltatape.suspects.parsers import parser_errors
from deltatape.suspects.steps import ClientCallDelta, EntryPhase, Step
from deltatape.wire.json_value import parse
from deltatape.wire.ndjson import NdjsonDecoder
from deltatape.wire.sse import SseDecoder

_LONG = 2_000
"""Steps from which on runs are joined."""
_KEPT = 8
"""Fragments at either end of a run that are not joined."""
_TEXTS = 40
"""Texts of one client that parsers are asked about."""
_SHOWN = 60
"""How many errors of one client are reported."""
_A_CALL = 5
"""What a call costs, in steps."""
_BODY_LIMIT = 2_000_000
"""Bytes of a body from which on no other framing is tried."""
_LEFT_OPEN = (("id", "first"), ("name", "first"), ("kinds", "documented"))
"""What the documentation leaves open: which of two ids or names counts, odd types of items."""
_REFUSALS = ("empty arguments", "no arguments", "missing arguments", "arguments are empty")
_STANDARD = frozenset({("framing", CORRECT.framing), ("decode", CORRECT.decode)})
_SILENT = frozenset({"drop", "swallow", "repair", "repair-whole-members"})


# The framings and decodings that clients write themselves, and what goes wrong with them.
#
# All take the reads as they came from the socket: `data.split("\n")` on a read finds half lines,
# and half characters, wherever the network cut.

_FIELD = "data: "
_SENTINEL = "[DONE]"


class ClientFraming(NamedTuple):
    """What a client's framing returns."""

    events: tuple[Event, ...]
    texts: tuple[str, ...] = ()
    """What it gives its JSON parser although it is not JSON."""
    thrown: tuple[str, ...] = ()
    dies: bool = False
    """Whether that certainly ends its reading."""


def framed(reads: Sequence[bytes], form: Format, framing: str, decode: str) -> ClientFraming:
    """Frame reads as a client with this framing does.

    Args:
        reads: after content-coding.
        form: SSE or NDJSON.
        framing: how it finds events; `standard` or one of the mistakes.
        decode: how it decodes: `stream`, or `reads` and `reads-ignore`, which leaves out half
            characters.
    """
    thrown: tuple[str, ...] = ()
    if decode == "reads":
        texts = [data.decode(errors="replace") for data in reads]
        thrown = _refusals(reads)
    elif decode == "reads-ignore":
        texts = [data.decode(errors="ignore") for data in reads]
    else:
        texts = _decoded(reads)
    if framing == "standard":
        return ClientFraming(_standard("".join(texts), form), (), thrown)
    if form is Format.NDJSON:
        found = [line for text in texts for line in text.split("\n")]
        if framing not in ("reads", "one-per-read"):
            found = "".join(texts).split("\n")
        elif framing == "one-per-read":
            found = [text.partition("\n")[0] for text in texts]
    else:
        found = [*_FRAMINGS[framing](texts)]
    return _events(found, thrown, dies=framing == "every-line")


def _decoded(reads: Sequence[bytes]) -> list[str]:
    """Decode reads incrementally: a split character belongs to the read that completes it."""
    texts, held = [], b""
    for data in reads:
        data = held + data  # noqa: PLW2901
        cut = _cut(data)
        held = data[cut:]
        texts.append(data[:cut].decode(errors="replace"))
    return [*texts, held.decode(errors="replace")]


def _cut(data: bytes) -> int:
    """Return where an incomplete last character of `data` begins; else the end."""
    for back in range(1, min(4, len(data)) + 1):
        lead = data[-back]
        if lead >= 0xC0:  # noqa: PLR2004 - a byte that begins a sequence
            needed = 2 + (lead >= 0xE0) + (lead >= 0xF0)  # noqa: PLR2004
            return len(data) - back if back < needed else len(data)
    return len(data)


def _refusals(reads: Sequence[bytes]) -> tuple[str, ...]:
    """Return the error of a strict decoder for the first read that ends inside a character."""
    for data in reads:
        try:
            data.decode()
        except UnicodeDecodeError as problem:
            return (str(problem),)
    return ()


def _standard(text: str, form: Format) -> tuple[Event, ...]:
    decoder = NdjsonDecoder() if form is Format.NDJSON else SseDecoder()
    events = decoder.feed(text.encode(), 0, None)
    decoder.end()
    return (*events, *filter(None, [decoder.tail]))


def _by_reads(texts: Sequence[str]) -> Iterator[str]:
    for text in texts:
        yield from _data_lines(text)


def _data_lines(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        if line.startswith(_FIELD):
            yield line[len(_FIELD) :]


def _first_of_read(texts: Sequence[str]) -> Iterator[str]:
    for text in texts:
        yield from [*_data_lines(text)][:1]


def _by_blank_lines(texts: Sequence[str]) -> Iterator[str]:
    *blocks, _ = "".join(texts).split("\n\n")
    for block in blocks:
        lines = (line for line in block.split("\n") if line.startswith("data:"))
        yield "\n".join(line[len("data:") :].removeprefix(" ") for line in lines)


def _with_space(texts: Sequence[str]) -> Iterator[str]:
    return _data_lines("".join(texts))


def _every_line(texts: Sequence[str]) -> Iterator[str]:
    for line in "".join(texts).splitlines():
        yield line.removeprefix(_FIELD)


_FRAMINGS: Mapping[str, Callable[[Sequence[str]], Iterator[str]]] = {
    "reads": _by_reads,
    "one-per-read": _first_of_read,
    "blank-lines": _by_blank_lines,
    "space": _with_space,
    "every-line": _every_line,
}


def _events(found: Sequence[str], thrown: tuple[str, ...], *, dies: bool) -> ClientFraming:
    events: list[Event] = []
    refused: list[str] = []
    for data in found:
        text = data.strip()
        if not text:
            continue
        if text != _SENTINEL and parse(text).error is not None:
            refused.append(data)
            continue
        events.append(Event(len(events), "message", data, "", None, 0, 0, 0, None))
    return ClientFraming(
        tuple(events), tuple(dict.fromkeys(refused)), thrown, dies and bool(refused)
    )


class _Given(NamedTuple):
    steps: tuple[Step, ...]
    framed: ClientFraming | None
    """None: the standard's framing."""


class Bench:
    """Runs clients over `stream`, whose dialect must belong to a family."""

    def __init__(self, stream: DeliveredResponse) -> None:
        self.stream = stream
        self.ids = stream.ids
        self.spent = 0
        """Steps walked so far, and calls made of them."""
        self._given: dict[tuple[str, str], _Given] = {}
        self._errors: dict[str, tuple[str, ...]] = {}
        self._reframings = _reframings(stream)
        usual = self.outcome(CORRECT)
        self._left_open = [
            one for one in _LEFT_OPEN if self.outcome(replace(CORRECT, **dict([one]))) != usual
        ]
        self._documented = [usual, *(self.outcome(one) for one in self.readings(CORRECT))]
        self._texts = frozenset(text for one in self._documented for text in one.texts)

    def applies(self, client: ClientModel) -> bool:
        """Check whether the mistakes of `client` can occur with this stream."""
        stream, family = self.stream, self.stream.family
        if client.tags != CORRECT.tags and not stream.reply.text_calls:
            return False
        chosen = {("framing", client.framing), ("decode", client.decode)}
        if not chosen - _STANDARD <= self._reframings:
            return False
        found = (MISTAKES[one.axis, one.value] for one in mistakes_of(client))
        return all(family in choice.families for choice in found)

    def known(self, preset: Preset) -> Sequence[ClientModel]:
        """Return the clients of `preset` that this dialect has and this stream can break."""
        follows = self.stream.follow_up or preset.clients[0].calls == CORRECT.calls
        if self.stream.family not in preset.families or not follows:
            return ()
        return [client for client in preset.clients if self.applies(client)]

    def outcome(self, client: ClientModel) -> ClientResult:
        """Return what `client` gets from the stream."""
        given = self._given_to(client)
        if client.calls == "ignored":
            return ClientResult(())
        found = accumulate(given.steps, client)
        self.spent += len(given.steps) + _A_CALL * (len(found.calls) + len(found.texts))
        if client.tags != CORRECT.tags:
            tagged = tag_outcome(self.stream.reply, client.tags)
            found = ClientResult((*found.calls, *tagged.calls), found.thrown, tagged.texts)
        if given.framed is None:
            return found
        calls = () if given.framed.dies else found.calls
        return ClientResult(
            calls, (*found.thrown, *given.framed.thrown), (*given.framed.texts, *found.texts)
        )

    def readings(self, client: ClientModel) -> Iterator[ClientModel]:
        """Yield `client` with every choice that the documentation leaves open, if it shows here."""
        for axis, value in self._left_open:
            if getattr(client, axis) == getattr(CORRECT, axis):
                yield replace(client, **{axis: value})
        if len(self._left_open) > 1 and (client.id, client.name) == (CORRECT.id, CORRECT.name):
            yield replace(client, id="first", name="first")

    def documented(self) -> ClientResult:
        """Return what the documented client gets."""
        return self._documented[0]

    def is_documented(self, calls: Sequence[RepeatedCall]) -> bool:
        """Check whether a client without mistakes gets exactly these calls."""
        return any(tuple(calls) == one.calls for one in self._documented)

    @property
    def references(self) -> Iterator[tuple[RepeatedCall, ...]]:
        """Yield what an application without mistakes may repeat."""
        written = self.stream.text_calls
        for calls in (self.stream.calls, *(one.calls for one in self._documented)):
            yield calls
            if written:
                yield (*calls, *written)

    def own_errors(self) -> Iterator[str]:
        """Yield the parser errors of the documented client: the stream itself is invalid."""
        if self.stream.is_whole:
            for text in (*self._texts, *bodies(self.stream.reply)):
                if text.strip():
                    yield from self._of(text)

    def errors(self, client: ClientModel, outcome: ClientResult) -> tuple[str, ...]:
        """Return errors of `client` or its parsers that the documented client does not get."""
        found = dict.fromkeys(outcome.thrown)
        if client.empty == "parsed":
            found.update(dict.fromkeys(self._refusals()))
        for text in self._unlike(client, outcome):
            found.update(dict.fromkeys(self._of(text)))
        return tuple(found)[:_SHOWN]

    def made(self, client: ClientModel, outcome: ClientResult) -> ClientReading:
        """Return `outcome` with its errors."""
        return ClientReading(calls=outcome.calls, errors=self.errors(client, outcome))

    def _unlike(self, client: ClientModel, outcome: ClientResult) -> list[str]:
        """Return texts that `client` parses and the documented client does not."""
        if client.parse in _SILENT:
            return []
        empty = any(not call.arguments.strip() for call in self.stream.calls)
        texts = [
            text
            for text in outcome.texts
            if text not in self._texts and (text.strip() or not empty)
        ]
        if client.empty == "parsed" and empty:
            texts.append("")
        if client.ending == "ignored" and not self.stream.is_whole:
            texts += outcome.texts
        return texts[:_TEXTS]

    def _refusals(self) -> Sequence[str]:
        """Return messages of executors that check before they parse."""
        return () if all(call.arguments.strip() for call in self.stream.calls) else _REFUSALS

    def _of(self, text: str) -> tuple[str, ...]:
        found = self._errors.get(text)
        if found is None:
            found = self._errors[text] = parser_errors(text)
        return found

    def _given_to(self, client: ClientModel) -> _Given:
        key = (client.framing, client.decode)
        found = self._given.get(key)
        if found is None:
            found = self._given[key] = self._give(client)
        return found

    def _give(self, client: ClientModel) -> _Given:
        stream = self.stream
        if (client.framing, client.decode) == (CORRECT.framing, CORRECT.decode):
            return _Given(_joined(stream.steps(stream.events)), None)
        found = framed(stream.reads, stream.format, client.framing, client.decode)
        return _Given(_joined(stream.steps(found.events)), found)


def _reframings(stream: DeliveredResponse) -> frozenset[tuple[str, str]]:
    """Return the mistakes of framing and decoding that this stream could reveal."""
    body = b"".join(stream.reads)
    if not stream.is_text or len(body) > _BODY_LIMIT:
        return frozenset()
    lines = body.splitlines()
    inside = [data[-1:] not in (b"\n", b"\r") for data in stream.reads[:-1]]
    found = {
        ("framing", "reads"): any(inside),
        ("framing", "one-per-read"): len(stream.reads) < len(stream.events),
        ("framing", "blank-lines"): b"\r" in body,
        ("framing", "space"): any(line[:5] == b"data:" and line[5:6] != b" " for line in lines),
        ("framing", "every-line"): any(line and line[:5] != b"data:" for line in lines),
        ("decode", "reads"): any(inside) and not body.isascii(),
        ("decode", "reads-ignore"): any(inside) and not body.isascii(),
    }
    by_reads = {
        ("framing", "reads"),
        ("framing", "one-per-read"),
        ("decode", "reads"),
        ("decode", "reads-ignore"),
    }
    hidden = frozenset() if stream.reads_known else by_reads
    return frozenset(one for one, shows in found.items() if shows and one not in hidden)


def _joined(steps: Iterable[Step]) -> tuple[Step, ...]:
    """Merge the middle of long runs of fragments into one."""
    found = tuple(steps)
    return tuple(_without_runs(found)) if len(found) > _LONG else found


def _without_runs(steps: Sequence[Step]) -> Iterator[Step]:
    run: list[ClientCallDelta] = []
    for step in steps:
        if isinstance(step, ClientCallDelta) and (
            _is_fragment(step) and (not run or _alike(run[-1], step))
        ):
            run.append(step)
            continue
        yield from _short(run)
        run = []
        if isinstance(step, ClientCallDelta) and _is_fragment(step):
            run.append(step)
        else:
            yield step
    yield from _short(run)


def _is_fragment(step: ClientCallDelta) -> bool:
    named = step.id or step.name or step.unquoted or step.finished or step.at
    return step.phase is EntryPhase.DELTA and not named


def _alike(one: ClientCallDelta, other: ClientCallDelta) -> bool:
    return (one.index, one.item, one.kind) == (other.index, other.item, other.kind)


def _short(run: Sequence[ClientCallDelta]) -> Iterator[ClientCallDelta]:
    if len(run) <= 2 * _KEPT + 1:
        yield from run
        return
    yield from run[:_KEPT]
    middle = run[_KEPT:-_KEPT]
    yield middle[0]._replace(text="".join(one.text or "" for one in middle))
    yield from run[-_KEPT:]
