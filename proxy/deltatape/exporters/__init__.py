"""Write exchanges in the formats of other programs.

Pure: exchanges in, bytes out. An exporter is one file and one line in `EXPORTERS`. It names the
parts of an exchange that its format holds (`diagnose/exchange_parts.py`); the others are told to
the user where a tape has them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from deltatape.diagnose.exchange_parts import Part, not_held, value_of
from deltatape.diagnose.rebuild import Analysis
from deltatape.errors import UsageError
from deltatape.exporters import cassette, curl, event_lines, har, otlp, raw
from deltatape.exporters.parts import Exporter
from deltatape.printable import count

EXPORTERS: tuple[Exporter, ...] = (
    har.HarExporter(),
    cassette.CassetteExporter(),
    raw.RawExporter(),
    curl.CurlExporter(),
    event_lines.EventLinesExporter(),
    otlp.OtlpExporter(),
)
"""In the order of docs/formats.md."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """The files of a format, and what to tell the user."""

    files: Mapping[str, bytes]
    """By name; "" if the format is a single file."""
    exchanges: int
    notes: tuple[str, ...]


def export(analyses: Sequence[Analysis], exporter: Exporter, version: str) -> Exported:
    """Return the exchanges in a format.

    Args: see `Exporter.files`.

    Raises:
        UsageError: the format can hold none of them.
    """
    kept: list[Analysis] = []
    left: Counter[str] = Counter()
    for analysis in analyses:
        reason = exporter.refuses(analysis)
        if reason:
            left[reason] += 1
        else:
            kept.append(analysis)
    rest = " and ".join(f"{count(number, 'exchange')} {kind}" for kind, number in left.items())
    if not kept:
        raise UsageError(
            f"--format {exporter.name}: cannot hold {rest or 'a tape without an exchange'}"
        )
    notes = [f"left out {rest}"] if rest else []
    lost = lacking(kept, exporter)
    if lost:
        notes.append(f"not in {exporter.title}: {', '.join(lost)}")
    return Exported(files=exporter.files(kept, version), exchanges=len(kept), notes=tuple(notes))


def lacking(analyses: Iterable[Analysis], exporter: Exporter) -> list[Part]:
    """Return the parts in `not_held` that exchanges have."""
    every = list(analyses)
    return [
        part
        for part in not_held(exporter.holds)
        if any(value_of(part, analysis) for analysis in every)
    ]
