"""Defects seen in the wild, as small changes of healthy exchanges: the rest stays byte for byte."""

from deltatape.mutate._base import Chance, Mutator, Seeded
from deltatape.mutate._calls import Entry, chat_calls, echoed
from deltatape.mutate._draft import Draft
from deltatape.mutate._json import at
from deltatape.mutate._units import Unit
from deltatape.mutate.app import APP
from deltatape.mutate.arguments import ARGUMENTS
from deltatape.mutate.finish import FINISH
from deltatape.mutate.fragments import FRAGMENTS
from deltatape.mutate.indexes import INDEXES
from deltatape.mutate.items import ITEMS, renumbered
from deltatape.mutate.names import NAMES
from deltatape.mutate.text import TEXT
from deltatape.mutate.transport import TRANSPORT

MUTATORS: tuple[Mutator, ...] = (
    *INDEXES,
    *NAMES,
    *ITEMS,
    *ARGUMENTS,
    *FRAGMENTS,
    *FINISH,
    *TEXT,
    *TRANSPORT,
    *APP,
)
"""All of them, by family."""

__all__ = [
    "MUTATORS",
    "Chance",
    "Draft",
    "Entry",
    "Mutator",
    "Seeded",
    "Unit",
    "at",
    "chat_calls",
    "echoed",
    "renumbered",
]
