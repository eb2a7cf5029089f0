import gzip
import json

import pytest

from deltatape.model.log import LogStream
from deltatape.redact.fillers import Fillers
from deltatape.redact.layers import Edit, apply
from deltatape.redact.plan import Plan, Planner, words_of
from helpers.eventstream import event
from helpers.planted import KEY, STARS, TOOL, exchange, numbered, record
from helpers.tapes import MASKER

NAME = MASKER.value(KEY.encode()).hash


def planned(lines: list[bytes], fillers: Fillers | None = None) -> Plan:
    planner = Planner(MASKER, fillers)
    for line, one in numbered(lines):
        planner.take(line, one)
    return planner.finish()


def places(plan: Plan) -> list[tuple[str, int, int, str, object]]:
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
    assert plan.edits == {6: [Edit(6, "*******")], 7: [Edit(0, "************")]}
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


def test_a_coded_body_without_secrets_stays_unless_content_is_masked() -> None:
    lines = exchange(reads=[gzip.compress(b"Hello")], answered=[["Content-Encoding", "gzip"]])
    assert planned(lines).edits == {}
    assert set(planned(lines, Fillers()).edits) == {6}


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
    data = bytearray(body)
    for line, start in ((6, 0), (7, cut), (8, len(body) - 2)):
        apply(data, [Edit(start + edit.start, edit.text) for edit in plan.edits[line]])
    assert data == event("chunk", {"t": STARS})


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
    assert plan.edits == {7: [Edit(len(body) - 4, checksum)]}
    assert list(plan.remarks) == [6]
    assert plan.remarks[6].startswith("1 checksum of the response body made anew")
    assert planned(exchange(reads=[wrong])).remarks == {}


def test_content_gives_way_to_fillers_in_bodies_and_log_lines() -> None:
    lines = exchange(reads=[b'{"content":"Hi"}'], request=[b'{"user":"Ann"}'])
    log = record(1, 0, "log", {"stream": "stdout", "line": "Hello Ann"})
    plan = planned([*lines, log], Fillers())
    assert plan.edits == {3: [Edit(9, "xxx")], 6: [Edit(12, "xx")], 8: [Edit(0, "xxxxx xxx")]}
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
