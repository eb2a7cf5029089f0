"""Comparisons as people read them."""

import json
from dataclasses import replace
from itertools import pairwise

import pytest

from deltatape.compare import compare_exchanges, first_damage
from deltatape.diagnose.rebuild import Analysis, analyse
from deltatape.mutate import MUTATORS, SeededChoices
from deltatape.render.diff import ComparedSides, diff_json, diff_lines
from deltatape.render.lines import measured, plain
from helpers.chat import FINISH, choice, entry
from helpers.compared import analysed, call, chat, words
from helpers.json_schemas import validate
from helpers.mutated import changed, recorded

TAIL = r'"...o Tom\u00e9\",\"days\":'
LEFT = chat(*words("I ", "am ", "here", "."), *call('{"a"', ":1}"), FINISH)


def shown(*sides: Analysis, width: int = 100) -> list[str]:
    hops = [
        ComparedSides(
            left=f"{at}.tape#1", right=f"{at + 1}.tape#1", comparison=compare_exchanges(*pair)
        )
        for at, pair in enumerate(pairwise(sides))
    ]
    lines = diff_lines(hops, first_damage(hop.comparison for hop in hops), width)
    assert all(measured(line) <= width for line in lines)
    return plain(lines).splitlines()


def test_equal_exchanges_are_shown_in_a_line() -> None:
    assert shown(LEFT, LEFT) == [
        "--- 0.tape#1  openai-chat, 9 events, 1 call",
        "+++ 1.tape#1  openai-chat, 9 events, 1 call",
        "equal",
    ]


def test_what_was_ignored_is_shown() -> None:
    one, other = (chat({"id": name, "created": 1, "choices": []}) for name in "ab")
    assert shown(one, other)[2:] == ["equal", "ignored fields (number of events): id (1)"]


def test_a_dropped_event_stands_between_equal_ones() -> None:
    right = chat(*words("I ", "am ", "here", "."), *call('{"a"'), FINISH)
    assert shown(LEFT, right)[2:] == [
        "1 event dropped",
        "  call 0 get (c0): arguments altered",
        '      - {"a":1}',
        '      + {"a"',
        "      first change: event 6, dropped",
        "",
        "   left right",
        "  ... 4 equal events",
        "      4     4  call 0 opens: get (c0)",
        "      5     5  call 0 arguments: '{\"a\"'",
        "-     6        dropped: call 0 arguments: ':1}'",
        "      7     6  ends: tool_calls",
        "      8     7  [DONE]",
    ]


def test_an_inserted_event_and_an_altered_one_have_their_differences() -> None:
    right = chat(*words("I ", "was ", "here", "."), *call('{"a"', ":1}", " "), FINISH)
    assert shown(LEFT, right)[2:] == [
        "1 event altered, 1 event inserted",
        '  reply: text: "I am here." -> "I was here."',
        "",
        "   left right",
        "      0     0  text: 'I '",
        "~     1     1  altered: text: 'am '",
        '                  $.choices[0].delta.content: "am " -> "was "',
        "      2     2  text: 'here'",
        "      3     3  text: '.'",
        "  ... 1 equal event",
        "      5     5  call 0 arguments: '{\"a\"'",
        "      6     6  call 0 arguments: ':1}'",
        "+           7  inserted: call 0 arguments: ' '",
        "      7     8  ends: tool_calls",
        "      8     9  [DONE]",
    ]


def test_merged_and_split_events_show_their_pieces() -> None:
    right = chat(*words("I am here."), *call('{"a"', ":1}"), FINISH)
    assert shown(LEFT, right)[2:10] == [
        "4 events merged",
        "",
        "   left right",
        "~   0-3     0  merged:",
        "                - text: 'I '",
        "                - text: 'am '",
        "                - text: 'here'",
        "                - ... 1 more",
    ]
    assert "~     0   0-3  split:" in shown(right, LEFT)


def test_the_same_thing_many_times_is_shown_once() -> None:
    left = chat(*call(*"abcdefgh"), FINISH)
    opened, *later = call(*"abcdefgh", index=3)
    assert isinstance(opened, dict)
    opened["choices"][0]["delta"]["tool_calls"][0]["id"] = "c0"
    right = chat(opened, *later, FINISH)
    lines = shown(left, right)
    assert lines[2] == "9 events re-indexed"
    assert lines[5:14] == [
        "~     0     0  re-indexed: call 0 opens: get (c0)",
        "                  $.choices[0].delta.tool_calls[0].index: 0 -> 3",
        "~     1     1  re-indexed: call 0 arguments: 'a'",
        "~     2     2  re-indexed: call 0 arguments: 'b'",
        "~     3     3  re-indexed: call 0 arguments: 'c'",
        "~     4     4  re-indexed: call 0 arguments: 'd'",
        "~     5     5  re-indexed: call 0 arguments: 'e'",
        "  ... 3 more events re-indexed in the same way",
        "      9     9  ends: tool_calls",
    ]


def test_long_runs_and_many_changes_are_cut_with_their_number() -> None:
    nothing = chat(FINISH)
    many = chat(*words(*(f"w{at}" for at in range(50))), FINISH)
    assert "  ... 44 more events dropped" in shown(many, nothing)
    gaps = chat(*words(*(f"w{at}" for at in range(0, 200, 2))), FINISH)
    full = chat(*words(*(f"w{at}" for at in range(200))), FINISH)
    lines = shown(full, gaps)
    assert lines[2] == "100 events dropped"
    assert lines[-1] == "60 more changes; --format json lists all"


def test_lost_added_and_renamed_calls_are_shown() -> None:
    without = chat(*words("I ", "am ", "here", "."), FINISH)
    assert shown(LEFT, without)[3:6] == [
        "  call 0 get (c0): lost",
        '      - {"a":1}',
        "      first change: events 4-6, dropped",
    ]
    assert shown(without, LEFT)[3:6] == [
        "  call 0 get (c0): added",
        '      + {"a":1}',
        "      first change: events 4-6 of the right side, inserted",
    ]
    renamed = chat(*words("I ", "am ", "here", "."), *call('{"a"', ":1}", name="put"), FINISH)
    assert shown(LEFT, renamed)[3:6] == [
        "  call 0 get (c0): id or name changed",
        '      name: "get" -> "put"',
        "      first change: event 4 (4 on the right side), altered",
    ]


def test_in_long_arguments_the_difference_is_shown() -> None:
    one, other = (
        chat(*call(json), FINISH)
        for json in ('{"text":"%s","n":1}' % ("x" * 99), '{"text":"%s","n":2}' % ("x" * 99))
    )
    assert "      $.n: 1 -> 2" in shown(one, other)


def test_a_call_of_another_choice_says_so() -> None:
    more = choice({"tool_calls": [entry(0, "d", name="x", arguments="")]}, index=1)
    lines = shown(chat(*call("{}"), more, FINISH), chat(*call("{}"), FINISH))
    assert "  choice 1 call 0 x (d): lost" in lines
    assert "      - (no bytes)" in lines


def test_a_damage_that_no_event_brought_about_names_none() -> None:
    odd = compare_exchanges(LEFT, chat(FINISH))
    calls_ = tuple(replace(each, cause=None) for each in odd.calls)
    hop = ComparedSides(left="a", right="b", comparison=replace(odd, calls=calls_))
    assert "first by" not in plain(diff_lines([hop], 0))


def test_moved_events_name_both_places() -> None:
    usage = {"choices": [], "usage": {"n": 1}}
    lines = shown(chat(usage, *words("a")), chat(*words("a"), usage))
    assert lines[5].startswith("~     0     1  moved: nothing new: ")


def test_framing_alone_is_shown_as_such() -> None:
    healthy = recorded("anthropic-messages")
    bare = changed("sse-no-event-line", healthy)
    assert bare is not None
    assert shown(analyse(healthy), analyse(bare))[2:] == [
        "equal events, different framing",
        "  framing: event lines of 28 events: event: message_start -> no event line",
    ]
    body = b"data: 1\n\n"
    assert shown(analysed(body), analysed(b": hi\n\n" + body))[-1] == (
        "  framing: comments: 0 comments -> 1 comment, first: hi"
    )


def test_a_reply_may_differ_although_no_event_does() -> None:
    odd = replace(LEFT, reply=replace(LEFT.reply, error="oops"))
    assert shown(LEFT, odd)[2:] == ["equal events", '  reply: error: null -> "oops"']


def test_other_dialects_are_compared_part_by_part() -> None:
    one, other = analyse(recorded("openai-responses")), recorded("openai-chat")
    assert shown(one, analyse(other))[2] == (
        "equal (different dialects: compared by the content of the events)"
    )
    mutated = changed("args-missing-tail", other)
    assert mutated is not None
    lines = shown(one, analyse(mutated))
    assert lines[2] == "1 part altered (different dialects: compared by the content of the events)"
    assert lines[7:] == [
        '  request, right to left: path: "/v1/chat/completions" -> "/v1/responses"',
        '  request, right to left: $.model: "gpt-4o" -> "gpt-4.1"',
        '  model: "gpt-4.1-2025-04-14" -> "gpt-4o-2024-08-06"',
        "  headers only on the right: openai-processing-ms, x-request-id",
        "",
        "   left right",
        "    4-6   1-3  text",
        "     10     4  call 0",
        "  11-17  5-11  call 0 arguments",
        "     20    12  call 1",
        "~    26    17  altered: call 1 arguments",
        f'{" " * 18}(arguments): {TAIL}3}}" -> {TAIL}"',
        "     29    19  finish",
    ]
    lost = chat(*words("I will look up both. 🌦"), FINISH)
    assert any(
        line.startswith("- ") and line.endswith("dropped: call 0") for line in shown(one, lost)
    )


def test_what_is_altered_in_every_event_is_told_once() -> None:
    chunks = (*words("a", "b", "c", "d"), FINISH)
    renamed = [
        {**each, "model": "m", **({"cost": 1} if at == 4 else {})}
        for at, each in enumerate(chunks)
        if isinstance(each, dict)
    ]
    assert shown(chat(*chunks), chat(*renamed))[2:] == [
        "5 events altered",
        '  in 5 events: $.model: (absent) -> "m"',
        "",
        "   left right",
        "~     0     0  altered: text: 'a'",
        "~     1     1  altered: text: 'b'",
        "~     2     2  altered: text: 'c'",
        "~     3     3  altered: text: 'd'",
        "~     4     4  altered: ends: tool_calls",
        "                  $.cost: (absent) -> 1",
        "      5     5  [DONE]",
    ]


def test_what_differs_around_the_answers_is_told_in_a_few_lines() -> None:
    one = recorded("openai-chat")
    assert one.response is not None
    fields = {f"f{at}": at for at in range(8)}
    body = json.dumps({**json.loads(one.request.body), **fields}).encode()
    more = tuple((b"x-%d" % at, b"1") for at in range(7))
    kept = tuple(
        (name, b"text/event-stream; charset=utf-8" if name == b"Content-Type" else value)
        for name, value in one.response.headers
        if name != b"x-request-id"
    )
    other = replace(
        one,
        request=replace(one.request, body=body),
        response=replace(one.response, headers=(*kept, *more)),
    )
    assert shown(analyse(one), analyse(other))[2:] == [
        "equal",
        *(f"  request, right to left: $.f{at}: {at} -> (absent)" for at in range(6)),
        "  request: 2 more differences; --format json lists them",
        "  headers only on the left: x-request-id",
        "  headers only on the right: x-0, x-1, x-2, x-3, x-4, x-5, and 1 more",
        "  header content-type: text/event-stream -> text/event-stream; charset=utf-8",
    ]
    told = json.dumps(document(analyse(one), analyse(other)))
    assert '{"part": "request", "path": "$.f0", "left": "(absent)", "right": "0"}' in told


def test_a_call_that_shares_an_index_is_said_to() -> None:
    sides = [chat(*call("{}"), *call("{}", index=index, name="put"), FINISH) for index in (1, 0)]
    opened = sides[1].stream.body.replace(
        b'"id": "c0", "function": {"name": "put"', b'"id": "c1", "function": {"name": "put"'
    )
    lines = shown(sides[0], analysed(opened))
    assert "  call 1 put (c1): shares the index of another call" in lines
    assert "      index: 1 -> 0, as call 0" in lines


def test_of_several_hops_the_first_that_damaged_a_call_is_named_first() -> None:
    worse = chat(*words("I ", "am ", "here", "."), *call('{"a"'), FINISH)
    lines = shown(LEFT, LEFT, worse, worse)
    told = "call 0 get (c0): arguments altered"
    assert lines[:2] == [f"first hop that damaged a call: 1.tape#1 -> 2.tape#1: {told}", ""]
    assert [line for line in lines if line.startswith("---")] == [
        f"--- {at}.tape#1  openai-chat, {events} events, 1 call"
        for at, events in ((0, 9), (1, 9), (2, 8))
    ]
    assert shown(LEFT, LEFT, LEFT)[0] == "no hop damaged a call"


@pytest.mark.parametrize("width", [60, 140])
def test_no_line_is_wider_than_the_page(width: int) -> None:
    mutated = changed("args-final-repeat", recorded("openai-responses"))
    assert mutated is not None
    assert shown(analyse(recorded("openai-responses")), analyse(mutated), width=width)


def test_what_a_tape_says_cannot_act_on_a_terminal() -> None:
    lines = shown(chat(*words("a\x1b[2J\u202e"), FINISH), chat(*words("b"), FINISH))
    assert not any("\x1b" in line or "\u202e" in line for line in lines)


def document(*sides: Analysis) -> dict[str, object]:
    hops = [
        ComparedSides(
            left=f"{at}.tape", right=f"{at + 1}.tape", comparison=compare_exchanges(*pair)
        )
        for at, pair in enumerate(pairwise(sides))
    ]
    text = diff_json(hops, first_damage(hop.comparison for hop in hops))
    assert text.isascii()
    found: dict[str, object] = json.loads(text)
    validate("diff", found)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("stem", ["openai-chat", "openai-responses", "ai-sdk-ui"])
def test_whatever_was_done_fits_the_schema(stem: str) -> None:
    healthy = recorded(stem)
    for mutator in MUTATORS:
        mutated = mutator.mutate(healthy, SeededChoices(3))
        if mutated is not None:
            document(analyse(healthy), analyse(mutated))


def test_a_damaged_call_is_shown_with_both_sides_and_its_cause() -> None:
    whole, cut = (chat(*words("a"), *call(*pieces), FINISH) for pieces in (("{", "}"), ("{",)))
    found = document(whole, whole, cut)
    assert (found["equal"], found["damaged"]) == (False, 1)
    hops = found["hops"]
    assert isinstance(hops, list)
    assert hops[0]["left"] == {
        "name": "0.tape",
        "exchange": 1,
        "id": "",
        "dialect": "openai-chat",
        "events": 6,
    }
    (damaged,) = hops[1]["calls"]
    assert (damaged["damage"], damaged["left"]["arguments"], damaged["right"]["arguments"]) == (
        "arguments",
        "{}",
        "{",
    )
    assert damaged["edits"] == [
        {"op": "equal", "left": [0, 1], "right": [0, 1]},
        {"op": "delete", "left": [1, 2], "right": [1, 1]},
    ]
    assert damaged["cause"] == {
        "kind": "dropped",
        "left": [3],
        "right": [],
        "part": None,
        "differences": [],
    }
    assert hops[1]["changes"][0] == {
        "kind": "equal",
        "left": [0, 1, 2],
        "right": [0, 1, 2],
        "part": None,
        "differences": [],
    }


def test_a_lost_call_other_framing_and_content_fit_the_schema() -> None:
    lost = document(chat(*call("{}"), FINISH), chat(FINISH))
    assert lost["hops"][0]["calls"][0]["edits"] is None  # type: ignore[index]
    document(analyse(recorded("openai-responses")), chat(FINISH))
    framed = document(analysed(b"data: {}\n\n"), analysed(b": x\n\ndata:{}\n\n"))
    assert [each["what"] for each in framed["hops"][0]["framing"]] == ["comments", "fields"]  # type: ignore[index]
    ignored = document(*(chat({"id": name, "choices": []}) for name in "ab"))
    assert ignored["hops"][0]["ignored"] == [{"path": "id", "events": 1}]  # type: ignore[index]
