"""Defects seen in practice, as small changes of healthy exchanges that keep all other bytes."""

from deltatape.mutate import arguments, finish, identity, transport
from deltatape.mutate._base import MutationChoices, Mutator, SeededChoices
from deltatape.mutate._calls import ChatCallEntry, chat_calls, echoed
from deltatape.mutate._draft import MutableEvent, MutableExchange
from deltatape.wire.json_edit import at

_FAMILIES = (identity, arguments, finish, transport)

MUTATORS: tuple[Mutator, ...] = tuple(
    value for family in _FAMILIES for value in vars(family).values() if isinstance(value, Mutator)
)
"""All functions that `mutator` decorates, by family and in their order there."""

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
]
