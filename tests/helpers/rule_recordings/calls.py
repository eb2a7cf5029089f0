"""Recordings about tool calls: rules T."""

import json
from dataclasses import replace

from helpers import messages, responses
from helpers.bedrock_bodies import chunk
from helpers.chat import FINISH, calls, choice, entry
from helpers.exchanges import FINISH_TEXT, TEXT, user
from helpers.rule_recordings.build import (
    CALL,
    CALL_REPLY,
    GENT,
    ONE_CALL,
    ROME,
    STEP,
    TWO_CALLS,
    Recordings,
    chat,
    next_turn,
    openai_responses,
    sample,
    text_reply,
    tool,
    weather_call,
)
from helpers.rule_recordings.tape import ScriptedExchange


def one_event_call(**function: object) -> ScriptedExchange:
    """A whole call in one event."""
    return chat(calls(entry(0, "call_fake0", **function)), FINISH)


def bedrock_call(*pieces: str) -> ScriptedExchange:
    """A call of Anthropic's through Amazon's API, an event per read."""
    frames = (
        messages.start(),
        messages.tool_block(name="get_weather"),
        *(messages.piece(piece) for piece in pieces),
        messages.stop(),
        *messages.END,
    )
    return replace(sample("bedrock-invoke"), reads=[chunk(frame) for frame in frames])


def padded(*pieces: str) -> list[object]:
    """A call in `pieces`, each event with padding of its own; an equal one is sent again."""
    opened, *deltas = weather_call(*pieces)
    padding = {json.dumps(one): f"padding{at}" for at, one in enumerate(deltas)}
    return [opened, *({**one, "obfuscation": padding[json.dumps(one)]} for one in deltas)]  # type: ignore[dict-item]


def custom_calls(*inputs: str) -> ScriptedExchange:
    """Calls of a custom tool with these inputs."""
    return openai_responses(*responses.custom_calls(*inputs))


def text(*pieces: str, question: str = "What is the weather in Gent?") -> ScriptedExchange:
    """An answer in text."""
    return chat(*text_reply(*pieces), messages=[user(question)])


NO_PARAMETERS = tool("get_weather", {"type": "object", "properties": {}})
NULLABLE_CITY = tool(
    "get_weather",
    {
        "type": "object",
        "properties": {"city": {"type": "string", "default": None}},
        "required": ["city"],
    },
)
ESCAPED = '{"city":"Gent:%s    Ledeberg%s"}'
CALL_JSON = '{"name": "get_weather", "arguments": {"city": "Gent"}}'
TAGGED = ("I look it up. <tool_call>\n", CALL_JSON, "\n</tool_call>")
PROSE = ("The tag is called `tool_call`, and ", "its arguments are JSON.")
OTHER_ITEM = responses.function('{"a":2}')

RECORDINGS: Recordings = {
    "T001": {
        "fires": chat(*weather_call(), FINISH),
        "silent": chat(*weather_call(), FINISH, tools=[NO_PARAMETERS]),
    },
    "T002": {
        "fires": bedrock_call('{"city": "Gent", "unit": ', "K}"),
        "silent": bedrock_call('{"city": "Gent", "unit": ', '"K"}'),
    },
    "T003": {"fires": chat(*weather_call('{"city":', '"Ge'), FINISH), "silent": ONE_CALL},
    "T004": {"fires": one_event_call(arguments=GENT), "silent": ONE_CALL},
    "T005": {
        "fires": sample("mistral", edit=(b'"id":"fakeGent0",', b"")),
        "silent": sample("mistral"),
    },
    "T006": {
        "fires": one_event_call(name="get_weather", arguments=json.dumps(GENT)),
        "silent": one_event_call(name="get_weather", arguments=GENT),
    },
    "T007": {
        "fires": sample("gemini", edit_request=("get_weather", "weather_now")),
        "silent": sample("gemini"),
    },
    "T008": {
        "fires": sample("cohere", edit_request=('"integer"', '"string"')),
        "silent": sample("cohere"),
        "silent-default-null": chat(*weather_call('{"city":null}'), FINISH, tools=[NULLABLE_CITY]),
    },
    "T009": {
        "fires": chat(
            CALL[0], calls(entry(0, name="get_weather", arguments="")), *CALL[1:], FINISH
        ),
        "silent": ONE_CALL,
    },
    "T010": {
        "fires": chat(*CALL[:2], calls(entry(0, "call_fake9", arguments='"Gent"}')), FINISH),
        "silent": ONE_CALL,
    },
    "T011": {
        "fires": chat(calls(entry(None, "call_fake0", name="get_weather", arguments=GENT)), FINISH),
        "silent": ONE_CALL,
    },
    "T012": {
        "fires": chat(
            *weather_call(GENT),
            calls(entry(0, "call_fake1", name="get_weather", arguments=ROME)),
            FINISH,
        ),
        "silent": TWO_CALLS,
    },
    "T013": {"fires": chat(*weather_call(GENT, index=1), FINISH), "silent": ONE_CALL},
    "T014": {"fires": chat(*weather_call('{"city":', GENT), FINISH), "silent": ONE_CALL},
    "T015": {
        "fires": openai_responses(
            responses.created(),
            *responses.call()[:-2],
            responses.part("function_call_arguments.done", arguments='{"a":2}'),
            responses.done(OTHER_ITEM),
            responses.ended(OTHER_ITEM),
        ),
        "silent": openai_responses(
            responses.created(),
            *responses.call(),
            responses.ended(responses.function('{"a":1}')),
        ),
    },
    "T016": {"fires": chat(*weather_call(GENT, "}"), FINISH), "silent": ONE_CALL},
    "T017": {"fires": chat(*weather_call("{}", GENT), FINISH), "silent": ONE_CALL},
    "T018": {
        "fires": text(*TAGGED),
        "silent": text(*PROSE),
        "silent-quoted": text(
            "Models write <tool_call>", CALL_JSON, "</tool_call> to call a tool."
        ),
        "silent-code-block": text(
            "Models write so:\n```\n<tool_call>", CALL_JSON, "</tool_call>\n```\n"
        ),
        "silent-asked-about": text(*TAGGED, question="What is <tool_call> for?"),
    },
    "T019": {"fires": text(*TAGGED[:1], CALL_JSON[:30]), "silent": text(*PROSE)},
    "T020": {
        "fires": chat(*weather_call(GENT), *weather_call(GENT, index=1), FINISH),
        "silent": TWO_CALLS,
        "silent-free-text": custom_calls("print(1)", "print(2)"),
    },
    "T021": {
        "fires": chat(
            calls(entry(0, "call_fake0", name="get_wea", arguments="")),
            calls(entry(0, name="ther", arguments="")),
            *CALL[1:],
            FINISH,
        ),
        "silent": ONE_CALL,
    },
    "T022": {
        "fires": chat(*weather_call(ESCAPED % (r"\\n", r"\\n")), FINISH),
        "silent": chat(*weather_call(ESCAPED % (r"\n", r"\n")), FINISH),
    },
    "T023": {
        "fires": chat(choice({"content": GENT}), *weather_call(GENT), FINISH),
        "silent": chat(*weather_call(GENT), FINISH),
    },
    "T024": {"fires": chat(*CALL_REPLY, tool_choice="none"), "silent": ONE_CALL},
    "T025": {
        "fires": chat(TEXT, FINISH_TEXT, tool_choice="required"),
        "silent": chat(*CALL_REPLY, tool_choice="required", parallel_tool_calls=False),
    },
    "T026": {
        "fires": [ONE_CALL, next_turn(*STEP, reply=[*weather_call(ROME), FINISH])],
        "silent": [
            ONE_CALL,
            next_turn(*STEP, reply=[*weather_call(GENT, call_id="call_fake1"), FINISH]),
        ],
    },
    "T027": {
        "fires": chat(*padded('{"city":"', "Gent", "Gent", '"}'), FINISH),
        "silent": chat(*padded('{"city":"', "Gent", '"}'), FINISH),
        "silent-repeated-words": chat(*weather_call('{"city":"', "Baden-", "Baden-", '"}'), FINISH),
        "silent-numbers": chat(*weather_call('{"city":"1', "000", "000", '"}'), FINISH),
    },
}
