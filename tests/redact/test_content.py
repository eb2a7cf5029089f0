import json

import pytest

from deltatape.redact.content import mask, vocabulary
from deltatape.redact.fillers import Fillers
from deltatape.secret_text.escaped_text import overwrite
from helpers.chat import FINISH, calls, entry, sse
from helpers.secret_tapes import TOOL, arguments, words

ARGUMENTS = '{"city": "Bern", "unit": "kelvin"}'
REQUEST = {
    "model": "gpt-fake",
    "temperature": 0.5,
    "user": "me@example.com",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "name": "Ann", "content": [{"type": "text", "text": "Is it warm?"}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "get_weather", "arguments": ARGUMENTS},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "name": "get_weather", "content": '{"t": 290}'},
    ],
    "tools": [TOOL],
    "metadata": {"phone": 5550100},
}  # fmt: skip


def masked(data: bytes, known: frozenset[str] = frozenset()) -> bytes:
    after = overwrite(data, mask(data, Fillers(known)))
    assert len(after) == len(data)
    return after


def of_json(value: object, known: frozenset[str] = frozenset()) -> object:
    return json.loads(masked(json.dumps(value).encode(), known))


def test_a_request_keeps_its_structure_and_loses_what_it_says() -> None:
    known = vocabulary(json.dumps(REQUEST).encode())
    after = of_json(REQUEST, known)
    assert isinstance(after, dict)
    assert (after["model"], after["temperature"], after["user"]) == (
        "gpt-fake",
        0.5,
        "xx@xxxxxxx.xxx",
    )
    system, user, assistant, result = after["messages"]
    assert system == {"role": "system", "content": "xx xxxxx."}
    assert user == {
        "role": "user",
        "name": "xxx",
        "content": [{"type": "text", "text": "xx xx xxxx?"}],
    }
    assert assistant["tool_calls"][0]["id"] == "call_1"
    assert assistant["tool_calls"][0]["function"] == {
        "name": "get_weather",
        "arguments": '{"city": "xxxx", "unit": "kelvin"}',
    }
    assert (result["name"], result["content"]) == ("get_weather", '{"x": 111}')
    function = after["tools"][0]["function"]
    assert function["description"] == "xxxxx xxx xx xxx xxxxxx."
    expected = json.loads(json.dumps(TOOL["function"]))["parameters"]
    expected["properties"]["city"]["description"] = "x xxxa."
    assert function["parameters"]["required"] == ["city"]
    assert function["parameters"]["properties"]["unit"] == expected["properties"]["unit"]
    assert function["parameters"]["properties"]["city"]["type"] == "string"
    assert after["metadata"] == {"xxxxx": 1111111}


def test_the_same_text_is_the_same_in_the_stream_and_in_the_next_request() -> None:
    fillers = Fillers(frozenset({"city"}))
    fragments = [words("Gr"), words("üezi in Bern"), words("!")]
    fragments += [arguments('{"ci'), arguments('ty":"Z'), arguments('ug"}')]
    stream = sse(*fragments, FINISH)
    message = {"role": "assistant", "content": "Grüezi in Bern!", "arguments": '{"city":"Zug"}'}
    history = json.dumps({"messages": [message]}, ensure_ascii=False).encode()
    chunks = overwrite(stream, mask(stream, fillers)).decode().split("\n\n")
    deltas = [json.loads(each[6:])["choices"][0]["delta"] for each in chunks[:6]]
    text = "".join(delta.get("content", "") for delta in deltas)
    made = "".join(d["tool_calls"][0]["function"]["arguments"] for d in deltas if "tool_calls" in d)
    heard = json.loads(overwrite(history, mask(history, fillers)))["messages"][0]
    assert (text, made) == (heard["content"], heard["arguments"])
    assert (text, made) == ("xx×xxx xx xxxx!", '{"city":"xxx"}')  # noqa: RUF001 - a filler


def test_the_end_of_a_stream_and_its_fields_stay() -> None:
    stream = b": ping\nevent: delta\nid: abc\ndata: [DONE]\n\ndata: plain words\n\ndata: 12\n\n"
    after = b": ping\nevent: delta\nid: abc\ndata: [DONE]\n\ndata: xxxxx xxxxx\n\ndata: 11\n\n"
    assert masked(stream) == after
    assert masked(b"data: {}\n\ndata: [1]\n\ndata:\n\n") == b"data: {}\n\ndata: [1]\n\ndata:\n\n"


def test_arguments_that_are_objects_are_masked_with_their_keys() -> None:
    known = frozenset({"city"})
    call = {
        "type": "tool_use",
        "id": "t1",
        "name": "f",
        "input": {"city": "Bern", "ssn": [123, True]},
    }
    assert of_json({"content": [call]}, known) == {
        "content": [{**call, "input": {"city": "xxxx", "xxx": [111, True]}}]
    }
    nested = {"args": {"metadata": {"a": 1}, "b": "c"}, "name": "f"}
    assert of_json(nested) == {"args": {"xxxxxxxx": {"x": 1}, "a": "b"}, "name": "f"}


def test_lists_of_messages_are_not_taken_for_arguments() -> None:
    value = {"input": [{"role": "user", "content": "Hello"}], "response": {"id": "r", "output": []}}
    expected = {"input": [{"role": "user", "content": "xxxxx"}], "response": value["response"]}
    assert of_json(value) == expected
    answer = {"functionResponse": {"name": "f", "response": {"temp": 20}}}
    assert of_json(answer) == {"functionResponse": {"name": "f", "response": {"xxxx": 11}}}


def test_token_bytes_are_masked_with_their_tokens() -> None:
    found = of_json(
        {"logprobs": {"content": [{"token": "Hi", "logprob": -0.5, "bytes": [72, 105]}]}}
    )
    assert found == {
        "logprobs": {"content": [{"token": "xx", "logprob": -0.5, "bytes": [11, 111]}]}
    }
    assert of_json({"bytes": {"a": "b"}}) == {"bytes": {"a": "x"}}


def test_an_unfinished_body_is_masked_as_far_as_it_goes() -> None:
    assert masked(b'{"input": {"city": "Bern", "n": ') == b'{"input": {"city": "xxxx", "n": '
    assert masked(b'data: {"content":"Hel') == b'data: {"content":"xxx'


@pytest.mark.parametrize("data", [b"", b"<p>Bad gateway 502</p>", b"name=Ann&age=30"])
def test_a_body_that_is_no_json_is_content(data: bytes) -> None:
    after = masked(data)
    assert not any(word in after for word in (b"Bad", b"Ann", b"30", b"502"))


def test_ids_roles_and_finish_reasons_of_a_stream_stay() -> None:
    stream = sse(calls(entry(0, "call_1", name="get_weather", arguments="")), FINISH)
    assert masked(stream) == stream


def test_the_vocabulary_is_what_tools_define() -> None:
    assert vocabulary(json.dumps({"tools": [TOOL]}).encode()) >= {
        "get_weather", "city", "unit", "celsius", "kelvin",
    }  # fmt: skip
    assert "Looks out of the window." not in vocabulary(json.dumps({"tools": [TOOL]}).encode())
    assert vocabulary(b"no json") == vocabulary(b"[1]") == vocabulary(b"{}") == frozenset()
    deep: object = {"enum": ["x"]}
    for _ in range(100):
        deep = [deep]
    assert vocabulary(json.dumps({"tools": deep}).encode()) == frozenset()
