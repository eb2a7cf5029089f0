import gzip
import hashlib
import json
import zlib
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltatape.model.exchange import EndReason, Framing
from deltatape.model.tape_summary import LogStream
from deltatape.tape import tap
from deltatape.tape.mask import Masker
from deltatape.tape.payload import ClientState
from deltatape.tape.seen_credentials import SeenCredentials
from deltatape.tape.tap import (
    LONGEST_LINE,
    MOST_DECODED,
    PIECE,
    BodyMasker,
    ExchangeTap,
    HeldPiece,
    Line,
    LogLines,
    MaskingQueue,
    TapePiece,
    TapeTap,
)
from helpers.tapes import Lines, start, taped


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


@pytest.mark.parametrize(
    ("first", "masked"),
    [
        (b"HTTP/1.1 200\nno colon\nSet-Cookie: session=fake-cookie-0123456789", True),
        (b"HTTP/1.1 200\nServer: x\n\nSet-Cookie: session=fake-cookie-0123456789", False),
    ],
)
def test_credentials_in_the_fields_of_a_broken_head_are_masked(
    first: bytes, *, masked: bool
) -> None:
    def feed(tap: ExchangeTap) -> None:
        tap.debris(60, first)
        tap.debris(61, b"later: x\n")

    assert ("fake-cookie" not in taped(feed).text) is masked


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
        assert tap.total == 4
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
@settings(max_examples=20)
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


def test_a_tap_keeps_no_bytes() -> None:
    tap = ExchangeTap(1, Lines().put, Masker(b"k"))
    assert not hasattr(tap, "__dict__")


KEY = b"sk-fake-000000"
HASH = Masker(b"k" * 32).value(KEY).hash


def knowing(feed: Callable[[ExchangeTap], None]) -> list[tuple[int, int, str, object]]:
    """What is on the tape of a recorder that knows `KEY`."""

    def learn_and_feed(tap: ExchangeTap) -> None:
        tap._masker.learn(KEY)
        feed(tap)

    return records(taped(learn_and_feed))


def test_a_credential_in_a_body_is_told_before_its_boundaries() -> None:
    def feed(tap: ExchangeTap) -> None:
        tap.request_body(1, b"a " + KEY)
        tap.read(2, KEY + b"\n", (3,))
        tap.read(3, KEY + b"\n", (15,))

    assert knowing(feed) == [
        (1, 1, "masked", {"spans": [[2, 16, HASH]]}),
        (1, 1, "request-body", "a " + "*" * 14),
        (2, 1, "masked", {"spans": [[0, 14, HASH]]}),
        (2, 1, "boundaries", [3]),
        (2, 1, "read", "*" * 14 + "\n"),
        (3, 1, "masked", {"spans": [[0, 14, HASH]]}),
        (3, 1, "read", "*" * 14 + "\n"),
    ]


def test_a_credential_over_two_reads_is_masked_in_both_and_counted_as_taped() -> None:
    def feed(tap: ExchangeTap) -> None:
        tap.read(1, b"x sk-fake", (9,))
        tap.delivered(2, 9)
        tap.read(3, b"-000000\n", (8,))
        tap.end(4, EndReason.COMPLETE)

    found = knowing(feed)
    assert [record[:3] for record in found] == [
        (1, 1, "masked"),
        (1, 1, "read"),
        (2, 1, "delivered"),
        (3, 1, "masked"),
        (3, 1, "read"),
        (4, 1, "end"),
    ]
    body = b"x *******" + b"*******\n"
    assert found[-1][3] == {
        "reason": "complete",
        "bytes": len(body),
        "sha256": hashlib.sha256(body).hexdigest(),
    }


def test_what_waits_is_handed_on_as_soon_as_it_is_decided() -> None:
    def codes(step: Callable[[ExchangeTap], None]) -> list[str]:
        lines, masker = Lines(), Masker(b"k")
        masker.learn(KEY)
        tap = ExchangeTap(1, lines.put, masker)
        tap.request_body(1, b"x sk-")
        tap.read(2, b"y sk-", None)
        tap.idle(3)
        assert lines.all == []
        step(tap)
        return [record[2] for record in records(lines)]

    assert codes(lambda tap: tap.idle(4)) == []
    assert codes(lambda tap: tap.read(4, b"no\n", None)) == []
    assert codes(lambda tap: tap.request_body(4, b"no\n")) == ["request-body"]
    assert codes(lambda tap: tap.request_end(4)) == ["request-body"]
    assert codes(lambda tap: tap.trailers(4, ())) == []
    assert codes(lambda tap: tap.flush()) == ["request-body", "read", "idle"]
    assert codes(lambda tap: tap.end(4, EndReason.TIMEOUT))[-1] == "end"


def test_trailers_end_the_body() -> None:
    def feed(tap: ExchangeTap) -> None:
        tap.read(1, b"sk-fake-0", None)
        tap.trailers(2, ((b"X-Sum", b"1"),))

    assert [record[2:] for record in knowing(feed)][1] == ("read", "*********")


def test_what_waits_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deltatape.tape.tap.MOST_HELD", 100)
    lines, masker = Lines(), Masker(b"k")
    masker.learn(KEY)
    tap = ExchangeTap(1, lines.put, masker)
    tap.request_body(1, b"x sk-")
    tap.read(2, b"y" * 99 + b"\n", None)
    assert [record[2] for record in records(lines)] == ["masked", "request-body", "read"]
    tap.request_body(3, KEY[3:])
    tap.request_end(4)
    assert "fake" not in lines.text
    tap.request_body(5, KEY[3:] + b"\n")
    assert "fake-000000" in lines.text


def test_credentials_are_masked_wherever_they_come_up_in_heads() -> None:
    def feed(tap: ExchangeTap) -> None:
        head = ((b"X-Debug", b"key " + KEY), (b"X-" + KEY, b"1"), (b"X-Plain", b"2"))
        tap.request(
            0,
            id="A",
            method="GET-sk-fake-000000",
            target=b"/x/" + KEY + b"?a=1&key=fake&b=" + KEY,
            upstream="https://sk-fake-000000.example.com",
            http="1.1",
            headers=((b"Authorization", b"Bearer " + KEY), *head),
        )
        tap.informational(1, status=103, reason=KEY, http="1.1", headers=head)
        tap.response(2, status=200, reason=KEY, http="1.1", framing=Framing.CHUNKED, headers=head)
        tap.trailers(3, head)
        tap.note(4, "with sk-fake-000000")
        tap.end(5, EndReason.REFUSED, detail="no sk-fake-000000")

    lines = taped(feed)
    assert "000000" not in lines.text
    assert lines.text.count('"X-Plain","2"') == 4
    assert '"/x/",{"masked":{"length":14,' in lines.text
    assert '"detail":"no **************"' in lines.text


def test_a_coded_piece_that_grows_too_large_ends_the_search() -> None:
    def feed(tap: ExchangeTap) -> None:
        start(tap)
        coded = ((b"Content-Encoding", b"gzip"),)
        tap.response(50, status=200, reason=b"", http="1.1", framing=Framing.CHUNKED, headers=coded)
        tap.read(60, gzip.compress(bytes(MOST_DECODED + 1)), None)
        tap.read(61, b"more", None)

    assert taped(feed).text.count("credentials from here on are not searched for") == 1


def test_a_compressed_body_is_told_to_be_unmasked() -> None:
    def feed(tap: ExchangeTap) -> None:
        coded = ((b"Content-Encoding", b"gzip"),)
        tap.request(0, id="A", method="POST", target=b"/", upstream="", http="1.1", headers=coded)
        tap.response(1, status=200, reason=b"", http="1.1", framing=Framing.LENGTH, headers=coded)

    def bodiless(tap: ExchangeTap) -> None:
        tap.response(
            1,
            status=304,
            reason=b"",
            http="1.1",
            framing=Framing.NONE,
            headers=((b"Content-Encoding", b"gzip"),),
        )

    assert [record[3] for record in records(taped(feed)) if record[2] == "note"] == [
        {"text": "credentials in the request body are not masked: it is gzip-coded"},
        {"text": "credentials in the response body are not masked: it is gzip-coded"},
    ]
    assert [record[2] for record in records(taped(bodiless))] == ["response"]


CODED = ((b"Content-Encoding", b"gzip"),)


def compressed(*pieces: bytes) -> list[bytes]:
    packer = zlib.compressobj(wbits=31)
    return [packer.compress(piece) + packer.flush(zlib.Z_SYNC_FLUSH) for piece in pieces]


def decoded_in(*pieces: bytes) -> list[object]:
    """What the tape says about the credentials in these pieces of a response."""

    def feed(tap: ExchangeTap) -> None:
        tap.response(1, status=200, reason=b"", http="1.1", framing=Framing.CLOSE, headers=CODED)
        for piece in pieces:
            tap.read(2, piece, None)

    return [payload for _, _, code, payload in knowing(feed) if code == "masked"]


def test_credentials_in_a_compressed_body_are_told_before_the_piece_that_ends_them() -> None:
    half = len(KEY) // 2
    pieces = compressed(b"no", b" a " + KEY[:half], KEY[half:], b" b ", KEY)
    assert decoded_in(*pieces) == [
        {"spans": [], "decoded": [[5, 19, HASH]]},
        {"spans": [], "decoded": [[22, 36, HASH]]},
    ]


def test_the_end_of_a_compressed_body_counts_if_it_may_begin_a_credential() -> None:
    assert decoded_in(*compressed(KEY[:10])) == [{"spans": [], "decoded": [[0, 10, HASH]]}]


def test_what_is_not_in_its_coding_tells_nothing() -> None:
    assert decoded_in(b"no gzip", *compressed(KEY)) == []


def test_credentials_in_a_compressed_request_are_told_too() -> None:
    def feed(tap: ExchangeTap) -> None:
        tap.request(0, id="A", method="POST", target=b"/", upstream="", http="1.1", headers=CODED)
        tap.request_body(1, gzip.compress(KEY))

    told = [payload for _, _, code, payload in knowing(feed) if code == "masked"]
    assert told == [{"spans": [], "decoded": [[0, 14, HASH]]}]


def masker() -> BodyMasker:
    literals = SeenCredentials(lambda credential: credential.decode())
    literals.learn(KEY)
    literals.learn(b"000000/fake")
    return BodyMasker(literals)


def fed(*data: bytes, finish: bool = True) -> list[TapePiece]:
    body = masker()
    pieces = [body.add(one) for one in data]
    if finish:
        body.finish()
        assert not body.waiting
    return pieces


def shown(pieces: list[TapePiece]) -> list[bytes]:
    assert all(piece.decided for piece in pieces)
    return [piece.masked()[0] for piece in pieces]


def test_a_piece_without_the_beginning_of_a_credential_is_decided_at_once() -> None:
    (piece,) = fed(b"data: " + KEY + b"\n", finish=False)
    assert piece.decided
    assert piece.masked() == (b"data: **************\n", ((6, 20, KEY.decode()),))


@pytest.mark.parametrize("cut", range(1, len(KEY)))
def test_a_credential_over_two_pieces_is_masked_in_both(cut: int) -> None:
    first, second = fed(b"a" + KEY[:cut], KEY[cut:] + b"b\n", finish=False)
    assert first.masked() == (b"a" + b"*" * cut, ((1, 1 + cut, KEY.decode()),))
    rest = len(KEY) - cut
    assert second.masked() == (b"*" * rest + b"b\n", ((0, rest, KEY.decode()),))
    assert first.decided
    assert second.decided


def test_a_credential_may_come_byte_by_byte() -> None:
    pieces = fed(*(bytes([byte]) for byte in b"x" + KEY + b"y"))
    assert b"".join(shown(pieces)) == b"x" + b"*" * len(KEY) + b"y"


def test_what_only_begins_like_a_credential_is_decided_when_it_goes_on_otherwise() -> None:
    body = masker()
    first = body.add(b"data: sk-fake-")
    assert not first.decided
    assert body.waiting
    second = body.add(b"1\n")
    assert shown([first, second]) == [b"data: sk-fake-", b"1\n"]
    assert first.masked()[1] == ()


def test_a_piece_in_the_middle_waits_too() -> None:
    body = masker()
    pieces = [body.add(b"sk-"), body.add(b"fake"), body.add(b"-0")]
    assert not any(piece.decided for piece in pieces)
    pieces.append(body.add(b"00000 "))
    assert shown(pieces) == [b"***", b"****", b"**", b"***** "]


def test_a_credential_that_ends_in_the_beginning_of_another_is_masked_with_it() -> None:
    pieces = fed(KEY, b"/fake\n")
    assert shown(pieces) == [b"*" * 14, b"*****\n"]
    assert [piece.masked()[1] for piece in pieces] == [
        ((0, 14, KEY.decode()),),
        ((0, 5, "000000/fake"),),
    ]


@pytest.mark.parametrize("length", range(1, len(KEY)))
def test_a_credential_that_was_cut_is_masked_from_eight_bytes_on(length: int) -> None:
    expected = b"*" * length if length >= 8 else KEY[:length]
    assert shown(fed(b"x ", KEY[:length])) == [b"x ", expected]


def test_giving_up_masks_what_may_be_a_credential_and_the_rest_of_it() -> None:
    body = masker()
    first = body.add(b"x sk-")
    body.give_up()
    assert body.waiting
    assert shown([first]) == [b"x ***"]
    second = body.add(KEY[3:] + b"\n")
    assert shown([second]) == [b"***********\n"]


def test_a_queue_keeps_the_order_and_knows_when_it_is_full(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tap, "MOST_HELD", 10)
    out: list[object] = []
    queue = MaskingQueue(out.append, out.append)
    queue.add(b"first\n")
    assert (out, bool(queue)) == ([b"first\n"], False)
    body = masker()
    waiting = HeldPiece(t_ns=1, middle="", piece=body.add(b"sk-"), chunk_ends=None)
    queue.add(waiting)
    queue.add(b"line 1\n")
    assert (len(out), bool(queue), queue.full) == (1, True, False)
    queue.add(b"2\n")
    assert queue.full
    body.finish()
    queue.release()
    assert out == [b"first\n", waiting, b"line 1\n", b"2\n"]
    assert (bool(queue), queue.full) == (False, False)


def test_the_tape_itself_is_exchange_zero() -> None:
    lines = Lines()
    tap = TapeTap(lines.put)
    tap.client(1, connection=3, state=ClientState.OPENED)
    tap.note(2, "hello")
    tap.idle(3)
    tap.stop(4, "interrupted", None)
    assert lines.text == (
        '[1,0,"client",{"connection":3,"state":"opened"}]\n'
        '[2,0,"note",{"text":"hello"}]\n'
        '[3,0,"idle",{}]\n'
        '[4,0,"stop",{"reason":"interrupted"}]\n'
    )


def test_a_line_of_output_has_the_time_at_which_it_ended() -> None:
    lines = Lines()
    tap = TapeTap(lines.put)
    tap.log(1, LogStream.STDOUT, b"one")
    tap.log(2, LogStream.STDERR, b"\x1b[31merror\xff\nunfi")
    tap.log(3, LogStream.STDOUT, b" line\n")
    tap.log(4, LogStream.STDERR, b"nished")
    tap.log(4, LogStream.BOTH, b"a third\n")
    tap.log_end(5)
    tap.log_end(6)
    assert lines.text == (
        '[2,0,"log",{"stream":"stderr","line":{"b64":"G1szMW1lcnJvcv8="}}]\n'
        '[3,0,"log",{"stream":"stdout","line":"one line"}]\n'
        '[4,0,"log",{"stream":"output","line":"a third"}]\n'
        '[5,0,"log",{"stream":"stderr","line":"unfinished"}]\n'
    )


def test_a_gap_in_output_ends_a_line_and_is_noted() -> None:
    lines = Lines()
    tap = TapeTap(lines.put)
    tap.log(1, LogStream.STDOUT, b"one\ntw")
    tap.log(2, LogStream.STDOUT, b"last\n", 70)
    tap.log(3, LogStream.STDERR, b"", 5)
    assert lines.text == (
        '[1,0,"log",{"stream":"stdout","line":"one"}]\n'
        '[2,0,"log",{"stream":"stdout","line":"tw"}]\n'
        '[2,0,"note",{"text":"70 bytes of stdout were left out here"}]\n'
        '[2,0,"log",{"stream":"stdout","line":"last"}]\n'
        '[3,0,"note",{"text":"5 bytes of stderr were left out here"}]\n'
    )


def test_credentials_are_masked_in_output_and_remarks() -> None:
    lines, masker = Lines(), Masker(b"k")
    masker.learn(b"sk-fake-000000")
    tap = TapeTap(lines.put, masker)
    tap.note(1, "sk-fake-000000?")
    tap.log(2, LogStream.STDOUT, b"x sk-fake-000000\n")
    records = [json.loads(line) for line in lines.all]
    digest = masker.value(b"sk-fake-000000").hash
    assert records == [
        [1, 0, "note", {"text": "**************?"}],
        [2, 0, "masked", {"spans": [[2, 16, digest]]}],
        [2, 0, "log", {"stream": "stdout", "line": "x **************"}],
    ]


def test_a_line_that_did_not_end_is_on_the_tape_before_the_stop() -> None:
    lines = Lines()
    tap = TapeTap(lines.put)
    tap.log(1, LogStream.STDERR, b"unfinished")
    tap.stop(2, "rotated", None)
    assert lines.text == (
        '[2,0,"log",{"stream":"stderr","line":"unfinished"}]\n[2,0,"stop",{"reason":"rotated"}]\n'
    )


def lines(*data: bytes) -> list[Line]:
    literals = SeenCredentials(lambda _: "00000000")
    literals.learn(KEY)
    literals.learn(b"a" * 8)
    found = LogLines(literals)
    return [line for piece in data for line in found.add(piece)] + list(found.end())


def printed(*data: bytes) -> list[bytes]:
    return [line for line, _ in lines(*data)]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ((), []),
        ((b"",), []),
        ((b"\n\n",), [b"", b""]),
        ((b"one\ntw", b"o\n"), [b"one", b"two"]),
        ((b"one\r\n\x1b[31mtwo\x1b[0m",), [b"one\r", b"\x1b[31mtwo\x1b[0m"]),
        ((b"key sk-fa", b"ke-000000!\n"), [b"key **************!"]),
        ((b"key sk-fake-0\nsk-f\n",), [b"key *********", b"sk-f"]),
    ],
)
def test_output_in_any_pieces_is_lines(data: tuple[bytes, ...], expected: list[bytes]) -> None:
    assert printed(*data) == expected


def test_what_was_masked_is_told() -> None:
    assert lines(b"a " + KEY + b"\nb\n") == [
        (b"a " + b"*" * 14, ((2, 16, "00000000"),)),
        (b"b", ()),
    ]


def test_a_long_line_is_several_records() -> None:
    data = b"x" * (2 * LONGEST_LINE + 5) + b"\nshort\n"
    assert [len(line) for line in printed(data)] == [LONGEST_LINE, LONGEST_LINE, 5, 5]
    assert [len(line) for line in printed(b"x" * LONGEST_LINE + b"\n")] == [LONGEST_LINE]


@pytest.mark.parametrize("ahead", range(len(KEY) + 2))
def test_a_long_line_is_not_cut_within_a_credential(ahead: int) -> None:
    before = b"x" * (LONGEST_LINE - ahead)
    first, *rest = lines(before, KEY + b"yyyy", b"y" * 10 + b"\n")
    masked = b"".join((first[0], *(line for line, _ in rest)))
    assert masked == before + b"*" * len(KEY) + b"y" * 14
    assert len(first[0]) <= LONGEST_LINE


def test_a_line_of_nothing_but_credentials_is_cut_and_masked_all_the_same() -> None:
    found = printed(b"a" * (LONGEST_LINE + 20) + b"\n")
    assert b"".join(found) == b"*" * (LONGEST_LINE + 20)


@given(st.lists(st.sampled_from([b"a\n", b"\n", b"sk-fake-", b"000000", b"b", b""]), max_size=20))
def test_the_cutting_of_the_output_changes_nothing(pieces: list[bytes]) -> None:
    assert lines(*pieces) == lines(b"".join(pieces))
