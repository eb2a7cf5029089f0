"""What a tape tells of itself: how long it was watched, and which clients came and left."""

from pathlib import Path

import pytest

from deltatape.model.tape_summary import ClientChange, TapeSummary
from deltatape.store.reader import open_tape
from deltatape.tape import encode
from deltatape.tape.payload import Idle, Stop
from helpers.tapes import HEADER, whole_tape, write_tape


def test_a_tape_that_ended_was_watched_until_then_and_says_why(tmp_path: Path) -> None:
    tape = open_tape(write_tape(tmp_path, whole_tape()))
    assert tape.watch == TapeSummary(until_ns=160, stop="child-exit", exit_code=0)
    assert {exchange.watch for exchange in tape} == {tape.watch}
    assert tape[2].watch == tape.watch


def test_any_record_shows_that_it_was_watched(tmp_path: Path) -> None:
    stop = encode.payload_record(160, 0, Stop(reason="child-exit", exit_code=0))
    crashed = whole_tape().removesuffix(stop)
    tape = open_tape(write_tape(tmp_path, crashed))
    assert (tape.watch.stop, tape.watch.recording) == (None, False)
    last = encode.payload_record(5_000, 0, Idle())
    longer = open_tape(write_tape(tmp_path, crashed + last, "y.tape"))
    assert longer.watch.until_ns == 5_000
    torn = open_tape(write_tape(tmp_path, crashed + last + b"[9999,0,", "z.tape"))
    assert torn.watch.until_ns == 5_000


@pytest.mark.parametrize("rest", [b"", b"["])
def test_a_tape_without_records_was_not_watched(tmp_path: Path, rest: bytes) -> None:
    tape = open_tape(write_tape(tmp_path, encode.header_line(HEADER) + rest))
    assert tape.watch == TapeSummary(until_ns=0)
    assert tape.clients == ()


def test_clients_are_told_in_order(tmp_path: Path) -> None:
    assert open_tape(write_tape(tmp_path, whole_tape())).clients == (
        ClientChange(t_ns=0, connection=1, opened=True),
        ClientChange(t_ns=150, connection=1, opened=False),
    )
