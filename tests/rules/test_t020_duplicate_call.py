from deltatape.model.finding import Confidence
from helpers.chat import FINISH, calls, entry
from helpers.exchanges import call, found, one, pasted


def test_the_same_call_twice_is_reported_whatever_its_spelling() -> None:
    again = calls(entry(1, "c2", name="get", arguments='{ "a": 1 }'))
    finding = one(pasted(*call(), again, FINISH), "T020")
    assert finding.message.startswith("call 1 (get) repeats call 0")
    assert finding.confidence is Confidence.POSSIBLE


def test_a_call_sent_at_two_indexes_is_reported() -> None:
    moved = calls(entry(1, "c1", name="get", arguments='{"a":1}'))
    assert one(pasted(*call(), moved, FINISH), "T020").message.startswith("call 0 (get): ")


def test_other_arguments_and_calls_without_any_are_fine() -> None:
    other = calls(entry(1, "c2", name="get", arguments='{"a":2}'))
    empty = [calls(entry(at, f"c{at}", name="get", arguments="")) for at in (0, 1)]
    assert not found(pasted(*call(), other, FINISH), "T020")
    assert not found(pasted(*empty, FINISH), "T020")
