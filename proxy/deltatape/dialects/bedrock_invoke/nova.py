"""Amazon's Nova: Converse events as objects with one member named after the type.

Shapes: https://docs.aws.amazon.com/nova/latest/userguide/using-invoke-api.html; see `_converse`.
"""

from deltatape.dialects._converse.table import STREAMED, converse_table, is_document
from deltatape.dialects._json import Frame
from deltatape.dialects._table import TableReducer
from deltatape.model.request_summary import RequestSummary
from deltatape.model.stream import Event

_MARKS = STREAMED - {"metadata"}
"""Members that only Nova's events have."""


def is_nova(frame: Frame) -> bool:
    """Check whether `frame` is an event or a document of Nova."""
    return is_document(frame) or not _MARKS.isdisjoint(frame)


class NovaReducer(TableReducer):
    """Rebuilds the reply of Nova. See `Reducer`."""

    def __init__(self, name: str, request: RequestSummary) -> None:
        super().__init__(converse_table(name, members=True), request)

    def feed(self, event: Event, frame: Frame | None = None) -> None:
        draft = self._draft
        frame = frame or draft.reply.read(event)
        if frame is None or draft.reply.take_error(frame, event):
            return
        for kind, inner in frame.items():
            steps = self._events.get(kind)
            if steps is None:
                continue
            if not isinstance(inner, dict):
                draft.reply.note_unexpected(f"{kind} is no object", frame, event)
                continue
            for step in steps:
                step.take(draft, frame, event)
