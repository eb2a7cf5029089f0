from deltatape.model.finding import Confidence
from helpers.chat import FINISH, calls, entry
from helpers.exchanges import call, found, one, pasted
from helpers.responses import added, created, done, ended, findings


def test_the_same_call_twice_is_reported_whatever_its_spelling() -> None:
    again = calls(entry(1, "c2", name="get", arguments='{ "a": 1 }'))
    finding = one(pasted(*call(), again, FINISH), "T020")
    assert finding.message.startswith("call 1 (get) repeats call 0")
    assert finding.confidence is Confidence.POSSIBLE


def test_a_call_sent_at_two_indexes_is_reported() -> None:
    moved = calls(entry(1, "c1", name="get", arguments='{"a":1}'))
    assert one(pasted(*call(), moved, FINISH), "T020").message.startswith("call 0 (get): ")


def free(*inputs: str) -> list[str]:
    """What is found on custom calls with these inputs."""
    items = [
        {
            "id": f"ctc_{at}",
            "type": "custom_tool_call",
            "call_id": f"call_{at}",
            "name": "run",
            "input": text,
        }
        for at, text in enumerate(inputs)
    ]
    events = [
        event
        for at, item in enumerate(items)
        for event in (added({**item, "input": ""}, at), done(item, at))
    ]
    return [one.code for one in findings(created(), *events, ended(*items))]


def test_free_text_is_compared_as_it_is() -> None:
    assert free("print(1)", "print(2)") == []
    assert free('{"a": 1}', '{"a":1}') == []
    assert free("print(1)", "print(1)") == ["T020"]


def test_other_arguments_and_calls_without_any_are_fine() -> None:
    other = calls(entry(1, "c2", name="get", arguments='{"a":2}'))
    empty = [calls(entry(at, f"c{at}", name="get", arguments="")) for at in (0, 1)]
    assert not found(pasted(*call(), other, FINISH), "T020")
    assert not found(pasted(*empty, FINISH), "T020")
