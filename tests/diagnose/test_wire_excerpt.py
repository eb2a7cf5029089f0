import json
from dataclasses import replace

import pytest

from deltatape.diagnose.check import check_analysis
from deltatape.diagnose.rebuild import analyse
from deltatape.diagnose.wire_excerpt import MAX_LINES, WireExcerpt, excerpt_of
from deltatape.model.exchange import Exchange
from deltatape.model.finding import Finding
from deltatape.model.stream import Span
from helpers.chat import FINISH, calls, choice, entry, request, sse
from helpers.exchanges import from_bytes, pasted

TOOL = request(get={"type": "object", "required": ["q"], "properties": {"q": {}}})


def excerpt(exchange: Exchange, code: str, **changed: object) -> WireExcerpt:
    """That of the first finding with `code`, which may be changed before."""
    analysis = analyse(exchange)
    found = next(each for each in check_analysis(analysis) if each.code == code)
    made = excerpt_of(replace(found, **changed), analysis)  # type: ignore[arg-type]
    assert made is not None
    return made


def test_the_evidence_is_marked_within_its_event() -> None:
    (line,) = excerpt(
        pasted(calls(entry(0, "c", name="get", arguments="[1]")), FINISH), "T006"
    ).lines
    assert line.marked == "[1]"
    assert line.before.startswith('data: {"choices": [{"index": 0,')
    assert line.before.endswith('"arguments": "')
    assert line.after.startswith('"}}]')


def test_evidence_in_a_json_string_is_found_there() -> None:
    wrong = '["a", "b"]'
    made = excerpt(pasted(calls(entry(0, "c", name="get", arguments=wrong)), FINISH), "T006")
    assert made.lines[0].marked == r"[\"a\", \"b\"]"
    assert made.evident


def test_evidence_that_stands_compact_on_the_wire_is_found() -> None:
    body = sse(json.dumps(choice({"content": "x"}), separators=(",", ":")), done=False)
    made = excerpt(from_bytes(body), "S001", evidence='{"content": "x"}')
    assert made.lines[0].marked == '{"content":"x"}'
    assert made.evident


@pytest.mark.parametrize("arguments", ["", '{"q": '])
def test_the_fragment_of_a_call_is_marked_where_the_evidence_is_the_event(arguments: str) -> None:
    stream = pasted(calls(entry(0, "c", name="get", arguments=arguments)), FINISH, request=TOOL)
    code = "T003" if arguments else "T001"
    whole = json.dumps(calls(entry(0, "c", name="get", arguments=arguments)))[:150] + "..."
    made = excerpt(stream, code, evidence=whole)
    assert made.lines[0].marked == json.dumps(arguments)
    assert made.evident


def test_a_call_without_a_string_of_arguments_is_marked_at_its_object() -> None:
    stream = pasted(
        calls({"index": 0, "id": "c", "function": {"name": "get", "arguments": {}}}),
        FINISH,
        request=TOOL,
    )
    analysis = analyse(stream)
    some = next(each for each in check_analysis(analysis) if each.event == 0)
    empty = replace(some, code="T001", evidence="", span=analysis.stream.events[0].place.span)
    made = excerpt_of(empty, analysis)
    assert made is not None
    assert made.lines[0].marked == "{}"


def test_else_the_data_of_the_event_is_marked_and_the_evidence_told_beside() -> None:
    made = excerpt(pasted(choice({}, "length")), "S009", evidence="nowhere")
    assert made.lines[0].marked == json.dumps(choice({}, "length"))
    assert not made.evident


def test_short_evidence_that_is_in_many_places_is_not_guessed() -> None:
    made = excerpt(pasted(choice({}, "length")), "S009", evidence='""')
    assert made.lines[0].marked == json.dumps(choice({}, "length"))
    made = excerpt(pasted(choice({}, "length")), "S009", evidence="x")
    assert made.lines[0].marked == json.dumps(choice({}, "length"))


def at(body: bytes, span: tuple[int, int] | None, event: int | None = None) -> WireExcerpt | None:
    analysis = analyse(from_bytes(body))
    finding = _finding(analysis.exchange)
    return excerpt_of(
        replace(finding, span=None if span is None else Span(*span), event=event), analysis
    )


def _finding(exchange: Exchange) -> Finding:
    found = check_analysis(analyse(pasted(choice({"content": "x"}), done=False)))[0]
    return replace(found, code="W006", evidence="", tape=exchange.tape)


def test_without_a_place_or_a_body_there_is_none() -> None:
    assert at(b"data: 1\n\n", None) is None
    assert at(b"data: 1\n\n", (3, 99)) is None
    assert at(b"", (0, 0)) is None


def test_a_place_between_lines_is_the_end_of_what_came_before() -> None:
    made = at(b"data: 1\r\n\r\n", (11, 11))
    assert made is not None
    assert made.lines == (("data: 1", "", ""),)
    made = at(b"data: 1\n\ndata: 2\n\n", (8, 9))
    assert made is not None
    assert made.lines == (("data: 1", "", ""),)


def test_lines_are_told_apart_up_to_a_limit() -> None:
    body = b"".join(b"data: %d\n" % n for n in range(MAX_LINES + 1)) + b"\n"
    made = at(body, (0, len(body)))
    assert made is not None
    assert [line.marked for line in made.lines] == ["data: 0", "data: 1", "data: 2"]
    assert made.more
    made = at(b"data: 0\r\ndata: 1\r\n\r\n", (5, 20))
    assert made is not None
    assert made.lines == (("data:", " 0", ""), ("", "data: 1", ""))
    assert not made.more


def test_it_is_small_whatever_the_body_is_and_escaped() -> None:
    body = b"data: " + b"\xff\x1b\xe2\x80\xae" * 100_000
    made = at(body, (300_000, 400_000))
    assert made is not None
    (line,) = made.lines
    assert len("".join(line)) < 4000
    assert line.marked.endswith("...")
    assert "\\xff\\x1b\\u202e" in line.before
    assert line.after == ""
    made = at(body, (300_000, 300_004))
    assert made is not None
    assert "".join(made.lines[0]).isprintable()


def test_only_the_event_that_the_place_is_of_is_narrowed() -> None:
    made = at(b"data: 1\n\ndata: 2\n\n", (0, 9), event=1)
    assert made is not None
    assert made.lines[0].marked == "data: 1"
    made = at(b"data: 1\n\ndata: 2\n\n", (0, 9), event=7)
    assert made is not None
    assert made.lines[0].marked == "data: 1"
    made = at(b"data: 1\n\ndata: 2\n\n", (0, 9), event=0)
    assert made is not None
    assert made.lines[0].marked == "1"


def test_evidence_of_binary_messages_and_lone_surrogates_fails_nothing() -> None:
    made = excerpt(pasted(choice({}, "length")), "S009", evidence="\ud800" + "[" * 3000, event=0)
    assert made.lines


def test_line_breaks_around_what_is_marked_are_no_lines_of_their_own() -> None:
    made = at(b"data: 1\n\ndata: 2\n\n", (7, 18))
    assert made is not None
    assert made.lines == (("", "data: 2", ""),)


def test_arguments_that_stand_otherwise_on_the_wire_leave_the_event_marked() -> None:
    spaced = '{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":'
    spaced += '{"name":"get","arguments":"\\u005b1]"}}]},"finish_reason":null}]}'
    for arguments in ("\\u005b1]", '{ \\"a\\": 1}, 2'):
        text = spaced.replace("\\u005b1]", arguments)
        stream = pasted(text, FINISH, request=TOOL)
        analysis = analyse(stream)
        found = next(each for each in check_analysis(analysis) if each.event == 0)
        made = excerpt_of(replace(found, evidence=text[:150] + "...", code="T006"), analysis)
        assert made is not None
        assert made.lines[0].marked in (text, f'"{arguments}"')
