"""Requests that come before the answer to an earlier one."""

import asyncio

from helpers.serving import CHUNKED, REFUSED, Service, answered, echo, serving, silent
from helpers.upstream import chunk, eventually, post, run


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
            assert got == answered(b"/a") + answered(b"/c") + answered(b"/d")
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
            assert await client.rest() == (answered(b"/a=1") + REFUSED, "eof")

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
            assert first.whole
            assert len(first.connection._buffer) < 1_000_000
            first.answer(b"first")
            await eventually(lambda: len(running.services) == 2, "the second request")
            await eventually(lambda: running.services[1].whole, "its end")
            assert len(running.services[1].body) == size

    run(scenario())
