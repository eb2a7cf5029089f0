"""The choices a client makes when it reads a stream, and the named clients.

A `ClientModel` is a point of a product space: one value per axis, the default one correct.
"""

from dataclasses import dataclass, fields

from deltatape.model.suspect import ClientMistake
from deltatape.suspects.mistakes import ALL, MISTAKES, USUAL, DialectFamily


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientModel:
    """A client's behaviour by axis. Defaults are what the providers document."""

    key: str = "index"
    """The key by which it distinguishes calls."""
    id: str = "set"
    """What it does with another id for the same call."""
    name: str = "set"
    arguments: str = "append"
    absent: str = "nothing"
    """What it appends for arguments that are absent."""
    value: str = "json"
    """How it handles arguments that are no string."""
    source: str = "best"
    """Which of several events with the arguments it uses."""
    emit: str = "end"
    """When calls count as whole."""
    stop: str = "end"
    """What ends its reading."""
    entries: str = "all"
    guard: str = "guarded"
    """Whether events without choices are expected."""
    kinds: str = "all"
    """The kinds of calls it reads."""
    whole: str = "append"
    """What it does with calls in one piece."""
    incomplete: str = "kept"
    repeats: str = "kept"
    parse: str = "once"
    empty: str = "object"
    """How it handles arguments without a byte."""
    written: str = "text"
    """How it writes arguments into the history that it sends."""
    ending: str = "heeded"
    """How it handles a stream that was cut."""
    calls: str = "read"
    tags: str = "whole"
    """How it looks for calls in the text."""
    framing: str = "standard"
    decode: str = "stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A client algorithm found in practice: name and documentation in Markdown.

    Lines of `does` and `fix` are wrapped again; those of `example` are kept.
    """

    name: str
    clients: tuple[ClientModel, ...]
    """The ways in which it is written, the most usual first."""
    families: frozenset[DialectFamily] = ALL
    """The dialects in which it has this name; the client's mistakes may narrow them further."""
    place: int = 100
    """A more frequent mistake has a smaller one; equal ones keep the order of the tables."""
    summary: str
    does: str
    example: str
    fix: str
    references: tuple[str, ...]
    """Where it was seen, or documentation that it contradicts; the first one is shown."""


CORRECT = ClientModel()
AXES = tuple(one.name for one in fields(ClientModel))


def client_of(*mistakes: tuple[str, str]) -> ClientModel:
    """Return the client with these mistakes, each an axis and a value."""
    return ClientModel(**dict(mistakes))


def mistakes_of(client: ClientModel) -> tuple[ClientMistake, ...]:
    """Return the differences of `client` from the documentation, by axis."""
    chosen = ((axis, str(getattr(client, axis))) for axis in AXES)
    return tuple(MISTAKES[one].mistake for one in chosen if one in MISTAKES)


def cost_of(client: ClientModel) -> int:
    """Rate how unlikely `client` is; 0 for the correct one."""
    costs = [MISTAKES[one.axis, one.value].cost for one in mistakes_of(client)]
    return max(sum(costs), USUAL) if costs else 0
