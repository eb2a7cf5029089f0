"""Loads a test's tape to play or record, and unloads it."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deltatape.errors import DeltatapeError
from deltatape.pytest_plugin.fixture import TapeFixture
from deltatape.pytest_plugin.marker_options import MarkerOptions, options_of
from deltatape.pytest_plugin.replaying import replaying
from deltatape.pytest_plugin.tape_check import check_after_teardown
from deltatape.pytest_plugin.tape_paths import stored_volatile
from deltatape.settings.file import MappingNode, Scalar, SequenceNode, Value, find

if TYPE_CHECKING:
    from deltatape.pytest_plugin.torture import VariationCase


@contextlib.contextmanager
def loaded(item: pytest.Item, cell: "VariationCase | None") -> Iterator[TapeFixture]:
    """Yield the fixture for `item`; undo all changes at the end.

    The test fails if the fixture cannot be created, if the tape cannot be kept, or if requests of
    the test's fixtures were missed or not made.

    Args:
        item: the test.
        cell: what torture does to its tapes; None without torture.
    """
    with contextlib.ExitStack() as undo:
        found = _fixture(item, cell, undo)
        if isinstance(found, str):
            pytest.fail(found, pytrace=False)
        yield found
        problem = check_after_teardown(item, found)  # first: a tape is kept of a test that holds
        problems = [problem] if problem else []
        try:
            undo.close()
        except DeltatapeError as error:
            problems.append(str(error))
        if problems:
            pytest.fail("\n".join(problems), pytrace=False)


def _fixture(
    item: pytest.Item, cell: "VariationCase | None", undo: contextlib.ExitStack
) -> TapeFixture | str:
    """Return the fixture, or why there is none; register cleanups with `undo`."""
    try:
        options = _in_project(options_of(item, _name(item, cell)))
        mode = str(item.config.getoption("tape_mode"))
        if mode == "replay":
            return undo.enter_context(replaying(item, options, cell))
        from deltatape.pytest_plugin.recording import recording  # noqa: PLC0415 - loads the gateway

        return undo.enter_context(recording(item, options, mode))
    except DeltatapeError as error:
        return str(error)


def _name(item: pytest.Item, cell: "VariationCase | None") -> str:
    """Return the test's name without the last brackets that torture added."""
    if cell is None:
        return item.name
    return item.name.removesuffix(f"[{cell.name}]").replace(f"-{cell.name}]", "]")


def _in_project(options: MarkerOptions) -> MarkerOptions:
    """Add the settings of `deltatape.yaml`."""
    common = project(Path.cwd(), os.environ)
    marked = options.marked
    alone = any("=" not in text.partition("/")[0] for text in marked.upstreams)
    upstreams = marked.upstreams if alone else (*marked.upstreams, *common.upstreams)
    return replace(
        options,
        marked=replace(
            marked,
            volatile=(*stored_volatile(options.places), *common.volatile, *marked.volatile),
            ignored=(*common.ignored, *marked.ignored),
            upstreams=upstreams,
        ),
    )


# What `deltatape.yaml` says that concerns tests, too: what is volatile, mistakes, upstreams.
#
# Only these are read. Everything else in the file is for the commands, which check it.

_REPLAY, _VOLATILE, _IGNORE, _UPSTREAMS = "replay", "volatile", "ignore", "upstreams"


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """The settings that tests share with `deltatape replay` and `record`.

    Attributes:
        volatile: what may differ in request bodies.
        ignored: codes of mistakes for which a run does not fail.
        upstreams: as `deltatape record --upstream` takes them.
    """

    volatile: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    upstreams: tuple[str, ...] = ()


def project(folder: Path, environ: Mapping[str, str]) -> Project:
    """Return the settings that apply in `folder`; empty without a file.

    Raises:
        UsageError: the settings cannot be used.
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
    """Return the members of the mapping at `key`; empty if there is none."""
    value = values.get(key)
    if not isinstance(value, MappingNode):
        return {}
    return {name: entry.value for name, entry in value.entries.items()}


def _texts(value: Value | None) -> tuple[str, ...]:
    items = value.items if isinstance(value, SequenceNode) else (value,)
    return tuple(one.text for one in items if isinstance(one, Scalar) and not one.absent)
