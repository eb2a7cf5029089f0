import base64
from collections.abc import Sequence
from dataclasses import replace

import pytest

from deltatape.conversation import check_conversation
from deltatape.diagnose.digest import digest
from deltatape.model.digest import Digest
from deltatape.model.exchange import Exchange
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from helpers import gemini, messages, responses
from helpers.chat import FINISH, calls, entry, sse

Json = dict[str, object]
THOUGHT = "The user wants the weather, so I look it up."
SIGNATURE = "EqQBCkYIARgCKkA/abc+def=="
SIGNED: Json = {"type": "thinking", "thinking": THOUGHT, "signature": SIGNATURE}
USE: Json = {"type": "tool_use", "id": "c1", "name": "get", "input": {}}
ANSWER: Json = {
    "role": "user",
    "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "ok"}],
}
USER: Json = {"role": "user", "content": "What is the weather?"}
ENABLED: Json = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
ADAPTIVE: Json = {"thinking": {"type": "adaptive"}}
CALLED = (messages.tool_block(1), messages.piece("{}", 1), messages.stop(1))
GREETED = (messages.start(), messages.text_block(), messages.text("Hi"), messages.stop())


def digest_of(number: int, body: bytes, url: str, request: Json) -> Digest:
    exchange = Exchange.from_body(body, content_type="text/event-stream", url=url, request=request)
    return digest(replace(exchange, number=number))


def first(*thoughts: messages.Frame, more: Json = ENABLED) -> Digest:
    """A reply of Anthropic's with thinking and a call."""
    events = thoughts or messages.thinking(THOUGHT, SIGNATURE)
    body = messages.sse(messages.start(), *events, *CALLED, *messages.END)
    request: Json = {"model": "m", "messages": [USER], **more}
    return digest_of(1, body, messages.URL, request)


def then(*blocks: Json, after: Sequence[Json] = (ANSWER,), more: Json = ENABLED) -> Digest:
    """The request that repeats it as `blocks` and the call."""
    history = [USER, {"role": "assistant", "content": [*blocks, USE]}, *after]
    body = messages.sse(*GREETED, messages.reason("end_turn"), messages.STOP)
    request: Json = {"model": "m", "messages": history, **more}
    return digest_of(2, body, messages.URL, request)


def c013_findings(*tape: Digest) -> list[Finding]:
    return [finding for finding in check_conversation(tape) if finding.code == "C013"]


def test_thinking_that_is_missing() -> None:
    (finding,) = c013_findings(first(), then())
    assert finding.message == (
        "the next request repeats the calls of #1 without their reasoning (1 of 1"
        " signature missing); providers reject such a request (400)"
    )
    assert (finding.severity, finding.exchange) == (Severity.WARNING, 2)
    assert (finding.blame, finding.confidence) == (Blame.APP, Confidence.LIKELY)
    assert [each.explanation for each in finding.excluded] == [
        "it is an older turn, which needs no reasoning",
        "thinking was turned off",
        "another model takes over",
    ]


def test_it_is_a_proven_error_where_the_request_was_refused_for_it() -> None:
    error = "messages.1.content.0.type: Expected `thinking`, but found `tool_use`"
    refused = replace(then(), status=400, error=error)
    (finding,) = c013_findings(first(), refused)
    assert finding.message.endswith("the provider rejected it (400)")
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.PROVEN)
    assert finding.evidence == error
    (finding,) = c013_findings(first(), replace(then(), status=400, error="prompt is too long"))
    assert finding.severity is Severity.WARNING


def test_a_signature_that_is_missing() -> None:
    (finding,) = c013_findings(first(), then({"type": "thinking", "thinking": THOUGHT}))
    assert finding.message.startswith(
        "the next request repeats the reasoning of #1 without 1 of 1 signature;"
    )


@pytest.mark.parametrize(
    ("signature", "how", "confidence"),
    [
        (SIGNATURE[:-6], "cut", Confidence.PROVEN),
        (SIGNATURE[5:], "cut", Confidence.PROVEN),
        (2 * SIGNATURE, "doubled", Confidence.PROVEN),
        ("another", "changed", Confidence.LIKELY),
    ],
)
def test_a_signature_that_is_another(signature: str, how: str, confidence: Confidence) -> None:
    (finding,) = c013_findings(first(), then({**SIGNED, "signature": signature}))
    assert finding.message.startswith(
        f"the next request repeats a signature of the reasoning of #1 {how};"
    )
    assert (finding.confidence, finding.evidence) == (confidence, signature)


@pytest.mark.parametrize(
    ("text", "how", "confidence"),
    [
        (THOUGHT[4:], "cut", Confidence.PROVEN),
        (THOUGHT[:-4], "cut", Confidence.PROVEN),
        ("", "empty", Confidence.LIKELY),
        ("He wants it.", "changed", Confidence.LIKELY),
    ],
)
def test_a_text_that_is_another(text: str, how: str, confidence: Confidence) -> None:
    (finding,) = c013_findings(first(), then({**SIGNED, "thinking": text}))
    told = f"the next request repeats the text of the reasoning of #1 {how}, with its signature;"
    assert finding.message.startswith(told)
    assert finding.confidence is confidence


@pytest.mark.parametrize(
    "block", [SIGNED, {**SIGNED, "thinking": f" {THOUGHT}\n", "cache_control": {"type": "x"}}]
)
def test_thinking_that_comes_back_is_fine(block: Json) -> None:
    assert not c013_findings(first(), then(block))


def test_redacted_thinking_has_to_come_back_too() -> None:
    block: Json = {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix"}
    start: messages.Frame = {"type": "content_block_start", "index": 0, "content_block": block}
    reply = first(start, messages.stop())
    assert c013_findings(reply, then())
    assert not c013_findings(reply, then(block))


def test_one_of_two_thoughts_is_missing() -> None:
    second = messages.thinking("More.", "another", 2)
    thoughts = (*messages.thinking(THOUGHT, SIGNATURE), *second)
    (finding,) = c013_findings(first(*thoughts), then(SIGNED))
    assert "(1 of 2 signatures missing)" in finding.message


@pytest.mark.parametrize(
    "later",
    [
        then(more={"thinking": {"type": "disabled"}}),
        then(more={}),
        then(more={**ENABLED, "model": "n"}),
        then(after=[ANSWER, {"role": "assistant", "content": "Sunny."}, USER]),
    ],
    ids=["off", "no longer on", "another model", "an older turn"],
)
def test_reasoning_that_need_not_come_back(later: Digest) -> None:
    assert not c013_findings(first(), later)


def test_what_the_recorder_lost_and_what_was_cut_is_nobodys() -> None:
    assert not c013_findings(replace(first(), lossy=True), then())
    assert not c013_findings(replace(first(), whole=False), then())


def test_where_the_model_decides_whether_to_think_it_is_possible_only() -> None:
    (finding,) = c013_findings(first(more=ADAPTIVE), then(more=ADAPTIVE))
    assert finding.confidence is Confidence.POSSIBLE


def test_thinking_without_a_signature_need_not_come_back() -> None:
    assert not c013_findings(first(*messages.thinking(THOUGHT, "")), then())


def test_a_reply_without_a_call_need_not_keep_its_thinking() -> None:
    thought = messages.thinking(THOUGHT, SIGNATURE)
    end = (messages.reason("end_turn"), messages.STOP)
    body = messages.sse(messages.start(), *thought, messages.text_block(1), messages.stop(1), *end)
    request: Json = {"model": "m", "messages": [USER], **ENABLED}
    assert not digest_of(1, body, messages.URL, request).thoughts


REASONING: Json = {"id": "rs_1", "type": "reasoning", "summary": []}
ENCRYPTED: Json = {**REASONING, "encrypted_content": "gAAAAABo"}
ASKED: Json = {"type": "message", "role": "user", "content": "Hi"}
OUTPUT: Json = {"type": "function_call_output", "call_id": "call_1", "output": "ok"}


def response(item: Json, **more: object) -> Digest:
    """A reply with an item of reasoning and a call."""
    call = responses.call(index=1)
    opened = responses.added({**item, "encrypted_content": "first"})
    ended = responses.ended(item, responses.function('{"a":1}'))
    body = responses.sse(responses.created(), opened, responses.done(item), *call, ended)
    return digest_of(1, body, responses.URL, {"model": "m", "input": [ASKED], **more})


def next_response(*items: Json, **more: object) -> Digest:
    history = [ASKED, *items, responses.function('{"a":1}'), OUTPUT]
    body = responses.sse(responses.created(), responses.ended(responses.message("Hi")))
    return digest_of(2, body, responses.URL, {"model": "m", "input": history, **more})


def test_an_item_of_encrypted_reasoning_that_is_missing() -> None:
    (finding,) = c013_findings(response(ENCRYPTED), next_response(store=False))
    assert finding.message.startswith(
        "the next request repeats the calls of #1 without their reasoning"
    )
    assert finding.confidence is Confidence.POSSIBLE
    assert c013_findings(response(ENCRYPTED), next_response(REASONING))
    assert not c013_findings(response(ENCRYPTED), next_response(ENCRYPTED))


def test_an_item_that_has_only_an_id_is_possibly_missed_if_the_provider_keeps_it() -> None:
    (finding,) = c013_findings(response(REASONING), next_response())
    assert "without their reasoning item 'rs_1'" in finding.message
    assert finding.confidence is Confidence.POSSIBLE
    assert not c013_findings(response(REASONING), next_response(REASONING))
    assert not c013_findings(response(REASONING, store=False), next_response(store=False))


def test_a_history_that_the_provider_keeps_needs_no_reasoning() -> None:
    stored = digest_of(
        2,
        responses.sse(responses.created(), responses.ended(responses.message("Hi"))),
        responses.URL,
        {"model": "m", "input": [OUTPUT], "previous_response_id": "resp_fake"},
    )
    assert not c013_findings(response(ENCRYPTED), stored)
    reference: Json = {"type": "item_reference", "id": "rs_1"}
    assert not c013_findings(response(ENCRYPTED), next_response(reference))


PART: Json = {"functionCall": {"name": "get", "args": {"a": 1}}, "thoughtSignature": "ab+/cd=="}
RESULT: Json = {"functionResponse": {"name": "get", "response": {"result": "ok"}}}


def of_gemini(part: Json | None, model: str) -> Digest:
    """A reply with a signed call, or the request that repeats it as `part`."""
    contents: list[Json] = [{"role": "user", "parts": [{"text": "Hi"}]}]
    if part is None:
        body = gemini.sse(gemini.candidate(PART, finish="STOP"))
    else:
        body = gemini.sse(gemini.candidate({"text": "Hi"}, finish="STOP"))
        contents.append({"role": "model", "parts": [part]})
        contents.append({"role": "user", "parts": [RESULT]})
    url = f"https://127.0.0.1/v1beta/models/{model}:streamGenerateContent?alt=sse"
    return digest_of(1 if part is None else 2, body, url, {"contents": contents})


def without(part: Json, *keys: str) -> Json:
    return {key: value for key, value in part.items() if key not in keys}


def test_a_signature_of_gemini_3_that_is_missing() -> None:
    bare = without(PART, "thoughtSignature")
    (finding,) = c013_findings(of_gemini(None, "gemini-3-pro"), of_gemini(bare, "gemini-3-pro"))
    assert finding.confidence is Confidence.LIKELY
    assert "without their reasoning" in finding.message


@pytest.mark.parametrize(
    "signature",
    [
        "ab+/cd==",
        "ab-_cd",
        "skip_thought_signature_validator",
        base64.b64encode(b"context_engineering_is_the_way_to_go").decode(),
    ],
)
def test_a_signature_in_another_alphabet_and_a_documented_placeholder_are_fine(
    signature: str,
) -> None:
    part = {**without(PART, "thoughtSignature"), "thought_signature": signature}
    assert not c013_findings(of_gemini(None, "gemini-3-pro"), of_gemini(part, "gemini-3-pro"))


def test_an_older_gemini_takes_calls_without_their_signatures() -> None:
    bare = without(PART, "thoughtSignature")
    reply, later = of_gemini(None, "gemini-2.5-pro"), of_gemini(bare, "gemini-2.5-pro")
    assert not c013_findings(reply, later)
    error = "Function call is missing a thought_signature in functionCall parts."
    (finding,) = c013_findings(reply, replace(later, status=400, error=error))
    assert finding.severity is Severity.ERROR


def test_a_name_of_gemini_without_its_version_makes_it_possible_only() -> None:
    bare = without(PART, "thoughtSignature")
    name = "gemini-flash-latest"
    (finding,) = c013_findings(of_gemini(None, name), of_gemini(bare, name))
    assert finding.confidence is Confidence.POSSIBLE


def test_a_signature_of_a_block_that_never_began_is_no_thought() -> None:
    stray = messages.thinking(THOUGHT, SIGNATURE, 7)[2]
    assert not first(stray).thoughts


def of_compatible(number: int, model: str, *history: Json) -> Digest:
    """A request to Gemini's endpoint that is compatible with OpenAI's, and a signed call."""
    opened = {**entry(0, "c1", name="get", arguments="{}"), "extra_content": EXTRA}
    body = sse(calls(opened), FINISH)
    request: Json = {"model": model, "messages": [USER, *history]}
    return digest_of(number, body, "https://api.openai.com/v1/chat/completions", request)


EXTRA: Json = {"google": {"thought_signature": SIGNATURE}}
FUNCTION: Json = {"id": "c1", "type": "function", "function": {"name": "get", "arguments": "{}"}}
ANSWERED: Json = {"role": "tool", "tool_call_id": "c1", "content": "ok"}


@pytest.mark.parametrize(
    ("model", "extra", "confidences"),
    [
        ("gemini-3-pro", None, [Confidence.LIKELY]),
        ("google/gemini-3-pro", None, [Confidence.LIKELY]),
        ("models/gemini-2.5-pro", None, []),
        ("gemini-3-pro", EXTRA, []),
        ("gemini-3-pro", {"google": {"thought_signature": "skip_thought_signature_validator"}}, []),
        ("gemini-3-pro", {"google": None}, [Confidence.LIKELY]),
        ("gemini-3-pro", {"other": {}}, [Confidence.LIKELY]),
    ],
)
def test_a_signature_beside_a_call_of_chat_has_to_come_back_with_it(
    model: str, extra: Json | None, confidences: list[Confidence]
) -> None:
    call = FUNCTION if extra is None else {**FUNCTION, "extra_content": extra}
    said: Json = {"role": "assistant", "content": None, "tool_calls": [call]}
    found = c013_findings(of_compatible(1, model), of_compatible(2, model, said, ANSWERED))
    assert [each.confidence for each in found] == confidences
