import random
from dataclasses import replace

import pytest

from deltatape.diagnose.check import check
from deltatape.diagnose.check_tape import check_exchanges
from deltatape.diagnose.digest import digests_of
from deltatape.diagnose.rebuild import Analysis, analyse
from deltatape.model.exchange import EndReason, Exchange
from deltatape.model.finding import Blame
from deltatape.model.rule_settings import DEFAULTS
from deltatape.model.websocket import TEXT, Side
from helpers.mutation import spoilt_bytes
from helpers.realtime import (
    BETA,
    CLOSE,
    CURRENT,
    Sent,
    adds,
    arguments_of,
    asks,
    begins,
    call_item,
    calls,
    created,
    done,
    interrupted,
    response,
    result,
    says,
    spoken,
    user,
)
from helpers.websocket import KEY, frame, socket, text

CREATE = asks("response.create")
SPEECH = [
    asks("input_audio_buffer.append", audio="AAAA"),
    says("input_audio_buffer.speech_started", audio_start_ms=1, item_id="item_u"),
    says("input_audio_buffer.speech_stopped", audio_end_ms=9, item_id="item_u"),
    says("input_audio_buffer.committed", previous_item_id=None, item_id="item_u"),
]


def session(*sent: Sent, reason: EndReason = EndReason.UPSTREAM_CLOSED) -> Exchange:
    exchange = socket(*begins(), *sent, reason=reason)
    target = (b"/v1/realtime?model=gpt-realtime",)
    return replace(exchange, request=replace(exchange.request, target=target))


def found(exchange: Exchange) -> list[str]:
    report = check_exchanges("socket.tape", [exchange], DEFAULTS)
    return [each.finding.code for each in report.reported]


def turns(*sent: Sent) -> tuple[Analysis, ...]:
    exchange = session(*sent, *CLOSE)
    assert found(exchange) == []
    return analyse(exchange).turns


def test_a_session_with_calls_is_rebuilt_and_healthy() -> None:
    first, second = turns(
        *user(),
        CREATE,
        *calls(1, "a", "b"),
        *result("call_a"),
        *result("call_b"),
        CREATE,
        *spoken(2),
    )
    assert first.reply.dialect == "openai-realtime"
    assert [call.id for call in first.reply.tool_calls] == ["call_a", "call_b"]
    given = [call.arguments for call in first.reply.tool_calls]
    assert given == [arguments_of("a"), arguments_of("b")]
    assert first.request.model == "gpt-realtime"
    assert [tool.name for tool in first.request.tools] == ["get_weather"]
    assert [message.text for message in first.request.history] == ["Weather in Ghent?"]
    assert (first.request.previous, second.request.previous) == (None, "resp_1")
    assert [message.call_id for message in second.request.history] == ["call_a", "call_b"]
    assert second.reply.text == "It rains in Ghent."
    assert [turn.reply.id for turn in (first, second)] == ["resp_1", "resp_2"]
    assert all(turn.reply.terminated for turn in (first, second))


@pytest.mark.parametrize("names", [BETA, CURRENT])
def test_what_audio_says_is_the_text(names: tuple[str, str, str]) -> None:
    (turn,) = turns(*user(), CREATE, *spoken(1, names=names))
    assert turn.reply.text == "It rains in Ghent."
    assert [fragment.text for fragment in turn.reply.choices[0].pieces] == [
        "It ra",
        "ins in Ghent.",
    ]


@pytest.mark.parametrize("names", [BETA, CURRENT])
def test_written_answers_are_texts(names: tuple[str, str, str]) -> None:
    part = {"response_id": "resp_1", "output_index": 0, "item_id": "item_1", "content_index": 0}
    item = {"id": "item_1", "type": "message", "role": "assistant"}
    kind = names[2].removeprefix("response.")
    whole = {**item, "status": "completed", "content": [{"type": kind, "text": "Rain."}]}
    (turn,) = turns(
        *user(),
        CREATE,
        created(1),
        says("response.output_item.added", response_id="resp_1", output_index=0, item=item),
        says(f"{names[2]}.delta", **part, delta="Rain."),
        says(f"{names[2]}.done", **part, text="Rain."),
        says("response.output_item.done", response_id="resp_1", output_index=0, item=whole),
        done(1, [whole]),
    )
    assert turn.reply.text == "Rain."


def test_a_server_that_hears_a_user_answers_by_itself() -> None:
    first, second = turns(*SPEECH, *spoken(1), *SPEECH, *spoken(2))
    assert (first.request.history, second.request.previous) == ((), "resp_1")
    assert first.exchange.request.t_ns == first.stream.events[0].t_ns


@pytest.mark.parametrize("reason", ["turn_detected", "client_cancelled"])
def test_interruptions_are_healthy(reason: str) -> None:
    cancel = [asks("response.cancel")] if reason == "client_cancelled" else SPEECH
    truncated = [
        asks("conversation.item.truncate", item_id="item_1", content_index=0, audio_end_ms=5),
        says("conversation.item.truncated", item_id="item_1", content_index=0, audio_end_ms=5),
    ]
    late = says(
        "error",
        error={
            "type": "invalid_request_error",
            "code": "response_cancel_not_active",
            "event_id": None,
        },
    )
    first, second = turns(
        *user(),
        CREATE,
        *interrupted(1, reason)[:-2],
        *cancel,
        *interrupted(1, reason)[-2:],
        *truncated,
        asks("response.cancel"),
        late,
        *spoken(2),
    )
    assert first.reply.finish_reason_raw == "cancelled"
    assert first.reply.text == "It rains in"
    assert second.reply.error is None


def test_a_call_that_is_interrupted_is_no_truncated_one() -> None:
    item = call_item("a", '{"city"', "incomplete")
    at = {"response_id": "resp_1", "output_index": 0}
    (first, _) = turns(
        *user(),
        CREATE,
        *calls(1, "a", ends=False),
        says("response.output_item.done", **at, item=item),
        done(1, [item], "cancelled", {"type": "cancelled", "reason": "turn_detected"}),
        *SPEECH,
        *spoken(2),
    )
    assert first.reply.finish_reason_raw == "cancelled"


def test_responses_side_by_side_are_told_apart() -> None:
    aside = asks(
        "response.create",
        response={
            "conversation": "none",
            "metadata": {"topic": "mood"},
            "input": [
                {
                    "type": "message",
                    "role": "user",
                    "content": [{"type": "input_text", "text": "?"}],
                }
            ],
            "instructions": "Classify.",
            "tools": [],
        },
    )
    mine, other = spoken(1), spoken(2, "calm")
    other[0] = created(2, metadata={"topic": "mood"}, conversation_id=None)
    mixed = [each for pair in zip(mine, other, strict=True) for each in pair]
    first, second, third = turns(
        *user(), CREATE, aside, *mixed, *user("And now?"), CREATE, *spoken(3)
    )
    assert [turn.reply.text for turn in (first, second)] == ["It rains in Ghent.", "calm"]
    assert first.numbers != second.numbers
    assert [message.text for message in second.request.history] == ["Classify.", "?"]
    assert second.request.tools == ()
    assert (second.request.previous, third.request.previous) == (None, "resp_1")


def test_a_response_aside_without_items_of_its_own_knows_the_conversation() -> None:
    aside = asks("response.create", response={"conversation": "none"})
    first, second = turns(*user(), CREATE, *spoken(1), aside, *spoken(2))
    assert (second.request.history, second.request.previous) == ((), "resp_1")
    assert first.request.previous is None


def test_results_that_come_one_by_one_are_no_lost_calls() -> None:
    first, second, third = turns(
        *user(),
        CREATE,
        *calls(1, "a", "b"),
        *result("call_a"),
        CREATE,
        *spoken(2),
        *result("call_b"),
        CREATE,
        *spoken(3),
    )
    assert first.request.previous is None
    assert str(second.request.previous).startswith("session ")
    assert third.request.previous == "resp_2"


def test_a_result_under_another_id_is_told() -> None:
    exchange = session(
        *user(), CREATE, *calls(1, "a"), *result("call_x"), CREATE, *spoken(2), *CLOSE
    )
    assert [one.results for one in digests_of(analyse(exchange))] == [(), ("call_x",)]


def test_calls_that_nobody_answers_are_no_silence() -> None:
    for end in (CLOSE, [*result("call_a"), *CLOSE]):
        exchange = session(*user(), CREATE, *calls(1, "a"), *end)
        assert found(exchange) == []


def test_a_request_that_is_refused_is_told_with_the_reason() -> None:
    refused = says(
        "error",
        error={"type": "invalid_request_error", "message": "bad tool", "event_id": "asked_1"},
    )
    broken = says("error", error={"type": "server_error", "message": "oops", "event_id": "asked_2"})
    asked = [asks("response.create", event_id=f"asked_{number}") for number in (1, 2)]
    exchange = session(*user(), asked[0], refused, asked[1], broken, CREATE, *spoken(1), *CLOSE)
    first, second, third = analyse(exchange).turns
    assert [turn.reply.error for turn in (first, second)] == ["bad tool", "oops"]
    assert [message.text for message in third.request.history] == ["Weather in Ghent?"]
    assert [(each.code, each.blame) for each in check(exchange)] == [
        ("S005", None),
        ("S005", Blame.UPSTREAM),
    ]


def test_a_response_that_fails_or_reaches_a_limit_is_told() -> None:
    details = {"type": "failed", "error": {"type": "server_error", "message": "no capacity"}}
    failed = session(*user(), CREATE, created(1), done(1, [], "failed", details), *CLOSE)
    (turn,) = analyse(failed).turns
    assert turn.reply.error == "no capacity"
    assert [each.code for each in check(failed)] == ["S005"]
    limited = {"type": "incomplete", "reason": "max_output_tokens"}
    cut = calls(1, "a", ends=False)
    exchange = session(*user(), CREATE, *cut, done(1, [], "incomplete", limited), *CLOSE)
    assert [each.code for each in check(exchange)] == ["S009", "T003"]


def test_calls_are_held_against_the_tools_of_the_session() -> None:
    other = [{"type": "function", "name": "other"}]
    updated = says("session.updated", session={"tools": other})
    exchange = session(updated, *user(), CREATE, *calls(1, "a"), *CLOSE)
    assert [each.code for each in check(exchange)] == ["T007"]


def test_a_session_that_is_cut_in_a_response_is_told() -> None:
    exchange = session(*user(), CREATE, *calls(1, "a", ends=False))
    assert {each.code: each.blame for each in check(exchange)} == {
        "W006": Blame.TRANSPORT,
        "T003": Blame.TRANSPORT,
    }


def test_arguments_that_differ_between_their_events_are_told() -> None:
    sent = calls(1, "a")
    sent[-1] = done(1, [call_item("a", '{"city":"Bruges"}', "completed")])
    exchange = session(*user(), CREATE, *sent, *CLOSE)
    assert "T015" in [each.code for each in check(exchange)]


@pytest.mark.slow
def test_spoilt_messages_are_read_to_their_end() -> None:
    sent = [*user(), CREATE, *calls(1, "a", "b"), *result("call_a"), CREATE, *spoken(2)]
    chance = random.Random(1)
    for _ in range(200):
        place = chance.randrange(len(sent))
        side, raw = sent[place]
        (piece,) = socket((side, raw)).frames
        data = spoilt_bytes(piece.data, chance)
        spoilt = frame(TEXT, data, mask=KEY if side is Side.CLIENT else b"")
        exchange = session(*sent[:place], (side, spoilt), *sent[place + 1 :], *CLOSE)
        assert "X001" not in found(exchange)


def test_events_of_no_shape_are_left_out() -> None:
    odd: list[Sent] = [
        (Side.SERVER, text("[]")),
        (Side.SERVER, text('{"type":5}')),
        (Side.CLIENT, text("?", mask=KEY)),
        asks("session.update", session=5),
        says("error", error=None),
        says("response.created", response=None),
        says("response.done", response=response(7)),
        says("response.output_item.added", item={"type": "function_call"}),
        *adds({"type": "item_reference", "id": "item_9"}),
        asks("conversation.item.create", item=5),
        CREATE,
    ]
    exchange = session(*odd, *spoken(1), *CLOSE)
    assert "It rains in Ghent." in [turn.reply.text for turn in analyse(exchange).turns]
    assert "X001" not in found(exchange)
