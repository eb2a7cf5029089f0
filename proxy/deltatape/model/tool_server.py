"""What a program and an MCP server said to each other in one exchange."""

from dataclasses import dataclass
from typing import NamedTuple

MCP = "mcp"
"""The dialect shown for the reply of such an exchange, which no model wrote."""
_STDIO = ".stdio.invalid"
"""How the host of an upstream ends that is a server on stdin and stdout: no host is called so.

Source: RFC 6761 section 6.4."""


def stdio_upstream(name: str) -> str:
    """Return the upstream of a server on stdin and stdout."""
    return f"http://{name}{_STDIO}"


def stdio_name(upstream: str) -> str:
    """Return what such a server is called; "" of others."""
    host = upstream.removeprefix("http://")
    return host.removesuffix(_STDIO) if host.endswith(_STDIO) else ""


class ServedCall(NamedTuple):
    """A call of a tool as its server was asked for it, and the answer."""

    exchange: int
    server: str
    """The upstream."""
    name: str
    arguments: str
    """A JSON object."""
    asked_ns: int | None
    """None without times, as below."""
    answered_ns: int | None
    """None: there is no answer here."""
    texts: tuple[str, ...] | None
    """The texts in the result, or the message of the error; None: there is no answer."""
    structured: str = ""
    """The structured content of the result, as JSON; "" without any."""
    other: bool = False
    """Whether the result holds more than texts: images, links, what a later version brings."""
    failed: bool = False
    """Whether the server calls it an error."""
    ending: str = ""
    """How the exchange ended without an answer: `client_closed`; "" if that is not known, or the
    answer may have come elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolServerTalk:
    """What an exchange with a tool server was about."""

    methods: tuple[str, ...]
    """The methods of the messages in the request; of the response, if the request has none."""
    calls: tuple[ServedCall, ...] = ()
    tools: tuple[str, ...] = ()
    """The tools that the server lists here."""
    answered: bool = False
    """Whether every request of the client has its answer here."""
    error: str = ""
    """The first error that the server answers with."""
