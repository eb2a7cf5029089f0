"""The algorithms of the catalogue over the synthetic streams, against what was measured there."""

import json
from pathlib import Path

import pytest

from deltatape.suspects.client import client_of
from deltatape.suspects.search import equal, rows
from deltatape.suspects.simulation import ClientRunner
from helpers import responses
from helpers.suspected import call_fields, deliver
from helpers.vectors import RESPONSES, VECTORS, Vector

_FILE = Path(__file__).parent.parent / "vectors" / "chat_defects.json"
_MEASURED = {
    name: frozenset(one.rstrip("!") for one in case["naive_clients_that_differ"])
    for name, case in json.loads(_FILE.read_text())["cases"].items()
}
Point = tuple[tuple[str, str], ...]
_ALGORITHMS: dict[str, Point] = {
    "N01": (("key", "single"), ("emit", "on-tool-calls"), ("name", "at-opening")),
    "N02": (("key", "none"),),
    "N03": (("emit", "on-tool-calls"),),
    "N04": (("name", "concatenate"),),
    "N05": (("id", "concatenate"),),
    "N06": (("key", "one"),),
    "N07": (("key", "strict"),),
    "N08": (("key", "id"),),
    "N09": (("entries", "first"),),
    "N10": (("stop", "finish-before"),),
    "N11": (("incomplete", "dropped"),),
    "N12": (("arguments", "drop-first"), ("emit", "on-tool-calls"), ("id", "first")),
    "N13": (("parse", "fragments"),),
    "N14": (("guard", "unguarded"),),
    "N15": (("emit", "last-tool-calls"),),
    "N16": (("stop", "finish"),),
    "N17": (("emit", "when-parses"),),
    "N18": (("parse", "swallow"),),
}
_SHARED: Point = (("value", "raise"), ("kinds", "no-legacy"))
"""What all of them do besides: append an object to a string, and read tool_calls only."""
_DISAGREE = {
    ("07 id missing everywhere", "N12"): "an id of '' is no other one than no id, here",
    ("35 double-encoded args", "N18"): "a string in JSON parses; what it swallows there is that it"
    " is not an object",
}


def _differing(vector: Vector) -> frozenset[str]:
    runner = ClientRunner(deliver(vector.body))
    found = set()
    for name, point in _ALGORITHMS.items():
        outcome = runner.outcome(client_of(*point, *_SHARED))
        if outcome.thrown or not equal(outcome.calls, runner.stream.calls, runner.ids):
            found.add(name)
    return frozenset(found)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.name)
def test_algorithms_go_wrong_with_the_streams_with_which_they_were_seen_to(vector: Vector) -> None:
    explained = {name for case, name in _DISAGREE if case == vector.name}
    assert _differing(vector) ^ _MEASURED[vector.name] == explained


def test_a_healthy_stream_convicts_five_of_them() -> None:
    interleaved = next(one for one in VECTORS if one.name.startswith("02"))
    assert _differing(interleaved) == {"N01", "N02", "N06", "N08", "N13"}


@pytest.mark.parametrize("vector", RESPONSES, ids=lambda vector: vector.name)
def test_both_published_attempts_at_responses_go_wrong(vector: Vector) -> None:
    runner = ClientRunner(deliver(vector.body, url=responses.URL))
    assert equal(runner.documented().calls, runner.stream.calls, runner.ids)
    row = {one.name: one.made.calls for one in rows(runner)}
    assert row["deltas-keyed-by-call-id"] == ()
    texts = [arguments for *_, arguments in call_fields(row["arguments-at-item-added"])]
    whole_at_once = vector.name.startswith("R13")
    assert set(texts) <= ({'{"a":1}'} if whole_at_once else {""})


def test_only_one_attempt_survives_where_items_are_added_whole() -> None:
    vector = next(one for one in RESPONSES if one.name.startswith("R13"))
    found = {one.name: one for one in rows(ClientRunner(deliver(vector.body, url=responses.URL)))}
    assert found["deltas-keyed-by-call-id"].differs
    assert not found["arguments-at-item-added"].differs


def test_the_last_event_may_list_nothing() -> None:
    vector = next(one for one in RESPONSES if one.name.startswith("R05"))
    found = {one.name: one for one in rows(ClientRunner(deliver(vector.body, url=responses.URL)))}
    assert found["final-output-only"].made.calls == ()
    assert not found["item-done-only"].differs
