"""What a provider does differently today."""

from dataclasses import replace

import pytest

from deltatape.compare.recheck import Aspect, RecheckedExchange, compare_today, is_part
from deltatape.diagnose.rebuild import analyse
from deltatape.model.exchange import EndReason, Exchange, Framing, Headers, Source
from deltatape.model.rule_settings import DEFAULTS
from helpers.chat import FINISH, choice, sse
from helpers.exchanges import FINISH_TEXT, TEXT, asks, call
from helpers.taped import taped

SSE: Headers = ((b"Content-Type", b"text/event-stream; charset=utf-8"),)
LENGTH: Headers = (*SSE, (b"Content-Length", b"9"))


def spoken(*chunks: object, headers: Headers = SSE, done: bool = True) -> Exchange:
    return taped([(10, sse(*chunks, done=done))], body=asks(), headers=headers)


def today(recorded: Exchange, now: Exchange) -> RecheckedExchange:
    return compare_today(analyse(recorded), analyse(now), DEFAULTS)


def drifts(recorded: Exchange, now: Exchange) -> list[tuple[Aspect, str, str, str]]:
    found = today(recorded, now).drifts
    return [(each.aspect, each.what, each.recorded, each.today) for each in found]


TALK = spoken(TEXT, FINISH_TEXT)
CALL = spoken(*call(), FINISH)


def answered(status: int, message: str) -> Exchange:
    body = f'{{"error": {{"message": "{message}"}}}}'.encode()
    base = taped([(10, body)], body=asks(), headers=((b"Content-Type", b"application/json"),))
    assert base.response
    return replace(base, response=replace(base.response, status=status))


def test_the_same_answer_is_not_a_difference() -> None:
    told = today(CALL, CALL)
    assert (told.drifts, told.notes) == ((), ("the same answer, event by event",))
    assert told.comparison.equal


def test_other_words_are_reported_and_no_difference() -> None:
    told = today(TALK, spoken(choice({"content": "Good day"}), FINISH_TEXT))
    assert (told.drifts, told.notes) == ((), ("text: 5 characters, today 8",))


def test_another_model_and_other_calls_are_reported_and_no_difference() -> None:
    one = spoken(*({"model": "m-1", **choice({"tool_calls": []})},), *call("a"), FINISH)
    other = spoken(*({"model": "m-2", **choice({"tool_calls": []})},), *call("b"), FINISH)
    told = today(one, other)
    assert told.drifts == ()
    assert told.notes == ("calls: a; today b", "model: m-1, today m-2")
    assert today(CALL, spoken(*call(arguments='{"a":2}'), FINISH)).notes == (
        "the same calls with other arguments",
    )
    nameless = spoken({"model": "m-1", **choice({"content": "x"})}, FINISH_TEXT)
    assert "model: m-1, today none" in today(nameless, TALK).notes


def test_a_refusal_is_described_by_status_and_error_and_nothing_of_form() -> None:
    assert drifts(CALL, answered(429, "slow down")) == [
        (Aspect.STATUS, "", "200", "429"),
        (Aspect.ERROR, "", "", "slow down"),
    ]
    assert today(CALL, answered(429, "slow down")).notes == ()
    assert drifts(answered(400, "no"), answered(400, "no")) == []


def test_no_answer_at_all_is_reported_with_its_ending() -> None:
    silent = taped([], framing=None, reason=EndReason.UPSTREAM_RESET)
    assert drifts(TALK, silent) == [(Aspect.STATUS, "", "200", "no answer (upstream_reset)")]
    crashed = replace(silent, end=None)
    assert drifts(crashed, TALK)[0] == (Aspect.STATUS, "", "no answer (none)", "200")


def test_how_the_answer_is_framed_is_reported() -> None:
    other = taped(
        [(10, sse(TEXT, FINISH_TEXT))],
        framing=Framing.CLOSE,
        headers=((b"Content-Type", b"text/plain"),),
        reason=EndReason.UPSTREAM_RESET,
    )
    found = drifts(TALK, other)
    assert (Aspect.CONTENT_TYPE, "", "text/event-stream", "text/plain") in found
    assert (Aspect.FRAMING, "", "chunked", "close") in found
    assert (Aspect.ENDING, "", "complete", "upstream_reset") in found
    by_other_taps = drifts(replace(TALK, source=Source.MITM), other)
    assert Aspect.FRAMING not in [each[0] for each in by_other_taps]
    imported = drifts(replace(TALK, source=Source.IMPORT, end=None), TALK)
    assert imported == []


def test_another_format_or_dialect_has_no_fields_to_compare() -> None:
    whole = taped(
        [(10, b'{"choices":[{"message":{"content":"Hello"},"finish_reason":"stop"}]}')],
        headers=((b"Content-Type", b"application/json"),),
    )
    aspects = [each[0] for each in drifts(TALK, whole)]
    assert Aspect.FORMAT in aspects
    assert Aspect.FIELD not in aspects
    ollama = taped(
        [(10, b'{"model":"m","message":{"role":"assistant","content":"Hello"},"done":true}\n')],
        target=b"/api/chat",
        headers=((b"Content-Type", b"application/x-ndjson"),),
    )
    assert (Aspect.DIALECT, "", "openai-chat", "ollama") in drifts(TALK, ollama)


def test_another_kind_of_answer_is_reported_without_the_fields_that_come_with_it() -> None:
    assert drifts(CALL, TALK) == [
        (Aspect.ANSWER, "", "calls", "text"),
        (Aspect.FINISH, "", "tool_calls", "stop"),
    ]


def test_an_answer_without_anything_brings_nothing() -> None:
    assert (Aspect.ANSWER, "", "text", "nothing") in drifts(TALK, spoken(FINISH_TEXT))


def test_another_word_for_the_same_finish_is_not_a_difference() -> None:
    assert drifts(CALL, spoken(*call(), choice({}, "function_call"))) == []


def test_new_fields_and_events_are_reported() -> None:
    billed = {**TEXT, "cost": {"eur": 0.5}}
    found = drifts(TALK, spoken(billed, FINISH_TEXT, {"object": "billing"}))
    assert found[:2] == [
        (Aspect.EVENT, "billing", "", "present"),
        (Aspect.FIELD, "event: cost", "", "object"),
    ]
    assert found[2][:2] == (Aspect.FINDING, "S006 unexpected-event")


def test_a_type_that_changed_is_reported_also_when_the_answer_is_of_another_kind() -> None:
    one = spoken({**TEXT, "created": 1}, FINISH_TEXT)
    other = spoken({"created": "1", **choice({"content": None})}, *call(), FINISH)
    field = (Aspect.FIELD, "event: created", "number", "string")
    assert field in drifts(one, other)


def test_different_spelling_of_the_same_content_is_reported() -> None:
    body = sse(TEXT, FINISH_TEXT)
    other = b": ping\n\n" + body.replace(b"\n", b"\r\n")
    found = drifts(TALK, taped([(10, other)], body=asks(), headers=SSE))
    assert found == [
        (Aspect.SPACING, "comments", "", "present"),
        (Aspect.SPACING, "line-ends", "LF", "CR LF"),
    ]
    numbered = b"id: 7\n" + body
    assert drifts(TALK, taped([(10, numbered)], body=asks(), headers=SSE)) == []


def test_a_defect_that_is_new_or_gone_is_reported_once() -> None:
    broken = spoken(*call(), FINISH, done=False)
    twice = spoken(*call(arguments='{"a":'), FINISH)
    (found,) = drifts(CALL, twice)
    assert (found[0], found[1], found[2]) == (Aspect.FINDING, "T003 truncated-arguments", "")
    (gone,) = drifts(twice, CALL)
    assert gone[1] == found[1]
    assert gone[3] == ""
    assert drifts(broken, broken) == []


def test_what_the_application_cut_is_not_a_difference_of_the_provider() -> None:
    cut = taped([(10, sse(*call(), done=False))], body=asks(), reason=EndReason.CLIENT_CLOSED)
    told = today(cut, CALL)
    assert told.drifts == ()
    assert told.notes == (
        "the recorded answer is only a part (client_closed): how it would have gone on is unknown",
    )
    assert is_part(replace(CALL, end=None))
    assert not is_part(replace(CALL, end=None, source=Source.IMPORT))
    assert not is_part(CALL)


@pytest.mark.parametrize("name", [b"Deprecation", b"Sunset", b"Warning"])
def test_a_deprecation_or_sunset_header_is_reported(name: bytes) -> None:
    told = today(TALK, spoken(TEXT, FINISH_TEXT, headers=(*SSE, (name, b"Sat, 1 Jan"))))
    assert told.notes[-1] == f"the answer says {name.decode().lower()}: Sat, 1 Jan"
    assert told.drifts == ()
