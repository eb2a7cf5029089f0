import json
from collections.abc import Sequence

import pytest

from deltatape.dialects import DIALECTS
from deltatape.dialects._alike import Alike
from deltatape.model.asked import NOTHING_ASKED
from deltatape.model.reply import Reply
from deltatape.model.stream import Event
from helpers.events import event_of


def event(data: str, kind: str = "message", *, exception: bool = False) -> Event:
    return event_of(data, kind, exception=exception)


class Said:
    """What an `Alike` that learned from an event appends."""

    def __init__(self, data: str, name: str = "text", number: object = None) -> None:
        self.texts: list[str] = []
        self.alike = Alike()
        self.alike.learn(event(data), lambda text, _: self.texts.append(text), name, number)

    def take(self, data: str) -> bool:
        return self.alike.take(event(data))


def test_an_event_that_differs_in_the_text_only_is_taken() -> None:
    said = Said('{"id": 1, "text": "a", "last": [2]}')
    assert said.take('{"id": 1, "text": "b", "last": [2]}')
    assert said.take(r'{"id": 1, "text": "\"\u00e9\n", "last": [2]}')
    assert said.take('{"id": 1, "text": "", "last": [2]}')
    assert said.texts == ["b", '"é\n', ""]


@pytest.mark.parametrize(
    "data",
    [
        '{"id":2,"text":"b"}',
        '{"id":1,"text":"b","more":1}',
        '{"id":1,"text":"b"',
        '{"id":1,"text":"b',
        '{"id":1,"text":"\t"}',
        '{"id":1,"text":2}',
        "",
    ],
)
def test_what_differs_elsewhere_is_not_taken_and_ends_what_was_learned(data: str) -> None:
    said = Said('{"id":1,"text":"a"}')
    assert not said.take(data)
    assert not said.take('{"id":1,"text":"c"}')
    assert said.texts == []


def test_an_event_of_another_type_or_an_exception_is_not_taken() -> None:
    data = '{"text":"a"}'
    assert not Said(data).alike.take(event(data, "error"))
    assert not Said(data).alike.take(event(data, exception=True))


@pytest.mark.parametrize(
    "data",
    [
        '{"text":"a","more":{"text":"b"}}',
        '{"text":{"text":"a"}}',
        '{"more":"text","text":"a"}',
        '{"text" :"a"}',
        r'{"te\u0078t":"a","more":{"text":"b"}}',
        r'{"text":"a","te\u0078t":"b"}',
        '{"text":1}',
        '{"text":"' + 5000 * "a" + '"}',
    ],
)
def test_nothing_is_learned_where_it_is_not_clear_which_string_is_the_text(data: str) -> None:
    said = Said(data)
    assert not said.take(data)


def test_spaces_between_brackets_say_nothing() -> None:
    said = Said('{"delta":{"text":"a"}   }')
    assert said.take('{"delta":{"text":"b"}}')
    assert said.take('{"delta":{"text":"c" }  } ')
    assert not said.take('{"delta":{"text":"d"}')


def test_padding_may_be_anything() -> None:
    said = Said('{"text":"a","obfuscation":"xyz","id":1}')
    assert said.take('{"text":"b","obfuscation":"","id":1}')
    assert said.take(r'{"text":"c","obfuscation":"\"","id":1}')
    assert said.texts == ["b", "c"]


@pytest.mark.parametrize(
    "data",
    [
        '{"text":"b","obfuscation":"x","id":2}',
        '{"text":"b","obfuscation":"x',
        '{"text":"b","obfuscation":"',
        '{"text":"b","obfuscation":1,"id":1}',
    ],
)
def test_padding_ends_where_it_did(data: str) -> None:
    assert not Said('{"text":"a","obfuscation":"xyz","id":1}').take(data)


@pytest.mark.parametrize(
    "form",
    [
        '{"sequence_number":%d,"text":"a"}',
        '{"sequence_number": %d, "text": "a"}',
        '{"text":"a","sequence_number":%d}',
        '{"text":"a","obfuscation":"x","sequence_number":%d}',
    ],
)
def test_numbers_count_up(form: str) -> None:
    said = Said(form % 8, number=8)
    assert said.take(form % 9)
    assert said.take(form % 10)
    assert said.alike.number == 10
    assert not said.take(form % 12)


@pytest.mark.parametrize(
    "data",
    [
        '{"text":"a","sequence_number":8,"more":{"sequence_number":8}}',
        '{"more":{"sequence_number":8},"text":"a","sequence_number":8}',
        '{"text":"a","sequence_number" :8}',
        '{"more":{"sequence_number":7},"text":"a"}',
    ],
)
def test_nothing_is_learned_where_it_is_not_clear_which_number_counts(data: str) -> None:
    assert not Said(data, number=8).take(data)


def test_what_is_no_number_counts_nothing() -> None:
    data = '{"text":"a","sequence_number":"8"}'
    assert Said(data, number="8").take(data)


def test_after_some_events_in_vain_no_more_are_looked_at() -> None:
    said = Said("{}")
    for _ in range(3):
        assert said.alike.learns
        said.alike.learn(event("{}"), lambda *_: None, "text")
    assert not said.alike.learns
    said.alike.learn(event('{"text":"a"}'), lambda *_: None, "text")
    assert not said.take('{"text":"a"}')


def test_one_that_is_alike_makes_up_for_those_in_vain() -> None:
    said = Said("{}")
    for _ in range(3):
        said.alike.learn(event('{"text":"a"}'), lambda *_: None, "text")
    assert not said.alike.learns
    assert said.take('{"text":"a"}')
    assert said.alike.learns


def delta(**members: object) -> dict[str, object]:
    return {"id": "x", "choices": [{"index": 0, "delta": members}], "usage": {"total": 1}}


def arguments(text: str, index: object = 0, **more: object) -> dict[str, object]:
    entry = {"index": index, "function": {"name": "", "arguments": text}, **more}
    return delta(tool_calls=[entry])


def completion(text: str, **more: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "text": text, **more}]}


def twice(text: str) -> dict[str, object]:
    return {"choices": [{"index": 0, "text": text}, {"index": 0, "text": text}]}


def block(index: int, kind: str, field: str, text: str) -> dict[str, object]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, field: text}}


def start(index: int, **members: object) -> dict[str, object]:
    return {"type": "content_block_start", "index": index, "content_block": members}


def part(kind: str, number: object, text: str) -> dict[str, object]:
    where = {"item_id": "i", "output_index": 0, "content_index": 0}
    name = f"response.{kind}.delta"
    return {"type": name, "sequence_number": number, **where, "delta": text, "obfuscation": text}


TEXTS = ("a", "b", '"', "", "{", "\ud83d", "\ude00", "a")
STREAMS: dict[str, Sequence[dict[str, object]]] = {
    "openai-chat": [
        *[delta(content=text, refusal=None, tool_calls=[]) for text in TEXTS],
        *[delta(reasoning_content=text, content="") for text in TEXTS],
        *[delta(reasoning=text) for text in TEXTS],
        *[delta(refusal=text) for text in TEXTS],
        *[delta(content=text, reasoning="r") for text in TEXTS],
        *[delta(content=[{"text": text}]) for text in TEXTS],
        *[arguments(text) for text in TEXTS],
        delta(tool_calls=[{"index": 1, "id": "c", "function": {"name": "get"}}]),
        *[arguments(text, 1) for text in (*TEXTS, "{}", "{")],
        *[arguments(text, "1") for text in TEXTS],
        *[arguments(text, 1, id="c") for text in TEXTS],
        *[delta(tool_calls=[text, text]) for text in TEXTS],
        *[delta(function_call={"arguments": text}) for text in TEXTS],
        {"id": "y", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        *[delta(content=text) for text in TEXTS],
    ],
    "anthropic-messages": [
        {"type": "message_start", "message": {"id": "m", "content": []}},
        start(0, type="text", text=""),
        *[block(0, "text_delta", "text", text) for text in TEXTS],
        *[block(1, "text_delta", "text", text) for text in TEXTS],
        start(2, type="thinking", thinking=""),
        *[block(2, "thinking_delta", "thinking", text) for text in TEXTS],
        *[block(0, "text_delta", "text", text) for text in TEXTS],
        start(3, type="tool_use", id="t", name="get", input={}),
        *[block(3, "input_json_delta", "partial_json", text) for text in TEXTS],
        {"type": "content_block_stop", "index": 3},
        *[block(3, "input_json_delta", "partial_json", text) for text in TEXTS],
    ],
    "openai-completions": [
        *[{**completion(text), "object": "text_completion"} for text in TEXTS],
        *[completion(text, reasoning="r") for text in TEXTS],
        *[completion(text) | {"error": "no"} for text in TEXTS],
        *[twice(text) for text in TEXTS],
        completion("a", finish_reason="stop"),
        *[completion(text) for text in TEXTS],
    ],
    "openai-responses": [
        {"type": "response.created", "sequence_number": 0, "response": {"id": "r"}},
        *[part("output_text", 1 + n, text) for n, text in enumerate(TEXTS)],
        *[part("output_text", 11 + 2 * n, text) for n, text in enumerate(TEXTS)],
        *[part("function_call_arguments", 31 + n, text) for n, text in enumerate(TEXTS)],
        *[part("output_text", 5, text) for text in TEXTS],
        *[part("output_text", "6", text) for text in TEXTS],
        *[part("output_text", 6 + n, text) for n, text in enumerate(TEXTS)],
        {"type": "response.completed", "sequence_number": 40, "response": {"id": "r"}},
        *[part("output_text", 41 + n, text) for n, text in enumerate(TEXTS)],
    ],
}


def reply_of(name: str) -> Reply:
    dialect = next(one for one in DIALECTS if one.name == name)
    reducer = dialect.reducer(NOTHING_ASKED)
    for number, frame in enumerate(STREAMS[name]):
        kind = str(frame.get("type", "message"))
        reducer.feed(event(json.dumps(frame, separators=(",", ":")), kind)._replace(number=number))
    return reducer.finish(cut=False)


@pytest.mark.parametrize("name", STREAMS)
def test_a_reply_is_the_same_as_if_every_event_were_parsed(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    quickly = reply_of(name)
    monkeypatch.setattr(Alike, "take", lambda *_: False)
    assert reply_of(name) == quickly
