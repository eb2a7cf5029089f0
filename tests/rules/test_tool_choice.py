import pytest

from deltatape.conversation import check_conversation
from deltatape.model.exchange import Exchange
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.model.rule_settings import DEFAULTS
from deltatape.rules.small_talk import small_talk
from helpers import messages, responses
from helpers.chat import FINISH, choice
from helpers.exchanges import (
    CALL_REPLY,
    FINISH_TEXT,
    TEXT,
    TEXT_REPLY,
    USER,
    asks,
    assistant,
    call,
    digests,
    found,
    one,
    pasted,
    result,
    user,
)
from helpers.gemini import STREAM, candidate
from helpers.gemini import sse as gemini_sse

TOOLS = [{"type": "function", "function": {"name": name}} for name in ("get", "put")]
GET = {"type": "function", "function": {"name": "get"}}


@pytest.mark.parametrize(
    ("choice", "called"), [("none", "get"), (GET, "put")], ids=["none", "another"]
)
def test_a_call_that_the_request_forbids_is_reported(choice: object, called: str) -> None:
    request = asks(USER, tools=TOOLS, tool_choice=choice)
    finding = one(pasted(*call(called), FINISH, request=request), "T024")
    assert (finding.severity, finding.blame) == (Severity.ERROR, Blame.UPSTREAM)
    assert finding.confidence is Confidence.PROVEN
    assert f"call 0 ({called}" in finding.message


@pytest.mark.parametrize("choice", [None, "auto", "required", GET])
def test_calls_that_are_allowed_are_fine(choice: object) -> None:
    request = asks(USER, tools=TOOLS, tool_choice=choice)
    assert not found(pasted(*call(), FINISH, request=request), "T024")


def test_a_choice_that_names_no_offered_tool_says_nothing() -> None:
    request = asks(USER, tools=TOOLS[1:], tool_choice=GET)
    assert not found(pasted(*call("put"), FINISH, request=request), "T024")


TWO = (*call(), *call("put", '{"b":2}', 1), FINISH)


def told(*chunks: object, **request: object) -> list[str]:
    """The messages of the findings."""
    exchange = pasted(*chunks, request=asks(USER, tools=TOOLS, **request))
    return [finding.message for finding in found(exchange, "T025")]


def test_several_calls_where_one_is_allowed() -> None:
    request = asks(USER, tools=TOOLS, parallel_tool_calls=False)
    finding = one(pasted(*TWO, request=request), "T025")
    assert finding.message == (
        "the request forbids parallel calls, and the reply has 2: call 0 (get), call 1 (put)"
    )
    assert (finding.blame, finding.confidence) == (Blame.UPSTREAM, Confidence.LIKELY)
    assert finding.severity is Severity.ERROR
    assert [each.because for each in finding.excluded] == ["their names or arguments differ"]


def test_equal_calls_may_be_one_that_was_sent_twice() -> None:
    request = asks(USER, tools=TOOLS, parallel_tool_calls=False)
    finding = one(pasted(*call(), *call(index=1), FINISH, request=request), "T025")
    assert (finding.confidence, finding.excluded) == (Confidence.POSSIBLE, ())


@pytest.mark.parametrize("allowed", [{}, {"parallel_tool_calls": True}])
def test_several_calls_are_fine_where_nothing_forbids_them(allowed: dict[str, object]) -> None:
    assert not told(*TWO, **allowed)


def test_one_call_is_fine() -> None:
    assert not told(*call(), FINISH, parallel_tool_calls=False, tool_choice="required")


@pytest.mark.parametrize("wanted", ["required", "any", GET])
def test_no_call_where_one_is_demanded(wanted: object) -> None:
    request = asks(USER, tools=TOOLS, tool_choice=wanted)
    finding = one(pasted(TEXT, FINISH_TEXT, request=request), "T025")
    name = wanted if isinstance(wanted, str) else "get"
    assert finding.message == (
        f"the tool choice {name!r} requires a call, but the reply has none (finish reason 'stop')"
    )
    assert (finding.severity, finding.blame) == (Severity.ERROR, Blame.UPSTREAM)
    assert finding.evidence == "Hello"


@pytest.mark.parametrize(
    "chunks",
    [
        (TEXT, choice({}, "length")),
        (TEXT, choice({}, "content_filter")),
        (choice({"refusal": "I can't."}), FINISH_TEXT),
        (TEXT, {"error": {"message": "overloaded"}}),
        (TEXT,),
        (choice({"content": '<tool_call>{"name":"get","arguments":{}}</tool_call>'}), FINISH_TEXT),
    ],
    ids=["length", "filter", "refusal", "error", "cut", "text"],
)
def test_a_reply_that_was_kept_from_calling_is_fine(chunks: tuple[object, ...]) -> None:
    exchange = pasted(
        *chunks, request=asks(USER, tools=TOOLS, tool_choice="required"), done=len(chunks) > 1
    )
    assert not found(exchange, "T025")


@pytest.mark.parametrize("free", [None, "auto", "none", {"type": "function"}])
def test_text_is_fine_where_no_call_is_demanded(free: object) -> None:
    assert not told(TEXT, FINISH_TEXT, tool_choice=free)


def test_a_named_tool_that_is_not_offered_and_no_tools_at_all_say_nothing() -> None:
    assert not told(TEXT, FINISH_TEXT, tool_choice={"type": "function", "function": {"name": "x"}})
    request = asks(USER, tool_choice="required")
    assert not found(pasted(TEXT, FINISH_TEXT, request=request), "T025")


def test_a_server_that_documents_to_ignore_it_is_not_blamed() -> None:
    chunk = {**TEXT, "system_fingerprint": "fp_ollama"}
    request = asks(USER, tools=TOOLS, tool_choice="required")
    finding = one(pasted(chunk, FINISH_TEXT, request=request), "T025")
    assert (finding.severity, finding.blame) == (Severity.INFO, None)
    assert finding.message.endswith("; this server documents that it ignores it")


def of_messages(request: messages.Frame, *frames: messages.Frame) -> Exchange:
    body = messages.sse(*frames)
    return Exchange.from_body(
        body, content_type="text/event-stream", url=messages.URL, request=request
    )


def test_messages_forbid_parallel_calls_in_their_tool_choice() -> None:
    choice = {"type": "any", "disable_parallel_tool_use": True}
    request = {**messages.request(get={"type": "object"}), "tool_choice": choice}
    blocks = [
        frame
        for at in range(2)
        for frame in (
            messages.tool_block(at, f"c{at}"),
            messages.piece("{}", at),
            messages.stop(at),
        )
    ]
    assert one(of_messages(request, messages.start(), *blocks, *messages.END), "T025")
    free = {**request, "tool_choice": {"type": "any"}}
    assert not found(of_messages(free, messages.start(), *blocks, *messages.END), "T025")


def test_responses_forbid_parallel_calls_and_tools_of_the_provider_are_calls() -> None:
    tools = [{"type": "function", "name": "get"}, {"type": "web_search"}]
    request = {"model": "m", "input": "Hi", "tools": tools, "parallel_tool_calls": False}
    both = [*responses.call(), *responses.call('{"a":2}', 1, 2)]
    listed = [responses.function('{"a":1}'), responses.function('{"a":2}', 2)]
    seen = responses.codes(responses.created(), *both, responses.ended(*listed), request=request)
    assert "T025" in seen
    required = {**request, "tool_choice": "required"}
    search = {"id": "ws_1", "type": "web_search_call", "status": "completed"}
    done = (responses.added(search), responses.done(search))
    answer = responses.ended(search)
    assert "T025" not in responses.codes(responses.created(), *done, answer, request=required)
    assert "T025" in responses.codes(
        responses.created(), responses.ended(responses.message("Hi")), request=required
    )


def test_a_mode_of_gemini_demands_a_call() -> None:
    request = {
        "contents": [{"parts": [{"text": "Hi"}]}],
        "tools": [{"functionDeclarations": [{"name": "get"}]}],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
    }
    body = gemini_sse(candidate({"text": "Hello"}, finish="STOP"))
    exchange = Exchange.from_body(
        body, content_type="text/event-stream", url=STREAM, request=request
    )
    assert one(exchange, "T025").blame is Blame.UPSTREAM


def talk(request: dict[str, object], chunks: list[object]) -> list[Finding]:
    found = check_conversation(digests((request, chunks)))
    return [finding for finding in found if finding.code == "C007"]


def test_a_farewell_needs_no_tool() -> None:
    (finding,) = talk(
        asks(USER, assistant(text="13 °C."), user("Thanks, that's all, bye!")), CALL_REPLY
    )
    assert finding.message == ("the user only says 'thanks thats all bye', but the model calls get")
    assert (finding.severity, finding.blame) == (Severity.INFO, Blame.MODEL)
    assert (finding.confidence, finding.evidence) == (Confidence.LIKELY, '{"a":1}')


def test_a_call_that_is_written_into_the_text_is_one_too() -> None:
    written = choice({"content": '<tool>{"tool_name": "list", "arguments": {"path": "."}}</tool>'})
    (finding,) = talk(asks(user("bye")), [written, FINISH_TEXT])
    assert finding.message.endswith("the model calls list")


def test_a_call_without_name_and_arguments_is_reported() -> None:
    (finding,) = talk(asks(user("bye")), [*call(name="", arguments=""), FINISH])
    assert finding.message.endswith("the model calls a tool without a name")
    assert finding.evidence == "(no arguments)"


@pytest.mark.parametrize(
    "request_",
    [
        asks(user("Thanks! And tomorrow?")),
        asks(user("Yes, thanks")),
        asks(user("bye"), assistant(("c1", "get", "{}")), result("c1")),
        asks(user("bye"), tool_choice="required"),
        asks(),
    ],
)
def test_where_something_else_is_said_or_a_call_is_forced_nothing_is_reported(
    request_: dict[str, object],
) -> None:
    assert not talk(request_, CALL_REPLY)


def test_an_answer_in_words_is_what_is_wanted() -> None:
    assert not talk(asks(user("bye")), TEXT_REPLY)


def words(text: str) -> str:
    return small_talk(text, DEFAULTS.small_talk_words, DEFAULTS.small_talk)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Hi", "hi"),
        ("  Thanks!! \U0001f44b\n", "thanks"),
        ("thanks, that's all I need, bye!", "thanks thats all i need bye"),
        ("Thank you so much; see you tomorrow.", "thank you so much see you tomorrow"),
        ("Tschüß!", "tschuss"),
        ("À bientôt", "a bientot"),
    ],
)
def test_greetings_thanks_and_farewells(text: str, said: str) -> None:
    assert words(text) == said


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\U0001f44b",
        "yes, thanks",
        "ok",
        "stop",
        "Hello?",
        "Thanks, and tomorrow",
        "hello world",
        "thanks <note>",
        "bye 2",
        "thanks " * 13,
        "bye" + " " * 400,
    ],
)
def test_what_says_anything_else_is_none(text: str) -> None:
    assert words(text) == ""


def test_phrases_and_the_length_are_settings() -> None:
    assert small_talk("Ahoy, matey", 2, ["ahoy", "MATEY"]) == "ahoy matey"
    assert small_talk("Ahoy, matey", 1, ["ahoy", "matey"]) == ""
    assert small_talk("ahoy", 9, []) == ""
