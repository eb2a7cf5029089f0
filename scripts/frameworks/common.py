"""What the drivers of Python frameworks share: the conversations, and tools that answer alike.

A driver is run as `driver.py DIALECT SCENARIO...` by `deltatape record`. Each scenario is taped on
a tape of its own, which the path of the base URL names, and is one conversation that is streamed
and one that is not; `turns` is streamed, `several` is three at once.
"""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

DIALECT, *SCENARIOS = sys.argv[1:]
CHAT, RESPONSES, ANTHROPIC, GEMINI = (
    name == DIALECT for name in ("openai-chat", "openai-responses", "anthropic-messages", "gemini")
)
MODEL = {
    "openai-chat": "gpt-4.1",
    "openai-responses": "gpt-5",
    "anthropic-messages": "claude-sonnet-4-5",
    "gemini": "gemini-2.5-flash",
}[DIALECT]
SYSTEM = "You are a helpful assistant with tools."
TOLD = json.loads((Path(__file__).parent / "scenarios.json").read_text())


def get_weather(
    city: str, days: int = 3, unit: Literal["celsius", "fahrenheit"] = "celsius"
) -> str:
    """Tell the weather in a city.

    Args:
        city: The name of the city.
        days: For how many days.
        unit: Of the temperature.
    """
    return f"18 degrees {unit} in {city} for {days} days"


def get_time() -> str:
    """Tell the time."""
    return "12:00"


def search(query: str, note: str | None = None) -> str:
    """Search the web.

    Args:
        query: What to look for.
        note: A remark.
    """
    return f"3 results for {query}" + (", with a note" if note else "")


def convert(amount: float, rate: float, account: int, share: float = 1.0) -> str:
    """Convert an amount of money.

    Args:
        amount: How much.
        rate: The rate of exchange.
        account: The number of the account.
        share: The share to convert.
    """
    return f"converted {amount} at {rate} to account {account}, share {share}"


def roll_dice(sides: int = 6) -> str:
    """Roll a die.

    Args:
        sides: How many sides it has.
    """
    return f"rolled {min(sides, 4)}"


EVERY = {tool.__name__: tool for tool in (get_weather, get_time, search, convert, roll_dice)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """A conversation to be held."""

    scenario: str
    prompts: list[str]
    tools: list[Callable[..., str]]
    streamed: bool

    @property
    def reasoning(self) -> bool:
        """Whether the model shall think."""
        return self.scenario == "reasoning"


Converse = Callable[[Talk], Awaitable[object]]


def main(converse: Converse, **special: Converse) -> None:
    """Run the scenarios.

    Args:
        converse: holds a conversation. It makes its own clients, since the base URL changes.
        special: by scenario, what holds its conversation instead.
    """
    asyncio.run(_every(converse, special))


async def _every(converse: Converse, special: dict[str, Converse]) -> None:
    urls = {name: value for name, value in os.environ.items() if name.endswith(("_URL", "_BASE"))}
    gateway = urls["DELTATAPE_URL"]
    for scenario in SCENARIOS:
        own = f"{gateway}/s/{DIALECT}-{scenario}"
        os.environ.update({name: value.replace(gateway, own) for name, value in urls.items()})
        await _scenario(scenario, special.get(scenario, converse))


async def _scenario(scenario: str, converse: Converse) -> None:
    if scenario == "several":
        cities = ("Kyoto", "Nairobi", "Quito")
        await asyncio.gather(*[_held(converse, scenario, city, streamed=True) for city in cities])
        return
    await _held(converse, scenario, "Paris", streamed=True)
    if scenario != "turns":
        await _held(converse, scenario, "Lisbon", streamed=False)


async def _held(converse: Converse, scenario: str, city: str, *, streamed: bool) -> None:
    told = TOLD[scenario]
    talk = Talk(
        scenario=scenario,
        prompts=[prompt.format(city=city) for prompt in told["prompts"]],
        tools=[EVERY[name] for name in told["tools"]],
        streamed=streamed,
    )
    place = f"{DIALECT}-{scenario}, {'streamed' if streamed else 'whole'}"
    try:
        async with asyncio.timeout(60):
            said = await converse(talk)
    except Exception as error:  # noqa: BLE001 - what a framework gives up with is told
        print(f"{place}: gave up: {type(error).__qualname__}: {str(error)[:300]!r}")
    else:
        print(f"{place}: {str(said)[:60]!r}")
