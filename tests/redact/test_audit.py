import base64
import json

import pytest

from deltatape.model.websocket import Side
from deltatape.redact.audit import Auditor, AuditReport, ExchangeOrder, ProblemKind, TapeProblem
from deltatape.tape.payload import LOSS_NOTE
from helpers.eventstream import event
from helpers.readings import parsed_exchange
from helpers.secret_tapes import KEY, STARS, exchange, numbered, record, tape
from helpers.tapes import whole_tape
from helpers.websocket import KEY as MASK
from helpers.websocket import close, socket_tape, text

CARRIED = event("chunk", {"bytes": base64.b64encode(f'{{"t":"{KEY}"}}'.encode()).decode()})


def audited(content: bytes, *, recording: bool = False) -> AuditReport:
    lines = content.splitlines(keepends=True)
    auditor = Auditor(header=lines[0])
    for _ in auditor.records(enumerate(lines[1:], 2)):
        pass
    return auditor.report(recording=recording)


def problems_of(content: bytes) -> list[tuple[ProblemKind, int, int, str]]:
    return [(p.kind, p.line, p.exchange, p.message) for p in audited(content).problems]


def test_a_healthy_tape_has_nothing_to_tell() -> None:
    assert audited(tape(*exchange(1), *exchange(2))) == AuditReport(problems=(), facts=())


def test_every_code_that_recorders_write_is_in_order() -> None:
    report = audited(whole_tape())
    assert report.problems == ()
    assert report.facts[0].startswith("#1 lost 1 record (unknown)")
    assert "#2 has no `end`: the tape ends before the exchange did" in report.facts


def test_damaged_lines_are_told_and_do_not_end_the_search() -> None:
    content = tape(b"garbage\n", b"[1]\n", record(5, 0, "note", {"text": KEY}))
    assert [(kind, line) for kind, line, _, _ in problems_of(content)] == [
        (ProblemKind.DAMAGE, 2),
        (ProblemKind.DAMAGE, 3),
        (ProblemKind.SECRET, 4),
    ]


def test_a_line_that_cannot_be_read_at_all_is_damage() -> None:
    auditor = Auditor(header=tape().splitlines(keepends=True)[0])
    auditor.damaged(9, "longer than")
    assert [(p.kind, p.line) for p in auditor.report(recording=False).problems] == [
        (ProblemKind.DAMAGE, 9)
    ]


def test_a_crash_is_a_fact_and_no_problem() -> None:
    report = audited(tape(*exchange()[:-1])[:-30])
    assert report.problems == ()
    assert [fact.split(":")[0] for fact in report.facts] == [
        "the last record is truncated",
        "#1 has no `end`",
        "no `stop`",
    ]


def test_a_recorder_that_is_at_it_is_told_instead_of_a_missing_stop() -> None:
    content = b"".join(tape(*exchange()).splitlines(keepends=True)[:-1])
    assert audited(content, recording=True).facts == ("the tape is still being recorded",)


def test_an_import_has_no_end_and_needs_none() -> None:
    content = tape(*exchange()[:-1]).replace(b'"source":"gateway"', b'"source":"import"')
    assert audited(content) == AuditReport(problems=(), facts=())


def test_what_is_lost_explains_what_is_out_of_order() -> None:
    lines = exchange(reads=[b"abc", b"def"])
    end = json.loads(lines[-1])
    end[3]["recorder"] = {"lost_records": 1, "error": "disk full"}
    report = audited(tape(*lines[:4], *lines[5:-1], record(*end)))
    assert report.problems == ()
    assert report.facts == (
        "#1 lost 1 record (disk full)",
        "#1, line 7: `end` counts 6 bytes, but the reads have 3",
    )


def test_contradictions_are_problems() -> None:
    one, two = exchange(1), exchange(2)
    assert problems_of(tape(*two, *one)) == [(ProblemKind.ORDER, 8, 1, "request 1 after request 2")]
    late = (
        tape() + record(9999, 0, "note", {"text": "x"}) + record(9999, 0, "stop", {"reason": "x"})
    )
    assert problems_of(late) == [
        (ProblemKind.ORDER, 3, 0, "`note` after the `stop` in line 2"),
        (ProblemKind.ORDER, 4, 0, "`stop` after the `stop` in line 2"),
    ]
    assert problems_of(tape(*one[1:]))[0][:3] == (ProblemKind.ORDER, 2, 1)


def test_secrets_are_told_by_place_and_kind() -> None:
    lines = exchange(
        request=[KEY.encode()],
        reads=[b"gsk_" + b"0" * 52],
        asked=[["Authorization", "Bearer fake"]],
    )
    report = audited(tape(*lines))
    assert [(p.line, p.exchange, p.message, p.span) for p in report.problems] == [
        (2, 1, "request Authorization contains an unmasked credential", None),
        (3, 1, "request body contains what looks like an API key", (0, 19)),
        (6, 1, "response body contains a Groq key", (0, 56)),
    ]
    assert KEY not in repr(report)


def test_a_secret_in_the_header_is_told() -> None:
    content = tape().replace(b"deltatape 0.1.0", KEY.encode())
    assert problems_of(content) == [
        (ProblemKind.SECRET, 1, 0, "the header's tool contains what looks like a secret: API key")
    ]


@pytest.mark.parametrize(
    ("coding", "data", "fact"),
    [("odd", b"x", "unknown coding 'odd'"), ("gzip", b"\x1f\x8b\x08", "data is cut")],
)
def test_bodies_that_nobody_can_look_into_are_named(coding: str, data: bytes, fact: str) -> None:
    content = tape(*exchange(reads=[data], answered=[["Content-Encoding", coding]]))
    (told_fact,) = audited(content).facts
    assert told_fact.startswith("#1, line 6: the response body could not be searched completely: ")
    assert fact in told_fact


def test_a_checksum_that_masking_broke_is_a_problem_and_one_that_came_so_a_fact() -> None:
    masked = event("chunk", {"t": KEY}).replace(KEY.encode(), STARS.encode())
    at = masked.index(b"*")
    wrong = event("chunk", {})[:-1] + b"?"
    span = record(60, 1, "masked", {"spans": [[at, at + len(KEY), "ab12cd34"]]})
    lines = exchange(reads=[masked + masked + wrong])
    report = audited(tape(*lines[:4], span, *lines[4:]))
    assert [(p.kind, p.line, p.exchange) for p in report.problems] == [(ProblemKind.DAMAGE, 7, 1)]
    assert report.problems[0].message.startswith("1 checksum in the response body from before")
    (fact,) = report.facts
    assert fact.startswith(
        "#1, line 7: 2 messages in the response body arrived with a wrong checksum"
    )
    assert fact.endswith(f"first at byte {len(masked)}")
    spans = [[at, at + 9, "ab12cd34"], [at + len(masked), at + len(masked) + 9, "ab12cd34"]]
    span = record(60, 1, "masked", {"spans": spans})
    (problem,) = audited(tape(*lines[:4], span, *lines[4:])).problems
    assert problem.message.startswith("2 checksums in the response body from before")
    report = audited(tape(*exchange(reads=[wrong])))
    assert report.problems == ()
    assert report.facts[0].startswith("#1, line 6: 1 message in the response body arrived with")


@pytest.mark.parametrize("body", [event("chunk", {"t": KEY}), CARRIED])
def test_a_secret_in_a_message_is_a_problem(body: bytes) -> None:
    assert [kind for kind, *_ in problems_of(tape(*exchange(reads=[body])))] == [ProblemKind.SECRET]


def test_a_form_that_recorders_do_not_write_is_a_fact() -> None:
    content = tape(b'[1, 0, "note", {"text": "x"}]\n', b'[1, 0, "idle", {}]\n')
    assert audited(content).facts == ("2 lines not in canonical form, the first is line 2",)
    assert audited(content.replace(b'{"deltatape":1', b'{"deltatape": 1')).facts == (
        "3 lines not in canonical form, the first is line 1",
    )


def test_further_problems_stand_in_the_order_of_their_lines() -> None:
    report = audited(tape(b"garbage\n", b"[1]\n"))
    found = TapeProblem(
        kind=ProblemKind.PARSED, line=2, exchange=1, message="is not read as it was"
    )
    assert [each.line for each in report.with_problems([found]).problems] == [2, 2, 3]
    assert report.with_problems([]) == report


def faults(lines: list[bytes]) -> list[tuple[int, str]]:
    order = ExchangeOrder()
    for line, one in numbered(lines):
        order.check(line, one)
    return [(fault.line, fault.message) for fault in order.faults]


WHOLE = exchange(framing="chunked", reads=[b"abc", b"de"])
"""Lines 2 to 8: request, request-body, request-end, response, two reads, end."""
END = json.loads(WHOLE[-1])[3]


def with_line(at: int, code: str, payload: object, t_ns: int = 60) -> list[bytes]:
    """`WHOLE` with another record on line `at`."""
    return [*WHOLE[: at - 2], record(t_ns, 1, code, payload), *WHOLE[at - 2 :]]


HEAD = {"status": 103, "reason": "", "http": "1.1", "headers": []}


@pytest.mark.parametrize(
    "lines",
    [
        WHOLE,
        WHOLE[:3],
        with_line(6, "boundaries", [0, 3]),
        with_line(6, "boundaries", []),
        with_line(6, "masked", {"spans": [[0, 3, "ab12cd34"]]}),
        with_line(5, "informational", HEAD, 40),
        with_line(6, "odd", 1, 0),
        with_line(6, "sent", {"connect_ns": 0, "tls_ns": 0, "reused": True}),
        with_line(6, "trailers", {"headers": []}),
        with_line(8, "idle", {}, 70),
        parsed_exchange(),
    ],
)
def test_what_the_format_allows_is_no_fault(lines: list[bytes]) -> None:
    assert faults(lines) == []


@pytest.mark.parametrize(
    ("lines", "line", "message"),
    [
        (WHOLE[1:], 2, "`request-body` before the `request`"),
        (with_line(6, "request-end", {}), 6, "a second `request-end`"),
        (with_line(6, "request-body", "x"), 6, "`request-body` after `request-end`"),
        (with_line(6, "informational", HEAD), 6, "`informational` after `response`"),
        (with_line(5, "read", "x", 40), 6, "`response` after a `read`"),
        ([*WHOLE[:3], record(50, 1, "trailers", {"headers": []})], 5, "`trailers` without a"),
        (with_line(6, "idle", {}, 5), 6, "its time, 5 ns, is earlier"),
        ([*WHOLE, record(9999, 1, "idle", {})], 9, "`idle` after the `end`"),
        (with_line(6, "boundaries", [4]), 7, "a read of 3 bytes, but the `boundaries` in line 6"),
        (with_line(8, "boundaries", [4], 70), 9, "the `boundaries` in line 8 have no `read`"),
        (
            with_line(6, "masked", {"spans": [[0, 9, "ab12cd34"]]}),
            7,
            "3 bytes, but the `masked`",
        ),
        (with_line(3, "masked", {"spans": [[0, 9, "ab12cd34"]]}, 10), 4, "7 bytes, but"),
        (with_line(6, "read", "more"), 9, "`end` counts 5 bytes, but the reads have 9"),
    ],
)
def test_what_is_out_of_order_is_told_with_its_line(
    lines: list[bytes], line: int, message: str
) -> None:
    at, told = faults(lines)[0]
    assert at == line
    assert told.startswith(message)


def test_boundaries_belong_to_chunked_responses_and_to_a_read() -> None:
    assert [line for line, _ in faults([*exchange()[:4], record(55, 1, "boundaries", [1])])] == [6]
    twice = [*with_line(6, "boundaries", [1])[:5], *with_line(6, "boundaries", [1])[4:]]
    assert faults(twice) == [(7, "the `boundaries` in line 6 have no `read`")]


def test_bytes_that_were_changed_are_told() -> None:
    lines = exchange(reads=[b"abc"])
    lines[4] = lines[4].replace(b"abc", b"abd")
    assert faults(lines) == [
        (7, "`end.sha256` does not match the reads: the body was changed after recording")
    ]


@pytest.mark.parametrize(
    ("lines", "lost"),
    [
        (WHOLE, False),
        (WHOLE[:-1], False),
        (WHOLE[1:-1], True),
        (WHOLE[1:], False),
        ([record(1, 1, "note", {"text": f"{LOSS_NOTE}disk full"}), *WHOLE[1:]], True),
        ([record(1, 1, "note", {"text": "disk full"}), *WHOLE[1:]], False),
        ([record(1, 1, "end", {**END, "recorder": {"lost_records": 2}})], True),
    ],
)
def test_a_loss_is_told_by_the_end_or_a_note_or_else_by_the_missing_head(
    lines: list[bytes], *, lost: bool
) -> None:
    order = ExchangeOrder()
    for at, each in numbered(lines):
        order.check(at, each)
    assert order.lost is lost


def test_a_request_that_is_spelled_in_another_way_is_a_fact() -> None:
    other = [line.replace(rb'"{\"a', rb'"{\"\u0061') for line in exchange()]
    assert problems_of(tape(*other)) == []
    assert audited(tape(*other)).facts == ("1 line not in canonical form, the first is line 3",)


def test_a_read_that_is_spelled_in_another_way_is_a_fact() -> None:
    lines = exchange(1, reads=[b"data: 1\n\n"])
    other = [line.replace(b"data: 1", b"d\\u0061ta: 1") for line in lines]
    assert problems_of(tape(*other)) == []
    assert audited(tape(*other)).facts == ("1 line not in canonical form, the first is line 6",)


def test_a_read_without_an_exchange_and_one_after_the_stop_are_checked() -> None:
    stray = record(5, 0, "read", f"it is {KEY}")
    late = record(9999, 1, "read", "x")
    content = tape(stray, *exchange(1)) + late
    assert [(kind, line) for kind, line, _, _ in problems_of(content)] == [
        (ProblemKind.ORDER, 2),
        (ProblemKind.SECRET, 2),
        (ProblemKind.ORDER, 10),
        (ProblemKind.ORDER, 10),
    ]


def test_the_frames_of_a_socket_are_as_its_end_says() -> None:
    sent = [(Side.CLIENT, text("a", mask=MASK)), (Side.SERVER, text("bc")), (Side.SERVER, close())]
    first, *lines = socket_tape(sent).splitlines(keepends=True)
    assert audited(b"".join((first, *lines))).problems == ()
    changed = [line.replace(b'"bc"', b'"bd"') for line in lines]
    for wrong, told in (
        (changed, "`end.frames.sha256` does not match: messages were changed after recording"),
        (
            [line for line in lines if b'"bc"' not in line],
            "`end` counts 3 with 5 bytes of `frame`, but there are 2 with 3 bytes",
        ),
        (
            [
                line.replace(b',"frames":{"records":3,"bytes":5,"sha256":', b',"x":{"y":')
                for line in lines
            ],
            "`end` counts none of `frame`, but there are 3 with 5 bytes",
        ),
    ):
        (problem,) = audited(b"".join((first, *wrong))).problems
        assert (problem.kind, problem.message) == (ProblemKind.ORDER, told)


def test_what_is_masked_in_a_frame_lies_in_it() -> None:
    sent = [(Side.SERVER, text("abc"))]
    first, *lines = socket_tape(sent).splitlines(keepends=True)
    at = next(at for at, line in enumerate(lines) if b'"frame"' in line)
    lines.insert(at, record(10, 1, "masked", {"spans": [[0, 9, "ab12cd34"]]}))
    (problem,) = audited(b"".join((first, *lines))).problems
    assert "3 bytes, but the `masked` in line" in problem.message


def test_records_in_the_wrong_place_are_told_and_make_nothing() -> None:
    lines = (
        record(1, 0, "read", "x"),
        record(1, 1, "stop", {"reason": "x"}),
        record(1, 1, "log", {"stream": "stdout", "line": "x"}),
    )
    assert problems_of(tape(*lines)) == [
        (ProblemKind.ORDER, 2, 0, "`read` of exchange 0; readers ignore it"),
        (
            ProblemKind.ORDER,
            3,
            1,
            "`stop` of an exchange; it belongs to the tape; readers ignore it",
        ),
        (
            ProblemKind.ORDER,
            4,
            1,
            "`log` of an exchange; it belongs to the tape; readers ignore it",
        ),
    ]
    assert audited(tape(*lines)).facts == ()


def test_a_piece_of_a_body_has_at_least_one_byte_but_a_frame_need_not() -> None:
    empty = "a piece of a body without any byte"
    assert problems_of(tape(*exchange(request=[b""], reads=[b"a", b""]))) == [
        (ProblemKind.ORDER, 3, 1, empty),
        (ProblemKind.ORDER, 7, 1, empty),
    ]
    assert problems_of(socket_tape([(Side.SERVER, text(""))])) == []


@pytest.mark.parametrize("instant", ["", "2026-13-21T20:36:01.000000000Z", "2026-11-21 20:36:01Z"])
def test_a_header_without_an_instant_is_told(instant: str) -> None:
    content = tape(*exchange()).replace(b"2026-11-21T20:36:01.000000000Z", instant.encode())
    (problem,) = problems_of(content)
    assert problem[:3] == (ProblemKind.ORDER, 1, 0)
    assert f'"recorded_at" is "{instant}": an instant such as' in problem[3]


def test_spans_count_also_where_decoded_ones_stand_between_them_and_their_piece() -> None:
    lines = exchange()
    lines[4:4] = [
        record(55, 1, "masked", {"spans": [[0, 90, "ab12cd34"]]}),
        record(55, 1, "masked", {"spans": [], "decoded": [[0, 90, "ab12cd34"]]}),
    ]
    orders = [each[1:] for each in problems_of(tape(*lines)) if each[0] is ProblemKind.ORDER]
    assert orders == [(8, 1, "9 bytes, but the `masked` in line 6 reaches to byte 90")]
