"""Cohere's chat, version 1, as a table: a JSON object per line, at Cohere's and inside Amazon's.

Shapes: https://docs.cohere.com/v1/docs/streaming. Calls have no ids. The list of whole calls comes
after their pieces, is their end signal and has more authority; the text that comes with it, and at
the end of the stream, repeats what was said.
"""

from collections.abc import Mapping, Sequence

from deltatape.dialects._choice import Policy
from deltatape.dialects._json import Frame, get_str
from deltatape.dialects._table import Index, Step, Table, path
from deltatape.dialects._table_calls import CallDelta, CallWhole
from deltatape.dialects._table_steps import Fail, Finish, Say, SayWhole, Tell, Terminal
from deltatape.model.reply import Channel

ERRORS = frozenset({"ERROR", "ERROR_LIMIT", "ERROR_TOXIC", "TIMEOUT"})
"""Finish reasons that are errors, of both versions."""
ABNORMAL = ERRORS | {"MAX_TOKENS", "USER_CANCEL"}
"""Finish reasons after which a call need not be whole, of both versions."""


def v1_table(name: str) -> Table:
    """The table of a dialect, called `name`, that carries version 1."""
    return Table(
        name=name,
        terminator="stream-end",
        policy=Policy(abnormal=ABNORMAL, explicit_end=True, ids=False),
        type_keys=("event_type",),
        events=_EVENTS,
        document=_DOCUMENT,
    )


def is_v1(one: Frame) -> bool:
    """Whether `one` is an event, or an answer that is not streamed."""
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


_EVENTS: Mapping[str, Sequence[Step]] = {
    "text-generation": (Say(channel=Channel.TEXT, text=(path("text"),)),),
    "tool-calls-chunk": (
        Say(channel=Channel.TEXT, text=(path("text"),)),
        CallDelta(
            key=Index(path("tool_call_delta.index")),
            entry=path("tool_call_delta"),
            name=path("name"),
            fragment=path("parameters"),
            optional=True,
        ),
    ),
    "tool-calls-generation": (SayWhole(text=(path("text"),)), _calls("tool_calls")),
    "stream-end": (
        SayWhole(text=(path("response.text"),)),
        _calls("response.tool_calls"),
        Tell(usage=path("response.meta")),
        Finish(reason=path("finish_reason"), errors=ERRORS),
        Terminal(),
    ),
    "stream-error": (
        Fail(message=(path("err"),)),
        Finish(reason=path("finish_reason")),
        Terminal(normal=False),
    ),
}
_DOCUMENT: Sequence[Step] = (
    Fail(message=(path("message"),), optional=True),
    Say(channel=Channel.TEXT, text=(path("text"),)),
    _calls("tool_calls"),
    Tell(usage=path("meta")),
    Finish(reason=path("finish_reason"), errors=ERRORS),
    Terminal(proof=path("generation_id")),
)
