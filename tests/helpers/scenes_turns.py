"""Scenes about exchanges in their conversations: histories, loops, retries. Rules C004 to C011."""

from collections.abc import Sequence
from dataclasses import replace

from helpers import exchanges, messages
from helpers.chat import FINISH, choice
from helpers.scenes import (
    HEALTHY,
    STOP,
    TEXT,
    Pair,
    Pairs,
    Scene,
    asked,
    chat,
    pair,
    recordings,
    weather,
)
from helpers.scenes_apps import BOTH, CITIES, USER
from helpers.scenes_wire import GREETED, claude
from helpers.scripted_tapes import Json, Staged

CALLS = [(f"call_fake{at}", "get_weather", city) for at, city in enumerate(CITIES)]
COMPLAINT = "Failed to parse tool arguments: Unexpected end of JSON input"


def turn(
    at_s: float, *history: Json, said: Sequence[object] = (TEXT, STOP), **more: object
) -> Staged:
    """A later exchange: its request has `history` after the user's first message."""
    request = asked(messages=[USER, *history], **more)
    return replace(chat(*said, request=request), at_s=at_s)


def told(first: Staged, *later: Staged) -> Scene:
    """A scene of one conversation."""
    return Scene(exchanges=[first, *later])


@recordings
def histories() -> Pairs:
    """Rules about what a request's own history holds."""
    one, both = chat(*HEALTHY), chat(*BOTH)
    result = exchanges.result("call_fake0", "13 °C")
    other = exchanges.result("call_fake1", "21 °C")
    asks = exchanges.assistant(CALLS[0])
    bare = turn(2.0, asks, result)
    return {
        "C004": Pair(fires=told(one, turn(2.0, result)), silent=told(one, turn(2.0, asks, result))),
        "C005": Pair(
            fires=told(both, turn(2.0, exchanges.assistant(*CALLS), result)),
            silent=told(both, turn(2.0, exchanges.assistant(*CALLS), result, other)),
        ),
        "C009": Pair(
            fires=told(one, turn(2.0, asks, exchanges.result("call_fake0", COMPLAINT))),
            silent=told(one, turn(2.0, asks, result)),
        ),
        "C011": Pair(
            fires=told(one, replace(bare, request={**bare.request, "tools": []})),
            silent=told(one, bare),
        ),
    }


def _thinks(at_s: float, *history: Json, frames: Sequence[messages.Frame]) -> Staged:
    """An exchange of Anthropic's with thinking turned on."""
    request = {
        **messages.request(get={"type": "object"}),
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "messages": [{"role": "user", "content": "What is the weather in Gent?"}, *history],
    }
    return replace(claude(*frames), request=request, at_s=at_s)


@recordings
def reasoning() -> Pairs:
    """Rules about the reasoning that comes back with calls."""
    thought = messages.thinking("The user wants the weather.", "fake-signature")
    called = (messages.tool_block(1), messages.piece("{}", 1), messages.stop(1))
    first = _thinks(0.0, frames=(messages.start(), *thought, *called, *messages.END))
    use = {"type": "tool_use", "id": "c1", "name": "get", "input": {}}
    signed = {
        "type": "thinking",
        "thinking": "The user wants the weather.",
        "signature": "fake-signature",
    }
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "13 °C"}
    answer: Json = {"role": "user", "content": [result]}
    return {
        "C013": Pair(
            fires=told(
                first, _thinks(2.0, {"role": "assistant", "content": [use]}, answer, frames=GREETED)
            ),
            silent=told(
                first,
                _thinks(
                    2.0, {"role": "assistant", "content": [signed, use]}, answer, frames=GREETED
                ),
            ),
        )
    }


@recordings
def rounds() -> Pairs:
    """Rules about conversations that go round."""
    role = {"type": "function", "function": {"name": "get_weather"}}
    answered = [exchanges.assistant(CALLS[0]), exchanges.result("call_fake0", "13 °C")]
    forced = chat(*HEALTHY, request=asked(messages=[USER], tool_choice=role))
    again = [*weather(CITIES[0], number=1), FINISH]
    reused = [*weather(CITIES[1]), FINISH]
    limited = replace(
        chat(done=False, request=asked(messages=[USER])),
        reads=[b'{"error":{"message":"Rate limit reached","type":"requests"}}'],
        content_type="application/json",
        status=429,
    )
    answers = chat(choice({"content": "Hello"}), STOP)
    return {
        "C006": Pair(fires=_loop(CITIES[0]), silent=_loop(CITIES[1])),
        "C007": pair(_says("Thanks, bye!"), _says("Thanks! And tomorrow?")),
        "C008": Pair(
            fires=Scene(exchanges=[replace(limited, at_s=at / 2) for at in range(5)]),
            silent=Scene(exchanges=[_other(answers, at) for at in range(5)]),
            also=frozenset({"S005"}),
        ),
        "T026": Pair(
            fires=told(chat(*HEALTHY), turn(2.0, *answered, said=reused)),
            silent=told(chat(*HEALTHY), turn(2.0, *answered, said=again)),
        ),
        "C010": Pair(
            fires=told(forced, turn(2.0, *answered, said=again, tool_choice=role)),
            silent=told(forced, turn(2.0, *answered, said=again, tool_choice="auto")),
        ),
    }


def _other(answers: Staged, at: int) -> Staged:
    """Another question, with the answer of `answers`."""
    question = asked(messages=[{"role": "user", "content": f"And in town {at}?"}])
    return replace(answers, request=question, at_s=at / 2)


def _loop(last: str) -> Scene:
    """Three times a call, the third with the arguments `last`."""
    history: list[Json] = []
    made: list[Staged] = []
    for at in range(3):
        arguments = last if at == 2 else CITIES[0]
        said = [*weather(arguments, number=at), FINISH]
        made.append(turn(2.0 * at, *history, said=said))
        history += [
            exchanges.assistant((f"call_fake{at}", "get_weather", arguments)),
            exchanges.result(f"call_fake{at}", "13 °C"),
        ]
    return Scene(exchanges=made)


def _says(text: str) -> Staged:
    """A call in answer to what the user says."""
    return chat(*HEALTHY, request=asked(messages=[{"role": "user", "content": text}]))
