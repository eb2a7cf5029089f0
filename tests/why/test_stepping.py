"""Answers built event by event, of recordings and of what they lack."""

from dataclasses import replace
from pathlib import Path

import pytest

from deltatape.diagnose.rebuild import analyse
from deltatape.model.exchange import Exchange
from deltatape.model.explanation import Explanation
from deltatape.model.request_summary import RepeatedCall
from deltatape.model.stepping import Stepping, StepUnit, built_calls
from deltatape.model.tape_summary import TapeContext
from deltatape.store.reader import open_tape
from deltatape.why.explain import explain
from deltatape.why.stepping import reference_steps, stepping
from helpers import responses_socket as ws
from helpers.chat import FINISH, calls, choice, entry, sse
from helpers.exchanges import pasted, timed
from helpers.suspected import call_fields
from helpers.websocket import socket

RECORDINGS = Path(__file__).resolve().parents[2] / "recordings"
INCIDENTS = sorted((RECORDINGS / "incidents").rglob("*.tape"))
CONFORMANCE = [
    path
    for path in sorted((RECORDINGS / "conformance").glob("*.tape"))
    if not path.name.startswith("refuse-")
]
TAG = '<tool>{"tool_name":"get","arguments":{"a":1}}</tool>'


def explained(path: Path, number: int | None = None) -> tuple[Explanation, Stepping]:
    tape = open_tape(path)
    exchanges = tuple(sorted(tape, key=lambda each: each.number))
    context = TapeContext(logs=tape.logs, clients=tape.clients)
    explanation = explain(exchanges, number, context=context)
    return explanation, stepping(explanation, exchanges)


def of(exchange: Exchange) -> Stepping:
    return stepping(explain([exchange]), [exchange])


def rebuilt(exchange: Exchange) -> tuple[RepeatedCall, ...]:
    return tuple(
        RepeatedCall(id=call.id, name=call.name, arguments=call.arguments)
        for call in analyse(exchange).reply.tool_calls
    )


@pytest.mark.slow
@pytest.mark.parametrize("path", [*INCIDENTS, *CONFORMANCE], ids=lambda path: path.stem)
def test_the_last_step_is_what_show_and_why_tell(path: Path) -> None:
    for exchange in open_tape(path):
        explanation, found = explained(path, exchange.number)
        stream = open_tape(path)[found.stream]
        calls = rebuilt(stream)
        assert built_calls(found.reference)[: len(calls)] == calls
        text = analyse(stream).reply.text
        assert found.reference[-1].text_length == len(text)
        if explanation.suspects:
            assert [each.name for each in found.suspects] == [
                each.name for each in explanation.suspects
            ]
        for suspect, stepped in zip(explanation.suspects, found.suspects, strict=False):
            assert built_calls(stepped.steps) == suspect.made.calls
            assert stepped.steps[-1].errors == suspect.made.errors
            assert stepped.exact is suspect.exact


def test_steps_have_the_times_of_their_events() -> None:
    exchange = open_tape(RECORDINGS / "incidents" / "itinerary-broken.tape")[1]
    _, found = explained(RECORDINGS / "incidents" / "itinerary-broken.tape", 1)
    events = analyse(exchange).stream.events
    every = [*found.reference[:-1], *found.suspects[0].steps[:-1]]
    assert [step.t_ns for step in every] == [
        events[step.at].t_ns for step in every if step.at is not None
    ]
    assert exchange.end is not None
    assert found.reference[-1].t_ns == exchange.end.t_ns


def test_what_an_import_does_not_know_has_no_time() -> None:
    found = of(pasted(calls(entry(0, "c1", name="get", arguments="{}")), FINISH))
    assert {step.t_ns for step in found.reference} == {None}


def test_the_app_s_own_page_is_built_from_the_provider_s_stream() -> None:
    path = RECORDINGS / "incidents" / "3-app-events" / "broken.tape"
    _, page = explained(path, 1)
    _, provider = explained(path, 2)
    assert (page.exchange, page.stream, provider.stream) == (1, 2, 2)
    assert page.reference == provider.reference
    assert [each.name for each in page.suspects] == ["index-as-arguments"]


def test_without_a_verdict_against_the_app_there_are_the_clients_that_would_go_wrong() -> None:
    path = RECORDINGS / "incidents" / "itinerary-fixed.tape"
    explanation, found = explained(path, 1)
    assert explanation.suspects == ()
    assert 1 <= len(found.suspects) <= 8
    assert {each.exact for each in found.suspects} == {None}


def test_an_app_that_no_suspect_explains_has_none() -> None:
    exchanges = [
        open_tape(RECORDINGS / "incidents" / "itinerary-broken.tape")[number] for number in (1, 2)
    ]
    explanation = replace(explain(exchanges, 1), suspects=())
    assert stepping(explanation, exchanges).suspects == ()


def test_the_reference_says_what_each_event_adds() -> None:
    chunks = (
        choice({"content": "Hé", "reasoning_content": "so"}),
        calls(entry(0, "c1", name="get", arguments="")),
        calls(entry(0, arguments='{"a":'), entry(0, arguments="1")),
        calls(entry(0, arguments="")),
        calls(entry(0, arguments="}"), entry(1, "c2", arguments="{}")),
        choice({"content": "!", "tool_calls": [entry(1, arguments=" ")]}),
        FINISH,
    )
    steps = reference_steps(analyse(pasted(*chunks)))
    assert [(step.at, step.text_length, step.note) for step in steps] == [
        (0, 2, "appends to the text"),
        (1, 2, "begins call 0, get"),
        (2, 2, "appends to call 0"),
        (4, 2, "appends to call 0; begins call 1"),
        (5, 3, "appends to call 1; appends to the text"),
        (None, 3, "has 2 calls; finish reason tool_calls"),
    ]
    assert [(each.call, each.kept, each.added) for step in steps for each in step.changes] == [
        (0, 0, ""),
        (0, 0, '{"a":1'),
        (0, 6, "}"),
        (1, 0, "{}"),
        (1, 2, " "),
    ]


def test_what_has_to_be_mended_is_mended_at_the_end() -> None:
    document = analyse(pasted(*_twice()))
    (call,) = document.reply.tool_calls
    assert call.arguments != call.arguments_raw
    end = reference_steps(document)[-1]
    assert f"mends the arguments of call 0 ({', '.join(call.repairs)})" in end.note
    assert call_fields(built_calls(reference_steps(document))) == [
        (call.id, call.name, call.arguments)
    ]


def _twice() -> tuple[object, ...]:
    """A call whose arguments come in fragments, and then as a whole once more."""
    return (
        calls(entry(0, "c1", name="get", arguments='{"a":')),
        calls(entry(0, arguments="1}")),
        calls(entry(0, arguments='{"a":1}')),
        FINISH,
    )


def test_calls_in_the_text_begin_when_they_are_whole() -> None:
    chunks = (choice({"content": TAG[:9]}), choice({"content": TAG[9:]}), choice({}, "stop"))
    steps = reference_steps(analyse(pasted(*chunks)))
    assert [step.note for step in steps] == [
        "appends to the text",
        "begins call 0, get; appends to the text",
        "has 1 call; finish reason stop",
    ]
    assert call_fields(built_calls(steps)) == [(None, "get", '{"a":1}')]


def test_an_error_is_told_at_the_end() -> None:
    end = reference_steps(analyse(pasted({"error": {"message": "overloaded"}})))[-1]
    assert (end.errors, end.note, end.text_length) == (("overloaded",), "has 0 calls", 0)


def test_an_unknown_dialect_has_no_suspects() -> None:
    found = of(pasted({"hello": 1}, done=False))
    assert (found.suspects, len(found.reference)) == ((), 1)


def test_clients_that_frame_wrongly_are_placed_by_the_reads_of_the_tape() -> None:
    body = sse(calls(entry(0, "c1", name="get", arguments="{}")), FINISH)
    exchange = timed((0.1, body[:60]), (0.2, b""), (0.3, body[60:]), end_s=0.4)
    by_read = [each for each in of(exchange).suspects if each.unit is StepUnit.READ]
    assert "split-on-network-read" in {each.name for each in by_read}
    for each in by_read:
        for step in each.steps[:-1]:
            assert step.at is not None
            assert step.t_ns == exchange.reads[step.at].t_ns


def test_the_last_answer_with_calls_of_a_websocket_is_built() -> None:
    exchange = socket(ws.question(), *ws.call(1), ws.result(1), *ws.call(2))
    found = of(exchange)
    assert found.choice == 1
    (_, second) = analyse(exchange).turns
    assert [step.at for step in found.reference[:-1]] == [
        second.numbers[step.at] for step in reference_steps(second)[:-1] if step.at is not None
    ]
    assert [call.id for call in built_calls(found.reference)] == ["call_2"]
