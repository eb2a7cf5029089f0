"""Where tapes lie."""

from dataclasses import replace
from pathlib import Path

import pytest

from deltatape.errors import UsageError
from deltatape.model.exchange import Tap
from deltatape.pytest_plugin.tape_paths import (
    MAX_STEM,
    TapeLocation,
    exchanges_at,
    named_place,
    own_place,
    shown,
)
from helpers.pytest_projects import hello, write_tape

FILE = Path("/project/tests/test_agent.py")
OWN = Path("/project/tests/recordings/test_agent")


@pytest.mark.parametrize(
    ("names", "stem"),
    [
        (("test_weather",), "test_weather"),
        (("TestAgent", "test_weather"), "TestAgent.test_weather"),
        (("test_weather[lisbon]",), "test_weather-lisbon"),
        (("test_weather[a/b]",), "test_weather-a_b-293ae12d"),
        (("test_weather[a:b]",), "test_weather-a_b-d0a908bd"),
    ],
)
def test_a_test_has_a_tape_of_its_own_beside_it(names: tuple[str, ...], stem: str) -> None:
    assert own_place(FILE, names) == TapeLocation(path=OWN / f"{stem}.tape")


def test_a_long_name_is_cut_and_stays_different_from_others() -> None:
    one, other = (own_place(FILE, (f"test_{'x' * 300}[{end}]",)).path.stem for end in "ab")
    assert len(one) == len(other) == MAX_STEM
    assert one != other


def test_a_named_tape_is_looked_for_beside_the_test_then_from_the_root(tmp_path: Path) -> None:
    test = tmp_path / "tests" / "test_agent.py"
    beside = test.parent / "x.tape"
    assert named_place("x.tape", test, tmp_path) == TapeLocation(path=beside)
    below = write_tape(tmp_path / "x.tape", hello())
    assert named_place("x.tape#2", test, tmp_path) == TapeLocation(path=below, exchange=2)
    write_tape(beside, hello())
    assert named_place("x.tape", test, tmp_path) == TapeLocation(path=beside)
    assert named_place(str(below), test, tmp_path) == TapeLocation(path=below)


@pytest.mark.parametrize("text", ["", "x.tape#0"])
def test_what_names_no_tape_is_reported(text: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        named_place(text, tmp_path / "test_agent.py", tmp_path)


def test_what_is_played_is_the_provider_s_side_in_the_order_of_the_tapes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    to_page = replace(hello("c", number=2), tap=Tap.APP)
    first = write_tape(tmp_path / "a" / "1.tape", hello("a"), hello("b"), to_page)
    second = write_tape(tmp_path / "2.tape", hello("d"), hello("e"))
    found = exchanges_at((TapeLocation(path=second, exchange=2), TapeLocation(path=first)))
    assert [(one.tape, one.number) for one in found] == [
        ("2.tape", 2),
        ("a/1.tape", 1),
        ("a/1.tape", 2),
    ]


def test_a_tape_elsewhere_is_shown_by_its_whole_path(tmp_path: Path) -> None:
    assert shown(tmp_path / "x.tape") == str(tmp_path / "x.tape")
    assert shown(Path.cwd() / "x.tape") == "x.tape"
