"""The command line and the tape of a failed cell."""

from dataclasses import replace
from pathlib import Path

import pytest

from deltatape.errors import UsageError
from deltatape.model.exchange import Exchange, Source
from deltatape.store.reader import open_tape
from deltatape.trials.torture_filing import Filing
from helpers.tortured import answers

FILING = Filing(tapes=("x.tape",), options=("--deadline", "2s"), command=("sh", "-c", "echo it's"))


def test_a_line_names_the_cell_and_nothing_more() -> None:
    shell = """-- sh -c 'echo it'"'"'s'"""
    assert FILING.line("crlf", "#2", None) == (
        f"deltatape torture x.tape --only crlf --exchange 2 --deadline 2s {shell}"
    )
    assert FILING.line("random-reads", "all", 7) == (
        f"deltatape torture x.tape --only random-reads --seed 7 --seeds 1 --deadline 2s {shell}"
    )
    assert "--exchange 'x.tape#2' " in FILING.line("crlf", "x.tape#2", None)


def test_a_tape_holds_what_was_played_and_replaces_that_of_an_earlier_run(tmp_path: Path) -> None:
    filing = replace(FILING, folder=tmp_path / "kept")
    filing.keep("crlf-2", answers())
    path = filing.keep("crlf-2", answers())
    assert path == str(tmp_path / "kept" / "crlf-2.tape")
    tape = open_tape(Path(path))
    assert [one.body for one in tape.exchanges()] == [one.body for one in answers()]
    assert tape.header.source is Source.GATEWAY


def test_without_a_folder_no_tape_is_kept() -> None:
    assert FILING.keep("crlf-2", answers()) == ""


def test_what_was_imported_stays_an_import_where_it_got_no_ending(tmp_path: Path) -> None:
    imported = Exchange.from_body(b"data: 1\n\n", content_type="text/event-stream", url="/v1")
    path = replace(FILING, folder=tmp_path).keep("crlf-1", [imported])
    assert open_tape(Path(path)).header.source is Source.IMPORT


def test_a_folder_that_cannot_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"--keep .*/file/crlf-1\.tape: "):
        replace(FILING, folder=tmp_path / "file").keep("crlf-1", answers())
