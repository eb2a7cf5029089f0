import gzip
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from deltatape.diagnose.rebuild import analyse
from deltatape.model.exchange import (
    DeliveryProgress,
    Exchange,
    MaskedCredential,
    Note,
    RequestSent,
    Source,
)
from deltatape.model.tape_summary import LogEntry, LogStream
from deltatape.model.websocket import Side
from deltatape.render.json_document import long_document
from deltatape.render.lines import plain
from deltatape.render.show import (
    call_lines,
    calls_json,
    event_lines,
    events_json,
    exchange_object,
    log_hint,
    log_json,
    log_lines,
    read_lines,
    reads_json,
    surrounded_json,
    surrounded_object,
)
from deltatape.render.summary import what_arrived
from deltatape.why.exchange_index import index_rows
from helpers import responses_socket as ws
from helpers.chat import FINISH, calls, choice, entry, sse
from helpers.exchanges import (
    FINISH_TEXT,
    TEXT,
    USER,
    asks,
    assistant,
    call,
    conversation,
    pasted,
    result,
    timed,
)
from helpers.websocket import KEY as MASK
from helpers.websocket import Deflater, close, frame, socket, text


def test_calls_in_the_text_are_shown_with_their_kind() -> None:
    written = '<tool_call>{"name": "get", "arguments": {}}</tool_call>'
    analysis = analyse(pasted(choice({"content": written}), FINISH))
    _, row = plain(call_lines([analysis])).splitlines()
    assert row.split() == ["#1", "text", "0", "-", "get", "complete", "{}"]
    assert what_arrived(analysis) == "55 characters, 1 text call (get), finish tool_calls"


def test_calls_are_shown_with_status_and_repairs() -> None:
    again = calls(entry(0, name="get", arguments="x"))
    shown = plain(call_lines([analyse(pasted(*call(), again, FINISH))]))
    assert shown.splitlines() == [
        "exchange  call  id  name  status             arguments",
        '#1        0     c1  get   extra_data (T009)  {"a":1}x',
    ]


def test_whole_arguments_are_shown_on_one_line() -> None:
    for arguments, shown in (('{\n  "a": [\n 1]\n}', '{ "a": [ 1] }'), ('{\n "a', '{\\n "a')):
        made = pasted(calls(entry(0, "c1", name="get", arguments=arguments)), FINISH)
        assert shown in plain(call_lines([analyse(made)]))


def test_a_call_without_anything_is_shown_as_such() -> None:
    shown = plain(call_lines([analyse(pasted(calls(entry(0, "c1")), FINISH))]))
    assert shown.splitlines()[1].split() == ["#1", "0", "c1", "-", "no_name", "(no", "bytes)"]


def test_events_and_comments_are_shown_in_wire_order() -> None:
    exchange = timed((0.1, b": hi\n\n"), (0.25, sse(TEXT)))
    lines = plain(event_lines(analyse(exchange))).splitlines()
    assert lines == [
        "seconds since the request, which came 0.000 s into the tape",
        "event  seconds  bytes   what is new",
        "    :    0.100  0-4     comment: hi",
        "    0    0.250  6-95    text: 'Hello'",
        "    1    0.250  95-109  [DONE]",
    ]


def test_times_are_those_since_the_request() -> None:
    exchange = timed((0.25, sse(TEXT)))
    moved = replace(exchange, request=replace(exchange.request, t_ns=50_000_000))
    for lines in (event_lines(analyse(moved)), read_lines(moved)):
        first, _, row, *_ = plain(lines).splitlines()
        assert first.endswith("which came 0.050 s into the tape")
        assert row.split()[1] == "0.200"


def test_types_of_events_are_shown_if_they_have_any() -> None:
    lines = plain(
        event_lines(analyse(timed((0.1, b"event: ping\ndata: 1\n\n: x\n\n"))))
    ).splitlines()
    assert lines[1].split() == ["event", "seconds", "bytes", "type", "what", "is", "new"]
    assert lines[2].split() == ["0", "0.100", "0-21", "ping", "nothing", "new:", "1"]
    assert lines[3].split() == [":", "0.100", "21-24", "comment:", "x"]


def test_times_that_were_not_recorded_are_not_shown() -> None:
    exchange = pasted(TEXT)
    assert "  -  " in plain(event_lines(analyse(exchange)))
    first, _, row, *_ = plain(read_lines(exchange)).splitlines()
    assert first == "in wire order; no times were recorded"
    assert row.split()[:4] == ["0", "-", "0", "103"]


def test_times_of_an_imported_file_are_shown_if_it_has_any() -> None:
    exchange = replace(timed((0.1, b"data: 1\n\n"), (0.2, b"data: 2\n\n")), source=Source.IMPORT)
    first, _, row, *_ = plain(read_lines(exchange)).splitlines()
    assert first.startswith("seconds since the request, ")
    assert row.split()[:2] == ["0", "0.100"]
    assert [read["t_ns"] for read in json.loads(reads_json(exchange))["reads"]] == [
        *(100_000_000, 200_000_000)
    ]


def test_reads_are_shown_with_their_offsets_and_bytes_that_are_not_text() -> None:
    lines = plain(read_lines(timed((0.1, b"ab\xff"), (0.2, b"cd\n")))).splitlines()
    assert lines[2].split() == ["0", "0.100", "0", "3", "ab\\xff"]
    assert lines[3].split() == ["1", "0.200", "3", "3", "cd\\n"]


def test_nothing_is_said_to_be_nothing() -> None:
    empty = timed(framing=None)
    assert plain(call_lines([analyse(empty)])) == "no calls\n"
    assert plain(event_lines(analyse(empty))) == "no events\n"
    assert plain(read_lines(empty)) == "no reads\n"


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_everything_fits_into_the_page_and_uses_it(width: int) -> None:
    long = timed(
        (0.1, sse(choice({"content": "\x1b" * 500}), *call(arguments='{"a":"' + "b" * 500)))
    )
    for lines in (
        call_lines([analyse(long)], width),
        event_lines(analyse(long), width),
        read_lines(long, width),
        log_lines([LogEntry(t_ns=0, stream=LogStream.STDOUT, line=b"x y " * 100)], width),
    ):
        widths = [len(each) for each in plain(lines).splitlines()]
        assert max(widths) <= width
        assert max(widths) > width - 5


def test_reads_that_begin_alike_show_how_they_end() -> None:
    reads = [f'data: {{"id": "{"x" * 300}", "n": {number}}}\n\n'.encode() for number in (1, 2)]
    _, _, one, two = plain(read_lines(timed(*[(0.1, each) for each in reads]), 60)).splitlines()
    assert one.endswith(r'"n": 1}\n\n')
    assert two.endswith(r'"n": 2}\n\n')
    assert "  data: {" in one
    assert "..." in one


def test_what_the_app_printed_is_shown_with_time_and_stream_and_nothing_of_it_acts() -> None:
    entries = [
        LogEntry(t_ns=1_500_000_000, stream=LogStream.STDOUT, line=b"hello\r"),
        LogEntry(
            t_ns=2_000_000_000, stream=LogStream.STDERR, line=b"\x1b[2J \xff " + b"word " * 20
        ),
    ]
    assert plain(log_lines(entries, 60)).splitlines() == [
        "seconds since the tape began, stream, text",
        "    1.500  stdout  hello",
        r"    2.000  stderr  \x1b[2J \xff word word word word word",
        "                   word word word word word word word word",
        "                   word word word word word word word",
    ]
    assert plain(log_lines([])).startswith("no log")
    assert plain([log_hint(3, "x.tape")]) == (
        "3 lines that the app printed: deltatape show x.tape --log\n"
    )


def test_calls_have_exactly_the_keys_of_the_contract() -> None:
    document = json.loads(calls_json([analyse(pasted(*call(), FINISH))]))
    assert document["calls"] == [
        {
            "exchange": 1,
            "dialect": "openai-chat",
            "choice": 0,
            "index": 0,
            "wire_index": 0,
            "id": "c1",
            "name": "get",
            "kind": "function",
            "arguments": '{"a":1}',
            "arguments_raw": '{"a":1}',
            "status": "complete",
            "repairs": [],
            "start_event": 0,
            "fragments": [
                {"event": 1, "text": '{"a', "range": [0, 3]},
                {"event": 2, "text": '":1}', "range": [3, 7]},
            ],
        }
    ]
    assert (document["server_calls"], document["text_calls"]) == ([], [])


def test_calls_in_the_text_are_told_apart_with_their_notation() -> None:
    written = '<tool_call>{"name": "get", "arguments": {}}</tool_call>'
    document = json.loads(calls_json([analyse(pasted(choice({"content": written}), FINISH))]))
    assert document["calls"] == []
    (call,) = document["text_calls"]
    assert (call["name"], call["kind"]) == ("get", "text")
    assert (call["family"], call["channel"], call["closed"]) == ("hermes", "text", True)


def pieced(*pieces: str) -> list[dict[str, object]]:
    """A call whose arguments come in these pieces."""
    more = [calls(entry(0, arguments=piece)) for piece in pieces]
    return [calls(entry(0, "c1", name="get")), *more]


def on_lines(exchange: Exchange) -> Exchange:
    """The same with its reads on the tape lines from 5 on."""
    reads = tuple(read._replace(line=line) for line, read in enumerate(exchange.reads, 5))
    return replace(exchange, reads=reads)


def events(exchange: Exchange) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(events_json(analyse(exchange)))["events"]
    return found


def test_events_carry_place_and_time_where_there_is_one() -> None:
    (event,) = events(timed((0.1, TEXT)))
    assert (event["event"], event["type"], event["t_ns"]) == (0, "message", 100_000_000)
    assert json.loads(str(event["data"])) == TEXT
    assert events(pasted(TEXT))[0]["t_ns"] is None


def test_events_tell_what_they_bring_and_where_it_stands_in_the_arguments() -> None:
    exchange = pasted(TEXT, *pieced('{"a":', '"\u00e9"}'), FINISH)
    brings = [event["brings"] for event in events(exchange)]
    of_call = {"list": "calls", "choice": 0, "index": 0}
    assert brings == [
        [{"what": "text", "text": "Hello", "call": None, "range": None}],
        [{"what": "open", "text": "get", "call": of_call, "range": None}],
        [{"what": "arguments", "text": '{"a":', "call": of_call, "range": [0, 5]}],
        [{"what": "arguments", "text": '"\u00e9"}', "call": of_call, "range": [5, 9]}],
        [{"what": "finish", "text": "tool_calls", "call": None, "range": None}],
        [{"what": "end", "text": "finish_reason and [DONE]", "call": None, "range": None}],
    ]


def test_events_name_the_reads_that_begin_and_complete_them() -> None:
    body = sse(TEXT)
    exchange = on_lines(timed((0.1, body[:9]), (0.2, body[9:-3]), (0.3, body[-3:])))
    found = [(event["first_read"], event["read"], event["line"]) for event in events(exchange)]
    assert found == [(0, 1, 6), (1, 2, 7)]
    assert events(pasted(TEXT))[0]["read"] is None


def test_the_first_read_of_an_event_is_not_known_in_a_coded_body() -> None:
    exchange = on_lines(timed((0.1, gzip.compress(sse(TEXT)))))
    assert exchange.response is not None
    head = replace(exchange.response, headers=((b"content-encoding", b"gzip"),))
    event, _ = events(replace(exchange, response=head))
    assert (event["first_read"], event["read"]) == (None, 0)
    assert json.loads(event["data"]) == TEXT


def test_a_secret_that_spans_fragments_stands_in_none_of_them() -> None:
    key = "sk-proj-" + "Zq3x" * 8
    pieces = ('{"k":"', key[:12], key[12:], '\u00e9"}')
    analysis = analyse(pasted(*pieced(*pieces), FINISH))
    (found,) = json.loads(calls_json([analysis]))["calls"]
    raw, fragments = found["arguments_raw"], found["fragments"]
    assert "Zq3x" not in raw
    assert [each["text"] for each in fragments] == [
        raw[slice(*each["range"])] for each in fragments
    ]
    assert "".join(each["text"] for each in fragments) == raw
    brought = [one["text"] for event in events(analysis.exchange) for one in event["brings"]]
    assert not any("Zq3x" in text for text in brought)


def test_reads_are_text_or_hexadecimal() -> None:
    reads = json.loads(reads_json(timed((0.1, b"a"), (0.2, b"\xff"))))["reads"]
    assert reads == [
        {"t_ns": 100_000_000, "line": None, "span": [0, 1], "bytes": 1, "data": "a"},
        {"t_ns": 200_000_000, "line": None, "span": [1, 2], "bytes": 1, "hex": "ff"},
    ]
    assert json.loads(reads_json(pasted(TEXT)))["reads"][0]["t_ns"] is None


def test_lines_of_the_log_are_json_with_their_stream() -> None:
    entries = (
        LogEntry(t_ns=5, stream=LogStream.STDOUT, line=b"ready"),
        LogEntry(t_ns=6, stream=LogStream.STDERR, line=b"\xff"),
    )
    assert json.loads(log_json(entries))["log"] == [
        {"t_ns": 5, "stream": "stdout", "line": "ready"},
        {"t_ns": 6, "stream": "stderr", "hex": "ff"},
    ]


ENDING = "1011 internal error: boom\\x1b[2J"
COMPRESSED = ((b"Sec-WebSocket-Extensions", b"permessage-deflate"),)


def test_the_frames_of_a_socket_are_shown_with_their_sides_and_how_it_ended() -> None:
    exchange = socket(
        (Side.CLIENT, text('{"n":1}', mask=MASK)),
        (Side.SERVER, frame(2, b"\xff\x00abc")[:5]),
        (Side.SERVER, frame(2, b"\xff\x00abc")[5:] + Deflater().frame(b"compressed" * 2)),
        (Side.SERVER, frame(0, b"x", fin=False) + frame(11, b"?") + close(1011, "boom\x1b[2J")),
        (Side.SERVER, b"\x81"),
        headers=COMPRESSED,
    )
    shown = plain(read_lines(exchange)).splitlines()
    assert [re.split(r" {2,}", row.strip()) for row in shown[2:10]] == [
        ["0", "0.000", "client", "text", "7", '{"n":1}'],
        ["1", "0.000", "server", "binary...", "3", "\\xff\\x00a"],
        ["2", "0.000", "server", "...binary", "2", "bc"],
        ["3", "0.000", "server", "text", "15", "compressed" * 2],
        ["4", "0.000", "server", "continuation...", "1", "x"],
        ["5", "0.000", "server", "opcode 11", "1", "?"],
        ["6", "0.000", "server", "close", "10", "1011 internal error: boom\\x1b[2J"],
        ["7", "0.000", "server", "no frame", "1", "\\x81"],
    ]
    assert shown[10:] == [
        "0.000 s: the server sent a continuation of no message",
        "0.000 s: the server sent a frame with the reserved opcode 11",
        "0.000 s: the server sent bytes that are no frame",
        f"WebSocket, 1 message up and 3 down, closed by the server, {ENDING}",
    ]


def test_a_socket_on_which_nothing_went_has_no_frames() -> None:
    assert plain(read_lines(socket())) == "no frames\n"


def test_the_texts_of_the_server_are_events() -> None:
    exchange = socket(
        (Side.CLIENT, text("a", mask=MASK)),
        (Side.SERVER, text("bc") + frame(2, b"\xff") + text("d") + text("cut")[:3]),
    )
    events = json.loads(events_json(analyse(exchange)))["events"]
    assert [(event["data"], event["span"], event["t_ns"]) for event in events] == [
        ("bc", [0, 2], 20),
        ("d", [3, 4], 20),
    ]
    assert what_arrived(analyse(exchange)) == "WebSocket, 1 message up and 4 down, not closed"


def test_the_frames_of_a_socket_are_json_with_their_sides() -> None:
    exchange = socket((Side.CLIENT, text("a", mask=MASK)), (Side.SERVER, frame(2, b"\xff")))
    assert json.loads(reads_json(exchange))["reads"] == [
        {"t_ns": 10, "line": 5, "bytes": 1, "side": "client", "frame": "text", "data": "a"},
        {"t_ns": 20, "line": 6, "bytes": 1, "side": "server", "frame": "binary", "hex": "ff"},
    ]


def test_responses_on_a_websocket_are_shown_one_after_the_other() -> None:
    sent = [ws.question(), *ws.call(1), ws.result(1), *ws.call(2, ends=False)]
    analysis = analyse(socket(*sent))
    new = [event["new"] for event in json.loads(events_json(analysis))["events"]]
    assert new[1:3] == ["call 0 opens: get_weather (call_1)", "call 0 arguments: '{\"city\"'"]
    assert new[6:10] == [
        "ends: completed; the terminal event",
        new[7],
        "call 0 opens: get_weather (call_2)",
        "call 0 arguments: '{\"city\"'",
    ]
    assert what_arrived(analysis) == (
        "2 calls (get_weather, get_weather), WebSocket, 2 messages up and 10 down, not closed"
    )
    places = [
        (call["choice"], call["start_event"], call["fragments"][0]["event"])
        for call in json.loads(calls_json([analysis]))["calls"]
    ]
    assert places == [(0, 1, 2), (1, 8, 9)]
    assert [row.split()[2:5] for row in plain(call_lines([analysis])).splitlines()[1:]] == [
        ["call_1", "get_weather", "complete"],
        ["call_2", "get_weather", "truncated"],
    ]


# The whole of an exchange.


def whole(exchange: Exchange, log: Sequence[LogEntry] = ()) -> dict[str, Any]:
    analysis = analyse(exchange)
    (row,) = index_rows([exchange])
    found: dict[str, Any] = json.loads(long_document(**exchange_object(analysis, row, log)))
    return found


def test_an_exchange_is_shown_with_what_a_later_request_says_about_it() -> None:
    lost = asks(USER, assistant(text="ok"), result("c1"))
    exchanges = conversation((asks(USER), [*call(), FINISH]), (lost, [TEXT, FINISH_TEXT]))
    shown = json.loads(surrounded_json(exchanges, 1))
    assert shown["exchange"]["codes"] == ["C001", "C004"]
    assert shown == json.loads(long_document(**surrounded_object(exchanges, 1)))
    assert json.loads(surrounded_json(exchanges[:1], 1))["exchange"]["codes"] == []


def test_the_whole_of_an_exchange_has_what_its_parts_have() -> None:
    exchange = on_lines(timed((0.1, TEXT), *((0.2, each) for each in call()), (0.3, FINISH)))
    analysis = analyse(exchange)
    log = [LogEntry(t_ns=5, stream=LogStream.STDOUT, line=b"ready")]
    document = whole(exchange, log)
    for part in (
        calls_json([analysis]),
        events_json(analysis),
        reads_json(exchange),
        log_json(log),
    ):
        assert json.loads(part).items() <= document.items()
    assert (document["frames"], document["turns"], document["delivered"]) == ([], [], [])
    assert document["axis"]["first_event_ns"] == 100_000_000
    assert document["recording"]["ended"] == "the transfer ended normally"
    assert (document["exchange"]["exchange"], document["exchange"]["calls"]) == (1, 1)


def test_every_character_of_the_text_has_its_event() -> None:
    thought = choice({"reasoning_content": "hm\u00e9"})
    pieces = [thought, TEXT, choice({"content": " w\u00f6rld"}), choice({"content": "?"}), FINISH]
    assert whole(pasted(*pieces))["text"] == [
        {
            "choice": 0,
            "channel": "text",
            "text": "Hello w\u00f6rld?",
            "fragments": [
                {"event": 1, "text": "Hello", "range": [0, 5]},
                {"event": 2, "text": " w\u00f6rld", "range": [5, 11]},
                {"event": 3, "text": "?", "range": [11, 12]},
            ],
        },
        {
            "choice": 0,
            "channel": "reasoning",
            "text": "hm\u00e9",
            "fragments": [{"event": 0, "text": "hm\u00e9", "range": [0, 3]}],
        },
    ]


def test_a_secret_that_spans_events_stands_in_none_of_the_texts() -> None:
    key = "sk-proj-" + "Zq3x" * 8
    said = [choice({"content": each}) for each in ("Use ", key[:12], key[12:], " \u00e9.")]
    (found,) = whole(pasted(*said, FINISH_TEXT))["text"]
    assert "Zq3x" not in json.dumps(found)
    assert "".join(each["text"] for each in found["fragments"]) == found["text"]


def test_the_request_is_shown_with_what_it_asks() -> None:
    history = [USER, assistant(("c1", "get", '{"a":1}')), result("c1", "rain")]
    tool = {"type": "function", "function": {"name": "get", "parameters": {"type": "object"}}}
    request = whole(pasted(TEXT, request=asks(*history, tools=[tool], tool_choice="auto")))[
        "request"
    ]
    assert (request["model"], request["stream"], request["tool_choice"]) == ("m", True, "auto")
    assert request["tools"] == [{"name": "get", "parameters": {"type": "object"}}]
    asked, repeated, answered = request["messages"]
    assert (asked["role"], asked["text"]) == ("user", "What is the weather?")
    assert repeated["calls"] == [{"id": "c1", "name": "get", "arguments": '{"a":1}'}]
    assert (answered["text"], answered["call_id"]) == ("rain", "c1")
    assert json.loads(request["body"])["tool_choice"] == "auto"
    assert request["connection"] is None


def with_request(exchange: Exchange, **changed: Any) -> dict[str, Any]:
    request = replace(exchange.request, **changed)
    found: dict[str, Any] = whole(replace(exchange, request=request))["request"]
    return found


def test_the_body_of_a_request_is_shown_without_its_content_coding() -> None:
    body = json.dumps(asks(USER)).encode()
    coded = gzip.compress(body)
    headers = ((b"Content-Encoding", b"gzip"),)
    request = with_request(timed((0.1, TEXT)), body=coded, headers=headers)
    assert (request["body"], request["bytes"]) == (body.decode(), len(coded))
    assert request["fault"] is None
    broken = with_request(timed((0.1, TEXT)), body=b"\xff\x00", headers=headers)
    assert broken["hex"] == "ff00"
    assert "body" not in broken
    assert broken["fault"]


def test_credentials_are_asterisks_also_where_a_file_still_has_them() -> None:
    request = with_request(
        timed((0.1, TEXT)),
        target=(b"/v1/x?key=", MaskedCredential(length=4, hash="00000000"), b"&api_key=visible1"),
        headers=(
            (b"Authorization", MaskedCredential(length=9, hash="00000000")),
            (b"X-Api-Key", b"visible2"),
            (b"Accept", b"*/*"),
        ),
        upstream="http://user:visible3@127.0.0.1",
    )
    assert request["target"] == "/v1/x?key=****&api_key=********"
    assert [(each["value"], each["masked"]) for each in request["headers"]] == [
        *(("*********", True), ("********", True), ("*/*", False))
    ]
    assert request["upstream"] == "http://127.0.0.1"


def test_how_a_request_got_upstream_is_shown() -> None:
    sent = RequestSent(t_ns=9, connect_ns=3, tls_ns=4, reused=False)
    request = whole(replace(timed((0.1, TEXT)), sent=sent))["request"]
    assert request["connection"] == {"reused": False, "connect_ns": 3, "tls_ns": 4}


def test_an_exchange_without_anything_is_shown_as_such() -> None:
    silent = whole(replace(timed(framing=None), end=None, open=True))
    assert (silent["response"], silent["text"], silent["events"]) == (None, [], [])
    assert silent["exchange"]["open"]
    assert silent["recording"]["ended"] == "still going on when the tape was read"
    imported = whole(pasted(TEXT))
    assert imported["axis"]["phases"] == []
    assert imported["recording"]["recorded_at"] is None
    noted = replace(timed((0.1, TEXT)), notes=(Note(t_ns=7, text="odd"),))
    assert whole(noted)["recording"]["notes"] == [{"t_ns": 7, "text": "odd"}]


def test_a_slow_client_is_shown_beside_the_reads_that_it_took() -> None:
    late = [DeliveryProgress(t_ns=ns, bytes=size) for ns, size in ((500, 0), (900, 12), (950, 99))]
    reads = ((0.0000001, b"data: 1\n\n"), (0.0000002, b"data: 2\n\n"))
    exchange = replace(timed(*reads), delivered=tuple(late))
    first, second, beyond = whole(exchange)["delivered"]
    times = [read.t_ns for read in exchange.reads]
    assert first == {"t_ns": 500, "bytes": 0, "read": 0, "late_ns": 500 - times[0]}
    assert second == {"t_ns": 900, "bytes": 12, "read": 1, "late_ns": 900 - times[1]}
    assert beyond == {"t_ns": 950, "bytes": 99, "read": None, "late_ns": None}


def test_a_websocket_is_shown_with_its_frames_and_the_requests_on_it() -> None:
    exchange = socket(ws.question(), *ws.call(1), ws.result(1), *ws.call(2))
    document = whole(exchange)
    assert document["reads"] == []
    assert [each["side"] for each in document["frames"]].count("client") == 2
    first, second = document["turns"]
    assert (first["choice"], first["events"][0]) == (0, 0)
    assert (second["choice"], second["events"][0]) == (1, 7)
    assert [each["choice"] for each in document["calls"]] == [0, 1]
    assert second["messages"][-1]["call_id"] == "call_1"
    assert first["t_ns"] == exchange.frames[0].t_ns
