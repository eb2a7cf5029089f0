"""Scenes about what an application's requests say of the answers before. Rules C012 to C022."""

from collections.abc import Sequence
from dataclasses import replace

from helpers import exchanges
from helpers.chat import FINISH, choice
from helpers.scenes import (
    HEALTHY,
    STOP,
    Pair,
    Pairs,
    Scene,
    asked,
    chat,
    recordings,
    spared,
    weather,
)
from helpers.scenes_apps import USER
from helpers.scenes_turns import CALLS, told, turn
from helpers.scripted_tapes import Json, Staged

SYSTEM: Json = {"role": "system", "content": "You are a friendly meteorologist."}
MORE: Json = {"role": "user", "content": "And what about tomorrow, please?"}
LAST: Json = {"role": "user", "content": "And the day after tomorrow?"}
GO_ON: Json = {"role": "user", "content": "Go on"}
PIECES = ("Gen", "t has 13 °C", " and some wind", ", as so of", "ten.")
ANSWER = "".join(PIECES)
LENGTH = choice({}, "length")


def said(*pieces: str) -> list[object]:
    """An answer in text."""
    return [*(choice({"content": piece}) for piece in pieces), STOP]


def answered(text: str) -> Json:
    """The message of a history that repeats it."""
    return exchanges.assistant(text=text)


def text_scene(repeated: str, *pieces: str) -> Scene:
    """An answer, and the request that repeats it so."""
    return told(chat(*said(*(pieces or PIECES))), turn(2.0, answered(repeated), MORE))


@recordings
def texts() -> Pairs:
    """Rules about the text of an answer."""
    two = ("Now that is", " 13 °C.")
    return {
        "C012": spared(
            Pair(fires=text_scene(ANSWER[3:]), silent=text_scene(ANSWER)),
            trimmed=text_scene(ANSWER, "\n\n", *PIECES, "\n"),
            without_thoughts=text_scene(ANSWER, "<think>", "Hm", "</think>", "\n", *PIECES),
            without_markup=text_scene("Gent has 13 °C", "**", "Gent", "**", " has", " 13 °C"),
            translated=text_scene("In Gent ist es 13 °C warm."),
            redacted=text_scene("[REDACTED] has 13 °C and some wind, as so often."),
            up_to_a_stop_word=text_scene("It is 13 °C.", "It is", " 13 °C.", "\nTERMINATE"),
            cut_to_a_length=text_scene(ANSWER[:20]),
            in_a_template=text_scene(f"Assistant: {ANSWER}"),
            another_attempt=told(
                chat(*said(*PIECES)),
                turn(2.0, said=said(*two)),
                turn(4.0, answered("".join(two)), MORE),
            ),
            shortened_later=told(
                chat(*said(*PIECES)),
                turn(2.0, answered(ANSWER), MORE, said=said(*two)),
                turn(4.0, answered(ANSWER[3:]), MORE, answered("".join(two)), LAST),
            ),
            after_it_broke_off=told(
                replace(chat(*said(*PIECES)[:2], done=False)),
                turn(2.0, answered(PIECES[0]), MORE),
            ),
        ),
    }


@recordings
def broken_calls() -> Pairs:
    """Rules about calls that were cut, and about their results."""
    cut = chat(*weather('{"city":"Ge'), LENGTH)
    made = exchanges.assistant(("call_fake0", "get_weather", '{"city":"Ge"}'))
    emptied = exchanges.assistant(("call_fake0", "get_weather", "{}"))
    whole = chat(*HEALTHY)
    asks = exchanges.assistant(CALLS[0])

    def ran(repeated: Json, result: str) -> Staged:
        return turn(2.0, repeated, exchanges.result("call_fake0", result))

    python = {
        "type": "function",
        "function": {"name": "run_python", "parameters": {"type": "object"}},
    }
    code = [*weather('{"code":"print(object())"}', name="run_python"), FINISH]
    printed = exchanges.assistant(("call_fake0", "run_python", '{"code":"print(object())"}'))
    both = asked(messages=[USER], tools=[python])
    output = exchanges.result("call_fake0", "<object object at 0x7f5c1c0a2b40>")
    return {
        "C016": spared(
            Pair(
                fires=told(cut, ran(made, "13 °C")),
                silent=told(whole, ran(asks, "13 °C")),
                also=frozenset({"T003", "S009"}),
            ),
            answered_with_an_error=told(cut, ran(emptied, "Error: the arguments were cut off.")),
            second_attempt=told(
                cut, turn(2.0, said=HEALTHY), turn(4.0, asks, exchanges.result("call_fake0"))
            ),
        ),
        "C017": spared(
            Pair(
                fires=told(whole, ran(asks, "[object Object]")),
                silent=told(whole, ran(asks, '{"temperature": 13}')),
            ),
            as_a_part=told(whole, ran(asks, "It prints [object Object] for each row.")),
            no_value=told(whole, ran(asks, "undefined")),
            printed_by_code=told(chat(*code, request=both), turn(2.0, printed, output)),
        ),
    }


@recordings
def repetitions() -> Pairs:
    """Rules about what comes twice, or is left out."""
    first = chat(*said(*PIECES))
    answer = answered(ANSWER)
    step = [exchanges.assistant(CALLS[0]), exchanges.result("call_fake0", "13 °C")]
    doubled = asked(messages=[USER, USER])
    return {
        "C018": spared(
            Pair(
                fires=told(chat(*HEALTHY), turn(2.0, *step), turn(4.0, *step)),
                silent=told(chat(*HEALTHY), turn(2.0, *step)),
            ),
            regenerated=told(first, turn(2.0, said=said("It is", " 13 °C."))),
            run_again=told(
                chat(*HEALTHY), turn(2.0, *step), turn(4.0, said=HEALTHY), turn(6.0, *step)
            ),
        ),
        "C019": spared(
            Pair(
                fires=Scene(exchanges=[chat(*said(*PIECES), request=doubled)]),
                silent=told(first, turn(2.0, answer, MORE)),
            ),
            pressed_twice=told(first, turn(2.0, USER)),
            asked_again=told(first, turn(2.0, answer, USER)),
            short=told(
                first,
                turn(2.0, answer, GO_ON, GO_ON),
            ),
        ),
        "C020": spared(
            Pair(
                fires=told(first, turn(2.0, MORE, said=said(*PIECES, "!")), turn(4.0, MORE, LAST)),
                silent=told(
                    first,
                    turn(2.0, answer, MORE, said=said(*PIECES, "!")),
                    turn(4.0, answer, MORE, answered(ANSWER + "!"), LAST),
                ),
            ),
            interrupted_once=told(first, turn(2.0, MORE)),
            labels=told(
                chat(*said("weather")),
                turn(2.0, MORE, said=said("weather")),
                turn(4.0, MORE, LAST),
            ),
        ),
    }


@recordings
def agents() -> Pairs:
    """Rules about what the next request leaves out of the agent."""
    step = [exchanges.assistant(CALLS[0]), exchanges.result("call_fake0", "13 °C")]
    clock: Json = {
        "type": "function",
        "function": {"name": "get_time", "parameters": {"type": "object"}},
    }
    tools = [*_list(asked()["tools"]), clock]
    hand: Json = {
        "type": "function",
        "function": {"name": "transfer_to_clock", "parameters": {"type": "object"}},
    }
    instructed = chat(*HEALTHY, request=asked(messages=[SYSTEM, USER]))
    plain = turn(2.0, *step)
    kept = replace(plain, request=asked(messages=[SYSTEM, USER, *step]))
    handed = [*weather("{}", name="transfer_to_clock"), FINISH]
    over = [
        exchanges.assistant(("call_fake0", "transfer_to_clock", "{}")),
        exchanges.result("call_fake0", "done"),
    ]
    triage = asked(messages=[SYSTEM, USER], tools=[hand])
    second = asked(messages=[USER, *over], tools=[clock])
    return {
        "C021": spared(
            Pair(fires=told(instructed, plain), silent=told(instructed, kept)),
            a_title=told(
                chat(*said(*PIECES), request=asked(messages=[SYSTEM, USER])),
                turn(2.0, said=said("Weather", " in Gent")),
            ),
        ),
        "C022": spared(
            Pair(
                fires=told(
                    chat(*HEALTHY, request=asked(messages=[USER], tools=tools)),
                    turn(2.0, *step, tools=[clock]),
                ),
                silent=told(
                    chat(*HEALTHY, request=asked(messages=[USER], tools=tools)),
                    turn(2.0, *step, tools=tools),
                ),
            ),
            handed_over=told(chat(*handed, request=triage), replace(plain, request=second)),
        ),
    }


def _list(value: object) -> Sequence[object]:
    assert isinstance(value, list)
    return value
