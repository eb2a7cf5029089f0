"""Apps that are odd but right are accused of nothing; faults are told, and their twins are not.

The tapes of recordings/apps and recordings/faults are made by scripts/tape-apps. True findings on
apps that are right are listed in odd_apps.yaml, what tells each fault in faulty_apps.yaml.
"""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from faulty_apps.registry import FAULTS
from odd_apps.kit import App
from odd_apps.registry import APPS

ROOT = Path(__file__).resolve().parent.parent
LARGEST = 4_000_000


class Told(NamedTuple):
    """What `deltatape check` says in one finding."""

    code: str
    severity: str
    blame: str | None
    confidence: str
    message: str

    @property
    def accuses(self) -> bool:
        """Whether it holds something against the app, or is an error against anybody."""
        sure = self.confidence in ("proven", "likely")
        return (self.blame == "app" and sure) or self.severity == "error"


@cache
def checked(folder: str) -> dict[str, list[Told]]:
    """All findings on the tapes of a folder, by the name of the tape."""
    ran = subprocess.run(
        [sys.executable, "-m", "deltatape", "check", "--format", "json", f"recordings/{folder}"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    assert ran.returncode in (0, 1), ran.stderr
    told: dict[str, list[Told]] = {path.stem: [] for path in tapes(folder)}
    for finding in json.loads(ran.stdout)["findings"]:
        told[Path(finding["tape"].partition("#")[0]).stem].append(
            Told(*(finding[name] for name in Told._fields))
        )
    return told


def tapes(folder: str) -> list[Path]:
    """The tapes of a folder."""
    return sorted((ROOT / "recordings" / folder).glob("*.tape"))


def listed(name: str) -> Any:
    """What a data file lists."""
    return yaml.safe_load((ROOT / "tests" / name).read_text())


TRUE = listed("odd_apps.yaml")
EXPECTED = {entry["tape"]: entry for entry in listed("faulty_apps.yaml")}


@pytest.mark.parametrize(("folder", "registry"), [("apps", APPS), ("faults", FAULTS)])
def test_each_app_has_its_tape_and_each_tape_its_app(folder: str, registry: dict[str, App]) -> None:
    assert sorted(path.stem for path in tapes(folder)) == sorted(registry)


def test_the_tapes_are_small() -> None:
    sizes = [path.stat().st_size for folder in ("apps", "faults") for path in tapes(folder)]
    assert sum(sizes) < LARGEST


def test_each_app_says_why_it_is_as_it_is() -> None:
    apps = (*APPS.values(), *FAULTS.values())
    assert [app.name for app in apps if not app.why.endswith(".")] == []


def test_what_is_listed_as_true_is_about_tapes_that_exist() -> None:
    assert {entry["tape"] for entry in TRUE} <= set(APPS)
    assert all(entry["reason"] for entry in TRUE)


def test_an_app_that_is_right_is_not_accused() -> None:
    true = {(entry["tape"], entry["code"], party) for entry in TRUE for party in entry["blame"]}
    wrong = [
        (name, told)
        for name in sorted(APPS)
        for told in checked("apps")[name]
        if told.accuses and (name, told.code, told.blame) not in true
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "entry",
    [entry for entry in TRUE if not entry.get("optional")],
    ids=lambda entry: f"{entry['tape']}-{entry['code']}",
)
def test_what_is_true_of_the_wire_of_a_right_app_is_reported(entry: dict[str, Any]) -> None:
    told = checked("apps")[entry["tape"]]
    assert entry["code"] in {one.code for one in told}


def test_each_fault_has_its_expectation() -> None:
    assert sorted(EXPECTED) == sorted(name for name in FAULTS if not name.endswith("-healthy"))


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_fault_is_reported(name: str) -> None:
    expected = EXPECTED[name]
    told = [one for one in checked("faults")[name] if one.code in expected["codes"]]
    assert told, [(one.code, one.blame, one.confidence) for one in checked("faults")[name]]
    assert {one.blame for one in told} <= set(expected["blame"])


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_fault_is_held_against_nobody_else(name: str) -> None:
    parties = set(EXPECTED[name]["blame"]) | {None}
    wrong = [
        told
        for told in checked("faults")[name]
        if told.accuses and told.blame not in parties and told.code not in also(name, "also")
    ]
    assert wrong == []


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_the_healthy_twin_is_silent(name: str) -> None:
    told = [one for one in checked("faults")[f"{name}-healthy"] if one.severity != "info"]
    assert [one for one in told if one.code not in also(name, "healthy")] == []


def also(name: str, word: str) -> dict[str, str]:
    """Codes that are true beside the fault, or of its twin, each with its reason."""
    codes: dict[str, str] = EXPECTED[name].get(word, {})
    return codes
