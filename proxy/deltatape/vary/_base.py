"""Variations: other ways in which the same answer may arrive or fail."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from deltatape.diagnose.decode import decode
from deltatape.diagnose.rebuild import rebuild
from deltatape.model.exchange import Exchange
from deltatape.model.reply import Choice, Reply, ToolCall
from deltatape.model.stream import Stream
from deltatape.mutate import MutableExchange, MutationChoices
from deltatape.vary.coded_bodies import plain, recoded
from deltatape.wire.json_value import canonical

Make: TypeAlias = Callable[[Exchange, MutationChoices], Exchange | None]
"""Makes a variation of an exchange; None where there is no place for it."""
Rewrite: TypeAlias = Callable[[MutableExchange, Stream, MutationChoices], None]
"""Changes a plain body, which is framed as the stream says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variation:
    """Another way in which an answer may arrive."""

    name: str
    """In words with dashes: `split-utf8`, `cut-in-arguments`."""
    harmless: bool
    """Whether it says the same: a correct client does not notice. Else it has to notice."""
    summary: str
    """One sentence: what the wire shows then."""
    make: Make


def harmless(name: str) -> Callable[[Make], Variation]:
    """Make a harmless variation of a function, whose docstring becomes the summary."""

    def made(make: Make) -> Variation:
        return Variation(name=name, harmless=True, summary=make.__doc__ or "", make=make)

    return made


def rewriting(name: str) -> Callable[[Rewrite], Variation]:
    """Make a harmless variation of a function that changes the plain body."""

    def made(change: Rewrite) -> Variation:
        make = partial(rewritten, change)
        return Variation(name=name, harmless=True, summary=change.__doc__ or "", make=make)

    return made


def legal(name: str) -> Callable[[Rewrite], Variation]:
    """Make a harmless variation of a function that changes events within the standard.

    In a stream that is broken already, what is legal elsewhere may mend it or break more: where the
    reply would become another one, there is no place.
    """

    def made(change: Rewrite) -> Variation:
        def make(exchange: Exchange, chance: MutationChoices) -> Exchange | None:
            result = rewritten(change, exchange, chance)
            if result is None or said(rebuild(result)) != said(rebuild(exchange)):
                return None
            return result

        return Variation(name=name, harmless=True, summary=change.__doc__ or "", make=make)

    return made


def rewritten(change: Rewrite, exchange: Exchange, chance: MutationChoices) -> Exchange | None:
    """Return `exchange` with its body changed and coded as before; None if unchanged."""
    bare = plain(exchange)
    draft = MutableExchange.of(bare) if bare else None
    if bare is None or draft is None:
        return None
    change(draft, decode(bare), chance)
    result = draft.result()
    return None if result is None else recoded(result, exchange)


# What a reply says, without where on the wire it said so: the measure of what is harmless.

_Call: TypeAlias = tuple[str | None, str | None, str, str, str]
_Choice: TypeAlias = tuple[object, ...]


def said(reply: Reply) -> tuple[object, ...]:
    """Return all content of a reply, equal for replies with equal content.

    Arguments as the JSON value that they are, if they are one; else as they came.
    """
    return (
        reply.dialect,
        tuple(_choice(one) for one in reply.choices),
        reply.model,
        reply.id,
        reply.error,
        reply.terminated,
        tuple((one.call_id, one.name) for one in reply.results),
    )


def _choice(choice: Choice) -> _Choice:
    calls = (*choice.tool_calls, *choice.server_calls, *(one.call for one in choice.text_calls))
    return (
        choice.index,
        choice.text,
        choice.reasoning,
        choice.refusal,
        tuple(_call(each) for each in calls),
        choice.finish_reason_raw,
        choice.media,
    )


def _call(call: ToolCall) -> _Call:
    arguments = canonical(call.arguments) or call.arguments
    return call.id, call.name, call.kind.value, arguments, call.status.value
