from pathlib import Path

import pytest

from deltatape.errors import UsageError
from deltatape.model.exchange import EndReason, header
from deltatape.mutate import SeededChoices
from deltatape.rules.progress import SilencePhase
from deltatape.vary.coded_bodies import plain
from deltatape.vary.fault import FAULTS, OPTIONS, parse_fault
from deltatape.vary.fault_positions import parse_where
from helpers.taped import MS, taped
from helpers.varied import STEMS, TWO, broken_gzip, gzipped, of, pieces

STALL_NS = 5_000_000_000


@pytest.mark.parametrize("stem", STEMS)
@pytest.mark.parametrize("kind", [kind for kind in FAULTS if kind != "status"])
def test_every_fault_has_a_place_in_every_dialect(kind: str, stem: str) -> None:
    before = of(stem)
    after = parse_fault(kind).applied(before, SeededChoices(1))
    assert after
    assert after != before
    assert after.request == before.request


def test_a_fault_says_what_the_user_wrote() -> None:
    fault = parse_fault("status=429,retry-after=2,times=3,exchange=7,header=x-a: b")
    assert fault.text == "status=429,retry-after=2,times=3,exchange=7,header=x-a: b"
    assert (fault.times, fault.exchange) == (3, 7)
    after = fault.applied(taped(TWO), SeededChoices(1))
    assert after
    assert after.response
    assert after.response.status == 429
    assert header(after.response.headers, "retry-after") == b"2"
    assert header(after.response.headers, "x-a") == b"b"


def test_a_page_comes_in_place_of_json() -> None:
    after = parse_fault("status=502,html").applied(taped(TWO), SeededChoices(1))
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
    after = parse_fault(text).applied(taped(TWO), SeededChoices(1))
    assert after
    assert after.end
    assert (after.body, after.end.reason) == (kept, reason)


def test_a_stall_and_drips_last_as_long_as_they_say() -> None:
    stalled = parse_fault("stall=5s,at=event:1").applied(taped(TWO), SeededChoices(1))
    assert stalled
    assert stalled.reads[1].t_ns == 20 * MS + STALL_NS
    slow = parse_fault("drip=20ms,bytes=6,at=event:1").applied(taped(TWO), SeededChoices(1))
    assert slow
    assert [read.t_ns // MS for read in slow.reads] == [10, 20, 40]
    usual = parse_fault("drip,at=byte:0").applied(taped([(10, b"x" * 20)]), SeededChoices(1))
    assert usual
    assert [(read.t_ns // MS, len(read.data)) for read in usual.reads] == [(10, 16), (110, 4)]


def test_an_error_event_has_a_status_too() -> None:
    after = parse_fault("error-event=429,at=event:1").applied(
        of("bedrock-converse"), SeededChoices(1)
    )
    assert after
    assert b"throttlingException" in after.body


def test_a_time_is_told_as_the_byte_that_came_then() -> None:
    fault = parse_fault("cut,at=15ms")
    assert fault.told_by_bytes(taped(TWO)).where == parse_where("byte:9")
    assert fault.told_by_bytes(taped(())).applied(taped(()), SeededChoices(1)) is None
    assert fault.told_by_bytes(broken_gzip()) is fault
    other = parse_fault("cut,at=event:1")
    assert other.told_by_bytes(taped(TWO)) is other


def test_a_coded_body_is_struck_where_it_is_plain_and_coded_again() -> None:
    after = parse_fault("drop,at=event:0").applied(gzipped(taped(TWO)), SeededChoices(1))
    assert after
    bare = plain(after)
    assert bare
    assert pieces(bare) == [b"data: 2\n\n"]


def test_of_a_body_that_cannot_be_decoded_only_the_whole_can_fail() -> None:
    assert parse_fault("drop").applied(broken_gzip(), SeededChoices(1)) is None
    after = parse_fault("status=500").applied(broken_gzip(), SeededChoices(1))
    assert after
    assert b'{"error"' in after.body


def test_a_place_that_is_not_there_is_none() -> None:
    assert parse_fault("cut,at=event:9").applied(taped(TWO), SeededChoices(1)) is None


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
def test_what_is_no_fault_is_refused(text: str, told: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_fault(text)
    assert str(caught.value).startswith(f"--fault {text!r}: ")
    assert told in str(caught.value)


def test_the_page_of_faults_names_every_kind_option_and_phase() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "faults.md").read_text()
    for name in (*FAULTS, *OPTIONS, *SilencePhase):
        assert f"`{name}" in page or f"`at={name}`" in page
