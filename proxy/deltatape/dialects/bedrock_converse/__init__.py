"""Bedrock's Converse: one dialect for the models of many providers, in Amazon's event stream.

Shapes: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html. The
framing names the type of an event. Blocks of content are keyed by `contentBlockIndex`; only some
begin with an event, all end with one, and those of tools carry pieces of JSON. `messageStop` ends
the answer; `metadata`, with the usage, comes after it. Errors are exceptions of the framing.
"""

from collections.abc import Mapping
from typing import ClassVar

from deltatape.dialects._base import Hints
from deltatape.dialects._choice import Policy
from deltatape.dialects._json import get_object
from deltatape.dialects._table import Index, Table, TableReducer, path
from deltatape.dialects._table_calls import CallDelta, CallEnd, CallStart, CallWhole, When
from deltatape.dialects._table_steps import Fail, Finish, Say, Tell, Terminal
from deltatape.dialects.bedrock_converse.request import read_request
from deltatape.model.asked import Asked
from deltatape.model.reply import Channel
from deltatape.model.stream import Format

_ABNORMAL = frozenset(
    {
        "max_tokens",
        "model_context_window_exceeded",
        "content_filtered",
        "guardrail_intervened",
        "malformed_model_output",
        "malformed_tool_use",
    }
)
_INDEX = Index(path("contentBlockIndex"))
_ID = path("toolUseId")
_NAME = path("name")
_SERVER = When(path("type"), ("server_tool_use",))
_CONTENT = path("output.message.content")

_TABLE = Table(
    name="bedrock-converse",
    terminator="messageStop",
    policy=Policy(abnormal=_ABNORMAL, tool_word=True, explicit_end=True),
    type_keys=(),
    events={
        "contentBlockStart": (
            CallStart(
                key=_INDEX,
                entry=path("start.toolUse"),
                id=_ID,
                name=_NAME,
                server=_SERVER,
                optional=True,
            ),
        ),
        "contentBlockDelta": (
            Say(channel=Channel.TEXT, text=(path("delta.text"),)),
            CallDelta(
                key=_INDEX, entry=path("delta.toolUse"), fragment=path("input"), optional=True
            ),
            Say(channel=Channel.REASONING, text=(path("delta.reasoningContent.text"),)),
        ),
        "contentBlockStop": (CallEnd(key=_INDEX, optional=True),),
        "messageStop": (Finish(reason=path("stopReason")), Terminal()),
        "metadata": (Tell(usage=path("usage")),),
        # Not streamed: a JSON document, whose event has the type of any event without one.
        "message": (
            Fail(message=(path("message"), path("Message")), optional=True),
            Say(
                channel=Channel.REASONING,
                each=_CONTENT,
                text=(path("reasoningContent.reasoningText.text"),),
            ),
            Say(channel=Channel.TEXT, each=_CONTENT, text=(path("text"),)),
            CallWhole(
                entry=_CONTENT,
                each=path("toolUse"),
                id=(_ID,),
                name=(_NAME,),
                arguments=(path("input"),),
                server=_SERVER,
            ),
            Tell(usage=path("usage")),
            Finish(reason=path("stopReason")),
            Terminal(proof=path("stopReason")),
        ),
    },
)
_STREAMED = frozenset(
    {
        "messageStart",
        "contentBlockStart",
        "contentBlockDelta",
        "contentBlockStop",
        "messageStop",
        "metadata",
    }
)


class BedrockConverse:
    """The dialect. See `Dialect`."""

    name: ClassVar[str] = _TABLE.name

    def claims(self, hints: Hints) -> bool:
        """See `Dialect.claims`."""
        if hints.format is Format.EVENTSTREAM:
            return not _STREAMED.isdisjoint(hints.types)
        return any("stopReason" in one and _holds_message(one) for one in hints.first)

    def serves(self, path: str) -> bool:
        """See `Dialect.serves`."""
        return path.rstrip("/").endswith(("/converse", "/converse-stream"))

    def read_request(self, body: bytes, path: str) -> Asked:
        """See `Dialect.read_request`."""
        return read_request(body, path)

    def reducer(self, asked: Asked) -> TableReducer:
        """See `Dialect.reducer`."""
        return TableReducer(_TABLE, asked)


def _holds_message(one: Mapping[str, object]) -> bool:
    return get_object(get_object(one, "output") or {}, "message") is not None
