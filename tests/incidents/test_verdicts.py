"""What `deltatape why` says of the tapes of the incidents: tests/incidents/expected.yaml."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from deltatape.demo.demo import INCIDENTS
from deltatape.model.finding import Confidence
from deltatape.store.reader import open_tape
from helpers.console import called

EXPECTED: dict[str, dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parent / "expected.yaml").read_text()
)
KEYS = {"blame", "confidence", "codes", "says", "suspect", "fix"}
LISTS = KEYS - {"confidence"}
SURE = list(Confidence)


def why(place: str, folder: Path) -> dict[str, Any]:
    """What `why` says of a place such as `5-agent-loop/broken#2`."""
    name, mark, number = place.partition("#")
    result = called(
        "why", "--format", "json", f"{INCIDENTS / name}.tape{mark}{number}", folder=folder
    )
    assert result.returncode == 0, result.stderr.decode()
    told: dict[str, Any] = json.loads(result.stdout)
    return told


def holds_any(text: str, words: Iterable[str]) -> bool:
    """Whether one of the words stands in `text`."""
    return any(word.lower() in text.lower() for word in words)


@pytest.mark.parametrize(("place", "wanted"), EXPECTED.items(), ids=list(EXPECTED))
def test_the_verdict_is_the_right_one(place: str, wanted: dict[str, Any], tmp_path: Path) -> None:
    told = why(place, tmp_path)
    verdict = told["verdict"]
    first = told["suspects"][0] if told["suspects"] else {"name": "", "fix": ""}
    blame = verdict["blame"] or "none"
    assert blame in wanted.get("blame", [blame]), verdict
    if "confidence" in wanted:
        least = SURE.index(Confidence(wanted["confidence"]))
        assert SURE.index(Confidence(verdict["confidence"])) <= least
    assert {each["code"] for each in told["findings"]} >= set(wanted.get("codes", ()))
    for word in wanted.get("says", ()):
        assert holds_any(verdict["summary"], [word]), verdict
    if "suspect" in wanted:
        assert first["name"] in wanted["suspect"], [each["name"] for each in told["suspects"]]
    if "fix" in wanted:
        assert holds_any(verdict["fix"] + first["fix"], wanted["fix"]), (verdict, first)


def sound() -> list[str]:
    """All exchanges of the tapes on which the application does nothing wrong."""
    paths = [*INCIDENTS.glob("*/fixed.tape"), *INCIDENTS.glob("*/upstream.tape")]
    return [
        f"{path.parent.name}/{path.stem}#{exchange.number}"
        for path in sorted(paths)
        for exchange in open_tape(path)
    ]


@pytest.mark.parametrize("place", sound())
def test_a_sound_application_is_not_blamed_for_anything(place: str, tmp_path: Path) -> None:
    assert why(place, tmp_path)["verdict"]["blame"] != "app"


def test_each_tape_of_an_incident_has_its_expectations() -> None:
    tapes = {f"{path.parent.name}/{path.stem}" for path in INCIDENTS.glob("*/*.tape")}
    assert {place.partition("#")[0] for place in EXPECTED} == tapes


@pytest.mark.parametrize("place", EXPECTED)
def test_expectations_are_spelled_as_the_test_reads_them(place: str) -> None:
    assert EXPECTED[place].keys() <= KEYS
    assert all(isinstance(EXPECTED[place].get(key, []), list) for key in LISTS)


def test_the_tapes_are_small() -> None:
    sizes = {path.name: path.stat().st_size for path in INCIDENTS.glob("*/*.tape")}
    assert sizes
    assert max(sizes.values()) < 60_000
