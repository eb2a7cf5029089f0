import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from deltatape.diagnose.websocket import read_socket
from deltatape.errors import UsageError
from deltatape.importers.mitmproxy_flows import FlowsImporter
from deltatape.model.exchange import Exchange
from deltatape.model.websocket import BINARY, CLOSE, TEXT, Side, whole_messages
from helpers.chat import choice, sse
from helpers.imported import imported, notes, source
from helpers.mitm import NEWEST, installed

ANSWER = sse(choice({"content": "hi"}, "stop"))


def dumped(value: object) -> bytes:
    """A value as a tagged netstring."""
    match value:
        case None:
            tag, data = b"~", b""
        case bool():
            tag, data = b"!", str(value).lower().encode()
        case bytes():
            tag, data = b",", value
        case str():
            tag, data = b";", value.encode()
        case int():
            tag, data = b"#", str(value).encode()
        case float():
            tag, data = b"^", str(value).encode()
        case dict():
            tag, data = b"}", b"".join(dumped(one) for pair in value.items() for one in pair)
        case _:
            assert isinstance(value, list)
            tag, data = b"]", b"".join(map(dumped, value))
    return b"%d:%b%b" % (len(data), data, tag)


def flow(
    *, response: Mapping[str, object] | None = None, error: object = None, **request: object
) -> dict[str, object]:
    asked = {
        "path": b"/v1/chat/completions?key=x",
        "authority": b"",
        "scheme": b"https",
        "method": b"POST",
        "port": 443,
        "host": "192.0.2.1",
        "timestamp_start": 5.5,
        "content": b'{"model": "m", "messages": []}',
        "headers": [[b"Host", b"api.example.com"], "odd", [b"A", 7]],
        "http_version": b"HTTP/1.1",
    }
    answer = {
        "reason": b"OK",
        "status_code": 200,
        "content": ANSWER,
        "headers": [[b"Content-Type", b"text/event-stream"]],
        "http_version": b"HTTP/2.0",
    }
    return {
        "websocket": None,
        "response": {**answer, **response} if response is not None else None,
        "request": {**asked, **request},
        "error": error,
        "intercepted": False,
        "version": 21,
        "type": "http",
    }


def file(*flows: object) -> bytes:
    return b"".join(map(dumped, flows))


def read(*flows: object) -> Sequence[Exchange]:
    assert FlowsImporter().claims(source(file(*flows)))
    return FlowsImporter().read(source(file(*flows)))


def test_a_flow_is_an_exchange() -> None:
    (exchange,) = read(flow(response={}))
    assert exchange.request.upstream == "https://api.example.com"
    assert (exchange.request.target_bytes, exchange.request.http) == (
        b"/v1/chat/completions?key=x",
        "1.1",
    )
    assert exchange.request.headers == ((b"Host", b"api.example.com"),)
    assert exchange.request.body == b'{"model": "m", "messages": []}'
    assert exchange.response is not None
    assert (exchange.response.status, exchange.response.reason, exchange.response.http) == (
        200,
        b"OK",
        "2",
    )
    assert (exchange.body, notes(exchange)) == (ANSWER, [])


@pytest.mark.parametrize(
    ("request_", "upstream"),
    [
        ({"authority": b"h:8443"}, "https://h:8443"),
        ({"headers": None}, "https://192.0.2.1"),
        ({"headers": [], "port": 8080}, "https://192.0.2.1:8080"),
        ({"headers": [], "scheme": b"http", "port": 80}, "http://192.0.2.1"),
    ],
)
def test_the_upstream_is_what_the_client_called(request_: dict[str, object], upstream: str) -> None:
    (exchange,) = read(flow(response={}, **request_))
    assert exchange.request.upstream == upstream


def test_flows_come_in_the_order_in_which_requests_began() -> None:
    times = [7.5, None, 6.25]
    flows = (flow(response={}, timestamp_start=at, content=str(at).encode()) for at in times)
    connection = {"type": "tcp", "version": 21}
    found = read(*flows, connection)
    assert [each.request.body for each in found] == [b"None", b"6.25", b"7.5"]


def test_a_response_that_is_not_in_the_file_is_told() -> None:
    failed = flow(error={"msg": "peer\nclosed", "timestamp": 1.5})
    streamed = flow(response={"content": None})
    found = imported(file(failed, streamed, flow(response={}), flow(response={"status_code": 0})))
    assert [each.response is None for each in found] == [True, True, False, True]
    assert notes(found[0]) == [
        r"mitmproxy: the flow ended with an error: peer\nclosed",
        "mitmproxy: the flow has no response",
    ]
    assert notes(found[1]) == ["mitmproxy: the response body was not saved, since it was streamed"]


def socket_flow(*messages: object, **closed: object) -> dict[str, object]:
    """A flow of a WebSocket that began a second after the others."""
    made = flow(
        response={"status_code": 101, "headers": [], "timestamp_start": 6.75},
        method=b"GET",
        path=b"/v1/responses",
        timestamp_start=6.5,
        content=b"",
    )
    return {**made, "websocket": {"messages": [*messages], **closed}}


def test_the_messages_of_a_websocket_are_kept_with_their_times() -> None:
    messages = [
        [1, True, b"{}", 7.0, False, False],
        [1, True, b"dropped", 7.25, True, False],
        [1, False, b'{"a": 1}', 8.5, False, False],
        [2, False, b"\xff", 8.0, False, False],
        [9, False, b"", 8.0, False, False],
        "odd",
    ]
    closed = {"closed_by_client": True, "close_code": 4001, "close_reason": "enough"}
    made = socket_flow(*messages, **closed, timestamp_end=9.5)
    _, found = imported(file(made, flow(response={})))
    assert found.response is not None
    times = [found.request.t_ns, found.response.t_ns, *(piece.t_ns for piece in found.frames)]
    assert [at // 10**7 for at in times] == [100, 125, 150, 300, 300, 400]
    sent = read_socket(found)
    assert sent.violations == ()
    assert [(each.side, each.opcode, each.data) for each in sent.messages] == [
        (Side.CLIENT, TEXT, b"{}"),
        (Side.SERVER, TEXT, b'{"a": 1}'),
        (Side.SERVER, BINARY, b"\xff"),
        (Side.CLIENT, CLOSE, b"\x0f\xa1enough"),
    ]
    assert notes(found) == [
        "mitmproxy: left out 1 message that it did not pass on",
        whole_messages("mitmproxy"),
    ]


@pytest.mark.parametrize("code", [None, 1006, "1000"])
def test_a_websocket_that_was_not_closed_has_no_close_frame(code: object) -> None:
    (found,) = imported(file(socket_flow(close_code=code, messages=None)))
    assert found.upgraded
    assert read_socket(found).ending == "not closed"


def test_a_websocket_that_the_server_closed_says_so() -> None:
    (found,) = imported(file(socket_flow(close_code=1005, closed_by_client=False)))
    assert read_socket(found).ending == "closed by the server, without a code"


def test_what_is_no_traffic_of_a_model_is_left_out() -> None:
    page = flow(response={"headers": [], "content": b"<p>"}, method=b"GET", path=b"/", content=None)
    found = imported(file(page, flow(response={})))
    assert [each.body for each in found] == [ANSWER]
    with pytest.raises(UsageError, match="flows of mitmproxy, and has no exchange, none of them"):
        imported(file({"type": "tcp", "version": 21}))


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (file(flow(), flow())[:-9], "after 1 flow: the value at byte"),
        (file(flow()) + b"x", "after 1 flow: no length at byte"),
        (file(flow()) + b"2:ab?", "after 1 flow: no value ends at byte"),
        (file(flow()) + b"2:ab#", "after 1 flow: invalid literal"),
        (file(flow()) + b"1:\xff;", "after 1 flow: 'utf-8' codec"),
        (file({"type": "http", "version": 7}), "of version 7; from 8 on is accepted"),
        (file({"type": "http", "version": [0, 18]}), r"of version \[0, 18\]"),
        (file({"type": "x", "version": 21}, 7), "of version None"),
    ],
)
def test_a_damaged_file_is_refused(data: bytes, problem: str) -> None:
    with pytest.raises(UsageError, match=f"x: is a file of mitmproxy .*{problem}"):
        imported(data)


def test_no_depth_is_too_deep_to_be_refused() -> None:
    deep: object = []
    for _ in range(99):
        deep = [deep]
    with pytest.raises(UsageError, match="no value ends"):
        imported(file({"type": "http", "version": 21, "metadata": deep}))


@pytest.mark.parametrize("data", [b"", b"12:3:abc;", b"hello", b"10:20:30", b"7:version;"])
def test_what_is_no_file_of_flows_is_not_for_this_importer(data: bytes) -> None:
    assert not FlowsImporter().claims(source(data))


WRITE = """
import sys
from mitmproxy import http, io
from mitmproxy.test import tflow
answer = sys.stdin.buffer.read()
with open(sys.argv[1], "wb") as file:
    for path, body in ((b"/v1/chat/completions", answer), (b"/logo", b"x")):
        flow = tflow.tflow(resp=True)
        flow.request.path = path
        flow.request.method = "POST" if body is answer else "GET"
        flow.response.headers = http.Headers([(b"content-type", b"text/event-stream")])
        flow.response.raw_content = body
        io.FlowWriter(file).add(flow)
    io.FlowWriter(file).add(tflow.ttcpflow())
"""


@pytest.mark.slow
@pytest.mark.parametrize("version", NEWEST)
def test_a_file_that_mitmproxy_wrote_is_read(tmp_path: Path, version: str) -> None:
    python = installed(version) / "bin" / "python"
    path = tmp_path / "flows"
    subprocess.run([python, "-c", WRITE, path], input=ANSWER, check=True)
    (exchange,) = imported(path.read_bytes())
    assert exchange.request.path == "/v1/chat/completions"
    assert exchange.body == ANSWER
