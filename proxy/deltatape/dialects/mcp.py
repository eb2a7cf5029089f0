"""MCP: JSON-RPC between a program and a tool server. No model speaks it, so its replies are empty.

It is no entry of `DIALECTS`, whose streams are those of models: `rebuild` asks for it by name.

Source: https://modelcontextprotocol.io/specification/2025-06-18/basic/transports
"""

from collections.abc import Iterable, Mapping
from typing import ClassVar

from deltatape.dialects._base import Hints, Reducer, Traits
from deltatape.dialects._delta_fast_path import NO_FAST_PATH
from deltatape.dialects._json import Frame
from deltatape.model.reply import Choice, Reply
from deltatape.model.request_summary import NOTHING_ASKED, RequestSummary
from deltatape.model.stream import Event
from deltatape.model.tool_server import MCP, stdio_name
from deltatape.wire.json_value import parse

_VERSION = "2.0"
_METHODS = (
    *("initialize", "ping", "server/discover"),
    *("completion/", "elicitation/", "logging/", "notifications/", "prompts/", "resources/"),
    *("roots/", "sampling/", "tools/"),
)
"""Methods, and how others begin; other protocols speak JSON-RPC, too."""
_HEADERS = (b"mcp-session-id", b"mcp-protocol-version")


class ToolServer:
    """See `Dialect`."""

    name: ClassVar = MCP
    traits: ClassVar = Traits()

    def claims(self, hints: Hints) -> bool:
        """Return whether the response is JSON-RPC; the request must be of MCP, too."""
        return "jsonrpc" in hints.members

    def serves(self, path: str) -> bool:  # noqa: ARG002 - any path may
        return False

    def read_request(self, body: bytes, path: str) -> RequestSummary:  # noqa: ARG002 - it asks no model
        return NOTHING_ASKED

    def reducer(self, request: RequestSummary) -> Reducer:  # noqa: ARG002 - as above
        return ToolServerReducer()


class ToolServerReducer:
    """Rebuilds an empty reply: what a tool server says is not what a model says. See `Reducer`."""

    fast_path = NO_FAST_PATH

    def feed(self, event: Event, frame: Frame | None = None) -> None:
        pass

    def finish(self, *, cut: bool) -> Reply:
        empty = Choice(
            index=0, text="", reasoning="", refusal="", tool_calls=(), finish_reason_raw=None
        )
        return Reply(
            dialect=MCP,
            choices=(empty,),
            usage=None,
            model=None,
            error=None,
            terminated=not cut,
            terminator="the end of the body",
            observations=(),
        )


def speaks_mcp(body: bytes, upstream: str, names: Iterable[bytes]) -> bool:
    """Return whether a request is of MCP.

    Args:
        body: the body of the request.
        upstream: where it went.
        names: the names of the header fields of request and response.
    """
    if stdio_name(upstream) or any(name.lower() in _HEADERS for name in names):
        return True
    return any(
        str(each.get("method")).startswith(_METHODS)
        for each in messages_in(body.decode(errors="replace"))
    )


def messages_in(text: str) -> list[Mapping[str, object]]:
    """Return the JSON-RPC messages in a text: one, or a batch."""
    if '"jsonrpc"' not in text:
        return []
    value = parse(text).value
    every = value if isinstance(value, list) else [value]
    return [each for each in every if isinstance(each, dict) and each.get("jsonrpc") == _VERSION]
