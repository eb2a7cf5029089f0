from deltatape.conversation.pairing import Pairing, pair_calls
from deltatape.model.asked import RepeatedCall
from deltatape.model.digest import SaidCall
from deltatape.model.reply import CallKind, CallStatus


def said(index: int, name: str, arguments: str = "{}", call_id: str | None = None) -> SaidCall:
    return SaidCall(
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


def shape(pairing: Pairing) -> tuple[list[tuple[int, str]], list[int], int]:
    pairs = [(pair.said.index, pair.heard.arguments) for pair in pairing.pairs]
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


def test_a_call_with_another_name_and_id_stands_for_none() -> None:
    calls = [said(0, "get", "{}", "c1")]
    assert shape(pair_calls(calls, [heard("put", "{}", "x")], [])) == ([], [0], 1)
    assert shape(pair_calls(calls, [heard("getget", "{}", "x")], []))[0] == [(0, "{}")]
    assert shape(pair_calls(calls, [heard(None, "{}", "x")], []))[0] == [(0, "{}")]
    assert shape(pair_calls(calls, [heard("put", "{}", "c1c1")], []))[0] == [(0, "{}")]


def test_a_call_that_a_later_message_repeats_is_not_lost() -> None:
    calls = [said(0, "f", "{}", "c1"), said(1, "g", '{"a":1}')]
    pairing = pair_calls(calls, [], [heard("g", '{"a":1}'), heard("f", "{}", "c1")])
    assert shape(pairing) == ([], [], 0)


def test_the_same_calls_under_the_same_ids_are_identical() -> None:
    assert pair_calls([said(0, "f", "", "c1")], [heard("f", "{}", "c1")], []).identical
    assert not pair_calls([said(0, "f", "", "c1")], [heard("f", "{}", "c9")], []).identical
