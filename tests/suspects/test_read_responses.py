import json

from deltatape.suspects.read_responses import responses_steps
from deltatape.suspects.steps import Entry, Finish, Phase, Step
from helpers import responses as r
from helpers.suspected import deliver


def _steps(*events: object) -> list[Step]:
    return [*responses_steps(deliver(r.sse(*events), url=r.URL).events)]


def _indexes(*events: object) -> list[tuple[str, int | None]]:
    return [(step.phase.value, step.index) for step in _steps(*events) if isinstance(step, Entry)]


def test_a_call_is_told_of_up_to_five_times() -> None:
    found = _steps(r.created(), *r.call(), r.ended(r.message(), r.function('{"a":1}')))
    phases = [step.phase for step in found if isinstance(step, Entry)]
    delta = Phase.DELTA
    assert phases == [Phase.START, delta, delta, Phase.DONE, Phase.CLOSE, Phase.FINAL]
    assert {step.index for step in found if isinstance(step, Entry)} == {0}
    assert found[-1] == Finish(6, "completed")


def test_items_that_no_client_runs_are_passed_over() -> None:
    assert _steps(r.added(r.message()), r.say("x"), r.done({"type": "mcp_call"})) == []


def test_ids_that_change_are_bridged_by_the_place() -> None:
    found = _indexes(
        r.added(r.function(id="x1")), r.delta("{}", 0, "x2"), r.done(r.function("{}", id="x3"))
    )
    assert {index for _, index in found} == {0}


def test_places_that_collide_are_told_apart_by_the_ids() -> None:
    found = _indexes(
        r.added(r.function()),
        r.added(r.function(number=2)),
        r.delta("{}", 0, "fc_1"),
        r.delta("{}", 0, "fc_2"),
    )
    assert found == [("start", 0), ("start", 1), ("delta", 0), ("delta", 1)]


def test_a_place_whose_call_is_closed_begins_another_one() -> None:
    found = _indexes(
        r.added(r.function(id=None)), r.done(r.function(id=None)), r.delta("{}", 0, None)
    )
    assert found == [("start", 0), ("close", 0), ("delta", 1)]


def test_deltas_without_any_name_are_a_call() -> None:
    assert _indexes(r.delta("{}", None, None)) == [("delta", 0)]


def test_custom_tools_have_their_own_events() -> None:
    item = {"type": "custom_tool_call", "call_id": "c1", "name": "run", "input": "ls"}
    part = {"type": "response.custom_tool_call_input.done", "output_index": 0, "input": "ls"}
    found = _steps(part, r.done(item))
    assert [(step.kind, step.text) for step in found if isinstance(step, Entry)] == [
        ("custom", "ls"),
        ("custom", "ls"),
    ]


def test_an_answer_that_is_not_streamed_lists_its_calls() -> None:
    body = json.dumps(r.response("completed", [r.function("{}")])).encode()
    stream = deliver(body, url=r.URL, media="application/json")
    phases = [getattr(step, "phase", None) for step in responses_steps(stream.events)]
    assert phases == [Phase.FINAL, None]


def test_what_is_no_json_or_of_no_known_type_says_nothing() -> None:
    assert _steps("{", {"type": "response.in_progress"}, {"type": "error"}) == []
