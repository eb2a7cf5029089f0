"""What the events of both versions mean; for the older one see `_cohere_v1`."""

from deltatape.dialects._choice import Policy
from deltatape.dialects._cohere_v1 import ABNORMAL, ERRORS, v1_table
from deltatape.dialects._table import Index, Table, path
from deltatape.dialects._table_calls import CallDelta, CallEnd, CallStart, CallWhole, Strings
from deltatape.dialects._table_steps import Fail, Finish, Say, Tell, Terminal
from deltatape.model.reply import Channel

_NAME = "cohere"

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
    policy=Policy(abnormal=ABNORMAL, tool_word=True, explicit_end=True),
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
        "tool-call-delta": (CallDelta(key=_INDEX, entry=_CALL, fragment=_ARGUMENTS, encoded=True),),
        "tool-call-end": (CallEnd(key=_INDEX),),
        "message-end": (
            Tell(usage=path("delta.usage")),
            Fail(message=(path("delta.error"),), optional=True),
            Finish(reason=path("delta.finish_reason"), errors=ERRORS),
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
        Finish(reason=path("finish_reason"), errors=ERRORS),
        Terminal(proof=path("finish_reason")),
    ),
)
"""Version 2."""

V1 = v1_table(_NAME)
"""Version 1."""
