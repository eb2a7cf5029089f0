from deltatape.suspects.read_chat import chat_steps
from deltatape.suspects.steps import Entry, Finish, Odd, Phase, Step
from helpers.chat import FINISH, calls, choice, entry, sse
from helpers.suspected import deliver


def _steps(*chunks: object, indexed: bool = True, done: bool = True) -> list[Step]:
    events = deliver(sse(*chunks, done=done)).events
    return [*chat_steps(events, 0, indexed=indexed)]


def _entries(*chunks: object, indexed: bool = True) -> list[Entry]:
    return [step for step in _steps(*chunks, indexed=indexed) if isinstance(step, Entry)]


def test_entries_tell_what_is_absent_from_what_is_empty() -> None:
    value = {"index": "0", "id": "", "function": {"name": None, "arguments": ""}}
    found = _entries(calls(value), calls(entry(0)))
    assert found[0] == Entry(0, Phase.DELTA, index=0, id="", text="")
    assert found[1] == Entry(1, Phase.DELTA, index=0)


def test_the_string_null_is_no_id() -> None:
    assert _entries(calls(entry(0, "null", name="get")))[0].id is None


def test_arguments_that_are_json_are_marked() -> None:
    found = _entries(calls(entry(0, "c1", arguments={"a": 1})))
    assert (found[0].text, found[0].bare) == ('{"a":1}', True)


def test_custom_tools_have_input() -> None:
    custom = {"index": 0, "id": "c1", "custom": {"name": "run", "input": "ls"}}
    assert _entries(calls(custom))[0] == Entry(
        0, Phase.DELTA, index=0, id="c1", name="run", text="ls", kind="custom"
    )


def test_the_old_function_call_is_an_entry_of_its_own_kind() -> None:
    found = _entries(choice({"function_call": {"name": "get", "arguments": "{}"}}))
    assert (found[0].kind, found[0].name, found[0].text) == ("legacy", "get", "{}")


def test_events_without_choices_or_delta_are_odd() -> None:
    null = {"choices": [{"index": 0, "delta": None, "finish_reason": "stop"}]}
    found = _steps({"choices": []}, null, {"error": {"message": "x"}})
    assert found == [Odd(0, "choices"), Odd(1, "delta"), Finish(1, "stop"), Odd(2, "choices")]


def test_choices_of_others_are_passed_over() -> None:
    assert _steps(choice({"content": "x"}, index=1)) == []


def test_nothing_is_read_behind_the_sentinel_or_of_what_is_no_json() -> None:
    assert _steps("{", FINISH, "[DONE]", FINISH) == [Finish(1, "tool_calls")]


def test_entries_know_that_their_event_ends_the_stream() -> None:
    found = _entries(choice({"tool_calls": [entry(0, "c1")]}, "stop"))
    assert found[0].finished


def test_whole_messages_have_whole_calls() -> None:
    message = {"role": "assistant", "tool_calls": [entry(None, "c1", name="get", arguments="{}")]}
    found = _steps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
    assert [step.phase for step in found if isinstance(step, Entry)] == [Phase.WHOLE]


def test_calls_without_promised_index_are_counted_by_their_names() -> None:
    found = _entries(
        calls(entry(None, "c1", name="get"), entry(None, None, arguments="{}")),
        calls(entry(None, "c2", name="get")),
        indexed=False,
    )
    assert [one.index for one in found] == [0, 0, 1]
