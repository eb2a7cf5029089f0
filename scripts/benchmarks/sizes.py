"""Time by size: bodies of every framing and the main dialects, each larger than the one before.

Each body is measured in its own process (`measure_size`). Where time is linear in size, the time
per MB is equal along a row; small bodies gain a little from warm caches.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.languages import LANGUAGES, Language
from benchmarks.markdown import markdown
from benchmarks.measure import BenchError
from benchmarks.processes import outside
from benchmarks.proxies import SCRIPTS
from benchmarks.sample_reply import SINGLE, sample_reply

DEFAULT = "1,10,100"
QUICK = (0.05,)
WHOLE, UNCOLLECTED, BYTEWISE = "whole", "uncollected", "bytewise"
"""In one read; so, and without Python's garbage collector; in reads of one byte."""
_OPTIONS: dict[str, list[str]] = {
    WHOLE: [],
    UNCOLLECTED: ["--uncollected"],
    BYTEWISE: ["--bytewise"],
}
_MB = 1_000_000
_BYTEWISE_SHARE = 0.02
"""The share of the sizes to use where every read brings one byte: each then costs an event."""
_SAMPLE = 2000
"""Deltas of which the size is known before."""
_LIMIT_S = 300
_DECIMALS = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """One body: its size in MB, milliseconds per MB, MB of memory per MB.

    `way` is one of `_OPTIONS`.
    """

    language: str
    way: str
    mb: float
    ms_per_mb: float
    memory: float


def run_sizes(sizes: Sequence[float], log: Callable[[str], None]) -> Sequence[Size]:
    """Measure bodies of so many MB.

    Raises:
        BenchError: a body took too long, or its call was lost.
    """
    found = []
    for language in LANGUAGES:
        runs = [(WHOLE, mb) for mb in sizes]
        runs.append((UNCOLLECTED, max(sizes)))
        runs += [(BYTEWISE, mb * _BYTEWISE_SHARE) for mb in sizes]
        for way, mb in runs:
            one = _measured(language, mb, way)
            log(
                f"{one.language}, {one.mb:.6g} MB {way}:"
                f" {one.ms_per_mb:.6g} ms/MB, {one.memory:.3g} MB of memory per MB"
            )
            found.append(one)
    return found


def _measured(language: Language, mb: float, way: str) -> Size:
    command = [sys.executable, "-m", "benchmarks.measure_size", language.name]
    with tempfile.NamedTemporaryFile(prefix="deltatape-bench-") as file:
        Path(file.name).write_bytes(_body(language, int(mb * _MB)))
        try:
            result = subprocess.run(
                [*command, file.name, *_OPTIONS[way]],
                env={**outside(), "PYTHONPATH": str(SCRIPTS)},
                capture_output=True,
                text=True,
                timeout=_LIMIT_S,
                check=True,
            )
            figures = json.loads(result.stdout)
        except (subprocess.SubprocessError, ValueError) as error:
            raise BenchError(f"a body of {mb:g} MB, {language.name}: {error}") from error
    if figures["calls"] != 1:
        raise BenchError(
            f"a body of {mb:g} MB, {language.name}: {figures['calls']} calls instead of one"
        )
    return Size(
        language=language.name,
        way=way,
        mb=mb,
        ms_per_mb=figures["seconds"] * 1000 / (figures["bytes"] / _MB),
        memory=figures["kib"] * 1024 / figures["bytes"],
    )


def _body(language: Language, size: int) -> bytes:
    """A body of about `size` bytes, in deltas of one character."""
    sample = len(language.body(sample_reply(_SAMPLE, SINGLE)))
    return language.body(sample_reply(_SAMPLE * size // sample, SINGLE))


def sizes_section(found: Sequence[Size]) -> str:
    """The section of the page."""
    whole = _table([one for one in found if one.way != BYTEWISE])
    bytewise = _table([one for one in found if one.way == BYTEWISE])
    return f"## Time by size\n\n{_ABOUT}\n{whole}\n{_ABOUT_BYTEWISE}\n{bytewise}"


_ABOUT = """\
Milliseconds of CPU time per MB (10^6 bytes) from bytes to reply, one process for each body: flat
rows are linear time. Text and arguments come in deltas of one character, the worst that a provider
can do; `openai-chat-whole` is one JSON document. What large bodies cost more per MB is Python's
garbage collector, which small processes hardly need: the column *uncollected* is the largest body
without it. *Memory* is what the largest body needed at most, per MB of it.
"""
_ABOUT_BYTEWISE = """\
The same where every read from the socket brought one byte:
"""


def _table(found: Sequence[Size]) -> str:
    columns = list(dict.fromkeys((one.mb, one.way) for one in found))
    titles = [f"{mb:g} MB{', uncollected' * (way == UNCOLLECTED)}" for mb, way in columns]
    rows = [["body", *titles, "memory"], ["---", *["---:"] * (len(columns) + 1)]]
    for language in dict.fromkeys(one.language for one in found):
        each = [one for one in found if one.language == language]
        times = [f"{one.ms_per_mb:.{_DECIMALS}f}" for one in each]
        rows.append([language, *times, f"{each[-1].memory:.1f}"])
    return markdown(rows)
