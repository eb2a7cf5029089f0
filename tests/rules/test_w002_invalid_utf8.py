from helpers.chat import sse
from helpers.exchanges import FINISH_TEXT, found, from_bytes, one


def test_bytes_that_are_not_utf8_are_reported_once_with_their_number() -> None:
    body = b'data: {"choices":[{"index":0,"delta":{"content":"a\xc3"}}]}\n\n'
    finding = one(from_bytes(body + body + sse(FINISH_TEXT)), "W002")
    assert "(and 1 more)" in finding.message
    assert "\\xc3" in finding.evidence


def test_a_character_in_two_reads_is_whole() -> None:
    body = 'data: {"choices":[{"index":0,"delta":{"content":"é"}}]}\n\n'.encode()
    assert not found(from_bytes(body + sse(FINISH_TEXT)), "W002")
