"""Scenes about histories: messages of other conversations, and what correct programs do to calls.

The innocent ones are each named after an explanation on the page of their rule.
"""

from collections.abc import Sequence
from dataclasses import replace

from helpers import exchanges
from helpers.chat import FINISH, calls, choice, entry
from helpers.scenes import (
    HEALTHY,
    STOP,
    TEXT,
    Innocent,
    Pair,
    Pairs,
    Scene,
    asked,
    chat,
    innocents,
    recordings,
    weather,
)
from helpers.scenes_apps import BOTH, CITIES, USER
from helpers.scenes_turns import CALLS, COMPLAINT, told, turn
from helpers.scripted_tapes import Json, Staged, Timed

SHIPPED = "Your order 4711 has been shipped to Gent."
INVOICE = "The invoice for your last month is attached."
ORDER: Json = {"role": "user", "content": "Where is my order?"}
BILL: Json = {"role": "user", "content": "I need my bill."}
THANKS: Json = {"role": "user", "content": "Thank you very much for that."}
RANDOM = "call_9fA3kQz1bT"
UNITS: Json = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "unit": {"type": "string", "enum": ["celsius", "kelvin"], "default": "celsius"},
        "station": {"type": ["integer", "null"]},
    },
    "required": ["city"],
}
TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": UNITS}}
NOTE = {"type": "function", "function": {"name": "final_answer", "parameters": {}}}


def said(at_s: float, question: Sequence[Json], text: str) -> Staged:
    """An exchange of a conversation of its own, answered with a text."""
    body = asked(messages=list(question))
    return replace(chat(choice({"content": text}), STOP, request=body), at_s=at_s)


def called(
    call_id: str, arguments: str, at_s: float = 0.0, *history: Json, **more: object
) -> Staged:
    """An exchange that is answered with one call."""
    opened = calls(entry(0, call_id, name="get_weather", arguments=""))
    body = asked(messages=list(history) or [USER], **more)
    pieces = [calls(entry(0, arguments=each)) for each in _halves(arguments)]
    return replace(chat(opened, *pieces, FINISH, request=body), at_s=at_s)


def _halves(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]


def again(at_s: float, history: Sequence[Json], **more: object) -> Staged:
    """A request with this history, answered with a text."""
    body = asked(messages=list(history), **more)
    return replace(chat(TEXT, STOP, request=body), at_s=at_s)


@recordings
def misplaced() -> Pairs:
    """Rules about messages and results in the wrong place."""
    shipped, invoice = said(0.0, [ORDER], SHIPPED), said(1.0, [BILL], INVOICE)
    order, bill = exchanges.assistant(text=SHIPPED), exchanges.assistant(text=INVOICE)
    weathers = chat(*BOTH)
    both = exchanges.assistant(*CALLS)
    gent, rome = (exchanges.result(f"call_fake{at}", text) for at, text in enumerate(CITY_TEXTS))
    crossed = [exchanges.result(f"call_fake{1 - at}", text) for at, text in enumerate(CITY_TEXTS)]
    return {
        "C014": Pair(
            fires=Scene(exchanges=[shipped, invoice, again(2.0, [BILL, order, THANKS])]),
            silent=Scene(exchanges=[shipped, invoice, again(2.0, [BILL, bill, THANKS])]),
            innocent={
                "supervisor": Scene(
                    exchanges=[
                        shipped,
                        said(
                            1.0, [{"role": "user", "content": "Ask: Where is my order?"}], INVOICE
                        ),
                        again(
                            2.0,
                            [{"role": "user", "content": "Ask: Where is my order?"}, order, THANKS],
                        ),
                    ]
                ),
                "summary": Scene(
                    exchanges=[shipped, again(2.0, [{**THANKS, "content": "So far:"}, order, BILL])]
                ),
            },
        ),
        "C015": Pair(
            fires=told(weathers, turn(2.0, both, *crossed)),
            silent=told(weathers, turn(2.0, both, gent, rome)),
            innocent={
                "plain": told(
                    weathers,
                    turn(
                        2.0, both, *(exchanges.result(f"call_fake{at}", "13 °C") for at in (0, 1))
                    ),
                ),
                "comparison": told(
                    weathers,
                    turn(
                        2.0,
                        both,
                        *(
                            exchanges.result(f"call_fake{at}", "Gent is colder than Rome")
                            for at in (0, 1)
                        ),
                    ),
                ),
            },
        ),
    }


CITY_TEXTS = ("Gent: 13 °C", "Rome: 21 °C")


@innocents
def innocent() -> Innocent:
    """By the code of a rule, scenes that look like a mistake and are none."""
    one, both = chat(*HEALTHY), chat(*BOTH)
    asks, result = exchanges.assistant(CALLS[0]), exchanges.result("call_fake0", "13 °C")
    denied: Json = {"role": "user", "content": "No, do not do that."}
    twice = [*weather(CITIES[0]), *weather(CITIES[0], index=1), FINISH]
    late = chat(TEXT, STOP, *weather(CITIES[0]))
    random = called(RANDOM, CITIES[0])
    digits = '{"city":"Gent","station":9007199254740993}'
    long = '{"city":"' + "Gent " * 300 + '"}'
    typed = called("call_fake0", '{"city":"Gent","station":null}', tools=[TOOL])
    pending = [asks, exchanges.result("call_fake0", "pending"), result]
    required = {"tools": [*_tools(asked()), NOTE], "tool_choice": "required"}
    named = {"tool_choice": {"type": "function", "function": {"name": "get_weather"}}}
    invalid = exchanges.result("call_fake0", "1 validation error: the city is unknown")
    forced = chat(*HEALTHY, request=asked(messages=[USER], **named))
    return {
        "C001": {
            "denied": told(both, turn(2.0, exchanges.assistant(), denied)),
            "interrupted": told(one, turn(2.0, exchanges.assistant(), THANKS)),
            "one-at-a-time": told(both, turn(2.0, asks, result)),
            "equal-calls": told(chat(*twice), turn(2.0, asks, result)),
            "handoff": told(one, turn(2.0, exchanges.assistant(), THANKS, tools=[NOTE])),
            "as-text": told(
                random, turn(2.0, exchanges.assistant(text=f"Calling {RANDOM}"), THANKS)
            ),
            "after-the-finish": told(late, turn(2.0, exchanges.assistant(text="Hello"), THANKS)),
        },
        "C002": {
            "schema-default": told(
                typed, turn(2.0, _repeats('{"city":"Gent","unit":"celsius"}'), result, tools=[TOOL])
            ),
            "double-precision": told(
                called("call_fake0", digits),
                turn(2.0, _repeats(digits.replace("993", "992")), result),
            ),
            "review": told(
                one,
                turn(
                    2.0,
                    _repeats('{"city":"Rome"}'),
                    exchanges.result("call_fake0", "The user changed the city. 21 °C"),
                ),
            ),
            "filtered-emoji": told(
                called("call_fake0", '{"city":"Besançon\U0001f327FR"}'),
                turn(2.0, _repeats('{"city":"BesançonFR"}'), result),
            ),
            "edited-without-a-word": told(one, turn(2.0, _repeats('{"city":"Rome"}'), result)),
            "elided": told(
                called("call_fake0", long),
                turn(2.0, _repeats('{"city":"Gent Gent... (1495 characters)"}'), result),
            ),
            "left-out": told(called("call_fake0", long), turn(2.0, _repeats("{}"), result)),
            "before-it-came": told(
                replace(one, reads=_slowly(one)),
                turn(0.25, _repeats(""), result),
            ),
        },
        "C003": {
            "repaired-name": told(
                chat(*weather(CITIES[0], name="Get_Weather"), FINISH), turn(2.0, asks, result)
            ),
            "own-ids": told(
                one, turn(2.0, _repeats(CITIES[0], "mine"), exchanges.result("mine", "13 °C"))
            ),
            "shortened-ids": told(
                random,
                turn(2.0, _repeats(CITIES[0], "fA3kQz1bT"), exchanges.result("fA3kQz1bT", "13 °C")),
            ),
        },
        "C004": {
            "shortened-history": told(one, turn(2.0, asks, result), again(4.0, [result, THANKS])),
            "other-conversation": told(
                called("call_fake0", CITIES[1], 0.0, ORDER), again(2.0, [USER, result])
            ),
            "pending": told(one, turn(2.0, *pending)),
        },
        "C005": {
            "interrupted": told(one, turn(2.0, asks, THANKS)),
        },
        "C009": {
            "of-a-file": told(
                one,
                turn(
                    2.0,
                    asks,
                    exchanges.result("call_fake0", "data.json: Unexpected end of JSON input"),
                ),
            ),
            "of-an-argument": told(
                called("call_fake0", '{"city":"{\\"name\\":"}'),
                turn(
                    2.0,
                    _repeats('{"city":"{\\"name\\":"}'),
                    exchanges.result("call_fake0", COMPLAINT),
                ),
            ),
        },
        "C010": {
            "final-answer": told(
                chat(*HEALTHY, request=asked(messages=[USER], **required)),
                turn(2.0, asks, result, said=HEALTHY, **required),
            ),
            "correction": told(forced, turn(2.0, asks, invalid, said=HEALTHY, **named)),
            "new-question": told(forced, turn(2.0, asks, result, THANKS, said=HEALTHY, **named)),
        },
    }


def _slowly(staged: Staged) -> list[Timed]:
    """Its reads, a tenth of a second apart."""
    reads = (read for read in staged.reads if isinstance(read, bytes))
    return [(0.1 * at, read) for at, read in enumerate(reads, 1)]


def _tools(request: Json) -> list[object]:
    tools = request["tools"]
    assert isinstance(tools, list)
    return tools


def _repeats(arguments: str, call_id: str = "call_fake0") -> Json:
    return exchanges.assistant((call_id, "get_weather", arguments))
