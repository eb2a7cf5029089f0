"""What a test asks for: its marker, and where the tapes are that it means."""

from dataclasses import dataclass

import pytest

from deltatape.pytest_plugin.marked import UNMARKED, Marked, marked
from deltatape.pytest_plugin.places import Place, named_place, own_place

MARKER = "tape"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A test's tapes, and what is to be done with them."""

    name: str
    """The test's, with its parameters but without what torture adds to them."""
    marked: Marked
    places: tuple[Place, ...]
    """At least one."""


def wish_of(item: pytest.Item, name: str) -> Wish:
    """What `item` asks for; without a marker, its own tape.

    Args:
        item: the test.
        name: see `Wish`.

    Raises:
        UsageError: the marker has arguments that are not accepted.
    """
    marker = item.get_closest_marker(MARKER)
    asked = UNMARKED if marker is None else marked(marker.args, marker.kwargs)
    if asked.tapes:
        root = item.config.rootpath
        return Wish(
            name=name,
            marked=asked,
            places=tuple(named_place(text, item.path, root) for text in asked.tapes),
        )
    classes = [node.name for node in item.listchain() if isinstance(node, pytest.Class)]
    return Wish(name=name, marked=asked, places=(own_place(item.path, (*classes, name)),))
