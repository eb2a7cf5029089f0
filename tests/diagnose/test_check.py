from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltatape.clock import SystemClock
from deltatape.diagnose.check import check, check_analysis
from deltatape.diagnose.digest import digest
from deltatape.diagnose.rebuild import analyse
from deltatape.model.exchange import DeliveryProgress, EndReason, Exchange, Framing, Source, Tap
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.model.rule_settings import Settings
from deltatape.rules import EXCHANGE_RULES
from deltatape.store.reader import open_tape
from deltatape.store.writer import TapeWriter
from deltatape.tape.mask import Masker
from deltatape.tape.tap import ExchangeTap
from helpers.chat import FINISH, URL, calls, choice, entry, request, sse
from helpers.contexts import failing
from helpers.disk import file_size_limit
from helpers.exchanges import FINISH_TEXT, TEXT, codes, found, from_bytes, one, pasted, timed
from helpers.json_values import json_values
from helpers.splits import cuttings
from helpers.taped import MS, taped
from helpers.vectors import VECTORS, Vector


def test_in_front_of_the_applications_endpoint_the_upstream_is_the_application() -> None:
    def blamed(exchange: Exchange) -> list[tuple[str, Blame | None]]:
        app = replace(exchange, tap=Tap.APP)
        return [(finding.code, finding.blame) for finding in check(app)]

    broken = timed((0.1, TEXT))
    assert blamed(broken) == [("S001", Blame.APP)]
    for reason, blame in (
        (EndReason.UPSTREAM_RESET, Blame.TRANSPORT),
        (EndReason.CLIENT_CLOSED, None),
    ):
        assert broken.end
        cut = replace(broken, end=replace(broken.end, reason=reason))
        assert ("W006", blame) in blamed(cut)


def expect(vector: Vector, findings: tuple[Finding, ...]) -> None:
    codes = {finding.code for finding in findings}
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    match vector.kind:
        case "healthy":
            assert not findings
        case "trap":
            assert not errors
        case _:
            assert codes & vector.codes


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.name)
def test_each_vector_fires_what_it_is_made_for_and_no_more(vector: Vector) -> None:
    expect(vector, check(from_bytes(vector.body)))


@pytest.mark.slow
@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.name)
def test_no_cutting_into_reads_changes_a_finding(vector: Vector) -> None:
    whole = [(each.code, each.message, each.span) for each in check(taped([(10, vector.body)]))]
    for pieces in cuttings(vector.body):
        exchange = taped([(10, piece) for piece in pieces])
        findings = check(exchange)
        expect(vector, findings)
        assert [(each.code, each.message, each.span) for each in findings] == whole


def test_the_worst_comes_first_then_the_order_of_reports_then_wire_order() -> None:
    exchange = pasted(
        calls(entry(1, "c1", name="get", arguments="")),
        calls(entry(2, "c2", name="get", arguments="[1]")),
        choice({}, "tool_calls"),
        choice({}, "stop"),
    )
    found = [(finding.severity.value, finding.code) for finding in check(exchange)]
    assert found == [
        ("error", "T006"),
        ("error", "T013"),
        ("warning", "S004"),
        ("warning", "T001"),
    ]


def test_thresholds_are_settings() -> None:
    exchange = timed((0.1, TEXT), (3.0, TEXT), (3.1, choice({}, "stop")))
    assert not check(exchange)
    assert [finding.code for finding in check(exchange, Settings(stall_s=2))] == ["D001"]


def test_an_analysis_is_checked_without_being_made_again() -> None:
    exchange = pasted(calls(entry(0, "c1", name="get", arguments="[1]")), FINISH)
    assert check_analysis(analyse(exchange)) == check(exchange)


def test_a_rule_that_fails_is_reported_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rules = failing("T001", EXCHANGE_RULES)
    monkeypatch.setattr("deltatape.diagnose.check.rules_about", lambda *_, **__: rules)
    both = (entry(0, "c1", name="get", arguments="[1]"), entry(1, "c2", name="get", arguments=""))
    first, second = check(pasted(calls(*both), FINISH))
    assert {first.code, second.code} == {"X001", "T006"}


HOSTILE = [
    '{"choices":' + "[" * 5000,
    '{"choices":[{"index":1e999,"delta":{"tool_calls":[{"index":-1,"function":[]}]}}]}',
    '{"choices":[{"delta":{"tool_calls":[{"function":{"name":"\\ud800","arguments":"\\ud800"}}]}}]}',
    '{"choices":[{"delta":{"tool_calls":[{"id":"\\u0000","function":{"arguments":"NaN"}}]}}]}',
    '{"choices":[{"index":0,"finish_reason":{"a":1},"delta":[]}],"error":[]}',
    '{"error":{"message":{"deep":[[[[]]]]}}}',
    "9" * 6000,
]


@pytest.mark.parametrize("data", HOSTILE)
@pytest.mark.parametrize("content_type", ["text/event-stream", "application/json", ""])
def test_hostile_events_are_findings_and_never_exceptions(data: str, content_type: str) -> None:
    body = sse(TEXT, data, FINISH) if content_type != "application/json" else data.encode()
    exchange = from_bytes(body, request(get={"$ref": "#"}), content_type=content_type)
    assert "X001" not in {finding.code for finding in check(exchange)}


@given(st.binary(max_size=300), st.binary(max_size=60), st.sampled_from([200, 404, 500]))
def test_no_body_raises(body: bytes, asked: bytes, status: int) -> None:
    for media in ("text/event-stream", "text/html"):
        exchange = Exchange.from_body(
            body, content_type=media, url=URL, request=asked, status=status
        )
        assert "X001" not in {finding.code for finding in check(exchange)}


JSON_VALUES = json_values(
    st.integers() | st.text(max_size=8) | st.just("{"),
    st.sampled_from(["index", "id", "name", "arguments", "function", "type", "error"]),
)


@pytest.mark.slow
@given(st.lists(JSON_VALUES, max_size=4), st.booleans())
def test_no_delta_raises(entries: list[object], done: bool) -> None:  # noqa: FBT001 - drawn
    exchange = pasted(choice({"tool_calls": entries}), FINISH, done=done, request=request(get={}))
    assert "X001" not in {finding.code for finding in check(exchange)}


LOST = {"lost_records": 1, "lost_bytes": 120, "error": "No space left on device"}
PIECES = (
    calls(entry(0, "c1", name="get", arguments="")),
    calls(entry(0, arguments='{"a":')),
    calls(entry(0, arguments='"b')),
    calls(entry(0, arguments='","c":1}')),
)
WHOLE = timed(*((0.1 * at, piece) for at, piece in enumerate(PIECES)), (0.9, FINISH))


def without(exchange: Exchange, *lost: int, reason: EndReason = EndReason.COMPLETE) -> Exchange:
    """`exchange` with some of its reads lost."""
    assert exchange.end
    reads = tuple(read for at, read in enumerate(exchange.reads) if at not in lost)
    return replace(exchange, reads=reads, end=replace(exchange.end, recorder=LOST, reason=reason))


def blamed(findings: tuple[Finding, ...]) -> list[str]:
    return [each.code for each in findings if each.blame is not None]


def test_arguments_that_miss_what_the_recorder_lost_are_nobodys_fault() -> None:
    broken = replace(WHOLE, reads=(*WHOLE.reads[:2], *WHOLE.reads[3:]))
    assert broken.end
    honest = replace(broken, end=replace(broken.end, bytes=len(broken.body)))
    assert "T002" in codes(honest)
    lossy = without(WHOLE, 2)
    assert codes(lossy) == ["X002"]
    assert one(lossy, "X002").message.endswith(
        "; T002 is not reported, because the missing records may be the cause"
    )


def test_every_single_lost_read_blames_nobody() -> None:
    for at in range(len(WHOLE.reads)):
        assert blamed(check(without(WHOLE, at))) == []
        assert codes(without(WHOLE, at))[0] == "X002"


def test_a_lost_end_of_a_stream_is_nobodys_fault() -> None:
    text = timed((0.1, TEXT), (0.2, FINISH_TEXT))
    assert codes(without(text, 1)) == ["X002"]
    assert "S001 is not reported" in one(without(text, 1), "X002").message


def test_what_upstream_said_itself_stands_whatever_was_lost() -> None:
    error = {"error": {"message": "overloaded", "type": "server_error"}}
    failed = timed((0.1, TEXT), (0.2, TEXT), (0.3, error))
    assert codes(without(failed, 1)) == ["X002", "S005"]
    limited = timed((0.1, TEXT), (0.2, TEXT), (0.3, choice({}, "length")))
    assert codes(without(limited, 1)) == ["X002", "S009"]


def test_a_reset_stands_but_is_likely_at_most() -> None:
    cut = one(without(WHOLE, 2, reason=EndReason.UPSTREAM_RESET), "W006")
    assert (cut.blame, cut.confidence) == (Blame.TRANSPORT, Confidence.LIKELY)
    assert cut.excluded == ()
    closed = timed((0.1, TEXT), (0.2, TEXT))
    cut = one(without(closed, 0, reason=EndReason.UPSTREAM_CLOSED), "W006")
    assert (cut.blame, cut.confidence) == (Blame.TRANSPORT, Confidence.LIKELY)


def test_a_client_that_left_may_have_had_the_end_that_is_missing() -> None:
    assert codes(without(WHOLE, 4, reason=EndReason.CLIENT_CLOSED)) == ["X002"]


def test_a_whole_answer_is_read_although_other_records_are_missing() -> None:
    silent = timed((0.1, calls(entry(0, "c1", name="get", arguments="{a}"))), (0.2, FINISH))
    assert codes(without(silent)) == ["X002", "T002"]
    slow = replace(WHOLE, delivered=(DeliveryProgress(t_ns=9_000 * MS, bytes=10),))
    assert "D005" in codes(slow)
    assert codes(without(slow)) == ["X002"]


def test_what_never_came_of_an_answer_that_nobody_took_is_nobodys_fault() -> None:
    tools = [{"type": "function", "function": {"name": "get", "parameters": {"required": ["a"]}}}]
    opened = timed((0.1, calls(entry(0, name="get", arguments=""))), request={"tools": tools})
    assert opened.end
    for reason in (EndReason.CLIENT_CLOSED, EndReason.STOPPED):
        left = replace(opened, end=replace(opened.end, reason=reason))
        assert blamed(check(left)) == []


def test_a_digest_knows_that_bytes_are_missing_whoever_counted_them() -> None:
    assert not digest(WHOLE).lossy
    assert digest(replace(WHOLE, reads=WHOLE.reads[1:])).lossy


def test_a_file_that_may_not_grow_costs_records_and_blames_nobody(tmp_path: Path) -> None:
    """A real fault: the system refuses the writes of a stream, and takes the last ones again."""
    clock = SystemClock()
    alarms: list[str] = []
    writer = TapeWriter.create(
        tmp_path, "x", clock=clock, tool="t", source=Source.GATEWAY, alarm=alarms.append
    )
    tap = ExchangeTap(1, writer.put, Masker(b"k" * 32))
    tap.request(
        writer.now_ns(),
        id="0" * 26,
        method="POST",
        target=b"/v1/chat/completions",
        upstream="https://api.openai.com",
        http="1.1",
        headers=(),
    )
    tap.request_end(writer.now_ns())
    tap.response(
        writer.now_ns(),
        status=200,
        reason=b"OK",
        http="1.1",
        framing=Framing.LENGTH,
        headers=((b"Content-Type", b"text/event-stream"),),
    )
    tap.read(writer.now_ns(), sse(PIECES[0], done=False), None)
    writer.flush()
    with file_size_limit(writer.size):
        tap.read(writer.now_ns(), sse(PIECES[1], done=False), None)
        writer.flush()
    for piece in (*PIECES[2:], FINISH):
        tap.read(writer.now_ns(), sse(piece, done=False), None)
    tap.end(writer.now_ns(), EndReason.COMPLETE)
    writer.close()
    assert writer.path
    (exchange,) = open_tape(writer.path)
    assert codes(exchange) == ["X002"]
    assert (
        "the tape is missing 1 record of this exchange (File too large)"
        in found(exchange, "X002")[0].message
    )
    assert len(alarms) == 1
