from dataclasses import replace

import pytest

from deltatape.diagnose.check import check_analysis
from deltatape.diagnose.rebuild import analyse
from deltatape.model.exchange import (
    REPORTED,
    DeliveryProgress,
    EndReason,
    Exchange,
    Note,
    RequestSent,
    Source,
    Tap,
)
from deltatape.model.explanation import TimeAxis, TimelineEntry
from deltatape.model.rule_settings import DEFAULTS, Settings
from deltatape.why.explain import explain
from deltatape.why.timeline import ENDINGS, ending_of, news, time_axis, timeline
from helpers import responses_socket as ws
from helpers.chat import FINISH, calls, choice, entry
from helpers.exchanges import (
    FINISH_TEXT,
    TEXT,
    USER,
    asks,
    assistant,
    call,
    conversation,
    from_bytes,
    pasted,
    result,
    timed,
)
from helpers.taped import MS
from helpers.watched import watched
from helpers.websocket import socket


def entries(exchange: Exchange) -> tuple[TimelineEntry, ...]:
    analysis = analyse(exchange)
    return timeline(analysis, check_analysis(analysis))


def told(exchange: Exchange) -> list[tuple[int | None, str, str]]:
    return [
        (None if each.t_ns is None else each.t_ns // MS, each.source.value, each.what)
        for each in entries(exchange)
    ]


def test_a_healthy_exchange_is_a_few_lines_from_request_to_end() -> None:
    request = asks(USER, tools=[{"type": "function", "function": {"name": "get"}}])
    chunks = [(0.1 * (at + 1), each) for at, each in enumerate([TEXT, TEXT, *call(), FINISH])]
    exchange = timed(*chunks, (0.7, b"data: [DONE]\n\n"), request=request)
    assert told(exchange) == [
        (0, "app", "requests a stream from m: 1 message, 1 tool"),
        (5, "wire", "status 200 OK"),
        (100, "wire", "text: 2 events over 0.10 s"),
        (300, "wire", "call 0 opens: get (c1)"),
        (400, "wire", "call 0 arguments: 2 events over 0.10 s"),
        (600, "wire", "ends: tool_calls"),
        (700, "wire", "[DONE]"),
        (700, "recorder", "the transfer ended normally"),
    ]


def test_a_silence_divides_a_run_and_is_a_line_of_its_own() -> None:
    exchange = timed((0.1, TEXT), (1.0, b": hi\n\n"), (3.1, TEXT), (3.2, FINISH_TEXT), end_s=5)
    assert [line for line in told(exchange) if line[1] != "app"][1:] == [
        (100, "wire", "text: 1 event"),
        (100, "recorder", "silence for 3.0 s, 1 keep-alive comment"),
        (3100, "wire", "text: 1 event"),
        (3200, "wire", "ends: stop"),
        (3200, "recorder", "silence for 1.8 s"),
        (5000, "recorder", "the transfer ended normally"),
    ]


def test_the_wait_for_the_first_event_counts_from_the_request_on_its_way() -> None:
    exchange = timed((2.0, TEXT), (2.1, FINISH_TEXT))
    sent = replace(exchange, sent=RequestSent(t_ns=500 * MS, connect_ns=1, tls_ns=1, reused=False))
    assert (500, "recorder", "silence for 1.5 s") in told(sent)


def test_a_slow_way_to_the_upstream_is_a_line() -> None:
    exchange = timed((2.0, TEXT), (2.1, FINISH_TEXT))
    slow = RequestSent(t_ns=500 * MS, connect_ns=300 * MS, tls_ns=150 * MS, reused=False)
    assert told(replace(exchange, sent=slow))[2] == (
        500,
        "recorder",
        "sent upstream 0.50 s after it came, connected in 0.30 s, TLS in 0.15 s",
    )
    reused = replace(exchange, sent=replace(slow, reused=True))
    assert told(reused)[2][2].endswith("on a connection used before")


def test_a_lagging_client_has_a_line() -> None:
    exchange = timed((0.1, TEXT), (0.2, FINISH_TEXT), end_s=9)
    late = [
        DeliveryProgress(t_ns=ns * MS, bytes=count)
        for ns, count in ((150, 5), (4_000, 40), (8_000, 70))
    ]
    lines = [
        line for line in told(replace(exchange, delivered=tuple(late))) if "took byte" in line[2]
    ]
    assert lines == [
        (
            8000,
            "recorder",
            "the client took byte 70 only now, 7.9 s after it came; 1 smaller lag",
        )
    ]
    one = told(replace(exchange, delivered=(late[2],)))
    assert any(line[2].endswith("7.9 s after it came") for line in one)


def test_a_silence_that_was_watched_says_so() -> None:
    crashed = replace(timed((0.1, TEXT)), end=None, idle_ns=(5_100 * MS, 10_100 * MS))
    assert (100, "recorder", "silence for 10.0 s, watched (2 idle records)") in told(crashed)


def test_a_silence_after_tool_results_is_marked() -> None:
    request = asks(USER, assistant(("c1", "get", "{}")), result("c1"))
    marked = {each.what: each.codes for each in entries(timed(end_s=30, request=request))}
    assert marked["silence for 30.0 s, watched (5 idle records)"] == ("D004",)
    assert marked["status 200 OK"] == ("W005",)
    assert marked["the transfer ended normally"] == ("S001",)


def test_the_applications_endpoint_is_named() -> None:
    exchange = replace(timed((0.1, TEXT)), tap=Tap.APP)
    assert told(exchange)[0][2] == "app endpoint: POST /v1/chat/completions"


def test_findings_mark_the_entries_that_they_are_about() -> None:
    half = calls(entry(0, "c1", name="get", arguments='{"a":'))
    exchange = timed((0.1, TEXT), (0.2, half), (0.3, calls(entry(0, arguments="1"))), end_s=30)
    assert exchange.end
    cut = replace(exchange, end=replace(exchange.end, reason=EndReason.UPSTREAM_RESET))
    marks = {each.what: each.codes for each in entries(cut) if each.codes}
    assert marks == {
        "call 0 arguments: 1 event": ("S001", "T003"),
        "silence for 29.7 s, watched (5 idle records)": ("D001",),
        "the connection was reset by the upstream": ("W006",),
    }


def test_a_silence_before_anything_is_marked() -> None:
    marked = [each.what for each in entries(timed((20.0, TEXT), (20.1, FINISH_TEXT))) if each.codes]
    assert marked == ["silence for 20.0 s, watched (3 idle records)"]


def test_a_stall_too_short_for_a_line_of_its_own_marks_what_was_before_it() -> None:
    analysis = analyse(timed((0.1, TEXT), (0.9, FINISH_TEXT)))
    entries = timeline(analysis, check_analysis(analysis, Settings(stall_s=0.5)))
    assert [each.what for each in entries if each.codes] == ["text: 1 event"]


def test_a_finding_without_event_marks_nothing() -> None:
    exchange = from_bytes(b"", asks(USER))
    assert [each.codes for each in entries(exchange)] == [(), ()]


def test_without_times_there_are_none_and_no_ending() -> None:
    lines = entries(pasted(TEXT, FINISH_TEXT))
    assert {line.t_ns for line in lines} == {None}
    assert lines[-1].what == "[DONE]"
    assert lines[0].what == "the request was not recorded"


def test_a_request_that_cannot_be_read_is_described_by_its_path() -> None:
    unreadable = timed((0.1, TEXT))
    request = replace(unreadable.request, body=b"[")
    assert told(replace(unreadable, request=request))[0][2] == "POST /v1/chat/completions"


def test_the_recorders_remarks_have_their_place() -> None:
    exchange = replace(timed((0.1, TEXT)), notes=(Note(t_ns=50 * MS, text="sent again"),))
    assert told(exchange)[2] == (50, "recorder", "sent again")


def test_a_request_for_an_answer_names_its_tool_choice() -> None:
    request = {**asks(USER, USER), "stream": False, "tool_choice": "required", "model": None}
    request["tools"] = [{"type": "function", "function": {"name": name}} for name in ("a", "b")]
    assert told(timed((0.1, TEXT), request=request))[0][2] == (
        "requests an answer from the model: 2 messages, 2 tools, tool choice required"
    )


def test_every_ending_is_shown() -> None:
    exchange = timed((0.1, TEXT))
    assert exchange.end
    for reason in EndReason:
        end = replace(exchange.end, reason=reason, detail="detail")
        assert ending_of(replace(exchange, end=end)) == f"{ENDINGS[reason]} (detail)"
    assert ending_of(replace(exchange, end=None)) == "the tape breaks off here: the recorder died"
    assert ending_of(pasted(TEXT)) == "how it ended was not recorded"
    going_on = replace(exchange, end=None, open=True)
    assert ending_of(going_on) == "still going on when the tape was read"


def test_a_tape_that_breaks_off_ends_with_the_last_thing_it_says() -> None:
    crashed = replace(timed((0.1, TEXT)), end=None, idle_ns=(5_100 * MS,))
    assert told(crashed)[-1][0] == 5100
    silent = replace(timed(framing=None), end=None)
    assert [line[1] for line in told(silent)] == ["app", "recorder"]


def test_an_event_that_ends_with_an_error_is_shown_as_such() -> None:
    assert (200, "wire", "ends: error") in told(timed((0.1, TEXT), (0.2, {"error": {"code": 1}})))


EMPTY = choice({"role": "assistant", "content": ""})


def runs(exchange: Exchange) -> list[str]:
    """Describe the runs of events of one kind, as the timeline does."""
    entries = timeline(analyse(exchange), ())
    return [each.what for each in entries if each.event is not None]


def runs_of(*chunks: object) -> list[str]:
    return runs(pasted(*chunks, done=False))


def news_of(*chunks: object) -> tuple[str, ...]:
    return news(analyse(pasted(*chunks)))


@pytest.mark.parametrize(
    ("chunk", "phrase"),
    [
        (TEXT, "text: 1 event"),
        (EMPTY, "1 event without content"),
        (choice({}, "stop"), "ends: stop"),
        ({"error": {"code": 1}}, "ends: error"),
        ("[DONE]", "[DONE]"),
        ("[1]", "1 event without content"),
        (choice({"reasoning": "Hm"}), "reasoning: 1 event"),
    ],
)
def test_an_event_is_described_by_what_it_brings(chunk: object, phrase: str) -> None:
    assert runs_of(chunk) == [phrase]


def test_a_terminal_event_is_shown_as_such_if_it_is_json() -> None:
    body = b'data: {"type":"message_start"}\n\ndata: {"type":"message_stop"}\n\n'
    made = Exchange.from_body(body, content_type="text/event-stream", url="http://h/v1/messages")
    assert runs(made)[-1] == "the terminal event"
    assert news(analyse(made))[-1] == "the terminal event"


def test_neighbours_of_a_kind_are_shown_together_and_empty_ones_go_with_them() -> None:
    assert runs_of(EMPTY, TEXT, EMPTY, TEXT, FINISH, EMPTY) == [
        "1 event without content",
        "text: 3 events",
        "ends: tool_calls",
        "1 event without content",
    ]


def test_the_arguments_of_a_call_are_described_by_its_index() -> None:
    assert runs_of(*call(), FINISH)[:2] == ["call 0 opens: get (c1)", "call 0 arguments: 2 events"]


def test_interleaved_calls_are_one_line_that_says_so() -> None:
    one, two = call("f", '{"a":1}', 0), call("g", '{"b":2}', 1)
    chunks = [one[0], two[0], one[1], two[1], one[2], two[2]]
    assert runs_of(*chunks)[2:] == ["call 0 and call 1 arguments, interleaved: 4 events"]


def test_a_call_that_comes_whole_and_without_identity_says_so() -> None:
    assert runs_of(calls(entry(0, arguments="{}"))) == [
        "call 0 opens: no name (no id), with 2 characters of arguments"
    ]


def test_a_call_is_shown_fragment_by_fragment() -> None:
    assert news_of(TEXT, *call(), FINISH) == (
        "text: 'Hello'",
        "call 0 opens: get (c1)",
        """call 0 arguments: '{"a'""",
        "call 0 arguments: '\":1}'",
        "ends: tool_calls",
        "[DONE]",
    )


def test_an_event_may_bring_several_things() -> None:
    whole = calls(entry(0, name="get", arguments="{}"), entry(1, "c2", arguments="[]"))
    first, *_ = news_of(whole)
    assert first == (
        "call 0 opens: get (no id); call 0 arguments: '{}';"
        " call 1 opens: no name (c2); call 1 arguments: '[]'"
    )
    assert news_of(choice({"content": "bye"}, "stop"))[0] == "text: 'bye'; ends: stop"


def test_an_empty_piece_of_arguments_is_nothing_new() -> None:
    empty = calls(entry(0, arguments=""))
    assert news_of(call()[0], empty)[1].startswith("nothing new: ")


@pytest.mark.parametrize(
    ("delta", "new"),
    [
        ({"reasoning_content": "hm"}, "reasoning: 'hm'"),
        ({"refusal": "no"}, "refusal: 'no'"),
        ({"content": " \n"}, "text: ' \n'"),
    ],
)
def test_text_is_described_by_its_kind(delta: dict[str, object], new: str) -> None:
    assert news_of(choice(delta))[0] == new


def test_an_event_that_brings_nothing_is_shown() -> None:
    assert news_of(choice({"role": "assistant"}))[0].startswith('nothing new: {"')
    assert news_of({"error": {"code": 1}})[0] == "ends: error"


def test_responses_on_a_websocket_begin_with_their_requests_and_waits_for_those_are_none() -> None:
    exchange = socket(ws.question(), *ws.call(1), ws.result(1), *ws.call(2, ends=False))
    late = 60_000 * MS
    frames = tuple(
        piece._replace(t_ns=(at + 1) * 10 * MS + (late if at > 7 else 0) + (late if at > 9 else 0))
        for at, piece in enumerate(exchange.frames)
    )
    end = exchange.end and replace(exchange.end, t_ns=frames[-1].t_ns)
    moved = replace(exchange, frames=frames, end=end)
    assert told(moved) == [
        (0, "app", "GET /v1/realtime"),
        (0, "wire", "status 101 Switching Protocols"),
        (10, "app", "requests an answer from gpt-5: 1 message, 1 tool"),
        (20, "wire", "1 event without content"),
        (30, "wire", "call 0 opens: get_weather (call_1)"),
        (40, "wire", "call 0 arguments: 4 events over 0.03 s"),
        (80, "wire", "ends: completed"),
        (60_090, "app", "requests an answer from gpt-5: 1 message, 1 tool"),
        (60_100, "wire", "1 event without content"),
        (60_100, "recorder", "silence for 60.0 s"),
        (120_110, "wire", "call 0 opens: get_weather (call_2)"),
        (120_120, "wire", "call 0 arguments: 1 event"),
        (120_120, "recorder", "the upstream closed the connection early"),
    ]
    assert [entry.codes for entry in entries(moved) if "arguments: 1" in entry.what] == [("T003",)]


def test_an_imported_file_with_times_keeps_them_but_nobody_knows_when_its_head_came() -> None:
    exchange = timed((0.1, TEXT), (0.4, FINISH_TEXT))
    assert exchange.response
    head = replace(exchange.response, t_ns=0)
    imported = replace(exchange, source=Source.IMPORT, response=head, end=None)
    assert told(imported) == [
        (0, "app", "requests an answer from the model: 0 messages"),
        (None, "wire", "status 200 OK"),
        (100, "wire", "text: 1 event"),
        (400, "wire", "ends: stop"),
    ]
    axis = axis_of(imported)
    assert (axis.request_ns, axis.head_ns, axis.first_event_ns) == (0, None, 100 * MS)
    assert (axis.sent_ns, axis.end_ns) == (None, None)
    assert axis_of(from_bytes(b"", asks(USER))) == TimeAxis()


# The axis.


def axis_of(exchange: Exchange, settings: Settings = DEFAULTS) -> TimeAxis:
    analysis = analyse(exchange)
    reported = {each.code for each in check_analysis(analysis, settings)}
    return time_axis(analysis, reported, settings)


def phases_of(exchange: Exchange) -> list[tuple[str, int, int]]:
    return [(name, start // MS, end // MS) for name, start, end in axis_of(exchange).phases]


def dead_zones(
    exchange: Exchange, settings: Settings = DEFAULTS
) -> list[tuple[str, int, int, int | None, str | None]]:
    return [
        (each.phase, each.start_ns // MS, each.end_ns // MS, each.event, each.code)
        for each in axis_of(exchange, settings).dead_zones
    ]


def test_the_axis_tells_when_the_parts_of_an_exchange_happened() -> None:
    exchange = timed((0.3, TEXT), (0.4, FINISH_TEXT), (0.5, b"data: [DONE]\n\n"), end_s=0.6)
    sent = RequestSent(t_ns=200 * MS, connect_ns=1, tls_ns=1, reused=False)
    axis = axis_of(replace(exchange, sent=sent))
    assert (axis.request_ns, axis.sent_ns, axis.head_ns) == (0, 200 * MS, 5 * MS)
    assert (axis.first_event_ns, axis.end_ns) == (300 * MS, 600 * MS)
    assert axis.dead_zones == ()
    assert axis_of(replace(exchange, response=None, reads=(), end=None)).first_event_ns is None


def test_phases_follow_each_other_from_the_request_to_the_end() -> None:
    chunks = [(0.1 * (at + 1), each) for at, each in enumerate([TEXT, TEXT, *call(), FINISH])]
    exchange = timed(*chunks, (0.7, b"data: [DONE]\n\n"), end_s=0.8)
    sent = RequestSent(t_ns=50 * MS, connect_ns=1, tls_ns=1, reused=False)
    assert phases_of(replace(exchange, sent=sent)) == [
        ("sending", 0, 50),
        ("before-first", 50, 100),
        ("in-text", 100, 300),
        ("in-arguments", 300, 500),
        ("after-call", 500, 600),
        ("before-end", 600, 800),
    ]
    assert phases_of(timed((0.1, b": hi\n\n"), end_s=0.4)) == [("before-first", 0, 400)]
    crashed = replace(timed((0.1, TEXT)), end=None, idle_ns=(5_100 * MS,))
    assert phases_of(crashed) == [("before-first", 0, 100), ("in-text", 100, 5_100)]


def test_dead_zones_are_times_without_progress_with_the_finding_about_them() -> None:
    half = calls(entry(0, "c1", name="get", arguments='{"a":'))
    rest = calls(entry(0, arguments="1}"))
    exchange = timed(
        *((1.5, TEXT), (1.6, half), (3.0, b": hi\n\n"), (20.0, rest), (20.1, FINISH)),
        (22.0, b"data: [DONE]\n\n"),
    )
    assert dead_zones(exchange) == [
        ("before-first", 0, 1_500, None, None),
        ("in-arguments", 1_600, 20_000, 1, "D001"),
        ("before-end", 20_100, 22_000, 3, None),
    ]
    short = timed((0.1, TEXT), (0.9, FINISH_TEXT))
    assert dead_zones(short, Settings(stall_s=0.5)) == [("in-text", 100, 900, 0, "D001")]


def test_a_dead_zone_after_tool_results_is_theirs() -> None:
    request = asks(USER, assistant(("c1", "get", "{}")), result("c1"))
    silent = timed(end_s=30, request=request)
    assert dead_zones(silent) == [("before-first", 0, 30_000, None, "D004")]


def test_calls_that_are_not_answered_are_a_dead_zone_after_the_end() -> None:
    tape = watched(conversation((asks(USER), [*call(), FINISH])), 42.5)
    zone = explain(tape).axis.dead_zones[-1]
    assert (zone.phase, zone.start_ns, zone.end_ns) == ("unanswered", 500 * MS, 42_500 * MS)
    assert (zone.event, zone.code) == (4, "D003")
    unknown = replace(tape[0], watch=None)
    assert time_axis(analyse(unknown), (), unanswered=True).dead_zones == ()


def test_each_response_on_a_websocket_has_its_phases() -> None:
    exchange = socket(ws.question(), *ws.call(1), ws.result(1), *ws.call(2, ends=False))
    axis = axis_of(exchange)
    names = [each.name for each in axis.phases]
    assert [name for name in names if name == "before-first"] == ["before-first"] * 2
    assert axis.first_event_ns == min(each.t_ns for each in analyse(exchange).stream.events)


def test_dead_zones_on_a_websocket_name_events_of_the_whole() -> None:
    sent = [ws.question(), *ws.call(1), ws.result(1), *ws.call(2)]
    exchange = socket(*sent)
    frames = [
        piece._replace(t_ns=piece.t_ns + (3_000 * MS if place > len(sent) - 3 else 0))
        for place, piece in enumerate(exchange.frames)
    ]
    slow = replace(exchange, frames=tuple(frames))
    (zone,) = axis_of(slow).dead_zones
    new = news(analyse(slow))
    assert zone.event is not None
    assert zone.event > 6
    assert new[zone.event].startswith("call 0")


def test_messages_that_a_program_reported_have_no_silences() -> None:
    note = Note(t_ns=0, text=f"Langfuse: {REPORTED}")
    exchange = replace(timed((3.0, TEXT), (3.0, FINISH_TEXT)), notes=(note,), end=None)
    reported = replace(exchange, source=Source.IMPORT)
    assert not any("silence" in what for _, _, what in told(reported))
    assert axis_of(reported) == TimeAxis(request_ns=0)
    assert any("silence for 3.0 s" in what for _, _, what in told(replace(reported, notes=())))
