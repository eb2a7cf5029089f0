"""What `deltatape.yaml` says that concerns tests, too: volatile fields, mistakes, upstreams.

Only these are looked at. Everything else in the file is for the commands, which check it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from deltatape.settings.file import Items, Scalar, Table, Value, find

_REPLAY, _VOLATILE, _IGNORE, _UPSTREAMS = "replay", "volatile", "ignore", "upstreams"


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """What tests have in common with `deltatape replay` and `record`.

    Attributes:
        volatile: paths in request bodies that may differ.
        ignored: codes of mistakes for which a run does not fail.
        upstreams: as `deltatape record --upstream` takes them.
    """

    volatile: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    upstreams: tuple[str, ...] = ()


def project(folder: Path, environ: Mapping[str, str]) -> Project:
    """What the settings file says that holds in `folder`; nothing where there is none.

    Raises:
        UsageError: it cannot be used.
    """
    path = find(folder, environ)
    if path is None:
        return Project()
    from deltatape.settings.document import parse  # noqa: PLC0415 - loads a YAML reader

    root = parse(path.read_bytes(), str(path))
    upstreams = _entries(_entries({"": root}, ""), _UPSTREAMS)
    replay = _entries(_entries({"": root}, ""), _REPLAY)
    codes = ",".join(_texts(replay.get(_IGNORE))).upper().split(",")
    return Project(
        volatile=_texts(replay.get(_VOLATILE)),
        ignored=tuple(filter(None, map(str.strip, codes))),
        upstreams=tuple(
            f"{name}={text}" for name, value in upstreams.items() for text in _texts(value)
        ),
    )


def _entries(values: Mapping[str, Value], key: str) -> Mapping[str, Value]:
    """The members of the mapping at `key`; none where there is no such thing."""
    value = values.get(key)
    if not isinstance(value, Table):
        return {}
    return {name: entry.value for name, entry in value.entries.items()}


def _texts(value: Value | None) -> tuple[str, ...]:
    items = value.items if isinstance(value, Items) else (value,)
    return tuple(one.text for one in items if isinstance(one, Scalar) and not one.absent)
