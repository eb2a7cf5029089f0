"""The corpus of captured streams: where it is, its cases, and where we differ from a vendor's SDK.

It is no part of the repository (see docs/corpus.md): tests that need it skip where it is absent,
except under CI. The rules by which we differ are: one file per dialect in tests/corpus/.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
import yaml

from deltatape.diagnose.check import check
from deltatape.diagnose.rebuild import Analysis
from deltatape.model.exchange import Exchange
from deltatape.model.finding import Severity
from deltatape.wire.json_value import canonical

ROOT = Path(
    os.environ.get("DELTATAPE_CORPUS")
    or Path(__file__).resolve().parent.parent.parent.parent / "shared" / "corpus"
)
RULES = Path(__file__).resolve().parent.parent / "corpus"
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
    """A captured response, and the reply that the vendor's own SDK built from it."""

    id: str
    dialect: str
    body: bytes
    exchange: Exchange
    source: str
    answer: Mapping[str, object]
    """The SDK's answer, or what the bytes contain where the SDK raised."""
    raised: str
    """What the SDK raised; "" if nothing."""
    events: int | None
    """Server-sent events as the SDK's decoder sees them; None where there are none."""
    data_sha256: str
    """Of their data, joined by U+001E."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Known differences from the SDK in cases of one dialect, each with its reason."""

    different: Mapping[tuple[str, str], str]
    """By case and aspect."""
    raised: Mapping[str, str]
    """By case on which the SDK raises."""


def cases(dialect: str) -> Iterator[Case]:
    """The cases of a dialect, in order, without those that are left out."""
    return (case for case in every_case() if case.dialect == dialect)


@cache
def every_case() -> tuple[Case, ...]:
    """All cases, in order, without those that are left out."""
    folders = sorted(ROOT.glob("*--*--*")) if is_present() else []
    left = left_out()
    return tuple(_case(folder) for folder in folders if folder.name not in left)


@cache
def left_out() -> Mapping[str, str]:
    """Cases that are left out, and why."""
    found = {}
    for folder in sorted(ROOT.glob("*--*--*")) if is_present() else []:
        url = str(_read(folder / "request.json")["url"])
        if _read(folder / "expected.json").get("unreliable"):
            found[folder.name] = "one file joins several messages"
        elif "/threads" in url:
            found[folder.name] = "the Assistants API, which is withdrawn"
        elif "api.writer.com/v1/completions" in url:
            found[folder.name] = (
                "a completion in a shape of its own, of which the SDK reads nothing"
            )
    return found


def rules(dialect: str) -> Rules:
    """The known differences from the SDK in cases of `dialect`."""
    path = RULES / f"{dialect}.yaml"
    data = yaml.safe_load(path.read_text()) if path.exists() else {}
    return Rules(
        different={
            (one["stream"], one["aspect"]): one["rule"] for one in data.get("different", ())
        },
        raised={one["stream"]: one["rule"] for one in data.get("raised", ())},
    )


def differences(case: Case, analysis: Analysis) -> dict[str, tuple[object, object]]:
    """By aspect, the results of the SDK and of deltatape for a case, if they differ.

    An answer that the SDK did not come to the end of tells only some aspects.
    """
    answer, reply = case.answer, analysis.reply
    data = "\x1e".join(event.data for event in analysis.stream.events)
    sdk_calls = [_object(call) for call in _list(answer.get("tool_calls", []))]
    by_value = any(call["arguments"] is None for call in sdk_calls)
    reason = answer.get("finish_reason")
    pairs: dict[str, tuple[object, object]] = {
        "tool_calls": (
            [_sdk_call(call, by_value=by_value) for call in sdk_calls],
            [
                [call.name, call.id, _json(call.arguments) if by_value else call.arguments]
                for call in reply.tool_calls
            ],
        ),
        "text": (answer.get("text") or "", reply.text),
        "finish_reason": (reason if reason is None else str(reason), reply.finish_reason_raw),
    }
    pairs = {aspect: pair for aspect, pair in pairs.items() if aspect in answer}
    if case.events is not None:
        pairs["events"] = (case.events, len(analysis.stream.events))
        pairs["data"] = (case.data_sha256, hashlib.sha256(data.encode()).hexdigest())
    return {
        "calls" if aspect == "tool_calls" else aspect: pair
        for aspect, pair in pairs.items()
        if pair[0] != pair[1]
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasons:
    """Why findings on captured streams are true."""

    errors: Mapping[str, tuple[Sequence[str], str]]
    """By stream: the codes, and the reason."""
    others: Mapping[str, str]
    """By code, for warnings and remarks."""


@cache
def reasons() -> Reasons:
    """All reasons."""
    data = yaml.safe_load((RULES / "findings.yaml").read_text())
    return Reasons(
        errors={one["stream"]: (one["codes"], one["reason"]) for one in data["errors"]},
        others=data["others"],
    )


@cache
def every_finding() -> Sequence[tuple[Case, Sequence[tuple[str, Severity]]]]:
    """Code and severity of every finding on each case."""
    return [
        (case, [(finding.code, finding.severity) for finding in check(case.exchange)])
        for case in every_case()
    ]


def _sdk_call(call: Mapping[str, object], *, by_value: bool) -> list[object]:
    arguments = call["arguments"]
    if by_value:
        text = arguments if isinstance(arguments, str) else json.dumps(call["arguments_json"])
        arguments = _json(text)
    return [call["name"], call["id"], arguments]


def _json(text: str) -> str:
    return canonical(text) or text


def _dialect(folder: Path, url: str) -> str:
    """The name of the dialect of a case in deltatape."""
    name = folder.name.split("--")[1]
    if name == "bedrock-eventstream":
        return "bedrock-invoke" if "/invoke" in url else "bedrock-converse"
    if name == "other":
        return "gemini-interactions" if "/interactions" in url else "openai-completions"
    return name


def _case(folder: Path) -> Case:
    expected = _read(folder / "expected.json")
    request = _read(folder / "request.json")
    response = _read(folder / "response.json")
    body = (folder / "body.raw").read_bytes()
    raised = str(expected.get("oracle_error") or "")
    framing = _object(expected.get("sse", {}))
    asked = request["body"]
    url = str(request["url"] or "")
    by_hand = expected.get("hand_rule")
    return Case(
        id=folder.name,
        dialect=_dialect(folder, url),
        body=body,
        exchange=Exchange.from_body(
            body,
            content_type=str(_object(response["headers"]).get("content-type", "")),
            url=url,
            request=asked if isinstance(asked, dict) else None,
            status=int(str(response["status"])),
        ),
        source=str(_read(folder / "meta.json")["source_repo"]),
        answer=_object(by_hand) if raised and by_hand else expected,
        raised=raised,
        events=int(str(framing["events"])) if framing else None,
        data_sha256=str(framing.get("data_sha256")),
    )


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
