"""The rows of exchanges: what each says, and how they change as a tape goes on."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest

from deltatape.diagnose.check_tape import check_exchanges
from deltatape.model.exchange import EndReason, Exchange
from deltatape.model.exchange_row import ExchangeRow, Mark
from deltatape.model.finding import Blame, Confidence, Severity
from deltatape.model.rule_settings import DEFAULTS
from deltatape.model.tape_summary import LogEntry, LogStream
from deltatape.model.token_usage import TokenCount
from deltatape.store.reader import open_tape
from deltatape.why.exchange_index import ExchangeIndexer, index_rows
from deltatape.why.explain import explain
from helpers.chat import FINISH, calls, entry
from helpers.exchanges import (
    CALL_MESSAGE,
    CALL_REPLY,
    FINISH_TEXT,
    TEXT,
    TEXT_REPLY,
    USER,
    asks,
    assistant,
    call,
    conversation,
    pasted,
    result,
    timed,
    user,
)
from helpers.incidents import BROKEN, CUT, EMPTY, FIXED, STALL
from helpers.taped import MS, taped
from helpers.watched import CALLS, watched

RECORDINGS = Path(__file__).resolve().parents[2] / "recordings"
ANSWER = (asks(USER, CALL_MESSAGE, result("c1")), TEXT_REPLY)
LOST = (asks(USER, assistant(text="ok"), result("c1")), TEXT_REPLY)


def rows_of(exchanges: Iterable[Exchange], logs: Iterable[LogEntry] = ()) -> list[ExchangeRow]:
    latest = {row.exchange: row for row in index_rows(exchanges, DEFAULTS, logs)}
    return [latest[number] for number in sorted(latest)]


def of(*exchanges: tuple[dict[str, object], Sequence[object]]) -> list[ExchangeRow]:
    return rows_of(conversation(*exchanges))


def tapes() -> list[Path]:
    """A third of the recordings: all of them take half a minute."""
    found = RECORDINGS.rglob("*.tape")
    return sorted(path for path in found if not path.name.startswith("refuse-"))[::3]


def checked(exchanges: Iterable[Exchange], logs: Iterable[LogEntry]) -> list[str]:
    report = check_exchanges("x.tape", exchanges, DEFAULTS, None, logs, excerpts=False)
    return sorted({each.finding.code for each in report.reported})


def test_a_row_says_what_tells_an_exchange_apart() -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 61, "completion_tokens": 51}}
    exchange = timed((0.5, TEXT), (0.6, FINISH_TEXT), (0.7, usage), request=asks(USER), end_s=0.9)
    (row,) = rows_of([replace(exchange, number=7)])
    assert (row.tape, row.exchange, row.thread) == ("x.tape", 7, 7)
    assert (row.at, row.t_ns) == ("2026-11-21T20:36:01.000Z", 0)
    assert (row.provider, row.model, row.dialect) == ("openai", "m", "openai-chat")
    assert (row.method, row.target, row.status) == ("POST", "/v1/chat/completions", 200)
    assert (row.duration_ns, row.first_event_ns) == (900 * MS, 500 * MS)
    assert row.tokens == TokenCount(input=61, output=51)
    assert (row.finish, row.ending, row.open) == ("stop", EndReason.COMPLETE, False)
    assert (row.calls, row.before, row.marks) == (0, None, ())


def test_what_was_not_recorded_is_unknown() -> None:
    (row,) = rows_of([replace(pasted(TEXT, FINISH_TEXT), recorded_at="2026-11-21T20:36:01Z")])
    assert (row.at, row.t_ns, row.duration_ns, row.first_event_ns) == (None, None, None, None)
    assert (row.ending, row.model, row.tokens) == (None, None, None)
    (row,) = rows_of([replace(taped([], framing=None, reason=None), recorded_at="yesterday")])
    assert (row.status, row.at, row.first_event_ns) == (None, None, None)


@pytest.mark.parametrize(
    ("upstream", "provider"),
    [
        ("https://api.anthropic.com/v1", "anthropic"),
        ("http://127.0.0.1:8000", "127.0.0.1"),
        ("", None),
        ("http://[", None),
    ],
)
def test_the_provider_is_told_by_the_host(upstream: str, provider: str | None) -> None:
    (row,) = rows_of([taped(upstream=upstream)])
    assert row.provider == provider


def test_long_names_are_cut_and_their_secrets_hidden() -> None:
    secret = b"sk-" + b"aB3dE5fG7hJ9kL1m" * 3
    target = b"/" + b"x" * 280 + b"?key=" + secret
    (row,) = rows_of([taped(target=target)])
    assert len(row.target) <= 300
    assert "aB3d" not in row.target
    (row,) = of((asks(USER, model="m" * 5000), TEXT_REPLY))
    assert row.model == "m" * 300


def test_a_request_goes_on_from_the_reply_that_it_repeats() -> None:
    first, second, other = of((asks(USER), CALL_REPLY), ANSWER, (asks(user("Else")), TEXT_REPLY))
    assert (first.before, first.thread, first.calls) == (None, 1, 1)
    assert (second.before, second.thread) == (1, 1)
    assert (other.before, other.thread) == (None, 3)
    assert [row.findings for row in (first, second, other)] == [0, 0, 0]


def test_a_request_that_leaves_the_reply_out_goes_on_from_its_question() -> None:
    _, second = of((asks(USER), CALL_REPLY), (asks(USER, user("More?")), TEXT_REPLY))
    assert (second.before, second.thread) == (1, 1)


def test_a_request_with_an_edited_history_goes_on_from_where_it_was_edited() -> None:
    said = assistant(text="Hello")
    rows = of(
        (asks(USER), TEXT_REPLY),
        (asks(USER, said, user("One")), TEXT_REPLY),
        (asks(USER, said, user("Two")), TEXT_REPLY),
    )
    assert [(row.before, row.thread) for row in rows] == [(None, 1), (1, 1), (1, 1)]


def test_a_lost_call_counts_for_the_reply_that_delivered_it() -> None:
    first, second = of((asks(USER), CALL_REPLY), LOST)
    assert first.codes == ("C001", "C004")
    assert first.marks == (Mark.LOST_CALL,)
    assert first.worst is not None
    assert (first.worst.code, first.worst.blame) == ("C004", Blame.APP)
    assert (first.worst.severity, first.worst.confidence) == (Severity.ERROR, Confidence.PROVEN)
    assert second.marks == (Mark.ORPHAN_RESULT,)
    assert (second.findings, second.codes, second.worst) == (0, (), None)
    # Its request shows them, but they are not counted twice.
    assert [(each.finding.code, each.exchange) for each in second.shows] == [
        ("C001", 1),
        ("C004", 1),
    ]
    assert second.shows[1].finding == first.worst
    assert first.shows == ()


def test_requests_after_a_failure_are_retries() -> None:
    failed, again = conversation((asks(USER), []), (asks(USER), TEXT_REPLY))
    assert failed.response
    first, second = rows_of([replace(failed, response=replace(failed.response, status=500)), again])
    assert (second.before, second.thread, second.marks) == (1, 1, (Mark.RETRY,))
    assert first.marks == ()


def test_the_first_calls_are_named_and_shortened() -> None:
    long = [call(arguments=f'{{"q":"{"x" * 99}"}}', index=at) for at in range(4)]
    (row,) = rows_of([timed((0.5, calls(entry(0, "c0", arguments=""))), (0.6, FINISH))])
    assert row.called == ("(no name)",)
    (row,) = of((asks(USER), [*chain.from_iterable(long), FINISH]))
    assert row.calls == 4
    assert [each[:10] for each in row.called] == ['get {"q":"'] * 3
    assert all(len(each) == 80 for each in row.called)


def test_calls_that_come_again_are_loops() -> None:
    history = [USER]
    exchanges = []
    for _ in range(4):
        exchanges.append((asks(*history), CALL_REPLY))
        history += [CALL_MESSAGE, result("c1")]
    rows = of(*exchanges)
    looping = [row.exchange for row in rows if Mark.LOOP in row.marks]
    assert looping
    assert all("C006" in rows[number - 1].codes for number in looping)
    assert [row.thread for row in rows] == [1] * 4


def test_what_nothing_answers_is_known_at_the_end() -> None:
    exchanges = watched(conversation(CALLS), until_s=100)
    (row,) = rows_of(exchanges)
    assert (row.codes, row.marks) == (("D003",), (Mark.UNANSWERED,))
    indexer = ExchangeIndexer(live=True)
    (first,) = indexer.add(replace(exchanges[0], watch=None))
    assert first.codes == ()
    assert indexer.end(watch=exchanges[0].watch) == [row]
    assert indexer.end(watch=exchanges[0].watch) == []


def test_dead_zones_are_counted_and_measured() -> None:
    stalled = timed((0.5, TEXT), (40.5, TEXT), (70.5, FINISH_TEXT), end_s=71)
    (row,) = rows_of([stalled])
    assert row.codes == ("D001",)
    assert (row.dead_zones, row.dead_ns) == (2, 70_000 * MS)


def test_an_open_exchange_is_shown_as_far_as_it_has_come() -> None:
    exchange = replace(taped([(10, b"data: 1\n\n")], reason=None), open=True)
    indexer = ExchangeIndexer(live=True)
    row = indexer.running(exchange)
    assert (row.open, row.ending, row.duration_ns) == (True, None, None)
    assert indexer.end() == []


def test_rows_come_at_once_and_change_as_more_is_known() -> None:
    one, two = conversation((asks(USER), CALL_REPLY), LOST)
    indexer = ExchangeIndexer(live=True)
    (first,) = indexer.add(one)
    assert (first.exchange, first.codes) == (1, ())
    second, changed = indexer.add(two)
    assert (second.exchange, second.before) == (2, 1)
    assert (changed.exchange, changed.codes) == (1, ("C001", "C004"))
    assert indexer.end() == []


def test_a_failure_that_was_retried_is_no_error_any_more() -> None:
    tape = open_tape(RECORDINGS / "apps" / "retry-after-500.tape")
    failed, *_, answered = rows_of(tape)
    assert failed.worst is not None
    assert (failed.worst.code, failed.worst.severity) == ("S005", Severity.INFO)
    assert answered.before is not None


def test_exchanges_without_the_others_are_judged_for_themselves() -> None:
    rows = list(index_rows(conversation((asks(USER), CALL_REPLY), LOST), alone=True))
    assert [(row.exchange, row.thread, row.codes) for row in rows] == [(1, 1, ()), (2, 2, ())]


def test_what_the_application_printed_counts() -> None:
    exchanges = conversation((asks(USER), CALL_REPLY))
    printed = LogEntry(
        t_ns=1000 * MS,
        stream=LogStream.STDERR,
        line=b"json.decoder.JSONDecodeError: Unterminated string starting at: line 1 column 7",
    )
    assert [row.codes for row in rows_of(exchanges)] == [()]
    (row,) = rows_of(exchanges, [printed])
    assert row.codes == ("C009",)
    live = ExchangeIndexer(live=True)
    assert [row.codes for row in live.add(exchanges[0])] == [()]
    assert live.end([printed]) == [row]


@pytest.mark.slow
@pytest.mark.parametrize("incident", [BROKEN, CUT, EMPTY, FIXED, STALL])
def test_the_worst_finding_is_the_one_on_which_the_verdict_rests(incident: Path) -> None:
    tape = open_tape(incident)
    exchanges = sorted(tape, key=lambda exchange: exchange.number)
    for row in rows_of(tape, tape.logs):
        code = explain(exchanges, row.exchange).verdict.code
        if row.findings:
            assert row.worst is not None
            assert row.worst.code == code


@pytest.mark.slow
def test_all_findings_of_a_tape_are_in_its_rows_however_they_come() -> None:
    for path in tapes():
        tape = open_tape(path)
        exchanges, logs = list(tape), tape.logs
        rows = rows_of(exchanges, logs)
        assert sorted({code for row in rows for code in row.codes}) == checked(exchanges, logs)
        live = ExchangeIndexer(live=True, logs=logs)
        latest = {row.exchange: row for exchange in exchanges for row in live.add(exchange)}
        latest |= {row.exchange: row for row in live.end()}
        assert [latest[number] for number in sorted(latest)] == rows, path


@pytest.mark.slow
@pytest.mark.parametrize("live", [False, True])
def test_a_long_tape_is_held_in_parts_and_each_row_comes(live: bool) -> None:  # noqa: FBT001
    near = 4
    history = [USER]
    exchanges = []
    for place in range(40):
        exchanges.append((asks(*history), [*call(arguments=f'{{"a":{place}}}'), FINISH_TEXT]))
        history += [assistant(("c1", "get", f'{{"a":{place}}}')), result("c1")]
    indexer = ExchangeIndexer(live=live, near=near)
    latest: dict[int, ExchangeRow] = {}
    for exchange in conversation(*exchanges):
        for row in indexer.add(exchange):
            latest[row.exchange] = row
        assert len(indexer._entries) <= 4 * near
    latest |= {row.exchange: row for row in indexer.end()}
    assert sorted(latest) == [*range(1, 41)]
    assert {row.thread for row in latest.values()} == {1}
    assert [latest[number].before for number in range(2, 41)] == [*range(1, 40)]


def test_a_finding_about_a_reply_that_is_held_no_more_counts_for_its_request() -> None:
    indexer = ExchangeIndexer(live=True, near=1)
    exchanges = conversation(
        (asks(USER), CALL_REPLY), *[(asks(user(str(n))), TEXT_REPLY) for n in range(6)], LOST
    )
    rows = {row.exchange: row for exchange in exchanges for row in indexer.add(exchange)}
    assert rows[1].codes == ()
    assert rows[8].codes[:1] == ("C001",)
