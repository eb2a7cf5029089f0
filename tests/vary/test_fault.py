from pathlib import Path

import pytest

from deltatape.diagnose.decode import decode
from deltatape.diagnose.rebuild import rebuild
from deltatape.errors import UsageError
from deltatape.model.exchange import EndReason, Exchange, Framing, header
from deltatape.mutate import SeededChoices
from deltatape.rules.progress import SilencePhase
from deltatape.vary.coded_bodies import plain
from deltatape.vary.fault import (
    FAULTS,
    MIDDLE,
    OPTIONS,
    AnswerPosition,
    AnswerPositions,
    PlaceKind,
    parse_duration,
    parse_fault,
    parse_where,
)
from deltatape.wire.json_value import parse
from helpers.chat import FINISH
from helpers.mutated import (
    START,
    STEMS,
    TWO_EVENTS,
    WHOLE,
    broken_gzip,
    chat,
    gzipped,
    imported,
    in_pieces,
    pieces,
    recorded,
)
from helpers.taped import MS, taped

THREE = (*TWO_EVENTS, (30, b"data: 3\n\n"))
STALL_NS = 5_000_000_000


@pytest.mark.parametrize("stem", STEMS)
@pytest.mark.parametrize("kind", [kind for kind in FAULTS if kind != "status"])
def test_every_fault_has_a_place_in_every_dialect(kind: str, stem: str) -> None:
    before = recorded(stem)
    after = parse_fault(kind).applied(before, SeededChoices(1))
    assert after
    assert after != before
    assert after.request == before.request


def test_a_fault_says_what_the_user_wrote() -> None:
    fault = parse_fault("status=429,retry-after=2,times=3,exchange=7,header=x-a: b")
    assert fault.text == "status=429,retry-after=2,times=3,exchange=7,header=x-a: b"
    assert (fault.times, fault.exchange) == (3, 7)
    after = fault.applied(taped(TWO_EVENTS), SeededChoices(1))
    assert after
    assert after.response
    assert after.response.status == 429
    assert header(after.response.headers, "retry-after") == b"2"
    assert header(after.response.headers, "x-a") == b"b"


def test_a_page_comes_in_place_of_json() -> None:
    after = parse_fault("status=502,html").applied(taped(TWO_EVENTS), SeededChoices(1))
    assert after
    assert b"<html>" in after.body


def test_the_kinds_are_named_and_end_the_answer_or_do_not() -> None:
    ends = {kind: parse_fault(f"{kind}=500" if kind == "status" else kind) for kind in FAULTS}
    assert {kind for kind, fault in ends.items() if fault.ends_early} == {
        *("status", "stall", "cut", "reset", "end", "error-event")
    }
    assert not parse_fault("stall=5s").ends_early


@pytest.mark.parametrize(
    ("text", "reason", "kept"),
    [
        ("cut,at=event:1", EndReason.UPSTREAM_CLOSED, b"data: 1\n\n"),
        ("reset,at=byte:3", EndReason.UPSTREAM_RESET, b"dat"),
        ("end,at=15ms", EndReason.COMPLETE, b"data: 1\n\n"),
        ("stall,at=event:1", EndReason.STOPPED, b"data: 1\n\n"),
    ],
)
def test_an_answer_is_cut_where_it_is_said(text: str, reason: EndReason, kept: bytes) -> None:
    after = parse_fault(text).applied(taped(TWO_EVENTS), SeededChoices(1))
    assert after
    assert after.end
    assert (after.body, after.end.reason) == (kept, reason)


def test_a_stall_and_drips_last_as_long_as_they_say() -> None:
    stalled = parse_fault("stall=5s,at=event:1").applied(taped(TWO_EVENTS), SeededChoices(1))
    assert stalled
    assert stalled.reads[1].t_ns == 20 * MS + STALL_NS
    slow = parse_fault("drip=20ms,bytes=6,at=event:1").applied(taped(TWO_EVENTS), SeededChoices(1))
    assert slow
    assert [read.t_ns // MS for read in slow.reads] == [10, 20, 40]
    usual = parse_fault("drip,at=byte:0").applied(taped([(10, b"x" * 20)]), SeededChoices(1))
    assert usual
    assert [(read.t_ns // MS, len(read.data)) for read in usual.reads] == [(10, 16), (110, 4)]


def test_an_error_event_has_a_status_too() -> None:
    after = parse_fault("error-event=429,at=event:1").applied(
        recorded("bedrock-converse"), SeededChoices(1)
    )
    assert after
    assert b"throttlingException" in after.body


def test_a_time_becomes_the_byte_that_came_then() -> None:
    fault = parse_fault("cut,at=15ms")
    assert fault.at_recorded_byte(taped(TWO_EVENTS)).where == parse_where("byte:9")
    assert fault.at_recorded_byte(taped(())).applied(taped(()), SeededChoices(1)) is None
    assert fault.at_recorded_byte(broken_gzip()) is fault
    other = parse_fault("cut,at=event:1")
    assert other.at_recorded_byte(taped(TWO_EVENTS)) is other


def test_a_coded_body_is_struck_where_it_is_plain_and_coded_again() -> None:
    after = parse_fault("drop,at=event:0").applied(gzipped(taped(TWO_EVENTS)), SeededChoices(1))
    assert after
    bare = plain(after)
    assert bare
    assert pieces(bare) == [b"data: 2\n\n"]


def test_of_a_body_that_cannot_be_decoded_only_the_whole_can_fail() -> None:
    assert parse_fault("drop").applied(broken_gzip(), SeededChoices(1)) is None
    after = parse_fault("status=500").applied(broken_gzip(), SeededChoices(1))
    assert after
    assert b'{"error"' in after.body


def test_a_missing_place_is_none() -> None:
    assert parse_fault("cut,at=event:9").applied(taped(TWO_EVENTS), SeededChoices(1)) is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "unknown fault ''; use one of status, stall"),
        ("explode", "unknown fault 'explode'"),
        ("cut=5", "cut takes no value"),
        ("status", "invalid status ''; use 400 to 599, as in status=429"),
        ("status=200", "invalid status '200'"),
        ("error-event=399", "invalid status '399'"),
        ("status=429,retry-after=abc", "retry-after='abc': not a number of seconds"),
        ("cut,at=in-text,at=event:1", "at is given more than once"),
        ("cut,times=1,times=2", "times is given more than once"),
        ("status=42", "invalid status '42'"),
        ("error-event=x", "as in error-event=429"),
        ("stall=soon", "'soon': invalid duration"),
        ("stall=", "'': invalid duration"),
        ("cut,where=3", "unknown option 'where'; use one of at, times"),
        ("cut,at=nowhere", "at='nowhere': invalid position"),
        ("status=500,at=event:1", "takes no at="),
        ("cut,times=0", "times='0': not a whole number of at least 1"),
        ("cut,exchange=x", "exchange='x'"),
        ("cut,bytes=3", "only drip takes bytes="),
        ("drip,bytes=0", "bytes='0'"),
        ("cut,retry-after=1", "only status takes header="),
        ("status=500,header=a b:c", "not a header field such as retry-after:2"),
        ("status=500,header=a:\r\nb: c", "not a header field such as retry-after:2"),
        ("cut,html", "html takes no value"),
        ("status=500,html=1", "html takes no value"),
    ],
)
def test_an_invalid_fault_is_refused(text: str, told: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_fault(text)
    assert str(caught.value).startswith(f"--fault {text!r}: ")
    assert told in str(caught.value)


def test_the_page_of_faults_names_every_kind_option_and_phase() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "faults.md").read_text()
    for name in (*FAULTS, *OPTIONS, *SilencePhase):
        assert f"`{name}" in page or f"`at={name}`" in page


def inject(text: str, exchange: Exchange) -> Exchange | None:
    return parse_fault(text).applied(exchange, SeededChoices(1))


def injected(text: str, exchange: Exchange) -> Exchange:
    changed = inject(text, exchange)
    assert changed
    return changed


def events(text: str) -> list[str]:
    return [event.data for event in decode(injected(text, taped(THREE))).events]


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("cut", EndReason.UPSTREAM_CLOSED),
        ("reset", EndReason.UPSTREAM_RESET),
        ("end", EndReason.COMPLETE),
        ("stall", EndReason.STOPPED),
    ],
)
def test_the_answer_ends_at_the_place_of_the_fault(kind: str, reason: EndReason) -> None:
    after = injected(f"{kind},at=event:1", taped(TWO_EVENTS))
    assert after.end
    assert (pieces(after), after.end.reason) == ([b"data: 1\n\n"], reason)
    assert inject(f"{kind},at=event:99", taped(TWO_EVENTS)) is None


def test_the_complete_answer_can_only_lack_its_end() -> None:
    assert inject("end,at=byte:18", taped(TWO_EVENTS)) is None
    assert injected("cut,at=byte:18", taped(TWO_EVENTS)).body == taped(TWO_EVENTS).body


def test_a_stall_can_end() -> None:
    after = injected("stall=100ms,at=event:1", taped(TWO_EVENTS))
    assert [read.t_ns // MS for read in after.reads] == [10, 120]


def test_drips_keep_the_delay_of_the_end() -> None:
    after = injected("drip=50ms,bytes=4,at=event:1", taped(TWO_EVENTS, end_ms=25))
    assert [(read.t_ns // MS, read.data) for read in after.reads] == [
        (10, b"data: 1\n\n"),
        (20, b"data"),
        (70, b": 2\n"),
        (120, b"\n"),
    ]
    assert after.end
    assert after.end.t_ns == 125 * MS
    for where in ("event:99", "byte:18"):
        assert inject(f"drip,at={where}", taped(TWO_EVENTS)) is None


@pytest.mark.parametrize("where", ["before-first", "event:1", "in-text"])
@pytest.mark.parametrize("stem", STEMS)
def test_an_error_event_is_the_last_and_the_stream_is_complete(stem: str, where: str) -> None:
    after = injected(f"error-event=500,at={where}", recorded(stem))
    assert after.end
    assert after.end.reason is EndReason.COMPLETE
    stream = decode(after)
    assert "a fault of deltatape" in stream.events[-1].data
    assert stream.anomalies == ()
    if where != "before-first":
        assert "a fault of deltatape" in (rebuild(after).error or "")


def test_an_error_event_is_an_element_of_an_array() -> None:
    body = b'[{"candidates":[]},\n{"candidates":[]}]'
    before = imported(body, "application/json")
    preceding = []
    for number in range(3):
        after = injected(f"error-event=500,at=event:{number}", before)
        assert parse(after.body.decode()).error is None
        preceding.append(after.body.partition(b'{"error"')[0])
    assert preceding == [b"[", b'[{"candidates":[]},\n', b'[{"candidates":[]},\n{"candidates":[]},']


def test_only_a_stream_can_have_an_error_event() -> None:
    assert inject("error-event", imported(b'{"a":1}', "application/json")) is None
    assert inject("error-event,at=event:99", taped(TWO_EVENTS)) is None


@pytest.mark.parametrize(("framing", "chunked"), [(Framing.CHUNKED, True), (Framing.CLOSE, False)])
def test_an_error_event_is_an_http_chunk(framing: Framing, chunked: bool) -> None:  # noqa: FBT001
    last = injected("error-event,at=event:1", taped(TWO_EVENTS, framing=framing)).reads[-1]
    assert (last.boundaries == (len(last.data),)) is chunked


def test_events_are_missing_repeated_or_out_of_order() -> None:
    assert events("drop,at=event:1") == ["1", "3"]
    assert events("duplicate,at=event:1") == ["1", "2", "2", "3"]
    assert events("reorder,at=event:1") == ["1", "3", "2"]
    for kind in ("drop", "duplicate", "reorder", "corrupt"):
        assert inject(f"{kind},at=event:99", taped(THREE)) is None
        assert inject(f"{kind},at=event:1", taped(())) is None


def test_an_event_that_cannot_be_rewritten_stays() -> None:
    """Its data is on two lines."""
    before = imported(b"data: 1\ndata: 2\n\n")
    assert inject("drop,at=event:0", before) is None


def test_the_last_event_has_no_next_one_to_be_swapped_with() -> None:
    assert inject("reorder,at=event:2", taped(THREE)) is None


@pytest.mark.parametrize("stem", STEMS)
def test_a_damaged_event_is_not_json(stem: str) -> None:
    before = recorded(stem)
    after = injected("corrupt", before)
    assert len(after.body) == len(before.body)
    assert sum(a != b for a, b in zip(before.body, after.body, strict=True)) == 1
    stream = decode(after)
    bad = [event for event in stream.events if parse(event.data).error and event.data != "[DONE]"]
    assert len(bad) == 1 or len(stream.anomalies) == 1


def test_an_event_without_data_cannot_be_damaged() -> None:
    assert inject("corrupt", imported(b"data: \n\ndata: 1\n\n")) is not None
    assert inject("corrupt,at=event:0", imported(b"data:\n\ndata: 1\n\n")) is None


CALL = chat(START, *in_pieces('{"a"', ':"b"}'), FINISH)
"""Events: role, open, two fragments, finish, [DONE]."""


def places(exchange: Exchange, seed: int = 0) -> AnswerPositions:
    return AnswerPositions(exchange, SeededChoices(seed))


def at(phase: SilencePhase) -> AnswerPosition:
    return AnswerPosition(kind=PlaceKind.PHASE, phase=phase)


def starts(exchange: Exchange) -> list[int]:
    return [start for start, _ in places(exchange).spans]


def test_an_event_is_described_by_its_number_its_bytes_or_a_time() -> None:
    here = places(taped(TWO_EVENTS))
    assert [here.event(parse_where(text)) for text in ("event:1", "event:2")] == [1, None]
    assert [here.event(parse_where(f"byte:{at}")) for at in (0, 8, 9, 18, 19)] == [
        *(0, 0, 1),
        *(None, None),
    ]
    assert [here.event(parse_where(text)) for text in ("5ms", "15ms", "21ms")] == [0, 1, None]
    assert here.event(MIDDLE) == 1


def test_offsets_are_those_of_events_bytes_and_times() -> None:
    here = places(taped(TWO_EVENTS))
    texts = ("event:1", "event:2", "event:3", "byte:18", "byte:19", "15ms", "1s")
    assert [here.offset(parse_where(text)) for text in texts] == [9, 18, None, 18, None, 9, None]
    assert here.offset(MIDDLE) == 9


def test_the_middle_of_a_body_without_events_is_its_middle_byte() -> None:
    assert places(imported(b"<html></html>")).offset(MIDDLE) == 6
    assert places(imported(b"")).offset(MIDDLE) is None
    assert places(imported(b"")).event(MIDDLE) is None
    assert places(imported(b"")).border(parse_where("event:0")) is None


def test_before_the_first_is_at_the_beginning_also_of_nothing() -> None:
    for exchange in (CALL, imported(b""), taped((), framing=None)):
        assert places(exchange).border(at(SilencePhase.BEFORE_FIRST)) == 0
        assert places(exchange).offset(at(SilencePhase.BEFORE_FIRST)) == 0
    assert places(CALL).event(at(SilencePhase.BEFORE_FIRST)) == 0
    assert places(imported(b"")).event(at(SilencePhase.BEFORE_FIRST)) is None


@pytest.mark.slow
def test_in_arguments_some_are_still_to_come() -> None:
    fragments = starts(CALL)[2:5]
    offsets = {places(CALL, seed).offset(at(SilencePhase.IN_ARGUMENTS)) for seed in range(200)}
    assert None not in offsets
    assert fragments[1] in offsets
    assert not offsets & {fragments[0], fragments[2]}
    assert all(fragments[0] < (offset or 0) < fragments[2] for offset in offsets)
    borders = {places(CALL, seed).border(at(SilencePhase.IN_ARGUMENTS)) for seed in range(20)}
    assert borders == {fragments[1]}


def test_behind_a_call_is_in_front_of_the_next_event() -> None:
    assert places(CALL).offset(at(SilencePhase.AFTER_CALL)) == starts(CALL)[4]
    assert places(WHOLE).event(at(SilencePhase.AFTER_CALL)) == 2
    cut = chat(START, *in_pieces('{"a":1}'), done=False)
    assert places(cut).offset(at(SilencePhase.AFTER_CALL)) is None
    assert places(recorded("ollama")).offset(at(SilencePhase.AFTER_CALL)) is not None


def test_before_the_end_all_else_has_come() -> None:
    assert places(CALL).offset(at(SilencePhase.BEFORE_END)) == starts(CALL)[4]
    assert places(chat(START, done=False)).offset(at(SilencePhase.BEFORE_END)) is None


def test_in_a_stream_that_nobody_can_read_all_data_is_text() -> None:
    unknown = taped((*TWO_EVENTS, (30, b"data: \n\n")), target=b"/of/nobody")
    numbers = {places(unknown, seed).event(at(SilencePhase.IN_TEXT)) for seed in range(20)}
    assert numbers == {0, 1}
    assert places(unknown).offset(at(SilencePhase.IN_ARGUMENTS)) is None


def test_a_document_is_struck_inside() -> None:
    here = places(imported(b'{"choices":[{"index":0,"message":{"content":"Hi"}}]}'))
    assert 0 < (here.offset(at(SilencePhase.IN_TEXT)) or 0) < 52


@pytest.mark.parametrize("stem", STEMS)
def test_every_dialect_has_a_text_and_calls_to_be_struck(stem: str) -> None:
    exchange = recorded(stem)
    phases = [SilencePhase.BEFORE_FIRST, SilencePhase.IN_TEXT]
    if stem != "openai-completions":
        phases.append(SilencePhase.IN_ARGUMENTS)
    for phase in phases:
        offset = places(exchange).offset(at(phase))
        assert offset is not None
        assert offset < len(exchange.body)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("event:3", AnswerPosition(kind=PlaceKind.EVENT, number=3)),
        ("byte:0", AnswerPosition(kind=PlaceKind.BYTE)),
        ("1.5s", AnswerPosition(kind=PlaceKind.TIME, number=1_500_000_000)),
        ("in-text", AnswerPosition(kind=PlaceKind.PHASE, phase=SilencePhase.IN_TEXT)),
        ("arguments", AnswerPosition(kind=PlaceKind.PHASE, phase=SilencePhase.IN_ARGUMENTS)),
        ("end", AnswerPosition(kind=PlaceKind.PHASE, phase=SilencePhase.BEFORE_END)),
    ],
)
def test_a_place_is_an_event_a_byte_a_time_or_a_phase(text: str, expected: AnswerPosition) -> None:
    assert parse_where(text) == expected


@pytest.mark.parametrize("text", ["", "middle", "event:", "event:-1", "byte:x", "5", "1h"])
def test_anything_else_is_not_a_place(text: str) -> None:
    with pytest.raises(UsageError, match=r"invalid position.*event:N.*before-first, in-text"):
        parse_where(text)


def test_durations_are_in_nanoseconds() -> None:
    assert [parse_duration(text) for text in ("20ms", "2s", "1m")] == [
        20_000_000,
        2_000_000_000,
        60_000_000_000,
    ]
    with pytest.raises(UsageError, match="'soon': invalid duration; use 500ms, 30s or 2m"):
        parse_duration("soon")
