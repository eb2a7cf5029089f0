import gc
from collections.abc import Iterator
from dataclasses import replace

import pytest

from deltatape.diagnose.check import check
from deltatape.diagnose.check_tape import check_exchanges, fingerprint, request_identity, shape
from deltatape.diagnose.digest import digest
from deltatape.model.digest import Digest
from deltatape.model.exchange import EndReason, Exchange
from deltatape.model.finding import Severity
from deltatape.model.rule_settings import DEFAULTS
from deltatape.model.tape_summary import LogEntry, LogStream
from deltatape.store.reader import open_tape
from helpers.chat import FINISH, calls, entry
from helpers.exchanges import (
    FINISH_TEXT,
    TEXT,
    USER,
    asks,
    assistant,
    conversation,
    pasted,
    result,
    timed,
    user,
)
from helpers.incidents import BROKEN, EMPTY, FIXED
from helpers.mutated import RECORDINGS
from helpers.watched import watched

APP = ["C002", "C002", "C009", "C009"]


def exchanges(*numbers: int) -> Iterator[Exchange]:
    tape = open_tape(BROKEN)
    return (tape[number] for number in numbers)


def test_findings_come_by_exchange_and_then_by_conversation_whatever_the_order() -> None:
    whole = check_exchanges("x.tape", exchanges(1, 2), DEFAULTS)
    assert [each.finding.code for each in whole.reported] == ["D002", *APP]
    assert whole.exchanges == (1, 2)
    assert check_exchanges("x.tape", exchanges(2, 1), DEFAULTS) == whole


def test_one_exchange_is_reported_alone_but_judged_in_its_conversation() -> None:
    one = check_exchanges("x.tape", exchanges(1, 2), DEFAULTS, only=1)
    assert (one.exchanges, one.reported) == ((1,), ())
    two = check_exchanges("x.tape", exchanges(1, 2), DEFAULTS, only=2)
    assert [each.finding.code for each in two.reported] == ["D002", *APP]


def test_exchanges_without_the_others_of_their_conversation_are_judged_for_themselves() -> None:
    alone = check_exchanges("x.tape", exchanges(1, 2), DEFAULTS, alone=True)
    assert [each.finding.code for each in alone.reported] == ["D002"]
    assert alone.exchanges == (1, 2)


def test_findings_of_the_wire_show_it_and_those_of_conversations_do_not() -> None:
    found = check_exchanges("x.tape", exchanges(1, 2), DEFAULTS).reported
    assert [each.excerpt is not None for each in found] == [True, *[False] * 4]
    assert {each.path for each in found} == {"/v1/chat/completions"}
    assert len({each.fingerprint for each in found}) == 5


def test_what_the_application_printed_is_held_against_the_wire() -> None:
    end = next(exchanges(1)).end
    assert end is not None
    line = LogEntry(t_ns=end.t_ns, stream=LogStream.STDERR, line=b"Unexpected end of JSON input")
    (only,) = check_exchanges("x.tape", exchanges(1), DEFAULTS, logs=[line]).reported
    assert (only.finding.code, only.finding.line) == ("C009", None)
    assert not check_exchanges("x.tape", exchanges(1), DEFAULTS).reported


def test_findings_can_be_left_out_and_notes_added() -> None:
    report = check_exchanges("x.tape", open_tape(EMPTY).exchanges(), DEFAULTS)
    left = report.only(lambda each: each.finding.code == "T001").noted("a note")
    assert [each.finding.code for each in left.reported] == ["T001"]
    assert left.notes == ("a note",)


def test_what_holds_nothing_to_check_is_reported() -> None:
    assert check_exchanges("x", (), DEFAULTS).notes == ("x: no request was recorded",)
    page = Exchange.from_body(b"<html>", content_type="text/html", url="http://127.0.0.1/page")
    assert check_exchanges("x", [page], DEFAULTS).notes == (
        "x: the tape has no readable answer of an LLM provider",
    )
    assert check_exchanges("x", open_tape(FIXED).exchanges(), DEFAULTS).notes == ()


def test_exchanges_that_are_checked_together_are_not_mixed_up() -> None:
    # More than are taken at once, some so large that they are taken alone.
    found = []
    for number in range(1, 101):
        padding = b": " + b" " * (600_000 if number % 40 == 0 else 0) + b"\n"
        body = b'data: {"choices": [{"index": 0, "delta": {"content": "%d"}}]}\n\n' % number
        made = Exchange.from_body(
            padding + body if number % 3 else padding,
            content_type="text/event-stream",
            url=f"https://api.openai.com/v1/chat/completions?{number}",
        )
        found.append(replace(made, number=number))
    together = check_exchanges("x", found, DEFAULTS)
    assert together.exchanges == tuple(range(1, 101))
    for exchange in found:
        alone = check_exchanges("x", [exchange], DEFAULTS).reported
        assert alone == tuple(
            each for each in together.reported if each.finding.exchange == exchange.number
        )


@pytest.mark.slow
def test_nothing_is_left_that_only_the_garbage_collector_frees() -> None:
    # It runs seldom while tapes are checked: until then, memory would grow with every exchange.
    tapes = sorted(RECORDINGS.parent.rglob("*.tape"))
    tapes = [path for path in tapes if path.parent.name != "conformance"]  # damaged on purpose
    tapes = tapes[::4]
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        for path in tapes:
            check_exchanges("x", open_tape(path).exchanges(), DEFAULTS)
        gc.collect()
        left = {type(each) for each in gc.garbage if type(each).__module__.startswith("deltatape")}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert len(tapes) > 100
    assert left == set()


def test_an_error_that_was_answered_when_asked_again_is_a_fact() -> None:
    limit = [{"error": {"message": "Rate limit reached"}}]
    first, second = conversation((asks(USER), limit), (asks(USER), [TEXT, FINISH_TEXT]))
    assert first.response
    refused = replace(first, response=replace(first.response, status=429))
    (found,) = check_exchanges("x.tape", [refused, second], DEFAULTS).reported
    assert (found.finding.code, found.finding.severity) == ("S005", Severity.INFO)
    assert found.finding.message.endswith("; the request was sent again and answered in #2")
    assert not check_exchanges("x.tape", [refused, second], DEFAULTS, only=2).reported
    without_line = replace(refused, request=replace(refused.request, line=None))
    (same,) = check_exchanges("x.tape", [without_line, second], DEFAULTS).reported
    assert same.finding.message == found.finding.message
    (alone,) = check_exchanges("x.tape", [refused], DEFAULTS).reported
    assert alone.finding.severity is Severity.ERROR
    again = replace(refused, number=2, request=second.request, end=second.end)
    found_twice = check_exchanges("x.tape", [refused, again], DEFAULTS).reported
    told = [each.finding for each in found_twice if each.finding.code == "S005"]
    assert [each.severity for each in told] == [Severity.ERROR] * 2


def test_a_client_that_left_is_reported_with_what_the_tape_knows_of_it() -> None:
    exchange = timed((0.1, TEXT), end_s=0.4)
    assert exchange.end
    left = replace(exchange, end=replace(exchange.end, reason=EndReason.CLIENT_CLOSED))
    (found,) = check_exchanges("x.tape", [left], DEFAULTS).reported
    assert (found.finding.code, found.finding.blame) == ("W006", None)


ASK: dict[str, object] = {"role": "user", "content": "What is the weather?"}
OTHER: dict[str, object] = {"role": "user", "content": "What is the time?"}


def bad(*history: object, call_id: str = "call_a1", name: str = "get") -> Exchange:
    asked: dict[str, object] = {"model": "m", "messages": list(history)}
    return pasted(calls(entry(0, call_id, name=name, arguments="[1]")), FINISH, request=asked)


def printed(exchange: Exchange) -> str:
    (finding,) = check(exchange)
    return fingerprint(finding, request_identity(digest(exchange)))


def test_what_differs_from_run_to_run_is_left_out_of_a_message() -> None:
    assert shape("call 0 (get): 'call_a1' becomes 'call_b2' after 1.5 s") == (
        shape("call 3 (get): 'call_c4' becomes 'call_d5' after 27 s")
    )
    assert shape("call 0 (get)") != shape("call 0 (put)")


def test_it_is_the_same_when_it_is_recorded_again() -> None:
    again = replace(bad(ASK, call_id="call_b2"), tape="other.tape", number=7, id="x")
    assert printed(bad(ASK)) == printed(again)


def test_a_fingerprint_differs_by_call_and_by_question() -> None:
    assert len({printed(bad(ASK)), printed(bad(ASK, name="put")), printed(bad(OTHER))}) == 3


def test_a_question_is_another_one_after_its_tools_have_answered() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "get", "arguments": "{}"}}
    said = {"role": "assistant", "content": None, "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "c", "content": "1"}
    later = {"role": "tool", "tool_call_id": "c", "content": "2"}
    assert printed(bad(ASK)) != printed(bad(ASK, said, result))
    assert printed(bad(ASK, said, later)) == printed(bad(ASK, said, result))


def test_a_request_that_is_not_known_has_one_too() -> None:
    assert len(request_identity(digest(pasted(FINISH)))) == 16


# Tapes of more exchanges than are compared with each other.
NEAR = 4


def long_tape(turns: int = 30) -> list[Exchange]:
    """Conversations of two requests each: of every third one the second changes the call."""
    pairs: list[tuple[dict[str, object], list[object]]] = []
    for turn in range(turns):
        asked = user(f"What is number {turn}?")
        delivered = f'{{"number":{turn}}}'
        repeated = "" if turn % 3 == 0 else delivered
        made = calls(entry(0, f"call_{turn}", name="get", arguments=delivered))
        pairs.append((asks(asked), [made, FINISH]))
        said = assistant((f"call_{turn}", "get", repeated))
        told = result(f"call_{turn}", f"It is {turn}.")
        pairs.append((asks(asked, said, told), [TEXT, FINISH_TEXT]))
    return conversation(*pairs)


@pytest.mark.slow
@pytest.mark.parametrize("size", range(2, 61, 2))
def test_a_long_tape_is_checked_part_by_part_with_the_same_findings(size: int) -> None:
    tape = long_tape()[:size]
    whole = check_exchanges("x.tape", tape, DEFAULTS)
    assert [each.finding.exchange for each in whole.reported] == [*range(2, size + 1, 6)]
    assert check_exchanges("x.tape", tape, DEFAULTS, near=NEAR) == whole
    assert check_exchanges("x.tape", tape, DEFAULTS, near=1) == whole
    one = check_exchanges("x.tape", tape, DEFAULTS, only=2, near=NEAR)
    assert (one.exchanges, one.reported) == ((2,), whole.reported[:1])


def test_a_request_is_compared_with_the_exchanges_near_it() -> None:
    first, second, *others = long_tape()
    for between, found in ((0, True), (NEAR, True), (10 * NEAR, False)):
        late = replace(second, number=between + 3)
        apart = [replace(each, number=at) for at, each in enumerate(others[:between], 2)]
        tape = [first, *apart, late, replace(others[-1], number=between + 4)]
        report = check_exchanges("x.tape", tape, DEFAULTS, near=NEAR)
        about = [each for each in report.reported if each.finding.exchange == late.number]
        assert bool(about) is found


@pytest.mark.slow
def test_of_a_long_tape_the_last_exchanges_are_watched_for_unanswered_calls() -> None:
    tape = watched(long_tape(), 10_000)
    for place, reported in ((0, False), (54, True)):
        silent = [each for each in tape if each is not tape[place + 1]]
        numbered = [replace(each, number=at) for at, each in enumerate(silent, 1)]
        report = check_exchanges("x.tape", numbered, DEFAULTS, near=NEAR)
        codes = {each.finding.code for each in report.reported}
        assert ("D003" in codes) is reported
        assert "D003" in {
            each.finding.code for each in check_exchanges("x.tape", numbered, DEFAULTS).reported
        }


@pytest.mark.slow
def test_what_the_application_printed_counts_in_every_part_of_a_long_tape() -> None:
    tape = long_tape()
    logs = [
        LogEntry(t_ns=each.end.t_ns, stream=LogStream.STDERR, line=b"Unexpected end of JSON input")
        for each in tape[::10]
        if each.end
    ]
    whole = check_exchanges("x.tape", tape, DEFAULTS, logs=iter(logs))
    assert [each.finding.code for each in whole.reported].count("C009") == len(logs)
    assert check_exchanges("x.tape", tape, DEFAULTS, logs=iter(logs), near=NEAR) == whole


@pytest.mark.slow
def test_the_exchanges_that_are_held_do_not_grow_with_the_tape() -> None:
    most = 0

    def counted() -> Iterator[Exchange]:
        nonlocal most
        for number, exchange in enumerate(long_tape(100), 1):
            if number % 20 == 0:
                held = sum(isinstance(each, Digest) for each in gc.get_objects())
                most = max(most, held)
            yield exchange

    gc.collect()
    before = sum(isinstance(each, Digest) for each in gc.get_objects())
    check_exchanges("x.tape", counted(), DEFAULTS, near=NEAR)
    assert 0 < most - before <= 4 * NEAR + 16  # which are analysed together
