"""No command that reads a tape ends in a traceback, whatever the tape holds."""

from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltatape.render.report import FORMATS
from helpers.clients import ROOT
from helpers.console import called
from helpers.scrambled import scrambled

TAPES = sorted(
    path
    for folder in ("dialects", "frameworks", "apps", "faults", "rules")
    for path in (ROOT / "recordings" / folder).rglob("*.tape")
    if path.stat().st_size < 40_000
)
COMMANDS = (
    ("why", "x.tape", "--suspects"),
    ("why", "x.tape", "--format", "md"),
    ("why", "x.tape", "--format", "json"),
    ("why", "x.tape", "--short", "--html", "x.html"),
    *(("check", "x.tape", "--format", form) for form in FORMATS),
    ("show", "x.tape"),
    ("show", "x.tape", "--calls"),
    ("show", "x.tape", "--calls", "--format", "json"),
    ("show", "x.tape#1", "--events"),
    ("show", "x.tape#1", "--events", "--format", "json"),
    ("show", "x.tape#1", "--reads"),
    ("show", "x.tape#1", "--steps"),
    ("show", "x.tape#1", "--steps", "--format", "json"),
    ("show", "x.tape", "--log"),
    ("watch", "x.tape"),
    ("ls", ".", "--full"),
    ("fsck", "x.tape"),
    ("redact", "x.tape", "-o", "y.tape"),
    ("redact", "x.tape", "--content", "-o", "z.tape"),
    ("diff", "x.tape#1", "x.tape#1"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile")


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(TAPES), st.integers(0, 2**32), st.sampled_from(COMMANDS))
def test_a_hostile_tape_ends_no_command(
    folder: Path, path: Path, seed: int, command: tuple[str, ...]
) -> None:
    (folder / "x.tape").write_bytes(scrambled(path.read_bytes(), Random(seed)))
    for made in ("y.tape", "z.tape", "x.html"):
        (folder / made).unlink(missing_ok=True)
    assert called(*command, folder=folder).returncode in (0, 1, 2)
