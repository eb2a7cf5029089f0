"""Applies the marker's `fault=` and `reads=` to exchanges."""

from deltatape.player.playback_changes import ExchangeStaging
from deltatape.pytest_plugin.marker_options import Marked, parsed
from deltatape.vary.fault import parse_fault
from deltatape.vary.reads import parse_reads


def staged(marked: Marked) -> ExchangeStaging:
    """Return a stage that also sets the playback times.

    Raises:
        UsageError: a fault or a way to cut reads is not known.
    """
    return ExchangeStaging(
        faults=tuple(parsed("fault", text, parse_fault) for text in marked.faults),
        cutting=parsed("reads", marked.reads, parse_reads),
        seed=marked.seed,
        tempo=marked.tempo,
    )
