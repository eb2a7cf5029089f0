"""What the provider says, in terms that all dialects share, and the scenarios made of it.

A conversation is known by its first prompt: the nth request that has it gets the nth step of the
scenario, whatever the framework made of the steps before. So every framework gets the same answers,
and the tape shows what it did with them.

What a healthy provider sends is as it is on purpose: numbers in spellings that parsers normalise,
keys in another order than the schema's, characters that some serialisers escape.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call. `arguments` is its raw JSON text, `""` where the model sends none."""

    name: str
    arguments: str
    fill: Mapping[str, str] = field(default_factory=dict)
    """Raw JSON by parameter: what is added if the offered schema requires the parameter."""
    fragment: int = 11
    """Characters in a fragment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Handoff:
    """A call to the tool that hands over, whatever the framework calls it."""

    fill: Mapping[str, str] = field(
        default_factory=lambda: {"to_agent": '"forecaster"', "reason": '"weather"'}
    )
    """See `Call.fill`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Structured:
    """An answer in the form that the request asks for: as JSON text, or as a call."""

    value: str
    fill: Mapping[str, str] = field(default_factory=lambda: {"note": '"none"'})
    """See `Call.fill`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer. Where it has calls, its text comes before them."""

    thinking: str = ""
    text: str = ""
    calls: Sequence[Call | Handoff | Structured] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fail:
    """An answer with an HTTP status that asks to try again."""

    status: int
    retry_after_s: int | None = None


Step = Reply | Fail

CITIES = ("Paris", "Lisbon")
"""What the conversation is about that is streamed, and the one that is not."""
SEVERAL = ("Kyoto", "Nairobi", "Quito")
"""What the conversations are about that go on at once."""
PROMPTS = Path(__file__).resolve().parent.parent / "frameworks" / "scenarios.json"

_DAYS = {"days": "2", "unit": '"celsius"'}
_FEW = "".join(f"{word} " for word in ("It", "is", "18", "degrees", "in")) + "{city}."


def first_prompts() -> Mapping[str, tuple[str, str]]:
    """Scenario and city by the prompt that begins their conversation."""
    told = json.loads(PROMPTS.read_text())
    return {
        one["prompts"][0].format(city=city): (scenario, city)
        for scenario, one in told.items()
        for city in (*CITIES, *SEVERAL)
    }


def steps(scenario: str, city: str) -> Sequence[Step]:
    """The answers of a scenario to the conversation about `city`, in their order."""
    return SCENARIOS[scenario](city)


def _weather(city: str) -> Call:
    return Call(name="get_weather", arguments=f'{{"city": "{city}"}}', fill=_DAYS)


def _said(city: str) -> Reply:
    return Reply(text=_FEW.format(city=city))


def _calls(city: str) -> Sequence[Step]:
    """Parallel calls: keys in another order than the schema's, defaults left out, no spaces."""
    ordered = f'{{"unit": "celsius", "days": 2, "city": "{city}"}}'
    compact = '{"city":"Bergen"}'
    return (
        Reply(
            text="Let me look.",
            calls=(
                Call(name="get_weather", arguments=ordered),
                Call(name="get_weather", arguments=compact, fill=_DAYS),
                Call(name="get_time", arguments="{}"),
            ),
        ),
        _said(city),
    )


def _empty(city: str) -> Sequence[Step]:
    """Calls of a tool without parameters, with no arguments at all and with an empty object."""
    return (
        Reply(calls=(Call(name="get_time", arguments=""),)),
        Reply(calls=(Call(name="get_time", arguments="{}"),)),
        _said(city),
    )


def _equal(city: str) -> Sequence[Step]:
    """Two calls that differ in nothing but their ids, as for two dice."""
    roll = Call(name="roll_dice", arguments='{"sides": 6}')
    return (Reply(calls=(roll, roll)), _said(city))


def _values(city: str) -> Sequence[Step]:
    """Unicode, as it is and escaped, and numbers in several spellings."""
    text = f"{city}: naïve café, 東京, 👩\u200d🚀🚲"
    escaped = r'"\u00fcber \ud83d\ude80 \"so\"\nline <b>&amp;'
    amounts = '{"amount": 1.0, "rate": 1e3, "account": 9007199254740993, "share": 0.10}'
    return (
        Reply(
            text=f"Searching for 👩\u200d🚀 in {city} …",
            calls=(
                Call(
                    name="search",
                    arguments=f'{{"query": "{text}", "note": {escaped}"}}',
                    fragment=5,
                ),
                Call(name="convert", arguments=amounts),
            ),
        ),
        Reply(text=f"{text}. Done 🎉"),
    )


def _reasoning(city: str) -> Sequence[Step]:
    """The model thinks, calls, thinks again and answers."""
    first = f"The user wants the weather in {city}; I have a tool for it."
    return (
        Reply(thinking=first, calls=(_weather(city),)),
        Reply(thinking="The tool says 18 degrees.", text=_FEW.format(city=city)),
    )


def _structured(city: str) -> Sequence[Step]:
    """An answer against a schema, without the field that has a default."""
    return (
        Reply(calls=(Structured(value=f'{{"city": "{city}", "degrees": 18.0, "sunny": true}}'),)),
    )


def _revised(city: str) -> Sequence[Step]:
    """An answer that does not fit its schema, and after the complaint one that does."""
    return (
        Reply(calls=(Structured(value=f'{{"city": "{city}", "degrees": "warm", "sunny": true}}'),)),
        *_structured(city),
    )


def _handoff(city: str) -> Sequence[Step]:
    """One agent hands over to another, which calls a tool."""
    return (Reply(calls=(Handoff(),)), Reply(calls=(_weather(city),)), _said(city))


def _retries(city: str) -> Sequence[Step]:
    """A rate limit before the call, an error of the server before the answer."""
    return (
        Fail(status=429, retry_after_s=1),
        Reply(calls=(_weather(city),)),
        Fail(status=500),
        _said(city),
    )


def _invalid(city: str) -> Sequence[Step]:
    """The model calls with a wrong parameter, then a tool that is not there, then rightly."""
    return (
        Reply(calls=(Call(name="get_weather", arguments=f'{{"town": "{city}"}}'),)),
        Reply(calls=(Call(name="get_wether", arguments=f'{{"city": "{city}"}}'),)),
        Reply(calls=(_weather(city),)),
        _said(city),
    )


def _turns(city: str) -> Sequence[Step]:
    """The user asks twice in one conversation."""
    return (
        Reply(calls=(_weather(city),)),
        _said(city),
        Reply(text="One moment.", calls=(Call(name="get_time", arguments="{}"),)),
        Reply(text=f"It is noon in {city}."),
    )


def _several(city: str) -> Sequence[Step]:
    """One of several conversations that go on at once."""
    time = Call(name="get_time", arguments="{}")
    return (Reply(calls=(_weather(city), time)), _said(city))


SCENARIOS = {
    "calls": _calls,
    "empty": _empty,
    "equal": _equal,
    "values": _values,
    "reasoning": _reasoning,
    "structured": _structured,
    "revised": _revised,
    "handoff": _handoff,
    "retries": _retries,
    "invalid": _invalid,
    "turns": _turns,
    "several": _several,
}


def token(seed: str, length: int) -> str:
    """Letters and digits that look random and are the same in every run."""
    letters = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789"
    number = int.from_bytes(hashlib.sha512(seed.encode()).digest())
    found = ""
    while len(found) < length:
        number, at = divmod(number, len(letters))
        found += letters[at]
    return found


def pieces(text: str, size: int) -> list[str]:
    """`text` in pieces of `size` characters; no piece for an empty text."""
    return [text[at : at + size] for at in range(0, len(text), size)]
