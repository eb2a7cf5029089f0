"""The same for any test runner: the tests know nothing of tapes, `deltatape replay` wraps them."""

# ruff: noqa: INP001, PT009 - unittest in a folder, no package
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from programs import ask, converse


class Both(unittest.TestCase):
    """What the two applications say."""

    def test_a_call_that_comes_in_fragments_is_made(self) -> None:
        """Its id and name come in one event, its arguments in the next ones."""
        answers = converse("What is in src?", "Thanks, bye!")
        self.assertEqual(answers, ["There are agent.py and ui.py in src.", "See you!"])

    def test_a_call_reaches_the_page_with_its_name_and_arguments(self) -> None:
        """Whole, in one event, and not a chunk of it in each."""
        told = ask("Analyze TSLA")
        names = [event["name"] for event in told if event["type"] == "tool_call"]
        self.assertEqual(names, ["get_stock_analysis"])
        self.assertEqual(told[-1]["type"], "done")
