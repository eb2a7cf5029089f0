"""Synthetic streams, healthy and defective, with their calls.

40 chat completions and 19 responses of OpenAI's other API.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_FOLDER = Path(__file__).parent.parent / "vectors"

_Case = Mapping[str, list[dict[str, object]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Vector:
    """A stream, and the calls of a correct client."""

    name: str
    kind: str
    """`healthy`, `trap` (legal, but clients stumble) or `defective`."""
    codes: frozenset[str]
    """Finding codes, at least one of which a defective stream must have."""
    body: bytes
    calls: tuple[tuple[str | None, str | None, str], ...]
    """Id, name and arguments of each call."""
    status: str | None
    """The status of the first call, where the file tells it."""


def _chat(case: _Case) -> Iterator[str]:
    for chunk in case["chunks"]:
        yield f"data: {json.dumps(chunk)}\n\n"
    if case["done_sentinel"]:
        yield "data: [DONE]\n\n"


def _responses(case: _Case) -> Iterator[str]:
    for event in case["events"]:
        yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"


def _load(file: str) -> tuple[Vector, ...]:
    frames = _chat if file == "chat_defects.json" else _responses
    cases = json.loads((_FOLDER / file).read_text())["cases"]
    found = []
    for name, case in cases.items():
        calls = case["reference_calls"]
        found.append(
            Vector(
                name=name,
                kind=case["kind"],
                codes=frozenset(case["codes_any"]),
                body="".join(frames(case)).encode(),
                calls=tuple((call["id"], call["name"], call["arguments"]) for call in calls),
                status=case.get("first_call_status"),
            )
        )
    return tuple(found)


VECTORS = _load("chat_defects.json")
"""Chat completions."""
RESPONSES = _load("responses_defects.json")
"""Responses."""
