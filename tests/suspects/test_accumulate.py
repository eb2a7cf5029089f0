import pytest

from deltatape.model.reply import Reply
from deltatape.suspects.accumulate import ClientResult, accumulate, bodies, tag_outcome
from deltatape.suspects.client import CORRECT, client_of
from deltatape.suspects.steps import (
    ClientCallDelta,
    EmptyTextDelta,
    EntryPhase,
    FinishDelta,
    IncompleteDelta,
    Step,
)
from helpers.chat import choice, sse
from helpers.suspected import call_fields, deliver, made

DELTA, START, WHOLE, CLOSE = EntryPhase.DELTA, EntryPhase.START, EntryPhase.WHOLE, EntryPhase.CLOSE


def _piece(event: int, text: str | None, **more: object) -> ClientCallDelta:
    return ClientCallDelta(event, DELTA, text=text)._replace(**more)  # type: ignore[arg-type]


INTERLEAVED: list[Step] = [
    _piece(0, "", index=0, id="c1", name="get"),
    _piece(1, "", index=1, id="c2", name="put"),
    _piece(2, '{"a":', index=0),
    _piece(3, '{"b":', index=1),
    _piece(4, "1}", index=0),
    _piece(5, "2}", index=1),
    FinishDelta(6, "tool_calls"),
]
GET, PUT = ("c1", "get", '{"a":1}'), ("c2", "put", '{"b":2}')
MIXED = '{"a":{"b":1}2}'


def _calls(
    steps: list[Step], *mistakes: tuple[str, str]
) -> list[tuple[str | None, str | None, str]]:
    return call_fields(accumulate(steps, client_of(*mistakes)).calls)


@pytest.mark.parametrize(
    ("key", "calls"),
    [
        ("index", [GET, PUT]),
        ("strict", [GET, PUT]),
        ("list", [GET, PUT]),
        ("single", [("c2", "put", MIXED)]),
        ("current", [("c1", "get", ""), ("c2", "put", MIXED)]),
        ("one", [("c2", "put", MIXED)]),
        ("id", [("c1", "get", ""), ("c2", "put", ""), (None, None, MIXED)]),
        ("position", [("c2", "put", MIXED)]),
        ("name", [("c1", "get", ""), ("c2", "put", ""), (None, None, MIXED)]),
        ("call-id", [("c1", "get", ""), ("c2", "put", ""), (None, None, MIXED)]),
    ],
)
def test_pieces_go_where_the_key_says(key: str, calls: list[tuple[str, str, str]]) -> None:
    assert _calls(INTERLEAVED, ("key", key)) == calls


def test_every_event_may_be_a_call() -> None:
    assert len(_calls(INTERLEAVED, ("key", "none"))) == 6
    assert len(_calls(INTERLEAVED, ("key", "none"), ("entries", "with-arguments"))) == 4
    assert len(_calls(INTERLEAVED, ("key", "none"), ("stop", "first-entry"))) == 1


@pytest.mark.parametrize("key", ["strict", "list"])
def test_a_missing_index_ends_strict_clients(key: str) -> None:
    outcome = accumulate([_piece(0, "{}")], client_of(("key", key)))
    assert outcome.calls == ()
    assert "list indices must be integers or slices, not NoneType" in outcome.thrown
    assert accumulate([_piece(0, "{}")], CORRECT).calls == made((None, None, "{}"))


def test_an_index_behind_the_end_of_a_list_throws() -> None:
    outcome = accumulate([_piece(0, "{}", index=1)], client_of(("key", "list")))
    assert "list index out of range" in outcome.thrown


ITEMS: list[Step] = [
    ClientCallDelta(0, START, index=0, id="c1", name="get", text="", item="x1"),
    ClientCallDelta(1, DELTA, index=0, text="{}", item="x1"),
    ClientCallDelta(2, DELTA, index=0, text="!", item="x2"),
    ClientCallDelta(3, CLOSE, index=0, id="c1", name="get", text="{}", item="x3"),
]


def test_items_by_their_id_are_lost_when_it_changes() -> None:
    assert _calls(ITEMS, ("key", "item-id")) == [("c1", "get", "{}"), ("c1", "get", "{}")]
    assert _calls(ITEMS, ("key", "delta-item-id")) == [(None, None, "{}"), (None, None, "!")]
    assert _calls(ITEMS, ("key", "call-id")) == [(None, None, "{}!")]


def test_ends_are_nobodys_to_clients_without_a_key() -> None:
    assert _calls(ITEMS, ("key", "current")) == [("c1", "get", "{}!")]
    assert len(_calls(ITEMS, ("key", "none"))) == 3
    assert _calls([ITEMS[3]], ("key", "one")) == []


PARTS: list[Step] = [
    ClientCallDelta(0, WHOLE, at=0, index=0, name="get", text='{"a":1}'),
    ClientCallDelta(0, WHOLE, at=1, index=1, name="get", text='{"a":1}'),
    ClientCallDelta(1, WHOLE, at=0, index=2, name="put", text='{"b":2}'),
    EmptyTextDelta(1),
    ClientCallDelta(2, WHOLE, at=0, index=3, name="end", text="{}"),
]


def test_calls_in_one_piece_are_appended() -> None:
    whole = _calls(PARTS)
    assert [name for _, name, _ in whole] == ["get", "get", "put", "end"]
    assert _calls(PARTS, ("whole", "overwrite")) == whole[3:]
    assert _calls(PARTS, ("repeats", "dropped")) == [whole[0], *whole[2:]]
    assert _calls(PARTS, ("key", "name")) == [whole[0], *whole[2:]]
    assert _calls(PARTS, ("key", "position")) == [whole[1], whole[3]]
    assert _calls(PARTS, ("entries", "first")) == [whole[0], *whole[2:]]
    assert _calls(PARTS, ("stop", "blank")) == whole[:3]
    assert _calls(PARTS, ("key", "single")) == whole[3:]
    assert _calls(PARTS, ("key", "one"))[0][1] == "end"


def test_parts_without_a_name_may_be_dropped() -> None:
    streamed: list[Step] = [
        ClientCallDelta(0, START, index=0, name="get", text="{}"),
        _piece(1, "[]"),
    ]
    assert _calls(streamed) == [(None, "get", "[]")]
    assert _calls(streamed, ("whole", "nameless-dropped")) == [(None, "get", "{}")]


@pytest.mark.parametrize(
    ("reasons", "on_tool_calls", "last", "on_finish"),
    [
        ([], 0, 0, 0),
        (["stop"], 0, 0, 2),
        (["tool_calls"], 2, 2, 2),
        (["tool_calls", "stop"], 2, 0, 2),
        ([""], 0, 0, 0),
    ],
)
def test_finish_reasons_decide_for_clients_that_wait_for_them(
    reasons: list[str], on_tool_calls: int, last: int, on_finish: int
) -> None:
    steps = [*INTERLEAVED[:-1], *(FinishDelta(9, reason) for reason in reasons)]
    counts = [
        len(_calls(steps, ("emit", emit)))
        for emit in ("end", "on-tool-calls", "last-tool-calls", "on-finish")
    ]
    assert counts == [2, on_tool_calls, last, on_finish]


def test_calls_may_count_when_they_parse_or_close() -> None:
    assert _calls(INTERLEAVED, ("emit", "when-parses")) == [GET, PUT]
    assert _calls(INTERLEAVED[:5], ("emit", "when-parses")) == [GET]
    assert _calls(ITEMS[:3], ("emit", "at-close")) == []
    assert _calls(ITEMS, ("source", "completed")) == []


def test_reading_may_stop_too_early() -> None:
    with_finish: list[Step] = [
        *INTERLEAVED[:4],
        _piece(4, "1}", index=0, finished=True),
        FinishDelta(4, "tool_calls"),
        INTERLEAVED[5],
    ]
    assert _calls(with_finish, ("stop", "finish-before"))[0] == ("c1", "get", '{"a":')
    assert _calls(with_finish, ("stop", "finish")) == [GET, ("c2", "put", '{"b":')]
    empty: list[Step] = [FinishDelta(0, ""), *INTERLEAVED]
    assert _calls(empty, ("stop", "finish")) == []
    assert _calls(empty, ("stop", "finish-before")) == [GET, PUT]


@pytest.mark.parametrize("what", ["choices", "delta"])
def test_unguarded_clients_throw_at_odd_events(what: str) -> None:
    steps = [*INTERLEAVED, IncompleteDelta(7, what)]
    outcome = accumulate(steps, client_of(("guard", "unguarded")))
    assert outcome.calls == ()
    assert any("Cannot read properties" in one for one in outcome.thrown)
    assert _calls(steps) == [GET, PUT]


def test_kinds_of_calls_may_not_be_read() -> None:
    steps = [
        ClientCallDelta(0, DELTA, index=at, name=kind, kind=kind)
        for at, kind in enumerate(["function", "custom", "legacy", "function_tool_call"])
    ]

    def kept(how: str) -> list[str | None]:
        return [name for _, name, _ in _calls([*steps], ("kinds", how))]

    assert kept("no-legacy") == ["function", "custom", "function_tool_call"]
    assert kept("no-custom") == ["function", "legacy", "function_tool_call"]
    assert kept("wrapped") == ["function_tool_call"]


def test_arguments_that_are_json_end_strict_clients() -> None:
    outcome = accumulate([_piece(0, "{}", unquoted=True)], client_of(("value", "raise")))
    assert 'can only concatenate str (not "dict") to str' in outcome.thrown


def test_calls_without_id_or_name_or_sense_may_be_dropped() -> None:
    steps: list[Step] = [_piece(0, "{", index=0, id="c1"), _piece(1, "{}", index=1, name="get")]
    assert _calls(steps, ("incomplete", "dropped")) == []
    assert _calls(steps, ("parse", "drop")) == [(None, "get", "{}")]


def test_what_a_parser_is_given_is_reported_once() -> None:
    outcome = accumulate(INTERLEAVED, CORRECT)
    assert outcome == ClientResult(made(GET, PUT), (), ('{"a":1}', '{"b":2}'))


ONE = '<tool>{"tool_name":"get","arguments":{"a":"}"}}</tool>'
TWO = '<tool>{"tool_name":"put","arguments":{"b":2}}</tool>'


def _reply(*pieces: str, reasoning: str = "") -> Reply:
    thought = [choice({"reasoning_content": reasoning})] if reasoning else []
    said = [choice({"content": piece}) for piece in pieces]
    return deliver(sse(*thought, *said, choice({}, "stop"))).reply


def _found(outcome: ClientResult) -> list[str | None]:
    return [name for _, name, _ in call_fields(outcome.calls)]


def test_whole_texts_have_all_calls() -> None:
    assert _found(tag_outcome(_reply(ONE + TWO), "whole")) == ["get", "put"]


def test_a_call_over_two_pieces_is_not_found_in_either() -> None:
    reply = _reply(ONE + TWO[:10], TWO[10:])
    assert _found(tag_outcome(reply, "per-chunk")) == ["get"]
    assert _found(tag_outcome(reply, "first-call")) == ["get"]


def test_texts_that_are_searched_again_have_earlier_calls_again() -> None:
    assert _found(tag_outcome(_reply(ONE, TWO, "x"), "rescan")) == ["get", "get", "put"] * 1 + [
        "get",
        "put",
    ]


def test_reasoning_is_not_text() -> None:
    reply = _reply(ONE, reasoning=TWO)
    assert _found(tag_outcome(reply, "whole")) == ["get"]
    assert sorted(map(str, _found(tag_outcome(reply, "reasoning")))) == ["get", "put"]


def test_braces_in_strings_end_a_call_early() -> None:
    outcome = tag_outcome(_reply(ONE + TWO), "braces")
    assert (_found(outcome), outcome.texts) == (
        ["put"],
        ('{"tool_name":"get","arguments":{"a":"}"}',),
    )
    open_brace = ONE.replace('"}"', '"{"')
    assert _found(tag_outcome(_reply(open_brace), "braces")) == ["get"]


def test_bodies_are_flushed_before_the_closing_tag() -> None:
    cut = ONE.index('"arguments"')
    outcome = tag_outcome(_reply(ONE[:cut], ONE[cut:]), "flush-early")
    body = ONE.removeprefix("<tool>").removesuffix("</tool>")
    assert outcome.calls == ()
    assert outcome.texts[0] == '{"tool_name":"get",'
    assert body + ">" in outcome.texts
    assert bodies(_reply(ONE)) == [body]


def test_a_closing_tag_that_is_cut_spoils_the_body() -> None:
    assert tag_outcome(_reply(ONE[:-3], ONE[-3:]), "flush-early").calls == ()
    assert tag_outcome(_reply(ONE[:-7], ONE[-7:]), "flush-early").calls == ()
    assert _found(tag_outcome(_reply("x", ONE, "y"), "flush-early")) == ["get"]


def test_calls_without_an_object_are_left_alone() -> None:
    reply = _reply("<tool_call>get\n<arg_key>a</arg_key>", "<arg_value>1</arg_value></tool_call>")
    assert len(reply.text_calls) == 1
    assert len(tag_outcome(reply, "flush-early").calls) == 1
    assert bodies(reply) == []
