from collections.abc import Callable
from dataclasses import replace

import pytest

from deltatape.conversation import check_conversation, goes_on_without, read_backs
from deltatape.conversation.read_back import AssistantRun, CallPairing, assistant_runs, pair_calls
from deltatape.diagnose.digest import digest
from deltatape.model.digest import DeliveredCall, Digest
from deltatape.model.exchange import Tap
from deltatape.model.finding import Confidence, Severity
from deltatape.model.reply import CallKind, CallStatus
from deltatape.model.request_summary import RepeatedCall
from deltatape.rules import READ_BACK_RULES
from helpers.chat import FINISH, calls, entry
from helpers.contexts import failing
from helpers.exchanges import (
    CALL_REPLY,
    FINISH_TEXT,
    TEXT_REPLY,
    USER,
    asks,
    assistant,
    call,
    digests,
    pasted,
    result,
    system,
    user,
)
from helpers.scripted import RESPONSES_STORED, SCRIPT_DIALECTS, Call, Message, Turn
from helpers.scripted import digests as scripted_digests
from helpers.scripted import result as scripted_result
from helpers.scripted import user as scripted_user
from helpers.work import work_of

OF_READ_BACKS = frozenset({"C001", "C002", "C003"})
RIGHT = ("c1", "get", '{"a":1}')
WRONG = ("c1", "get", "")
SYSTEM = system("Be brief.")
OTHER_SYSTEM = system("It is 12:01.")
MORE = user("And tomorrow?")


def codes(digests: list[Digest]) -> list[tuple[str, Confidence]]:
    return [
        (finding.code, finding.confidence)
        for finding in check_conversation(digests)
        if finding.code in OF_READ_BACKS
    ]


def test_a_faithful_application_is_read_back_and_not_accused() -> None:
    tape = digests((asks(USER), CALL_REPLY), (asks(USER, assistant(RIGHT), result("c1")), []))
    (read_back,) = read_backs(tape)
    assert (read_back.reply, read_back.later) == (tape[0], tape[1])
    assert (len(read_back.pairs), read_back.lost, read_back.extra) == (1, (), ())
    assert read_back.answered == ("c1",)
    assert not check_conversation(tape)


def test_an_unchanged_history_proves() -> None:
    tape = digests((asks(USER), CALL_REPLY), (asks(USER, assistant(WRONG), result("c1")), []))
    assert codes(tape) == [("C002", Confidence.PROVEN)]


def test_the_history_that_follows_is_judged_once_and_old_messages_may_be_shortened_later() -> None:
    short = ("c1", "get", '{"a":"..."}')
    first, second = asks(USER, assistant(RIGHT), result("c1")), TEXT_REPLY
    tape = digests(
        (asks(USER), CALL_REPLY),
        (first, second),
        (asks(USER, assistant(short), result("c1"), assistant(text="Hello"), MORE), []),
        (asks(USER, assistant(text="We spoke of the weather."), MORE), []),
    )
    assert not check_conversation(tape)


def test_one_mistake_is_reported_once_however_often_it_is_repeated() -> None:
    wrong = [USER, assistant(WRONG), result("c1")]
    tape = digests(
        (asks(USER), CALL_REPLY),
        (asks(*wrong), TEXT_REPLY),
        (asks(*wrong, assistant(text="Hello"), MORE), []),
    )
    assert codes(tape) == [("C002", Confidence.PROVEN)]


@pytest.mark.parametrize(
    "answers",
    [
        ([*call("get"), FINISH], TEXT_REPLY),
        (TEXT_REPLY, [*call("get"), FINISH]),
    ],
)
def test_a_regenerated_answer_that_fits_acquits(answers: tuple[list[object], list[object]]) -> None:
    tape = digests(
        (asks(USER), answers[0]),
        (asks(USER), answers[1]),
        (asks(USER, assistant(text="Hello"), MORE), []),
    )
    assert [each.code for each in check_conversation(tape)] == ["C018"]  # asked twice: a fact


def test_of_two_answers_to_the_same_history_none_is_accused_without_an_id() -> None:
    tape = digests(
        (asks(USER), CALL_REPLY),
        (asks(USER), CALL_REPLY),
        (asks(USER, assistant(text="What?"), MORE), []),
    )
    assert not read_backs(tape)


def test_of_two_answers_to_the_same_history_the_id_tells_which_is_meant() -> None:
    tape = digests(
        (asks(USER), [*call(index=0), FINISH]),
        (asks(USER), [*call(index=4), FINISH]),
        (asks(USER, assistant(("c5", "get", "")), result("c5")), []),
    )
    asked_twice, finding = check_conversation(tape)
    assert asked_twice.code == "C018"
    assert "of #2" in finding.message


def test_a_failed_attempt_before_a_retry_is_not_an_answer() -> None:
    failed = [{"error": {"message": "overloaded"}}]
    tape = digests(
        (asks(USER), failed), (asks(USER), CALL_REPLY), (asks(USER, assistant(text=""), MORE), [])
    )
    assert codes(tape) == [("C001", Confidence.POSSIBLE)]


def test_a_second_run_of_the_same_program_is_possible_at_most() -> None:
    tape = digests(
        (asks(USER), CALL_REPLY),
        (asks(USER, assistant(RIGHT), result("c1")), []),
        (asks(USER), [*call(index=6), FINISH]),
        (asks(USER, assistant(text=""), MORE), []),
    )
    assert codes(tape) == [("C001", Confidence.POSSIBLE)]


def test_a_reply_that_was_read_back_by_its_id_is_not_judged_again() -> None:
    tape = digests(
        (asks(USER), CALL_REPLY),
        (asks(USER, assistant(RIGHT), result("c1")), []),
        (asks(USER, assistant(WRONG), result("c1"), MORE), []),
        (asks(MORE, assistant(WRONG), result("c1"), MORE), []),
    )
    assert not check_conversation(tape)


def test_another_system_message_makes_a_change_less_sure() -> None:
    changed = asks(OTHER_SYSTEM, USER, assistant(("c1c1", "get", "")), result("c1c1"))
    tape = digests((asks(SYSTEM, USER), CALL_REPLY), (changed, []))
    assert codes(tape) == [("C002", Confidence.LIKELY), ("C003", Confidence.LIKELY)]


def test_conversations_that_begin_alike_are_told_apart_by_their_system_message() -> None:
    tape = digests(
        (asks(SYSTEM, USER), CALL_REPLY),
        (asks(OTHER_SYSTEM, USER), TEXT_REPLY),
        (asks(OTHER_SYSTEM, USER, assistant(text="Hello"), MORE), []),
        (asks(SYSTEM, USER, assistant(RIGHT), result("c1")), []),
    )
    assert not check_conversation(tape)
    assert [read_back.reply.exchange for read_back in read_backs(tape)] == [2, 1]


def test_in_a_trimmed_history_an_id_names_a_reply_only_with_its_question_and_its_call() -> None:
    random = [calls(entry(0, "call_9fA3kQz1b", name="get", arguments='{"a":1}')), FINISH]
    wrong, other = (assistant(("call_9fA3kQz1b", name, "")) for name in ("get", "put"))
    first, done = (asks(MORE, assistant(text="Hi"), USER), random), result("call_9fA3kQz1b")
    assert codes(digests(first, (asks(USER, wrong, done), []))) == [("C002", Confidence.LIKELY)]
    assert codes(digests(first, (asks(MORE, wrong, done), []))) == []
    assert codes(digests(first, (asks(USER, other, done), []))) == []


def test_in_a_trimmed_history_a_call_without_id_beside_it_tells_nothing() -> None:
    random = [calls(entry(0, "call_9fA3kQz1b", name="get", arguments='{"a":1}')), FINISH]
    said = assistant((None, "get", "{}"), ("call_9fA3kQz1b", "get", '{"a":1}'))
    tape = digests((asks(MORE, USER), random), (asks(USER, said, result("call_9fA3kQz1b")), []))
    assert [link.confidence for link in read_backs(tape)] == [Confidence.LIKELY]


def test_in_a_trimmed_history_a_counter_names_a_reply_only_with_an_equal_call() -> None:
    two = [*call("get"), *call("put", '{"b":2}', 1), FINISH]
    first = (asks(MORE, assistant(text="Hi"), USER), two)
    assert not read_backs(digests(first, (asks(USER, assistant(WRONG), result("c1")), [])))
    (link,) = read_backs(digests(first, (asks(USER, assistant(RIGHT), result("c1")), [])))
    assert (link.confidence, len(link.lost)) == (Confidence.LIKELY, 1)


def test_an_id_that_two_replies_share_proves_nothing_in_a_trimmed_history() -> None:
    tape = digests(
        (asks(USER), CALL_REPLY),
        (asks(SYSTEM, MORE), CALL_REPLY),
        (asks(assistant(WRONG), result("c1")), []),
    )
    assert not check_conversation(tape)


def test_ids_of_two_replies_in_one_message_name_neither() -> None:
    tape = digests(
        (asks(USER), CALL_REPLY),
        (asks(MORE), [*call(index=1), FINISH]),
        (asks(assistant(WRONG, ("c2", "get", "")), result("c1")), []),
    )
    assert not codes(tape)


def test_an_id_that_belongs_elsewhere_does_not_accuse_the_reply_before() -> None:
    tape = digests(
        (asks(MORE), [*call(index=8), FINISH]),
        (asks(USER), TEXT_REPLY),
        (asks(USER, assistant(("c9", "get", "")), result("c9")), []),
    )
    assert not check_conversation(tape)


def test_the_text_of_a_forced_call_may_be_kept_as_a_text() -> None:
    forced = {"type": "function", "function": {"name": "get"}}
    tape = digests(
        (asks(USER, tool_choice=forced), [*call(), FINISH_TEXT]),
        (asks(USER, assistant(text="1"), MORE), []),
    )
    assert not read_backs(tape)


def test_a_prefill_is_not_a_history() -> None:
    tape = digests((asks(USER), CALL_REPLY), (asks(USER, assistant(text="Sure:")), []))
    assert not read_backs(tape)


def test_a_request_that_was_sent_while_the_answer_came_knows_nothing_of_it() -> None:
    tape = digests((asks(USER), CALL_REPLY), (asks(USER, assistant(text=""), MORE), []))
    early = replace(tape[1], t_ns=1)
    assert not read_backs([tape[0], early])
    knows = digests((asks(USER), CALL_REPLY), (asks(USER, assistant(WRONG), result("c1")), []))
    assert not read_backs([knows[0], replace(knows[1], t_ns=1)])
    assert read_backs([knows[0], knows[1]])


def test_one_reply_may_come_back_as_several_messages() -> None:
    two = [*call("get"), *call("put", '{"b":2}', 1), FINISH]
    put = ("c2", "put", '{"b":2}')
    split = asks(
        USER, assistant(text="Well"), assistant(RIGHT), result("c1"), assistant(put), result("c2")
    )
    assert not check_conversation(digests((asks(USER), two), (split, [])))


def test_ids_of_its_own_make_a_change_likely_and_other_tools_another_reply() -> None:
    own = asks(USER, assistant(("x", "get", "")), result("x"))
    others = asks(USER, assistant(("x", "put", "")), result("x"))
    joined = asks(USER, assistant(("c1c1", "get", "")), result("c1c1"))
    unnamed = asks(USER, assistant((None, "get", "")), MORE)
    assert codes(digests((asks(USER), CALL_REPLY), (own, []))) == [("C002", Confidence.LIKELY)]
    assert not codes(digests((asks(USER), CALL_REPLY), (others, [])))
    assert ("C002", Confidence.PROVEN) in codes(digests((asks(USER), CALL_REPLY), (joined, [])))
    assert ("C002", Confidence.PROVEN) in codes(digests((asks(USER), CALL_REPLY), (unnamed, [])))


def test_a_reply_without_calls_is_never_held_against_the_application() -> None:
    edited = asks(USER, assistant(text="Goodbye"), MORE)
    assert not read_backs(digests((asks(USER), TEXT_REPLY), (edited, [])))


def test_the_applications_own_endpoint_is_not_a_conversation_with_a_model() -> None:
    tape = digests((asks(USER), CALL_REPLY), (asks(USER, assistant(WRONG), result("c1")), []))
    assert read_backs(tape)
    assert not read_backs([replace(tape[0], tap=Tap.APP), tape[1]])
    assert not check_conversation([tape[0], replace(tape[1], tap=Tap.APP)])


def test_requests_without_history_link_nothing() -> None:
    tape = digests((asks(), CALL_REPLY), (asks(assistant(text=""), MORE), []))
    assert not read_backs(tape)


def test_conversations_go_on_across_tapes() -> None:
    first, second = digests(
        (asks(USER), CALL_REPLY), (asks(USER, assistant(WRONG), result("c1")), [])
    )
    other = replace(second, tape="y.tape", t_ns=1)
    (finding,) = check_conversation([first, other])
    assert (finding.tape, finding.severity) == ("y.tape", Severity.ERROR)


def test_of_two_answers_one_of_which_was_read_back_a_message_may_be_the_shortened_other() -> None:
    right = asks(USER, assistant(RIGHT), result("c1"))
    two = [*call(index=6), FINISH]
    shortened = asks(USER, assistant(WRONG, text="Short."), result("c1"), MORE)
    tape = digests((asks(USER), CALL_REPLY), (asks(USER), two), (right, []), (shortened, []))
    assert [link.reply.exchange for link in read_backs(tape)] == [1]


def test_of_two_answers_one_of_which_was_read_back_a_made_up_id_names_the_other() -> None:
    right = asks(USER, assistant(RIGHT), result("c1"))
    two = [*call(index=6), FINISH]
    doubled = asks(USER, assistant(("c7c7", "get", '{"a":1}')), result("c7c7"))
    tape = digests((asks(USER), CALL_REPLY), (asks(USER), two), (right, []), (doubled, []))
    assert codes(tape) == [("C003", Confidence.LIKELY)]


def test_arguments_that_have_nothing_in_common_are_another_calls() -> None:
    other = asks(USER, assistant((None, "get", '{"b":"x"}')), MORE)
    assert not read_backs(digests((asks(USER), CALL_REPLY), (other, [])))


def test_a_reply_that_a_changed_history_repeats_exactly_is_not_held_against_another() -> None:
    exact = asks(MORE, assistant(RIGHT), MORE)
    wrong = asks(USER, assistant((None, "get", "{}")), MORE)
    assert codes(digests((asks(USER), CALL_REPLY), (wrong, []), (exact, []))) == []
    assert ("C002", Confidence.LIKELY) in codes(digests((asks(USER), CALL_REPLY), (wrong, [])))


def test_a_message_that_was_there_before_the_reply_is_not_its_repetition() -> None:
    old = [assistant(("c1", "get", '{"a":0}')), result("c1")]
    tape = digests((asks(USER, *old, MORE), CALL_REPLY), (asks(*old, MORE, MORE), []))
    assert not read_backs(tape)


def test_an_id_that_ends_in_another_number_is_another_id() -> None:
    one = [*call(index=0), FINISH]
    tape = digests(
        (asks(USER), one), (asks(USER, assistant(("c11", "get", '{"z":1}')), result("c11")), [])
    )
    assert not read_backs(tape)


def test_a_request_that_goes_on_without_the_answer_is_found() -> None:
    first, second, third = digests(
        (asks(USER), CALL_REPLY), (asks(MORE), []), (asks(USER, MORE), TEXT_REPLY)
    )
    assert goes_on_without(first, [second, third]) is third
    assert goes_on_without(first, [second]) is None
    answered = digests((asks(USER, assistant(RIGHT), result("c1")), []))
    assert goes_on_without(first, answered) is None


def test_a_rule_that_fails_is_reported_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rules = failing("C001", READ_BACK_RULES)
    monkeypatch.setattr("deltatape.conversation.READ_BACK_RULES", rules)
    tape = digests((asks(USER), CALL_REPLY), (asks(USER, assistant(WRONG), result("c1")), []))
    assert [finding.code for finding in check_conversation(tape)] == ["X001", "C002"]


def test_the_same_holds_where_calls_have_no_ids() -> None:
    (ollama,) = (each for each in SCRIPT_DIALECTS if each.name == "ollama")
    get = Call(id="", name="get", arguments={"a": 1})
    bare = replace(get, arguments=None)
    answer, end = Message(role="assistant", calls=(get,)), Message(role="assistant", text="Done.")
    question, other = scripted_user("What is the weather?"), scripted_user("Hello!")
    wrong = (question, replace(answer, calls=(bare,)), scripted_result(get))
    exact = (other, answer, scripted_result(get))
    turns = [Turn(history=each, answer=end) for each in (wrong, exact)]
    asked = Turn(history=(question,), answer=answer)
    assert [link.lost for link in read_backs(scripted_digests(ollama, [asked, turns[0]]))] == [()]
    assert not read_backs(scripted_digests(ollama, [asked, *turns]))


def test_a_message_that_changes_with_every_request_is_told_once() -> None:
    (anthropic,) = (each for each in SCRIPT_DIALECTS if each.name == "anthropic")
    asked, renamed, next_asked = (
        Call(id=ident, name="get", arguments={"city": "Rome"}) for ident in ("c0", "x0", "c1")
    )
    question, end = scripted_user("How warm is it?"), Message(role="assistant", text="Warm.")
    plain, shortened = (
        (question, Message(role="assistant", text=text, calls=(renamed,)), scripted_result(renamed))
        for text in ("", "()")
    )
    answer = Message(role="assistant", calls=(next_asked,))
    turns = [
        Turn(history=(question,), answer=Message(role="assistant", calls=(asked,))),
        Turn(history=plain, answer=answer),
        Turn(history=(*shortened, answer, scripted_result(next_asked)), answer=end),
    ]
    links = read_backs(scripted_digests(anthropic, turns))
    assert [(link.reply.exchange, link.later.exchange) for link in links] == [(1, 2), (2, 3)]


def test_of_a_thousand_replies_to_the_same_history_the_named_one_is_found() -> None:
    said = [*call("get"), FINISH]
    asked = [(asks(USER), said)] * 100
    first = digests(*asked)
    calls = [
        replace(each, calls=(replace(each.calls[0], id=f"c{at}", ids=(f"c{at}",)),))
        for at, each in enumerate(first)
    ]
    heard = asks(USER, assistant(("c7", "get", '{"a":1}')), result("c7"))
    (last,) = digests((heard, []))
    (link,) = read_backs([*calls, replace(last, exchange=999)])
    assert link.reply.calls[0].id == "c7"


def made(*history: dict[str, object]) -> list[AssistantRun]:
    (digest,) = digests((asks(*history), []))
    return list(assistant_runs(digest))


CALL = ("c1", "get", '{"a": 1}')
OTHER = ("c2", "put", "")


def test_messages_of_the_assistant_in_a_row_are_one_block() -> None:
    first, second = made(
        USER, assistant(text="Hm."), assistant(CALL), result("c1"), USER, assistant(OTHER), USER
    )
    assert (first.start, first.end, second.start, second.end) == (1, 3, 5, 6)
    assert [call.id for call in first.calls] == ["c1"]
    assert (len(first.messages), len(first.texts)) == (2, 1)
    assert [call.id for call in first.further] == ["c2"]
    assert (first.answered, second.answered) == (("c1",), ())
    assert first.ids == {"c1"}


def test_a_block_that_ends_the_request_is_none() -> None:
    assert made(USER, assistant(CALL)) == []
    assert made(USER) == []


def said(index: int, name: str, arguments: str = "{}", call_id: str | None = None) -> DeliveredCall:
    return DeliveredCall(
        index=index,
        id=call_id,
        ids=(call_id,) if call_id else (),
        name=name,
        kind=CallKind.FUNCTION,
        arguments=arguments,
        fragments=(arguments,),
        status=CallStatus.COMPLETE,
    )


def heard(name: str | None, arguments: str = "{}", call_id: str | None = None) -> RepeatedCall:
    return RepeatedCall(id=call_id, name=name, arguments=arguments)


def shape(pairing: CallPairing) -> tuple[list[tuple[int, str]], list[int], int]:
    pairs = [(pair.delivered.index, pair.repetition.arguments) for pair in pairing.pairs]
    return pairs, [call.index for call in pairing.lost], len(pairing.extra)


def test_ids_decide_whatever_the_order() -> None:
    one, other = said(0, "f", '{"a":1}', "c1"), said(1, "f", '{"a":2}', "c2")
    pairing = pair_calls([one, other], [heard("f", "x", "c2"), heard("f", "y", "c1")], [])
    assert shape(pairing) == ([(0, "y"), (1, "x")], [], 0)


def test_then_equality_then_the_name() -> None:
    calls = [said(0, "f", '{"a":1}'), said(1, "f", '{"a":2}'), said(2, "g")]
    pairing = pair_calls(calls, [heard("g", "z"), heard("f", '{"a": 2}'), heard("f", "")], [])
    assert shape(pairing) == ([(0, ""), (1, '{"a": 2}'), (2, "z")], [], 0)
    assert not pairing.identical


def test_the_order_decides_only_between_rests_of_the_same_length() -> None:
    calls = [said(0, "f"), said(1, "g", '{"a":1}')]
    assert shape(pair_calls(calls, [heard("F", "1"), heard("G", "2")], []))[0] == [
        (0, "1"),
        (1, "2"),
    ]
    assert shape(pair_calls(calls, [heard("X", "1")], [])) == ([], [0, 1], 1)


def test_of_equal_calls_the_first_is_paired_first() -> None:
    calls = [said(0, "f", '{"a":1}'), said(1, "f", '{"a":1.0}'), said(2, "", '{"a":1}')]
    repeated = [heard("g", '{"a": 1}'), heard("f", ' {"a":1}'), heard("f", '{"a":1e0}')]
    assert shape(pair_calls(calls, repeated, []))[0] == [
        (0, ' {"a":1}'),
        (1, '{"a":1e0}'),
        (2, '{"a": 1}'),
    ]


def test_masked_arguments_are_compared_with_every_call() -> None:
    calls = [said(0, "f", '{"a":"xyz"}'), said(1, "f", '{"b":"***"}'), said(2, "f", '{"c":1}')]
    repeated = [
        heard("f", '{"z":"***"}'),
        heard("f", '{"b":"secret"}'),
        heard("f", '{"c":1}'),
        heard("f", '{"a":"\\u002a\\u002a\\u002a"}'),
    ]
    pairing = pair_calls(calls, repeated, [])
    assert pairing.pairs[0].repetition is repeated[3]
    assert pairing.pairs[1].repetition is repeated[1]
    assert pairing.pairs[2].repetition is repeated[2]


CHANGES = {
    "other arguments": lambda n: (f"new_{n}x", "get", f'{{"a":"other {n}"}}'),
    "other names": lambda n: (f"new_{n}x", f"put{n}", f'{{"a":"other {n}"}}'),
    "other names, arguments cut": lambda n: (f"new_{n}x", f"put{n}", f'{{"a":"value {n}'),
    "longer ids and names": lambda n: (f"call_{n:05}x", f"get{n}", f'{{"a":"other {n}"}}'),
    "no ids, arguments cut": lambda _: (None, "get", '{"a":"val'),
    "the same ids": lambda n: (f"call_{n:05}", "get", f'{{"a":"other {n}"}}'),
    "arguments of others": lambda n: (f"call_{n:05}", "get", f'{{"a":"value {n ^ 1}"}}'),
    "fragments twice": lambda n: (f"call_{n:05}", "get", f'{{"a":{{"a":"value {n}"}}'),
    "no arguments": lambda n: (f"call_{n:05}", "get", ""),
    "every second one": lambda n: (f"new_{n}x", "get", f'{{"a":"value {n // 2 * 2}"}}'),
    "half of them": lambda n: None if n % 2 else (f"call_{n:05}", "get", f'{{"a":"value {n}"}}'),
    "the last one": lambda n: None if n % 100 else (f"new_{n}x", "get", f'{{"a":"value {n}"}}'),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("answered", [False, True], ids=["unanswered", "answered"])
def test_the_work_grows_with_the_number_of_changed_calls(
    change: Callable[[int], tuple[str | None, str, str] | None], *, answered: bool
) -> None:
    few, many = (_work_for(number, change, answered=answered) for number in (100, 400))
    assert many < 5 * few


def _work_for(
    number: int, change: Callable[[int], tuple[str | None, str, str] | None], *, answered: bool
) -> int:
    """Count the function calls that it takes to check `number` changed or lost calls."""
    chunks = []
    for n in range(number):
        chunks.append(calls(entry(n, f"call_{n:05}", name="get", arguments='{"a":')))
        chunks.append(calls(entry(n, arguments=f'"value {n}"}}')))
    repeated = [changed for n in range(number) if (changed := change(n)) is not None]
    results = [result(each or "x", f"of {each}") for each, _, _ in repeated if answered]
    history = asks(USER, assistant(*repeated), *results, MORE)
    reply = digest(pasted(*chunks, FINISH, request=asks(USER)))
    later = replace(digest(pasted(request=history)), exchange=2)
    return work_of(lambda: check_conversation([reply, later]))


def test_a_call_with_another_name_and_id_stands_for_none() -> None:
    calls = [said(0, "get", "{}", "c1")]
    assert shape(pair_calls(calls, [heard("put", "{}", "x")], [])) == ([], [0], 1)
    assert shape(pair_calls(calls, [heard("getget", "{}", "x")], []))[0] == [(0, "{}")]
    assert shape(pair_calls(calls, [heard(None, "{}", "x")], []))[0] == [(0, "{}")]
    assert shape(pair_calls(calls, [heard("put", "{}", "c1c1")], []))[0] == [(0, "{}")]
    doubled = [said(0, "get", "{}", "c1c1"), said(1, "get", "{}", "c1c1")]
    two = [heard("put", '{"a":1}', "c1"), heard("put", '{"a":2}', "c1")]
    assert shape(pair_calls(doubled, two, []))[0] == [(0, '{"a":1}'), (1, '{"a":2}')]


def test_a_call_that_a_later_message_repeats_is_not_lost() -> None:
    calls = [said(0, "f", "{}", "c1"), said(1, "g", '{"a":1}')]
    pairing = pair_calls(calls, [], [heard("g", '{"a":1}'), heard("f", "{}", "c1")])
    assert shape(pairing) == ([], [], 0)


def test_the_same_calls_under_the_same_ids_are_identical() -> None:
    assert pair_calls([said(0, "f", "", "c1")], [heard("f", "{}", "c1")], []).identical
    assert not pair_calls([said(0, "f", "", "c1")], [heard("f", "{}", "c9")], []).identical


# Where the provider keeps the history.
STORED_ONE = Call(id="call_a", name="get", arguments={"a": 1})
STORED_TWO = Call(id="call_b", name="get", arguments={"a": 2})
STORED_TURN = Turn(
    history=(scripted_user("Hi"),),
    answer=Message(role="assistant", calls=(STORED_ONE, STORED_TWO)),
    id="r1",
)


def stored_after(*said: Message, previous: str = "r1") -> list[Digest]:
    """The scripted of an answer with two calls, and of a request that goes on from it."""
    history = (*STORED_TURN.history, STORED_TURN.answer, *said)
    end = Message(role="assistant", text="Done.")
    return scripted_digests(
        RESPONSES_STORED,
        [STORED_TURN, Turn(history=history, answer=end, id="r2", previous=previous)],
    )


def codes_of(found: list[Digest]) -> list[tuple[str, Confidence]]:
    told = check_conversation(found)
    return [(one.code, one.confidence) for one in told if one.code in ("C001", "C002", "C003")]


@pytest.mark.slow
@pytest.mark.parametrize("known_as", ["call_{}", "call_{}x", "other_{}"])
def test_the_work_grows_with_the_number_of_stored_calls(known_as: str) -> None:
    few, many = (_work_for_stored(number, known_as) for number in (100, 400))
    assert many < 5 * few


def _work_for_stored(number: int, known_as: str) -> int:
    """Count the function calls that it takes to read back `number` results in another order."""
    every = [Call(id=f"call_{n:05}", name="get", arguments={"a": n}) for n in range(number)]
    turn = replace(STORED_TURN, answer=Message(role="assistant", calls=tuple(every)))
    told = [
        scripted_result(replace(each, id=known_as.format(each.id[-5:]))) for each in every[:0:-1]
    ]
    end = Message(role="assistant", text="Done.")
    then = Turn(history=(*turn.history, turn.answer, *told), answer=end, id="r2", previous="r1")
    tape = scripted_digests(RESPONSES_STORED, [turn, then])
    return work_of(lambda: read_backs(tape))


def test_results_tell_that_the_calls_were_known() -> None:
    tape = stored_after(scripted_result(STORED_ONE), scripted_result(STORED_TWO))
    (link,) = read_backs(tape)
    assert (link.reply, link.later, link.confidence) == (tape[0], tape[1], Confidence.PROVEN)
    assert [pair.repetition.id for pair in link.pairs] == ["call_a", "call_b"]
    assert (link.lost, link.answered) == ((), ("call_a", "call_b"))
    assert link.repeated_calls == tuple(pair.repetition for pair in link.pairs)
    assert codes_of(tape) == []


def test_a_call_without_a_result_beside_one_with_a_result_is_lost() -> None:
    assert codes_of(stored_after(scripted_result(STORED_TWO))) == [("C001", Confidence.LIKELY)]


def test_a_result_under_an_id_that_was_made_of_the_delivered_one_shows_the_change() -> None:
    doubled = replace(STORED_ONE, id="call_acall_a")
    assert codes_of(stored_after(scripted_result(doubled), scripted_result(STORED_TWO))) == [
        ("C003", Confidence.PROVEN)
    ]


def test_who_goes_on_without_any_result_may_have_been_interrupted() -> None:
    assert not read_backs(stored_after(scripted_user("Never mind.")))
    assert not read_backs(stored_after(scripted_result(replace(STORED_ONE, id="other"))))


def test_in_a_conversation_results_may_have_been_stored_differently() -> None:
    first, second = stored_after(scripted_result(STORED_TWO))
    (link,) = read_backs([replace(first, previous="conv"), replace(second, previous="conv")])
    assert (link.confidence, link.lost) == (Confidence.LIKELY, ())


def test_a_reply_that_is_not_on_the_tape_or_was_read_back_tells_nothing_more() -> None:
    assert not read_backs(stored_after(scripted_result(STORED_ONE), previous="r0"))
    first, second = stored_after(scripted_result(STORED_ONE), scripted_result(STORED_TWO))
    again = replace(second, exchange=3, reply_id="r3")
    assert len(read_backs([first, second, again])) == 1
