from dataclasses import replace

from deltatape.diagnose.check import check, check_analysis
from deltatape.diagnose.rebuild import analyse
from deltatape.model.exchange import Exchange
from deltatape.model.finding import Severity
from deltatape.render.summary import exchange_line, finding_lines, live_lines
from helpers.chat import FINISH, calls, entry
from helpers.exchanges import FINISH_TEXT, TEXT, call, from_bytes, pasted, timed
from helpers.incidents import EMPTY, exchange


def told(exchange: Exchange) -> str:
    return exchange_line(analyse(exchange), check(exchange))


def test_a_healthy_exchange_in_one_line() -> None:
    chunks = [(1.0, each) for each in (TEXT, *call(), FINISH)]
    assert told(timed(*chunks)) == (
        "#1 POST /v1/chat/completions 200 1.0 s: 5 characters, 1 call (get), finish tool_calls;"
        " no findings"
    )


def test_the_worst_finding_is_named_and_the_others_counted() -> None:
    bad = calls(entry(0, "c1", arguments="[1]"))
    assert told(pasted(bad, FINISH, FINISH_TEXT)).endswith(
        ": 1 call (?), finish stop; error T004 missing-name and 1 more"
    )


def test_errors_and_exchanges_without_response_or_reply() -> None:
    assert ": error no such key; error S005" in told(
        from_bytes(b'{"error":"no such key"}', status=401)
    )
    assert told(timed(framing=None)).startswith(
        "#1 POST /v1/chat/completions no response 5 ms: 0 b"
    )


def test_the_line_has_no_character_that_could_act() -> None:
    line = told(pasted(*call("a\x1b[2J"), {"error": {"message": "\u202e\n"}}))
    assert line.isprintable()


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


def test_a_message_that_is_too_long_is_cut_after_a_word() -> None:
    found = check_analysis(analyse(exchange(EMPTY, 1)))[0]
    (line,) = finding_lines([replace(found, message="word " * 100)])
    assert line.endswith(" word ...")
    (line,) = finding_lines([replace(found, message="x" * 700)])
    assert line.endswith("xxx...")
