"""`show --steps`: an answer as it is built, for people and for programs."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from deltatape.model.exchange import Exchange
from deltatape.model.stepping import Stepping
from deltatape.render.lines import plain
from deltatape.render.steps import steps_json, steps_lines, steps_object
from deltatape.store.reader import open_tape
from deltatape.why.explain import explain
from deltatape.why.stepping import stepping
from helpers.chat import FINISH, calls, choice, entry, sse
from helpers.exchanges import FINISH_TEXT, pasted, timed
from helpers.incidents import BROKEN
from helpers.json_schemas import validate

INCIDENTS = Path(__file__).resolve().parents[2] / "recordings" / "incidents"
KEY = "sk-ant-api03-" + "Zq7Xw2Lm9Tp4Rk8Vb3Nc6Hd1Jf5Gs0Ya" * 3


def _of(*exchanges: Exchange, number: int = 1) -> Stepping:
    return stepping(explain(exchanges, number), exchanges)


def _incident(path: Path, number: int = 1) -> Stepping:
    return _of(*sorted(open_tape(path), key=lambda each: each.number), number=number)


def _text(found: Stepping, width: int = 120) -> list[str]:
    return plain(steps_lines(found, width)).splitlines()


def _built(steps: list[dict[str, object]]) -> list[tuple[object, object, str]]:
    """Build the calls as the schema says, as a page would."""
    made: dict[int, dict[str, object]] = {}
    for step in steps:
        for change in step["calls"]:  # type: ignore[attr-defined]
            call = made.setdefault(change["call"], {"arguments": ""})
            call |= {key: change[key] for key in ("id", "name") if key in change}
            if "arguments" in change:
                new = change["arguments"]
                assert new["from"] in (0, len(str(call["arguments"])))
                call["arguments"] = str(call["arguments"])[: new["from"]] + new["add"]
        for number in step.get("dropped", ()):  # type: ignore[attr-defined]
            del made[number]
    return [(one["id"], one["name"], str(one["arguments"])) for _, one in sorted(made.items())]


@pytest.mark.parametrize("path", sorted(INCIDENTS.rglob("*.tape")), ids=lambda path: path.stem)
def test_the_json_has_all_that_is_needed_to_build_the_calls(path: Path) -> None:
    exchanges = sorted(open_tape(path), key=lambda each: each.number)
    for exchange in exchanges:
        explanation = explain(exchanges, exchange.number)
        found = stepping(explanation, exchanges)
        document = json.loads(steps_json(found))
        validate("steps", document)
        assert json.loads(json.dumps({"version": 1, **steps_object(found)})) == document
        for suspect, told in zip(explanation.suspects, document["suspects"], strict=False):
            made = [(call.id, call.name, call.arguments) for call in suspect.made.calls]
            assert _built(told["steps"]) == made
            assert told["steps"][-1].get("errors", []) == list(suspect.made.errors)


def test_a_step_has_what_changed_and_no_more() -> None:
    steps = json.loads(steps_json(_incident(BROKEN)))["suspects"][0]["steps"]
    assert steps[0]["calls"] == [
        {
            "call": 0,
            "id": "call_get_itinerary",
            "name": "get_itinerary",
            "arguments": {"from": 0, "add": ""},
        }
    ]
    assert steps[2]["calls"] == [{"call": 1, "arguments": {"from": 0, "add": '{"trip'}}]
    assert set(steps[2]) == {"event", "t_ns", "calls", "note"}
    assert steps[-1]["event"] is None


def test_each_step_is_a_line() -> None:
    found = _incident(BROKEN)
    lines = steps_json(found).splitlines()
    steps = [line for line in lines if line.lstrip().startswith('{"event"')]
    assert len(steps) == len(found.reference) + sum(len(each.steps) for each in found.suspects)
    silent = steps_json(_of(pasted({"hello": 1}, done=False)))
    assert json.loads(silent)["suspects"] == []


def test_a_secret_that_comes_in_pieces_is_shown_in_none() -> None:
    pieces = [KEY[at : at + 9] for at in range(0, len(KEY), 9)]
    chunks = [
        calls(entry(0, "c1", name="get", arguments='{"a":"')),
        calls(entry(1, "c2", name="put", arguments="")),
        *(calls(entry(0, arguments=piece)) for piece in pieces),
        calls(entry(0, arguments='"}')),
        FINISH,
    ]
    found = _of(pasted(*chunks))
    printed = steps_json(found)
    whole = _built(json.loads(printed)["reference"]["steps"])
    assert whole[0][2] == '{"a":"' + "*" * len(KEY) + '"}'
    assert KEY not in printed
    correct = json.dumps(json.loads(printed)["reference"])
    shown = correct + plain(steps_lines(replace(found, suspects=()), 400))
    assert not [piece for piece in pieces if len(piece) > 1 and piece in shown]


def test_the_reference_stands_beside_the_suspect() -> None:
    lines = _text(_incident(BROKEN))
    assert lines[1].split() == ["event", "seconds", "reference", "single-current-call"]
    assert lines[2].split()[-2:] == ["the", "same"]
    moved = "appends a fragment of call 0 to call 1, the one that began last"
    assert lines[4].split("  ")[-1].startswith(moved[:40])
    assert "in the end" in lines
    assert lines[-1].startswith("single-current-call: it ") or "it throws" in " ".join(lines[-3:])
    assert any("get_itinerary (call_get_itinerary) (no arguments)" in each for each in lines)
    assert all(len(each) <= 60 for each in _text(_incident(BROKEN), 60))


def test_what_a_suspect_lacks_is_nothing_and_what_only_it_does_stands_alone() -> None:
    found = _of(
        pasted(
            calls(entry(0, "c1", name="get", arguments="{}")),
            choice({}, "stop"),
            calls(entry(1, "c2", name="put", arguments="{}")),
            FINISH,
        )
    )
    stops = next(each for each in found.suspects if each.name == "any-finish-ends")
    lines = _text(replace(found, suspects=(stops,)))
    assert lines[0] == "in wire order; no times were recorded"
    assert lines[3].split() == ["1", "-", "stops", "reading:", *lines[3].split()[4:]]
    assert lines[4].split()[-1] == "nothing"
    told = "nothing speaks against the app; any-finish-ends would go wrong here: it stops reading"
    assert told in " ".join(lines)


def test_events_that_only_add_to_the_text_are_one_row() -> None:
    words = [choice({"content": word}) for word in ("a", "b", "c")]
    lines = _text(_of(pasted(*words, FINISH_TEXT)))
    assert [line.split("  ")[-1] for line in lines[1:]] == [
        "reference",
        "appends to the text: 3 events",
        "has 0 calls; finish reason stop",
    ]
    one = _text(_of(pasted(words[0], FINISH_TEXT)))
    assert one[2].endswith("appends to the text")


def test_the_app_s_page_says_whose_response_it_is() -> None:
    lines = _text(_incident(INCIDENTS / "3-app-events" / "broken.tape", 1))
    assert "this is the response of #2, which the app read" in lines


def test_reads_stand_between_the_events_they_complete() -> None:
    body = sse(calls(entry(0, "c1", name="get", arguments="{}")), FINISH)
    found = _of(timed((0.1, body[:60]), (0.2, body[60:]), end_s=0.3))
    by_read = [each for each in found.suspects if each.name == "split-on-network-read"]
    lines = _text(replace(found, suspects=tuple(by_read)))
    assert [line.split()[:2] for line in lines[2:6]] == [
        ["read", "0"],
        ["0", "0.200"],
        ["end", "0.300"],
        ["in", "the"],
    ]
    assert "cannot parse" in lines[2]


def test_other_suspects_are_named() -> None:
    lines = _text(
        _of(pasted(calls(entry(0, "c1", name="get")), calls(entry(0, arguments="{}")), FINISH)), 200
    )
    assert lines[-1].startswith("likewise: ")
    assert lines[-1].endswith(" more; --format json has their steps")
