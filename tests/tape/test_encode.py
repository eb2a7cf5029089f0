import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from deltatape.model.exchange import EndReason, Framing, MaskedCredential, Tap
from deltatape.model.tape_summary import TapeSummary
from deltatape.tape import encode
from deltatape.tape.decode import decode_record
from deltatape.tape.fields import MalformedError
from deltatape.tape.payload import (
    BodyRead,
    Boundaries,
    ClientRecord,
    ClientState,
    EndRecord,
    RemarkRecord,
    RequestEnd,
    RequestHeadRecord,
    ResponseStart,
    SentUpstream,
)
from deltatape.tape.record import VERSION, Header, Payload, Unknown
from helpers.tapes import HEADER

ESCAPED = [
    *range(0x20),
    *range(0x7F, 0xA0),
    0x061C,
    0x200E,
    0x200F,
    *range(0x2028, 0x202F),
    *range(0x2066, 0x206A),
    0xFEFF,
]


LARGE = "The quick brown fox. " * 1000


@pytest.mark.parametrize("before", ["a", LARGE])
@pytest.mark.parametrize("code", ESCAPED)
def test_controls_separators_and_bidi_controls_are_escaped(code: int, before: str) -> None:
    line = encode.data_record(1, ',1,"read",', f"{before}{chr(code)}b".encode())
    assert chr(code) not in line.decode().removesuffix("\n")
    assert json.loads(line)[3] == f"{before}{chr(code)}b"


@pytest.mark.parametrize(
    "text",
    [
        LARGE,
        LARGE.replace("fox", '"fox\\n"\n'),
        json.dumps(LARGE.split()),
        LARGE.replace("fox", "Zoë 東京 👩‍🚀"),
        LARGE.replace("fox", "…\u2028"),
        LARGE.replace("fox", "\x7f\0"),
        "\\u0041\t" * 4000,
    ],
)
def test_a_large_text_is_encoded_as_its_parts_are(text: str) -> None:
    parts = [text[at : at + 1000] for at in range(0, len(text), 1000)]
    lines = [encode.data_record(1, ',1,"read",', part.encode()) for part in parts]
    inner = b"".join(line.removeprefix(b'[1,1,"read","').removesuffix(b'"]\n') for line in lines)
    line = encode.data_record(1, ',1,"read",', text.encode())
    assert line == b'[1,1,"read","%b"]\n' % inner


def test_large_data_that_is_no_utf8_becomes_base64() -> None:
    data = LARGE.encode() + b"\xff"
    record = decode_record(line := encode.data_record(1, ',1,"read",', data))
    assert record.payload == BodyRead(data=data)
    assert line.startswith(b'[1,1,"read",{"b64":"')


def test_readable_text_beyond_ascii_stays_readable() -> None:
    line = encode.data_record(1, ',1,"read",', "Zoë 東京 … 👩‍🚀".encode())
    assert line.decode() == '[1,1,"read","Zoë 東京 … 👩‍🚀"]\n'


def test_bytes_that_are_no_utf8_become_base64() -> None:
    assert encode.json_bytes(b"\xff\x00") == '{"b64":"/wA="}'


@pytest.mark.parametrize("data", [b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80", b"\xe2\x82"])
def test_surrogates_overlong_and_cut_sequences_are_no_utf8(data: bytes) -> None:
    assert encode.json_bytes(data).startswith('{"b64":')


@given(st.binary() | st.text().map(str.encode))
@example(b"")
@example(b'"\\/\x7f\x85')
def test_any_bytes_come_back_from_their_line(data: bytes) -> None:
    line = encode.data_record(7, ',3,"read",', data)
    assert line.count(b"\n") == 1
    record = decode_record(line)
    assert (record.t_ns, record.exchange, record.payload) == (7, 3, BodyRead(data=data))
    assert encode.payload_record(7, 3, record.payload) == line


def test_lone_surrogates_in_text_become_the_replacement_character() -> None:
    line = encode.payload_record(0, 0, RemarkRecord(text="file-\udcff"))
    assert line.decode() == '[0,0,"note",{"text":"file-\ufffd"}]\n'


def test_a_code_is_quoted_whatever_it_is() -> None:
    line = encode.payload_record(0, 0, Unknown(code='a"\n\u2028', value=None))
    assert line.decode() == '[0,0,"a\\"\\n\\u2028",null]\n'


def test_values_that_json_lacks_become_their_text() -> None:
    assert encode.json_text({"error": OSError(28, "full")}) == '{"error":"[Errno 28] full"}'


def test_the_version_comes_first_so_that_a_file_shows_what_it_is() -> None:
    value = HEADER.to_json()
    assert isinstance(value, dict)
    assert next(iter(value.items())) == ("deltatape", VERSION)


def test_a_header_comes_back_from_its_object() -> None:
    assert Header.from_json(HEADER.to_json()) == HEADER


@pytest.mark.parametrize("tap", Tap)
def test_a_request_written_at_once_is_the_record_of_its_payload(tap: Tap) -> None:
    payload = RequestHeadRecord(
        id="A", method="POST", target=(b"/",), upstream="u", http="1.1", headers=(), tap=tap
    )
    line = encode.request_record(
        7,
        3,
        id_text='"A"',
        line_text='"method":"POST","target":"/","upstream":"u"',
        http="1.1",
        headers_text="[]",
        tap=tap,
    )
    assert line == encode.payload_record(7, 3, payload)


@pytest.mark.parametrize("framing", Framing)
def test_a_response_written_at_once_is_the_record_of_its_payload(framing: Framing) -> None:
    payload = ResponseStart(
        status=200, reason=b"OK", http='"odd"', framing=framing, headers=((b"a", b"b"),)
    )
    line = encode.response_record(
        7,
        3,
        status=200,
        reason_text='"OK"',
        http='"odd"',
        framing=framing,
        headers_text='[["a","b"]]',
    )
    assert line == encode.payload_record(7, 3, payload)


@pytest.mark.parametrize("reused", [False, True])
def test_what_was_sent_written_at_once_is_the_record_of_its_payload(reused: bool) -> None:  # noqa: FBT001
    payload = SentUpstream(connect_ns=5, tls_ns=6, reused=reused)
    assert encode.sent_record(7, 3, 5, 6, reused=reused) == encode.payload_record(7, 3, payload)


@pytest.mark.parametrize("ends", [(), (0,), (3, 17, 1000)])
def test_boundaries_written_at_once_are_the_record_of_their_payload(ends: tuple[int, ...]) -> None:
    assert encode.boundaries_record(7, 3, ends) == encode.payload_record(
        7, 3, Boundaries(ends=ends)
    )


@pytest.mark.parametrize("reason", EndReason)
def test_ends_written_at_once_are_the_records_of_their_payloads(reason: EndReason) -> None:
    payload = EndRecord(reason=reason, bytes=12, sha256="ab")
    assert encode.end_record(7, 3, reason, 12, "ab") == encode.payload_record(7, 3, payload)
    assert encode.request_end_record(7, 3) == encode.payload_record(7, 3, RequestEnd())


TEXT = st.text(st.sampled_from('ab"\\\n\x7f\u202eé'), max_size=5)
FIELDS = st.lists(
    st.tuples(
        st.sampled_from([b"Date", b"X\xff"]),
        TEXT.map(str.encode) | st.just(b"\xff") | st.just(MaskedCredential(length=1, hash="0" * 8)),
    ),
    max_size=3,
).map(tuple)


@given(
    st.builds(
        RequestHeadRecord,
        id=TEXT,
        method=TEXT,
        target=TEXT.map(lambda text: (text.encode(),)),
        upstream=TEXT,
        http=TEXT,
        headers=FIELDS,
        tap=st.sampled_from(Tap),
        watched=st.none() | st.just(TapeSummary(until_ns=1)),
    )
    | st.builds(
        ResponseStart,
        status=st.integers(0, 999),
        reason=TEXT.map(str.encode),
        http=TEXT,
        framing=st.sampled_from(Framing),
        headers=FIELDS,
    )
    | st.builds(
        SentUpstream, connect_ns=st.integers(0), tls_ns=st.integers(0), reused=st.booleans()
    )
    | st.just(RequestEnd())
)
def test_usual_records_are_the_json_of_their_payloads(payload: Payload) -> None:
    line = encode.json_record(7, 3, payload.code, payload.to_json())
    assert encode.payload_record(7, 3, payload) == line


@pytest.mark.parametrize("state", ClientState)
def test_a_client_written_at_once_is_the_record_of_its_payload(state: ClientState) -> None:
    payload = ClientRecord(connection=9, state=state)
    assert encode.client_record(7, 9, state) == encode.payload_record(7, 0, payload)


@given(
    st.text(max_size=20) | st.just("a" * 3000),
    st.sampled_from(["", " ", "\\/", "\\u0041", "\\n", "{"]),
)
@example("a" * 3000, "\\/")
@example("a" * 3000, "\\u0041")
@example("a" * 3000, "\\n")
@example("".join(map(chr, ESCAPED[0x20:])), "")
@example("Zoë 東京 👩", "")
def test_a_line_is_recognised_as_written_or_not(text: str, odd: str) -> None:
    for size in (0, 3000):
        content = json.dumps(text + "x" * size, ensure_ascii=False)[:-1] + odd + '"'
        line = f'[1,1,"read",{content}]\n'.encode("utf-8", "surrogatepass")
        try:
            data = decode_record(line).payload
        except MalformedError:
            continue
        assert isinstance(data, BodyRead)
        written = encode.data_record(1, ',1,"read",', data.data)
        assert encode.is_data_record(line, 1, ',1,"read",', data.data) is (line == written)
        assert not encode.is_data_record(line, 2, ',1,"read",', data.data)
        assert not encode.is_data_record(line[:-1], 1, ',1,"read",', data.data)
