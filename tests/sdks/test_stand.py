"""The provider on loopback answers by the number in the path, with the tape's bytes and ending."""

from deltatape.model.exchange import EndReason, Exchange
from deltatape.sdks.stand import standing
from helpers.taped import taped
from helpers.upstream import connect, post, run

BODY = b"data: {}\n\n"


def answered(target: str, *exchanges: Exchange) -> tuple[bytes, str]:
    async def scenario() -> tuple[bytes, str]:
        async with standing(exchanges) as stand:
            client = await connect(int(stand.url(0).split(":")[2].partition("/")[0]))
            await client.send(post(target=target, extra="Connection: close\r\n"))
            return await client.rest()

    return run(scenario())


def imported(body: bytes) -> Exchange:
    return Exchange.from_body(body, content_type="text/event-stream", url="http://p.example/v1")


def test_the_number_in_the_path_tells_the_exchange() -> None:
    exchanges = imported(b"data: 0\n\n"), imported(b"data: 1\n\n")
    assert answered("/0/v1/chat/completions", *exchanges)[0].endswith(b"\r\n\r\ndata: 0\n\n")
    assert answered("/1/v1/chat/completions", *exchanges)[0].endswith(b"\r\n\r\ndata: 1\n\n")
    assert answered("/1?alt=sse", *exchanges)[0].endswith(b"\r\n\r\ndata: 1\n\n")


def test_another_path_is_refused_without_a_retry() -> None:
    for target in ("/v1/chat/completions", "/1/v1"):
        head, _, body = answered(target, imported(BODY))[0].partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 404 ")
        assert b"x-should-retry: false" in head
        assert b"no number of an exchange" in body


def test_bytes_that_are_no_request_are_told_so() -> None:
    async def scenario() -> bytes:
        async with standing([imported(BODY)]) as stand:
            client = await connect(int(stand.url(0).split(":")[2].partition("/")[0]))
            await client.send(b"\x00\x01 nonsense\r\n\r\n")
            return (await client.rest())[0]

    assert b"not an HTTP/1 request" in run(scenario())


def test_where_the_tape_ends_unfinished_the_client_sees_a_cut() -> None:
    cut = taped([(0, BODY)], reason=EndReason.CLIENT_CLOSED)
    got, _ = answered("/0", cut)
    assert BODY.strip() in got
    assert not got.endswith(b"0\r\n\r\n")


def test_what_is_playing_is_cut_when_it_closes() -> None:
    async def scenario() -> bytes:
        async with standing([taped([(0, BODY)], reason=EndReason.TIMEOUT)]) as stand:
            client = await connect(int(stand.url(0).split(":")[2].partition("/")[0]))
            await client.send(post(target="/0"))
            got = await client.until(b"data: {}\n\n")
        return got + (await client.rest())[0]

    assert not run(scenario()).endswith(b"0\r\n\r\n")
