"""What a preset is: clients with a name, and a docstring that explains it."""

from typing import ClassVar, Protocol

from deltatape.suspects.choice import Family
from deltatape.suspects.client import Client


class Preset(Protocol):
    """A client algorithm as it was met in the wild.

    Its docstring is its documentation: a summary, then what it does, an example, the fix and
    references, as Markdown.
    """

    name: ClassVar[str]
    clients: ClassVar[tuple[Client, ...]]
    """The ways in which it is written, the most usual first."""
    families: ClassVar[frozenset[Family]]
    """Where it goes by this name; the client's mistakes may narrow it further."""
    source: ClassVar[str]
    """Where it was seen, or what documents what it gets wrong."""
