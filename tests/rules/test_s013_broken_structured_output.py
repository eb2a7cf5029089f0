from dataclasses import replace

import pytest

from deltatape.diagnose.check import check
from deltatape.model.exchange import Exchange
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.rules.settings import DEFAULTS
from helpers import gemini, messages, responses
from helpers.chat import FINISH, choice
from helpers.exchanges import FINISH_TEXT, USER, asks, assistant, call, found, one, pasted

SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 5}},
    "required": ["city"],
}
STRICT = {"type": "json_schema", "json_schema": {"name": "c", "schema": SCHEMA, "strict": True}}
SIMPLE = {"type": "json_schema", "json_schema": {"schema": {"type": "object"}}}
LOOSE = {"type": "json_schema", "json_schema": {"name": "c", "schema": SCHEMA}}
OBJECT = {"type": "json_object"}


def answered(
    text: str, wanted: object = OBJECT, end: object = FINISH_TEXT, **request: object
) -> Exchange:
    body = asks(USER, response_format=wanted, **request)
    return pasted(choice({"content": text}), end, request=body)


def told(text: str, wanted: object = OBJECT) -> tuple[str, Severity, Blame | None]:
    finding = one(answered(text, wanted), "S013")
    assert finding.confidence is Confidence.LIKELY
    how = finding.message.removeprefix("the request asks for an answer in JSON, and ")
    return how, finding.severity, finding.blame


@pytest.mark.parametrize("wanted", [OBJECT, LOOSE])
def test_a_fence_and_text_around_the_json_are_warnings_where_nothing_is_promised(
    wanted: object,
) -> None:
    warning = (Severity.WARNING, Blame.MODEL)
    for fenced in ('```json\n{"city":"Gent"}\n```', '```\n{"city":"Gent"}'):
        assert told(fenced, wanted) == ("the JSON stands in a Markdown fence", *warning)
    around = 'Here it is: {"city":"Gent"}. Anything else?'
    assert told(around, wanted) == ("other text stands around the JSON", *warning)


def test_in_a_strict_mode_they_are_errors_of_those_who_promised_it() -> None:
    how, severity, blame = told('```json\n{"city":"Gent"}\n```', STRICT)
    assert (severity, blame) == (Severity.ERROR, Blame.UPSTREAM)
    assert "fence" in how


@pytest.mark.parametrize("text", ["Sunny.", '{"city":"Ge', '{"city":"Gent"}}', "{'city': 'Gent'}"])
def test_what_is_no_json_is_an_error(text: str) -> None:
    how, severity, _ = told(text)
    assert how.startswith("the text is no JSON: ")
    assert severity is Severity.ERROR


def test_two_answers_after_each_other_are_no_json() -> None:
    assert told('{"city":"Gent"}{"city":"Gent"}')[0].startswith("the text is no JSON")


def test_json_that_violates_the_schema() -> None:
    how, severity, blame = told('{"town":"Gent"}', LOOSE)
    assert how == "it violates the schema: $: 'city' is a required property"
    assert (severity, blame) == (Severity.ERROR, Blame.MODEL)
    how, severity, blame = told('{"city":"Antwerpen"}', STRICT)
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
    assert not found(answered(text, wanted), "S013")


@pytest.mark.parametrize("word", ["length", "content_filter", "stop_sequence", "odd"])
def test_an_answer_that_did_not_come_to_its_end_is_fine(word: str) -> None:
    assert not found(answered('{"city":', end=choice({}, word)), "S013")


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
    assert not found(answered('<tool_call>{"name":"get","arguments":{}}</tool_call>'), "S013")


def test_stop_sequences_and_an_answer_that_the_request_begins_are_fine() -> None:
    assert not found(answered('{"city":', stop=["}"]), "S013")
    request = asks(USER, assistant(text="{"), response_format=OBJECT)
    exchange = pasted(choice({"content": '"city":"Gent"}'}), FINISH_TEXT, request=request)
    assert not found(exchange, "S013")


def test_each_of_several_answers_is_looked_at() -> None:
    request = asks(USER, response_format=OBJECT, n=2)
    said = [choice({"content": text}, None, at) for at, text in enumerate(("{}", "No"))]
    ends = [choice({}, "stop", at) for at in range(2)]
    assert one(pasted(*said, *ends, request=request), "S013").evidence == "No"


def test_an_answer_that_is_too_long_to_be_checked_is_not() -> None:
    exchange = answered('{"town":"Gent"}', LOOSE)
    few = replace(DEFAULTS, schema_characters=5)
    assert "S013" not in [finding.code for finding in check(exchange, few)]
    broken = {**LOOSE, "json_schema": {"schema": {"type": "no type", "minLength": "x"}}}
    assert not found(answered('{"town":"Gent"}', broken), "S013")


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
