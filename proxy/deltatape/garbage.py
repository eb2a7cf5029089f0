"""How often Python looks for garbage: exchanges that are read leave no cycles behind."""

import contextlib
import gc
from collections.abc import Iterator

YOUNG_OBJECTS = 400_000
"""When the garbage collector is to run where tapes are read."""


def collect_seldom(young: int) -> None:
    """Collect garbage once there are `young` new objects, and leave out those that exist."""
    gc.freeze()
    gc.set_threshold(young, 20, 100)


@contextlib.contextmanager
def collecting_seldom(young: int) -> Iterator[None]:
    """Do so in a block."""
    before = gc.get_threshold()
    collect_seldom(young)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
