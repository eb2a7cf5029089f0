"""The UI message stream of Vercel's AI SDK: what an application's endpoint sends to its page.

Shapes: https://ai-sdk.dev/docs/ai-sdk-ui/stream-protocol. Calls are keyed by `toolCallId`; their
pieces are what the model wrote, and the whole input that follows is what the application made of
it: that is what gets executed. Texts have ids and must be started. `finish` and `[DONE]` end it.

Not here: the line protocol of older versions (`0:"text"`), which is no event stream.
"""

from typing import ClassVar

from deltatape.dialects._base import Hints
from deltatape.dialects._choice import Policy
from deltatape.dialects._json import Frame, get_str
from deltatape.dialects._table import Id, Table, TableReducer, path
from deltatape.dialects._table_calls import CallDelta, CallStart, CallWhole, Strings, When
from deltatape.dialects._table_steps import Fail, Finish, Result, Terminal
from deltatape.dialects.ai_sdk_ui.parts import PartDelta, PartEnd, PartStart, StepEnd
from deltatape.dialects.ai_sdk_ui.request import read_request
from deltatape.model.asked import Asked
from deltatape.model.reply import Channel

_HEADER = "\nx-vercel-ai-ui-message-stream\n"
_ABNORMAL = frozenset({"length", "content-filter", "error"})
_ID = path("toolCallId")
_ERRORS = (path("errorText"), path("error.message"), path("error"), path("message"))
"""The first is the protocol's; applications also send what their provider sent."""
_KEY = Id(_ID)
_NAME = path("toolName")
_SERVER = When(path("providerExecuted"), (True,))
_RESULT = Result(id=(_ID,), preliminary=path("preliminary"))


def _whole(*, weak: bool) -> CallWhole:
    return CallWhole(
        key=_KEY,
        id=(_ID,),
        name=(_NAME,),
        arguments=(path("input"),),
        strings=Strings.TEXT if weak else Strings.FREE,
        server=_SERVER,
        weak=weak,
    )


_TABLE = Table(
    name="ai-sdk-ui",
    terminator="finish and [DONE]",
    policy=Policy(abnormal=_ABNORMAL, explicit_end=True, app=True),
    type_keys=("type",),
    sentinel=True,
    due=frozenset({"stop"}),
    events={
        "text-start": (PartStart(Channel.TEXT),),
        "text-delta": (PartDelta(Channel.TEXT),),
        "text-end": (PartEnd(Channel.TEXT),),
        "reasoning-start": (PartStart(Channel.REASONING),),
        "reasoning-delta": (PartDelta(Channel.REASONING),),
        "reasoning-end": (PartEnd(Channel.REASONING),),
        "tool-input-start": (CallStart(key=_KEY, id=_ID, name=_NAME, server=_SERVER),),
        "tool-input-delta": (CallDelta(key=_KEY, fragment=path("inputTextDelta")),),
        "tool-input-available": (_whole(weak=False),),
        "tool-input-error": (_whole(weak=True), _RESULT),
        "tool-output-available": (_RESULT,),
        "tool-output-error": (_RESULT,),
        "tool-output-denied": (_RESULT,),
        "finish-step": (StepEnd(),),
        "error": (Fail(message=_ERRORS),),
        "finish": (Finish(reason=path("finishReason")), Terminal()),
        "abort": (Terminal(normal=False),),
    },
)


class AISDKUI:
    """The dialect. See `Dialect`."""

    name: ClassVar[str] = _TABLE.name

    def claims(self, hints: Hints) -> bool:
        """See `Dialect.claims`."""
        return _HEADER in hints.headers or (bool(hints.kinds) and any(map(_is_ours, hints.first)))

    def serves(self, path: str) -> bool:
        """See `Dialect.serves`: an application's paths are its own."""
        del path
        return False

    def read_request(self, body: bytes, path: str) -> Asked:
        """See `Dialect.read_request`."""
        del path
        return read_request(body)

    def reducer(self, asked: Asked) -> TableReducer:
        """See `Dialect.reducer`."""
        return TableReducer(_TABLE, asked)


def _is_ours(one: Frame) -> bool:
    """Whether `one` is an event that no other dialect has."""
    kind = get_str(one, "type") or ""
    if kind.startswith("tool-input-"):
        return "toolCallId" in one
    if kind in ("text-start", "reasoning-start"):
        return "id" in one
    return kind in ("start-step", "finish-step") or (kind == "start" and "messageId" in one)
