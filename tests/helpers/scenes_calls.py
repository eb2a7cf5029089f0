"""Scenes about tool calls: rules T."""

import json
from dataclasses import replace

from helpers import messages, responses
from helpers.bedrock_bodies import chunk
from helpers.chat import FINISH, calls, choice, entry
from helpers.scenes import (
    CALL,
    HEALTHY,
    STOP,
    TEXT,
    Pairs,
    asked,
    chat,
    pair,
    recordings,
    spared,
    spoken,
    weather,
)
from helpers.scenes_wire import response
from helpers.scripted_tapes import Json, Staged

ARGUMENTS = '{"city":"Gent"}'


def one(**function: object) -> dict[str, object]:
    """A whole call in one event."""
    return calls(entry(0, "call_fake0", **function))


def invoked(*frames: messages.Frame) -> Staged:
    """Anthropic's events through Amazon's API, one per read."""
    base = spoken("bedrock-invoke")
    return replace(base, reads=[chunk(frame) for frame in frames])


def written(*pieces: str) -> Staged:
    """A text in `pieces`."""
    return chat(*(choice({"content": piece}) for piece in pieces), STOP)


def padded(*pieces: str) -> list[object]:
    """A call in `pieces`, each event with padding of its own; an equal one is sent again."""
    opened, *deltas = weather(*pieces)
    padding = {json.dumps(one): f"padding{at}" for at, one in enumerate(deltas)}
    return [opened, *({**one, "obfuscation": padding[json.dumps(one)]} for one in deltas)]  # type: ignore[dict-item]


def offering(city: Json) -> Json:
    """A request that offers `get_weather` with this schema of its parameter."""
    parameters: Json = {"type": "object", "properties": {"city": city}, "required": ["city"]}
    function: Json = {"name": "get_weather", "parameters": parameters}
    return asked(tools=[{"type": "function", "function": function}])


STRING: Json = {"type": "string"}


@recordings
def shape() -> Pairs:
    """Rules about what a call is."""
    free: Json = {"name": "get_weather", "parameters": {"type": "object", "properties": {}}}
    nothing = asked(tools=[{"type": "function", "function": free}])
    opened = (messages.start(), messages.tool_block(name="get_weather"))
    ended = (messages.stop(), *messages.END)
    return {
        "T001": pair(chat(*weather(), FINISH), chat(*weather(), FINISH, request=nothing)),
        "T002": pair(
            invoked(
                *opened, messages.piece('{"city": "Gent", "unit": '), messages.piece("K}"), *ended
            ),
            invoked(
                *opened, messages.piece('{"city": "Gent", "unit": '), messages.piece('"K"}'), *ended
            ),
        ),
        "T003": pair(chat(*weather('{"city":', '"Ge'), FINISH), chat(*HEALTHY)),
        "T004": pair(chat(one(arguments=ARGUMENTS), FINISH), chat(*HEALTHY)),
        "T005": pair(
            spoken("mistral", lambda piece: piece.replace(b'"id":"fakeGent0",', b"")),
            spoken("mistral"),
        ),
        "T006": pair(
            chat(one(name="get_weather", arguments=json.dumps(ARGUMENTS)), FINISH),
            chat(one(name="get_weather", arguments=ARGUMENTS), FINISH),
        ),
        "T007": pair(
            spoken("gemini", ask=lambda text: text.replace("get_weather", "weather_now")),
            spoken("gemini"),
        ),
        "T008": spared(
            pair(
                spoken("cohere", ask=lambda text: text.replace('"integer"', '"string"')),
                spoken("cohere"),
            ),
            default_null=chat(
                *weather('{"city":null}'), FINISH, request=offering({**STRING, "default": None})
            ),
        ),
        "T027": spared(
            pair(
                chat(*padded('{"city":"', "Gent", "Gent", '"}'), FINISH),
                chat(*padded('{"city":"', "Gent", '"}'), FINISH),
            ),
            repeated_words=chat(*weather('{"city":"', "Baden-", "Baden-", '"}'), FINISH),
            numbers=chat(*weather('{"city":"1', "000", "000", '"}'), FINISH),
        ),
        "T025": pair(
            chat(TEXT, STOP, request=asked(tool_choice="required")),
            chat(*HEALTHY, request=asked(tool_choice="required", parallel_tool_calls=False)),
        ),
        "T024": pair(chat(*HEALTHY, request=asked(tool_choice="none")), chat(*HEALTHY)),
    }


@recordings
def joined() -> Pairs:
    """Rules about how the pieces of a call belong together."""
    healthy = chat(*HEALTHY)
    named = calls(entry(0, name="get_weather", arguments=""))
    other = calls(entry(0, "call_fake9", arguments='"Gent"}'))
    unnumbered = calls(entry(None, "call_fake0", name="get_weather", arguments=ARGUMENTS))
    halves = (
        calls(entry(0, "call_fake0", name="get_wea", arguments="")),
        calls(entry(0, name="ther", arguments="")),
    )
    return {
        "T009": pair(chat(CALL[0], named, *CALL[1:], FINISH), healthy),
        "T010": pair(chat(*CALL[:2], other, FINISH), healthy),
        "T011": pair(chat(unnumbered, FINISH), healthy),
        "T013": pair(chat(*weather(ARGUMENTS, index=1), FINISH), healthy),
        "T014": pair(chat(*weather('{"city":', ARGUMENTS), FINISH), healthy),
        "T016": pair(chat(*weather(ARGUMENTS, "}"), FINISH), healthy),
        "T017": pair(chat(*weather("{}", ARGUMENTS), FINISH), healthy),
        "T021": pair(chat(*halves, *CALL[1:], FINISH), healthy),
    }


@recordings
def content() -> Pairs:
    """Rules about what whole arguments say."""
    code = '{"city":"Gent:%s    Ledeberg%s"}'
    twice, once = (chat(*weather(code % (line, line)), FINISH) for line in (r"\\n", r"\n"))
    repeated = choice({"content": ARGUMENTS})
    return {
        "T022": pair(twice, once),
        "T023": pair(
            chat(repeated, *weather(ARGUMENTS), FINISH), chat(*weather(ARGUMENTS), FINISH)
        ),
    }


def free(*inputs: str) -> list[responses.Object]:
    """Calls of a custom tool with these inputs, the last event included."""
    items: list[responses.Object] = [
        {
            "id": f"ctc_{at}",
            "type": "custom_tool_call",
            "call_id": f"call_{at}",
            "name": "run",
            "input": text,
        }
        for at, text in enumerate(inputs)
    ]
    told = [
        event
        for at, item in enumerate(items)
        for event in (responses.added({**item, "input": ""}, at), responses.done(item, at))
    ]
    return [responses.created(), *told, responses.ended(*items)]


@recordings
def several() -> Pairs:
    """Rules about several calls, and several sources of one."""
    first, rome = weather(ARGUMENTS), '{"city":"Rome"}'
    second = calls(entry(0, "call_fake1", name="get_weather", arguments=rome))
    two = chat(*first, *weather(rome, index=1), FINISH)
    item = responses.function('{"a":2}')
    disagree = (
        responses.created(),
        *responses.call()[:-2],
        responses.part("function_call_arguments.done", arguments='{"a":2}'),
        responses.done(item),
        responses.ended(item),
    )
    ended = responses.ended(responses.function('{"a":1}'))
    return {
        "T012": pair(chat(*first, second, FINISH), two),
        "T015": pair(response(*disagree), response(responses.created(), *responses.call(), ended)),
        "T020": spared(
            pair(chat(*first, *weather(ARGUMENTS, index=1), FINISH), two),
            free_text=response(*free("print(1)", "print(2)")),
        ),
    }


@recordings
def in_text() -> Pairs:
    """Rules about calls that the model wrote into its text."""
    call = '{"name": "get_weather", "arguments": {"city": "Gent"}}'
    tagged = ("I look it up. <tool_call>\n", call, "\n</tool_call>")
    prose = ("The tag is called `tool_call`, and ", "its arguments are JSON.")
    return {
        "T018": spared(
            pair(written(*tagged), written(*prose)),
            quoted=written("Models write <tool_call>", call, "</tool_call> to call a tool."),
            code_block=written("Models write so:\n```\n<tool_call>", call, "</tool_call>\n```\n"),
            asked_about=replace(
                written(*tagged),
                request=asked(messages=[{"role": "user", "content": "What is <tool_call> for?"}]),
            ),
        ),
        "T019": pair(written(*tagged[:1], call[:30]), written(*prose)),
    }
