"""What a test asks for, from the test itself."""

import pytest

from helpers.plugged import plugged

PRINTS = """
from deltatape.pytest_plugin.wish import wish_of

def pytest_collection_modifyitems(items):
    for item in items:
        wish = wish_of(item, item.name)
        root = item.config.rootpath
        print("WISH", *(place.path.relative_to(root) for place in wish.places), wish.marked.seed)
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
