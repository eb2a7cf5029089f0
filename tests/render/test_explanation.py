import json
from dataclasses import replace
from typing import Any

import pytest

from deltatape.diagnose.rebuild import analyse
from deltatape.model.exchange import EndReason, Exchange, Source
from deltatape.model.explanation import Explanation
from deltatape.model.request_summary import RepeatedCall
from deltatape.model.suspect import ClientReading, ClientTrial, Suspect
from deltatape.model.tape_summary import LogEntry, LogStream, TapeContext
from deltatape.render.explanation import (
    client_outcome,
    explanation_json,
    explanation_lines,
    next_step,
    short_lines,
    suspect_fit,
    suspect_lines,
    tried_lines,
)
from deltatape.render.lines import WIDTH, plain
from deltatape.render.show import calls_json
from deltatape.why.explain import explain
from helpers.chat import FINISH, calls, choice, entry
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
from helpers.explanations import LATE, SINGLE, THROWN, accused, lost_arguments, suspect, tried
from helpers.watched import watched

TOOLS = [{"type": "function", "function": {"name": "get"}}]


BROKEN_APP = """\
x.tape#1  POST /v1/chat/completions  openai-chat  m
status 200, 6 events in 6 reads, 608 B, 600 ms
from https://api.openai.com, tape begun 2026-11-21T20:36:01Z

TIMELINE  seconds since the request, which came 0.000 s into the tape
     0.000  app   o requests a stream from m: 1 message, 1 tool, tool choice auto
     0.005  wire  | status 200 OK
     0.100  wire  | text: 1 event
     0.200  wire  | call 0 opens: get (c1)
     0.300  wire  | call 0 arguments: 2 events over 0.10 s
     0.500  wire  | ends: tool_calls
     0.600  wire  | [DONE]
     0.600        : the transfer ended normally
    10.000  app   o #2 repeats call 0 differently: get (no arguments)  <- C002
    10.000  app   o #2 sends the result of c1: Unexpected end of JSON input  <- C009

REQUESTED a stream to 1 message; tools: get; tool choice: auto
ARRIVED   5 characters of text; finish reason: tool_calls; the transfer ended normally
          call  0  c1  get  complete  {"a":1}
REPEATED  by request #2
          call 0  c1  get  DIFFERS  (no bytes)
          result of c1: Unexpected end of JSON input

FINDINGS  2 errors
          elsewhere on this tape: C011 tools-removed-from-history on #2

error C002 arguments-changed-by-app  app, proven  #2, line 200, at 10.000 s
    message: see the verdict
    evidence: (no arguments)
    delivered in #1, line 105, bytes 89 to 515
    sent by the app in #2, line 200, bytes 223 to 225
    excluded: old or long arguments were left out to save space: it is the latest call, and has 7
    characters
    excluded: somebody edited the arguments, or the framework validated them: an edit does not turn
    an object into empty text, which is not JSON

error C009 app-error-in-history  app, proven  #2, line 200, at 10.000 s
    the app reports an error of V8's JSON.parse, 'Unexpected end of JSON input', but call 0 (get,
    c1) of #1 was delivered complete: '{"a":1}'; the app turned it into ''
    excluded: the tool failed to parse something else: the request does not repeat the call with the
    delivered arguments

more: deltatape why CODE   (C002, C009)

SUSPECT   arguments-of-first-piece-only  explains what the app did (arguments=first-only)
          or executes-on-name, fragment-parsed-alone, each-event-is-a-call, which would do the same:
          deltatape why NAME

VERDICT   app, proven  (C002)
          The stream was correct; the mistake is in the app: call 0 (get, c1) of #1 was delivered
          with '{"a":1}', but the app repeats '' (first difference at $.a): the repeated arguments
          are empty. Also found: C009. The app behaves like arguments-of-first-piece-only (or one of
          3 that do the same): it keeps only the arguments of the first fragment; it throws
          "Unexpected end of JSON input".

FIX       Append the arguments of every fragment.
NEXT      write a failing test:
          deltatape why x.tape#1 --fix DIR
"""


def text(explanation: Explanation, width: int = WIDTH) -> str:
    return plain(explanation_lines(explanation, width))


def broken_app() -> list[Exchange]:
    after = asks(USER, assistant(("c1", "get", "")), result("c1", "Unexpected end of JSON input"))
    request = asks(USER, tools=TOOLS, tool_choice="auto")
    return conversation((request, [TEXT, *call(), FINISH]), (after, [TEXT, FINISH_TEXT]))


def test_the_whole_story_of_an_application_that_lost_the_arguments() -> None:
    assert text(explain(broken_app())) == BROKEN_APP


def test_a_healthy_exchange_says_what_is_not_provable() -> None:
    shown = text(explain(broken_app()[:1]))
    assert "VERDICT   not provable\n" in shown
    assert "REPEATED  no later request on the tape repeats this reply\n" in shown
    assert "\nFINDINGS  none\n" in shown


def test_what_is_unknown_is_said_to_be() -> None:
    shown = text(explain([pasted(choice({"reasoning_content": "hm"}), TEXT, FINISH_TEXT)]))
    assert "REQUESTED the request is not on the tape, or cannot be read\n" in shown
    assert "TIMELINE  in wire order; no times were recorded\n" in shown
    assert "            wire  | reasoning: 1 event\n" in shown
    assert "            wire  | text: 1 event\n" in shown
    assert "5 characters of text; 2 characters of reasoning; finish reason: stop" in shown
    assert text(explain([timed(framing=None)])).splitlines()[1].startswith("no response, 0 events")


def test_errors_and_refusals_are_shown() -> None:
    chunks = [choice({"refusal": "I cannot"}), {"error": {"message": "overloaded"}}]
    assert "ARRIVED   error: overloaded; refusal: I cannot; finish reason: none" in text(
        explain([pasted(*chunks)])
    )


def test_lost_foreign_and_faithful_calls_are_told_apart() -> None:
    two = [*call("get"), *call("put", '{"b":2}', 1), FINISH]
    after = asks(
        USER, assistant(("c2", "put", '{"b":2}'), (None, "x", "{}"), (None, None, "")), USER
    )
    lines = text(explain(conversation((asks(USER), two), (after, [])))).splitlines()
    rows = [line.split() for line in lines if line.startswith("          ")]
    assert ["call", "0", "-", "-", "missing"] in rows
    assert ["call", "1", "c2", "put", "as", "delivered", '{"b":2}'] in rows
    assert ["not", "delivered", "-", "x", "DIFFERS", "{}"] in rows
    assert ["not", "delivered", "-", "-", "DIFFERS", "(no", "bytes)"] in rows


def test_a_timeline_that_fills_the_screen_is_shown_from_both_ends() -> None:
    restless = [choice({"content": "a"}), choice({}, "stop")] * 60
    lines = text(explain([pasted(*restless)])).splitlines()
    assert "            ... 43 more lines ..." in lines
    start = lines.index("TIMELINE  in wire order; no times were recorded")
    assert lines[start + 82] == ""


def test_the_log_has_its_place_on_the_axis_and_nothing_of_it_acts() -> None:
    tape = watched(conversation((asks(USER), [*call(), FINISH])), 42.5)
    line = LogEntry(t_ns=600_000_000, stream=LogStream.STDERR, line=b"\x1b[2Jlost: \xe2\x80\xae")
    lines = text(explain(tape, context=TapeContext(logs=(line,)))).splitlines()
    shown = "     0.600  log   > stderr: \\x1b[2Jlost: \\u202e"
    assert shown in lines
    silence = "     0.500        : watched for 42.0 s: no request of this conversation  <- D003"
    assert silence in lines
    assert "    42.500        : the recorder stopped: interrupted" in lines


def test_what_is_found_elsewhere_is_one_line() -> None:
    bad = (asks(), [calls(entry(0, "c1", name="get", arguments="[1]")), FINISH, FINISH_TEXT])
    healthy = (asks(USER), [TEXT, FINISH_TEXT])
    shown = text(explain(conversation(healthy, bad), 1))
    told = "elsewhere on this tape: T006 arguments-not-an-object on #2\n"
    assert f"FINDINGS  none\n          {told}" in shown
    shown = text(explain(conversation(*[bad] * 9), 1))
    assert "arguments-not-an-object on #2, #3, #4, #5 and 4 more" in shown


EVIL = "\x1b[2J\u202e\n" * 60


def test_a_narrow_page_loses_no_words_and_a_wide_one_is_used() -> None:
    narrow = text(explain(broken_app()), 60)
    assert narrow.startswith("x.tape#1  POST /v1/chat/completions  openai-chat  m\n")
    assert max(map(len, narrow.splitlines())) <= 60
    for words in (
        "the repeated arguments are empty",
        "Append the arguments of every fragment",
    ):
        assert words in " ".join(narrow.split())
    long = [replace(each, tape="a-long-name-of-a.tape") for each in broken_app()]
    assert text(explain(long), 60).startswith(
        "a-long-name-of-a.tape#1\nPOST /v1/chat/completions  openai-chat  m\n"
    )
    assert 120 < max(map(len, text(explain(broken_app()), 140).splitlines())) <= 140


@pytest.mark.slow
@pytest.mark.parametrize("width", [60, 80, WIDTH, 140])
@pytest.mark.parametrize("cut", [EndReason.UPSTREAM_RESET, None])
def test_it_fits_into_the_page_and_nothing_of_a_tape_acts(
    cut: EndReason | None, width: int
) -> None:
    half = calls(entry(0, EVIL, name=EVIL, arguments='{"a":' + EVIL))
    exchange = timed(
        (0.1, choice({"content": EVIL})),
        (15.0, half),
        (15.1, {"error": {"message": EVIL}}),
        request=asks(USER, model=EVIL, tools=[{"function": {"name": EVIL}}], tool_choice=EVIL),
    )
    assert exchange.end
    end = replace(exchange.end, reason=cut, detail=EVIL) if cut else None
    again = asks(USER, assistant((EVIL, EVIL, EVIL), text=EVIL), result(EVIL, EVIL))
    later = replace(timed(request=again), number=2)
    for number in (1, 2):
        shown = text(explain([replace(exchange, end=end, tape=EVIL), later], number), width)
        for line in shown.splitlines():
            assert line.isprintable()
            assert len(line) <= width


def test_a_call_in_text_is_shown_as_written_and_not_compared() -> None:
    written = choice({"content": '<tool>{"tool_name": "get", "arguments": {}}</tool>'})
    tape = conversation(
        (asks(USER), [written, *call(), FINISH]),
        (asks(USER, assistant(("c1", "get", '{"a":1}')), result("c1")), [TEXT]),
    )
    told = text(explain(tape, 1))
    assert 'text 0 as written: <tool>{"tool_name": "get", "arguments": {}}</tool>' in told


def test_of_a_long_name_the_folders_are_left_out() -> None:
    explanation = replace(explain(broken_app()), tape=f"{'folder/' * 20}x.tape")
    assert text(explanation).startswith("...")
    assert "/x.tape#1" in text(explanation).splitlines()[0]


def test_clients_that_were_tried_are_shown() -> None:
    explanation = accused(explain(broken_app()), tried=(tried("a@1"),))
    assert "\nCLIENTS   a@1  WRONG  no call\n" in text(explanation)


def test_of_many_findings_of_a_kind_two_are_shown() -> None:
    nameless = [calls(entry(number, f"c{number}", arguments="{}")) for number in range(4)]
    told = text(explain([pasted(*nameless, FINISH)]))
    assert told.count("T004 missing-name") == 2
    assert "and 2 more T004: deltatape check" in told


def short(explanation: Explanation) -> list[str]:
    return plain(short_lines(explanation, 10_000)).splitlines()


def test_in_short_it_is_five_lines() -> None:
    what = (
        "WHAT      Call 0 (get, c1) of #1 was delivered with '{\"a\":1}', but the app repeats ''"
        " (first difference at $.a): the repeated arguments are empty;"
        " suspect: arguments-of-first-piece-only"
    )
    assert short(explain(broken_app())) == [
        "VERDICT   app, proven  (C002)",
        what,
        "WHERE     x.tape#2, tape line 200, delivered in #1, tape line 105",
        "FIX       Append the arguments of every fragment.",
        "NEXT      deltatape why x.tape#1",
    ]


def test_in_short_what_is_possible_is_named_and_attempts_are_shown() -> None:
    silent = watched(conversation((asks(USER), [*call(), FINISH])), 42.5)
    verdict, what, where, fix, _ = short(explain(silent))
    assert verdict == "VERDICT   not provable"
    assert what.endswith("; possible, not provable: D003 unanswered-tool-call")
    assert where == "WHERE     x.tape#1"
    assert fix.startswith("FIX       tape the app's next request")
    first, second = conversation((asks(USER), [TEXT]), (asks(USER), [TEXT, FINISH_TEXT]))
    assert first.response
    limited = replace(first, response=replace(first.response, status=429))
    told = short(explain([limited, second], 1))
    assert told[0] == "VERDICT   upstream, likely  (S005)"
    assert "; 2 attempts: #1 status 429, sent again" in told[1]
    assert told[2] == "WHERE     x.tape#1, tape line 101"


def test_in_short_what_the_recorder_lost_comes_first() -> None:
    explanation = explain(broken_app())
    lost = replace(explanation.findings[0], code="X002", message="the tape is missing a record")
    told = replace(explanation, findings=(*explanation.findings, lost))
    assert short(told)[1].startswith("WHAT      The tape is missing a record; call 0 (get, c1)")
    alone = replace(told, verdict=replace(explanation.verdict, code="X002"), suspects=())
    assert short(alone)[1] == "WHAT      The tape is missing a record"


def test_the_next_command_fits_the_verdict() -> None:
    half = calls(entry(0, "c1", name="get", arguments='{"a":'))
    commands = {
        text(explanation).splitlines()[-1].strip()
        for explanation in (
            explain(broken_app()),
            explain([timed((0.1, half), (0.2, FINISH), (0.3, b"data: [DONE]\n\n"))]),
            explain(conversation((asks(USER), [TEXT, FINISH_TEXT]))),
            explain(broken_app()[:1]),
            explain([pasted(half, FINISH)]),
            explain([pasted(*call(), FINISH)]),
        )
    }
    assert commands == {
        "deltatape why x.tape#1 --fix DIR",
        "deltatape show x.tape#1 --events",
        "deltatape show x.tape#1 --calls",
        "deltatape record -- CMD",
        "deltatape why T003",
    }
    assert short(explain([pasted(half, FINISH)]))[4] == "NEXT      deltatape why T003"
    line = LogEntry(t_ns=0, stream=LogStream.STDOUT, line=b"asking")
    printed = explain(broken_app()[:1], context=TapeContext(logs=(line,)))
    assert next_step(printed)[1] == "deltatape show x.tape#1 --calls"  # that is on the tape already
    spaced = [replace(each, tape="my tapes/x.tape") for each in broken_app()]
    assert short(explain(spaced))[4] == "NEXT      deltatape why 'my tapes/x.tape'#1"


def test_what_is_possible_stands_below_the_verdict_and_is_said_once() -> None:
    silent = watched(conversation((asks(USER), [*call(), FINISH])), 42.5)
    shown = " ".join(text(explain(silent)).split())
    message = "no request followed within 42.0 s"
    assert shown.count(message) == 1
    assert "possible, not provable: D003 unanswered-tool-call (app): 1 call (get) was" in shown
    assert shown.index("VERDICT not provable") < shown.index(message)


def test_the_conclusion_is_at_the_end_and_no_message_is_said_twice() -> None:
    explanation = explain(broken_app())
    shown = " ".join(text(explanation).split())
    for finding in explanation.findings:
        assert shown.count(finding.message) <= 1
    places = [
        shown.index(f" {word} ") for word in ("FINDINGS", "SUSPECT", "VERDICT", "FIX", "NEXT")
    ]
    assert places == sorted(places)


def test_of_a_reply_without_calls_the_text_is_what_a_request_repeats() -> None:
    said: dict[str, object] = {"role": "assistant", "content": "Hello"}
    answer = [TEXT, FINISH_TEXT]
    told = explain(conversation((asks(USER), answer), (asks(USER, said, USER), answer)), 1)
    assert "REPEATED  by request #2 (text, no calls)\n" in text(told)


GET = RepeatedCall(id="c1", name="get", arguments='{"a":1}')


def suspect_text(*suspects: Suspect) -> str:
    return plain(suspect_lines(suspects, 2))


def test_nobody_is_suspected() -> None:
    assert suspect_lines((), 2) == []


def test_the_first_is_shown_in_full_and_the_others_by_name() -> None:
    assert suspect_text(suspect(throws=THROWN), suspect("other", exact=False)) == (
        "  single-current-call  explains what the app did (key=single)\n"
        "  it keeps one call where the stream has two\n"
        "  or other, which come near: deltatape why NAME\n"
    )


def test_what_the_verdict_has_said_is_not_said_again() -> None:
    told = plain(suspect_lines([suspect()], 0, above=f"The app behaves so: it {suspect().says}."))
    assert told == "single-current-call  explains what the app did (key=single)\n"


def test_of_many_others_five_are_named() -> None:
    told = suspect_text(suspect(), *(suspect(f"s{number}") for number in range(7)))
    assert "or s0, s1, s2, s3, s4, and 2 more, which would do the same: deltatape why" in told


def test_how_well_a_suspect_explains_it() -> None:
    two = replace(suspect(exact=False), mistakes=(SINGLE, LATE))
    assert suspect_fit(two) == "comes close to it (key=single, emit=late)"


def test_what_a_client_makes_of_a_response() -> None:
    nameless = RepeatedCall(id=None, name=None, arguments="")
    assert client_outcome(tried("x", GET, nameless)) == 'get (c1) {"a":1}; no name (no bytes)'
    assert client_outcome(tried("x")) == "no call"
    assert client_outcome(tried("x", throws="KeyError: 'index'")) == "throws KeyError: 'index'"
    assert client_outcome(tried("x", *[GET] * 6)).endswith("; and 2 more calls")


def test_clients_are_rows() -> None:
    right = ClientTrial(name="right-one", made=ClientReading(calls=(GET,)), differs=False)
    rows = (right, tried("wrong-one"), tried("absent", problem="npm is not installed"))
    assert plain(tried_lines(rows, 0)) == (
        "wrong-one  WRONG      no call\n"
        "absent     not tried  npm is not installed\n"
        "right: right-one\n"
    )


def test_where_all_clients_are_wrong_none_is_right() -> None:
    assert "right" not in plain(tried_lines([tried("a")], 0))


def test_one_that_explains_missing_calls_alone_says_no_more() -> None:
    drop = replace(suspect(), drop=True)
    assert suspect_fit(drop) == "loses the same calls (key=single)"


def test_a_line_that_is_too_long_is_two() -> None:
    lines = plain(suspect_lines([suspect("a-name-that-is-long")], 0, 50)).splitlines()
    assert lines[:2] == ["a-name-that-is-long", "explains what the app did (key=single)"]


BAD = calls(entry(0, "c1", name="get", arguments="[1]"))


def test_a_story_has_exactly_the_keys_of_the_contract() -> None:
    document = json.loads(explanation_json(explain([timed((0.1, BAD), (0.2, FINISH))])))
    assert list(document) == [
        *("version", "tape", "exchange", "verdict", "conclusion", "suspects", "clients", "axis"),
        *("timeline", "requested", "arrived", "findings", "attempts", "repetition"),
    ]
    assert list(document["verdict"]) == [
        *("blame", "confidence", "summary", "fix", "kind", "shown", "means", "code", "possible"),
    ]
    assert document["verdict"]["kind"] == "blamed"
    assert document["attempts"] is None
    assert document["suspects"] == []
    assert document["timeline"][0] == {
        "t_ns": 0,
        "exchange": 1,
        "event": None,
        "what": "requests an answer from the model: 0 messages",
        "source": "app",
        "codes": [],
    }
    assert len(document["findings"]) == 1
    assert document["repetition"] is None
    assert {code for entry in document["timeline"] for code in entry["codes"]} == {
        document["findings"][0]["code"]
    }


def test_json_has_the_conclusion_that_the_short_form_has() -> None:
    explanation = lost_arguments()
    found = json.loads(explanation_json(explanation))
    assert found["conclusion"]["next"] == dict(
        zip(("what", "command"), next_step(explanation), strict=True)
    )
    (what,) = found["conclusion"]["what"]
    assert what == found["findings"][0]["message"]
    assert found["verdict"]["means"].startswith("No correct program of anybody else")
    healthy = json.loads(explanation_json(explain(conversation((asks(USER), [TEXT, FINISH_TEXT])))))
    assert [f"{each}." for each in healthy["conclusion"]["what"]] == [healthy["verdict"]["summary"]]


def repeated(explanation: Explanation) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(explanation_json(explanation))["repetition"]
    return found


def test_json_has_what_was_sent_back_beside_what_was_delivered_and_where_they_differ() -> None:
    found = repeated(lost_arguments(arguments='{"a":25}'))
    (call_back,) = found["calls"]
    assert call_back == {
        "delivered": {"id": "c1", "name": "get", "arguments": '{"a":1}'},
        "sent": {"id": "c1", "name": "get", "arguments": '{"a":25}'},
        "differs": True,
        "different": {"delivered": [5, 6], "sent": [5, 7]},
        "edits": [
            {"op": "equal", "delivered": [0, 5], "sent": [0, 5]},
            {"op": "delete", "delivered": [5, 6], "sent": [5, 5]},
            {"op": "insert", "delivered": [6, 6], "sent": [5, 7]},
            {"op": "equal", "delivered": [6, 7], "sent": [7, 8]},
        ],
        "segments": [
            {"range": [0, 3], "call": 0, "event": 2},
            {"range": [3, 5], "call": 0, "event": 3},
            {"range": [5, 8], "call": None, "event": None},
        ],
    }
    assert (found["exchange"], found["extra"]) == (2, [])
    assert found["results"] == [{"id": "c1", "text": THROWN}]
    (longer,) = repeated(lost_arguments(arguments='{"a":1}{"a":1}'))["calls"]
    assert longer["different"] == {"delivered": [7, 7], "sent": [7, 14]}


def test_json_marks_no_difference_in_arguments_that_are_the_same() -> None:
    for name, arguments, differs in (("get", '{"a": 1}', False), ("other", '{"a":1}', True)):
        (call_back,) = repeated(lost_arguments(name, arguments))["calls"]
        assert (call_back["differs"], call_back["different"]) == (differs, None)


def test_json_says_which_call_was_not_sent_back() -> None:
    exchanges = conversation(
        (asks(USER), [*call(), *call(arguments='{"b":2}', index=1), FINISH]),
        (asks(USER, assistant(("c1", "get", '{"a":1}')), result("c1", "1")), [TEXT, FINISH_TEXT]),
    )
    first, second = repeated(explain(exchanges, 1))["calls"]
    assert (first["differs"], first["different"]) == (False, None)
    assert (second["sent"], second["differs"], second["different"]) == (None, True, None)
    assert (second["edits"], second["segments"]) == (None, None)


def test_json_says_from_which_fragments_an_invented_call_is_made() -> None:
    two = [*call(), *call("put", '{"b":22}', 1), FINISH]
    mixed = ("c9", "put", '{"a":1}{"b":22}')
    delivered = (("c1", "get", '{"a":1}'), ("c2", "put", '{"b":22}'))
    after = asks(USER, assistant(*delivered, mixed), result("c1"), result("c2"))
    (extra,) = repeated(explain(conversation((asks(USER), two), (after, [])), 1))["extra"]
    assert [(each["call"], each["event"]) for each in extra["segments"]] == [
        *((0, 1), (0, 2), (1, 4), (1, 5))
    ]


def test_json_says_from_which_fragments_the_calls_of_a_suspect_are_made() -> None:
    document = json.loads(explanation_json(lost_arguments(arguments='{"a":1}{"a":1}')))
    made = [call_made for each in document["suspects"] for call_made in each["made"]["calls"]]
    assert made
    for each in made:
        ends = [segment["range"][1] for segment in each["segments"]]
        assert (ends or [0])[-1] == len(each["arguments"])
    emptied = json.loads(explanation_json(explain(broken_app())))
    assert emptied["suspects"][0]["made"]["calls"][0]["segments"] == []
    assert emptied["repetition"]["calls"][0]["segments"] == []
    alone = explain([timed(*((0.1, each) for each in [*call(), FINISH]))], clients=True)
    reader = json.loads(explanation_json(alone))["clients"][0]["made"]["calls"][0]
    assert reader["segments"] == [
        {"range": [0, 3], "call": 0, "event": 1},
        {"range": [3, 7], "call": 0, "event": 2},
    ]


def test_json_hides_secrets_in_what_was_sent_and_aligns_what_is_left() -> None:
    key = "sk-proj-" + "Zq3x" * 8
    (call_back,) = repeated(lost_arguments(arguments=f'{{"a":"{key}"}}'))["calls"]
    assert "Zq3x" not in json.dumps(call_back)
    sent = call_back["sent"]["arguments"]
    assert call_back["segments"][-1]["range"][1] == len(sent)
    assert call_back["edits"][-1]["sent"][1] == len(sent)


def test_json_has_what_was_requested_and_what_arrived() -> None:
    request = asks(USER, tools=TOOLS, tool_choice="auto")
    exchange = timed(*((0.1, each) for each in [TEXT, *call(), FINISH]), request=request)
    document = json.loads(explanation_json(explain([exchange])))
    assert document["requested"] == {
        "known": True,
        "target": "POST /v1/chat/completions",
        "model": "m",
        "stream": True,
        "tools": ["get"],
        "tool_choice": "auto",
        "messages": 1,
    }
    arrived = document["arrived"]
    assert (arrived["status"], arrived["text"], arrived["events"]) == (200, 5, 5)
    assert (arrived["finish_reason"], arrived["error"]) == ("tool_calls", None)
    whole = json.loads(calls_json([analyse(exchange)]))
    assert {key: arrived[key] for key in ("calls", "server_calls", "text_calls")} == {
        key: whole[key] for key in ("calls", "server_calls", "text_calls")
    }
    assert document["axis"]["first_event_ns"] == 100_000_000


def test_times_of_an_imported_file_are_on_the_timeline_if_it_has_any() -> None:
    exchange = replace(timed((0.1, TEXT), (0.3, FINISH_TEXT)), source=Source.IMPORT)
    shown = text(explain([exchange]))
    assert "TIMELINE  seconds since the request, which came 0.000 s into the tape\n" in shown
    assert "     0.100  wire  | text: 1 event\n" in shown


def test_suspects_and_clients_have_exactly_the_keys_of_the_contract() -> None:
    clients = (tried("a", throws="KeyError: 'index'"), tried("b", problem="no npm"))
    explanation = accused(lost_arguments(), suspect(), tried=clients)
    document = json.loads(explanation_json(explanation))
    assert document["suspects"] == [
        {
            "name": "single-current-call",
            "mistakes": [
                {
                    "axis": "key",
                    "value": "single",
                    "says": "keeps one call",
                    "fix": "keep a call per index",
                }
            ],
            "exact": True,
            "drop": False,
            "says": "keeps one call where the stream has two",
            "fix": "keep a call per index",
            "source": "",
            "made": {
                "calls": [{"id": "c1", "name": "get", "arguments": "", "segments": []}],
                "errors": [],
                "text": None,
            },
        }
    ]
    made = {"calls": [], "errors": ["KeyError: 'index'"], "text": None}
    assert document["clients"] == [
        {"name": "a", "differs": True, "problem": None, "made": made},
        {"name": "b", "differs": None, "problem": "no npm", "made": {**made, "errors": []}},
    ]
