import json
from dataclasses import replace

import pytest

from deltatape.diagnose.rebuild import Analysis, analyse
from deltatape.model.exchange import Exchange, Headers, Tap
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.rules.event_contribution import ContributionKind, EventContribution, brought
from helpers import app
from helpers.app import text, told
from helpers.chat import FINISH, choice
from helpers.exchanges import (
    FINISH_TEXT,
    TEXT,
    USER,
    asks,
    call,
    found,
    from_bytes,
    one,
    pasted,
    timed,
)

ERROR = {"error": {"message": "overloaded", "code": 502}}
ANSWER = b'{"error":{"message":"no such model"}}'
HOST = "https://api.example.com"
CHAT = f"{HOST}/v1/chat/completions"
MESSAGES = f"{HOST}/v1/messages"
GEMINI = f"{HOST}/v1beta/models/g:generateContent"
ASKED = {**asks(USER), "temperature": 1, "max_tokens": 9, "contents": []}
Json = dict[str, object]


def answered(body: object, status: int = 400, url: str = CHAT, tap: Tap = Tap.PROVIDER) -> Finding:
    """The finding on an answer with this body: JSON, or text as it is."""
    text = body if isinstance(body, str) else json.dumps(body)
    exchange = Exchange.from_body(
        text.encode(), content_type="application/json", url=url, request=ASKED, status=status
    )
    return one(replace(exchange, tap=tap), "S005")


def openai(message: str, param: str | None = None, code: str | None = None) -> Json:
    """An error as OpenAI writes it."""
    inner = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return {"error": inner}


def anthropic(message: str) -> Json:
    """An error as Anthropic writes it."""
    return {"type": "error", "error": {"type": "invalid_request_error", "message": message}}


def google(message: str) -> Json:
    """An error as Google writes it."""
    return {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}


@pytest.mark.parametrize(
    ("body", "url", "member"),
    [
        (openai("must be followed by tool messages", "messages.[3].role"), CHAT, "messages"),
        (openai("Missing required parameter: 'messages[0].type'."), CHAT, "messages"),
        (anthropic("messages.1: `tool_use` ids were found without"), MESSAGES, "messages"),
        (anthropic("messages: text content blocks must be non-empty"), MESSAGES, "messages"),
        (anthropic("`temperature` and `top_p` cannot both be given"), MESSAGES, "temperature"),
        (google("Invalid value at 'contents[0].parts[0]' (oneof)"), GEMINI, "contents"),
        ([google("Invalid value at 'contents[0].parts[0]'")], GEMINI, "contents"),
        ({"detail": [{"loc": ["body", "messages"], "msg": "too few"}]}, CHAT, "messages"),
        (
            {
                "object": "error",
                "message": {"detail": [{"type": "missing", "loc": ["body", "messages", 0]}]},
                "type": "invalid_request_error",
            },
            CHAT,
            "messages",
        ),
        (
            {"object": "error", "message": "messages[0]: x", "type": "BadRequestError"},
            CHAT,
            "messages",
        ),
    ],
)
def test_an_invalid_request_that_names_its_member_is_likely_the_apps(
    body: object, url: str, member: str
) -> None:
    finding = answered(body, url=url)
    assert (finding.severity, finding.blame) == (Severity.ERROR, Blame.APP)
    assert finding.confidence is Confidence.LIKELY
    assert finding.hint == f"fix {member!r} in the request, as the message says"
    assert len(finding.excluded) == 3


@pytest.mark.parametrize(
    ("status", "body", "hint"),
    [
        (400, "<html><title>400 Request Header Or Cookie Too Large</title>", "a web server"),
        (403, "<!DOCTYPE html><title>Attention Required! | Cloudflare</title>", "a web server"),
        (404, "<html><h1>404 Not Found</h1><hr>nginx</html>", "a web server"),
        (404, {"message": "no Route matched with those values"}, "the server or gateway reports"),
        (
            404,
            {"error": {"message": "No endpoints found that support tool use.", "code": 404}},
            "the server or gateway reports",
        ),
        (
            400,
            {
                "object": "error",
                "type": "BadRequestError",
                "param": None,
                "code": 400,
                "message": '"auto" tool choice requires --enable-auto-tool-choice and'
                " --tool-call-parser to be set",
            },
            "the server or gateway reports",
        ),
        (
            400,
            openai("litellm.BadRequestError: OpenAIException - messages.1: no", "messages"),
            "the server or gateway reports",
        ),
        (400, {"message": "no healthy upstream"}, "the server or gateway reports"),
        (400, google("API key not valid. Please pass a valid API key."), "check the API key"),
        (402, {"error": "pay"}, "check the API key"),
        (404, openai("The model `m` does not exist", None, "model_not_found"), "check the model's"),
        (404, {"error": "gone"}, "check the model's"),
        (400, openai("This model's maximum context length is 9", "messages"), "a limit"),
        (400, anthropic("prompt is too long: 210000 tokens > 200000 maximum"), "a limit"),
        (400, anthropic("Your credit balance is too low"), "a limit"),
        (400, openai("The prompt was refused", "messages", "content_filter"), "a content filter"),
        (400, openai("'max_tokens' is not supported with this model", "max_tokens"), "this model"),
        (400, {"error": "m does not support tools"}, "this model"),
        (400, openai("We could not parse the JSON body of your request."), "read the message"),
        (400, openai("Invalid value", "logprobs"), "read the message"),
        (400, {"error": {"message": "messages.1: bad", "type": "odd"}}, "read the message"),
        (400, openai("Error while downloading https://x/a.png: 503", "messages"), "the provider"),
        (400, openai("Previous response with id 'x' not found.", "messages"), "what the request"),
        (400, openai("No such File object: file-a", "messages"), "what the request"),
        (400, anthropic("messages.1: Invalid `signature` in `thinking` block"), "repeat blocks"),
        (408, {"error": "too slow"}, "a later attempt"),
        (409, {"error": "locked"}, "a later attempt"),
        (400, [1, 2], "read the message"),
        (413, "", "read the message"),
    ],
)
def test_what_a_server_or_gateway_says_of_itself_or_of_an_account_blames_nobody(
    status: int, body: object, hint: str
) -> None:
    finding = answered(body, status)
    assert (finding.severity, finding.blame) == (Severity.ERROR, None)
    assert finding.hint.startswith(hint)


PAIRED: list[Json] = [
    USER,
    {"role": "assistant", "tool_calls": [{"id": "call_1", "type": "function"}]},
    {"role": "tool", "tool_call_id": "call_1", "content": "sunny"},
]
REASONED: list[Json] = [{"type": "reasoning", "id": "rs_a"}, {"type": "message", "id": "msg_a"}]
UNPAIRED = "messages.1: `tool_use` ids were found without `tool_result` blocks: call_1"
ALONE = "Item 'rs_a' of type 'reasoning' was provided without its required following item."


@pytest.mark.parametrize(
    ("request_body", "error", "is_true"),
    [
        ({"messages": PAIRED}, anthropic(UNPAIRED), False),
        ({"messages": PAIRED[:2]}, anthropic(UNPAIRED), True),
        ({"messages": PAIRED}, anthropic("messages.[2].role: role 'tool' must follow"), False),
        ({"messages": [USER, PAIRED[2]]}, anthropic("messages.[1]: role 'tool' must follow"), True),
        ({"messages": PAIRED}, anthropic("messages.9: `tool_use` without a result"), True),
        ({"messages": PAIRED}, anthropic(f"messages.{'9' * 5000}: `tool_use` is alone"), True),
        ({"messages": PAIRED}, anthropic("messages: a tool_result is missing"), True),
        ({"input": REASONED}, openai(ALONE, "input"), False),
        ({"input": REASONED[:1]}, openai(ALONE, "input"), True),
        ({"input": [REASONED[0], *REASONED]}, openai(ALONE, "input"), True),
        ({"input": "Hi"}, openai(ALONE, "input"), True),
    ],
)
def test_the_app_is_not_blamed_for_lacking_what_the_recorded_request_has(
    request_body: Json, error: Json, is_true: object
) -> None:
    """A gateway may have lost it on the way."""
    exchange = Exchange.from_body(
        json.dumps(error).encode(),
        content_type="application/json",
        url=CHAT if "messages" in request_body else f"{HOST}/v1/responses",
        request=request_body,
        status=400,
    )
    finding = one(exchange, "S005")
    assert finding.blame is (Blame.APP if is_true else None)
    assert finding.hint.startswith("fix '" if is_true else "the recorded request has")


def test_a_request_that_cannot_be_read_names_no_member() -> None:
    body = json.dumps(openai("messages: bad", "messages")).encode()
    assert one(from_bytes(body, None, 400, "application/json"), "S005").blame is None


def test_amazons_validation_names_itself_in_the_head() -> None:
    url = f"{HOST}/model/x/converse"
    text = b'{"message":"The format is invalid: messages.0: bad"}'
    base = Exchange.from_body(
        text, content_type="application/json", url=url, request=ASKED, status=400
    )
    assert base.response
    assert one(base, "S005").blame is None
    named = (*base.response.headers, (b"x-amzn-errortype", b"ValidationException:http://x"))
    head = replace(base.response, headers=named)
    assert one(replace(base, response=head), "S005").blame is Blame.APP


@pytest.mark.parametrize("status", [404, 405, 501])
def test_a_path_that_is_no_endpoint_of_a_model_is_a_remark(status: int) -> None:
    finding = answered({"error": "no such path"}, status, f"{HOST}/api/show")
    severity = Severity.ERROR if status == 501 else Severity.INFO
    assert (finding.severity, finding.blame is None) == (severity, status != 501)


def test_an_invalid_request_to_another_endpoint_blames_nobody() -> None:
    assert answered(openai("bad", "messages"), url=f"{HOST}/v1/embeddings").blame is None


@pytest.mark.parametrize(("status", "blame"), [(400, None), (500, Blame.APP), (502, None)])
def test_an_endpoint_of_the_app_may_pass_on_what_it_was_given(
    status: int, blame: Blame | None
) -> None:
    assert answered(openai("bad", "messages"), status, tap=Tap.APP).blame is blame


def test_an_error_that_the_app_tells_its_page_blames_nobody() -> None:
    finding = one(told(text("a"), {"type": "error", "content": "overloaded"}), "S005")
    assert (finding.blame, finding.severity) == (None, Severity.ERROR)
    assert finding.message.startswith("the app sent its page an error")


def test_an_error_in_the_middle_of_a_stream_is_reported_with_its_message() -> None:
    finding = one(timed((0.1, TEXT), (0.2, ERROR)), "S005")
    assert finding.message == "upstream sent an error under status 200: overloaded"
    assert (finding.blame, finding.confidence) == (Blame.UPSTREAM, Confidence.PROVEN)
    assert finding.event == 1


@pytest.mark.parametrize(
    ("status", "blame", "hint"),
    [
        (400, None, "check the model's name"),
        (401, None, "check the API key"),
        (429, Blame.UPSTREAM, "a later attempt"),
        (503, Blame.UPSTREAM, "a later attempt"),
    ],
)
def test_an_answer_with_an_error_status_is_blamed_by_its_class(
    status: int, blame: Blame | None, hint: str
) -> None:
    finding = one(from_bytes(ANSWER, asks(USER), status, "application/json"), "S005")
    assert finding.message == f"the answer is status {status}: no such model"
    assert finding.blame is blame
    assert hint in finding.hint


def test_an_error_answer_without_body_says_so() -> None:
    assert one(from_bytes(b"", status=500), "S005").evidence == "(no message)"


def test_an_error_of_an_unknown_service_is_reported_too() -> None:
    exchange = Exchange.from_body(
        b'data: {"error":"nope"}\n\n', content_type="text/event-stream", url="http://x/other"
    )
    finding = one(exchange, "S005")
    assert (finding.evidence, finding.event) == ("nope", None)


def test_an_answer_without_error_is_fine() -> None:
    assert not found(pasted(TEXT, FINISH_TEXT), "S005")


@pytest.mark.parametrize(
    ("headers", "hint"),
    [
        ((), "a later attempt may succeed: wait longer before each retry, and give up after a few"),
        (((b"Retry-After", b"7"),), "a later attempt may succeed: wait for retry-after, 7 s"),
        (
            ((b"Retry-After", b"Wed, 21 Oct 2026 07:28:00 GMT"),),
            "a later attempt may succeed: wait for retry-after, Wed, 21 Oct 2026 07:28:00 GMT",
        ),
    ],
)
def test_it_says_when_to_ask_again(headers: Headers, hint: str) -> None:
    limited = from_bytes(ANSWER, asks(USER), 429, "application/json")
    assert limited.response
    told = replace(limited, response=replace(limited.response, headers=headers))
    assert one(told, "S005").hint == hint


@pytest.mark.parametrize(
    "said",
    [
        b'{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}',
        b'{"error":{"message":"Your credit balance is too low","type":"rate_limit_error"}}',
    ],
)
def test_a_quota_that_is_used_up_blames_nobody(said: bytes) -> None:
    finding = one(from_bytes(said, asks(USER), 429, "application/json"), "S005")
    assert finding.blame is None
    assert finding.hint.startswith("the account's quota is used up: check its plan")


def test_a_rate_limit_of_the_account_blames_nobody() -> None:
    said = b'{"error":{"message":"Rate limit reached in organization org-x on tokens per min"}}'
    finding = one(from_bytes(said, asks(USER), 429, "application/json"), "S005")
    assert finding.blame is None
    assert finding.hint.startswith("a rate limit of the account: send less at once")


def failed(code: object, message: str, kind: str | None = None) -> Json:
    return {"error": {"message": message, "code": code, "type": kind}}


@pytest.mark.parametrize(
    ("event", "hint"),
    [
        (failed(402, "pay"), "check the API key"),
        (failed("429", "Limit of your organization"), "a rate limit of the account"),
        (failed("rate_limit_exceeded", "on tokens per min"), "a rate limit of the account"),
        (failed("insufficient_quota", "You exceeded your current quota"), "the account's quota"),
        (failed("context_length_exceeded", "Your input exceeds the context window"), "a limit"),
        (failed("data_inspection_failed", "Input is inappropriate"), "a content filter"),
        (failed(None, "litellm.AuthenticationError: Incorrect API key"), "check the API key"),
        (failed(None, "no such request", "invalid_request_error"), "read the message"),
    ],
)
def test_an_error_under_status_200_is_blamed_as_it_is_under_its_own_status(
    event: Json, hint: str
) -> None:
    finding = one(timed((0.1, TEXT), (0.2, event)), "S005")
    assert (finding.severity, finding.blame) == (Severity.ERROR, None)
    assert finding.hint.startswith(hint)
    assert finding.hint.endswith("check every event for an error; this answer is incomplete")


@pytest.mark.parametrize(
    "event",
    [
        failed("server_error", "The maximum was exceeded"),
        failed(None, "Overloaded", "overloaded_error"),
        failed(3, "odd"),
        failed(1002, "odd"),
        failed("\u00b2" * 3, "odd"),
        failed(int("4" * 4000), "odd"),
        failed(429, "busy"),
    ],
)
def test_an_error_of_the_server_under_status_200_is_upstreams(event: Json) -> None:
    finding = one(timed((0.1, TEXT), (0.2, event)), "S005")
    assert (finding.blame, finding.confidence) == (Blame.UPSTREAM, Confidence.PROVEN)


def test_the_failed_response_of_openai_names_its_error_inside() -> None:
    error = {"code": "context_length_exceeded", "message": "Your input exceeds the context window"}
    event = {"type": "response.failed", "response": {"status": "failed", "error": error}}
    body = f"event: response.failed\ndata: {json.dumps(event)}\n\n".encode()
    url = f"{HOST}/v1/responses"
    asked: Json = {"input": "Hi", "stream": True}
    stream = Exchange.from_body(body, content_type="text/event-stream", url=url, request=asked)
    finding = one(stream, "S005")
    assert (finding.blame, finding.hint.split(":")[0]) == (
        None,
        "a limit of the model or the account",
    )


def messages_of(
    analysis: Analysis, *, known: bool = True
) -> list[list[tuple[ContributionKind, str]]]:
    things = brought(analysis.reply, analysis.stream, known=known)
    events = [things.get(event.number, ()) for event in analysis.stream.events]
    return [[(one.what, one.text) for one in here] for here in events]


@pytest.mark.parametrize(
    ("chunk", "things"),
    [
        (choice({"content": "a"}), [(ContributionKind.TEXT, "a")]),
        (choice({"reasoning": "a"}), [(ContributionKind.REASONING, "a")]),
        (choice({"refusal": "a"}), [(ContributionKind.REFUSAL, "a")]),
        (
            choice({"content": "a"}, "stop"),
            [(ContributionKind.TEXT, "a"), (ContributionKind.FINISH, "stop")],
        ),
        (choice({"role": "assistant", "content": ""}), []),
        (choice({}, ""), []),
        ({"choices": [], "usage": {"total_tokens": 3}}, []),
        ({"error": {"code": 1}}, [(ContributionKind.FINISH, "error")]),
        ("[1]", []),
    ],
)
def test_an_event_brings_what_the_reply_holds_of_it(
    chunk: object, things: list[tuple[ContributionKind, str]]
) -> None:
    first, end = messages_of(analyse(pasted(chunk)))
    assert first == things
    assert end == [(ContributionKind.END, "finish_reason and [DONE]")]


def test_a_call_is_opened_and_its_arguments_come_piece_by_piece() -> None:
    analysis = analyse(pasted(*call(), FINISH))
    opened, *pieces, finish, _ = messages_of(analysis)
    assert opened == [(ContributionKind.OPEN, "get")]
    assert [one for piece in pieces for one in piece] == [
        (ContributionKind.ARGUMENTS, '{"a'),
        (ContributionKind.ARGUMENTS, '":1}'),
    ]
    assert finish == [(ContributionKind.FINISH, "tool_calls")]
    things = brought(analysis.reply, analysis.stream, known=True)
    assert things[1] == (
        EventContribution(ContributionKind.ARGUMENTS, '{"a', analysis.reply.tool_calls[0]),
    )


def test_of_an_unknown_stream_every_event_with_data_brings_something() -> None:
    analysis = analyse(pasted(TEXT, " ", done=False))
    data = analysis.stream.events[0].data
    assert messages_of(analysis, known=False) == [[(ContributionKind.UNKNOWN, data)], []]


def test_results_that_an_application_streams_are_brought() -> None:
    frames = ({"type": "tool_result", "name": "get"}, {"type": "done"})
    analysis = analyse(app.told(*frames))
    assert messages_of(analysis) == [
        [(ContributionKind.RESULT, "get")],
        [(ContributionKind.END, "done or error")],
    ]
