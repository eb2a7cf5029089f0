"""Parses the arguments of `@pytest.mark.tape(...)`.

A marker accepts anything, so mistakes are reported here: with the argument, the value seen and what
would be accepted. The names are those of `deltatape replay`'s options.
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import pytest

from deltatape.errors import UsageError
from deltatape.match.schedule import INSTANT, ReplayTempo, parse_speed
from deltatape.match.volatile import VolatileRules
from deltatape.pytest_plugin.tape_paths import TapeLocation, named_place, own_place

T = TypeVar("T")
_CODE = re.compile("[A-Z][0-9]{0,3}")
AS_READ = "recorded"
DEADLINE_S = 10.0
HOLD_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """The options of a marker.

    Attributes:
        tapes: `FILE` or `FILE#N`, as they were given; none: the test's own.
        tempo: how recorded time passes; by default there are no pauses.
        hold_s: how long to stay silent where a tape does not show how the provider continued.
        reads: how reads are cut, as `deltatape replay --reads` takes it.
        faults: as `deltatape replay --fault` takes them.
        volatile: what may differ in request bodies, as `deltatape replay --volatile` takes it.
        ignored: codes of mistakes for which the test does not fail, or what they begin with.
        repeat: whether an exchange plays again when all equal ones were played.
        upstreams: where a recording goes, as `deltatape record --upstream` takes it.
        torture: the names of the variations to go through, () for all of them; None: no torture.
        deadline_s: how soon an error has to show under a hostile variation.
        seed: for all random choices.
    """

    tapes: tuple[str, ...] = ()
    tempo: ReplayTempo = INSTANT
    hold_s: float = HOLD_S
    reads: str = AS_READ
    faults: tuple[str, ...] = ()
    volatile: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    repeat: bool = False
    upstreams: tuple[str, ...] = ()
    torture: tuple[str, ...] | None = None
    deadline_s: float = DEADLINE_S
    seed: int = 0


UNMARKED = Marked()
"""The options of a test with the fixture `tape` and without a marker."""


def marked(args: Sequence[object], kwargs: Mapping[str, object]) -> Marked:
    """Parse the arguments of a marker.

    Raises:
        UsageError: one is not known, or has a value that is not accepted.
    """
    left = _Arguments(kwargs)
    found = Marked(
        tapes=_paths(args),
        tempo=ReplayTempo(factor=parsed("speed", left.text("speed", "instant"), parse_speed)),
        hold_s=left.seconds("hold", HOLD_S),
        reads=left.text("reads", AS_READ),
        faults=left.texts("fault"),
        volatile=_volatile(left),
        ignored=_codes(left),
        repeat=left.flag("repeat"),
        upstreams=left.texts("upstream"),
        torture=_torture(left),
        deadline_s=left.seconds("deadline", DEADLINE_S),
        seed=left.number("seed"),
    )
    left.refuse_rest()
    if found.torture is not None and (found.faults or found.reads != AS_READ):
        raise UsageError(
            "@pytest.mark.tape: torture=... brings faults and cuts of its own; fault= and reads="
            " are accepted without it"
        )
    return found


def parsed(name: str, text: str, parse: Callable[[str], T]) -> T:
    """Parse a text with `parse`.

    Args:
        name: the name of the argument, and of an option of `deltatape replay`.
        text: its value.
        parse: the parse of that option: its refusals name the option.

    Raises:
        UsageError: `parse` refuses it; names the argument.
    """
    try:
        return parse(text)
    except UsageError as error:
        problem = str(error).removeprefix(f"--{name} {text!r}: ").replace(f"--{name}", f"{name}=")
        raise UsageError(f"@pytest.mark.tape({name}={text!r}): {problem}") from None


def _paths(args: Sequence[object]) -> tuple[str, ...]:
    paths = []
    for arg in args:
        if not isinstance(arg, str | os.PathLike):
            raise UsageError(
                f"@pytest.mark.tape({arg!r}): not a tape; a path such as"
                ' "recordings/weather.tape", or "recordings/weather.tape#2", is accepted'
            )
        paths.append(os.fspath(arg))
    return tuple(str(path) for path in paths)


def _torture(left: "_Arguments") -> tuple[str, ...] | None:
    value = left.take("torture", default=False)
    return () if value is True else None if value is False else left.texts("torture")


def _codes(left: "_Arguments") -> tuple[str, ...]:
    codes = left.texts("ignore")
    for code in codes:
        if not _CODE.fullmatch(code):
            raise UsageError(
                f"@pytest.mark.tape(ignore={code!r}): not a code; C001 is, or C for all"
            )
    return codes


def _volatile(left: "_Arguments") -> tuple[str, ...]:
    texts = left.texts("volatile")
    for text in texts:
        parsed("volatile", text, lambda one: VolatileRules([one]))
    return texts


class _Arguments:
    """The keyword arguments of a marker, each taken once."""

    def __init__(self, arguments: Mapping[str, object]) -> None:
        self._arguments = arguments
        self._known: list[str] = []

    def take(self, name: str, default: object) -> object:
        """Return the value of `name`."""
        if name not in self._known:
            self._known.append(name)
        return self._arguments.get(name, default)

    def text(self, name: str, default: str) -> str:
        value = self.take(name, default)
        if isinstance(value, str):
            return value
        raise self._refusal(name, value, "a text")

    def texts(self, name: str) -> tuple[str, ...]:
        """Return one or several texts."""
        value = self.take(name, ())
        if isinstance(value, str):
            return (value,)
        if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
            return tuple(value)
        raise self._refusal(name, value, "a text or a list of texts")

    def seconds(self, name: str, default: float) -> float:
        """Return a duration in seconds, above 0."""
        value = self.take(name, default)
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            return float(value)
        raise self._refusal(name, value, "a number of seconds above 0")

    def number(self, name: str) -> int:
        """Return a whole number, by default 0."""
        value = self.take(name, 0)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        raise self._refusal(name, value, "a whole number from 0")

    def flag(self, name: str) -> bool:
        """Return True or False, by default False."""
        value = self.take(name, default=False)
        if isinstance(value, bool):
            return value
        raise self._refusal(name, value, "True or False")

    def refuse_rest(self) -> None:
        """Reject unused arguments."""
        for name in self._arguments:
            if name not in self._known:
                accepted = ", ".join(self._known)
                raise UsageError(
                    f"@pytest.mark.tape({name}=...): no argument of the marker; it takes {accepted}"
                )

    def _refusal(self, name: str, value: object, accepted: str) -> UsageError:
        return UsageError(f"@pytest.mark.tape({name}={value!r}): {accepted} is accepted")


# What a test asks for: its marker, and where the tapes are that it means.

MARKER = "tape"


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkerOptions:
    """A test's tapes, and what to do with them."""

    name: str
    """The test's, with its parameters but without what torture adds to them."""
    marked: Marked
    places: tuple[TapeLocation, ...]
    """At least one."""


def options_of(item: pytest.Item, name: str) -> MarkerOptions:
    """Return the options of `item`; without a marker, its own tape.

    Args:
        item: the test.
        name: see `MarkerOptions`.

    Raises:
        UsageError: the marker has arguments that are not accepted.
    """
    marker = item.get_closest_marker(MARKER)
    asked = UNMARKED if marker is None else marked(marker.args, marker.kwargs)
    if asked.tapes:
        root = item.config.rootpath
        return MarkerOptions(
            name=name,
            marked=asked,
            places=tuple(named_place(text, item.path, root) for text in asked.tapes),
        )
    classes = [node.name for node in item.listchain() if isinstance(node, pytest.Class)]
    return MarkerOptions(name=name, marked=asked, places=(own_place(item.path, (*classes, name)),))
