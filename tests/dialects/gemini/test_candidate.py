import pytest

from deltatape.model.reply import CallKind, CallStatus
from helpers.chat import codes
from helpers.gemini import STOP, candidate, reply_to


def test_text_and_thoughts_are_kept_apart() -> None:
    reply = reply_to(
        candidate({"text": "Let me ", "thought": True}, {"text": "It "}),
        candidate({"text": "think.", "thought": True, "thoughtSignature": "s"}),
        candidate({"text": "rains.", "thought": False, "thoughtSignature": "s"}),
        STOP,
    )
    assert (reply.reasoning, reply.text) == ("Let me think.", "It rains.")
    assert codes(reply) == []


def test_what_the_provider_runs_itself_is_a_server_call() -> None:
    code = {"language": "PYTHON", "code": "print(1)", "id": "c"}
    search = {"toolType": "GOOGLE_SEARCH_WEB", "id": "s", "args": {"q": "x"}}
    reply = reply_to(
        candidate({"executableCode": code}, {"codeExecutionResult": {"output": "1"}}),
        candidate({"toolCall": search}, {"toolCall": {}}, {"toolResponse": {"id": "s"}}),
        candidate({"executableCode": 5}, {"inlineData": {}}, {"functionResponse": {}}),
        STOP,
    )
    found = [(one.kind, one.id, one.name, one.arguments) for one in reply.server_calls]
    assert found == [
        (
            CallKind.SERVER,
            "c",
            "executable_code",
            '{"language": "PYTHON", "code": "print(1)", "id": "c"}',
        ),
        (CallKind.SERVER, "s", "GOOGLE_SEARCH_WEB", '{"q": "x"}'),
        (CallKind.SERVER, None, None, ""),
    ]
    assert reply.server_calls[0].status is CallStatus.COMPLETE
    assert (reply.tool_calls, codes(reply)) == ((), [])


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("STOP", "STOP"),
        ("MAX_TOKENS", "MAX_TOKENS"),
        (1, "1"),
        (10, "10"),
        ("FINISH_REASON_UNSPECIFIED", None),
        (0, None),
        ("", None),
        (None, None),
    ],
)
def test_the_finish_reason_is_a_word_or_a_number(reason: object, told: str | None) -> None:
    reply = reply_to(candidate({"text": "x"}, finish=reason))
    assert reply.finish_reason_raw == told
    assert reply.terminated is (told is not None)
    assert codes(reply) == []


def test_the_message_of_an_early_finish_is_its_detail() -> None:
    message = "Model generated function call(s)."
    reply = reply_to(candidate({"text": "x"}, finish="STOP", finishMessage=message))
    assert reply.choices[0].finish_detail is None
    reply = reply_to(candidate(finish="SAFETY", finishMessage="too rude"))
    assert reply.choices[0].finish_detail == "too rude"


def test_a_finish_reason_may_be_in_every_event_but_not_change() -> None:
    assert codes(reply_to(STOP, STOP, STOP)) == []
    assert codes(reply_to(STOP, candidate(finish="SAFETY"))) == ["S004"]


@pytest.mark.parametrize(
    "broken",
    [
        {"content": 5},
        {"content": {"parts": 5}},
        {"content": {"parts": [5]}},
        {"content": {"parts": [{"text": 5}]}},
        {"content": {"parts": [{"functionCall": 5}]}},
        {"finishReason": 5.5},
        {"finishReason": {}},
    ],
)
def test_a_wrong_type_is_odd_and_nothing_else(broken: dict[str, object]) -> None:
    reply = reply_to({"candidates": [broken]}, candidate({"text": "ok"}), STOP)
    assert codes(reply) == ["S006"]
    assert (reply.text, reply.terminated) == ("ok", True)


@pytest.mark.parametrize(
    "empty", [{}, {"content": {}}, {"content": None}, {"content": {"parts": None}}]
)
def test_a_candidate_may_be_empty(empty: dict[str, object]) -> None:
    assert codes(reply_to({"candidates": [empty]}, STOP)) == []


@pytest.mark.parametrize(
    ("part", "media"),
    [
        ({"inlineData": {"mimeType": "image/png"}}, True),
        ({"fileData": {}}, True),
        ({"inlineData": {}, "thought": True}, False),
        ({"codeExecutionResult": {}}, False),
    ],
)
def test_an_image_is_something_to_show_unless_it_is_a_thought(
    part: dict[str, object],
    media: bool,  # noqa: FBT001
) -> None:
    assert reply_to(candidate(part), STOP).choices[0].media is media
