from deltatape.model.exchange import Headers
from deltatape.model.finding import Blame, Confidence, Severity
from helpers.eventstream import event
from helpers.exchanges import found, from_bytes, one, timed

BINARY: Headers = ((b"Content-Type", b"application/vnd.amazon.eventstream"),)
DELTA = event("contentBlockDelta", {"delta": {"text": "caf\u00e9"}})
STOP = event("messageStop", {"stopReason": "end_turn"})
DAMAGED = DELTA.replace(b"caf", b"cav")


def test_a_message_whose_checksum_is_wrong_is_reported_with_its_bytes() -> None:
    finding = one(timed((0.1, DELTA), (0.2, DAMAGED), (0.3, STOP), headers=BINARY), "W010")
    assert finding.message == "corrupt: a message (contentBlockDelta) whose checksum is wrong"
    assert (finding.severity, finding.blame) == (Severity.ERROR, Blame.UPSTREAM)
    assert finding.confidence is Confidence.PROVEN
    assert finding.span == (len(DELTA), 2 * len(DELTA))
    assert '{"text":"cav' in finding.evidence
    assert finding.event is None


def test_a_stream_that_was_read_as_text_is_recognised() -> None:
    body = (DELTA + STOP).decode(errors="replace").encode()
    finding = one(timed((0.1, body), headers=BINARY), "W010")
    assert "read the body as text" in finding.hint


def test_damage_all_over_is_told_once() -> None:
    reads = [(0.1 * at, DAMAGED) for at in range(1, 6)]
    assert one(timed(*reads, headers=BINARY), "W010").message.endswith("(and 4 more)")


def test_text_between_the_elements_of_an_array_is_reported() -> None:
    body = b'[{"a":"\xef\xbf\xbd"}\nupstream connect error\xef\xbf\xbd\n,{"a":2}]'
    finding = one(timed((0.1, body), headers=()), "W010")
    assert "upstream connect error" in finding.evidence
    assert "tells who wrote" in finding.hint


def test_a_file_may_have_been_damaged_on_its_way_here() -> None:
    exchange = from_bytes(DAMAGED, content_type="application/vnd.amazon.eventstream")
    assert one(exchange, "W010").blame is None


def test_whole_messages_are_fine() -> None:
    assert not found(timed((0.1, DELTA + STOP), headers=BINARY), "W010")
    assert not found(timed((0.1, b'[{"a":1},\n{"a":2}]'), headers=()), "W010")
