"""The 40 synthetic chat completions, healthy and defective, with the calls they amount to."""

import json
from dataclasses import dataclass
from pathlib import Path

_FILE = Path(__file__).parent.parent / "vectors" / "chat_defects.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Vector:
    """A stream and what a correct client makes of it."""

    name: str
    kind: str
    """`healthy`, `trap` (legal, but clients stumble) or `defective`."""
    codes: frozenset[str]
    """Finding codes of which a defective one shows at least one."""
    body: bytes
    calls: tuple[tuple[str | None, str | None, str], ...]
    """Id, name and arguments of each call."""


def _load() -> tuple[Vector, ...]:
    cases = json.loads(_FILE.read_text())["cases"]
    found = []
    for name, case in cases.items():
        frames = [json.dumps(chunk) for chunk in case["chunks"]]
        frames += ["[DONE]"] if case["done_sentinel"] else []
        calls = case["reference_calls"]
        found.append(
            Vector(
                name=name,
                kind=case["kind"],
                codes=frozenset(case["codes_any"]),
                body="".join(f"data: {frame}\n\n" for frame in frames).encode(),
                calls=tuple((call["id"], call["name"], call["arguments"]) for call in calls),
            )
        )
    return tuple(found)


VECTORS = _load()
