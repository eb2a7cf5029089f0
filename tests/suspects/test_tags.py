from deltatape.model.reply import Reply
from deltatape.suspects.accumulate import Outcome
from deltatape.suspects.tags import bodies, tag_outcome
from helpers.chat import choice, sse
from helpers.suspected import deliver, told

ONE = '<tool>{"tool_name":"get","arguments":{"a":"}"}}</tool>'
TWO = '<tool>{"tool_name":"put","arguments":{"b":2}}</tool>'


def _reply(*pieces: str, reasoning: str = "") -> Reply:
    thought = [choice({"reasoning_content": reasoning})] if reasoning else []
    said = [choice({"content": piece}) for piece in pieces]
    return deliver(sse(*thought, *said, choice({}, "stop"))).reply


def _found(outcome: Outcome) -> list[str | None]:
    return [name for _, name, _ in told(outcome.calls)]


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


def test_reasoning_is_no_text() -> None:
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
