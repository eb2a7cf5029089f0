import gzip
import hashlib
import json

import pytest

from deltatape.model.tape_summary import LogStream
from deltatape.model.websocket import Side
from deltatape.redact import plan as plan_module
from deltatape.redact.audit import Auditor
from deltatape.redact.fillers import Fillers
from deltatape.redact.plan import (
    CONTENT,
    BodySide,
    ContentCoding,
    ReadableBody,
    RecordedBody,
    RedactionPlan,
    RedactionPlanner,
    TapeRewriter,
    by_line,
    readable,
    repair_checksums,
    words_of,
)
from deltatape.redact.search import found_secrets
from deltatape.secret_text.escaped_text import Overwrite, overwrite
from deltatape.secret_text.search import Secret
from deltatape.tape.decode import decode_record
from deltatape.tape.fields import bytes_from_json, bytes_to_json
from deltatape.tape.tap import PIECE
from helpers.eventstream import event
from helpers.readings import parsed_exchange
from helpers.secret_tapes import KEY, STARS, TOOL, exchange, numbered, payloads, record, tape
from helpers.tapes import MASKER
from helpers.websocket import KEY as MASK
from helpers.websocket import Deflater, binary, close, frame, ping, socket_tape, text

NAME = MASKER.value(KEY.encode()).hash


def planned(lines: list[bytes], fillers: Fillers | None = None) -> RedactionPlan:
    planner = RedactionPlanner(MASKER, fillers)
    for line, one in numbered(lines):
        planner.add(line, one)
    return planner.finish()


def places(plan: RedactionPlan) -> list[tuple[str, int, int, str, object]]:
    return [(leak.kind, leak.exchange, leak.line, leak.where, leak.span) for leak in plan.leaks]


def test_a_secret_is_told_by_its_place_and_not_by_itself() -> None:
    plan = planned(exchange(reads=[b'{"a":"sk-fake', b'fakefake0000"}'], request=[KEY.encode()]))
    assert places(plan) == [
        ("API key", 1, 3, "request body", (0, 19)),
        ("API key", 1, 6, "response body", (6, 25)),
    ]
    assert KEY not in repr(plan)
    assert plan.kinds == {"API key": 2}


def test_changes_and_masked_spans_are_those_of_the_records() -> None:
    plan = planned(exchange(reads=[b'{"a":"sk-fake', b'fakefake0000"}']))
    assert plan.edits == {6: [Overwrite(6, "*******")], 7: [Overwrite(0, "************")]}
    assert plan.spans == {6: [(6, 13, NAME)], 7: [(0, 12, NAME)]}
    assert plan.changed == {1}


def test_masked_records_stand_before_the_boundaries_or_in_the_place_of_one() -> None:
    known = record(60, 1, "masked", {"spans": [[0, 1, "ab12cd34"]]})
    bounds = record(60, 1, "boundaries", [3])
    lines = exchange(reads=[KEY.encode(), KEY.encode(), KEY.encode()])
    assert set(planned([*lines[:4], known, bounds, *lines[4:]]).spans) == {6, 9, 10}
    assert set(planned([*lines[:4], bounds, known, *lines[4:]]).spans) == {7, 9, 10}
    assert set(planned([*lines[:4], bounds, *lines[4:]]).spans) == {6, 8, 9}


def test_secrets_in_heads_and_notes_are_told_with_their_record() -> None:
    lines = exchange(asked=[["X-Api-Key", "fake"]], answered=[["X-Debug", KEY]])
    plan = planned([*lines, record(1, 0, "note", {"text": KEY}), record(1, 1, "odd", KEY)])
    assert places(plan) == [
        ("unmasked credential", 1, 2, "request X-Api-Key", None),
        ("API key", 1, 5, "response X-Debug", None),
        ("API key", 0, 8, "note text", None),
        ("API key", 1, 9, "odd", None),
    ]


@pytest.mark.parametrize("stream", [LogStream.STDERR, LogStream.BOTH])
def test_log_lines_are_searched_as_one_text_per_stream(stream: LogStream) -> None:
    pem = ["-----BEGIN PRIVATE KEY-----", "fake", "-----END PRIVATE KEY-----"]
    lines = [record(at, 0, "log", {"stream": stream, "line": line}) for at, line in enumerate(pem)]
    lines.insert(1, record(0, 0, "log", {"stream": "stdout", "line": "fine"}))
    plan = planned(lines)
    assert places(plan) == [("private key", 0, 2, stream, (0, 58))]
    assert set(plan.edits) == {2, 4, 5}


def test_a_coded_body_that_holds_a_secret_is_overwritten_as_a_whole() -> None:
    data = gzip.compress(KEY.encode())
    plan = planned(exchange(reads=[data[:5], data[5:]], answered=[["Content-Encoding", "gzip"]]))
    assert [(leak.line, leak.coded) for leak in plan.leaks] == [(6, True)]
    assert {line: len(edits[0].text) for line, edits in plan.edits.items()} == {
        6: 5,
        7: len(data) - 5,
    }
    assert list(plan.remarks) == [6]
    assert "(gzip)" in plan.remarks[6]
    assert plan.spans == {}


def test_a_credential_that_the_recorder_saw_under_a_coding_is_overwritten_with_its_body() -> None:
    told = record(60, 1, "masked", {"spans": [], "decoded": [[0, 4, "ab12cd34"]]})
    both = record(60, 1, "masked", {"spans": [[0, 1, "ab12cd34"]], "decoded": [[0, 4, "ab12cd34"]]})
    data = gzip.compress(b"word")
    lines = exchange(reads=[data[:5], data[5:]], answered=[["Content-Encoding", "gzip"]])
    content = tape(*lines[:4], told, lines[4], both, *lines[5:])
    plan = planned(content.splitlines(keepends=True)[1:])
    assert places(plan) == [
        ("unmasked credential", 1, line, "response body", (0, 4)) for line in (6, 8)
    ]
    after = rewritten(content)
    assert payloads(after, "masked") == [{"spans": [[0, 1, "ab12cd34"]]}]
    assert payloads(after, "read") == ["*" * 5, "*" * (len(data) - 5)]


def test_a_coded_body_without_secrets_stays_unless_content_is_masked() -> None:
    lines = exchange(reads=[gzip.compress(b"Hello")], answered=[["Content-Encoding", "gzip"]])
    assert planned(lines).edits == {}
    assert set(planned(lines, Fillers()).edits) == {6}


CODED = [["content-encoding", "gzip"], ["Content-Length", "99"], ["X-More", "1"]]


def test_a_coded_request_is_redacted_without_its_coding() -> None:
    data = gzip.compress(f'{{"a":"{KEY}"}}'.encode())
    lines = exchange(request=[data[:5], data[5:]], asked=CODED)
    after = rewritten(tape(*lines))
    assert payloads(after, "request-body") == [f'{{"a":"{STARS}"}}']
    assert payloads(after, "masked") == [{"spans": [[6, 25, NAME]]}]
    assert payloads(after, "note") == [
        {
            "text": "the request body is written without its content-coding (gzip), since single"
            " bytes cannot be overwritten under it"
        }
    ]
    (head,) = payloads(after, "request")
    assert isinstance(head, dict)
    assert head["headers"] == [["Content-Length", "27"], ["X-More", "1"]]
    assert payloads(after, "read") == payloads(tape(*lines), "read")
    assert payloads(after, "end") == payloads(tape(*lines), "end")
    assert rewritten(after) == after


def test_credentials_that_the_recorder_saw_in_a_coded_request_are_masked_in_it() -> None:
    body = b"key word, and word; more"
    data = gzip.compress(body)
    told = record(20, 1, "masked", {"spans": [], "decoded": [[4, 8, "ab12cd34"]]})
    both = record(
        20, 1, "masked", {"spans": [[0, 1, "ab12cd34"]], "decoded": [[14, 18, "ab12cd34"]]}
    )
    lines = exchange(request=[data[:9], data[9:]], asked=CODED)
    after = rewritten(tape(lines[0], told, lines[1], both, *lines[2:]))
    assert payloads(after, "request-body") == ["key ****, and ****; more"]
    assert payloads(after, "masked") == [{"spans": [[4, 8, "ab12cd34"], [14, 18, "ab12cd34"]]}]
    assert rewritten(after) == after


def test_a_coded_request_without_secrets_stays_unless_content_is_masked() -> None:
    lines = exchange(request=[gzip.compress(b'{"content":"Hello"}')], asked=CODED)
    assert rewritten(tape(*lines)) == tape(*lines)
    after = rewritten(tape(*lines), fill=True)
    assert payloads(after, "request-body") == ['{"content":"xxxxx"}']
    assert payloads(after, "masked") == []
    empty = exchange(request=[gzip.compress(b"{}")], asked=CODED)
    assert payloads(rewritten(tape(*empty), fill=True), "request-body") == payloads(
        tape(*empty), "request-body"
    )


def test_words_of_tools_in_a_coded_request_are_kept() -> None:
    tool = json.dumps({"tools": [TOOL]}).encode()
    plain, coded = exchange(request=[tool]), exchange(request=[gzip.compress(tool)], asked=CODED)
    assert words_of(numbered(plain))
    assert words_of(numbered(coded)) == words_of(numbered(plain))
    assert words_of(numbered(coded[:2])) == words_of(numbered(plain))


def test_a_long_coded_request_becomes_several_records() -> None:
    before = "x" * (PIECE - 5) + " "
    lines = exchange(request=[gzip.compress(f"{before}{KEY}".encode())], asked=CODED)
    after = rewritten(tape(*lines))
    assert payloads(after, "request-body") == [before + STARS[:4], STARS[4:]]
    assert payloads(after, "masked") == [
        {"spans": [[PIECE - 4, PIECE, NAME]]},
        {"spans": [[0, len(KEY) - 4, NAME]]},
    ]


def test_a_coded_request_that_is_cut_is_overwritten_as_a_whole() -> None:
    data = gzip.compress(f"{KEY} ".encode() * 9)[:-6]
    after = rewritten(tape(*exchange(request=[data], asked=CODED)))
    assert payloads(after, "request-body") == ["*" * len(data)]
    (head,) = payloads(after, "request")
    assert isinstance(head, dict)
    assert head["headers"] == CODED


def test_a_body_that_nobody_can_read_is_named() -> None:
    lines = exchange(reads=[b"***"], answered=[["Content-Encoding", "odd"]])
    plan = planned(lines)
    assert [(body.exchange, body.line, body.where) for body in plan.opaque] == [
        (1, 6, "response body")
    ]
    assert plan.edits == {}
    again = planned(lines, Fillers())
    assert (again.edits, again.remarks) == ({}, {})


def test_secrets_in_messages_are_those_of_the_records_with_their_checksums() -> None:
    body = event("chunk", {"t": KEY})
    at = body.index(KEY.encode())
    cut = at + 4
    lines = exchange(reads=[body[:cut], body[cut:-2], body[-2:]])
    plan = planned(lines)
    assert places(plan) == [("API key", 1, 6, "response body", (at, at + len(KEY)))]
    assert plan.spans == {6: [(at, cut, NAME)], 7: [(0, len(KEY) - 4, NAME)]}
    starts = {6: 0, 7: cut, 8: len(body) - 2}
    edits = [
        Overwrite(start + edit.start, edit.text)
        for line, start in starts.items()
        for edit in plan.edits[line]
    ]
    assert overwrite(body, edits) == event("chunk", {"t": STARS})


def test_checksums_that_masking_broke_are_made_anew_and_others_told() -> None:
    body = event("chunk", {"t": KEY}).replace(KEY.encode(), STARS.encode())
    at = body.index(b"*")
    wrong = event("chunk", {})[:-1] + b"?"
    told = record(60, 1, "masked", {"spans": [[at, at + len(KEY), NAME]]})
    lines = exchange(reads=[body + wrong])
    plan = planned([*lines[:4], told, *lines[4:]])
    (sums,) = plan.sums
    assert (sums.line, sums.masked, sums.wrong) == (7, (len(body) - 4,), (len(body),))
    checksum = event("chunk", {"t": STARS})[-4:].decode("latin-1")
    assert plan.edits == {7: [Overwrite(len(body) - 4, checksum)]}
    assert list(plan.remarks) == [6]
    assert plan.remarks[6].startswith("1 checksum in the response body recomputed")
    assert planned(exchange(reads=[wrong])).remarks == {}


def test_content_gives_way_to_fillers_in_bodies_and_log_lines() -> None:
    lines = exchange(reads=[b'{"content":"Hi"}'], request=[b'{"user":"Ann"}'])
    log = record(1, 0, "log", {"stream": "stdout", "line": "Hello Ann"})
    plan = planned([*lines, log], Fillers())
    assert plan.edits == {
        3: [Overwrite(9, "xxx")],
        6: [Overwrite(12, "xx")],
        8: [Overwrite(0, "xxxxx xxx")],
    }
    assert plan.leaks == []


def test_what_comes_after_an_end_is_searched_as_well() -> None:
    lines = exchange()
    late = record(1, 1, "read", KEY)
    assert places(planned([*lines, late])) == [("API key", 1, 8, "response body", (0, 19))]


def test_the_vocabulary_is_that_of_all_requests() -> None:
    request = json.dumps({"tools": [TOOL]}).encode()
    lines = exchange(1, request=[request[:30], request[30:]])
    unfinished = exchange(2, request=[request.replace(b"city", b"town")])[:2]
    assert words_of(numbered([*lines, *unfinished])) >= {"city", "town", "kelvin"}
    assert words_of(numbered(exchange(request=[]))) == frozenset()


def made(
    *pieces: bytes, side: BodySide = BodySide.RESPONSE, codings: tuple[str, ...] = ()
) -> RecordedBody:
    body = RecordedBody(exchange=1, side=side, codings=codings)
    for line, piece in enumerate(pieces, 5):
        body.add(line, piece)
    return body


def searched(body: RecordedBody) -> tuple[ReadableBody, tuple[Secret, ...]]:
    found = readable(body)
    return found, found_secrets(found.plain)


def test_a_secret_that_records_cut_in_two_is_found_and_brought_back_to_them() -> None:
    body = made(b'{"k":"sk-fake', b"fake", b'fake0000"}')
    found, secrets = searched(body)
    assert (found.coded, [secret.kind for secret in secrets]) == (
        ContentCoding.NO,
        ["API key"],
    )
    edits = dict(by_line(body, secrets[0].edits))
    assert edits == {
        5: Overwrite(6, "*******"),
        6: Overwrite(0, "****"),
        7: Overwrite(0, "********"),
    }
    assert (body.at(0).line, body.at(12).line, body.at(13).line) == (5, 5, 6)


def test_lines_of_a_log_are_searched_with_their_line_feeds() -> None:
    pem = b"-----BEGIN PRIVATE KEY-----\nfake\n-----END PRIVATE KEY-----"
    body = made(*pem.split(b"\n"), side=BodySide.STDERR)
    _, (secret,) = searched(body)
    assert {line for line, _ in by_line(body, secret.edits)} == {5, 6, 7}
    assert list(body.cut(27, 28)) == []


def test_a_coded_body_is_decoded_and_searched() -> None:
    body = made(gzip.compress(f"a {KEY}".encode()), codings=("gzip",))
    found, secrets = searched(body)
    assert (found.coded, found.detail) == (ContentCoding.READ, "")
    assert [secret.spans for secret in secrets] == [((2, 21),)]


def test_a_coded_body_that_breaks_off_is_searched_as_far_as_it_goes() -> None:
    found, secrets = searched(made(gzip.compress(f"{KEY} ".encode() * 9)[:-6], codings=("gzip",)))
    assert found.coded is ContentCoding.READ
    assert secrets
    assert "cut" in found.detail


def test_nobody_can_look_into_a_body_of_unknown_coding() -> None:
    found, secrets = searched(made(KEY.encode(), codings=("rot13",)))
    assert (found.coded, secrets) == (ContentCoding.UNREADABLE, ())
    assert "unknown coding 'rot13'" in found.detail


def test_an_imported_body_that_has_lost_its_coding_is_searched_as_it_is() -> None:
    found, secrets = searched(made(f'{{"k":"{KEY}"}}'.encode(), codings=("gzip",)))
    assert (found.coded, len(secrets), found.detail) == (ContentCoding.NO, 1, "")


def test_an_imported_stream_of_messages_that_has_lost_its_coding_is_searched_as_it_is() -> None:
    found, secrets = searched(made(event("a", {"k": KEY}), codings=("gzip",)))
    assert (found.coded, len(secrets)) == (ContentCoding.NO, 1)


def test_checksums_that_masking_broke_are_mended_in_the_body() -> None:
    whole = event("a", {"k": KEY})
    at = whole.index(KEY.encode())
    masked = whole.replace(KEY.encode(), STARS.encode())
    body = RecordedBody(exchange=1, side=BodySide.RESPONSE)
    body.add(5, whole + masked[:7])
    body.add(6, masked[7:], ((at - 7, at - 7 + len(KEY), "ab12cd34"),))
    assert [edit.start for edit in repair_checksums(body).repairs] == [2 * len(whole) - 4]
    assert body.data == whole + event("a", {"k": STARS})
    assert repair_checksums(body) == ((), ())


def test_checksums_are_looked_at_only_where_the_messages_stand_in_the_body() -> None:
    broken = event("a", {"k": KEY})[:-1] + b"?"
    assert repair_checksums(made(broken)).wrong == (0,)
    assert repair_checksums(made(broken, codings=("gzip",))) == ((), ())
    assert repair_checksums(made(broken, side=BodySide.REQUEST)) == ((), ())


def rewritten(content: bytes, *, fill: bool = False) -> bytes:
    lines = content.splitlines(keepends=True)
    fillers = Fillers(words_of(numbered(lines[1:]))) if fill else None
    planner = RedactionPlanner(MASKER, fillers)
    for number, one in numbered(lines[1:]):
        planner.add(number, one)
    rewriter = TapeRewriter(planner.finish(), MASKER, fillers)
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
    kept, leaky = parsed_exchange(1), parsed_exchange(2, f"data: {KEY}\n\n".encode())
    after = rewritten(tape(*kept, *leaky))
    assert after.count(b'"parsed"') == 1
    assert kept[-1] in after
    asked = exchange(3, request=[f'{{"a":"{KEY}"}}'.encode()])
    assert b'"parsed"' not in rewritten(tape(*asked, record(9100, 3, "parsed", payload(kept[-1]))))


def payload(line: bytes) -> object:
    return json.loads(line)[3]


COMPRESSED = ((b"Sec-WebSocket-Extensions", b"permessage-deflate"),)


def data_of(content: bytes) -> list[object]:
    return [value["data"] for value in payloads(content, "frame") if isinstance(value, dict)]


def is_sound(content: bytes) -> bool:
    """Whether nothing is wrong with a tape."""
    first, *lines = content.splitlines(keepends=True)
    auditor = Auditor(header=first)
    for _ in auditor.records(enumerate(lines, 2)):
        pass
    return not auditor.report(recording=False).problems


def test_secrets_in_the_messages_of_a_socket_are_overwritten_however_they_came() -> None:
    said = f'{{"key":"{KEY}"}}'
    coded = Deflater().frame(said.encode(), mask=MASK)
    content = socket_tape(
        [
            (Side.CLIENT, text(said, mask=MASK)[:20]),
            (Side.SERVER, ping(KEY.encode()) + text("harmless")),
            (Side.CLIENT, text(said, mask=MASK)[20:]),
            (Side.SERVER, frame(1, said[:12].encode(), fin=False) + ping(b"?")),
            (Side.SERVER, frame(0, said[12:].encode())),
            (Side.CLIENT, coded[:-6]),
            (Side.CLIENT, coded[-6:] + close(mask=MASK)),
        ],
        COMPRESSED,
    )
    leaks = planned(content.splitlines(keepends=True)[1:]).leaks
    assert sorted(leak.where for leak in leaks) == [
        "message of the client",
        "message of the client",
        "message of the server",
        "message of the server",
    ]
    assert not is_sound(content)
    after = rewritten(content)
    assert KEY.encode() not in after
    assert is_sound(after)
    assert rewritten(after) == after
    told = [str(each) for each in data_of(after)]
    assert "harmless" in told
    assert STARS in told
    assert "".join(told).count("*") >= 4 * len(KEY)


def deltas(secret: str) -> list[bytes]:
    """Messages in which a text comes in pieces of four characters."""
    pieces = [secret[at : at + 4] for at in range(0, len(secret), 4)]
    return [
        b'{"type":"delta","n":%d,"delta":"%b"}' % (n, each.encode())
        for n, each in enumerate(pieces)
    ]


def test_a_secret_in_several_messages_is_overwritten_in_all_of_them() -> None:
    said = [*deltas(f"key: {KEY} "), b'{"type":"end",\n"delta":"."}']
    up, down = Deflater(), Deflater()
    content = socket_tape(
        [
            *((Side.SERVER, down.frame(each)) for each in said[:4]),
            (Side.CLIENT, text('{"delta":""}', mask=MASK) + binary(b"\0", mask=MASK)),
            *((Side.SERVER, text(each.decode())) for each in said[4:]),
            *((Side.CLIENT, up.frame(each, mask=MASK)) for each in said),
        ],
        COMPRESSED,
    )
    leaks = planned(content.splitlines(keepends=True)[1:]).leaks
    assert [(leak.where, leak.span) for leak in leaks] == [
        ("message of the client", None),
        ("message of the server", None),
    ]
    assert not is_sound(content)
    after = rewritten(content)
    assert is_sound(after)
    assert rewritten(after) == after
    told = [json.loads(str(each)) for each in data_of(after) if str(each).startswith("{")]
    whole = "".join(each["delta"] for each in told)
    assert whole.count(f"key: {STARS} .") == 2
    masked = [value for value in payloads(after, "masked") if isinstance(value, dict)]
    assert len({span[2] for value in masked for span in value["spans"]}) == 1


def test_a_secret_of_several_messages_joins_what_was_masked_in_one() -> None:
    first, *rest = deltas(f"{KEY}")
    message = first[:-1] + b',"other":"known-secret"}'
    at = message.index(b"known")
    lines = socket_tape([(Side.SERVER, text(each.decode())) for each in (message, *rest)])
    header, *records = lines.splitlines(keepends=True)
    place = next(place for place, each in enumerate(records) if b'"frame"' in each)
    spans = record(10, 1, "masked", {"spans": [[at, at + 12, "a1b2c3d4"]]})
    tape_lines = b"".join((header, *records[:place], spans, *records[place:]))
    (told, *_) = payloads(rewritten(tape_lines), "masked")
    assert isinstance(told, dict)
    assert len(told["spans"]) == 2


def test_long_messages_are_searched_by_themselves() -> None:
    long = [each[:-1] + b',"x":"' + b"y" * 20_000 + b'"}' for each in deltas(KEY)]
    content = socket_tape([(Side.SERVER, text(each.decode())) for each in long])
    assert planned(content.splitlines(keepends=True)[1:]).leaks == []


def test_messages_of_a_socket_without_an_end_are_searched_together() -> None:
    content = socket_tape([(Side.SERVER, text(each.decode())) for each in deltas(KEY)])
    lines = [each for each in content.splitlines(keepends=True)[1:] if b'"end"' not in each]
    assert len(planned(lines).leaks) == 1


def test_a_compressed_message_is_kept_as_it_was_only_where_nothing_was_overwritten() -> None:
    coded = Deflater()
    sent = [b'{"a":"b"}', f'{{"key":"{KEY}"}}'.encode(), b'{"a":"c"}']
    content = socket_tape([(Side.SERVER, coded.frame(each)) for each in sent], COMPRESSED)
    (first, second, third) = payloads(rewritten(content), "frame")
    assert (first, third) == tuple(payloads(content, "frame")[::2])
    assert second == {
        "side": "server",
        "opcode": 1,
        "rsv": 4,
        "length": len(coded.payload(b"")) - 1 + second["length"],  # type: ignore[index]
        "data": f'{{"key":"{STARS}"}}',
    }


def test_the_prose_of_messages_is_replaced_and_their_json_is_not() -> None:
    said = b'{"type":"response.create","input":"my secret plan"}'
    coded = Deflater()
    content = socket_tape(
        [(Side.CLIENT, text(said.decode(), mask=MASK)), (Side.SERVER, coded.frame(said))],
        COMPRESSED,
    )
    after = rewritten(content, fill=True)
    assert b"secret plan" not in after
    assert b'"wire"' not in after
    assert is_sound(after)
    for each in data_of(after):
        assert json.loads(str(each)).keys() == {"type", "input"}


def test_what_the_recorder_could_not_decompress_is_told_and_goes_with_the_prose() -> None:
    broken = frame(1, b"\xff" * 20, rsv=4)
    content = socket_tape([(Side.SERVER, broken)], COMPRESSED)
    (opaque,) = planned(content.splitlines(keepends=True)[1:]).opaque
    assert (opaque.where, opaque.detail) == (
        "message of the server",
        "the recorder could not decompress it",
    )
    assert b'"wire"' in rewritten(content)
    assert b'"wire"' not in rewritten(content, fill=True)


def test_the_tools_that_a_client_names_in_a_message_are_not_prose() -> None:
    asked = json.dumps({"tools": [TOOL], "input": "What shall I wear?"})
    sent = [
        (Side.CLIENT, text(asked, mask=MASK)[:99]),
        (Side.CLIENT, text(asked, mask=MASK)[99:]),
        (Side.SERVER, text('{"name":"get_weather","arguments":"celsius"}')),
    ]
    after = rewritten(socket_tape(sent), fill=True)
    assert b"get_weather" in after
    assert b"wear?" not in after


def test_the_strings_of_an_unknown_code_are_replaced_like_prose() -> None:
    line = record(70, 1, "from-the-future", {"side": "client", "data": "Hello"})
    after = rewritten(tape(*exchange()[:-1], line), fill=True)
    assert payloads(after, "from-the-future") == [{"side": "client", "data": "xxxxx"}]


def test_what_is_searched_together_is_found_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_module, "_CLEARED", 2)
    monkeypatch.setattr(plan_module, "_TOGETHER", 30)
    lines = [
        line
        for number in range(1, 60)
        for line in exchange(
            number,
            reads=[f"data: {KEY if number == 30 else number}\n\n".encode()],
            answered=[["X-Debug", KEY if number in (20, 40) else f"fine {number}"]],
            asked=[["X-Echo", "fake-credential-1"]] if number != 10 else [["X-Key", "fake"]],
        )
    ]
    found = [(leak.exchange, leak.where) for leak in planned(lines).leaks]
    assert found == [
        (10, "request X-Key"),
        (20, "response X-Debug"),
        (30, "response body"),
        (40, "response X-Debug"),
    ]
