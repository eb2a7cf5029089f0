"""MCP among the dialects: recognised, and never a model's."""

import json

import pytest

from deltatape.diagnose.check import check
from deltatape.diagnose.digest import digest
from deltatape.diagnose.rebuild import rebuild
from deltatape.dialects.mcp import ToolServer
from deltatape.model.exchange import Exchange
from deltatape.model.request_summary import NOTHING_ASKED
from deltatape.model.tool_server import MCP

RESULT = b'{"jsonrpc":"2.0","id":1,"result":{}}'
ANSWERED = b"event: message\ndata: " + RESULT + b"\n\n"


def exchange(
    request: object,
    response: bytes = RESULT,
    media: str = "application/json",
    url: str = "http://h/mcp",
    status: int = 200,
) -> Exchange:
    body = json.dumps(request).encode()
    return Exchange.from_body(response, content_type=media, url=url, request=body, status=status)


def asks(method: str) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": 1, "method": method}


@pytest.mark.parametrize(
    "mcp",
    [
        exchange(asks("tools/call")),
        exchange(asks("initialize"), ANSWERED, "text/event-stream"),
        exchange([asks("ping")]),
        exchange(asks("notifications/initialized"), b"", "text/plain", status=202),
        exchange(asks("own/method"), url="http://server.stdio.invalid/mcp"),
        exchange(asks("tools/list"), b"no such page", "text/html", status=404),
        exchange(asks("tools/list"), RESULT[:20]),
    ],
)
def test_it_is_recognised_and_not_accused(mcp: Exchange) -> None:
    reply = rebuild(mcp)
    assert (reply.dialect, reply.text, reply.tool_calls) == (MCP, "", ())
    assert check(mcp) == ()
    assert not digest(mcp).known


@pytest.mark.parametrize(
    "other",
    [
        exchange(asks("message/send")),
        exchange({"method": "tools/call"}),
        exchange({"jsonrpc": "1.0", "method": "tools/call"}),
        exchange(["jsonrpc"]),
        exchange({"model": "m", "messages": [{"role": "user", "content": '{"jsonrpc": "2.0"}'}]}),
    ],
)
def test_other_json_is_not_mcp(other: Exchange) -> None:
    assert rebuild(other).dialect != MCP


def test_it_serves_no_path_and_asks_no_model() -> None:
    assert not ToolServer().serves("/mcp")
    assert ToolServer().read_request(b"{}", "/mcp") is NOTHING_ASKED
