"""Our dataclasses are as the standard library's."""

import copy
import dataclasses
import pickle
from pathlib import Path
from typing import Any

import pytest

import deltatape
from deltatape.dataclass import dataclass

SOURCES = Path(deltatape.__file__).parent


def declared(decorate: Any) -> dict[str, Any]:
    """Return classes that are declared with a decorator, as many kinds as there are."""

    @decorate(frozen=True, slots=True, kw_only=True)
    class Frozen:
        """Two values, one of which is made."""

        number: int
        items: list[int] = dataclasses.field(default_factory=list, hash=False)
        secret: str = dataclasses.field(default="", repr=False, compare=False)

    @decorate(frozen=True, slots=True)
    class Positional:
        """Values in order, the last two of which no caller gives."""

        x: int
        y: int = 2
        total: int = dataclasses.field(init=False)
        seen: list[int] = dataclasses.field(init=False, default_factory=list)
        unit: str = dataclasses.field(init=False, default="px")

        def __post_init__(self) -> None:
            object.__setattr__(self, "total", self.x + self.y)

    @decorate(slots=True)
    class Changing:
        """Neither hashable nor fixed."""

        value: object = None

    @decorate(slots=True, eq=False, weakref_slot=True)
    class Identical:
        """Equal to itself only."""

        value: int = 0

    @decorate(frozen=True)
    class Empty:
        """Without fields, and with attributes."""

    @decorate(frozen=True, slots=True)
    class Own:
        """With its own methods."""

        value: int

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own)

        def __hash__(self) -> int:
            return 7

        def __repr__(self) -> str:
            return "own"

    return {each.__name__: each for each in (Frozen, Positional, Changing, Identical, Empty, Own)}


OURS, THEIRS = declared(dataclass), declared(dataclasses.dataclass)
VALUES: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("Frozen", (), {"number": 1}),
    ("Frozen", (), {"number": 1, "items": [3], "secret": "s"}),
    ("Frozen", (), {"number": 2, "secret": "s"}),
    ("Positional", (1,), {}),
    ("Positional", (1, 2), {}),
    ("Positional", (), {"x": 1, "y": 5}),
    ("Changing", (), {}),
    ("Changing", ([1],), {}),
    ("Changing", (float("nan"),), {}),
    ("Identical", (), {}),
    ("Empty", (), {}),
    ("Own", (1,), {}),
    ("Own", (2,), {}),
]


def both(name: str, args: Any, kwargs: Any) -> tuple[Any, Any]:
    return OURS[name](*args, **kwargs), THEIRS[name](*args, **kwargs)


def outcome(function: Any, *args: Any) -> object:
    """Return a function's result, or the class and text of its error."""
    try:
        return function(*args)
    except Exception as error:  # noqa: BLE001 - all kinds are compared
        return type(error), str(error)


@pytest.mark.parametrize(("name", "args", "kwargs"), VALUES)
def test_an_object_has_the_same_fields_and_text(name: str, args: Any, kwargs: Any) -> None:
    ours, theirs = both(name, args, kwargs)
    assert repr(ours) == repr(theirs)
    assert dataclasses.asdict(ours) == dataclasses.asdict(theirs)
    assert ours.__match_args__ == theirs.__match_args__
    assert getattr(ours, "__slots__", None) == getattr(theirs, "__slots__", None)
    assert isinstance(outcome(hash, ours), int) == isinstance(outcome(hash, theirs), int)
    for field in dataclasses.fields(theirs):
        for change in ((setattr, field.name, 1), (delattr, field.name)):
            function, *rest = change
            assert outcome(function, ours, *rest) == outcome(function, theirs, *rest)


def test_the_same_objects_are_equal() -> None:
    pairs = [both(*value) for value in VALUES]
    for ours, theirs in pairs:
        assert [ours == other for other, _ in pairs] == [theirs == other for _, other in pairs]
    hashable = [(ours, theirs) for ours, theirs in pairs if isinstance(outcome(hash, theirs), int)]
    for ours, theirs in hashable:
        assert [hash(ours) == hash(other) for other, _ in hashable] == [
            hash(theirs) == hash(other) for _, other in hashable
        ]


@pytest.mark.parametrize("name", ["Frozen", "Positional", "Changing", "Own"])
@pytest.mark.parametrize("arguments", [(), (1, 2, 3, 4, 5, 6)])
def test_wrong_arguments_are_refused_alike(name: str, arguments: tuple[int, ...]) -> None:
    ours, theirs = outcome(OURS[name], *arguments), outcome(THEIRS[name], *arguments)
    assert str(ours) == str(theirs)


def test_every_object_gets_a_list_of_its_own() -> None:
    first, second = OURS["Frozen"](number=1), OURS["Frozen"](number=1)
    first.items.append(1)
    assert (first.items, second.items) == ([1], [])


def test_an_object_that_contains_itself_has_a_text() -> None:
    for value in both("Changing", (), {}):
        value.value = value
        assert repr(value).endswith("Changing(value=...)")


@dataclass(frozen=True, slots=True)
class Point:
    """At module level, where pickle finds it."""

    x: int
    y: int = 2


@dataclass(frozen=True, slots=True)
class Labelled(Point):
    """With a field more."""

    label: str = ""


def test_frozen_objects_can_be_copied_pickled_replaced_and_matched() -> None:
    labelled = Labelled(1, label="a")
    assert copy.copy(labelled) == pickle.loads(pickle.dumps(labelled)) == labelled  # noqa: S301
    assert dataclasses.replace(labelled, x=3) == Labelled(3, 2, "a")
    assert labelled != Point(1)
    match labelled:
        case Point(x, y):
            assert (x, y) == (1, 2)


def test_pytest_shows_which_fields_differ(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from deltatape.dataclass import dataclass

        @dataclass(frozen=True, slots=True)
        class Point:
            x: int
            y: int

        def test_fails():
            assert Point(1, 2) == Point(1, 3)
        """
    )
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    result.stdout.fnmatch_lines(["*Differing attributes:*", "*'y'*"])


def test_the_package_uses_no_other() -> None:
    applications = {SOURCES / "demo" / "app.py"}  # as a user would write them
    others = {
        path
        for path in SOURCES.rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if (line.startswith("from dataclasses import ") and "dataclass" in line.split()[3:])
        or line.startswith("from dataclasses import dataclass,")
    }
    assert others == applications
