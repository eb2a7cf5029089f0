"""What all taps of a run share: tapes by name, refusals as evidence, two taps on one tape."""

import asyncio
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from deltatape.errors import UsageError
from deltatape.gateway import recorder
from deltatape.gateway.gateway import TapPolicy
from deltatape.gateway.recorder import ExchangeTaping
from deltatape.gateway.routes import Refusal
from deltatape.gateway.tapes import OpenTape
from deltatape.http1.head import ParsedResponseHead
from deltatape.http1.listener import Address
from deltatape.model.exchange import EndReason, Framing, Source, Tap
from deltatape.store import tape_file
from deltatape.store.reader import open_tape
from deltatape.store.writer import TapeWriter
from deltatape.tape.decode import decode_record
from deltatape.tape.payload import RemarkRecord, RequestBodyPiece
from deltatape.tape.tap import ExchangeTap, TapeTap
from helpers.recording import Recording, recording
from helpers.tapes import MASKER, Lines
from helpers.upstream import Peer, connect, eventually, ok_response, post, provider, run

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
TOKEN = "t-000"  # noqa: S105 - a fake


async def answer(peer: Peer) -> None:
    while True:
        await peer.request()
        await peer.send(OK)


async def echo_target(peer: Peer) -> None:
    while True:
        head, _ = await peer.request()
        target = head.split(b" ")[1]
        await peer.send(ok_response(target))


async def ask(running: Recording, request: bytes) -> bytes:
    client = await running.client()
    await client.send(request)
    return (await client.rest())[0]


def all_bytes(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.glob("*.tape"))


def numbers(path: Path) -> list[int]:
    return sorted(exchange.number for exchange in open_tape(path))


def test_requests_name_their_tape_and_nobody_else_is_told(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with (
            provider(echo_target) as port,
            recording(tmp_path, f"up=http://127.0.0.1:{port}") as running,
        ):
            close = "Connection: close\r\n"
            got = await ask(running, post(target="/s/test_one/up/v1", extra=close))
            assert got.endswith(b"\r\n\r\n/v1")
            field = f"X-Deltatape-Tape: test_two\r\n{close}"
            assert (await ask(running, post(target="/up/v1", extra=field))).endswith(b"/v1")
            assert (await ask(running, post(target="/up/v1", extra=close))).endswith(b"/v1")
            assert await ask(running, post(target="/s/test_one/up/v2", extra=close))
            await eventually(lambda: len(running.seen.exchanges) == 4, "four exchanges")
            assert sorted(running.seen.exchanges) == [
                ("", 1),
                ("test_one", 1),
                ("test_one", 2),
                ("test_two", 1),
            ]
        assert numbers(tmp_path / "test_one.tape") == [1, 2]
        assert numbers(tmp_path / "test_two.tape") == [1]
        assert numbers(tmp_path / "test.tape") == [1]
        raw = all_bytes(tmp_path)
        assert b"X-Deltatape-Tape" not in raw
        assert b"/s/test_one" not in raw

    run(scenario())


def test_names_count_before_one_upstream_but_not_before_an_app(tmp_path: Path) -> None:
    close = "Connection: close\r\n"
    asked = post(target="/s/n/v1", extra=close)

    async def scenario() -> None:
        async with provider(echo_target) as port:
            async with recording(tmp_path / "one", port) as running:
                assert (await ask(running, asked)).endswith(b"\r\n\r\n/v1")
            app = TapPolicy(side=Tap.APP)
            async with recording(tmp_path / "app", port, policy=app) as running:
                assert (await ask(running, asked)).endswith(b"\r\n\r\n/s/n/v1")
        assert numbers(tmp_path / "one" / "n.tape") == [1]

    run(scenario())


def test_a_name_that_no_tape_can_have_is_refused_and_noted(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with recording(tmp_path, "up=http://127.0.0.1:9") as running:
            got = await ask(running, post(target="/s/..%2Fx/up/v1"))
            assert got.startswith(b"HTTP/1.1 400 Bad Request")
        payloads = [record.payload for _, record in open_tape(tmp_path / "test.tape").records()]
        assert RemarkRecord(text="a request was refused with 400 bad_tape_name") in payloads

    run(scenario())


def test_a_key_of_another_provider_is_refused_unless_allowed(tmp_path: Path) -> None:
    key = "Authorization: Bearer sk-ant-fake-000\r\nConnection: close\r\n"

    async def scenario() -> None:
        async with provider(answer) as port:
            # The name decides whose host it is; the connection itself stays on this machine.
            upstream = "https://api.openai.com"
            async with recording(tmp_path, f"openai={upstream}") as running:
                got = await ask(running, post(target="/openai/v1/x", extra=key))
                assert got.startswith(b"HTTP/1.1 403 Forbidden")
                assert b"sk-ant-" in got
                assert b"fake-000" not in got
                assert [r.code for r in running.seen.refusals] == ["key_mismatch"]
            policy = TapPolicy(check_keys=False)
            async with recording(tmp_path, port, policy=policy) as running:
                assert (await ask(running, post(extra=key))).endswith(b"ok")

    run(scenario())


def test_where_others_can_reach_the_port_only_the_token_opens_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        policy = TapPolicy(token=TOKEN)
        anywhere = Address("0.0.0.0", 0)  # noqa: S104 - what is tested
        with pytest.raises(UsageError, match="a token is needed"):
            async with recording(tmp_path, "http://127.0.0.1:9", at=anywhere):
                pass
        async with (
            provider(echo_target) as port,
            recording(tmp_path, port, policy=policy, at=anywhere) as running,
        ):
            close = "Connection: close\r\n"
            got = await ask(running, post(target="/v1/x", extra=close))
            assert got.startswith(b"HTTP/1.1 403 Forbidden")
            assert b"token_needed" in got
            named = post(target=f"/t/{TOKEN}/v1/x", extra=close)
            foreign = named.replace(b"Host: 127.0.0.1", b"Host: deltatape:8377")
            assert (await ask(running, foreign)).endswith(b"\r\n\r\n/v1/x")
            field = f"X-Deltatape-Token: {TOKEN}\r\n{close}"
            assert (await ask(running, post(target="/v1/x", extra=field))).endswith(b"/v1/x")
        assert TOKEN.encode() not in (tmp_path / "test-2.tape").read_bytes()

    run(scenario())


def test_a_unix_socket_serves_as_well(tmp_path: Path) -> None:
    async def scenario() -> None:
        place = Address(path=str(tmp_path / "gateway.sock"))
        async with (
            provider(echo_target) as port,
            recording(tmp_path, port, at=place) as running,
        ):
            reader, writer = await asyncio.open_unix_connection(place.path)
            writer.write(post(target="/v1/x").replace(b"127.0.0.1", b"any.name"))
            assert (await reader.readuntil(b"/v1/x")).startswith(b"HTTP/1.1 200 OK")
            writer.close()
            (exchange,) = await running.ended()
            assert exchange.end is not None

    run(scenario())


def test_a_body_that_is_not_wanted_is_not_on_the_tape(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with provider(answer) as port, recording(tmp_path, port, bodies=False) as running:
            assert await ask(running, post(b'{"a":"b"}', extra="Connection: close\r\n"))
            (exchange,) = await running.ended()
            assert exchange.request.body == b""
            assert exchange.body == b"ok"
            payloads = [record.payload for _, record in open_tape(running.path).records()]
            assert not any(isinstance(payload, RequestBodyPiece) for payload in payloads)

    run(scenario())


def test_which_side_of_the_app_a_tap_is_on_stands_on_the_tape(tmp_path: Path) -> None:
    async def scenario() -> None:
        policy = TapPolicy(side=Tap.APP)
        async with provider(answer) as port, recording(tmp_path, port, policy=policy) as running:
            await ask(running, post(extra="Connection: close\r\n"))
            (exchange,) = await running.ended()
            assert exchange.tap is Tap.APP

    run(scenario())


def test_only_so_many_refusals_are_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deltatape.gateway.recorder.MAX_NOTED", 2)

    async def scenario() -> None:
        async with recording(tmp_path, "http://127.0.0.1:9") as running:
            for _ in range(4):
                running.recorder.refused(Refusal(403, "x", "no"))
            assert running.recorder.counts.refused == 4
        text = (tmp_path / "test.tape").read_text()
        assert text.count("a request was refused with 403 x") == 2

    run(scenario())


def test_a_connection_of_its_own_is_counted_on_each_tape(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with (
            provider(answer) as port,
            recording(tmp_path, f"up=http://127.0.0.1:{port}") as running,
        ):
            (await connect(running.port)).close()
            await ask(running, post(target="/s/n/up/x", extra="Connection: close\r\n"))
            await eventually(lambda: len(running.seen.exchanges) == 1, "an exchange")
        text = (tmp_path / "n.tape").read_text()
        assert '"client",{"connection":2,"state":"opened"}' in text
        assert '"client",{"connection":2,"state":"closed"}' in text
        assert '"connection":1' not in text

    run(scenario())


def test_ipv6_serves_as_well(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with (
            provider(echo_target) as port,
            recording(tmp_path, port, at=Address("::1", 0)) as running,
        ):
            reader, writer = await asyncio.open_connection("::1", running.port)
            writer.write(post(target="/v1/x").replace(b"127.0.0.1", b"[::1]:%d" % running.port))
            assert (await reader.readuntil(b"/v1/x")).startswith(b"HTTP/1.1 200 OK")
            writer.close()

    run(scenario())


# The recorder's side of an exchange: its times, and the guard around it.


HEAD = ParsedResponseHead(
    status=200,
    reason=b"OK",
    http="1.1",
    fields=((b"Content-Type", b"text/event-stream"),),
    framing=Framing.CHUNKED,
    length=0,
    keep_alive=True,
    raw=b"",
)

STEPS: dict[str, Callable[[ExchangeTaping], None]] = {
    "request": lambda taping: taping.request(
        method="POST", target=b"/x", upstream="http://a", http="1.1", headers=((b"Host", b"a"),)
    ),
    "request-body": lambda taping: taping.request_body(b"{}"),
    "request-end": lambda taping: taping.request_end(),
    "sent": lambda taping: taping.sent(connect_ns=1, tls_ns=2, reused=False),
    "informational": lambda taping: taping.informational(HEAD),
    "response": lambda taping: taping.response(HEAD),
    "read": lambda taping: taping.read(b"data", (4,)),
    "trailers": lambda taping: taping.trailers(((b"X-T", b"1"),)),
    "delivered": lambda taping: taping.delivered(4),
    "idle": lambda taping: taping.watch(0),
    "note": lambda taping: taping.note("odd"),
    "end": lambda taping: taping.end(EndReason.COMPLETE, "detail"),
}
"""By the code of its record, each thing that is taped."""


class Ticking:
    """A clock that moves by one with each look."""

    def __init__(self) -> None:
        self.ns = -1

    def now_ns(self) -> int:
        self.ns += 1
        return self.ns

    def wall_ns(self) -> int:
        return 0


def test_a_deleted_tape_is_replaced_by_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "IDLE_NS", 1_000_000)
    monkeypatch.setattr(tape_file, "_CHECK_NS", 0)

    async def scenario() -> None:
        async with recording(tmp_path) as running:
            shutil.rmtree(tmp_path)
            await eventually(lambda: len(running.seen.alarms) == 2, "a new tape")
            assert tape_file.GONE in running.seen.alarms[0]
            assert running.seen.alarms[1] == f"a new tape has begun: {tmp_path / 'test.tape'}"
            assert running.path.exists()

    run(scenario())


class Full:
    """A tape that refuses every line."""

    def put(self, exchange: int, line: bytes) -> None:
        raise OSError(f"no room for {len(line)} bytes of {exchange}")


@pytest.fixture
def tape(tmp_path: Path) -> Iterator[OpenTape]:
    """A tape on a ticking clock."""
    writer = TapeWriter.create(
        tmp_path, "x", clock=Ticking(), tool="test", source=Source.GATEWAY, alarm=print
    )
    yield OpenTape(None, writer, TapeTap(writer.put, MASKER), exchanges=1)
    writer.close()


def taping(
    tape: OpenTape, put: Callable[[int, bytes], None], alarms: list[str], *, bodies: bool = True
) -> ExchangeTaping:
    return ExchangeTaping(
        7, "ID", tape, ExchangeTap(1, put, MASKER), alarms.append, number=1, bodies=bodies
    )


def test_each_step_is_one_record_with_the_time_of_the_recorder(tape: OpenTape) -> None:
    lines, alarms = Lines(), list[str]()
    exchange = taping(tape, lines.put, alarms)
    for step in STEPS.values():
        exchange.arrived()
        step(exchange)
    records = [decode_record(line) for line in lines.all]
    assert [line.split(b'"')[1].decode() for line in lines.all] == list(STEPS)
    times = [record.t_ns for record in records]
    assert times == sorted(set(times))
    assert alarms == []


def test_what_arrived_has_the_time_before_it_went_on_to_the_client(tape: OpenTape) -> None:
    lines = Lines()
    exchange = taping(tape, lines.put, [])
    exchange.arrived()
    begun_ns = tape.writer.now_ns() - 1
    for code in ("response", "read", "trailers"):
        tape.writer.now_ns()  # the client takes its time
        STEPS[code](exchange)
    exchange.complete()
    records = [decode_record(line) for line in lines.all]
    assert [line.split(b'"')[1].decode() for line in lines.all][-1] == "end"
    assert {record.t_ns for record in records} == {begun_ns}


def test_watching_is_no_sign_of_life(tape: OpenTape) -> None:
    lines = Lines()
    exchange = taping(tape, lines.put, [])
    STEPS["request"](exchange)
    for _ in range(3):
        exchange.watch(3)  # each look at the clock is a tick
    exchange.arrived()
    STEPS["read"](exchange)
    exchange.watch(3)
    codes = [line.split(b'"')[1].decode() for line in lines.all]
    assert codes == ["request", "idle", "read"]


def test_a_body_that_is_not_wanted_is_counted(tape: OpenTape) -> None:
    lines = Lines()
    exchange = taping(tape, lines.put, [], bodies=False)
    for code in ("request", "request-body", "request-body", "request-end"):
        STEPS[code](exchange)
    codes = [line.split(b'"')[1].decode() for line in lines.all]
    assert codes == ["request", "note", "request-end"]
    assert b"the request's body, 4 bytes, was left out on demand" in lines.all[1]


@pytest.mark.parametrize("code", STEPS)
def test_a_failure_is_told_once_and_ends_the_taping_of_its_exchange(
    tape: OpenTape, code: str
) -> None:
    alarms: list[str] = []
    exchange = taping(tape, Full().put, alarms)
    STEPS[code](exchange)
    assert len(alarms) == 1
    assert alarms[0].startswith("exchange 1 is taped no further: OSError('no room for ")
    for step in STEPS.values():
        step(exchange)
    assert len(alarms) == 1
