from dataclasses import replace

from deltatape.model.exchange import Exchange
from deltatape.model.finding import Severity
from helpers.chat import FINISH
from helpers.exchanges import FINISH_TEXT, TEXT, call, found, one, pasted, timed

FULL = {"lost_records": 2, "lost_bytes": 90, "error": "No space left on device"}


def lossy(exchange: Exchange, reads: int) -> Exchange:
    """`exchange` with so many of its reads on the tape, and the recorder's own count."""
    assert exchange.end
    end = replace(exchange.end, recorder=FULL)
    return replace(exchange, reads=exchange.reads[:reads], end=end)


def test_what_the_tape_lacks_is_told_with_its_reason() -> None:
    finding = one(lossy(timed((0.1, TEXT), (0.2, TEXT), (0.3, FINISH_TEXT)), 2), "X002")
    assert finding.message.startswith(
        "the tape lacks 2 records of this exchange (No space left on device), with "
    )
    assert "bytes of the answer" in finding.message
    assert (finding.severity, finding.blame) == (Severity.WARNING, None)


def test_an_answer_that_is_whole_is_said_to_be() -> None:
    finding = one(lossy(timed((0.1, TEXT), (0.3, FINISH_TEXT)), 2), "X002")
    assert finding.message.endswith("; all bytes of the answer were looked at")


def test_a_request_that_is_missing_is_told_without_a_number() -> None:
    whole = timed(*((0.1, each) for each in call()), (0.2, FINISH))
    headless = replace(whole, request=replace(whole.request, method=""))
    assert one(headless, "X002").message == "the tape lacks records of this exchange"
    assert one(replace(headless, end=None), "X002").span is None


def test_a_whole_tape_and_a_file_are_fine() -> None:
    assert not found(timed((0.1, TEXT), (0.2, FINISH_TEXT)), "X002")
    assert not found(pasted(TEXT), "X002")
