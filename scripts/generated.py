"""What the programs that write a page from data share."""

import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def write_or_check(path: Path, text: str) -> int:
    """Write a generated file, or with `--check` compare it; return the exit code."""
    if "--check" not in sys.argv[1:]:
        path.write_text(text)
        return 0
    if path.exists() and path.read_text() == text:
        return 0
    print(f"{path.relative_to(ROOT)} is out of date: run scripts/{Path(sys.argv[0]).name}")
    return 1


def table(head: Sequence[object], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)
