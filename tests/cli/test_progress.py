from pathlib import Path

import pytest

from deltatape.cli.progress import Bar
from helpers.console import called, on_terminal
from helpers.hostile import assert_harmless
from helpers.incidents import CUT, EMPTY, FIXED


def test_on_a_terminal_a_bar_shows_how_far_it_is_and_results_stay_whole(tmp_path: Path) -> None:
    shown = on_terminal("check", CUT, EMPTY, FIXED, folder=tmp_path).stdout.decode()
    assert "tapes" in shown
    assert "0/3" in shown
    for part in ("W006", "T001", "5 errors"):
        assert part in shown


def test_elsewhere_and_for_a_single_tape_there_is_none(tmp_path: Path) -> None:
    assert b"tapes" not in called("check", CUT, EMPTY, folder=tmp_path).stderr
    alone = on_terminal("check", FIXED, folder=tmp_path)
    assert b"tapes" not in alone.stdout
    assert_harmless(alone.stdout)


def test_without_a_terminal_nothing_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    with Bar("tapes", 2) as bar:
        bar.step()
        with bar.aside():
            pass
        bar.step()
    assert capsys.readouterr() == ("", "")
