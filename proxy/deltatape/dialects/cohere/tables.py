"""What the events of both versions mean."""

from deltatape.dialects._choice import Policy
from deltatape.dialects._table import Index, Table, path
from deltatape.dialects._table_calls import CallDelta, CallEnd, CallStart, CallWhole, Strings
from deltatape.dialects._table_steps import Fail, Finish, Say, SayWhole, Tell, Terminal
from deltatape.model.reply import Channel

_NAME = "cohere"
_ERRORS = frozenset({"ERROR", "ERROR_LIMIT", "ERROR_TOXIC", "TIMEOUT"})
_ABNORMAL = _ERRORS | {"MAX_TOKENS", "USER_CANCEL"}

_INDEX = Index(path("index"))
_CALL = path("delta.message.tool_calls")
_TEXT = path("delta.message.content.text")
_THINKING = path("delta.message.content.thinking")
_CONTENT = (
    Say(channel=Channel.TEXT, text=(_TEXT,)),
    Say(channel=Channel.REASONING, text=(_THINKING,)),
)
_ARGUMENTS = path("function.arguments")

V2 = Table(
    name=_NAME,
    terminator="message-end",
    policy=Policy(abnormal=_ABNORMAL, tool_word=True, explicit_end=True),
    type_keys=("type",),
    events={
        "content-start": _CONTENT,
        "content-delta": _CONTENT,
        "tool-plan-delta": (
            Say(channel=Channel.REASONING, text=(path("delta.message.tool_plan"),)),
        ),
        "tool-call-start": (
            CallStart(
                key=_INDEX,
                entry=_CALL,
                id=path("id"),
                name=path("function.name"),
                fragment=_ARGUMENTS,
            ),
        ),
        "tool-call-delta": (CallDelta(key=_INDEX, entry=_CALL, fragment=_ARGUMENTS),),
        "tool-call-end": (CallEnd(key=_INDEX),),
        "message-end": (
            Tell(usage=path("delta.usage")),
            Fail(message=(path("delta.error"),), optional=True),
            Finish(reason=path("delta.finish_reason"), errors=_ERRORS),
            Terminal(),
        ),
    },
    document=(
        Fail(message=(path("message"),), optional=True),
        Say(channel=Channel.REASONING, text=(path("message.tool_plan"),)),
        Say(channel=Channel.REASONING, each=path("message.content"), text=(path("thinking"),)),
        Say(channel=Channel.TEXT, each=path("message.content"), text=(path("text"),)),
        CallWhole(
            entry=path("message.tool_calls"),
            id=(path("id"),),
            name=(path("function.name"),),
            arguments=(_ARGUMENTS,),
            strings=Strings.TEXT,
        ),
        Tell(usage=path("usage")),
        Finish(reason=path("finish_reason"), errors=_ERRORS),
        Terminal(proof=path("finish_reason")),
    ),
)
"""Version 2."""


def _calls(where: str) -> CallWhole:
    return CallWhole(
        entry=path(where),
        ordered=True,
        id=(),
        name=(path("name"),),
        arguments=(path("parameters"),),
    )


V1 = Table(
    name=_NAME,
    terminator="stream-end",
    policy=Policy(abnormal=_ABNORMAL, explicit_end=True, ids=False),
    type_keys=("event_type",),
    events={
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
            Finish(reason=path("finish_reason"), errors=_ERRORS),
            Terminal(),
        ),
    },
    document=(
        Fail(message=(path("message"),), optional=True),
        Say(channel=Channel.TEXT, text=(path("text"),)),
        _calls("tool_calls"),
        Tell(usage=path("meta")),
        Finish(reason=path("finish_reason"), errors=_ERRORS),
        Terminal(proof=path("generation_id")),
    ),
)
"""Version 1. Its calls have no end signal: the list of whole calls is it."""
