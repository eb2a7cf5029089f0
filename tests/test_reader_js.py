"""The reader in examples/reader-js, written from the specification, reads what deltatape reads."""

import json
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from helpers.format_reading import reading
from helpers.needed import skip_unless

ROOT = Path(__file__).resolve().parent.parent
READER = ROOT / "examples" / "reader-js" / "read.mjs"
RECORDINGS = ROOT / "recordings"
CONFORMANCE = RECORDINGS / "conformance"


@pytest.fixture(autouse=True)
def _installed() -> None:
    skip_unless(shutil.which("node"), "no Node.js")


def read_by_node(paths: Sequence[Path]) -> list[object]:
    """What the reader prints for each tape; it has to get through all of them."""
    done = subprocess.run(
        ["node", READER, *paths], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.stderr == ""
    found: list[object] = [json.loads(line) for line in done.stdout.split("\n")[:-1]]
    assert len(found) == len(paths)
    assert done.returncode == any(isinstance(each, dict) and each["refused"] for each in found)
    return found


def differing(paths: Sequence[Path]) -> list[str]:
    """The tapes of which the reader makes something else than deltatape."""
    found = zip(paths, read_by_node(paths), strict=True)
    return [path.name for path, read in found if read != reading(path)]


def test_it_passes_the_conformance_tapes() -> None:
    paths = sorted(CONFORMANCE.glob("*.tape"))
    expected = [json.loads(path.with_suffix(".json").read_text()) for path in paths]
    for path, read, wanted in zip(paths, read_by_node(paths), expected, strict=True):
        assert read == wanted, path.name


@pytest.mark.parametrize(
    "folder", sorted(path.name for path in RECORDINGS.iterdir() if path.is_dir())
)
def test_it_reads_all_recordings_as_deltatape_does(folder: str) -> None:
    paths = sorted((RECORDINGS / folder).rglob("*.tape"))
    assert paths
    assert differing(paths) == []


def damaged(content: bytes) -> Iterator[bytes]:
    """The tape cut in each line, without each line, with each line twice, and with two swapped."""
    lines = content.splitlines(keepends=True)
    for at, line in enumerate(lines):
        before, after = lines[:at], lines[at + 1 :]
        yield b"".join(before) + line[: len(line) // 2]
        yield b"".join([*before, *after])
        yield b"".join([*before, line, line, *after])
        yield b"".join([*before, *after[:1], line, *after[1:]])
        yield b"".join([*before, line[: len(line) // 2], b"\n", *after])


@pytest.mark.parametrize("name", ["code-boundaries", "code-frame", "code-masked", "bear-lost-read"])
def test_it_tells_damage_as_deltatape_does(tmp_path: Path, name: str) -> None:
    paths = []
    for number, content in enumerate(damaged((CONFORMANCE / f"{name}.tape").read_bytes())):
        paths.append(tmp_path / f"{number}.tape")
        paths[-1].write_bytes(content)
    assert differing(paths) == []


def test_a_file_that_is_missing_is_told() -> None:
    done = subprocess.run(["node", READER, "none"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "ENOENT: no such file or directory, open 'none'\n"
