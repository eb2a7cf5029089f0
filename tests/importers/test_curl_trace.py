from collections.abc import Iterator, Sequence

import pytest

from deltatape.errors import UsageError
from deltatape.importers.curl_trace import CurlTraceImporter
from deltatape.model.exchange import Exchange, Framing
from helpers.imported import imported, notes, source

EVENT = b'data: {"choices": [{"index": 0, "delta": {"content": "hi"}}]}\n\n'
DONE = b"data: [DONE]\n\n"
ASKED = b'{"model": "m", "messages": []}'
HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: api.example.com\r\nA: b\r\n\r\n"
CHUNKED = b"Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"


def dump(data: bytes) -> Iterator[str]:
    for at in range(0, len(data), 16):
        part = data[at : at + 16]
        shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
        yield f"{at:04x}: {part.hex(' ') + ' ':48}{shown}"


def step(what: str, data: bytes = b"", at: str = "10:00:00.000000") -> list[str]:
    """What curl writes about sent or received data."""
    mark = "=>" if what.startswith("Send") else "<="
    return [f"{at} {mark} {what}, {len(data)} bytes (0x{len(data):x})", *dump(data)]


def info(text: str) -> list[str]:
    return [f"10:00:00.000000 == Info: {text}"]


def received(*lines: bytes, at: str = "10:00:00.000000") -> list[str]:
    found: list[str] = []
    for line in (*lines, b"\r\n"):
        found += step("Recv header", line, at)
    return found


def trace(*steps: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for lines in steps for line in lines).encode()


ASKING = (step("Send header", HEAD), step("Send data", ASKED, "10:00:00.000001"))
ANSWERED = received(b"HTTP/1.1 200 OK\r\n", CHUNKED, at="10:00:00.100000")


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def one(*steps: Sequence[str]) -> Exchange:
    (exchange,) = read(*steps)
    return exchange


def read(*steps: Sequence[str]) -> Sequence[Exchange]:
    assert CurlTraceImporter().claims(source(trace(*steps)))
    return CurlTraceImporter().read(source(trace(*steps)))


def test_each_read_of_curl_is_a_read_with_its_time() -> None:
    sent = chunk(EVENT) + chunk(DONE)
    first, rest = sent[:30], sent[30:-4]
    exchange = one(
        info("Trying 127.0.0.1:80..."),
        ["  % Total    % Received"],
        *ASKING,
        ANSWERED,
        step("Recv data", first, "10:00:00.200000"),
        step("Recv data", rest, "10:00:01.000000"),
        step("Recv data", sent[-4:] + b"0\r", "10:00:01.500000"),
        step("Recv data", b"\n\r\n", "10:00:02.000000"),
        info("Connection #0 to host 127.0.0.1 left intact"),
    )
    request, response = exchange.request, exchange.response
    assert (request.upstream, request.path) == ("http://api.example.com", "/v1/chat/completions")
    assert (request.method, request.http, request.body) == ("POST", "1.1", ASKED)
    assert request.headers == ((b"Host", b"api.example.com"), (b"A", b"b"))
    assert (request.t_ns, request.t_end_ns) == (0, 1000)
    assert response is not None
    assert (response.status, response.reason, response.framing) == (200, b"OK", Framing.CHUNKED)
    assert response.t_ns == 100_000_000
    assert exchange.body == EVENT + DONE
    assert [each.t_ns for each in exchange.reads] == [200_000_000, 1_000_000_000, 1_500_000_000]
    ends = [each.boundaries for each in exchange.reads]
    assert ends == [(), (len(EVENT) - 26,), (2,)]
    assert (notes(exchange), exchange.timed) == ([], False)


def test_chunks_that_curl_has_undone_are_reads_as_they_are() -> None:
    exchange = one(*ASKING, ANSWERED, step("Recv data", EVENT), step("Recv data", DONE))
    assert [(each.data, each.boundaries) for each in exchange.reads] == [
        (EVENT, (len(EVENT),)),
        (DONE, (len(DONE),)),
    ]


def test_without_times_and_chunks_it_is_read_alike() -> None:
    lines = [
        line.partition(" ")[2] if line.startswith("10:") else line
        for part in (
            *ASKING,
            received(b"HTTP/2 200 \r\n", b"content-type: text/event-stream\r\n"),
            step("Recv data", EVENT + DONE),
        )
        for line in part
    ]
    exchange = one(lines)
    assert exchange.response is not None
    assert (exchange.response.http, exchange.response.framing) == ("2", Framing.CLOSE)
    assert [(each.t_ns, each.boundaries) for each in exchange.reads] == [(0, None)]


def test_tls_an_absolute_target_and_ids_are_known() -> None:
    hidden = step("Send SSL data", b"\x16\x03")
    head = HEAD.replace(b"/v1", b"http://other.example/v1")
    second = [line.replace(" =>", " [1-0x] =>", 1) for line in step("Send header", head)]
    exchanges = read(hidden, *ASKING, ANSWERED, step("Recv SSL data"), second, ANSWERED)
    assert [each.request.upstream for each in exchanges] == [
        "https://api.example.com",
        "http://other.example",
    ]


def test_each_request_is_an_exchange_and_a_day_may_end_between() -> None:
    second = step("Send header", HEAD, "00:00:00.000000")
    early = step("Send header", HEAD, "23:59:59.000000")
    first, later = read(early, received(b"HTTP/1.1 429 \r\n", at="23:59:59.000001"), second)
    assert (first.request.t_ns, later.request.t_ns) == (0, 1_000_000_000)
    assert first.response is not None
    assert first.response.status == 429
    assert (later.response, notes(later)) == (None, ["curl: no response came"])


def test_the_final_head_counts() -> None:
    interim = received(b"HTTP/1.1 100 Continue\r\n")
    exchange = one(*ASKING, interim, ANSWERED, step("Recv data", EVENT))
    assert exchange.response is not None
    assert exchange.response.status == 200


def test_a_cut_is_told_in_the_words_of_curl() -> None:
    exchange = one(
        *ASKING,
        ANSWERED,
        step("Recv data", chunk(EVENT) + b"40\r\nda"),
        info("transfer closed with outstanding read data remaining"),
        info("Closing connection 0"),
    )
    assert exchange.body == EVENT + b"da"
    assert notes(exchange) == [
        "curl: transfer closed with outstanding read data remaining",
        "curl: the last chunk did not come",
    ]


def test_other_protocols_have_no_exchange() -> None:
    with pytest.raises(UsageError, match="a trace of curl, and has no exchange"):
        imported(trace(info("Connected"), step("Send header", b"USER x\r\n")))
    assert len(read(step("Send header", b"USER x\r\n"), *ASKING, ANSWERED)) == 1


def test_what_trace_ascii_wrote_and_a_torn_trace_are_refused() -> None:
    shown = ["10:00:00.000000 <= Recv data, 10 bytes (0xa)", "0000: data: 1.."]
    for data in (trace(*ASKING, shown), trace(*ASKING)[:-40]):
        with pytest.raises(
            UsageError, match=r"is a trace of curl, but torn in line .* --trace-asc"
        ):
            imported(data)


@pytest.mark.parametrize("data", [b"", b"hello", b"== Information", b"10:00:00 <= Recv data"])
def test_what_is_no_trace_is_not_for_this_importer(data: bytes) -> None:
    assert not CurlTraceImporter().claims(source(data))
