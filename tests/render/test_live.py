"""What a recorder says of an exchange as it ends."""

from dataclasses import replace

from deltatape.diagnose.check import check_analysis
from deltatape.diagnose.rebuild import analyse
from deltatape.model.finding import Severity
from deltatape.render.live import live_lines
from helpers.incidents import EMPTY, exchange


def test_an_exchange_is_a_line_and_each_finding_is_one_more_the_worst_first() -> None:
    analysis = analyse(exchange(EMPTY, 1))
    error = check_analysis(analysis)[0]
    warning = replace(error, severity=Severity.WARNING, code="W999", message="x" * 500)
    lines = live_lines(analysis, (warning, error), "test_one")
    assert lines[0].startswith("test_one#1 POST /v1/chat/completions 200 ")
    assert lines[1].startswith("    error T001 empty-arguments (upstream, proven): call 0 ")
    assert lines[2].startswith("    warning W999 empty-arguments (")
    assert len(lines[2]) < 250


def test_nothing_found_is_one_line() -> None:
    analysis = analyse(exchange(EMPTY, 1))
    (line,) = live_lines(analysis, ())
    assert line.startswith("#1 POST ")
    assert line.endswith("; no findings")
