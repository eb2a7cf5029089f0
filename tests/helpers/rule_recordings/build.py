"""Exchanges for recordings of rules: requests and replies of several APIs, each in one call."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from helpers import messages, responses
from helpers.chat import FINISH, calls, choice, entry, sse
from helpers.exchanges import FINISH_TEXT, TEXT, assistant, result, user
from helpers.rule_recordings.tape import Json, ScriptedExchange, TimedRead
from helpers.sample_streams import sample_stream

Recordings = Mapping[str, Mapping[str, ScriptedExchange | Sequence[ScriptedExchange]]]
"""By the code of a rule and the name of the tape: its exchanges."""

DONE = b"data: [DONE]\n\n"
QUESTION = "What is the weather in Gent?"
GENT, ROME = '{"city":"Gent"}', '{"city":"Rome"}'
CITY: Json = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}


USER = user(QUESTION)


def tool(name: str, parameters: Json | None = None, **properties: object) -> Json:
    """A tool that a request offers, by the schema of its parameters or of each of them."""
    schema = parameters or {"type": "object", "properties": properties}
    return {"type": "function", "function": {"name": name, "parameters": schema}}


WEATHER_TOOL = tool("get_weather", CITY)


def exchange(
    reply: Sequence[object], request: Json, *, done: bool = True, at_s: float | None = None
) -> ScriptedExchange:
    """Chat Completions, an event of `reply` per read; bytes, timed or not, are sent as they are.

    Args:
        reply: the events.
        request: members of the request; without others it asks `QUESTION` and offers a tool.
        done: whether the sentinel follows the events.
        at_s: see `ScriptedExchange`.
    """
    reads = [
        event if isinstance(event, bytes | tuple) else sse(event, done=False) for event in reply
    ]
    default: Json = {"model": "m", "stream": True, "messages": [USER], "tools": [WEATHER_TOOL]}
    return ScriptedExchange(
        reads=[*reads, *([DONE] if done else [])], request={**default, **request}, at_s=at_s
    )


def chat(
    *events: object, done: bool = True, at_s: float | None = None, **request: object
) -> ScriptedExchange:
    """`exchange` by its events and the members of its request."""
    return exchange(events, request, done=done, at_s=at_s)


def request_with(
    *messages: Json,
    reply: Sequence[object] = (TEXT, FINISH_TEXT),
    at_s: float | None = None,
    **request: object,
) -> ScriptedExchange:
    """An exchange whose request has only these messages."""
    return exchange(reply, {"messages": list(messages), **request}, at_s=at_s)


def next_turn(
    *history: Json,
    reply: Sequence[object] = (TEXT, FINISH_TEXT),
    at_s: float | None = None,
    **request: object,
) -> ScriptedExchange:
    """An exchange whose request has `history` after the user's first question."""
    return exchange(reply, {"messages": [USER, *history], **request}, at_s=at_s)


def text_reply(*pieces: str) -> list[object]:
    """The events of an answer in text."""
    return [*(choice({"content": piece}) for piece in pieces), FINISH_TEXT]


def weather_call(
    *pieces: str, name: str = "get_weather", index: int = 0, call_id: str = ""
) -> list[object]:
    """The events of a call, its arguments in `pieces`; by default its id has the index."""
    opened = calls(entry(index, call_id or f"call_fake{index}", name=name, arguments=""))
    return [opened, *(calls(entry(index, arguments=piece)) for piece in pieces)]


CALL = weather_call('{"city":', '"Gent"}')
CALL_REPLY = (*CALL, FINISH)
ONE_CALL = chat(*CALL_REPLY)
TWO_CALLS = chat(*weather_call(GENT), *weather_call(ROME, index=1), FINISH)
CALLS = [("call_fake0", "get_weather", GENT), ("call_fake1", "get_weather", ROME)]
"""`TWO_CALLS` as a history repeats them: id, name and arguments of each."""


def with_results(*repeated: tuple[str, str, str]) -> list[Json]:
    """The messages of a history that repeat calls and bring their results."""
    return [assistant(*repeated), *(result(call_id, "13 °C") for call_id, _, _ in repeated)]


STEP = with_results(CALLS[0])
ASKS, RESULT = STEP


def error_reply(
    status: int, body: bytes, content_type: str = "application/json"
) -> ScriptedExchange:
    """An answer that is only an error."""
    return replace(chat(body, done=False), status=status, content_type=content_type)


def anthropic(
    *frames: messages.Frame, named: bool = True, request: Json | None = None
) -> ScriptedExchange:
    """A stream of Anthropic's, an event per read."""
    return ScriptedExchange(
        reads=[messages.sse(frame, named=named) for frame in frames],
        request=request or messages.request(get={"type": "object"}),
        host="https://api.anthropic.com",
        target="/v1/messages",
    )


GREETING = (
    messages.start(),
    messages.text_block(),
    messages.text("Hello"),
    messages.stop(),
    messages.reason("end_turn"),
    messages.STOP,
)
"""Anthropic's events of an answer in text."""


def openai_responses(*events: responses.Object, request: Json | None = None) -> ScriptedExchange:
    """A stream of the Responses API, an event per read."""
    base = ScriptedExchange(
        reads=[responses.sse(event) for event in events], target="/v1/responses"
    )
    return replace(base, request=request or base.request)


def openai_responses_text(text: str, request: Json) -> ScriptedExchange:
    """An answer of the Responses API in text, with an id of its own."""
    begun = responses.response("in_progress", id="resp_fake2")
    message = responses.message(text)
    return openai_responses(
        {"type": "response.created", "response": begun},
        responses.added(responses.message()),
        responses.say(text),
        responses.done(message),
        responses.ended(message, id="resp_fake2"),
        request=request,
    )


def sample(
    name: str,
    edit: tuple[bytes, bytes] = (b"", b""),
    edit_request: tuple[str, str] = ("", ""),
    pause: tuple[int, float] = (0, 0.0),
) -> ScriptedExchange:
    """A changed copy of a healthy stream of recordings/dialects.

    Args:
        name: of the tape.
        edit: the old and the new bytes, replaced in each piece of the response; one must have them.
        edit_request: the old and the new text in the request's JSON, which must have it.
        pause: the number of a piece, and the seconds to wait before it.
    """
    stream = sample_stream(name)
    number, seconds = pause
    reads: list[TimedRead] = [
        (0.02 * (at + 1) + (seconds if at >= number else 0.0), _edited(piece, edit))
        for at, piece in enumerate(stream.pieces)
    ]
    assert edit[0] in b"\0".join(stream.pieces), f"no piece of {name} has {edit[0]!r}"
    old, new = edit_request
    request = json.dumps(stream.request)
    assert old in request, f"the request of {name} has no {old!r}"
    return ScriptedExchange(
        reads=reads,
        request=json.loads(request.replace(old, new) if old else request),
        host=stream.upstream,
        target=stream.target,
        content_type=stream.headers["Content-Type"],
        headers=tuple(stream.headers.items())[1:],
    )


def _edited(piece: bytes, edit: tuple[bytes, bytes]) -> bytes:
    old, new = edit
    return piece.replace(old, new) if old else piece
