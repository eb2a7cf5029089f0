"""The process's environment, changed for the length of a test."""

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping


@contextlib.contextmanager
def environment(wanted: Mapping[str, str]) -> Iterator[None]:
    """Make `os.environ` what is wanted; what was changed for that is then again what it was."""
    before = dict(os.environ)
    changed = {name for name in {*before, *wanted} if before.get(name) != wanted.get(name)}
    _set(changed, wanted)
    try:
        yield
    finally:
        _set(changed, before)


def _set(names: Iterable[str], values: Mapping[str, str]) -> None:
    for name in names:
        if name in values:
            os.environ[name] = values[name]
        else:
            os.environ.pop(name, None)
