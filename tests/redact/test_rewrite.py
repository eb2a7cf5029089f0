import hashlib
import json

from deltatape.redact.fillers import Fillers
from deltatape.redact.plan import Planner, words_of
from deltatape.redact.rewrite import CONTENT, Rewriter
from deltatape.tape.decode import decode_record
from deltatape.tape.fields import bytes_from_json, bytes_to_json
from helpers.eventstream import event
from helpers.planted import KEY, STARS, exchange, numbered, payloads, record, tape
from helpers.readings import told
from helpers.tapes import MASKER

NAME = MASKER.value(KEY.encode()).hash


def rewritten(content: bytes, *, fill: bool = False) -> bytes:
    lines = content.splitlines(keepends=True)
    fillers = Fillers(words_of(numbered(lines[1:]))) if fill else None
    planner = Planner(MASKER, fillers)
    for number, one in numbered(lines[1:]):
        planner.take(number, one)
    rewriter = Rewriter(planner.finish(), MASKER, fillers)
    done = [lines[0]]
    for number, line in enumerate(lines[1:], 2):
        done += rewriter.lines(number, line)
    for line in done[1:]:
        decode_record(line)
    return b"".join(done)


def test_a_tape_without_secrets_stays_as_it_is_byte_by_byte() -> None:
    odd = b'[1, 7, "odd", {"b":1, "a": [ ]} ]\n'
    content = tape(*exchange(), odd, record(5, 0, "note", {"text": "é"}))
    assert rewritten(content) == content


def test_a_secret_is_overwritten_told_and_the_sum_made_anew() -> None:
    content = tape(*exchange(reads=[f"a {KEY}".encode(), b" b"]))
    after = rewritten(content)
    assert payloads(after, "read") == [f"a {STARS}", " b"]
    assert payloads(after, "masked") == [{"spans": [[2, 21, NAME]]}]
    (end,) = payloads(after, "end")
    assert isinstance(end, dict)
    assert end["sha256"] == hashlib.sha256(f"a {STARS} b".encode()).hexdigest()
    assert end["bytes"] == 23
    assert rewritten(after) == after


def test_every_record_keeps_its_length_in_bytes() -> None:
    content = tape(
        *exchange(reads=[b"\xff " + KEY.encode()], request=[KEY.encode()]),
        record(1, 0, "log", {"stream": "stdout", "line": KEY, "more": 1}),
    )
    after = rewritten(content)
    kept = [line for line in after.splitlines() if b'"masked"' not in line]
    assert len(kept) == len(content.splitlines())
    assert payloads(after, "request-body") == [STARS]
    assert payloads(after, "log") == [{"stream": "stdout", "line": STARS, "more": 1}]
    assert payloads(after, "read") == [bytes_to_json(b"\xff " + STARS.encode())]


def test_messages_keep_their_lengths_and_get_right_checksums() -> None:
    whole = event("a", {"t": KEY}) + event("b", {})
    content = tape(*exchange(reads=[whole[:90], whole[90:]]))
    after = rewritten(content)
    reads = [bytes_from_json(payload) for payload in payloads(after, "read")]
    assert [len(data) for data in reads] == [90, len(whole) - 90]
    assert b"".join(reads) == event("a", {"t": STARS}) + event("b", {})
    (end,) = payloads(after, "end")
    assert isinstance(end, dict)
    assert end["sha256"] == hashlib.sha256(b"".join(reads)).hexdigest()
    assert rewritten(after) == after


def test_checksums_that_masking_broke_are_made_anew_once() -> None:
    masked = event("a", {"t": KEY}).replace(KEY.encode(), STARS.encode())
    at = masked.index(b"*")
    lines = exchange(reads=[masked])
    span = record(60, 1, "masked", {"spans": [[at, at + len(KEY), NAME]]})
    after = rewritten(tape(*lines[:4], span, *lines[4:]))
    assert payloads(after, "read") == [bytes_to_json(event("a", {"t": STARS}))]
    assert len(payloads(after, "note")) == 1
    assert rewritten(after) == after


def test_a_message_that_came_broken_stays_so() -> None:
    broken = event("a", {"t": KEY})[:-4] + b"fake"
    after = rewritten(tape(*exchange(reads=[broken])))
    (data,) = map(bytes_from_json, payloads(after, "read"))
    assert data[:-4] == event("a", {"t": STARS})[:-4]
    assert data != event("a", {"t": STARS})
    assert rewritten(after) == after


def test_a_masked_record_that_is_there_takes_the_new_spans() -> None:
    lines = exchange(reads=[f"** {KEY}".encode()])
    lines.insert(4, record(60, 1, "masked", {"spans": [[0, 2, "ab12cd34"]], "x": 1}))
    after = rewritten(tape(*lines))
    assert payloads(after, "masked") == [{"spans": [[0, 2, "ab12cd34"], [3, 22, NAME]], "x": 1}]
    assert rewritten(after) == after


def test_heads_are_cleaned_and_keep_keys_that_nobody_knows() -> None:
    lines = exchange(asked=[["Authorization", "Bearer fake"]])
    head = json.loads(lines[0])
    head[3]["future"] = {"key": KEY}
    (request,) = payloads(rewritten(tape(record(*head), *lines[1:])), "request")
    assert isinstance(request, dict)
    assert request["future"] == {"key": STARS}
    assert request["headers"][0][1]["masked"]["length"] == 11


def test_a_sum_that_did_not_fit_is_not_mended() -> None:
    lines = exchange(reads=[KEY.encode()])
    end = json.loads(lines[-1])
    end[3]["sha256"] = "0" * 64
    (payload,) = payloads(rewritten(tape(*lines[:-1], record(*end))), "end")
    assert isinstance(payload, dict)
    assert payload["sha256"] == "0" * 64
    end[3]["recorder"] = {"lost_records": 1}
    (payload,) = payloads(rewritten(tape(*lines[:-1], record(*end))), "end")
    assert isinstance(payload, dict)
    assert payload["sha256"] == hashlib.sha256(STARS.encode()).hexdigest()


def test_masked_content_is_told_once() -> None:
    frame = record(70, 1, "frame", {"side": "client", "opcode": 1, "data": "Hello"})
    content = tape(*exchange(reads=[b'{"content":"Hello"}'], request=[b'{"content":"Hi"}']), frame)
    after = rewritten(content, fill=True)
    assert payloads(after, "note") == [{"text": CONTENT}]
    assert payloads(after, "read") == ['{"content":"xxxxx"}']
    assert payloads(after, "frame") == [{"side": "client", "opcode": 1, "data": "xxxxx"}]
    assert rewritten(after, fill=True) == after
    assert payloads(rewritten(content), "frame") == [
        {"side": "client", "opcode": 1, "data": "Hello"}
    ]


def test_a_body_that_was_overwritten_as_a_whole_is_told() -> None:
    coded = exchange(reads=[b"\x1f\x8b\x08x"], answered=[["Content-Encoding", "gzip"]])
    after = rewritten(tape(*coded), fill=True)
    assert payloads(after, "read") == ["****"]
    assert len(payloads(after, "note")) == 2
    assert rewritten(after, fill=True) == after


def test_changes_after_an_end_do_not_touch_it() -> None:
    lines = exchange(reads=[b"x"])
    after = rewritten(tape(*lines, record(1, 1, "read", KEY), lines[-1]))
    assert payloads(after, "read") == ["x", STARS]
    assert len(set(map(str, payloads(after, "end")))) == 1


def test_what_was_read_of_an_exchange_goes_with_what_was_overwritten() -> None:
    kept, leaky = told(1), told(2, f"data: {KEY}\n\n".encode())
    after = rewritten(tape(*kept, *leaky))
    assert after.count(b'"parsed"') == 1
    assert kept[-1] in after
    asked = exchange(3, request=[f'{{"a":"{KEY}"}}'.encode()])
    assert b'"parsed"' not in rewritten(tape(*asked, record(9100, 3, "parsed", payload(kept[-1]))))


def payload(line: bytes) -> object:
    return json.loads(line)[3]
