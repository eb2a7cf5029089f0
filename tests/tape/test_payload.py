import pytest

from deltatape.model.tape_summary import LogStream
from deltatape.tape.fields import MalformedError
from deltatape.tape.payload import Boundaries, EndRecord, LogLine, MaskedSpans, ParsedAs, Stop


@pytest.mark.parametrize("value", [None, {}, [-1], [1.0], [True], ["1"], [2, 1]])
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
