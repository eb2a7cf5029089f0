from dataclasses import replace

import pytest

from deltatape.diagnose.check import check
from deltatape.model.exchange import Exchange
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.model.rule_settings import DEFAULTS
from helpers import gemini, messages, responses
from helpers.chat import FINISH, choice, sse
from helpers.exchanges import (
    FINISH_TEXT,
    TEXT,
    USER,
    asks,
    assistant,
    call,
    found,
    one,
    pasted,
)


def answered(asked: object, answers: object, **more: object) -> Exchange:
    request = {**asks(USER, **more), "model": asked}
    return pasted({**TEXT, "model": answers}, FINISH_TEXT, request=request)


@pytest.mark.parametrize(
    ("asked", "answers", "how"),
    [
        ("gpt-4o", "gpt-4o-mini-2024-07-18", "a different tier of the family"),
        ("gpt-4o", "claude-sonnet-4-5", "a different model family"),
        ("gpt-4.1-mini", "moonshotai/kimi-k2", "a different model family"),
        ("openai/gpt-4o", "gpt-4.1", "a different version"),
        ("gpt-4", "gpt-4o", "a different version"),
        ("o3", "o4-mini", "a different tier of the family"),
        ("claude-opus-4-1", "claude-opus-4-20250514", None),
        ("claude-opus-4-1", "claude-opus-4-5-20251101", "a different version"),
        ("claude-3-5-sonnet-latest", "claude-3-7-sonnet-20250219", "a different version"),
        ("us.anthropic.claude-haiku-4-5-20251001-v1:0", "claude-sonnet-4-5", "a different tier"),
        ("gemini-2.5-pro", "gemini-2.5-flash", "a different tier"),
        ("gemini-2.5-flash", "gemini-2.0-flash-001", "a different version"),
        ("meta-llama/Llama-3.3-70B-Instruct", "llama-3.1-8b-instant", "a different size"),
    ],
)
def test_names_that_cannot_mean_the_same(asked: str, answers: str, how: str | None) -> None:
    exchange = answered(asked, answers)
    if how is None:
        assert not found(exchange, "S011")
        return
    finding = one(exchange, "S011")
    assert finding.message.startswith(
        f"the request asks for {asked!r}, but {answers!r} answered: {how}"
    )
    assert (finding.severity, finding.blame) == (Severity.WARNING, Blame.UPSTREAM)
    assert finding.confidence is Confidence.POSSIBLE


@pytest.mark.parametrize(
    ("asked", "answers"),
    [
        ("gpt-4o", "gpt-4o-2024-08-06"),
        ("gpt-4-turbo-preview", "gpt-4-0125-preview"),
        ("gpt-3.5-turbo", "gpt-35-turbo"),
        ("gpt-5.2_2025-12-11", "gpt-5.2-2025-12-11"),
        ("o4-mini", "o4-mini-2025-04-16"),
        ("claude-sonnet-4-0", "claude-sonnet-4-20250514"),
        ("anthropic/claude-haiku-4.5", "anthropic/claude-4.5-haiku-20251001"),
        ("anthropic.claude-3-5-sonnet-20240620-v1:0", "claude-3-5-sonnet-20240620"),
        ("claude-3-7-sonnet@20250219", "claude-3-7-sonnet-20250219"),
        ("gemini-flash-latest", "gemini-3.6-flash"),
        ("models/gemini-1.5-pro", "gemini-1.5-pro-002"),
        ("accounts/fireworks/models/llama-v3p3-70b-instruct", "llama-3.3-70b"),
        ("mistral-large-latest", "mistral-large-2411"),
        ("openrouter/auto", "gpt-4o"),
        ("claude-sonnet-4-5", "claude-fake"),
        ("model-router", "gpt-4o-mini"),
        ("my-deployment", "gpt-4o"),
        ("gpt-4o", "default"),
        ("gpt-4o", "/models/model.gguf"),
        ("arn:aws:bedrock:us-east-1:1:inference-profile/abc", "claude-sonnet-4"),
        (None, "gpt-4o"),
        ("gpt-4o", None),
    ],
)
def test_aliases_routers_and_names_of_owners_are_fine(asked: object, answers: object) -> None:
    assert not found(answered(asked, answers), "S011")


@pytest.mark.parametrize("more", [{"models": ["claude-sonnet-4"]}, {"fallbacks": ["gpt-4o-mini"]}])
def test_a_request_may_allow_other_models(more: dict[str, object]) -> None:
    assert not found(answered("gpt-4o", "claude-sonnet-4", **more), "S011")


def test_deployments_are_called_as_their_owner_likes() -> None:
    body = sse({**TEXT, "model": "gpt-4o-mini"}, FINISH_TEXT)
    request = {**asks(USER), "model": "gpt-4o"}
    url = "https://x.openai.azure.com/openai/v1/chat/completions"
    exchange = Exchange.from_body(body, content_type="text/event-stream", url=url, request=request)
    assert not found(exchange, "S011")


def usage_findings(**usage: object) -> list[Finding]:
    return found(pasted(TEXT, {**FINISH_TEXT, "usage": usage}), "S012")


@pytest.mark.parametrize(
    ("usage", "how"),
    [
        ({"prompt_tokens": -1}, "prompt count is -1"),
        (
            {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": -1}},
            "cached tokens count is -1",
        ),
        (
            {"prompt_tokens": 90, "completion_tokens": 20, "total_tokens": 50},
            "the total is 50, but prompt and answer are 90 and 20",
        ),
        (
            {"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 9}},
            "9 cached tokens exceed the 5 prompt tokens",
        ),
        (
            {"promptTokenCount": 5, "cachedContentTokenCount": 9},
            "9 cached tokens exceed the 5 prompt tokens",
        ),
    ],
)
def test_counts_that_contradict_each_other(usage: dict[str, object], how: str) -> None:
    (finding,) = usage_findings(**usage)
    assert finding.message == f"impossible token usage: {how}"
    assert (finding.severity, finding.blame) == (Severity.WARNING, Blame.UPSTREAM)
    assert finding.confidence is Confidence.LIKELY


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 14},
        {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 10},
        {"prompt_tokens": 9, "completion_tokens": 0, "total_tokens": 9},
    ],
)
def test_a_total_that_is_off_and_an_answer_of_no_tokens_are_remarks(
    usage: dict[str, object],
) -> None:
    (finding,) = usage_findings(**usage)
    assert (finding.severity, finding.confidence) == (Severity.INFO, Confidence.POSSIBLE)


def test_a_call_of_no_tokens_is_a_remark_too() -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 0}
    assert one(pasted(*call(), {**FINISH, "usage": usage}), "S012").severity is Severity.INFO


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11},
        {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
        {"input_tokens": 3, "output_tokens": 2, "cache_read_input_tokens": 900},
        {
            "prompt_tokens": 9,
            "completion_tokens": 2,
            "total_tokens": 16,
            "completion_tokens_details": {"reasoning_tokens": 5},
        },
        {
            "promptTokenCount": 9,
            "candidatesTokenCount": 2,
            "thoughtsTokenCount": 5,
            "toolUsePromptTokenCount": 4,
            "totalTokenCount": 20,
        },
        {"inputTokens": 9, "outputTokens": 2, "cacheReadInputTokens": 7, "totalTokens": 18},
        {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": None},
        {"completion_tokens": 2},
        {"prompt_tokens": "9"},
        {},
    ],
)
def test_counts_that_can_be(usage: dict[str, object]) -> None:
    assert not usage_findings(**usage)


def test_an_answer_that_was_cut_or_says_nothing_is_not_looked_at() -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 0}
    assert not found(pasted({**TEXT, "usage": usage}, done=False), "S012")
    assert not found(pasted({**FINISH_TEXT, "usage": usage}), "S012")


SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 5}},
    "required": ["city"],
}
STRICT = {"type": "json_schema", "json_schema": {"name": "c", "schema": SCHEMA, "strict": True}}
SIMPLE = {"type": "json_schema", "json_schema": {"schema": {"type": "object"}}}
LOOSE = {"type": "json_schema", "json_schema": {"name": "c", "schema": SCHEMA}}
OBJECT = {"type": "json_object"}


def formatted(
    text: str, wanted: object = OBJECT, end: object = FINISH_TEXT, **request: object
) -> Exchange:
    body = asks(USER, response_format=wanted, **request)
    return pasted(choice({"content": text}), end, request=body)


def broken(text: str, wanted: object = OBJECT) -> tuple[str, Severity, Blame | None]:
    finding = one(formatted(text, wanted), "S013")
    assert finding.confidence is Confidence.LIKELY
    how = finding.message.removeprefix("the request asks for a JSON answer, but ")
    return how, finding.severity, finding.blame


@pytest.mark.parametrize("wanted", [OBJECT, LOOSE])
def test_a_fence_and_text_around_the_json_are_warnings_where_nothing_is_promised(
    wanted: object,
) -> None:
    warning = (Severity.WARNING, Blame.MODEL)
    for fenced in ('```json\n{"city":"Gent"}\n```', '```\n{"city":"Gent"}'):
        assert broken(fenced, wanted) == ("the JSON is inside a Markdown fence", *warning)
    around = 'Here it is: {"city":"Gent"}. Anything else?'
    assert broken(around, wanted) == ("there is other text around the JSON", *warning)


def test_in_a_strict_mode_they_are_errors_of_those_who_promised_it() -> None:
    how, severity, blame = broken('```json\n{"city":"Gent"}\n```', STRICT)
    assert (severity, blame) == (Severity.ERROR, Blame.UPSTREAM)
    assert "fence" in how


@pytest.mark.parametrize("text", ["Sunny.", '{"city":"Ge', '{"city":"Gent"}}', "{'city': 'Gent'}"])
def test_what_is_not_json_is_an_error(text: str) -> None:
    how, severity, _ = broken(text)
    assert how.startswith("the text is not JSON: ")
    assert severity is Severity.ERROR


def test_two_answers_after_each_other_are_not_json() -> None:
    assert broken('{"city":"Gent"}{"city":"Gent"}')[0].startswith("the text is not JSON:")


def test_json_that_violates_the_schema() -> None:
    how, severity, blame = broken('{"town":"Gent"}', LOOSE)
    assert how == "the answer violates the schema: $: 'city' is a required property"
    assert (severity, blame) == (Severity.ERROR, Blame.MODEL)
    how, severity, blame = broken('{"city":"Antwerpen"}', STRICT)
    assert "too long" in how
    assert (severity, blame) == (Severity.WARNING, Blame.UPSTREAM)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('{"city":"Gent"}', STRICT),
        ('\n {"city":"Gent"} \n', LOOSE),
        ('{"town":1}', OBJECT),
        ('{"town":1}', SIMPLE),
        ("Sunny.", None),
        ("Sunny.", {"type": "text"}),
        (" ", OBJECT),
    ],
)
def test_what_fits_is_fine_and_other_formats_and_empty_answers_are_not_looked_at(
    text: str, wanted: object
) -> None:
    assert not found(formatted(text, wanted), "S013")


@pytest.mark.parametrize("word", ["length", "content_filter", "stop_sequence", "odd"])
def test_an_answer_that_did_not_come_to_its_end_is_fine(word: str) -> None:
    assert not found(formatted('{"city":', end=choice({}, word)), "S013")


def test_refusals_errors_and_calls_in_its_place_are_fine() -> None:
    request = asks(USER, response_format=STRICT)
    refused = (choice({"content": "No"}), choice({"refusal": "I can't."}), FINISH_TEXT)
    failed = (choice({"content": "No"}), {"error": {"message": "overloaded"}}, FINISH_TEXT)
    called = (choice({"content": "I look."}), *call(), FINISH)
    cut = (choice({"content": '{"ci'}),)
    for chunks in (refused, failed, called):
        assert not found(pasted(*chunks, request=request), "S013")
    assert not found(pasted(*cut, request=request, done=False), "S013")


def test_a_call_that_was_written_as_text_is_another_matter() -> None:
    assert not found(formatted('<tool_call>{"name":"get","arguments":{}}</tool_call>'), "S013")


def test_stop_sequences_and_an_answer_that_the_request_begins_are_fine() -> None:
    assert not found(formatted('{"city":', stop=["}"]), "S013")
    request = asks(USER, assistant(text="{"), response_format=OBJECT)
    exchange = pasted(choice({"content": '"city":"Gent"}'}), FINISH_TEXT, request=request)
    assert not found(exchange, "S013")


def test_each_of_several_answers_is_looked_at() -> None:
    request = asks(USER, response_format=OBJECT, n=2)
    said = [choice({"content": text}, None, at) for at, text in enumerate(("{}", "No"))]
    ends = [choice({}, "stop", at) for at in range(2)]
    assert one(pasted(*said, *ends, request=request), "S013").evidence == "No"


def test_an_answer_that_is_too_long_to_be_checked_is_not() -> None:
    exchange = formatted('{"town":"Gent"}', LOOSE)
    few = replace(DEFAULTS, schema_characters=5)
    assert "S013" not in [finding.code for finding in check(exchange, few)]
    broken = {**LOOSE, "json_schema": {"schema": {"type": "no type", "minLength": "x"}}}
    assert not found(formatted('{"town":"Gent"}', broken), "S013")


def of(
    body: bytes, url: str, request: dict[str, object], kind: str = "text/event-stream"
) -> Finding:
    return one(Exchange.from_body(body, content_type=kind, url=url, request=request), "S013")


def test_responses_ask_for_a_format_of_their_text() -> None:
    wanted = {"type": "json_schema", "name": "c", "schema": SCHEMA, "strict": True}
    events = (responses.created(), responses.ended(responses.message("Sunny.")))
    request: dict[str, object] = {"model": "m", "input": "Hi", "text": {"format": wanted}}
    (finding,) = [
        each for each in responses.findings(*events, request=request) if each.code == "S013"
    ]
    assert finding.blame is Blame.UPSTREAM
    free: dict[str, object] = {**request, "text": {"format": {"type": "text"}}}
    assert "S013" not in responses.codes(*events, request=free)


def preamble_and(text: str) -> list[tuple[object, ...]]:
    """Two messages, in each way in which they may arrive: in pieces, as items, all at once."""
    first, last = responses.message("I look it up."), responses.message(text, item_id="msg_2")
    pieces = [responses.say("I look "), responses.say("it up.")]
    pieces += [responses.say(each, 1) for each in (text[:3], text[3:])]
    start, end = responses.created(), responses.ended(first, last)
    return [
        (start, *pieces, end),
        (start, responses.done(first), responses.done(last, 1), end),
        (start, end),
    ]


def test_a_preamble_in_a_message_of_its_own_is_not_text_around_the_json() -> None:
    wanted = {"type": "json_schema", "name": "c", "schema": SCHEMA, "strict": True}
    request: dict[str, object] = {"model": "m", "input": "Hi", "text": {"format": wanted}}
    for events in preamble_and('{"city":"Gent"}'):
        assert "S013" not in responses.codes(*events, request=request)
    for events in preamble_and('It is {"city":"Gent"}'):
        assert "S013" in responses.codes(*events, request=request)


@pytest.mark.parametrize("key", ["output_format", "output_config"])
def test_messages_ask_for_a_format_in_two_places(key: str) -> None:
    wanted: dict[str, object] = {"type": "json_schema", "schema": SCHEMA}
    request = {**messages.request(), key: wanted if key == "output_format" else {"format": wanted}}
    said = (messages.start(), messages.text_block(), messages.text("No"), messages.stop())
    body = messages.sse(*said, messages.reason("end_turn"), messages.STOP)
    assert of(body, messages.URL, request).blame is Blame.UPSTREAM


@pytest.mark.parametrize(
    "schema",
    [
        {"responseSchema": {"type": "OBJECT", "properties": {"city": {"type": "STRING"}}}},
        {"responseJsonSchema": SCHEMA},
        {},
    ],
)
def test_gemini_asks_for_a_media_type(schema: dict[str, object]) -> None:
    config = {"responseMimeType": "application/json", **schema}
    request: dict[str, object] = {
        "contents": [{"parts": [{"text": "Hi"}]}],
        "generationConfig": config,
    }
    body = gemini.sse(gemini.candidate({"text": "Sunny."}, finish="STOP"))
    assert of(body, gemini.STREAM, request).blame is Blame.UPSTREAM
    stops = {**request, "generationConfig": {**config, "stopSequences": ["}"]}}
    exchange = Exchange.from_body(
        body, content_type="text/event-stream", url=gemini.STREAM, request=stops
    )
    assert not found(exchange, "S013")


@pytest.mark.parametrize("wanted", ["json", SCHEMA])
def test_ollama_asks_for_a_format_by_name_or_schema(wanted: object) -> None:
    line = b'{"model":"m","message":{"role":"assistant","content":"No"},"done":true'
    body = line + b',"done_reason":"stop"}\n'
    request: dict[str, object] = {"model": "m", "messages": [USER], "format": wanted}
    url = "http://127.0.0.1:11434/api/chat"
    assert of(body, url, request, "application/x-ndjson").blame is Blame.UPSTREAM
    stops = {**request, "options": {"stop": ["}"]}}
    exchange = Exchange.from_body(body, content_type="application/x-ndjson", url=url, request=stops)
    assert not found(exchange, "S013")
