"""Conversations whose tools are on an MCP server that is on the tape, too (C023 to C026)."""

import json
from dataclasses import replace

from deltatape.model.exchange import EndReason
from helpers.chat import FINISH
from helpers.exchanges import assistant, result
from helpers.rule_recordings.build import (
    GENT,
    ONE_CALL,
    ROME,
    TWO_CALLS,
    WEATHER_TOOL,
    Recordings,
    chat,
    next_turn,
    tool,
    weather_call,
)
from helpers.rule_recordings.tape import Json, ScriptedExchange

SERVER = "http://weather.stdio.invalid"
ANSWER = "Gent: 21 C"
LONG = 9007199254740993
ORDER = json.dumps({"id": LONG})
ORDER_TOOL = tool("get_order", id={"type": "integer"})


def message(
    method: str, params: Json, answer: Json | None, number: int = 1, at_s: float | None = None
) -> ScriptedExchange:
    """A request to the server; None: it ends without an answer."""
    asked: Json = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    told = json.dumps({"jsonrpc": "2.0", "id": number, **(answer or {})}, ensure_ascii=False)
    return ScriptedExchange(
        reads=[] if answer is None else [told.encode()],
        request=asked,
        host=SERVER,
        target="/mcp",
        content_type="application/json",
        reason=EndReason.COMPLETE if answer is not None else EndReason.UPSTREAM_CLOSED,
        at_s=at_s,
    )


def listing(*names: str) -> ScriptedExchange:
    """The server's tools."""
    return message("tools/list", {}, {"result": {"tools": [{"name": name} for name in names]}})


def served(
    arguments: str, *texts: str, name: str = "get_weather", failed: bool = False
) -> ScriptedExchange:
    """A call that the server answers with these texts."""
    content = [{"type": "text", "text": text} for text in texts]
    params: Json = {"name": name, "arguments": json.loads(arguments)}
    return message("tools/call", params, {"result": {"content": content, "isError": failed}})


LIST = listing("get_weather", "get_order")


def told(text: str, repeated: str = GENT, name: str = "get_weather") -> ScriptedExchange:
    """The request with the result."""
    return next_turn(
        assistant(("call_fake0", name, repeated)),
        result("call_fake0", text),
        tools=[WEATHER_TOOL, ORDER_TOOL],
    )


def witnesses(asked: str, text: str = ANSWER) -> list[ScriptedExchange]:
    """The model asks for Gent, the app asks the server for `asked`, and says so to nobody."""
    return [LIST, ONE_CALL, served(asked, text), told(text)]


def answered(text: str, history: str, *, failed: bool = False) -> list[ScriptedExchange]:
    """The server says one thing, the history another."""
    return [LIST, ONE_CALL, served(GENT, text, failed=failed), told(history)]


def not_asked(history: str) -> list[ScriptedExchange]:
    """A result without a question."""
    return [LIST, ONE_CALL, told(history)]


def ordered(number: int) -> list[ScriptedExchange]:
    """A call with a long integer."""
    call = chat(*weather_call(ORDER, name="get_order"), FINISH, tools=[ORDER_TOOL])
    asked = served(json.dumps({"id": number}), "Shipped.", name="get_order")
    return [LIST, call, asked, told("Shipped.", ORDER, "get_order")]


RECORDINGS: Recordings = {
    "C023": {
        "fires": ordered(LONG - 1),
        "silent": ordered(LONG),
        "silent-defaults-are-added": witnesses('{"city":"Gent","unit":"C"}'),
        "silent-wrapped": witnesses('{"input":{"city":"Gent"}}'),
        "silent-renamed": witnesses('{"town":"Gent"}'),
        "silent-respelled": witnesses('{"city":"gent "}'),
        "silent-some-are-left-out": [
            LIST,
            chat(*weather_call('{"city":"Gent","detail":"high"}'), FINISH),
            served(GENT, ANSWER),
            told(ANSWER, '{"city":"Gent","detail":"high"}'),
        ],
        "silent-the-history-says-so": [
            LIST,
            ONE_CALL,
            served('{"city":"Ghent, Belgium"}', ANSWER),
            told(ANSWER, '{"city":"Ghent, Belgium"}'),
        ],
        "silent-of-another-conversation": [
            LIST,
            chat(
                *weather_call(ROME, call_id="call_other"),
                FINISH,
                messages=[{"role": "user", "content": "Rome?"}],
            ),
            ONE_CALL,
            served(ROME, "Rome: 30 C"),
            told("The tool is not available."),
        ],
        "silent-a-placeholder": [
            LIST,
            chat(*weather_call('{"city":"${CITY}"}'), FINISH),
            served(GENT, ANSWER),
            told(ANSWER, '{"city":"${CITY}"}'),
        ],
    },
    "C024": {
        "fires": not_asked("Sunny, 25 degrees"),
        "silent": answered(ANSWER, ANSWER),
        "silent-denied": not_asked("The user denied the call."),
        "silent-remembered": [LIST, served(GENT, ANSWER), ONE_CALL, told(ANSWER)],
        "silent-not-taped": [listing("get_order"), ONE_CALL, told("Sunny, 25 degrees")],
        "silent-in-the-background": not_asked("Started; ask for its state later."),
        "silent-unclear": [
            LIST,
            TWO_CALLS,
            served('{"city":"Paris"}', "Paris: 20 C"),
            next_turn(
                assistant(("call_fake0", "get_weather", GENT), ("call_fake1", "get_weather", ROME)),
                result("call_fake0", "Paris: 20 C"),
                result("call_fake1", "Paris: 20 C"),
            ),
        ],
    },
    "C025": {
        "fires": answered(ANSWER, ""),
        "silent": answered(ANSWER, ANSWER),
        "silent-a-part": answered(f"{ANSWER}, wind from the west", ANSWER),
        "silent-with-more": answered(ANSWER, f"Result of get_weather:\n{ANSWER}\n(1 item)"),
        "silent-reformatted": answered(ANSWER, "In Gent it is 21 degrees."),
        "silent-summarised": answered("The forecast of the week. " * 20, "Nothing special."),
        "silent-redacted": answered("Call me: 555-0199", "[REDACTED]"),
        "silent-an-error": answered("no such city", "Tool call failed.", failed=True),
        "silent-asked-again": [
            LIST,
            ONE_CALL,
            served(GENT, ANSWER),
            served(GENT, "nobody reads this"),
            told(ANSWER),
        ],
    },
    "C026": {
        "fires": [
            LIST,
            ONE_CALL,
            message("tools/call", {"name": "get_weather", "arguments": {"city": "Gent"}}, None),
            told("MCP error -32000: Connection closed"),
        ],
        "silent": answered(ANSWER, ANSWER),
        "silent-an-ordinary-error": answered("no such city", "no such city", failed=True),
        "silent-taken-back": [
            LIST,
            ONE_CALL,
            replace(
                message("tools/call", {"name": "get_weather", "arguments": {"city": "Gent"}}, None),
                reason=EndReason.CLIENT_CLOSED,
            ),
            told("The call was cancelled."),
        ],
        "silent-elsewhere": [
            LIST,
            ONE_CALL,
            replace(
                message("tools/call", {"name": "get_weather", "arguments": {"city": "Gent"}}, None),
                host="http://127.0.0.1:8000",
                reads=[b": wait\n\n"],
                content_type="text/event-stream",
            ),
            told(ANSWER),
        ],
    },
}
