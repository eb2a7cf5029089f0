"""Cohere's chat, version 1, as a table: one JSON object per line, also inside Bedrock.

Shapes: https://docs.cohere.com/v1/docs/streaming. Calls have no ids. The list of complete calls
comes after their pieces, is their end signal and has more authority; the text that comes with it,
and at the end of the stream, repeats the earlier text.
"""

from collections.abc import Mapping, Sequence

from deltatape.dialects._json import Frame, get_str
from deltatape.dialects._reply import DialectPolicy
from deltatape.dialects._table import (
    CallDelta,
    CallsByIndex,
    CallWhole,
    DialectTable,
    ErrorStep,
    FinishStep,
    TableStep,
    TerminalStep,
    TextStep,
    UsageStep,
    WholeTextStep,
    path,
)
from deltatape.model.reply import Channel

ERRORS = frozenset({"ERROR", "ERROR_LIMIT", "ERROR_TOXIC", "TIMEOUT"})
"""Finish reasons that are errors, of both versions."""
ABNORMAL = ERRORS | {"MAX_TOKENS", "USER_CANCEL"}
"""Finish reasons after which a call need not be complete, of both versions."""


def v1_table(name: str) -> DialectTable:
    """Return the table of a dialect `name` that carries version 1."""
    return DialectTable(
        name=name,
        terminator="stream-end",
        policy=DialectPolicy(abnormal=ABNORMAL, explicit_end=True, ids=False),
        type_keys=("event_type",),
        events=_EVENTS,
        document=_DOCUMENT,
    )


def is_v1(one: Frame) -> bool:
    """Check whether `one` is an event, or an answer that is not streamed."""
    kind = get_str(one, "event_type")
    if kind is not None:
        return kind in _EVENTS or kind == "stream-start"
    return "generation_id" in one and "text" in one


def _calls(where: str) -> CallWhole:
    return CallWhole(
        entry=path(where),
        ordered=True,
        id=(),
        name=(path("name"),),
        arguments=(path("parameters"),),
    )


_EVENTS: Mapping[str, Sequence[TableStep]] = {
    "text-generation": (TextStep(channel=Channel.TEXT, text=(path("text"),)),),
    "tool-calls-chunk": (
        TextStep(channel=Channel.TEXT, text=(path("text"),)),
        CallDelta(
            key=CallsByIndex(path("tool_call_delta.index")),
            entry=path("tool_call_delta"),
            name=path("name"),
            fragment=path("parameters"),
            optional=True,
        ),
    ),
    "tool-calls-generation": (WholeTextStep(text=(path("text"),)), _calls("tool_calls")),
    "stream-end": (
        WholeTextStep(text=(path("response.text"),)),
        _calls("response.tool_calls"),
        UsageStep(usage=path("response.meta")),
        FinishStep(reason=path("finish_reason"), errors=ERRORS),
        TerminalStep(),
    ),
    "stream-error": (
        ErrorStep(message=(path("err"),)),
        FinishStep(reason=path("finish_reason")),
        TerminalStep(normal=False),
    ),
}
_DOCUMENT: Sequence[TableStep] = (
    ErrorStep(message=(path("message"),), optional=True),
    TextStep(channel=Channel.TEXT, text=(path("text"),)),
    _calls("tool_calls"),
    UsageStep(usage=path("meta")),
    FinishStep(reason=path("finish_reason"), errors=ERRORS),
    TerminalStep(proof=path("generation_id")),
)
