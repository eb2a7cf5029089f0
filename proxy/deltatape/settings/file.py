"""Finds the settings file: the nearest `deltatape.yaml`, from the working directory upward.

`DELTATAPE_CONFIG` names another one, or `none`. A file found so must belong to the user, to root,
or to the owner of the working directory: in a folder that everybody can write to, such as /tmp,
another user's file could redirect our traffic or run a command.
"""

import difflib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from deltatape.errors import UsageError

NAME = "deltatape.yaml"
VARIABLE = "DELTATAPE_CONFIG"
NONE = "none"


def find(start: Path, environment: Mapping[str, str]) -> Path | None:
    """Return the settings file for a command started in `start`; None if there is none.

    Raises:
        UsageError: the named file is not there, the one found belongs to a stranger, or is a folder
            or a special file.
    """
    named = environment.get(VARIABLE, "")
    if named == NONE:
        return None
    if named:
        path = start / named
        if not path.is_file():
            raise UsageError(
                f"{VARIABLE}={named}: no such file; the path of a settings file is accepted, or"
                f" {NONE}"
            )
        return path
    for folder in (start, *start.parents):
        path = folder / NAME
        if _exists(path):
            _refuse_strangers(path, start)
            return path
    return None


def _exists(path: Path) -> bool:
    try:
        if path.is_file() or not path.exists():
            return path.is_file()
    except OSError:  # a folder that we may not look into
        return False
    kind = "a folder" if path.is_dir() else "no regular file"
    raise UsageError(
        f"{path}: is {kind}; put a settings file there, or do without by {VARIABLE}={NONE}"
    )


def _refuse_strangers(path: Path, start: Path) -> None:
    owner = path.stat().st_uid
    if owner not in (0, os.geteuid(), start.stat().st_uid):
        raise UsageError(
            f"{path}: belongs to another user (uid {owner}), so it is not used; accept it with"
            f" {VARIABLE}={path}, or do without settings by {VARIABLE}={NONE}"
        )


# What a settings file holds, before it has a meaning: values that know their place.


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePosition:
    """A place in a file; line and column count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def refuse(self, problem: str) -> UsageError:
        """Return an error about this place."""
        return UsageError(f"{self}: {problem}")

    def unknown(self, key: str, known: Iterable[str], what: str) -> UsageError:
        """Return an error about an unknown key, with the nearest known one."""
        names = sorted(known)
        near = difflib.get_close_matches(key.replace("_", "-"), names, n=3, cutoff=0.6)
        accepted = f"did you mean {' or '.join(near)}?" if near else f"known are {' '.join(names)}"
        return self.refuse(f"{key!a} is no {what}; {accepted}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scalar:
    """A single value as text."""

    text: str
    place: FilePosition
    absent: bool
    """The value is missing, or `null`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceNode:
    """A sequence."""

    items: "tuple[Value, ...]"
    place: FilePosition


@dataclass(frozen=True, slots=True, kw_only=True)
class MappingValue:
    """The value of a mapping's key, and the key's place."""

    key: FilePosition
    value: "Value"


@dataclass(frozen=True, slots=True, kw_only=True)
class MappingNode:
    """A mapping."""

    entries: Mapping[str, MappingValue]
    place: FilePosition


Value: TypeAlias = Scalar | SequenceNode | MappingNode


def texts_of(value: Value) -> tuple[str, ...] | None:
    """Return the texts of a scalar or of a list of scalars; None for anything else."""
    items = value.items if isinstance(value, SequenceNode) else (value,)
    texts = tuple(item.text for item in items if isinstance(item, Scalar) and not item.absent)
    return texts if len(texts) == len(items) else None
