"""What a marker asks for."""

from pathlib import Path

import pytest

from deltatape.errors import UsageError
from deltatape.match.schedule import ReplayTempo
from deltatape.pytest_plugin.hooks import USAGE
from deltatape.pytest_plugin.marker_options import UNMARKED, Marked, marked
from helpers.pytest_projects import plugged


def test_a_marker_without_arguments_is_the_test_s_own_tape_without_waiting() -> None:
    assert marked((), {}) == UNMARKED
    assert UNMARKED.tapes == ()
    assert UNMARKED.tempo == ReplayTempo(factor=0.0)
    assert UNMARKED.torture is None


def test_everything_that_a_marker_takes() -> None:
    given = {
        "speed": "4x",
        "hold": 2,
        "reads": "bytes:1",
        "fault": "cut",
        "volatile": ["metadata.session", "messages.*.id"],
        "repeat": True,
        "upstream": "corp=https://llm.corp.example",
        "deadline": 1.5,
        "seed": 7,
    }
    assert marked(("a.tape", Path("b") / "c.tape"), given) == Marked(
        tapes=("a.tape", "b/c.tape"),
        tempo=ReplayTempo(factor=4.0),
        hold_s=2.0,
        reads="bytes:1",
        faults=("cut",),
        volatile=("metadata.session", "messages.*.id"),
        repeat=True,
        upstreams=("corp=https://llm.corp.example",),
        deadline_s=1.5,
        seed=7,
    )


@pytest.mark.parametrize(
    ("value", "names"),
    [(True, ()), (False, None), ("stall", ("stall",)), (("stall", "cut"), ("stall", "cut"))],
)
def test_torture_is_all_variations_none_or_some(
    value: object, names: tuple[str, ...] | None
) -> None:
    assert marked((), {"torture": value}).torture == names


@pytest.mark.parametrize(
    ("args", "kwargs", "says"),
    [
        ((1,), {}, "tape(1): not a tape; a path such as"),
        ((b"x.tape",), {}, "not a tape"),
        ((), {"sped": "1x"}, "tape(sped=...): no argument of the marker; it takes speed, hold"),
        ((), {"speed": 4}, "tape(speed=4): a text is accepted"),
        ((), {"speed": "fast"}, "tape(speed='fast'): invalid speed; use recorded, instant"),
        ((), {"hold": 0}, "tape(hold=0): a number of seconds above 0"),
        ((), {"deadline": True}, "tape(deadline=True): a number of seconds above 0"),
        ((), {"seed": 1.5}, "tape(seed=1.5): a whole number from 0"),
        ((), {"seed": -1}, "tape(seed=-1): a whole number from 0"),
        ((), {"repeat": 1}, "tape(repeat=1): True or False"),
        ((), {"volatile": "a:pdi"}, "tape(volatile='a:pdi'): 'pdi' is no mask; use date, hash"),
        ((), {"volatile": [1]}, "tape(volatile=[1]): a text or a list of texts"),
        ((), {"torture": 3}, "tape(torture=3): a text or a list of texts"),
        ((), {"torture": True, "fault": "cut"}, "fault= and reads= are accepted without it"),
        ((), {"torture": "stall", "reads": "event"}, "fault= and reads= are accepted without it"),
    ],
)
def test_what_is_not_accepted_is_reported(
    args: tuple[object, ...], kwargs: dict[str, object], says: str
) -> None:
    with pytest.raises(UsageError) as told:
        marked(args, kwargs)
    assert says in str(told.value)


def test_every_argument_is_described_where_users_look() -> None:
    with pytest.raises(UsageError) as told:
        marked((), {"": ""})
    names = str(told.value).partition("it takes ")[2].split(", ")
    assert len(names) == 11
    page = (Path(__file__).parents[2] / "docs" / "pytest.md").read_text()
    for name in names:
        assert f", {name}=" in USAGE
        assert f"`{name}=" in page


PRINTS = """
from deltatape.pytest_plugin.marker_options import options_of

def pytest_collection_modifyitems(items):
    for item in items:
        found = options_of(item, item.name)
        root = item.config.rootpath
        print("WISH", *(place.path.relative_to(root) for place in found.places), found.marked.seed)
"""


def test_the_nearest_marker_counts_and_classes_are_part_of_the_name(
    pytester: pytest.Pytester,
) -> None:
    result = plugged(
        pytester,
        """
pytestmark = pytest.mark.tape(seed=1)

def test_it():
    pass

@pytest.mark.tape("a.tape", "b.tape", seed=2)
class TestOuter:
    def test_named(self):
        pass

    @pytest.mark.tape(seed=3)
    class TestInner:
        def test_own(self):
            pass
""",
        "--collect-only",
        conftest=PRINTS,
    )
    assert [line for line in result.outlines if line.startswith("WISH")] == [
        "WISH recordings/test_app/test_it.tape 1",
        "WISH a.tape b.tape 2",
        "WISH recordings/test_app/TestOuter.TestInner.test_own.tape 3",
    ]


def test_a_test_without_a_marker_asks_for_its_own_tape(pytester: pytest.Pytester) -> None:
    result = plugged(pytester, "def test_it(tape):\n    pass\n", "--collect-only", conftest=PRINTS)
    assert "WISH recordings/test_app/test_it.tape 0" in result.outlines
