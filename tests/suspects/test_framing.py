import pytest

from deltatape.model.stream import Format
from deltatape.suspects.framing import Framed, framed

SSE, NDJSON = Format.SSE, Format.NDJSON


def _data(found: Framed) -> list[str]:
    return [event.data for event in found.events]


def _framed(*reads: bytes, framing: str = "standard", decode: str = "stream") -> Framed:
    return framed(reads, SSE, framing, decode)


def test_a_read_that_ends_inside_a_line_spoils_it() -> None:
    reads = (b'data: {"a":1}\n\ndata: {"b', b'":2}\n\n')
    assert _data(_framed(*reads)) == ['{"a":1}', '{"b":2}']
    found = _framed(*reads, framing="reads")
    assert (_data(found), found.texts, found.dies) == (['{"a":1}'], ('{"b',), False)


def test_a_read_may_bring_several_events() -> None:
    reads = (b"data: 1\n\ndata: 2\n\n", b"data: 3\n\n", b": x\n\n")
    assert _data(_framed(*reads, framing="one-per-read")) == ["1", "3"]


def test_events_may_end_with_other_line_ends() -> None:
    crlf = b'event: x\r\ndata: {"a":1}\r\n\r\n'
    assert _data(_framed(crlf)) == ['{"a":1}']
    assert _data(_framed(crlf, framing="blank-lines")) == []
    assert _data(_framed(b"event: x\ndata:1\n\n:\n\n", framing="blank-lines")) == ["1"]


def test_the_space_behind_the_colon_is_optional() -> None:
    assert _data(_framed(b"data:1\ndata: 2\n\n", framing="space")) == ["2"]


def test_comments_are_no_json() -> None:
    body = b": keep-alive\ndata: 1\n\ndata: [DONE]\n\n"
    found = _framed(body, framing="every-line")
    assert (_data(found), found.texts, found.dies) == (["1", "[DONE]"], (": keep-alive",), True)
    assert not _framed(b"data: 1\n\n", framing="every-line").dies


def test_characters_that_are_cut_are_spoilt_by_decoding_each_read() -> None:
    whole = 'data: "aé€𝄞"\n\n'.encode()
    for cut in range(1, len(whole)):
        reads = (whole[:cut], whole[cut:])
        assert _data(_framed(*reads)) == ['"aé€𝄞"']
        assert _framed(*reads).thrown == ()
        found = _framed(*reads, decode="reads")
        assert bool(found.thrown) is ("\ufffd" in "".join(_data(found)))
    assert any("unexpected end of data" in one for one in _framed(whole[:9], decode="reads").thrown)


def test_characters_that_are_cut_are_missing_where_errors_are_ignored() -> None:
    whole = 'data: "aé€𝄞"\n\n'.encode()
    cut = whole.index("€".encode()) + 1
    found = _framed(whole[:cut], whole[cut:], decode="reads-ignore")
    assert (_data(found), found.thrown) == (['"aé𝄞"'], ())


def test_characters_cut_twice_are_decoded_as_a_stream() -> None:
    whole = 'data: "𝄞"\n\n'.encode()
    reads = [bytes([byte]) for byte in whole]
    assert _data(framed(reads, SSE, "standard", "stream")) == ['"𝄞"']
    assert framed(reads, SSE, "reads", "stream").events == ()
    assert framed([b"\x80\x80\x80\x80\x80"], SSE, "reads", "stream").events == ()


@pytest.mark.parametrize(
    ("framing", "events", "texts"),
    [
        ("reads", ['{"a":1}'], ('{"b"', ":2}")),
        ("one-per-read", ['{"a":1}'], (":2}",)),
        ("space", ['{"a":1}', '{"b":2}'], ()),
    ],
)
def test_lines_of_json_are_spoilt_likewise(
    framing: str, events: list[str], texts: tuple[str, ...]
) -> None:
    reads = (b'{"a":1}\n{"b"', b":2}\n")
    found = framed(reads, NDJSON, framing, "stream")
    assert (_data(found), found.texts) == (events, texts)
    assert _data(framed((*reads, b"{}"), NDJSON, "standard", "stream")) == [
        '{"a":1}',
        '{"b":2}',
        "{}",
    ]
