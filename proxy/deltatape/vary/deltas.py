"""Harmless: the same text and arguments in other events, and events without content.

The size of deltas means nothing: a provider may send words, characters or everything at once. An
event's delta is the one string in it that equals the piece that the event contributed, under a name
that dialects use for deltas.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from deltatape.diagnose.rebuild import Analysis, analyse
from deltatape.dialects import UNKNOWN, Traits, traits_of
from deltatape.model.exchange import Exchange
from deltatape.model.stream import Format, Stream
from deltatape.mutate import (
    MUTATORS,
    ChatCallEntry,
    MutableEvent,
    MutableExchange,
    MutationChoices,
    at,
    chat_calls,
    echoed,
)
from deltatape.rules.event_contribution import ContributionKind, EventContribution, brought
from deltatape.vary._base import Variation, legal
from deltatape.wire.json_value import parse

_TEXTS = frozenset({ContributionKind.TEXT, ContributionKind.REASONING, ContributionKind.REFUSAL})
_ARGUMENTS = frozenset({ContributionKind.ARGUMENTS})
_MOST = 5_000
"""The most events that a varied body may have."""
_LEGAL = (
    "index-dup-in-chunk",
    "id-empty-cont",
    "id-null-cont",
    "r-done-only-args",
    "r-empty-first-delta",
    "finish-same-chunk",
    "g-finish-later-chunk",
    "empty-choices",
    "delta-null",
    "no-tool-streaming",
    "args-custom-empty",
)
"""Legal mutations: the reply stays the same, but some clients break."""
_Path: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Delta:
    """An event with one piece of text, and the text's path in its JSON."""

    unit: MutableEvent
    path: _Path
    owner: object
    """A key that the pieces of one text share."""
    text: str


def _deltas(
    draft: MutableExchange, stream: Stream, wanted: frozenset[ContributionKind]
) -> Iterator[_Delta]:
    """Yield, in order, the events that contain nothing but a piece of the wanted kind."""
    analysis = analyse(draft.exchange)
    starts = {event.start: event.number for event in stream.events}
    things, traits = _contributions(analysis), traits_of(analysis.reply.dialect)
    for unit in draft.units:
        found = things.get(starts.get(unit.start or 0, -1), ())
        if len(found) == 1 and found[0].what in wanted and not _is_whole(unit, traits):
            thing = found[0]
            paths = [path for path, text in _strings(unit.value) if text == thing.text]
            if len(paths) != 1 or paths[0][-1] not in traits.delta_keys:
                continue
            if not _has_more(unit.value, paths[0], traits):
                call = None if thing.call is None else thing.call.index
                owner = (thing.what, call, paths[0], _index(unit.value))
                yield _Delta(unit=unit, path=paths[0], owner=owner, text=thing.text)


def _contributions(analysis: Analysis) -> Mapping[int, tuple[EventContribution, ...]]:
    if analysis.reply.dialect == UNKNOWN:
        return {}
    return brought(analysis.reply, analysis.stream, known=True)


def _is_whole(unit: MutableEvent, traits: Traits) -> bool:
    kind = at(unit.value, "type") or at(unit.value, "event_type")
    return isinstance(kind, str) and kind.endswith(traits.whole_types)


def _has_more(value: object, path: _Path, traits: Traits) -> bool:
    """Return whether a field beside a delta belongs to all of its text.

    Such as annotations, log probabilities or a signature: they cannot be assigned to a piece.
    """
    if not path:
        return False
    key, *rest = path
    if isinstance(value, dict):
        beside = ((name, each) for name, each in value.items() if name != key)
        if any(each and _is_of_all(name, each, traits) for name, each in beside):
            return True
    return _has_more(at(value, key), tuple(rest), traits)


def _is_of_all(name: str, value: object, traits: Traits) -> bool:
    holds_more = isinstance(value, dict | list) and name not in traits.running_keys
    return holds_more or name in traits.closing_keys


def _index(value: object) -> object:
    """Return the numbers of a delta's place: of its choice, its block, its part."""
    own = tuple(at(value, key) for key in ("index", "output_index", "content_index", "id"))
    return own, at(value, "choices", 0, "index")


def _strings(value: object, path: _Path = ()) -> Iterator[tuple[_Path, str]]:
    """Yield the non-empty strings in a value, with their paths."""
    if isinstance(value, str) and value:
        yield path, value
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _strings(each, (*path, key))
    elif isinstance(value, list):
        for place, each in enumerate(value):
            yield from _strings(each, (*path, place))


def _split_into_characters(draft: MutableExchange, deltas: list[_Delta]) -> None:
    """Send each character in its own event; several at once if there were too many events."""
    total = sum(len(delta.text) for delta in deltas)
    size = 1 + total // _MOST
    for delta in deltas:
        pieces = [delta.text[at : at + size] for at in range(0, len(delta.text), size)]
        if len(pieces) > 1:
            delta.unit.put_text(delta.path, pieces[0])
            draft.add_after(delta.unit, *(_with_text(delta, piece) for piece in pieces[1:]))
    draft.renumber()


def _with_text(delta: _Delta, text: str) -> MutableEvent:
    """Return an event like a delta's, with another text."""
    new = delta.unit.like()
    new.put_text(delta.path, text)
    return new


def _coarser(draft: MutableExchange, deltas: list[_Delta]) -> None:
    """Join adjacent deltas of one text."""
    groups: list[list[_Delta]] = []
    for delta in deltas:
        last = groups[-1] if groups else []
        place = draft.units.index(delta.unit)
        follows = place and last and last[-1].unit is draft.units[place - 1]
        if follows and last[-1].owner == delta.owner:
            last.append(delta)
        else:
            groups.append([delta])
    for first, *others in groups:
        if others:
            first.unit.put_text(first.path, first.text + "".join(each.text for each in others))
        for each in others:
            each.unit.removed = True
    draft.renumber()


@legal("finer-text")
def finer_text(draft: MutableExchange, stream: Stream, _: MutationChoices) -> None:
    """Every character of the text is sent in an event of its own."""
    _split_into_characters(draft, [*_deltas(draft, stream, _TEXTS)])


@legal("coarser-text")
def coarser_text(draft: MutableExchange, stream: Stream, _: MutationChoices) -> None:
    """Adjacent pieces of text are joined into one event."""
    _coarser(draft, [*_deltas(draft, stream, _TEXTS)])


@legal("finer-arguments")
def finer_arguments(draft: MutableExchange, stream: Stream, _: MutationChoices) -> None:
    """Every character of a call's arguments is sent in an event of its own."""
    _split_into_characters(draft, [*_deltas(draft, stream, _ARGUMENTS)])


@legal("coarser-arguments")
def coarser_arguments(draft: MutableExchange, stream: Stream, _: MutationChoices) -> None:
    """Adjacent fragments of arguments are joined into one event."""
    _coarser(draft, [*_deltas(draft, stream, _ARGUMENTS)])


@legal("pings")
def pings(draft: MutableExchange, _stream: Stream, _: MutationChoices) -> None:
    """A ping follows every event but the last."""
    ping = traits_of(analyse(draft.exchange).reply.dialect).ping
    if ping is not None:
        for unit in draft.units[:-1]:
            new = unit.like()
            kind, new.text = ping
            new.rename(kind)
            draft.add_after(unit, new)


@legal("late-usage")
def late_usage(draft: MutableExchange, _stream: Stream, _: MutationChoices) -> None:
    """Usage is sent after the finish reason, in an event without choices."""
    if not traits_of(analyse(draft.exchange).reply.dialect).late_usage:
        return
    finishes = [unit for unit in draft.units if _choices(unit)]
    if not finishes:
        return
    last = finishes[-1]
    told = [unit for unit in draft.units if unit.source(("usage",)) not in ("", "null")]
    if any(not _choices(unit) for unit in told):
        return
    if not told and not _wants_usage(draft.exchange):
        # A client that did not ask for usage may fail at an event without choices.
        return
    usage = '{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}'
    if told:
        usage = told[-1].source(("usage",))
        told[-1].drop(("usage",))
    new = last.like()
    new.put(("choices",), "[]")
    new.put(("usage",), usage)
    draft.add_after(last, new)


def _wants_usage(exchange: Exchange) -> bool:
    body = exchange.request.content.decode("utf-8", "replace")
    return at(parse(body).value, "stream_options", "include_usage") is True


def _choices(unit: MutableEvent) -> bool:
    return bool(at(unit.value, "choices"))


def _mutated(name: str) -> Variation:
    (mutator,) = (each for each in MUTATORS if each.name == name)

    def change(draft: MutableExchange, _stream: Stream, chance: MutationChoices) -> None:
        analysis = analyse(draft.exchange)
        fits = mutator.suits(traits_of(analysis.reply.dialect))
        if fits and analysis.stream.format is not Format.JSON:
            mutator.change(draft, chance)

    change.__doc__ = mutator.summary
    return legal(name)(change)


# Some servers send a call with its id, its name and all of its arguments in one event, others open
# it first and send the arguments later. A client that only knows the former may take each event for
# a call.

_OPENING = (("id",), ("type",), ("function", "name"))


@legal("opened-first")
def opened_first(draft: MutableExchange, _stream: Stream, _: MutationChoices) -> None:
    """A call that was sent in one event is split: id and name first, then the arguments."""
    for call in chat_calls(draft):
        first = call.entries[0]
        if first.arguments.text and first.get("index") is not None:
            _opened_before(draft, first)


def _opened_before(draft: MutableExchange, entry: ChatCallEntry) -> None:
    """Insert an event that opens the call before its arguments."""
    opening = echoed(entry.arguments)
    opening.write("")
    opening.unit.drop(("usage",))
    draft.add_before(entry.unit, opening.unit)
    for path in _OPENING:
        entry.drop(*path)


DELTAS = (
    finer_text,
    coarser_text,
    finer_arguments,
    coarser_arguments,
    pings,
    late_usage,
    *(_mutated(name) for name in _LEGAL),
    opened_first,
)
