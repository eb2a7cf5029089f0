"""The same streams taped through mitmproxy and through the gateway: same bytes, same findings."""

import asyncio
import contextlib
import gzip
import re
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pytest

from deltatape.diagnose.check import check
from deltatape.diagnose.rebuild import rebuild
from deltatape.diagnose.websocket import read_socket
from deltatape.model.exchange import EndReason, Exchange, Framing, MaskedCredential, Source
from deltatape.model.websocket import BINARY, CLOSE, TEXT, Side
from deltatape.record.worker_messages import Hurry
from helpers.mitm import (
    NEWEST,
    VENVS,
    Running,
    call_events,
    installed,
    mitmproxy,
    ran,
)
from helpers.program import environment
from helpers.recording import Recording, recording
from helpers.upstream import SSE_HEAD, Peer, chunk, connect, post, provider, run
from helpers.websocket import HANDSHAKE, KEY, SWITCHED, Deflater, binary, close, frame, ping

EVENTS = call_events()
SECRET = "sk-fake-000000"  # noqa: S105 - a fake
GZIP_HEAD = SSE_HEAD.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n")
LIMIT_S = 90

Pair: TypeAlias = tuple[Exchange, Exchange]


async def whole(peer: Peer) -> None:
    await peer.send(SSE_HEAD)
    for event in EVENTS:
        await peer.send(chunk(event))
        await asyncio.sleep(0.02)
    await peer.send(b"0\r\n\r\n")


async def cut(peer: Peer) -> None:
    await peer.send(SSE_HEAD + b"".join(map(chunk, EVENTS[:4])) + b"99\r\n")
    await asyncio.sleep(0.1)
    peer.close()


async def reset(peer: Peer) -> None:
    await peer.send(SSE_HEAD + b"".join(map(chunk, EVENTS[:4])))
    await asyncio.sleep(0.1)
    peer.reset()


async def silent(peer: Peer) -> None:
    await peer.send(SSE_HEAD + b"".join(map(chunk, EVENTS[:3])))
    with contextlib.suppress(ConnectionError):
        await peer.reader.read()


async def compressed(peer: Peer) -> None:
    body = gzip.compress(b"".join(EVENTS), mtime=0)
    await peer.send(GZIP_HEAD + chunk(body[:40]))
    await asyncio.sleep(0.05)
    await peer.send(chunk(body[40:]) + b"0\r\n\r\n")


async def refusing(peer: Peer) -> None:
    body = b'{"error": {"message": "no such key: %b"}}' % SECRET.encode()
    head = b"HTTP/1.1 401 Unauthorized\r\nContent-Type: application/json\r\n"
    await peer.send(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)


SCRIPTS = {script.__name__: script for script in (whole, cut, reset, silent, compressed, refusing)}
ANSWERS = {
    "without-a-body": b"HTTP/1.1 204 No Content\r\n\r\n",
    "by-its-length": b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    "by-closing": b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n",
    "to-head": b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n",
    "upgrade": SWITCHED % b"",
}
"""Answers after which upstream closes the connection."""
OFFER = b"Sec-WebSocket-Extensions: permessage-deflate\r\n"
SOCKET_SECRET = "sk-fake-111111"  # noqa: S105 - a fake
QUESTION, ANSWER = f'{{"n":"{SOCKET_SECRET}"}}'.encode(), b'{"type":"session.created"}' * 9
SHORT = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
FIRST, REST = b"x" * 70_000, b"y" * 70_000
"""Two parts of an upload; the second follows when upstream has the first."""


async def serve(peer: Peer, has_first: Callable[[], None] = lambda: None) -> None:
    """Plays the script that the request names."""
    while True:
        head = await peer.until(b"\r\n\r\n")
        case = head.split(b"?case=")[1].split(b" ")[0].decode()
        if case in ANSWERS:
            await peer.send(ANSWERS[case])
            await asyncio.sleep(0.05)
            peer.close()
            return
        if case == "messages":
            await answer_messages(peer)
            return
        if case == "upload":
            await peer.reader.readexactly(len(FIRST))
            has_first()
            await peer.reader.readexactly(len(REST))
            await peer.send(SHORT)
            continue
        length = int(re.findall(rb"(?i)content-length: *(\d+)", head)[0])
        await peer.reader.readexactly(length)
        await (peer.send(SHORT) if case == "short" else SCRIPTS[case](peer))


async def ask(port: int, case: str) -> None:
    peer = await connect(port)
    await peer.send(
        post(
            b'{"model": "m", "stream": true}',
            target=f"/v1/chat/completions?case={case}",
            extra=f"Authorization: Bearer {SECRET}\r\n",
        )
    )
    if case == "silent":
        await peer.until(EVENTS[2] + b"\r\n")
        peer.close()
    elif case == "refusing":
        await peer.until(b'"}}')
    else:
        await peer.rest_or_end()


async def upload(port: int, has_first: asyncio.Event) -> None:
    peer = await connect(port)
    target = "/v1/chat/completions?case=upload"
    question = post(FIRST + REST, target, "Expect: 100-continue\r\n")
    await peer.send(question.removesuffix(REST))
    await has_first.wait()
    await peer.send(REST)
    assert (await peer.until(b"ok")).count(b"HTTP/1.1 200") == 1


async def ask_for_answers(running: Running, before: int) -> None:
    for number, case in enumerate(ANSWERS, before + 1):
        method = "HEAD" if case == "to-head" else "GET"
        question = f"{method} /x?case={case} HTTP/1.1\r\nHost: a\r\n\r\n".encode()
        if case == "upgrade":
            question = HANDSHAKE % (b"/v1/realtime?case=upgrade", b"")
        await (await connect(running.port)).send(question)
        await running.ended(number)


async def answer_messages(peer: Peer) -> None:
    await peer.send(SWITCHED % OFFER)
    await peer.send(ping(b"?") + Deflater().frame(ANSWER))
    await peer.rest()
    peer.close()


async def send_messages(port: int) -> None:
    client = await connect(port)
    credential = f"Authorization: Bearer {SOCKET_SECRET}\r\n".encode()
    await client.send(HANDSHAKE % (b"/v1/realtime?case=messages", OFFER + credential))
    await client.until(b"\r\n\r\n")
    await client.reader.read(1)  # a ping or the answer has come
    fragments = frame(1, b"one ", fin=False, mask=KEY) + frame(0, b"two", mask=KEY)
    await client.send(Deflater().frame(QUESTION, mask=KEY) + fragments)
    await client.send(binary(b"\xff\0", mask=KEY) + close(4001, "enough", mask=KEY))
    await client.rest()
    client.close()


CANCELLING = """
import socket, ssl, sys
import h2.config, h2.connection, h2.errors, h2.events

port, ca = int(sys.argv[1]), sys.argv[2]
context = ssl.create_default_context(cafile=ca)
context.check_hostname = False
context.set_alpn_protocols(["h2"])
sock = context.wrap_socket(socket.create_connection(("127.0.0.1", port)))
client = h2.connection.H2Connection(h2.config.H2Configuration())
client.initiate_connection()

def ask(path):
    stream = client.get_next_available_stream_id()
    pseudo = {":method": "POST", ":path": path, ":authority": "127.0.0.1", ":scheme": "https"}
    client.send_headers(stream, [*pseudo.items(), ("content-length", "2")])
    client.send_data(stream, b"{}", end_stream=True)
    return stream

def until(kind, stream):
    while True:
        sock.sendall(client.data_to_send())
        for event in client.receive_data(sock.recv(65536)):
            if isinstance(event, kind) and event.stream_id == stream:
                return

first = ask("/v1/chat/completions?case=silent")
until(h2.events.DataReceived, first)
client.reset_stream(first, h2.errors.ErrorCodes.CANCEL)
until(h2.events.StreamEnded, ask("/v1/chat/completions?case=short"))
"""
"""A client with HTTP/2 that cancels a stream, and then asks for another one that it reads."""


async def twice_on_one_connection(port: int) -> None:
    peer = await connect(port)
    for _ in range(2):
        await peer.send(post(target="/v1/chat/completions?case=short"))
        await peer.until(b"ok")


async def all_cases(tape: Running | Recording) -> dict[str, Exchange]:
    """Every script once; the exchanges by its name."""
    for number, case in enumerate(SCRIPTS, 1):
        await ask(tape.port, case)
        await tape.ended(number)
    return dict(zip(SCRIPTS, await tape.ended(len(SCRIPTS)), strict=True))


@dataclass(frozen=True)
class Taped:
    """What one mitmproxy has taped."""

    version: str
    pairs: dict[str, Pair]
    """Each script's exchange as taped by mitmproxy and by the gateway."""
    upload: Exchange
    reusing: list[Exchange]
    """Of one connection."""
    answered: dict[str, Exchange]
    """The exchange of each of `ANSWERS`."""
    messages: Exchange
    """On a WebSocket."""
    cancelling: list[Exchange]
    """Those of `CANCELLING`."""
    refused: Exchange
    """When upstream was gone."""
    lines: list[str]
    """What mitmproxy printed."""
    text: str
    """The tape."""


PROBE = """
import logging
from mitmproxy import ctx

def client_connected(_):
    logging.error("patience %s", getattr(ctx.options, "tcp_timeout", None))
"""


@pytest.fixture(scope="module", params=VENVS)
def taped(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Taped:
    """All that needs no mitmproxy of its own."""
    folder, version = tmp_path_factory.mktemp("pairs"), request.param

    async def scenario() -> Taped:
        has_first = asyncio.Event()
        async with contextlib.AsyncExitStack() as stack:
            async with provider(lambda peer: serve(peer, has_first.set)) as upstream:
                proxy = mitmproxy(
                    folder, version, upstream, more=script(folder, PROBE), measured=True
                )
                running = await stack.enter_async_context(proxy)
                theirs = await all_cases(running)
                await upload(running.port, has_first)
                await twice_on_one_connection(running.port)
                await ask_for_answers(running, before=len(SCRIPTS) + 3)
                await send_messages(running.port)
                await running.ended(len(SCRIPTS) + len(ANSWERS) + 4)
                client = (installed(version) / "bin" / "python", "-c", CANCELLING)
                to = (str(running.port), running.started.ca)
                assert await ran(*client, *to, env=environment(folder)) == (0, "", "")
                async with recording(folder / "gateway", upstream) as gateway:
                    ours = await all_cases(gateway)
            peer = await connect(running.port)
            await peer.send(post())
            await peer.until(b"502")
            exchanges = iter(await running.ended(len(SCRIPTS) + len(ANSWERS) + 7))
            await running.stop("child-exit", 7)
            return Taped(
                version=version,
                pairs={case: (next(exchanges), ours[case]) for case in theirs},
                upload=next(exchanges),
                reusing=[next(exchanges), next(exchanges)],
                answered={case: next(exchanges) for case in ANSWERS},
                messages=next(exchanges),
                cancelling=[next(exchanges), next(exchanges)],
                refused=next(exchanges),
                lines=running.observed.lines,
                text=running.text(),
            )

    return run(scenario(), limit_s=LIMIT_S)


def script(folder: Path, text: str) -> tuple[str, ...]:
    """Options that add an addon of the user's."""
    path = folder / "their.py"
    path.write_text(text)
    return "-s", str(path)


@pytest.fixture(scope="module")
def pairs(taped: Taped) -> dict[str, Pair]:
    return taped.pairs


def calls(exchange: Exchange) -> list[tuple[object, ...]]:
    return [(c.id, c.name, c.arguments, c.status) for c in rebuild(exchange).tool_calls]


def codes(exchange: Exchange) -> list[str]:
    return sorted(finding.code for finding in check(exchange))


@pytest.mark.parametrize("case", SCRIPTS)
def test_bytes_replies_and_findings_are_those_of_the_gateway(
    pairs: dict[str, Pair], case: str
) -> None:
    theirs, ours = pairs[case]
    assert theirs.source is Source.MITM
    assert theirs.body == ours.body
    assert theirs.request.body == ours.request.body
    assert theirs.request.target == ours.request.target
    assert theirs.request.upstream == ours.request.upstream
    assert calls(theirs) == calls(ours)
    if case != "reset":  # told from a close by the gateway alone
        assert codes(theirs) == codes(ours)
    assert theirs.response is not None
    assert ours.response is not None
    assert theirs.response.framing is ours.response.framing
    assert theirs.response.headers == ours.response.headers


def test_each_piece_is_taped_when_it_came(pairs: dict[str, Pair]) -> None:
    theirs, _ = pairs["whole"]
    assert [read.data for read in theirs.reads] == EVENTS
    assert all(read.boundaries == (len(read.data),) for read in theirs.reads)
    assert theirs.reads[-1].t_ns - theirs.reads[0].t_ns > 15_000_000 * len(EVENTS)
    assert codes(theirs) == []


def test_endings_are_reported_as_far_as_mitmproxy_tells_them(pairs: dict[str, Pair]) -> None:
    reasons = {case: theirs.end.reason for case, (theirs, _) in pairs.items() if theirs.end}
    assert reasons == {
        "whole": EndReason.COMPLETE,
        "cut": EndReason.UPSTREAM_CLOSED,
        "reset": EndReason.UPSTREAM_CLOSED,
        "silent": EndReason.CLIENT_CLOSED,
        "compressed": EndReason.COMPLETE,
        "refusing": EndReason.COMPLETE,
    }
    cut_end = pairs["cut"][0].end
    assert cut_end is not None
    assert "without sending complete message body" in cut_end.detail


def test_compressed_bytes_are_taped_as_they_were(pairs: dict[str, Pair]) -> None:
    theirs, _ = pairs["compressed"]
    assert gzip.decompress(theirs.body) == b"".join(EVENTS)


def test_the_request_s_way_to_upstream_is_timed(pairs: dict[str, Pair]) -> None:
    theirs, _ = pairs["whole"]
    assert theirs.sent is not None
    assert theirs.sent.connect_ns > 0
    assert not theirs.sent.reused
    assert theirs.request.t_end_ns is not None


def test_credentials_are_masked_where_they_stand_and_where_they_are_repeated(
    pairs: dict[str, Pair],
) -> None:
    theirs, ours = pairs["refusing"]
    assert any(isinstance(value, MaskedCredential) for _, value in theirs.request.headers)
    assert SECRET.encode() not in theirs.body
    assert theirs.body == ours.body
    assert theirs.response is not None
    assert theirs.response.framing is Framing.LENGTH


@pytest.mark.parametrize("version", NEWEST)
def test_a_killed_mitmproxy_leaves_a_tape_of_what_was_delivered(
    tmp_path: Path, version: str
) -> None:
    async def scenario() -> None:
        async with provider(serve) as upstream, mitmproxy(tmp_path, version, upstream) as running:
            peer = await connect(running.port)
            await peer.send(post(target="/v1/chat/completions?case=silent"))
            await peer.until(EVENTS[2] + b"\r\n")
            await asyncio.sleep(0.1)
            await running.mitmdump.kill()
            ended = await running.mitmdump.ended(0.0)
            assert not ended.in_order
            assert ended.code == -signal.SIGKILL
            (exchange,) = running.tape()
            assert exchange.body == b"".join(EVENTS[:3])
            assert exchange.end is None
            assert not running.tape().stopped

    run(scenario(), limit_s=LIMIT_S)


def test_at_the_end_streams_may_end_within_the_grace_and_are_stopped_after_it(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with provider(serve) as upstream, mitmproxy(tmp_path, "11", upstream) as running:
            silent, whole = await connect(running.port), await connect(running.port)
            await silent.send(post(target="/v1/chat/completions?case=silent"))
            await silent.until(EVENTS[2] + b"\r\n")
            await whole.send(post(target="/v1/chat/completions?case=whole"))
            await whole.until(EVENTS[0] + b"\r\n")
            running.mitmdump.stop("sigint", 3, 300.0)
            assert b"[DONE]" in await whole.rest_or_end()
            running.mitmdump.send(Hurry())  # the grace is over
            ended = await running.mitmdump.ended(0.0)
            assert ended.in_order
            one, other = sorted(running.tape(), key=lambda exchange: exchange.number)
            assert one.end is not None
            assert other.end is not None
            reasons = one.end.reason, other.end.reason
            assert reasons == (EndReason.STOPPED, EndReason.COMPLETE)
            assert running.tape().stopped

    run(scenario(), limit_s=LIMIT_S)


def test_an_upstream_that_cannot_be_reached_has_refused(taped: Taped) -> None:
    assert taped.refused.end is not None
    assert taped.refused.end.reason is EndReason.REFUSED
    assert taped.refused.response is None


def test_connections_of_clients_are_on_the_tape(taped: Taped) -> None:
    assert '"client",{"connection":1,"state":"opened"}' in taped.text
    assert f'"taped by mitmproxy {taped.version}.' in taped.text
    assert taped.text.endswith('"stop",{"reason":"child-exit","code":7}]\n')


def test_silence_is_borne_for_as_long_as_mitmproxy_can(taped: Taped) -> None:
    patience = {"11": None, "12": 86400}[taped.version]
    assert any(f"patience {patience}" in line for line in taped.lines)


def test_silence_is_taped_as_watched_and_mitmproxy_that_gives_up_is_not_taken_for_the_client(
    tmp_path: Path,
) -> None:
    impatient = ("--set", "tcp_timeout=13")  # after silence has been taped

    async def scenario() -> Exchange:
        async with (
            provider(serve) as upstream,
            mitmproxy(tmp_path, "12", upstream, more=impatient) as running,
        ):
            peer = await connect(running.port)
            await peer.send(post(target="/v1/chat/completions?case=silent"))
            await peer.rest()
            (exchange,) = await running.ended()
            return exchange

    exchange = run(scenario(), limit_s=LIMIT_S)
    assert exchange.idle_ns
    assert exchange.idle_ns[0] - exchange.reads[-1].t_ns >= 5_000_000_000
    assert exchange.end is not None
    assert exchange.end.reason is EndReason.TIMEOUT
    assert exchange.end.detail.startswith("mitmproxy gave up after ")


# One exchange on its way through mitmproxy: heads, bodies, framings, HTTP/2.


def test_an_upload_passes_and_is_taped_while_it_comes(taped: Taped) -> None:
    exchange = taped.upload
    assert exchange.request.body == FIRST + REST
    assert b"expect" not in {name.lower() for name, _ in exchange.request.headers}
    assert exchange.response is not None
    assert exchange.response.framing is Framing.LENGTH


def test_requests_of_one_connection_use_upstream_again(taped: Taped) -> None:
    reused = [exchange.sent.reused for exchange in taped.reusing if exchange.sent]
    assert reused == [False, True]


@pytest.mark.parametrize(
    ("name", "framing"),
    [
        ("without-a-body", Framing.NONE),
        ("by-its-length", Framing.LENGTH),
        ("by-closing", Framing.CLOSE),
    ],
)
def test_how_a_body_is_delimited_is_on_the_tape(taped: Taped, name: str, framing: Framing) -> None:
    exchange = taped.answered[name]
    assert exchange.response is not None
    assert exchange.response.framing is framing
    assert exchange.body == ANSWERS[name].partition(b"\r\n\r\n")[2]
    assert all(read.boundaries is None for read in exchange.reads)
    assert exchange.end is not None
    assert exchange.end.reason is EndReason.COMPLETE
    assert exchange.request.t_end_ns is not None


def test_an_answer_to_head_has_no_body(taped: Taped) -> None:
    exchange = taped.answered["to-head"]
    assert exchange.response is not None
    assert exchange.response.framing is Framing.NONE


def test_a_websocket_without_messages_ends_with_its_connection(taped: Taped) -> None:
    exchange = taped.answered["upgrade"]
    (note,) = exchange.notes
    assert note.text.startswith("a WebSocket, of which mitmproxy tells whole messages")
    assert exchange.frames == ()
    assert exchange.end is not None
    assert exchange.end.reason is EndReason.UPSTREAM_CLOSED


def test_the_messages_on_a_websocket_are_taped(taped: Taped) -> None:
    socket = read_socket(taped.messages)
    assert socket.violations == ()
    stars = QUESTION.replace(SOCKET_SECRET.encode(), b"*" * len(SOCKET_SECRET))
    sent = [(each.side, each.opcode, each.data) for each in socket.messages]
    assert sorted(sent, key=lambda each: each[0]) == [
        (Side.CLIENT, TEXT, stars),
        (Side.CLIENT, TEXT, b"one two"),
        (Side.CLIENT, BINARY, b"\xff\0"),
        (Side.CLIENT, CLOSE, b"\x0f\xa1enough"),
        (Side.SERVER, TEXT, ANSWER),
    ]
    assert taped.messages.end is not None
    assert taped.messages.end.reason is EndReason.COMPLETE
    assert SOCKET_SECRET not in taped.text


def test_a_client_that_cancels_a_stream_of_http_2_has_left(taped: Taped) -> None:
    cancelled, whole = taped.cancelling
    assert cancelled.request.http == "2.0"
    assert cancelled.body == b"".join(EVENTS[:3])
    assert cancelled.end is not None
    assert cancelled.end.reason is EndReason.CLIENT_CLOSED
    assert cancelled.end.detail == "HTTP/2: stream reset by client (CANCEL)"
    blamed = {finding.code: finding.blame for finding in check(cancelled)}
    assert blamed == {"W006": None, "T003": None}
    assert whole.body == b"ok"


THEIRS = """
from mitmproxy import http

def requestheaders(flow):
    if flow.request.path == "/changed":
        flow.request.stream = lambda data: data.lower()
    elif flow.request.path == "/answered":
        flow.response = http.Response.make(403, b"no")
    elif flow.request.path == "/failing":
        from deltatape.tape.tap import ExchangeTap
        def read(*_): raise ValueError("a fault from inside")
        ExchangeTap.read = read

def responseheaders(flow):
    if flow.request.path == "/changed":
        flow.response.stream = lambda data: data.upper()
"""


@dataclass(frozen=True)
class AmongAddons:
    """What was sent and taped where `THEIRS` was loaded, too."""

    received: list[tuple[bytes, bytes]]
    """Upstream: targets and bodies."""
    answers: dict[str, bytes]
    exchanges: dict[str, Exchange]
    alarms: list[str]


@pytest.fixture(scope="module")
def among(tmp_path_factory: pytest.TempPathFactory) -> AmongAddons:
    folder = tmp_path_factory.mktemp("among")
    received: list[tuple[bytes, bytes]] = []
    answers: dict[str, bytes] = {}

    async def answering(peer: Peer) -> None:
        head, body = await peer.request()
        received.append((head.split()[1], body))
        await peer.send(SSE_HEAD + chunk(b"answer") + chunk(b"s") + b"0\r\n\r\n")

    async def scenario() -> AmongAddons:
        async with (
            provider(answering) as upstream,
            mitmproxy(
                folder, "11", upstream, more=script(folder, THEIRS), measured=True
            ) as running,
        ):
            for target in ("/changed", "/answered", "/failing"):
                peer = await connect(running.port)
                await peer.send(post(b"QUESTION", target))
                end = b"no" if target == "/answered" else b"\r\n0\r\n\r\n"
                answers[target] = (await peer.until(end)).partition(b"\r\n\r\n")[2]
            await running.until(lambda observed: bool(observed.alarms))
            changed, answered = await running.ended(2)
            exchanges = {"/changed": changed, "/answered": answered}
            return AmongAddons(received, answers, exchanges, running.observed.alarms)

    return run(scenario(), limit_s=LIMIT_S)


def test_a_failure_of_taping_never_harms_the_stream(among: AmongAddons) -> None:
    assert among.answers["/failing"] == chunk(b"answer") + chunk(b"s") + b"0\r\n\r\n"
    assert among.alarms == ["exchange 3 is taped no further: ValueError('a fault from inside')"]


def test_what_other_addons_make_of_bodies_is_respected_and_upstream_s_bytes_are_taped(
    among: AmongAddons,
) -> None:
    assert among.received[0] == (b"/changed", b"question")
    assert b"ANSWER" in among.answers["/changed"]
    assert among.exchanges["/changed"].body == b"answers"


def test_an_answer_that_mitmproxy_makes_itself_is_noted(among: AmongAddons) -> None:
    exchange = among.exchanges["/answered"]
    assert exchange.body == b"no"
    assert exchange.request.body == b"QUESTION"
    assert [note.text for note in exchange.notes] == [
        "mitmproxy answered itself; nothing went upstream"
    ]
    assert [target for target, _ in among.received] == [b"/changed", b"/failing"]
