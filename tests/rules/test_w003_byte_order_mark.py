from helpers.chat import sse
from helpers.exchanges import FINISH_TEXT, TEXT, found, from_bytes, one

BOM = b"\xef\xbb\xbf"


def test_a_byte_order_mark_before_the_first_event_is_reported() -> None:
    finding = one(from_bytes(BOM + sse(TEXT, FINISH_TEXT)), "W003")
    assert finding.span == (0, 3)


def test_a_stream_without_one_is_fine() -> None:
    assert not found(from_bytes(sse(TEXT, FINISH_TEXT)), "W003")
