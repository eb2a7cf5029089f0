"""Recordings about an application's own events and about silence: rules A and D."""

from dataclasses import replace

from deltatape.model.exchange import EndReason, Tap
from helpers import responses
from helpers.app import available, call, done, output, result, text
from helpers.chat import choice, sse
from helpers.exchanges import FINISH_TEXT, TEXT
from helpers.rule_recordings.build import (
    CALL_REPLY,
    DONE,
    ONE_CALL,
    QUESTION,
    STEP,
    Recordings,
    chat,
    next_turn,
    openai_responses,
    sample,
)
from helpers.rule_recordings.tape import Json, ScriptedExchange


def app(*events: Json, at_s: float | None = None) -> ScriptedExchange:
    """An application's stream to its page, an event per read."""
    return ScriptedExchange(
        reads=[sse(event, done=False) for event in events],
        request={"message": QUESTION},
        host="http://127.0.0.1:3000",
        target="/agent/stream",
        tap=Tap.APP,
        at_s=at_s,
    )


def ai_sdk(*events: Json) -> ScriptedExchange:
    """The same in the events of the AI SDK."""
    start: list[Json] = [{"type": "start", "messageId": "m"}, {"type": "start-step"}]
    finish: Json = {"type": "finish", "finishReason": "stop"}
    base = app(*start, *events, finish)
    return replace(
        base,
        reads=[*base.reads, DONE],
        target="/api/chat",
        headers=(("x-vercel-ai-ui-message-stream", "v1"),),
    )


LOOK, DEGREES = text("I look it up."), text(" It is 13 °C.")
WEATHER = app(LOOK, call(), result(), DEGREES, done())
SHOWN = (available(), output())
REPORT = available("c2", name="write_report")
ANSWER = (text("It is 13 °C,"), text(" and <b>windy</b>."))


def tool_call(call_id: str, name: str, **more: object) -> Json:
    """An event about a call with an id; `more` are other members, such as the arguments."""
    return {"type": "tool_call", "callId": call_id, "name": name, **more}


def tool_result(call_id: str, name: str, value: str) -> Json:
    """The result of a call with an id."""
    return {"type": "tool_result", "callId": call_id, "name": name, "result": value}


WHOLE = tool_call("c1", "get", arguments={"a": 1})
SHOWN_RESULT = tool_result("c1", "get", "13 °C")

ROLE = choice({"role": "assistant", "content": ""})
LEFT = replace(next_turn(*STEP), reads=[], end_s=30.0, reason=EndReason.CLIENT_CLOSED)
HELLO = chat(TEXT, FINISH_TEXT)
HELLO_SIZE = sum(len(read) for read in HELLO.reads)

RECORDINGS: Recordings = {
    "A001": {
        "fires": app(call(None), result(), done()),
        "silent": WEATHER,
        "silent-named-elsewhere": app(
            {"type": "tool_call", "callId": "c1", "toolName": "get", "args": {"a": 1}},
            {"type": "tool_result", "callId": "c1"},
            done(),
        ),
    },
    "A002": {
        "fires": app(call("get", 10), result(), done()),
        "silent": WEATHER,
        "silent-string-of-json": app(call("get", '{"a": 1}'), result(), done()),
        "silent-command": app(call("bash", "ls -l"), result("bash"), done()),
        "silent-arguments-follow": app(
            {**tool_call("c1", "get"), "type": "tool_call_start"}, WHOLE, SHOWN_RESULT, done()
        ),
        "silent-arguments-not-shown": app({"type": "tool_call", "name": "get"}, result(), done()),
    },
    "A003": {
        "fires": ai_sdk(*SHOWN, available("c2", value={"a": 2})),
        "silent": ai_sdk(*SHOWN),
        "silent-run-by-the-page": app(call("search"), result("search"), call("confirm"), done()),
        "silent-results-not-told": app(
            call("get_weather"), call("get_time"), text("It is 13 °C."), done()
        ),
        "silent-no-result-in-the-events-of-a-library": ai_sdk(
            available(), available("c2", name="get_time")
        ),
        "silent-told-in-a-later-stream": [
            app(
                WHOLE,
                SHOWN_RESULT,
                tool_call("c2", "write_report", arguments={}),
                text("The report is being written."),
                done(),
            ),
            app(
                tool_result("c2", "write_report", "3 p."),
                text("Here is the report."),
                done(),
                at_s=30.0,
            ),
        ],
        "silent-one-tool-in-the-background": ai_sdk(*SHOWN, REPORT),
    },
    "A004": {
        "fires": app(call(), result(), call("get", {"a": 2})),
        "silent": WEATHER,
        "silent-no-last-event": app(LOOK, DEGREES),
        "silent-done-per-step": app(LOOK, done(), text("It is 13 °C."), done()),
    },
    "A005": {
        "fires": app(text("Hello"), done(), done()),
        "silent": app(text("Hello"), done()),
        "silent-done-per-step": app(text("Hello"), done(), text("Bye"), done()),
    },
    "A006": {
        "fires": app(LOOK, call(), result(), DEGREES, done("")),
        "silent": app(LOOK, call(), result(), DEGREES, done("I look it up. It is 13 °C.")),
        "silent-another-content": app(text("It is 13 °C."), done("weather in Gent")),
        "silent-nothing-by-contract": app(*ANSWER, done("")),
        "silent-one-word": app(*ANSWER, done("ok")),
        "silent-formatted": app(*ANSWER, done("It is 13 °C, and windy.")),
    },
    "D001": {
        "fires": sample("gemini-interactions", pause=(9, 12.0)),
        "silent": sample("gemini-interactions", pause=(9, 8.0)),
        "silent-recorder-held-up": replace(
            sample("gemini-interactions", pause=(9, 15.0)), held_up=True
        ),
        "silent-thinks": sample("openai-chat", pause=(1, 75.0)),
    },
    "D002": {
        "fires": chat(ROLE, FINISH_TEXT),
        "silent": chat(ROLE, TEXT, FINISH_TEXT),
        "silent-structured": chat(
            ROLE, FINISH_TEXT, tools=[], guided_choice=["", "It is raining."]
        ),
        "silent-cancelled": openai_responses(
            responses.created(), responses.ended(status="cancelled")
        ),
        "silent-stop-sequence": chat(ROLE, choice({}, "stop_sequence")),
    },
    "D003": {
        "fires": replace(ONE_CALL, stop_s=45.0),
        "silent": [ONE_CALL, replace(next_turn(*STEP), stop_s=45.0)],
        "silent-recorder-lost-some": replace(chat(*CALL_REPLY), lost=frozenset({1}), stop_s=45.0),
    },
    "D004": {
        "fires": LEFT,
        "silent": next_turn(*STEP),
        "silent-recorder-held-up": replace(LEFT, held_up=True),
    },
    "D005": {
        "fires": replace(HELLO, delivered=((3.0, HELLO_SIZE),)),
        "silent": replace(HELLO, delivered=((0.3, HELLO_SIZE),)),
    },
}
