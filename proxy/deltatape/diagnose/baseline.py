"""Findings that are accepted: a file of fingerprints that people can read and compare.

Sorted, one value per line, without anything that differs from run to run, so that a diff shows only
real changes.
"""

import json
import re
from collections.abc import Iterable
from typing import NamedTuple

from deltatape.diagnose.check_tape import ReportedFinding, shape
from deltatape.errors import UsageError

VERSION = 1
_FINGERPRINT = re.compile("[0-9a-f]{16}")


class Accepted(NamedTuple):
    """An accepted finding, wherever it occurs; ordered as the file is."""

    code: str
    name: str
    request: str
    """The path that was asked."""
    message: str
    """The message without the parts that differ from run to run."""
    fingerprint: str


def accepted(reported: Iterable[ReportedFinding]) -> tuple[Accepted, ...]:
    """Return each finding once, in the order of the file."""
    return tuple(
        sorted(
            {
                Accepted(
                    each.finding.code,
                    each.finding.name,
                    each.path,
                    shape(each.finding.message),
                    each.fingerprint,
                )
                for each in reported
            }
        )
    )


def baseline_text(every: Iterable[Accepted]) -> str:
    """Return the file that accepts `every`."""
    content = {"version": VERSION, "accepted": [each._asdict() for each in every]}
    return json.dumps(content, indent=1) + "\n"


def read_baseline(name: str, text: str) -> tuple[Accepted, ...]:
    """Return the findings that a file accepts.

    Raises:
        UsageError: it is no baseline file.
    """
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name}: no JSON ({error}); {_WANTED}") from None
    if not isinstance(content, dict) or content.get("version") != VERSION:
        raise UsageError(f'{name}: no object with "version": {VERSION}; {_WANTED}')
    entries = content.get("accepted")
    if not isinstance(entries, list):
        raise UsageError(f'{name}: no list "accepted"; {_WANTED}')
    return tuple(_entry(name, number, each) for number, each in enumerate(entries))


_WANTED = "make one with deltatape check --write-baseline"


def _entry(name: str, number: int, entry: object) -> Accepted:
    values = [entry.get(field) for field in Accepted._fields] if isinstance(entry, dict) else []
    texts = [value for value in values if isinstance(value, str)]
    if len(texts) != len(Accepted._fields) or not _FINGERPRINT.fullmatch(texts[-1]):
        wanted = ", ".join(Accepted._fields)
        raise UsageError(f"{name}: accepted[{number}] needs {wanted}, all of them text; {_WANTED}")
    return Accepted(*texts)
