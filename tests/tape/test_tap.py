import hashlib
import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltatape.model.exchange import EndReason, Framing
from deltatape.tape.payload import ClientState
from deltatape.tape.tap import PIECE, ExchangeTap, TapeTap
from helpers.tapes import MASKER, Lines, start, taped


def records(lines: Lines) -> list[tuple[int, int, str, object]]:
    return [tuple(json.loads(line)) for line in lines.all]


def test_an_exchange_is_taped_as_it_happens() -> None:
    def feed(tap: ExchangeTap) -> None:
        start(tap)
        tap.read(60, b"data: 1\n\n", (9,))
        tap.end(70, EndReason.COMPLETE)

    codes = [record[2] for record in records(taped(feed))]
    assert codes == [
        "request",
        "request-body",
        "request-end",
        "sent",
        "informational",
        "response",
        "read",
        "end",
    ]


def test_credentials_and_userinfo_reach_no_line() -> None:
    def feed(tap: ExchangeTap) -> None:
        tap.request(
            0,
            id="A",
            method="GET",
            target=b"/?key=fake-1&access_token=fake-2",
            upstream="https://user:fake-3@api.example.com",
            http="1.1",
            headers=((b"X-Api-Key", b"fake-4"),),
        )
        head = ((b"Set-Cookie", b"fake-5"),)
        tap.informational(1, status=103, reason=b"", http="1.1", headers=head)
        tap.response(2, status=200, reason=b"", http="1.1", framing=Framing.CHUNKED, headers=head)
        tap.trailers(3, ((b"X-Auth-Token", b"fake-6"),))

    lines = taped(feed)
    assert "fake" not in lines.text
    assert lines.text.count('{"masked":{"length":6,') == 6


def test_a_read_that_is_exactly_one_chunk_needs_no_boundaries() -> None:
    assert taped(lambda tap: tap.read(1, b"abc", (3,))).text == '[1,1,"read","abc"]\n'


def test_a_body_that_is_not_chunked_has_no_boundaries() -> None:
    assert taped(lambda tap: tap.read(1, b"abc", None)).text == '[1,1,"read","abc"]\n'


@pytest.mark.parametrize("ends", [(), (1,), (0, 3), (1, 3), (0,)])
def test_boundaries_come_before_their_read(ends: tuple[int, ...]) -> None:
    text = taped(lambda tap: tap.read(1, b"abc", ends)).text
    told = json.dumps(list(ends), separators=(",", ":"))
    assert text == f'[1,1,"boundaries",{told}]\n[1,1,"read","abc"]\n'


def test_the_end_tells_bytes_and_hash_of_the_body() -> None:
    def feed(tap: ExchangeTap) -> None:
        tap.read(1, b"abc", None)
        tap.read(2, b"\xff", None)
        tap.end(3, EndReason.TIMEOUT, detail="no answer", recorder={"lost_records": 2})

    assert records(taped(feed))[-1] == (
        3,
        1,
        "end",
        {
            "reason": "timeout",
            "bytes": 4,
            "sha256": hashlib.sha256(b"abc\xff").hexdigest(),
            "detail": "no answer",
            "recorder": {"lost_records": 2},
        },
    )


def test_nothing_is_written_after_the_end() -> None:
    def feed(tap: ExchangeTap) -> None:
        tap.end(1, EndReason.CLIENT_CLOSED)
        tap.read(2, b"late", None)
        tap.request_body(2, b"late")
        tap.idle(2)
        tap.end(3, EndReason.COMPLETE)

    assert [record[3] for record in records(taped(feed))] == [
        {"reason": "client_closed", "bytes": 0, "sha256": hashlib.sha256().hexdigest()}
    ]


def test_a_large_request_body_is_split() -> None:
    data = bytes(range(256)) * (2 * PIECE // 256) + b"rest"
    lines = taped(lambda tap: tap.request_body(1, data))
    assert len(lines.all) == 3
    assert max(map(len, lines.all)) < 2 * PIECE


def test_an_empty_piece_of_a_request_body_is_no_record() -> None:
    assert taped(lambda tap: tap.request_body(1, b"")).all == []


@given(
    ends=st.lists(st.integers(1, PIECE), min_size=1, max_size=6).map(
        lambda sizes: [sum(sizes[: n + 1]) for n in range(len(sizes))]
    ),
    late=st.booleans(),
)
@settings(max_examples=20, deadline=None)
def test_a_read_beyond_the_limit_is_split_and_keeps_its_boundaries(
    ends: list[int], *, late: bool
) -> None:
    size = max(ends[-1], PIECE + 1)
    told = (0, *ends) if late else tuple(ends)
    found = records(taped(lambda tap: tap.read(1, b"x" * size, told)))
    at, boundaries, seen = 0, None, []
    for _, _, code, payload in found:
        if code == "boundaries":
            boundaries = payload
        else:
            assert isinstance(payload, str)
            here = [len(payload)] if boundaries is None else boundaries
            assert isinstance(here, list)
            seen += [at + end for end in here]
            at, boundaries = at + len(payload), None
    assert at == size
    assert tuple(seen) == told
    assert all(low < high for low, high in pairwise(seen))


def test_a_long_read_of_a_body_that_is_not_chunked_has_no_boundaries() -> None:
    found = records(taped(lambda tap: tap.read(1, b"x" * (PIECE + 1), None)))
    assert [code for _, _, code, _ in found] == ["read", "read"]


def test_the_tape_itself_is_exchange_zero() -> None:
    lines = Lines()
    tap = TapeTap(lines.put)
    tap.client(1, connection=3, state=ClientState.OPENED)
    tap.note(2, "hello")
    tap.stop(3, "interrupted", None)
    assert lines.text == (
        '[1,0,"client",{"connection":3,"state":"opened"}]\n'
        '[2,0,"note",{"text":"hello"}]\n'
        '[3,0,"stop",{"reason":"interrupted"}]\n'
    )


def test_a_tap_keeps_no_bytes() -> None:
    lines = Lines()
    tap = ExchangeTap(1, lines.put, MASKER)
    assert not hasattr(tap, "__dict__")
