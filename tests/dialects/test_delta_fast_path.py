import json
from collections.abc import Mapping, Sequence

import pytest

from deltatape.dialects import DIALECTS, Reducer, feed_all
from deltatape.dialects._delta_fast_path import DeltaFastPath
from deltatape.model.reply import Reply
from deltatape.model.request_summary import NOTHING_ASKED
from deltatape.model.stream import Event
from helpers.events import event_of


class LearningReducer:
    """What a `DeltaFastPath` that learned from an event appends."""

    def __init__(self, data: str, name: str = "text", number: object = None) -> None:
        self.texts: list[str] = []
        self.fast_path = DeltaFastPath()
        self.before = event_of(data)
        self.name = name
        self.learn(number)

    def learn(self, number: object = None) -> None:
        frame = json.loads(self.before.data)
        self.fast_path.learn(self.before, frame, self.add_texts, self.name, number)

    def add_texts(self, deltas: Sequence[tuple[str, Event]]) -> None:
        self.texts += [text for text, _ in deltas]

    def takes(self, *datas: str) -> int:
        """How many of these it takes, until one is not alike."""
        return self.takes_events(*map(event_of, datas))

    def takes_events(self, *events: Event) -> int:
        first = self.fast_path.run(self.before, iter(events))
        return len(events) if first is None else events.index(first)


def test_an_event_that_differs_in_the_text_only_is_taken() -> None:
    reducer = LearningReducer('{"id": 1, "text": "a", "last": [2]}')
    texts = ['"b"', r'"\"\u00e9\n"', '""']
    assert reducer.takes(*(f'{{"id": 1, "text": {text}, "last": [2]}}' for text in texts)) == 3
    assert reducer.texts == ["b", '"é\n', ""]


def test_nothing_is_taken_without_the_event_that_was_learned_from() -> None:
    reducer = LearningReducer('{"text":"a"}')
    other, like = event_of('{"text":"a"}'), event_of('{"text":"b"}')
    assert reducer.fast_path.run(other, iter([like])) is like
    assert reducer.fast_path.run(reducer.before, iter([like])) is like
    assert reducer.texts == []
    assert LearningReducer('{"text":"a"}').takes() == 0


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
    reducer = LearningReducer('{"id":1,"text":"a"}')
    assert reducer.takes('{"id":1,"text":"b"}', data, '{"id":1,"text":"c"}') == 1
    assert reducer.texts == ["b"]
    assert reducer.fast_path.learned is None


def test_an_event_of_another_type_or_an_exception_is_not_taken() -> None:
    data = '{"text":"a"}'
    assert LearningReducer(data).takes_events(event_of(data, "error")) == 0
    assert LearningReducer(data).takes_events(event_of(data, exception=True)) == 0


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
    assert LearningReducer(data).takes(data) == 0


def test_spaces_between_brackets_say_nothing() -> None:
    reducer = LearningReducer('{"delta":{"text":"a"}   }')
    assert reducer.takes('{"delta":{"text":"b"}}', '{"delta":{"text":"c" }  } ') == 2
    assert LearningReducer('{"delta":{"text":"a"}}').takes('{"delta":{"text":"d"}') == 0


def test_a_time_before_the_text_may_be_anything() -> None:
    form = '{"created_at":"%s","text":"%s"}'
    reducer = LearningReducer(form % (1, "a"))
    assert reducer.takes(form % ("", "b"), form % (r"\"", "c"), '{"created_at":1,"text":"d"}') == 2
    assert reducer.texts == ["b", "c"]
    assert LearningReducer(form % (1, "a")).takes('{"created_at":"","next":"b"}') == 0


@pytest.mark.parametrize(
    "form",
    [
        '{"text":"a","usage":{"n":1,"p":"%s"}}',
        '{"usage":{"created_at":"%s"},"text":"a"}',
        '{"text":"a","p":"%s","usage":{"p":"x"}}',
        '{"p":1,"text":"a","usage":{"p":"%s"}}',
    ],
)
def test_only_members_of_the_event_itself_may_be_anything(form: str) -> None:
    assert LearningReducer(form % "x").takes(form % "x", form % "y") == 1


def test_padding_may_be_anything() -> None:
    reducer = LearningReducer('{"text":"a","obfuscation":"xyz","id":1}')
    padded = ['{"text":"b","obfuscation":"","id":1}', r'{"text":"c","obfuscation":"\"","id":1}']
    assert reducer.takes(*padded) == 2
    assert reducer.texts == ["b", "c"]


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
    assert LearningReducer('{"text":"a","obfuscation":"xyz","id":1}').takes(data) == 0


@pytest.mark.parametrize(
    "form",
    [
        '{"sequence_number":%d,"text":"a"}',
        '{"sequence_number": %d, "text": "a"}',
        '{"text":"a","sequence_number":%d}',
        '{"text":"a","obfuscation":"x","sequence_number":%d}',
        '{"created_at":"x","sequence_number":%d,"text":"a"}',
    ],
)
def test_numbers_count_up(form: str) -> None:
    reducer = LearningReducer(form % 8, number=8)
    assert reducer.takes(form % 9, form % 10, form % 12) == 2
    assert reducer.fast_path.take_number() == 10
    assert reducer.fast_path.take_number() is None


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
    assert LearningReducer(data, number=8).takes(data) == 0


def test_what_is_not_a_number_counts_nothing() -> None:
    data = '{"text":"a","sequence_number":"8"}'
    assert LearningReducer(data, number="8").takes(data) == 1


def test_after_some_events_in_vain_no_more_are_looked_at() -> None:
    reducer = LearningReducer("{}")
    for _ in range(3):
        assert reducer.fast_path.learns
        reducer.learn()
    assert not reducer.fast_path.learns
    assert reducer.takes("{}") == 0
    reducer.learn()
    assert reducer.fast_path.learned is None


def test_one_that_is_alike_makes_up_for_those_in_vain() -> None:
    reducer = LearningReducer('{"text":"a"}')
    for _ in range(3):
        reducer.learn()
    assert not reducer.fast_path.learns
    assert reducer.takes('{"text":"a"}') == 1
    assert reducer.fast_path.learns


def delta(**members: object) -> dict[str, object]:
    return {"id": "x", "choices": [{"index": 0, "delta": members}], "usage": {"total": 1}}


def arguments(text: str, index: object = 0, **more: object) -> dict[str, object]:
    entry = {"index": index, "function": {"name": "", "arguments": text}, **more}
    return delta(tool_calls=[entry])


def completion(text: str, **more: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "text": text, **more}]}


def twice(text: str) -> dict[str, object]:
    return {"choices": [{"index": 0, "text": text}, {"index": 0, "text": text}]}


def line(**members: object) -> dict[str, object]:
    count = len(json.dumps(members))
    message = {"role": "assistant", **members}
    return {"model": "m", "created_at": f"10:{count}", "message": message, "done": False}


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
    "mistral": [
        *[{**delta(content=text), "p": 3 * text} for text in TEXTS],
        *[{**delta(content=text), "p": 3} for text in TEXTS],
    ],
    "ollama": [
        *[line(content=text) for text in TEXTS],
        *[line(content="", thinking=text, tool_calls=[]) for text in TEXTS],
        *[line() | {"content": text} for text in TEXTS],
        *[line(response=text) for text in TEXTS],
        *[line(content=text, response=None) | {"response": "A"} for text in TEXTS],
        *[line(content=text, thinking=text) for text in TEXTS],
        *[line(content=text, images=["aa"]) for text in TEXTS],
        *[line(content=text) | {"error": "no"} for text in TEXTS],
        *[line(content=text) | {"created_at": text} for text in TEXTS],
        line(content="a") | {"done": True, "done_reason": "stop"},
        *[{"model": "m", "created_at": "now", "response": text, "done": False} for text in TEXTS],
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
        start(4, type="text", text=""),
        *[block(4, "text_delta", "text", text) for text in ("", "x", "y")],
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


class Parsing:
    """A reducer that counts the events it parses."""

    def __init__(self, reducer: Reducer) -> None:
        self.reducer = reducer
        self.count = 0

    @property
    def fast_path(self) -> DeltaFastPath:
        return self.reducer.fast_path

    def feed(self, event: Event, frame: Mapping[str, object] | None = None) -> None:
        self.count += 1
        self.reducer.feed(event, frame)

    def finish(self, *, cut: bool) -> Reply:
        return self.reducer.finish(cut=cut)


@pytest.mark.parametrize("name", STREAMS)
def test_a_reply_is_the_same_as_if_every_event_were_parsed(name: str) -> None:
    dialect = next(one for one in DIALECTS if one.name == name)
    quick, slow = (Parsing(dialect.reducer(NOTHING_ASKED)) for _ in range(2))
    events = [
        event_of(
            json.dumps(frame, separators=(",", ":")), str(frame.get("type", "message")), number
        )
        for number, frame in enumerate(STREAMS[name])
    ]
    feed_all(quick, events)
    for event in events:
        slow.feed(event)
    assert quick.finish(cut=False) == slow.finish(cut=False)
    assert quick.count < slow.count == len(events)
