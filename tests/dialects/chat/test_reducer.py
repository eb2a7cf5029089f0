import pytest

from helpers.chat import FINISH, choice, codes, reply_to

STOP = choice({}, "stop")
TEXT = choice({"content": "Hi"})
ERROR = {"error": {"message": "overloaded", "code": 502}}


@pytest.mark.parametrize(
    ("chunks", "done", "terminated"),
    [
        ([TEXT, STOP], True, True),
        ([TEXT, STOP], False, True),
        ([TEXT], True, True),
        ([TEXT], False, False),
        ([], True, True),
        ([], False, False),
        ([TEXT, ERROR], True, False),
        ([TEXT, STOP, ERROR], True, True),
        ([TEXT, choice({}, "error"), ERROR], True, False),
        ([TEXT, "[DONE]", ERROR], True, True),
        ([TEXT, ERROR, "[DONE]"], True, False),
        ([TEXT, STOP, choice({"content": "x"}, index=1)], False, False),
        ([TEXT, STOP, choice({"content": "x"}, index=1)], True, True),
    ],
)
def test_a_finish_reason_or_the_sentinel_terminates(
    chunks: list[object],
    done: bool,  # noqa: FBT001
    terminated: bool,  # noqa: FBT001
) -> None:
    reply = reply_to(*chunks, done=done)
    assert (reply.terminated, reply.terminator) == (terminated, "finish_reason and [DONE]")


def test_usage_and_model_are_taken_wherever_they_come() -> None:
    reply = reply_to(
        {"model": "", "choices": [], "prompt_filter_results": []},
        {"model": "m-1", **TEXT},
        STOP,
        {"model": "m-2", "choices": [], "usage": {"total_tokens": 1}},
        {"usage": {"total_tokens": 2}},
        {"choices": [], "usage": None},
    )
    assert (reply.model, reply.usage, codes(reply)) == ("m-1", {"total_tokens": 2}, [])


@pytest.mark.parametrize(
    ("chunks", "message"),
    [
        ([ERROR], "overloaded"),
        ([{"choices": [], "error": "late"}], "late"),
        ([{"choices": [{"index": 0, "delta": {}, "error": {"message": "inner"}}]}], "inner"),
        ([choice({}, "error")], "finish_reason is 'error'"),
        ([{**choice({}, "error"), **ERROR}], "overloaded"),
        ([ERROR, {"error": "second"}], "overloaded"),
    ],
)
def test_an_error_frame_is_told_with_its_message(chunks: list[object], message: str) -> None:
    reply = reply_to(TEXT, *chunks)
    assert (reply.error, reply.text) == (message, "Hi")
    assert set(codes(reply)) == {"S005"}


@pytest.mark.parametrize("data", ["{", "", '{"a":1}{"b":2}', ": OPENROUTER PROCESSING", "{NaN}"])
def test_data_that_is_no_json_is_told_and_passed_over(data: str) -> None:
    reply = reply_to(TEXT, data, STOP)
    assert (reply.text, codes(reply)) == ("Hi", ["W004"])
    (seen,) = reply.observations
    assert seen.detail.startswith("the data is not JSON: ")
    assert "(offset " in seen.detail
    assert (seen.evidence, seen.event) == (data, 1)


@pytest.mark.parametrize(
    "chunk", ["[]", "5", {"choices": {}}, {"choices": [None]}, {"type": "ping"}, {"choices": "x"}]
)
def test_unexpected_shapes_are_told_once(chunk: object) -> None:
    reply = reply_to(TEXT, chunk, chunk, STOP)
    assert (reply.text, codes(reply)) == ("Hi", ["S006"])


def test_reading_goes_on_after_a_finish_reason() -> None:
    reply = reply_to(FINISH, TEXT)
    assert (reply.text, reply.finish_reason_raw, codes(reply)) == ("Hi", "tool_calls", [])


def test_deltas_after_the_sentinel_are_told_and_no_part_of_the_answer() -> None:
    reply = reply_to(TEXT, STOP, " [DONE] ", TEXT, TEXT, {"choices": [], "usage": {"n": 1}})
    assert (reply.text, reply.usage, codes(reply)) == ("Hi", {"n": 1}, ["S006"])


@pytest.mark.parametrize(
    ("index", "expected"), [(None, [0, 1]), ("1", [1]), (7, [7]), (-1, [0, 1])]
)
def test_a_choice_without_index_has_its_place(index: object, expected: list[int]) -> None:
    one: dict[str, object] = {"index": index, "delta": {"content": "x"}}
    reply = reply_to({"choices": [one, one]})
    assert [found.index for found in reply.choices] == expected


def test_an_id_that_changes_within_an_answer_is_noted_once() -> None:
    said = choice({"content": "a"})
    ids: list[object] = ["x", "", None, 5, "x"]
    assert codes(reply_to(*({**said, "id": one} for one in ids))) == []
    assert codes(reply_to(*({**said, "id": one} for one in ("x", "y", "z")))) == ["S006"]
