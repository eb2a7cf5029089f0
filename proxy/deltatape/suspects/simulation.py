"""Runs clients over one delivered stream, and compares them with the documented client.

A client's steps depend on framing and decoding only, so they are cached per pair of these, and
every other axis costs one pass over them. Long runs of argument fragments are joined first, since
clients treat all of them alike.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import accumulate as running_sums
from itertools import groupby
from typing import NamedTuple

from deltatape.model.request_summary import RepeatedCall
from deltatape.model.stream import Event, Format
from deltatape.model.suspect import ClientReading
from deltatape.suspects.accumulate import ClientResult, accumulate, bodies, tag_outcome
from deltatape.suspects.client import CORRECT, ClientModel, Preset, mistakes_of
from deltatape.suspects.delivered import DeliveredResponse
from deltatape.suspects.mistakes import MISTAKES
from deltatape.suspects.parsers import parser_errors
from deltatape.suspects.reach import Reach
from deltatape.suspects.steps import ClientCallDelta, EntryPhase, Step
from deltatape.wire.json_value import parse
from deltatape.wire.ndjson import NdjsonDecoder
from deltatape.wire.sse import SseDecoder

_LONG = 2_000
"""Steps from which on runs are joined."""
_KEPT = 8
"""Fragments at either end of a run that are not joined."""
_TEXTS = 40
"""How many texts of one client are parsed."""
_SHOWN = 60
"""How many errors of one client are reported."""
_A_CALL = 5
"""The cost of a call, in steps."""
_BODY_LIMIT = 2_000_000
"""Larger bodies, in bytes, are read with the standard framing only."""
_LEFT_OPEN = (("id", "first"), ("name", "first"), ("kinds", "documented"))
"""Choices that the documentation leaves open: which of two ids or names wins, odd item types."""
_REFUSALS = ("empty arguments", "no arguments", "missing arguments", "arguments are empty")
_STANDARD = frozenset({("framing", CORRECT.framing), ("decode", CORRECT.decode)})
_SILENT = frozenset({"drop", "swallow", "repair", "repair-whole-members"})


# The framings and decodings that clients write themselves, with their mistakes.
#
# All take the reads as they came from the socket: `data.split("\n")` on a read finds half lines,
# and half characters, wherever the network cut.

_FIELD = "data: "
_SENTINEL = "[DONE]"


class ClientFraming(NamedTuple):
    """The result of a client's framing."""

    events: tuple[Event, ...]
    reads: tuple[int, ...] = ()
    """The number of the read that completes each event."""
    texts: tuple[str, ...] = ()
    """The texts that it passes to its JSON parser although they are not JSON."""
    texts_at: tuple[int, ...] = ()
    """The number of the first read that completes each of them."""
    thrown: tuple[str, ...] = ()
    dies: bool = False
    """Whether this certainly stops the client."""


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
        thrown = _decoding_error(reads)
    elif decode == "reads-ignore":
        texts = [data.decode(errors="ignore") for data in reads]
    else:
        texts = _decode_incrementally(reads)
    if framing == "standard":
        decoder = NdjsonDecoder() if form is Format.NDJSON else SseDecoder()
        coded = [text.encode() for text in texts]
        whole = decoder.feed(b"".join(coded), 0, None)
        decoder.end()
        framed_as = (*whole, *filter(None, [decoder.tail]))
        ends = _reads_at((event.end for event in framed_as), map(len, coded))
        return ClientFraming(framed_as, tuple(ends), (), (), thrown)
    found = _payloads(texts, framing) if form is Format.SSE else _lines(texts, framing)
    parsed: list[Event] = []
    completed: list[int] = []
    refused: dict[str, int] = {}
    for read, data in found:
        text = data.strip()
        if text and text != _SENTINEL and parse(text).error is not None:
            refused.setdefault(data, read)
        elif text:
            parsed.append(Event(len(parsed), "message", data, "", None, 0, 0, 0, None))
            completed.append(read)
    dies = framing == "every-line" and bool(refused)
    texts_at = tuple(refused.values())
    return ClientFraming(tuple(parsed), tuple(completed), tuple(refused), texts_at, thrown, dies)


def _lines(texts: Sequence[str], framing: str) -> Iterator[tuple[int, str]]:
    """Yield what such a client takes for lines of NDJSON, each after its read's number."""
    if framing == "reads":
        yield from ((read, line) for read, text in enumerate(texts) for line in text.split("\n"))
    elif framing == "one-per-read":
        yield from ((read, text.partition("\n")[0]) for read, text in enumerate(texts))
    else:
        yield from _numbered("".join(texts).split("\n"), 1, texts)


def _payloads(texts: Sequence[str], framing: str) -> Iterator[tuple[int, str]]:
    """Yield what a client that splits server-sent events itself takes for their data."""
    body = "".join(texts)
    if framing == "space":
        for read, line in _numbered(body.split("\n"), 1, texts):
            yield from ((read, data) for data in _data_lines(line))
    elif framing == "every-line":
        for read, line in _numbered(body.splitlines(keepends=True), 0, texts):
            yield read, line.splitlines()[0].removeprefix(_FIELD)
    elif framing == "blank-lines":
        for read, block in _numbered(body.split("\n\n")[:-1], 2, texts):
            lines = (line for line in block.split("\n") if line.startswith("data:"))
            yield read, "\n".join(line[len("data:") :].removeprefix(" ") for line in lines)
    else:
        for read, text in enumerate(texts):
            found = _data_lines(text)[: 1 if framing == "one-per-read" else None]
            yield from ((read, data) for data in found)


def _data_lines(text: str) -> list[str]:
    return [line[len(_FIELD) :] for line in text.split("\n") if line.startswith(_FIELD)]


def _numbered(
    parts: Sequence[str], between: int, texts: Sequence[str]
) -> Iterator[tuple[int, str]]:
    """Yield each part of the body after the number of the read that completes it.

    Args:
        parts: the parts of the body, in order.
        between: how many characters follow each part.
        texts: the texts of the reads.
    """
    ends = running_sums(len(part) + between for part in parts)
    return zip(_reads_at(ends, map(len, texts)), parts, strict=True)


def _reads_at(places: Iterable[int], lengths: Iterable[int]) -> Iterator[int]:
    """Yield the number of the read with which the body reaches each place; the last one if none."""
    ends = [*running_sums(lengths)]
    return (min(bisect_left(ends, place), len(ends) - 1) for place in places)


def _decode_incrementally(reads: Sequence[bytes]) -> list[str]:
    """Decode reads; a split character belongs to the read that completes it."""
    texts, held = [], b""
    for data in reads:
        data = held + data  # noqa: PLW2901
        cut = _complete_length(data)
        held = data[cut:]
        texts.append(data[:cut].decode(errors="replace"))
    return [*texts, held.decode(errors="replace")]


def _complete_length(data: bytes) -> int:
    """Return where an incomplete last character of `data` begins; else the end."""
    for back in range(1, min(4, len(data)) + 1):
        lead = data[-back]
        if lead >= 0xC0:  # noqa: PLR2004 - a byte that begins a sequence
            needed = 2 + (lead >= 0xE0) + (lead >= 0xF0)  # noqa: PLR2004
            return len(data) - back if back < needed else len(data)
    return len(data)


def _decoding_error(reads: Sequence[bytes]) -> tuple[str, ...]:
    """Return the error of a strict decoder for the first read that ends inside a character."""
    for data in reads:
        try:
            data.decode()
        except UnicodeDecodeError as problem:
            return (str(problem),)
    return ()


class _ClientInput(NamedTuple):
    """The steps of all clients with the same framing and decoding."""

    steps: tuple[Step, ...]
    framed: ClientFraming | None
    """None: the standard's framing."""


class ClientRunner:
    """Runs clients over `stream`, whose dialect must belong to a family."""

    def __init__(self, stream: DeliveredResponse) -> None:
        self.stream = stream
        self.ids = stream.ids
        self.spent = 0
        """The cost so far: steps, and calls built from them."""
        self._inputs: dict[tuple[str, str], _ClientInput] = {}
        self._errors: dict[str, tuple[str, ...]] = {}
        self._reframings = _reframings(stream)
        usual = self.outcome(CORRECT)
        self._left_open = [
            one for one in _LEFT_OPEN if self.outcome(replace(CORRECT, **dict([one]))) != usual
        ]
        self._documented = [usual, *(self.outcome(one) for one in self.variants(CORRECT))]
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

    def clients_of(self, preset: Preset) -> Sequence[ClientModel]:
        """Return the clients of `preset` that this dialect has and this stream can break."""
        follows = self.stream.follow_up or preset.clients[0].calls == CORRECT.calls
        if self.stream.family not in preset.families or not follows:
            return ()
        return [client for client in preset.clients if self.applies(client)]

    def outcome(self, client: ClientModel) -> ClientResult:
        """Return what `client` gets from the stream."""
        received = self._input_of(client)
        if client.calls == "ignored":
            return ClientResult(())
        found = accumulate(received.steps, client)
        self.spent += len(received.steps) + _A_CALL * (len(found.calls) + len(found.texts))
        return self.with_rest(client, found)

    def with_rest(self, client: ClientModel, found: ClientResult) -> ClientResult:
        """Return `found`, the result of the steps, with what does not depend on steps.

        Calls in the text, and what a client's own framing and decoding lead to.
        """
        received = self._input_of(client)
        if client.tags != CORRECT.tags:
            tagged = tag_outcome(self.stream.reply, client.tags)
            found = ClientResult((*found.calls, *tagged.calls), found.thrown, tagged.texts)
        if received.framed is None:
            return found
        calls = () if received.framed.dies else found.calls
        return ClientResult(
            calls, (*found.thrown, *received.framed.thrown), (*received.framed.texts, *found.texts)
        )

    def framing(self, client: ClientModel) -> ClientFraming | None:
        """Return how `client` frames and decodes; None: as the standard says."""
        return self._input_of(client).framed

    def variants(self, client: ClientModel) -> Iterator[ClientModel]:
        """Yield `client` with each choice that the documentation leaves open and matters here."""
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

    @cached_property
    def reach(self) -> Reach:
        """The results that clients can get from the stream."""
        chosen = [*_STANDARD, *self._reframings]
        steps = (
            step
            for axis, framing in chosen
            if axis == "framing"
            for other, decode in chosen
            if other == "decode"
            for step in self._input_of(replace(CORRECT, framing=framing, decode=decode)).steps
        )
        in_text = (one.call for one in self.stream.reply.text_calls)
        return Reach(steps, [*self.stream.reply.tool_calls, *in_text])

    def own_errors(self) -> Iterator[str]:
        """Yield the parser errors of the documented client: the stream itself is invalid."""
        if self.stream.is_whole:
            for text in (*self._texts, *bodies(self.stream.reply)):
                if text.strip():
                    yield from self._errors_of(text)

    def errors(self, client: ClientModel, outcome: ClientResult) -> tuple[str, ...]:
        """Return errors of `client` or its parsers that the documented client does not get."""
        found = dict.fromkeys(outcome.thrown)
        if client.empty == "parsed" and self._has_empty_arguments:
            found.update(dict.fromkeys(_REFUSALS))
        for text in self._own_texts(client, outcome):
            found.update(dict.fromkeys(self._errors_of(text)))
        return tuple(found)[:_SHOWN]

    def reading(self, client: ClientModel, outcome: ClientResult) -> ClientReading:
        """Return `outcome` with its errors."""
        return ClientReading(calls=outcome.calls, errors=self.errors(client, outcome))

    def _own_texts(self, client: ClientModel, outcome: ClientResult) -> list[str]:
        """Return texts that `client` parses and the documented client does not."""
        if client.parse in _SILENT:
            return []
        empty = self._has_empty_arguments
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

    @cached_property
    def _has_empty_arguments(self) -> bool:
        return any(not call.arguments.strip() for call in self.stream.calls)

    def _errors_of(self, text: str) -> tuple[str, ...]:
        found = self._errors.get(text)
        if found is None:
            found = self._errors[text] = parser_errors(text)
        return found

    def _input_of(self, client: ClientModel) -> _ClientInput:
        key = (client.framing, client.decode)
        if key not in self._inputs:
            stream, found = self.stream, None
            if key != (CORRECT.framing, CORRECT.decode):
                found = framed(stream.reads, stream.format, client.framing, client.decode)
            steps = self.steps if found is None else tuple(stream.steps(found.events))
            self._inputs[key] = _ClientInput(_shorten_runs(steps), found)
        return self._inputs[key]

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """What the stream's events ask a client to do: all steps, no runs joined."""
        return tuple(self.stream.steps(self.stream.events))


def _reframings(stream: DeliveredResponse) -> frozenset[tuple[str, str]]:
    """Return the mistakes of framing and decoding that this stream could reveal."""
    body = b"".join(stream.reads)
    if not stream.is_text or len(body) > _BODY_LIMIT:
        return frozenset()
    lines = body.splitlines()
    inside = [data[-1:] not in (b"\n", b"\r") for data in stream.reads[:-1]]
    found = {
        ("framing", "blank-lines"): b"\r" in body,
        ("framing", "space"): any(line[:5] == b"data:" and line[5:6] != b" " for line in lines),
        ("framing", "every-line"): any(line and line[:5] != b"data:" for line in lines),
    }
    if stream.reads_known:
        found |= {
            ("framing", "reads"): any(inside),
            ("framing", "one-per-read"): len(stream.reads) < len(stream.events),
            ("decode", "reads"): any(inside) and not body.isascii(),
            ("decode", "reads-ignore"): any(inside) and not body.isascii(),
        }
    return frozenset(mistake for mistake, shows in found.items() if shows)


def _shorten_runs(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Merge the middle of each long run of fragments into one, if there are many steps."""
    if len(steps) <= _LONG:
        return steps
    found: list[Step] = []
    for call, group in groupby(steps, _continued_call):
        run = [*group]
        middle = [step for step in run[_KEPT:-_KEPT] if type(step) is ClientCallDelta]
        if call is not None and len(middle) > 1:
            merged = middle[0]._replace(text="".join(step.text or "" for step in middle))
            found += [*run[:_KEPT], merged, *run[-_KEPT:]]
        else:
            found += run
    return tuple(found)


def _continued_call(step: Step) -> tuple[int | None, str | None, str] | None:
    """Return what names the call that a plain fragment continues; None for other steps."""
    if type(step) is not ClientCallDelta or step.phase is not EntryPhase.DELTA:
        return None
    named = step.id or step.name or step.unquoted or step.finished or step.at
    return None if named else (step.index, step.item, step.kind)
