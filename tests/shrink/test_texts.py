import json
from dataclasses import replace

import pytest

from deltatape.shrink.search import Exchanges
from deltatape.shrink.texts import shorter_data, shorter_texts
from helpers.chat import calls, choice, entry
from helpers.shrunk import Asked, bodies, having, recorded, said, search_of, streamed


def test_texts_lose_what_can_go() -> None:
    event = choice({"content": "a long text with \u00e9 and a needle in it"})
    search = search_of(streamed(event, done=False), judge=having(b"needle"))
    shorter_texts(search)
    assert said(search) == [choice({"content": "needle"})]


def test_an_escape_goes_as_a_whole() -> None:
    exchange = recorded(b'data: {"t":"\\u00e9 \\" \\n 12"}\n\n')
    search = search_of(exchange, judge=having(b"2", b"\\n"))
    shorter_texts(search)
    assert bodies(search.exchanges) == b'data: {"t":"\\n2"}\n\n'


def test_a_word_that_is_needed_becomes_a_letter() -> None:
    events = [{"id": "chatcmpl-123", "a": "chatcmpl-123"}, {"id": "chatcmpl-123"}]

    def holds(found: Exchanges) -> bool:
        values = [json.loads(line[6:]) for line in bodies(found).split(b"\n\n") if line]
        return len({value["id"] for value in values}) == 1 and bool(values[0]["id"])

    search = search_of(streamed(*events, done=False), judge=(judge := Asked(holds)))
    shorter_texts(search)
    assert said(search) == [{"id": "c", "a": "c"}, {"id": "c"}]
    assert len(judge.known) == 2


def test_words_of_the_protocol_stay_whole() -> None:
    event = {"type": "text_delta", "object": "x y", "name": "get"}
    search = search_of(streamed(event, done=False), judge=(judge := Asked(lambda _: False)))
    shorter_texts(search)
    assert said(search) == [event]
    assert judge.known == {}


def test_json_in_a_text_stays_json() -> None:
    arguments = json.dumps({"city": "Lisbon in \u00e9t\u00e9", "days": [1, 2, 3], "x": {"y": "z"}})
    events = [calls(entry(0, arguments=arguments)), {"done": {"arguments": arguments}}]

    def holds(found: Exchanges) -> bool:
        texts = [json.loads(line[6:]) for line in bodies(found).split(b"\n\n") if line]
        first = texts[0]["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"]
        if not first:
            return False
        value = json.loads(first)
        return (
            texts[1]["done"]["arguments"] == first
            and "city" in value
            and 2 in value.get("days", ())
        )

    search = search_of(streamed(*events, done=False), judge=Asked(holds))
    shorter_texts(search)
    assert said(search)[1] == {"done": {"arguments": '{"city": "", "days": [2]}'}}


def test_a_text_that_went_with_another_is_not_looked_at() -> None:
    events = [{"a": "abcdef", "b": "needle"}, {"a": "abcde"}]
    keep = replace(streamed({"keep": 1}), number=2)
    search = search_of(streamed(*events, done=False), keep, judge=Asked(lambda _: True))
    search._judge = lambda found: found[1:]
    shorter_texts(search)
    shorter_data(search)
    assert search.numbers == (2,)


def test_data_that_is_no_json_loses_what_can_go() -> None:
    exchange = recorded(b"data: plain text 42\n\ndata: {broken\n\ndata: [DONE]\n\ndata: 1\n\n")
    search = search_of(exchange, judge=having(b"42", b"bro"))
    shorter_data(search)
    assert said(search) == [42, "bro", "[DONE]", 1]


@pytest.mark.parametrize("each", [shorter_texts, shorter_data])
def test_a_body_that_cannot_be_rewritten_is_passed_over(each: object) -> None:
    assert callable(each)
    bare = replace(streamed(choice({})), reads=())
    search = search_of(bare, judge=(judge := Asked(lambda _: False)))
    each(search)
    assert judge.known == {}
