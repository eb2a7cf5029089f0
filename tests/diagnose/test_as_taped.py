from dataclasses import replace
from pathlib import Path

from deltatape.clock import SystemClock
from deltatape.diagnose.check import check
from deltatape.diagnose.digest import digest
from deltatape.model.exchange import Delivered, EndReason, Exchange, Framing, Source
from deltatape.model.finding import Blame, Confidence, Finding
from deltatape.store.reader import open_tape
from deltatape.store.writer import TapeWriter
from deltatape.tape.mask import Masker
from deltatape.tape.tap import ExchangeTap
from helpers.chat import FINISH, calls, choice, entry, sse
from helpers.disk import file_size_limit
from helpers.exchanges import FINISH_TEXT, TEXT, codes, found, one, timed
from helpers.taped import MS

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
        "; T002 is not reported: what is missing may be the cause"
    )


def test_every_single_lost_read_accuses_nobody() -> None:
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
    slow = replace(WHOLE, delivered=(Delivered(t_ns=9_000 * MS, bytes=10),))
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


def test_a_file_that_may_not_grow_costs_records_and_accuses_nobody(tmp_path: Path) -> None:
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
    with file_size_limit(writer.size):
        tap.read(writer.now_ns(), sse(PIECES[1], done=False), None)
    for piece in (*PIECES[2:], FINISH):
        tap.read(writer.now_ns(), sse(piece, done=False), None)
    tap.end(writer.now_ns(), EndReason.COMPLETE, recorder=writer.losses(1))
    writer.close()
    assert writer.path
    (exchange,) = open_tape(writer.path)
    assert codes(exchange) == ["X002"]
    assert (
        "the tape lacks 1 record of this exchange (File too large)"
        in found(exchange, "X002")[0].message
    )
    assert len(alarms) == 1
