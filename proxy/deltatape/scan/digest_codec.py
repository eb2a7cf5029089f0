"""Digests of a tape's exchanges as bytes, for the table `digests`.

Each request repeats all earlier messages of its conversation. Here every message is written once:
a digest refers to the prefix of its history that an earlier digest of the tape has, and holds the
rest. So the digests of a conversation grow with its length, not with its square, and must be read
together, in the order in which they were written.

A digest is a JSON object of the fields that differ from their defaults. JSON, because Parquet
compresses pages of it better than values compressed one by one, and new fields need no migration.

Pure: no file, no clock.
"""

import dataclasses
import enum
import json
from collections.abc import Callable
from dataclasses import MISSING
from functools import cache, partial
from itertools import accumulate, pairwise
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, NamedTuple, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

from deltatape.model.digest import DeliveredCall, Digest, HistoryMessage

_Made = TypeVar("_Made")
VERSION = 1
"""Goes up when a reader of the version before would misread a digest. New fields with a default
need no new version."""
_VERSION = "v"
_KEPT = "from"
"""How many messages of the history an earlier digest has."""
_HISTORY = frozenset({"history", "prefixes"})
_LENGTHS = "lengths"
"""The lengths of a call's fragments, which together are its arguments."""
_REMEMBERED = 65_536


class EncodedDigest(NamedTuple):
    """A digest as stored in table `digests`."""

    root: str | None
    """See `root_of`."""
    digest: bytes


def root_of(digest: Digest) -> str | None:
    """Return a hash that is equal for all exchanges whose histories begin alike, on any tape.

    It is that of the first message or, where the provider keeps the history, of the stored reply
    that the request continues. None: there is no history, or it cannot be read.
    """
    if digest.previous is not None:
        return digest.prefixes[0]
    return digest.prefixes[1] if digest.history else None


class DigestEncoder:
    """Encodes the digests of one tape.

    Args:
        remembered: how many prefixes are remembered at most, so that memory does not grow with
            the tape. A history that is forgotten is written once more.
    """

    def __init__(self, remembered: int = _REMEMBERED) -> None:
        self._remembered = remembered
        self._known: dict[tuple[str, str], None] = {}
        """Dialects and prefixes, in the order in which they were used last."""

    def encode(self, digest: Digest) -> EncodedDigest:
        """Return a digest as bytes; the decoder must have decoded those encoded before it."""
        prefixes = digest.prefixes
        kept = len(digest.history)
        while kept and (digest.dialect, prefixes[kept]) not in self._known:
            kept -= 1
        for prefix in prefixes[max(kept, 1) :]:
            key = digest.dialect, prefix
            self._known.pop(key, None)
            self._known[key] = None
        while len(self._known) > self._remembered:
            del self._known[next(iter(self._known))]
        fields = {
            _VERSION: VERSION,
            _KEPT: kept,
            **_fields(digest, _HISTORY),
            "history": digest.history[kept:],
            "prefixes": prefixes[kept:],
        }
        return EncodedDigest(root_of(digest), _JSON.encode(fields).encode("ascii"))


class DigestDecoder:
    """Decodes, in their order, the digests of one tape, or those among them that share a `root`."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], tuple[str, HistoryMessage]] = {}
        """By dialect and prefix: the prefix before it, and the message between them."""

    def decode(self, encoded: bytes) -> Digest:
        """Return the digest that `DigestEncoder.encode` encoded.

        Raises:
            ValueError: it has another version, or an earlier one was not decoded.
        """
        fields = json.loads(encoded)
        if fields.pop(_VERSION) != VERSION:
            raise ValueError("the digest is of another version of deltatape; scan its tape again")
        kept, dialect = fields.pop(_KEPT), fields["dialect"]
        first, *rest = fields.pop("prefixes")
        messages: list[HistoryMessage] = []
        prefixes = [first]
        try:
            for _ in range(kept):
                before, message = self._known[dialect, prefixes[-1]]
                prefixes.append(before)
                messages.append(message)
        except KeyError as error:
            raise ValueError("the digest continues one that was not decoded before") from error
        new = [_made(HistoryMessage, each) for each in fields.pop("history")]
        for before, prefix, message in zip([first, *rest], rest, new, strict=False):
            self._known[dialect, prefix] = before, message
        return dataclasses.replace(
            _made(Digest, {**fields, "history": (), "prefixes": ()}),
            history=(*messages[::-1], *new),
            prefixes=(*prefixes[::-1], *rest),
        )


_DEFAULT = object()


def _fields(value: object, left_out: frozenset[str] = frozenset()) -> dict[str, object]:
    """Return the fields of a dataclass that differ from their defaults."""
    kind: Any = type(value)
    names, defaults, values_of = _layout(kind, left_out)
    found = {
        name: own
        for name, default, own in zip(names, defaults, values_of(value), strict=True)
        # Most are the very object that is their default.
        if own is not default and own != default
    }
    if isinstance(value, DeliveredCall) and "".join(value.fragments) == value.arguments:
        del found["fragments"]
        found[_LENGTHS] = [len(each) for each in value.fragments]
    return found


# Not UTF-8: text of a tape may hold half a surrogate pair. Nothing in a digest holds itself.
_JSON = json.JSONEncoder(check_circular=False, separators=(",", ":"), default=_fields)


class _Layout(NamedTuple):
    """The fields of a dataclass."""

    names: tuple[str, ...]
    defaults: tuple[object, ...]
    """A unique value where there is none."""
    values_of: Callable[[object], tuple[object, ...]]


@cache
def _layout(kind: Any, left_out: frozenset[str]) -> _Layout:
    fields = [each for each in dataclasses.fields(kind) if each.name not in left_out]
    names = tuple([each.name for each in fields])
    defaults = [
        (each.default if each.default is not MISSING else _DEFAULT)
        if each.default_factory is MISSING
        else each.default_factory()
        for each in fields
    ]
    return _Layout(names, tuple(defaults), attrgetter(*names))


_Reader: TypeAlias = Callable[[Any], Any]
"""Makes a value from its JSON."""


@cache
def _reader(hint: Any) -> _Reader | None:
    """Return the function that makes a value of this type from JSON; None: none is needed."""
    of, inner = get_origin(hint), get_args(hint)
    if of in {Union, UnionType}:
        return _optional(next(each for each in inner if each is not NoneType))
    if of is tuple:
        return _tuple(inner)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return hint
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return partial(_made, hint)
    if isinstance(hint, type) and issubclass(hint, tuple):
        readers = [_reader(each) for each in get_type_hints(hint).values()]
        return lambda found: hint(*map(_read, readers, found))
    return None


def _optional(hint: Any) -> _Reader | None:
    reader = _reader(hint)
    if reader is None:
        return None
    return lambda found: None if found is None else reader(found)


def _tuple(inner: tuple[Any, ...]) -> _Reader:
    if inner[-1] is Ellipsis:
        reader = _reader(inner[0])
        return tuple if reader is None else lambda found: tuple([reader(each) for each in found])
    readers = [_reader(each) for each in inner]
    return lambda found: tuple(map(_read, readers, found))


def _read(reader: _Reader | None, found: Any) -> Any:
    return found if reader is None else reader(found)


@cache
def _readers(kind: Any) -> dict[str, _Reader | None]:
    return {name: _reader(hint) for name, hint in get_type_hints(kind).items()}


def _made(kind: Callable[..., _Made], found: dict[str, Any]) -> _Made:
    """Return a dataclass made from a JSON object of its fields."""
    if _LENGTHS in found:
        ends = list(accumulate(found.pop(_LENGTHS)))
        pieces = pairwise([0, *ends])
        found["fragments"] = [found["arguments"][start:end] for start, end in pieces]
    readers = _readers(kind)
    return kind(**{name: _read(readers[name], each) for name, each in found.items()})
