import pytest

from deltatape.model.exchange import Tap
from deltatape.model.tape_summary import LogStream, TapeSummary
from deltatape.model.websocket import FrameHead, Side
from deltatape.tape.fields import MalformedError
from deltatape.tape.payload import (
    Boundaries,
    EndRecord,
    FrameRecord,
    LogLine,
    MaskedSpans,
    ParsedAs,
    RequestHeadRecord,
    ResponseStart,
    Stop,
    Trailers,
)


@pytest.mark.parametrize("value", [None, {}, [-1], [1.0], [True], ["1"], [2, 1], [2, 2], [2**63]])
def test_boundaries_are_ascending_offsets(value: object) -> None:
    with pytest.raises(MalformedError, match="offsets"):
        Boundaries.from_json(value)


def test_an_ending_without_detail_and_losses_is_short() -> None:
    value = {"reason": "complete", "bytes": 0, "sha256": "e3"}
    ending = EndRecord.from_json(value)
    assert (ending.detail, ending.recorder) == ("", {})
    assert ending.to_json() == value


def test_an_unknown_reason_of_an_ending_is_refused() -> None:
    with pytest.raises(MalformedError, match="one of complete, upstream_closed"):
        EndRecord.from_json({"reason": "bored", "bytes": 0, "sha256": ""})


def test_a_stop_knows_an_exit_code_only_of_a_child() -> None:
    assert Stop.from_json({"reason": "interrupted"}).exit_code is None
    assert Stop.from_json({"reason": "child-exit", "code": -9}).exit_code == -9


@pytest.mark.parametrize(
    "spans",
    [
        None,
        {},
        [7],
        [[0, 1]],
        [[0, 1, "ab12cd34", 2]],
        [[0, 1, "AB12CD34"]],
        [["0", 1, "ab12cd34"]],
        [[-1, 1, "ab12cd34"]],
        [[1, 1, "ab12cd34"]],
        [[0, 2**63, "ab12cd34"]],
        [[0, True, "ab12cd34"]],
        [[0, 2, "ab12cd34"], [1, 3, "ab12cd34"]],
    ],
)
def test_spans_are_ascending_ranges_with_a_hash(spans: object) -> None:
    with pytest.raises(MalformedError, match="start, end"):
        MaskedSpans.from_json({"spans": spans})


def test_a_log_line_may_be_of_both_streams_in_one() -> None:
    log = LogLine.from_json({"stream": "output", "line": "x"})
    assert log.stream is LogStream.BOTH


def test_a_log_line_may_hold_any_bytes() -> None:
    value = {"stream": "stdout", "line": {"b64": "/w=="}}
    log = LogLine.from_json(value)
    assert (log.stream, log.line) == (LogStream.STDOUT, b"\xff")
    assert log.to_json() == value


def test_a_log_line_is_of_a_stream_that_programs_have() -> None:
    with pytest.raises(MalformedError, match="one of stdout, stderr, output"):
        LogLine.from_json({"stream": "stdin", "line": ""})


def test_what_was_read_says_why_it_stopped_only_where_it_was_told() -> None:
    value = {"tool": "t", "dialect": "d", "events": 1, "calls": 0, "form": 1, "sha256": "08"}
    read = ParsedAs.from_json(value)
    assert (read.finish, read.to_json()) == ("", value)
    with pytest.raises(MalformedError, match='"calls"'):
        ParsedAs.from_json({**value, "calls": -1})


REQUEST = {
    "id": "A",
    "method": "POST",
    "target": "/",
    "upstream": "https://host",
    "http": "1.1",
    "headers": [],
}


@pytest.mark.parametrize("key", sorted(REQUEST))
def test_every_part_of_a_request_head_is_required(key: str) -> None:
    with pytest.raises(MalformedError):
        RequestHeadRecord.from_json({name: value for name, value in REQUEST.items() if name != key})


def test_a_reason_phrase_may_hold_any_bytes() -> None:
    value = {
        "status": 200,
        "reason": {"b64": "/w=="},
        "http": "1.0",
        "framing": "close",
        "headers": [["A", ""]],
    }
    head = ResponseStart.from_json(value)
    assert head.reason == b"\xff"
    assert head.to_json() == value


def test_an_unknown_framing_is_refused() -> None:
    with pytest.raises(MalformedError, match="one of chunked, length, close, none"):
        ResponseStart.from_json(
            {"status": 200, "reason": "", "http": "1.1", "framing": "huge", "headers": []}
        )


def test_trailers_are_header_fields() -> None:
    assert Trailers.from_json({"headers": [["a", "b"]]}).headers == ((b"a", b"b"),)


def test_a_request_head_tells_its_tap_only_where_it_is_not_the_provider_side() -> None:
    assert RequestHeadRecord.from_json(REQUEST).tap is Tap.PROVIDER
    assert RequestHeadRecord.from_json(REQUEST | {"tap": "provider"}).to_json() == REQUEST
    before_app = REQUEST | {"tap": "app"}
    assert RequestHeadRecord.from_json(before_app).tap is Tap.APP
    assert RequestHeadRecord.from_json(before_app).to_json() == before_app


def test_a_copied_request_may_tell_how_long_its_tape_was_watched() -> None:
    assert RequestHeadRecord.from_json(REQUEST).watched is None
    for watched, expected in (
        ({"until_ns": 7}, TapeSummary(until_ns=7)),
        ({"until_ns": 7, "reason": "x"}, TapeSummary(until_ns=7, stop="x")),
        ({"until_ns": 7, "reason": "x", "code": 3}, TapeSummary(until_ns=7, stop="x", exit_code=3)),
    ):
        value = REQUEST | {"tap": "app", "watched": watched}
        head = RequestHeadRecord.from_json(value)
        assert (head.watched, head.to_json()) == (expected, value)
    for bad in (None, {}, {"until_ns": -1}, {"until_ns": 1, "reason": 5}):
        with pytest.raises(MalformedError):
            RequestHeadRecord.from_json(REQUEST | {"watched": bad})


def test_an_unknown_tap_is_refused() -> None:
    with pytest.raises(MalformedError, match="one of provider, app"):
        RequestHeadRecord.from_json(REQUEST | {"tap": "moon"})


FRAME = {"side": "client", "opcode": 1, "data": "Hello"}


def test_a_frame_says_only_what_is_unusual() -> None:
    plain = FrameRecord.from_json(FRAME)
    assert (plain.head, plain.data) == (FrameHead(1, 5), b"Hello")
    assert plain.side is Side.CLIENT
    for value in (
        FRAME,
        FRAME | {"data": {"b64": "/w=="}},
        {"side": "server", "raw": True, "data": ""},
        {"side": "server", "opcode": 2, "at": 7, "data": "x"},
        {"side": "client", "opcode": 1, "length": 9, "wide": 8, "more": True, "data": "x"},
        {"side": "client", "opcode": 1, "rsv": 4, "mask": "0a000000", "data": "x", "wire": ""},
        {"side": "client", "opcode": 0, "fin": False, "data": ""},
    ):
        assert FrameRecord.from_json(value).to_json() == value
    assert FrameRecord.from_json(FRAME | {"more": False, "raw": False, "fin": True}) == plain


@pytest.mark.parametrize(
    "changed",
    [
        {"side": "nobody"},
        {"side": None},
        {"opcode": None},
        {"opcode": 16},
        {"opcode": -1},
        {"data": None},
        {"rsv": 8},
        {"mask": "0A000000"},
        {"mask": "00"},
        {"mask": 5},
        {"length": -1},
        {"length": 2**63},
        {"wide": 2, "length": 126},
        {"wide": 8, "length": 65536},
        {"wide": 4},
        {"wire": 5},
        {"at": -1},
        {"more": "yes"},
        {"fin": 1},
        {"raw": 1},
    ],
)
def test_a_frame_is_refused_that_cannot_have_been_sent(changed: dict[str, object]) -> None:
    with pytest.raises(MalformedError):
        FrameRecord.from_json(FRAME | changed)


def test_an_ending_tells_of_the_frames_of_a_socket() -> None:
    frames = {"records": 2, "bytes": 5, "sha256": "e3"}
    value = {"reason": "complete", "bytes": 0, "sha256": "e3", "frames": frames}
    ending = EndRecord.from_json(value)
    assert ending.frames == (2, 5, "e3")
    assert ending.to_json() == value
    for bad in ({}, None, frames | {"records": -1}):
        with pytest.raises(MalformedError):
            EndRecord.from_json(value | {"frames": bad})
