"""Defects seen in practice, as small changes of healthy exchanges that keep all other bytes."""

from deltatape.mutate import (
    app,
    arguments,
    finish,
    fragments,
    indexes,
    items,
    names,
    text,
    transport,
)
from deltatape.mutate._base import MutationChoices, Mutator, SeededChoices
from deltatape.mutate._calls import ChatCallEntry, chat_calls, echoed
from deltatape.mutate._draft import MutableExchange
from deltatape.mutate._units import MutableEvent
from deltatape.mutate.items import renumbered
from deltatape.wire.json_edit import at

_FAMILIES = (indexes, names, items, arguments, fragments, finish, text, transport, app)

MUTATORS: tuple[Mutator, ...] = tuple(
    each for family in _FAMILIES for each in vars(family).values() if isinstance(each, Mutator)
)
"""All that `mutator` makes of the functions of a family, by family and in their order there."""

__all__ = [
    "MUTATORS",
    "ChatCallEntry",
    "MutableEvent",
    "MutableExchange",
    "MutationChoices",
    "Mutator",
    "SeededChoices",
    "at",
    "chat_calls",
    "echoed",
    "renumbered",
]
