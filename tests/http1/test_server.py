"""One connection of a server, asked by raw clients."""

import asyncio

import pytest

from deltatape.http1 import server
from deltatape.http1.head import MAX_HEAD_BYTES, http2_refusal
from helpers.serving import CHUNKED, REFUSED, Service, echo, serving, silent
from helpers.upstream import chunk, eventually, ok_response, post, run


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_a_request_is_the_same_however_it_is_cut(size: int) -> None:
    request = CHUNKED + chunk(b"he") + chunk(b"llo") + b"0\r\nX-T: 1\r\n\r\n"

    async def scenario() -> None:
        async with serving(echo) as running:
            client = await running.client()
            for at in range(0, len(request), size):
                await client.send(request[at : at + size])
                await asyncio.sleep(0)
            assert await client.until(b"hello") == ok_response(b"/c=hello")
            assert running.services[0].trailers == ((b"X-T", b"1"),)

    run(scenario())


def test_one_connection_serves_request_after_request() -> None:
    async def scenario() -> None:
        async with serving(echo) as running:
            client = await running.client()
            for body in (b"one", b"", b"three"):
                await client.send(post(body, target="/x"))
                assert await client.until(b"/x=" + body) == ok_response(b"/x=" + body)
            assert len(running.connections) == 1
            assert running.connections[0].idle

    run(scenario())


def test_a_paused_body_waits_and_then_arrives_whole() -> None:
    def pause(service: Service, step: str) -> None:
        if step == "head":
            service.connection.pause_body()

    async def scenario() -> None:
        async with serving(pause) as running:
            client = await running.client()
            client.writer.write(post(b"x" * 5_000_000))
            await eventually(lambda: bool(running.services), "a request")
            await asyncio.sleep(0.2)
            service = running.services[0]
            assert len(service.body) < 1_000_000
            service.connection.resume_body()
            await eventually(lambda: service.complete, "the end of the body")
            assert len(service.body) == 5_000_000

    run(scenario())


@pytest.mark.parametrize("how", ["close", "reset"])
def test_a_client_that_leaves_behind_unread_bytes_is_noticed(how: str) -> None:
    def pause(service: Service, step: str) -> None:
        if step == "head":
            service.connection.pause_body()

    async def scenario() -> None:
        async with serving(pause) as running:
            client = await running.client()
            await client.send(post(b"x" * 1000)[:-1])
            await eventually(lambda: bool(running.services), "a request")
            await client.send(b"y")
            getattr(client, how)()
            await eventually(lambda: bool(running.services[0].lost), "that the client left")
            assert running.closed_count == 1

    run(scenario())


@pytest.mark.parametrize("how", ["close", "reset"])
def test_a_client_that_leaves_in_the_middle_is_told_once_and_how(how: str) -> None:
    async def scenario() -> None:
        async with serving(silent) as running:
            client = await running.client()
            await client.send(post(b"x" * 1000)[:-1])
            await eventually(lambda: bool(running.services), "a request")
            getattr(client, how)()
            await eventually(lambda: bool(running.services[0].lost), "that the client left")
            assert running.services[0].lost == [how == "reset"]

    run(scenario())


def test_nothing_can_be_done_with_a_connection_that_is_gone() -> None:
    async def scenario() -> None:
        async with serving(silent) as running:
            client = await running.client()
            await client.send(post())
            await eventually(lambda: bool(running.services), "a request")
            client.reset()
            await eventually(lambda: running.closed_count == 1, "the end")
            connection = running.services[0].connection
            assert connection.transport is None
            connection.write(b"x")
            connection.pause_body()
            connection.resume_body()
            connection.finish(keep_alive=True)
            connection.finish(keep_alive=False)
            connection.reset()
            connection.fail(b"x")
            assert running.closed_count == 1

    run(scenario())


def test_a_client_that_leaves_in_the_middle_of_a_head_leaves_no_trace() -> None:
    async def scenario() -> None:
        async with serving(silent) as running:
            client = await running.client()
            await client.send(b"POST / HTTP/1.1\r\nHost:")
            client.writer.write_eof()
            assert await client.rest() == (b"", "eof")
            assert running.services == []
            assert running.closed_count == 1

    run(scenario())


def test_an_early_answer_arrives_though_the_client_goes_on_sending() -> None:
    def hasty(service: Service, step: str) -> None:
        if step == "head":
            service.answer(b"too large")

    async def scenario() -> None:
        async with serving(hasty) as running:
            client = await running.client()
            client.writer.write(post(b"x" * 5_000_000))
            assert await client.rest() == (ok_response(b"too large"), "eof")
            assert running.services[0].body == b""
            await client.writer.drain()  # all of it could be sent

    run(scenario())


def test_a_client_that_goes_on_for_ever_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_LINGER_S", 0.1)

    def hasty(service: Service, step: str) -> None:
        if step == "head":
            service.answer(b"no")

    async def scenario() -> None:
        async with serving(hasty) as running:
            client = await running.client()
            await client.send(post(b"x" * 1000)[:-1])
            await client.until(b"no")
            await eventually(lambda: running.closed_count == 1, "the end")

    run(scenario())


def test_a_head_without_end_is_refused() -> None:
    async def scenario() -> None:
        async with serving(silent) as running:
            client = await running.client()
            await client.send(b"GET / HTTP/1.1\r\nX: " + b"x" * (MAX_HEAD_BYTES + 10))
            assert await client.rest() == (REFUSED, "eof")
            assert "no end of the head" in running.problems[0]
            assert running.services == []

    run(scenario())


def test_http2_is_refused_in_its_own_frames() -> None:
    async def scenario() -> None:
        async with serving(silent) as running:
            client = await running.client()
            await client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            assert await client.rest() == (http2_refusal(running.problems[0]), "eof")
            assert "speaks HTTP/1.1 here: switch HTTP/2 off" in running.problems[0]

    run(scenario())


def test_trailers_that_could_change_the_request_end_it() -> None:
    async def scenario() -> None:
        async with serving(silent) as running:
            client = await running.client()
            await client.send(CHUNKED + chunk(b"ok") + b"0\r\nContent-Length: 9\r\n\r\n")
            assert await client.rest() == (REFUSED, "eof")
            assert "may not be a trailer" in running.problems[0]
            assert not running.services[0].complete

    run(scenario())


def test_a_broken_body_ends_the_request_and_is_told() -> None:
    async def scenario() -> None:
        async with serving(silent) as running:
            client = await running.client()
            await client.send(CHUNKED + chunk(b"ok") + b"zz\r\n")
            assert await client.rest() == (REFUSED, "eof")
            assert running.services[0].lost == [False]
            assert "not a chunk size" in running.problems[0]

    run(scenario())


def test_a_broken_body_under_a_running_answer_cuts_it_without_a_word() -> None:
    def early(service: Service, step: str) -> None:
        if step == "head":
            service.connection.write(b"HTTP/1.1 200 OK\r\n\r\nbegun")

    async def scenario() -> None:
        async with serving(early) as running:
            client = await running.client()
            await client.send(CHUNKED)
            await client.until(b"begun")
            await client.send(b"zz\r\n")
            assert await client.rest() == (b"", "reset")
            assert running.services[0].lost == [False]
            assert running.problems == []

    run(scenario())


def test_a_broken_body_after_a_whole_answer_changes_nothing() -> None:
    def hasty(service: Service, step: str) -> None:
        if step == "head":
            service.answer(b"no")

    async def scenario() -> None:
        async with serving(hasty) as running:
            client = await running.client()
            await client.send(CHUNKED + b"zz\r\n")
            assert await client.rest() == (ok_response(b"no"), "eof")
            assert running.problems == []

    run(scenario())


def test_a_client_that_lags_is_told_of_and_that_it_caught_up() -> None:
    async def scenario() -> None:
        async with serving(silent) as running:
            client = await running.client()
            client.writer.transport.pause_reading()  # type: ignore[attr-defined]
            await client.send(post())
            await eventually(lambda: bool(running.services), "a request")
            service = running.services[0]
            for _ in range(32):
                service.connection.write(b"x" * 1_000_000)
            assert service.writable == [False]
            client.writer.transport.resume_reading()  # type: ignore[attr-defined]
            await client.reader.readexactly(32_000_000)
            await eventually(lambda: service.writable == [False, True], "that it is writable")

    run(scenario())


def test_closing_ends_with_fin_after_what_was_written() -> None:
    def part(service: Service, step: str) -> None:
        if step == "end":
            service.connection.write(b"x" * 2_000_000)
            service.connection.close()

    async def scenario() -> None:
        async with serving(part) as running:
            client = await running.client()
            await client.send(post())
            got, how = await client.rest()
            assert (len(got), how) == (2_000_000, "eof")

    run(scenario())


def test_no_request_is_taken_while_a_reset_waits_for_a_slow_client() -> None:
    def cut(service: Service, step: str) -> None:
        if step == "end":
            service.connection.write(b"x" * 8_000_000)
            service.connection.reset()

    async def scenario() -> None:
        async with serving(cut) as running:
            client = await running.client()
            client.writer.transport.pause_reading()  # type: ignore[attr-defined]
            await client.send(post())
            await asyncio.sleep(0.1)
            await client.send(post(target="/second"))
            await asyncio.sleep(0.1)
            client.writer.transport.resume_reading()  # type: ignore[attr-defined]
            await client.rest()
            assert [service.target for service in running.services] == [b"/v1/chat/completions"]

    run(scenario())


def test_a_lagging_client_between_requests_troubles_nobody() -> None:
    def big(service: Service, step: str) -> None:
        if step == "end":
            service.answer(b"x" * 16_000_000)

    async def scenario() -> None:
        async with serving(big) as running:
            client = await running.client()
            client.writer.transport.pause_reading()  # type: ignore[attr-defined]
            await client.send(post())
            await asyncio.sleep(0.1)
            client.writer.transport.resume_reading()  # type: ignore[attr-defined]
            await client.until(b"\r\n\r\n")
            await client.reader.readexactly(16_000_000)
            assert running.services[0].lost == []

    run(scenario())


def test_empty_lines_before_a_request_are_ignored() -> None:
    async def scenario() -> None:
        async with serving(echo) as running:
            client = await running.client()
            await client.send(b"\r\n\r\n\r")
            await client.send(b"\n" + post(b"1") + b"\r\n" + post(b"2"))
            await client.until(b"=2")
            assert len(running.services) == 2

    run(scenario())


# Requests that come before the answer to an earlier one.


def test_pipelined_requests_are_answered_one_after_another() -> None:
    order: list[str] = []

    def later(service: Service, step: str) -> None:
        order.append(f"{service.target.decode()} {step}")
        if step == "end":
            asyncio.get_running_loop().call_later(0.05, service.answer, service.target)

    requests = (
        post(b"1", target="/a"),
        CHUNKED + chunk(b"2") + b"0\r\n\r\n",
        b"GET /d HTTP/1.1\r\nHost: a\r\n\r\n",
    )

    async def scenario() -> None:
        async with serving(later) as running:
            client = await running.client()
            await client.send(b"".join(requests))
            got = await client.until(b"/d")
            assert got == ok_response(b"/a") + ok_response(b"/c") + ok_response(b"/d")
            assert [each for each in order if each.endswith(("head", "end"))] == [
                f"{target} {step}" for target in ("/a", "/c", "/d") for step in ("head", "end")
            ]

    run(scenario())


def test_a_request_that_comes_before_the_answer_waits_for_it() -> None:
    async def scenario() -> None:
        async with serving(silent) as running:
            client = await running.client()
            await client.send(post(b"1"))
            await eventually(lambda: bool(running.services), "a request")
            await client.send(post(b"2"))
            await asyncio.sleep(0.05)
            assert len(running.services) == 1
            running.services[0].answer(b"first")
            await client.until(b"first")
            await eventually(lambda: len(running.services) == 2, "the second request")

    run(scenario())


def test_a_pipelined_request_of_a_client_that_is_gone_is_dropped() -> None:
    def answer_and_go(service: Service, step: str) -> None:
        if step == "end":
            service.answer(b"ok")
            transport = service.connection.transport
            assert transport is not None
            transport.abort()

    async def scenario() -> None:
        async with serving(answer_and_go) as running:
            client = await running.client()
            await client.send(post(b"1") + post(b"2"))
            await eventually(lambda: running.closed_count == 1, "the end")
            assert len(running.services) == 1

    run(scenario())


def test_a_pipelined_request_that_is_none_is_told_after_the_answer() -> None:
    async def scenario() -> None:
        async with serving(echo) as running:
            client = await running.client()
            await client.send(post(b"1", target="/a") + b"garbage\r\n\r\n")
            assert await client.rest() == (ok_response(b"/a=1") + REFUSED, "eof")

    run(scenario())


def test_a_long_pipeline_waits_in_the_kernel_not_in_memory() -> None:
    size = 8_000_000

    async def scenario() -> None:
        async with serving(silent) as running:
            client = await running.client()
            client.writer.write(post(b"1", target="/a"))
            client.writer.write(post(b"x" * size, target="/b"))
            await eventually(lambda: bool(running.services), "a request")
            await asyncio.sleep(0.2)
            first = running.services[0]
            assert first.complete
            assert len(first.connection._buffer) < 1_000_000
            first.answer(b"first")
            await eventually(lambda: len(running.services) == 2, "the second request")
            await eventually(lambda: running.services[1].complete, "its end")
            assert len(running.services[1].body) == size

    run(scenario())
