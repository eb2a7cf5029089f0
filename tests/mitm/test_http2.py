"""What the sides with HTTP/2 do is on the tape, and nobody is accused without proof."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme

from deltatape.diagnose.check import check
from deltatape.model.exchange import EndReason, Exchange
from deltatape.model.finding import Blame
from helpers.mitm import VENVS, Running, call_events, installed, mitmproxy, ran
from helpers.program import environment
from helpers.upstream import run

LIMIT_S = 120
EVENTS = call_events()
PROVIDER = """
import socket, ssl, sys, threading
import h2.config, h2.connection, h2.errors, h2.events, h2.settings

context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
context.load_cert_chain(sys.argv[1])
context.set_alpn_protocols(["h2"])
events = open(sys.argv[2], "rb").read().split(b"|")
first, rest = events[:3], events[3:]
codes = h2.errors.ErrorCodes
resets = {"reset": codes.INTERNAL_ERROR, "cancelled": codes.CANCEL, "refused": codes.REFUSED_STREAM}
goaways = {"goaway": codes.INTERNAL_ERROR, "restart": codes.NO_ERROR}


def begin(server, stream, case):
    if case == "refused":
        server.reset_stream(stream, resets[case])
    elif case == "large":
        server.send_headers(stream, [(":status", "200"), ("content-type", "text/plain")])
    else:
        server.send_headers(stream, [(":status", "200"), ("content-type", "text/event-stream")])
        for event in first:
            server.send_data(stream, event)


def end(server, stream, case):
    if case in resets:
        server.reset_stream(stream, resets[case])
    elif case in goaways:
        server.close_connection(goaways[case], last_stream_id=stream)
    elif case != "silent":
        for event in rest:
            server.send_data(stream, event)
        if case == "trailers":
            server.send_headers(stream, [("x-note", "late")], end_stream=True)
        else:
            server.end_stream(stream)


def serve(sock):
    sock = context.wrap_socket(sock, server_side=True)
    server = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
    server.initiate_connection()
    cases, begun, left = {}, set(), {}
    while True:
        sock.sendall(server.data_to_send())
        data = sock.recv(65536)
        if not data:
            return
        for event in server.receive_data(data):
            stream = getattr(event, "stream_id", None)
            if isinstance(event, h2.events.RequestReceived):
                cases[stream] = dict(event.headers)[b":path"].decode().partition("case=")[2]
            elif isinstance(event, h2.events.DataReceived):
                server.acknowledge_received_data(event.flow_controlled_length, stream)
            elif isinstance(event, h2.events.StreamEnded):
                begin(server, stream, cases[stream])
                if cases[stream] == "large":
                    left[stream] = 1_000_000
                elif cases[stream] != "refused":
                    begun.add(stream)
                    server.ping(b"received")  # answered once what came before has been read
            elif isinstance(event, h2.events.PingAckReceived):
                for stream in begun:
                    end(server, stream, cases[stream])
                begun.clear()
            elif isinstance(event, h2.events.StreamReset):
                left.pop(stream, None)
        for stream in tuple(left):
            while left[stream]:
                size = min(left[stream], server.local_flow_control_window(stream), 16384)
                if size <= 0:
                    break
                server.send_data(stream, b"x" * size)
                left[stream] -= size
            else:
                server.end_stream(stream)
                del left[stream]


listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"""
"""A provider with HTTP/2 alone; a request's `case` names what it does after the beginning."""

CLIENT = """
import socket, ssl, sys
import h2.config, h2.connection, h2.errors, h2.events

proxy, port, ca, case = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
context = ssl.create_default_context(cafile=ca)
context.set_alpn_protocols(["h2"])
sock = socket.create_connection(("127.0.0.1", proxy))
sock.sendall(f"CONNECT localhost:{port} HTTP/1.1\\r\\n\\r\\n".encode())
while not sock.recv(1024).endswith(b"\\r\\n\\r\\n"):
    pass
sock = context.wrap_socket(sock, server_hostname="localhost")
client = h2.connection.H2Connection(h2.config.H2Configuration())
client.initiate_connection()
stream = client.get_next_available_stream_id()
path = "/v1/chat/completions?case=" + case
pseudo = {":method": "POST", ":path": path, ":authority": f"localhost:{port}", ":scheme": "https"}
client.send_headers(stream, [*pseudo.items(), ("content-length", "2")])
client.send_data(stream, b"{}", end_stream=True)
received = 0
wanted = 60_000 if case == "large" else 1
while received < wanted:  # and opens no window: a stall
    sock.sendall(client.data_to_send())
    for event in client.receive_data(sock.recv(65536)):
        if isinstance(event, h2.events.DataReceived):
            received += len(event.data)
if sys.argv[5] == "cancel":
    client.reset_stream(stream, h2.errors.ErrorCodes.CANCEL)
elif sys.argv[5] == "goaway":
    client.close_connection()
else:
    sys.stdout.write(str(received))
    sys.stdout.flush()
    sys.stdin.read()
sock.sendall(client.data_to_send())
sock.close()
"""
"""A client that reads until the first data and then leaves as it was told."""


@contextlib.asynccontextmanager
async def http2(folder: Path, version: str) -> AsyncIterator[tuple[Running, int]]:
    """A mitmproxy in front of the provider, and the provider's port."""
    authority = trustme.CA()
    pem, ca, events = folder / "server.pem", folder / "authority.pem", folder / "events"
    authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(str(pem))
    authority.cert_pem.write_to_path(str(ca))
    events.write_bytes(b"|".join(EVENTS))
    server = await asyncio.create_subprocess_exec(
        *(str(installed(version) / "bin" / "python"), "-c", PROVIDER, str(pem), str(events)),
        env=environment(folder),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert server.stdout is not None
    port = int(await server.stdout.readline())
    trust = ("--set", f"ssl_verify_upstream_trusted_ca={ca}")
    try:
        async with mitmproxy(folder, version, hosts=("localhost",), more=trust) as running:
            yield running, port
    finally:
        server.kill()
        await server.communicate()


ENDINGS = ("whole", "trailers", "reset", "cancelled", "refused", "goaway", "restart")
"""Those of the provider."""
LEAVING = ("cancel", "goaway")
"""What `CLIENT` does."""


@dataclass(frozen=True)
class Taped:
    """What one mitmproxy has taped."""

    asked: dict[str, Exchange]
    """What the provider did, each asked for by curl."""
    left: dict[str, Exchange]
    """How the client left."""
    stalled: Exchange
    taken: int
    """How many bytes of it the client has taken."""


@pytest.fixture(scope="module", params=VENVS)
def taped(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Taped:
    folder = tmp_path_factory.mktemp("http2")
    python = str(installed(request.param) / "bin" / "python")

    async def scenario() -> Taped:
        async with http2(folder, request.param) as (running, port):
            for number, case in enumerate(ENDINGS, 1):
                await ran(
                    *("curl", "-sN", "--http2", "--proxy", running.started.url),
                    *("--cacert", running.started.ca, "-d", '{"model": "m"}'),
                    f"https://localhost:{port}/v1/chat/completions?case={case}",
                    env=environment(folder),
                )
                await running.ended(number)
            client = (python, "-c", CLIENT, str(running.port), str(port), str(running.started.ca))
            for number, how in enumerate(LEAVING, len(ENDINGS) + 1):
                done = await ran(*client, "silent", how, env=environment(folder))
                assert done == (0, "", "")
                await running.ended(number)
            stalling = await asyncio.create_subprocess_exec(
                *(*client, "large", "stay"),
                env=environment(folder),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
            exchanges = iter(await running.ended(len(ENDINGS) + len(LEAVING) + 1))
            taken, _ = await stalling.communicate(b"")
            return Taped(
                asked={case: next(exchanges) for case in ENDINGS},
                left={how: next(exchanges) for how in LEAVING},
                stalled=next(exchanges),
                taken=int(taken),
            )

    return run(scenario(), limit_s=LIMIT_S)


@pytest.fixture(scope="module")
def asked(taped: Taped) -> dict[str, Exchange]:
    return taped.asked


def ended(exchange: Exchange) -> tuple[EndReason, str]:
    assert exchange.end is not None
    return exchange.end.reason, exchange.end.detail


def accused(exchange: Exchange) -> set[Blame | None]:
    return {finding.blame for finding in check(exchange)}


def test_trailers_are_on_the_tape(asked: dict[str, Exchange]) -> None:
    assert ended(asked["trailers"])[0] is EndReason.COMPLETE
    assert asked["trailers"].trailers == ((b"x-note", b"late"),)
    assert asked["whole"].trailers == ()
    assert asked["trailers"].body == asked["whole"].body == b"".join(EVENTS)
    whole = asked["whole"]
    assert whole.response is not None
    assert (whole.request.http, whole.response.http) == ("2.0", "2.0")
    assert not check(whole)
    assert not check(asked["trailers"])


def test_a_reset_by_the_provider_has_its_code_and_accuses_no_app(
    asked: dict[str, Exchange],
) -> None:
    assert ended(asked["reset"]) == (
        EndReason.UPSTREAM_RESET,
        "HTTP/2: stream reset (INTERNAL_ERROR); mitmproxy does not tell by which side",
    )
    assert asked["reset"].body == b"".join(EVENTS[:3])
    assert accused(asked["reset"]) == {Blame.TRANSPORT}
    refused = asked["refused"]
    assert refused.response is None
    assert ended(refused)[0] is EndReason.UPSTREAM_RESET
    assert "REFUSED_STREAM" in ended(refused)[1]
    assert accused(refused) == {Blame.TRANSPORT}


def test_a_cancel_that_the_provider_may_have_sent_accuses_nobody(
    asked: dict[str, Exchange],
) -> None:
    # As a rule it is the client who cancels, and mitmproxy has one word for both.
    assert ended(asked["cancelled"]) == (
        EndReason.CLIENT_CLOSED,
        "HTTP/2: stream reset (CANCEL); mitmproxy does not tell by which side",
    )
    assert accused(asked["cancelled"]) == {None}


@pytest.mark.parametrize(("case", "code"), [("goaway", "INTERNAL_ERROR"), ("restart", "NO_ERROR")])
def test_a_goaway_ends_the_stream_with_its_code(
    asked: dict[str, Exchange], case: str, code: str
) -> None:
    assert asked[case].body == b"".join(EVENTS[:3])
    reason, detail = ended(asked[case])
    assert reason is EndReason.UPSTREAM_CLOSED
    assert detail.startswith(f"HTTP/2: GOAWAY ({code}, last stream ")
    assert detail.endswith("mitmproxy ends all streams then, also those that would be completed")
    assert accused(asked[case]) == {Blame.TRANSPORT}


@pytest.mark.parametrize("how", LEAVING)
def test_a_client_that_leaves_a_stream_between_two_sides_with_http_2_is_the_one_who_left(
    taped: Taped, how: str
) -> None:
    exchange = taped.left[how]
    assert exchange.body == b"".join(EVENTS[:3])
    assert ended(exchange)[0] is EndReason.CLIENT_CLOSED
    assert accused(exchange) == {None}


def test_what_a_client_does_not_take_waits_in_mitmproxy_and_is_taped_as_it_came(
    taped: Taped,
) -> None:
    # Flow control ends at mitmproxy: to the provider it opens the window at once.
    assert 60_000 <= taped.taken <= 65_535
    assert ended(taped.stalled)[0] is EndReason.COMPLETE
    assert len(taped.stalled.body) == 1_000_000
