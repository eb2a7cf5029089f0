import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from deltatape.errors import UsageError
from deltatape.suspects.client import CORRECT, Preset, mistakes_of
from deltatape.suspects.documentation import find, page, preset_fix, suspect_page
from deltatape.suspects.mistakes import MISTAKES, MistakeOption
from deltatape.suspects.presets import PRESETS

ROOT = Path(__file__).resolve().parent.parent.parent


def test_every_preset_stands_on_the_page_once() -> None:
    text = page()
    assert len(PRESETS) == len({preset.name for preset in PRESETS})
    assert all(text.count(f"\n| {preset.name} | ") == 1 for preset in PRESETS)


def test_presets_that_are_met_most_come_first() -> None:
    assert [preset.place for preset in PRESETS] == sorted(preset.place for preset in PRESETS)
    assert [preset.name for preset in PRESETS[:2]] == [
        "deltas-keyed-by-call-id",
        "arguments-at-item-added",
    ]
    assert PRESETS[-1].name == "keyed-by-name"


def test_the_page_is_up_to_date() -> None:
    run = subprocess.run(
        [sys.executable, ROOT / "scripts" / "suspects-docs", "--check"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
def test_a_preset_is_explained(preset: Preset) -> None:
    text = suspect_page(preset.name.upper()) or ""
    for heading in ("## What it does", "## Example", "## Fix", "## References"):
        assert text.count(heading) == 1
    fix = preset_fix(preset)
    assert fix.endswith(".")
    assert 10 < len(fix) < 220
    assert "`" not in fix
    assert preset.references
    assert all(one.startswith("https://") and f"- {one}" in text for one in preset.references)
    assert preset.families


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
def test_what_a_preset_does_otherwise_are_known_mistakes(preset: Preset) -> None:
    assert preset.clients
    for client in preset.clients:
        chosen = {*asdict(client).items()} - {*asdict(CORRECT).items()}
        assert {(one.axis, one.value) for one in mistakes_of(client)} == chosen != set()


def test_no_two_presets_are_the_same_client_in_one_dialect() -> None:
    seen = [
        (family, client)
        for preset in PRESETS
        for family in preset.families
        for client in preset.clients
    ]
    assert len(seen) == len({*seen})


def test_what_is_no_preset_is_not_explained() -> None:
    assert find("x") is None
    assert suspect_page("x") is None


@pytest.mark.parametrize("choice", MISTAKES.values(), ids=lambda choice: choice.mistake.value)
def test_every_mistake_is_explained_by_its_axis_and_value(choice: MistakeOption) -> None:
    one = choice.mistake
    told = suspect_page(f"{one.axis}={one.value}")
    assert told
    assert f"It {one.says}." in told
    assert f"Fix: {one.fix}." in told


def test_several_mistakes_are_explained_one_by_one_with_the_preset_that_makes_them() -> None:
    told = suspect_page("key=call-id,incomplete=dropped")
    assert told
    assert told.startswith(
        "# key=call-id,incomplete=dropped\n\nA client that looks for the call id"
    )
    assert "## key=call-id\n" in told
    assert "## incomplete=dropped\n" in told
    assert "The same as `deltas-keyed-by-call-id`" in told
    assert "The same as" not in (suspect_page("key=one,emit=when-parses") or "")


def test_a_mistake_that_does_not_exist_is_answered_with_those_that_do() -> None:
    with pytest.raises(UsageError, match="key=foo: no such mistake; key=single, key=current"):
        suspect_page("emit=at-name,key=foo")
    with pytest.raises(UsageError, match="kay=foo: no such mistake; there is no axis 'kay'"):
        suspect_page("kay=foo")
    assert suspect_page("key=one.tape") is None
