"""A reply made ready for one request: its calls have names, arguments and ids.

JSON values with raw text in them are written with placeholders, since a number such as 1e3 would
not survive a parser.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from framework_tapes.script import Call, Handoff, Reply, Structured, pieces, token

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """What a request offers and wants, in terms that all dialects share."""

    tools: Mapping[str, Json]
    """JSON Schemas of parameters by name."""
    forced: str | None
    """The tool that has to be called, if it is one."""
    as_text: bool
    """Whether the answer has to be JSON text."""
    schema: Json = field(default_factory=dict)
    """The schema of that text, if the request has one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A call that is ready to be written."""

    id: str
    """Without the prefix of a dialect."""
    name: str
    arguments: str
    fragments: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Saying:
    """A reply for one request."""

    seed: str
    """The same in every run, another one in every step."""
    thinking: str
    text: str
    calls: Sequence[Made]


def made(reply: Reply, offered: Offered, seed: str) -> Saying:
    """`reply` as this request gets it."""
    text = reply.text
    calls: list[Made] = []
    for index, each in enumerate(reply.calls):
        if isinstance(each, Structured) and (offered.as_text or not offered.tools):
            text += _filled(each.value, each.fill, offered.schema)
            continue
        calls.append(_call(each, offered, f"{seed}/{index}"))
    return Saying(seed=seed, thinking=reply.thinking, text=text, calls=calls)


def _call(call: Call | Handoff | Structured, offered: Offered, seed: str) -> Made:
    if isinstance(call, Call):
        name = call.name
        text, size = _filled(call.arguments, call.fill, offered.tools.get(name, {})), call.fragment
    elif isinstance(call, Handoff):
        # By the names that frameworks give to such tools, or that the drivers do.
        name = next(name for name in offered.tools if "transfer" in name or "handoff" in name)
        text, size = _filled("{}", call.fill, offered.tools.get(name, {})), 9
    else:
        name = offered.forced or _output_tool(offered)
        text, size = _filled(call.value, call.fill, offered.tools.get(name, {})), 12
    return Made(id=token(seed, 20), name=name, arguments=text, fragments=tuple(pieces(text, size)))


def _filled(text: str, fill: Mapping[str, str], schema: Json) -> str:
    """`text`, an object, with what the schema requires."""
    required = schema.get("required") or ()
    added = [f'"{name}": {raw}' for name, raw in fill.items() if name in required]
    if not added:
        return text
    begun = text.removesuffix("}")
    return begun + (", " if len(begun) > 1 else "") + ", ".join(added) + "}"


_OURS = frozenset({"get_weather", "get_time", "search", "convert", "roll_dice"})


def _output_tool(offered: Offered) -> str:
    return next(name for name in offered.tools if name not in _OURS)


@dataclass(slots=True)
class Writer:
    """Writes JSON whose values may be raw text."""

    raws: list[str] = field(default_factory=list)

    def raw(self, text: str) -> str:
        """A value that stands for `text`, which is JSON."""
        self.raws.append(text)
        return f"\x00{len(self.raws) - 1}\x00"

    def dumps(self, value: object) -> str:
        """`value` as JSON, without ASCII escapes."""
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        for at, raw in enumerate(self.raws):
            text = text.replace(f'"\\u0000{at}\\u0000"', raw)
        return text


def words(text: str) -> Iterable[str]:
    """`text` in tokens: a model's pieces of two words, and emoji whose code points are parted."""
    return pieces(text, 18) if text.isascii() else pieces(text, 5)
