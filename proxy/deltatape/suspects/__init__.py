"""Suspects: which client mistake turns the delivered stream into what the app made.

One client model has an axis for each choice that clients get wrong (`client.py`); it reads a stream
as steps (`steps.py`) and builds calls from them (`accumulate.py`). Presets are named points of that
space (`presets`). The search (`search.py`) looks for the points that produce exactly what the
application repeated, or throw the error it logged, fewest mistakes first.

Invariants. A client that follows the documentation is never a suspect, even if it fails on a
defective stream: then the stream is at fault. Nothing raises on any stream, and the time is
bounded, whatever its length.
"""

from deltatape.model.suspect import Suspect, Symptom
from deltatape.suspects.client import Preset, client_of
from deltatape.suspects.delivered import DeliveredResponse, delivered
from deltatape.suspects.documentation import suspect_page
from deltatape.suspects.presets import PRESETS
from deltatape.suspects.search import PresetResult, equal, find, rows
from deltatape.suspects.simulation import ClientRunner

LIMIT = 8
"""How many suspects are reported."""


def suspects_of(
    stream: DeliveredResponse, symptom: Symptom, limit: int = LIMIT
) -> tuple[Suspect, ...]:
    """Return the clients that reproduce what the application did, best first.

    Exact ones, fewest mistakes first and presets before other points; only if there is none, those
    that come near. () if a client without mistakes does the same, or if the dialect's clients are
    unknown.

    Args:
        stream: what the wire delivered.
        symptom: the calls that the application repeats, and the errors it reports.
        limit: how many to report.
    """
    return () if stream.family is None else find(ClientRunner(stream), symptom, limit)


def reads_rightly(stream: DeliveredResponse, suspect: Suspect) -> bool:
    """Check whether a client with the mistakes of `suspect` reads this stream correctly."""
    runner = ClientRunner(stream)
    outcome = runner.outcome(client_of(*((one.axis, one.value) for one in suspect.mistakes)))
    return equal(outcome.calls, stream.calls, stream.ids) and not outcome.thrown


def matrix(stream: DeliveredResponse) -> tuple[PresetResult, ...]:
    """Return the result of each preset of this dialect on the stream; () for other dialects."""
    return () if stream.family is None else tuple(rows(ClientRunner(stream)))


__all__ = [
    "LIMIT",
    "PRESETS",
    "DeliveredResponse",
    "Preset",
    "PresetResult",
    "delivered",
    "matrix",
    "reads_rightly",
    "suspect_page",
    "suspects_of",
]
