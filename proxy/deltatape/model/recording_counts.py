"""How much a recorder has recorded so far."""

from typing import NamedTuple


class RecordingCounts(NamedTuple):
    """Totals for the status and the summary."""

    exchanges: int = 0
    active: int = 0
    refused: int = 0
    clients: int = 0
    lost_records: int = 0
    lost_bytes: int = 0
    tapes: tuple[str, ...] = ()
    """The paths of those that are being written."""
    request_bytes: int = 0
    """See `gateway.recorder.RecorderCounts`; of streams that are open, up to a few seconds old."""
    response_bytes: int = 0


NOTHING_RECORDED = RecordingCounts()
