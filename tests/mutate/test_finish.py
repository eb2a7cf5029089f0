from deltatape.wire.json_edit import at
from helpers import chat as shape
from helpers.mutated import (
    ONE,
    TWO,
    WHOLE,
    WORDS,
    call_entries,
    changed,
    chat,
    event_values,
    in_pieces,
    joined_arguments,
    of_type,
    recorded,
)

RESPONSES = recorded("openai-responses")
MESSAGES = recorded("anthropic-messages")


def finishes(name: str, exchange: object = ONE) -> list[object]:
    """The finish reasons of all choices after a mutation."""
    made = event_values(changed(name, exchange))  # type: ignore[arg-type]
    return [at(value, "choices", 0, "finish_reason") for value in made if at(value, "choices", 0)]


def test_the_reason_is_stop_though_there_are_calls() -> None:
    assert finishes("finish-stop-with-calls") == [None] * 5 + ["stop"]
    assert changed("finish-stop-with-calls", WORDS) is None


def test_the_reason_announces_calls_that_are_missing() -> None:
    made = changed("finish-calls-without-calls", TWO)
    assert call_entries(made) == []
    assert at(event_values(made)[-2], "choices", 0, "finish_reason") == "tool_calls"
    blocks = event_values(changed("finish-calls-without-calls", MESSAGES))
    assert {at(value, "index") for value in blocks} == {None, 0}
    assert changed("finish-calls-without-calls", WORDS) is None


def test_arguments_end_in_the_middle() -> None:
    assert joined_arguments(changed("finish-masks-length", ONE)) == '{"a":'
    assert changed("finish-masks-length", chat(*in_pieces('{"a":1}'))) is None
    assert changed("finish-masks-length", WORDS) is None


def test_a_second_reason_follows() -> None:
    assert finishes("finish-twice")[-2:] == ["tool_calls", "stop"]
    assert changed("finish-twice", WORDS) is None
    assert changed("finish-twice", chat(shape.FINISH)) is None


def test_the_reason_is_empty_until_the_end() -> None:
    assert finishes("finish-empty-string") == [""] * 5 + ["tool_calls"]


def test_every_event_stops() -> None:
    assert finishes("finish-always-stop") == ["stop"] * 6
    assert changed("finish-always-stop", WORDS) is None


def test_the_reason_comes_with_the_last_fragment() -> None:
    assert finishes("finish-same-chunk") == [None] * 4 + ["tool_calls"]
    usage = {**shape.FINISH, "usage": {"total_tokens": 1}}
    made = event_values(changed("finish-same-chunk", chat(*in_pieces("{}"), usage)))
    assert at(made[-2], "choices") == []
    assert at(made[-2], "usage") == {"total_tokens": 1}


def test_a_reason_that_cannot_come_earlier_stays() -> None:
    late = shape.choice({"content": "Bye"}, "tool_calls")
    other = shape.choice({}, "tool_calls", index=1)
    both = {"choices": [shape.choice({})["choices"], *other["choices"]]}  # type: ignore[misc]
    same = chat(shape.choice({"tool_calls": [shape.entry(0, "c")]}, "tool_calls"))
    for stream in (chat(*in_pieces("{}"), late), chat(*in_pieces("{}"), both), same, WORDS):
        assert changed("finish-same-chunk", stream) is None


def test_a_stream_ends_in_arguments_or_before_its_last_event() -> None:
    made = changed("no-finish-no-done", ONE)
    assert joined_arguments(ONE).startswith(joined_arguments(made))
    assert joined_arguments(made) != joined_arguments(ONE)
    assert changed("no-finish-no-done", WHOLE) is None
    assert not of_type(changed("r-no-terminal", RESPONSES), "response.completed")
    assert changed("r-no-terminal", WORDS) is None


def test_an_error_is_flat_and_the_last_event() -> None:
    made = event_values(changed("err-flat-responses", RESPONSES))
    assert at(made[-1], "type") == "error"
    assert at(made[-1], "sequence_number") == len(made) - 1
    bare = chat('{"type":"response.function_call_arguments.delta","delta":"{"}')
    assert at(event_values(changed("err-flat-responses", bare))[-1], "sequence_number") is None
    assert changed("err-flat-responses", WORDS) is None


def test_an_event_without_choices_comes_first() -> None:
    made = event_values(changed("empty-choices", ONE))
    assert at(made[0], "choices") == []
    assert len(made) == len(event_values(ONE)) + 1
    assert changed("empty-choices", MESSAGES) is None


def test_delta_or_function_is_null() -> None:
    hollow = chat(*in_pieces('{"a":', "", "1}"), shape.FINISH)
    seen = set()
    for seed in range(20):
        made = event_values(changed("delta-null", hollow, seed))
        deltas = [at(value, "choices", 0, "delta") for value in made[:-1]]
        seen.add((None in deltas, "null" in str(made)))
    assert seen == {(True, False), (False, False)}
    assert finishes("delta-null")[-1] == "tool_calls"


def test_a_last_event_that_says_something_keeps_its_delta() -> None:
    assert changed("delta-null", chat(shape.choice({"content": "x"}, "stop"))) is None
    assert changed("delta-null", chat(shape.choice(None, "stop"))) is None


def test_the_only_call_comes_in_the_old_way() -> None:
    made = event_values(changed("function-call-legacy", ONE))
    pieces = [at(value, "choices", 0, "delta", "function_call", "arguments") for value in made]
    assert "".join(str(piece) for piece in pieces if piece) == joined_arguments(ONE)
    assert finishes("function-call-legacy")[-1] == "function_call"
    assert changed("function-call-legacy", TWO) is None


def test_an_entry_without_function_comes_in_the_old_way_too() -> None:
    made = event_values(changed("function-call-legacy", chat(shape.calls(shape.entry(0, "c")))))
    assert at(made[0], "choices", 0, "delta") == {"function_call": {}}


def test_the_server_fails_in_the_middle() -> None:
    made = changed("provider-diff-crash", ONE)
    assert at(event_values(made)[-1], "error", "code") == 500
    assert joined_arguments(made) != joined_arguments(ONE)
    assert changed("provider-diff-crash", WORDS) is None


def text(name: str, exchange: object = ONE, key: str = "content") -> str:
    """The text of a chat completion after a mutation."""
    made = event_values(changed(name, exchange))  # type: ignore[arg-type]
    pieces = [at(value, "choices", 0, "delta", key) for value in made]
    return "".join(piece for piece in pieces if isinstance(piece, str))


def test_calls_leak_into_text_and_reasoning() -> None:
    written = '<tool_call>\n{"name": "get", "arguments": {"a":"b c"}}\n</tool_call>'
    for name, key in (("text-tool-leak", "content"), ("reasoning-tool", "reasoning_content")):
        made = changed(name, ONE)
        assert call_entries(made) == []
        assert text(name, key=key) == written
        assert at(event_values(made)[-2], "choices", 0, "finish_reason") == "stop"
        assert changed(name, WORDS) is None


def test_all_calls_leak() -> None:
    assert text("text-tool-leak", TWO).count("<tool_call>") == 2
    assert '"arguments": {}' in text("text-tool-leak", chat(*in_pieces(""), shape.FINISH))


def test_the_beginning_of_a_call_leaks_and_the_call_stays() -> None:
    made = changed("text-partial-leak", ONE)
    assert text("text-partial-leak") == '<tool_call>\n{"name": "get", '
    assert call_entries(made) == call_entries(ONE)
    assert changed("text-partial-leak", WORDS) is None


def test_arguments_are_shown() -> None:
    assert text("content-duplicates-args") == '{"a":"b c"}'
    assert call_entries(changed("content-duplicates-args", ONE)) == call_entries(ONE)
    assert changed("content-duplicates-args", WORDS) is None
    assert changed("content-duplicates-args", chat(*in_pieces("{}"), shape.FINISH)) is None
