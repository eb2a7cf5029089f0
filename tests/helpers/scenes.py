"""Scenes for the rules: for each one that fires it and, as near to it as can be, one that does not.

A rule may have more scenes that must not accuse anybody, one for each innocent explanation.

The tapes of recordings/rules are made of them. Nothing here has happened; the shapes are those that
the rules' references tell of.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from helpers.chat import FINISH, calls, choice, entry, sse
from helpers.sample_streams import sample_stream
from helpers.scripted_tapes import Json, Staged, Timed

DONE = b"data: [DONE]\n\n"
TEXT = choice({"content": "Hello"})
STOP = choice({}, "stop")
CITY: Json = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Exchanges of one tape. `stop_s` and `exit_code`: see `staged.tape_of`."""

    exchanges: Sequence[Staged]
    stop_s: float = 0.0
    exit_code: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two scenes, and what the first yields beside the rule that it is for."""

    fires: Scene
    silent: Scene
    also: frozenset[str] = frozenset()
    innocent: Mapping[str, Scene] = field(default_factory=dict)
    """By what happens in them, further scenes that look like the first and accuse nobody."""


Pairs = Mapping[str, Pair]
Innocent = Mapping[str, Mapping[str, Scene]]
"""By the code of a rule, and by what happens in them, scenes that accuse nobody."""
_PAIRS: list[Callable[[], Pairs]] = []
_INNOCENT: list[Callable[[], Innocent]] = []


def recordings(pairs: Callable[[], Pairs]) -> Callable[[], Pairs]:
    """A decorator: the recordings of the rules whose codes are the keys of what it returns."""
    _PAIRS.append(pairs)
    return pairs


def innocents(more: Callable[[], Innocent]) -> Callable[[], Innocent]:
    """A decorator: further innocent scenes of rules that have recordings."""
    _INNOCENT.append(more)
    return more


def registered() -> Pairs:
    """All that was registered so far, by the codes of the rules."""
    by_rule = {code: pair for pairs in _PAIRS for code, pair in pairs().items()}
    for more in _INNOCENT:
        for code, scenes in more().items():
            pair = by_rule[code]
            by_rule[code] = replace(pair, innocent={**pair.innocent, **scenes})
    return by_rule


def pair(fires: Staged, silent: Staged, *also: str) -> Pair:
    """A pair of tapes with one exchange each."""
    return Pair(
        fires=Scene(exchanges=[fires]), silent=Scene(exchanges=[silent]), also=frozenset(also)
    )


def spared(base: Pair, **innocent: Staged | Scene) -> Pair:
    """`base` with innocent scenes; `html_page` becomes the recording `silent-html-page.tape`."""
    scenes = {
        what.replace("_", "-"): scene if isinstance(scene, Scene) else Scene(exchanges=[scene])
        for what, scene in innocent.items()
    }
    return replace(base, innocent={**base.innocent, **scenes})


def asked(**more: object) -> Json:
    """A request of Chat Completions that offers `get_weather`."""
    function = {"name": "get_weather", "parameters": CITY}
    return {
        "model": "m",
        "stream": True,
        "messages": [{"role": "user", "content": "What is the weather in Gent?"}],
        "tools": [{"type": "function", "function": function}],
        **more,
    }


def chat(*events: object, done: bool = True, request: Json | None = None) -> Staged:
    """Chat Completions, an event per read; bytes, timed or not, are sent as they are."""
    reads = [one if isinstance(one, bytes | tuple) else sse(one, done=False) for one in events]
    return Staged(reads=[*reads, *([DONE] if done else [])], request=request or asked())


def weather(
    *pieces: str, name: str = "get_weather", index: int = 0, number: int | None = None
) -> list[object]:
    """A call of `name`, the arguments in `pieces`; its id has the number, or the index."""
    identifier = f"call_fake{index if number is None else number}"
    opened = calls(entry(index, identifier, name=name, arguments=""))
    return [opened, *(calls(entry(index, arguments=piece)) for piece in pieces)]


CALL = weather('{"city":', '"Gent"}')
HEALTHY = (*CALL, FINISH)


def spoken(
    name: str,
    change: Callable[[bytes], bytes] = bytes,
    ask: Callable[[str], str] = str,
    wait: tuple[int, float] = (0, 0.0),
) -> Staged:
    """A healthy stream of recordings/dialects, changed.

    Args:
        name: of the tape.
        change: what becomes of each piece of the response.
        ask: what becomes of the request's JSON text.
        wait: before the piece of this number so many seconds pass.
    """
    stream = sample_stream(name)
    number, seconds = wait
    pieces = [change(piece) for piece in stream.pieces]
    reads: list[Timed] = [
        (0.02 * (at + 1) + (seconds if at >= number else 0.0), piece)
        for at, piece in enumerate(pieces)
        if piece
    ]
    return Staged(
        reads=reads,
        request=json.loads(ask(json.dumps(stream.request))),
        host=stream.upstream,
        target=stream.target,
        content_type=stream.headers["Content-Type"],
        headers=tuple(stream.headers.items())[1:],
    )
