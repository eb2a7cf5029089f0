"""Variations: other ways in which the same answer may arrive or fail."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from deltatape.diagnose.decode import decode
from deltatape.diagnose.rebuild import rebuild
from deltatape.model.exchange import Exchange
from deltatape.model.reply import Choice, Reply
from deltatape.model.stream import Stream
from deltatape.mutate import MutableExchange, MutationChoices
from deltatape.vary.coded_bodies import plain, recoded
from deltatape.wire.json_value import canonical

Make: TypeAlias = Callable[[Exchange, MutationChoices], Exchange | None]
"""Makes a variation of an exchange; None where there is no place for it."""
Rewrite: TypeAlias = Callable[[MutableExchange, Stream, MutationChoices], None]
"""Changes a body without content-coding; the stream tells its framing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variation:
    """Another way in which an answer may arrive."""

    name: str
    harmless: bool
    """Whether a correct client must not notice it; otherwise it must report an error."""
    summary: str
    """One sentence that describes the varied answer."""
    make: Make


def harmless(name: str) -> Callable[[Make], Variation]:
    """Make a harmless variation of a function, whose docstring becomes the summary."""
    return lambda make: _variation(name, make, make.__doc__)


def rewriting(name: str) -> Callable[[Rewrite], Variation]:
    """Make a harmless variation of a function that changes the plain body."""
    return lambda change: _variation(name, partial(rewritten, change), change.__doc__)


def _variation(name: str, make: Make, summary: str | None) -> Variation:
    return Variation(name=name, harmless=True, summary=summary or "", make=make)


def legal(name: str) -> Callable[[Rewrite], Variation]:
    """Make a harmless variation of a function that changes events within the standard.

    In a broken stream such a change may repair it or break more. A variation that would change the
    reply does not apply.
    """

    def decorate(change: Rewrite) -> Variation:
        def make(exchange: Exchange, chance: MutationChoices) -> Exchange | None:
            result = rewritten(change, exchange, chance)
            if result is None or reply_content(rebuild(result)) != reply_content(rebuild(exchange)):
                return None
            return result

        return _variation(name, make, change.__doc__)

    return decorate


def rewritten(change: Rewrite, exchange: Exchange, chance: MutationChoices) -> Exchange | None:
    """Return `exchange` with its body changed and coded as before; None if unchanged."""
    bare = plain(exchange)
    draft = MutableExchange.of(bare) if bare else None
    if bare is None or draft is None:
        return None
    change(draft, decode(bare), chance)
    result = draft.result()
    return None if result is None else recoded(result, exchange)


def reply_content(reply: Reply) -> tuple[object, ...]:
    """Return what a harmless variation must not change: the content, without places on the wire.

    Arguments as the JSON value that they are, if they are valid; else as they arrived.
    """
    return (
        reply.dialect,
        tuple(_choice_content(choice) for choice in reply.choices),
        reply.model,
        reply.id,
        reply.error,
        reply.terminated,
        tuple((result.call_id, result.name) for result in reply.results),
    )


def _choice_content(choice: Choice) -> tuple[object, ...]:
    text_calls = (each.call for each in choice.text_calls)
    calls = (*choice.tool_calls, *choice.server_calls, *text_calls)
    return (
        choice.index,
        choice.text,
        choice.reasoning,
        choice.refusal,
        tuple(
            (
                call.id,
                call.name,
                call.kind.value,
                canonical(call.arguments) or call.arguments,
                call.status.value,
            )
            for call in calls
        ),
        choice.finish_reason_raw,
        choice.media,
    )
