"""The corpus of captured streams: where it is, its cases, and where we differ from a vendor's SDK.

It is no part of the repository (see docs/corpus.md): tests that need it skip where it is absent,
except under CI.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from deltatape.diagnose.rebuild import Analysis
from deltatape.model.exchange import Exchange

ROOT = Path(
    os.environ.get("DELTATAPE_CORPUS")
    or Path(__file__).resolve().parent.parent.parent.parent / "shared" / "corpus"
)
ABSENT = f"no corpus at {ROOT}; set DELTATAPE_CORPUS to its folder"


def is_present() -> bool:
    """Whether the corpus is there; raises under CI if it is not."""
    found = ROOT.is_dir()
    if not found and os.environ.get("CI") == "true":
        raise FileNotFoundError(ABSENT)
    return found


needs_corpus = pytest.mark.skipif(not is_present(), reason=ABSENT)
"""Skips a test where the corpus is absent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A captured response and what the vendor's own SDK made of it."""

    id: str
    body: bytes
    exchange: Exchange
    source: str
    answer: Mapping[str, object]
    """The SDK's answer, or what the bytes contain where the SDK raised."""
    raised: str
    """What the SDK raised; "" if nothing."""
    events: int
    """Server-sent events as the SDK's decoder sees them."""
    data_sha256: str
    """Of their data, joined by U+001E."""


def cases(dialect: str) -> Iterator[Case]:
    """The cases of a dialect, in order, without those that are marked unreliable."""
    for folder in sorted(ROOT.glob(f"*--{dialect}--*")) if is_present() else ():
        expected = _read(folder / "expected.json")
        if not expected.get("unreliable"):
            yield _case(folder, expected)


def differences(case: Case, analysis: Analysis) -> dict[str, tuple[object, object]]:
    """By aspect, what the SDK and we make of a case, where that differs."""
    reply = analysis.reply
    data = "\x1e".join(event.data for event in analysis.stream.events)
    ours = {
        "calls": [[call.name, call.id, call.arguments] for call in reply.tool_calls],
        "text": reply.text,
        "finish_reason": reply.finish_reason_raw,
        "events": len(analysis.stream.events),
        "data": hashlib.sha256(data.encode()).hexdigest(),
    }
    theirs = {
        "calls": [_theirs(call) for call in _list(case.answer["tool_calls"])],
        "text": case.answer["text"] or "",
        "finish_reason": case.answer["finish_reason"],
        "events": case.events,
        "data": case.data_sha256,
    }
    return {key: (theirs[key], ours[key]) for key in ours if theirs[key] != ours[key]}


DIFFERENT = {
    (
        "llm--openai-chat--test-tools-streaming-test-tools-streaming-variant-a-0",
        "calls",
    ): "a name or id that comes again is the same name or id (T009, T010); the SDK joins them",
    (
        "llm--openai-chat--test-tools-streaming-test-tools-streaming-variant-d-0",
        "calls",
    ): "`arguments: null` carries no argument bytes: the empty text, not null",
}
"""By case and aspect, the rule that decides where we differ from the SDK."""

RAISED = {
    "ai--openai-chat--chat-anthropic-fallback-tool-call-0": "the only call has index 1 (T013):"
    " an index is a key, not a position",
    "logfire--openai-chat--test-openai-test-openrouter-streaming-reasoning-0": "entries of"
    " `reasoning_details` have no index: what is no tool call needs none",
    "openllmetry--openai-chat--test-chat-test-writer-async-streaming-chat-multiple-tool-call-"
    "requests-0": "continuations with `name: null`, `type: null`: null is absent",
    "openllmetry--openai-chat--test-chat-test-writer-async-streaming-chat-tool-call-request-"
    "legacy-0": "continuations with `name: null`, `type: null`: null is absent",
    "pydantic-ai--openai-chat--test-groq-test-tool-use-failed-error-streaming-0": "an error event"
    " (S005) ends the reply; what came before it is kept",
    "pydantic-ai--openai-chat--test-openrouter-test-openrouter-stream-error-0": "an error frame"
    " (S005) after the finish reason; what came before it is kept",
}
"""Cases on which the SDK raises, and the rule by which we do not."""


def _case(folder: Path, expected: Mapping[str, object]) -> Case:
    request = _read(folder / "request.json")
    response = _read(folder / "response.json")
    body = (folder / "body.raw").read_bytes()
    raised = str(expected.get("oracle_error") or "")
    framing = _object(expected["sse"])
    asked = request["body"]
    return Case(
        id=folder.name,
        body=body,
        exchange=Exchange.from_body(
            body,
            content_type=str(_object(response["headers"]).get("content-type", "")),
            url=str(request["url"] or ""),
            request=asked if isinstance(asked, dict) else None,
            status=int(str(response["status"])),
        ),
        source=str(_read(folder / "meta.json")["source_repo"]),
        answer=_object(expected["hand_rule"]) if raised else expected,
        raised=raised,
        events=int(str(framing["events"])),
        data_sha256=str(framing["data_sha256"]),
    )


def _theirs(call: object) -> list[object]:
    told = _object(call)
    return [told["name"], told["id"], told["arguments"]]


def _read(path: Path) -> Mapping[str, object]:
    return _object(json.loads(path.read_text()))


def _object(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise TypeError(f"{value!r:.80} is no JSON object")
    return value


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r:.80} is no JSON array")
    return value
