import base64
import json
import struct
import zlib

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from deltatape.redact.content import mask
from deltatape.redact.eventstream import check_checksums, unfold
from deltatape.redact.fillers import Fillers
from deltatape.redact.search import secrets
from deltatape.secret_text.escaped_text import Overwrite, overwrite
from deltatape.wire.aws_eventstream import EventStreamDecoder
from helpers.eventstream import STRING, error, event, exception, frame, header, message
from helpers.secret_tapes import KEY, STARS, without_secrets

INTEGERS = {2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}


def chunk(value: object, **more: object) -> bytes:
    """What carries an object of a model."""
    text = json.dumps(value, separators=(",", ":")).encode()
    return event("chunk", {"bytes": base64.b64encode(text).decode(), **more})


def delta(text: str) -> bytes:
    return chunk({"type": "content_block_delta", "index": 0, "delta": {"text": text}})


def carrying(encoded: str) -> bytes:
    """A message whose base64 is given."""
    payload = b'{"bytes":"' + encoded.encode() + b'"}'
    return message({":event-type": "chunk", ":message-type": "event"}, payload)


def read(body: bytes) -> list[str]:
    """The data of all events; no message is broken."""
    decoder = EventStreamDecoder()
    events = decoder.feed(body, 0, None)
    decoder.end()
    assert decoder.anomalies == []
    return [event.data for event in events]


def carried(body: bytes) -> list[object]:
    return [json.loads(base64.b64decode(json.loads(data)["bytes"])) for data in read(body)]


def flipped(body: bytes, at: int) -> bytes:
    at %= len(body)
    return body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]


def sealed(body: bytes) -> bytes:
    """A message with the right checksum in place of the one it has."""
    return body[:-4] + struct.pack(">I", zlib.crc32(body[:-4]))


@pytest.mark.parametrize(
    "body",
    [b"", b"data: x\n\n", b"data: \0\n\n" + event("a", {}), b'{"a":"\0"}', b"\0" * 40, b"hello"],
)
def test_what_is_no_stream_of_messages_is_not_unfolded(body: bytes) -> None:
    assert unfold(body) is None


def test_a_secret_in_a_payload_is_overwritten_and_the_checksum_made_anew() -> None:
    body = event("a", {"t": 1}) + event("b", {"t": KEY}) + event("c", {})
    assert without_secrets(body) == event("a", {"t": 1}) + event("b", {"t": STARS}) + event("c", {})
    (found,) = secrets(body)
    assert body[slice(*found.spans[0])] == KEY.encode()


@pytest.mark.parametrize("before", range(4))
def test_a_secret_in_base64_is_overwritten_wherever_it_begins_in_it(before: int) -> None:
    text = "x" * before
    body = chunk({"t": f"{text} {KEY}"}, p="ab")
    after = without_secrets(body)
    assert after == chunk({"t": f"{text} {STARS}"}, p="ab")
    (found,) = secrets(body)
    ((start, end),) = found.spans
    assert end - start in (26, 27)
    assert body[:start] == after[:start]
    assert body[end:-4] == after[end:-4]


def test_a_secret_in_several_chunks_is_found() -> None:
    body = delta("a sk-nope") + delta("nopenope") + delta("0000 b")
    after = without_secrets(body)
    assert after == delta("a *******") + delta("********") + delta("**** b")
    (found,) = secrets(body)
    assert (found.value, len(found.spans)) == (b"sk-nopenopenope0000", 3)
    assert without_secrets(after) == after


def test_two_secrets_in_one_group_of_base64_are_both_overwritten() -> None:
    body = chunk({"a": KEY + " " + KEY})
    assert carried(without_secrets(body)) == [{"a": f"{STARS} {STARS}"}]


def test_secrets_are_found_in_headers_and_between_messages() -> None:
    headed = header("x-sk-" + "nope" * 4, STRING, b"\0\1v")
    headed += b"".join(header(f"n{kind}", kind, bytes(size)) for kind, size in INTEGERS.items())
    headed += header("t", 0, b"") + header("b", 6, struct.pack(">H", len(KEY)) + KEY.encode())
    body = frame(headed, b"{}") + KEY.encode() + error("oops", f"no {KEY}")
    assert len(secrets(body)) == 4
    after = without_secrets(body)
    assert KEY.encode() not in after
    assert b"nope" not in after
    decoder = EventStreamDecoder()
    assert [e.data for e in decoder.feed(after, 0, None)] == ["{}", f'{{"message": "no {STARS}"}}']


def test_no_find_runs_from_one_message_into_the_next() -> None:
    pem = b"-----BEGIN PRIVATE KEY-----"
    body = message({"a": "b"}, pem) + message({":event-type": "chunk"}, b"MII")
    after = without_secrets(body)
    assert read(after) == ["********** ******* ********", "MII"]
    assert b":event-type" in after


@pytest.mark.parametrize(
    "headers",
    [b"\x04name", b"\x09nam", b"\x01a\x07\0", b"\x01a\x0b" + KEY.encode(), b"\x01a\x07\xff\xff"],
)
def test_headers_that_cannot_be_read_are_searched_as_they_are(headers: bytes) -> None:
    body = frame(headers + b" " + KEY.encode(), b"{}")
    after = without_secrets(body)
    assert KEY.encode() not in after
    assert sealed(after) == after


def test_a_cut_message_is_searched_as_far_as_it_goes() -> None:
    for whole in (event("a", {"t": KEY}), delta(KEY), error("e", KEY)):
        for size in range(1, len(whole)):
            before = event("x", {}) + whole[:size]
            after = without_secrets(before)
            assert len(after) == len(before)
            assert KEY.encode() not in after
            assert without_secrets(after) == after
            if size > len(whole) - 4:
                assert sealed(after + bytes(len(whole) - size)).startswith(after[:-3])


@pytest.mark.parametrize("kept", range(1, 4))
def test_what_there_is_of_a_cut_checksum_is_made_anew(kept: int) -> None:
    cut = -4 + kept
    assert without_secrets(event("a", {"t": KEY})[:cut]) == event("a", {"t": STARS})[:cut]


def test_a_cut_base64_keeps_the_bits_of_what_is_not_whole() -> None:
    whole = base64.b64encode(json.dumps({"t": f"{KEY} é!?"}).encode()).decode()
    for size in range(len(whole) + 1):
        body = carrying(whole[:size])
        (after,) = read(without_secrets(body))
        shown = json.loads(after)["bytes"]
        assert len(shown) == size
        if size > 40:
            assert shown[40:] == whole[40:size] or KEY not in base64.b64decode(
                whole[: size // 4 * 4]
            ).decode(errors="replace")


@pytest.mark.parametrize("spell", [lambda s: s.replace("/", "\\/"), lambda s: s[:8] + "!" + s[8:]])
def test_base64_that_cannot_be_written_anew_is_overwritten_as_a_whole(spell: object) -> None:
    assert callable(spell)
    encoded = spell(base64.b64encode(json.dumps({"t": f"??? {KEY} ???"}).encode()).decode())
    (found,) = secrets(carrying(encoded))
    after = without_secrets(carrying(encoded))
    assert read(after) == [json.dumps({"bytes": "*" * len(encoded)}, separators=(",", ":"))]
    assert carrying(encoded)[slice(*found.spans[0])] == encoded.encode()
    assert without_secrets(after) == after


def test_url_safe_base64_is_read_too() -> None:
    encoded = base64.urlsafe_b64encode(f"{KEY} \xff\xff???>>>".encode()).decode().rstrip("=")
    assert {"-", "_"} & set(encoded)
    assert len(secrets(carrying(encoded))) == 1


def test_a_message_that_came_broken_stays_broken_and_tells_nothing() -> None:
    broken = flipped(event("a", {"t": KEY}), -1)
    after = without_secrets(broken)
    right = event("a", {"t": STARS})
    assert after[:-4] == right[:-4]
    assert bytes(a ^ b for a, b in zip(after[-4:], right[-4:], strict=True)) == b"\xff" * 4
    assert check_checksums(after, [(40, 50)]) == ((), (0,))
    assert without_secrets(after) == after


def test_a_broken_checksum_is_mended_only_where_bytes_were_masked() -> None:
    first, second = event("a", {"t": KEY}), event("b", {"t": 1})
    at = first.index(KEY.encode())
    masked = first.replace(KEY.encode(), STARS.encode())
    body = masked + flipped(second, -1)
    found = check_checksums(body, [(at, at + len(KEY))])
    assert found.wrong == (len(first),)
    assert overwrite(body, found.repairs).startswith(event("a", {"t": STARS}))
    assert check_checksums(body, []) == ((), (0, len(first)))
    assert check_checksums(body, [(0, 0)]) == ((), (0, len(first)))
    assert check_checksums(first + second, [(at, at + 3)]) == ((), ())
    assert check_checksums(first[:-4], [(at, at + 3)]) == ((), ())
    assert check_checksums(masked[:-2], [(at, at + 3)]).repairs == (
        Overwrite(len(first) - 4, event("a", {"t": STARS})[-4:-2].decode("latin-1")),
    )


def test_content_gives_way_to_fillers_and_structure_stays() -> None:
    body = (
        event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "Hello"}, "p": "ab"})
        + chunk({"type": "x", "delta": {"text": "Hi Ann"}})
        + exception("throttlingException", "Slow down")
        + error("oops", "Ann did it")
        + message({":event-type": "e", "note": "Ann"}, b"")
    )
    after = overwrite(body, mask(body, Fillers()))
    decoder = EventStreamDecoder()
    events = decoder.feed(after, 0, None)
    decoder.end()
    assert decoder.anomalies == []
    names = ["contentBlockDelta", "chunk", "throttlingException", "oops", "e"]
    assert [event.type for event in events] == names
    assert json.loads(events[0].data) == {
        "contentBlockIndex": 0, "delta": {"text": "xxxxx"}, "p": "xx",
    }  # fmt: skip
    inner = json.loads(base64.b64decode(json.loads(events[1].data)["bytes"]))
    assert inner == {"type": "x", "delta": {"text": "xx xxx"}}
    assert b"Ann" not in after
    assert b"Slow" not in after
    assert overwrite(after, mask(after, Fillers())) == after


def test_a_body_without_anything_to_say_stays() -> None:
    body = event("a", {}) + chunk({"type": "x"})
    assert secrets(body) == ()
    assert mask(body, Fillers()) == ()


pieces = st.sampled_from(
    [event("a", {"t": KEY}), delta("sk-nopenope"), delta("nope0000"), b"\0\0\0", KEY.encode(),
     flipped(event("b", {"t": f"Bearer {KEY}"}), 60), b"{", error("e", KEY), carrying("c2s*")]
)  # fmt: skip


@given(st.lists(pieces, max_size=5).map(b"".join), st.data())
def test_any_body_keeps_its_lengths_and_its_events_and_twice_is_once(
    body: bytes, data: st.DataObject
) -> None:
    body = body[: data.draw(st.integers(0, len(body)))]
    if body:
        body = flipped(body, data.draw(st.integers(0, len(body) - 1)))
    after = without_secrets(body)
    assume(body[:1] not in (b"{", b"["))  # which is read as JSON
    then, now = EventStreamDecoder(), EventStreamDecoder()
    spans = [event.place.span for event in then.feed(body, 0, None)]
    assert [event.place.span for event in now.feed(after, 0, None)] == spans
    then.end()
    now.end()
    assert [a.place for a in now.anomalies] == [a.place for a in then.anomalies]
    assert (len(after), without_secrets(after)) == (len(body), after)


@pytest.mark.slow
def test_the_cost_is_linear_for_hostile_messages() -> None:
    small = b"".join(event("a", {"bytes": "A" * 4}) for _ in range(1000))
    for body in (small, carrying('","bytes":"' * 10_000), frame(b"\0" * 100_000, b"")):
        assert len(without_secrets(body)) == len(body)
