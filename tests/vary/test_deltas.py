from dataclasses import replace

import pytest

from deltatape.diagnose.decode import decode
from deltatape.diagnose.rebuild import rebuild
from deltatape.model.exchange import Exchange
from deltatape.model.reply import Channel
from deltatape.mutate import MUTATORS
from deltatape.wire.json_value import parse
from helpers.chat import FINISH, calls, choice, entry
from helpers.mutated import (
    ONE,
    START,
    STEMS,
    TWO,
    WHOLE,
    WORDS,
    call_entries,
    chat,
    event_values,
    imported,
    in_pieces,
    joined_arguments,
    made,
    named,
    recorded,
    varied,
)
from helpers.taped import taped

STREAMED = ("openai-chat", "openai-responses", "anthropic-messages", "bedrock-converse", "cohere")
LEGAL = {
    "index-dup-in-chunk": TWO,
    "id-empty-cont": ONE,
    "id-null-cont": ONE,
    "finish-same-chunk": ONE,
    "empty-choices": ONE,
    "delta-null": ONE,
    "no-tool-streaming": ONE,
    "args-custom-empty": ONE,
    "r-done-only-args": recorded("openai-responses"),
    "r-empty-first-delta": recorded("openai-responses"),
    "g-finish-later-chunk": imported(
        b'data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{}}}]},'
        b'"finishReason":"STOP"}]}\n\n'
    ),
}


def lengths(exchange: Exchange) -> list[int]:
    """Of all fragments of arguments that are not empty."""
    found = rebuild(exchange).tool_calls
    return [len(each.text) for call in found for each in call.fragments if each.text]


def texts(exchange: Exchange) -> list[str]:
    (first,) = rebuild(exchange).choices
    return [piece.text for piece in first.pieces if piece.channel is Channel.TEXT]


@pytest.mark.parametrize("stem", [stem for stem in STEMS if stem != "gemini-array"])
def test_text_comes_character_by_character_in_every_dialect(stem: str) -> None:
    before = recorded(stem)
    after = made("finer-text", before)
    said_before, said_after = (
        [piece.text for piece in rebuild(each).choices[0].pieces] for each in (before, after)
    )
    assert "".join(said_after) == "".join(said_before)
    assert {len(text) for text in said_after} == {1}


@pytest.mark.parametrize("stem", STREAMED)
def test_arguments_come_character_by_character(stem: str) -> None:
    after = made("finer-arguments", recorded(stem))
    assert lengths(after).count(1) > 20


@pytest.mark.parametrize("stem", STREAMED)
def test_arguments_that_follow_each_other_come_in_one(stem: str) -> None:
    before = recorded(stem)
    after = made("coarser-arguments", before)
    assert len(lengths(after)) < len(lengths(before))
    assert len(decode(after).events) < len(decode(before).events)


def test_text_that_follows_each_other_comes_in_one_event() -> None:
    parts = [choice({"content": text}) for text in ("Hel", "lo", " you")]
    after = made("coarser-text", chat(*parts, choice({}, "stop")))
    assert texts(after) == ["Hello you"]
    assert varied("coarser-text", WORDS) is None


def test_pieces_of_different_answers_are_not_put_together() -> None:
    parts = [choice({"content": "a"}, index=at) for at in (0, 0, 1, 0)]
    after = made("coarser-text", chat(*parts, choice({}, "stop"), choice({}, "stop", 1)))
    assert [each.text for each in rebuild(after).choices] == ["aaa", "a"]
    assert len(event_values(after)) == 6


@pytest.mark.slow
def test_a_long_text_comes_in_pieces_of_more() -> None:
    long = chat(choice({"content": "ab " * 10_000}), choice({}, "stop"))
    after = made("finer-text", long)
    assert {len(text) for text in texts(after)} == {7, 5}


def test_numbers_of_events_stay_in_order() -> None:
    after = made("finer-arguments", recorded("openai-responses"))
    numbers = [value["sequence_number"] for value in event_values(after) if isinstance(value, dict)]
    assert numbers == [*range(len(numbers))]


def test_a_repetition_of_everything_is_not_a_delta() -> None:
    """The only event that has the arguments is the one that ends them."""
    only = made("r-done-only-args", recorded("openai-responses"))
    assert varied("finer-arguments", only) is None


def test_an_unreadable_stream_has_no_deltas() -> None:
    unknown = taped([(10, b'data: {"zz":"ab"}\n\n')], target=b"/of/nobody")
    assert varied("finer-text", unknown) is None


def test_a_ping_follows_every_event_but_the_last() -> None:
    for stem in ("anthropic-messages", "bedrock-invoke"):
        before, after = decode(recorded(stem)).events, decode(made("pings", recorded(stem))).events
        assert len(after) >= 2 * len(before) - 1
        assert "ping" not in after[-1].data
    assert varied("pings", ONE) is None


def test_usage_comes_behind_the_finish_reason_without_choices() -> None:
    last = {**FINISH, "usage": {"total_tokens": 7}}
    after = event_values(made("late-usage", chat(START, *in_pieces("{}"), last, schema={})))
    assert after[-3:] == [FINISH, {"choices": [], "usage": {"total_tokens": 7}}, "[DONE]"] or (
        after[-2] == {"choices": [], "finish_reason": None, "usage": {"total_tokens": 7}}
    )


def test_usage_that_is_not_on_the_tape_comes_only_to_who_asked_for_it() -> None:
    assert varied("late-usage", ONE) is None
    body = b'{"stream":true,"stream_options":{"include_usage":true}}'
    asking = replace(ONE, request=replace(ONE.request, body=body))
    invented = event_values(made("late-usage", asking))
    assert isinstance(invented[-2], dict)
    assert invented[-2]["choices"] == []
    assert invented[-2]["usage"]["total_tokens"] == 2


@pytest.mark.parametrize(
    "more",
    [
        {"logprobs": {"content": [{"token": "Hello"}]}},
        {"delta": {"content": "Hello", "annotations": [{"type": "url_citation"}]}},
        {"finish_reason": "stop"},
    ],
)
def test_text_beside_which_more_stands_stays_one_piece(more: dict[str, object]) -> None:
    loaded = choice({"content": "Hello"})
    loaded["choices"] = [{"index": 0, "delta": {"content": "Hello"}, **more}]
    whole = chat(loaded, choice({}, "stop"))
    assert varied("finer-text", whole) is None
    both = chat(loaded, loaded, choice({}, "stop"))
    assert varied("coarser-text", both) is None


def test_usage_that_comes_so_stays() -> None:
    usage = {"choices": [], "usage": {"total_tokens": 7}}
    assert varied("late-usage", chat(START, FINISH, usage)) is None
    assert varied("late-usage", chat(usage)) is None
    assert varied("late-usage", recorded("anthropic-messages")) is None


@pytest.mark.parametrize("name", LEGAL)
def test_legal_mutations_are_variations(name: str) -> None:
    (mutator,) = (each for each in MUTATORS if each.name == name)
    assert named(name).summary == mutator.summary
    after = made(name, LEGAL[name])
    assert after.body != LEGAL[name].body
    assert varied(name, recorded("ollama")) is None


def test_a_document_has_no_events_to_be_told_otherwise() -> None:
    body = b'{"object":"chat.completion","choices":[{"index":0,"message":{"content":"Hi"}}]}'
    document = imported(body, "application/json")
    assert parse(body.decode()).error is None
    assert varied("empty-choices", document) is None


def test_in_a_broken_stream_what_would_change_the_reply_has_no_place() -> None:
    opened = calls(entry(0, "c0", name="get", arguments='{"a":'))
    repeated = [calls(entry(0, arguments='{"a":')), calls(entry(0, arguments='"b"}'))]
    assert call_entries(chat(START, opened, *repeated, FINISH))
    assert varied("no-tool-streaming", chat(START, opened, *repeated, FINISH)) is None


def test_a_call_that_came_whole_is_opened_first() -> None:
    after = made("opened-first", WHOLE)
    opened, arguments = call_entries(after)
    assert opened == {"index": 0, "id": "c0", "function": {"name": "get", "arguments": ""}}
    assert arguments == {"index": 0, "function": {"arguments": '{"a":"x"}'}}
    assert joined_arguments(after) == rebuild(WHOLE).tool_calls[0].arguments


def test_a_call_that_was_opened_first_stays() -> None:
    assert varied("opened-first", ONE) is None
    assert varied("opened-first", recorded("ollama")) is None


def test_without_an_index_nobody_could_tell_that_the_arguments_are_its_own() -> None:
    bare = calls(entry(None, "c0", name="get", arguments="{}"))
    assert varied("opened-first", chat(START, bare, FINISH)) is None
