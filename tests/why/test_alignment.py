import pytest

from deltatape.why.alignment import DeliveredFragment, DeliveredFragments, edits, segments

TRIP, FLIGHT = 0, 1
ARRIVED = [
    *(
        (TRIP, 2, '{"trip'),
        (FLIGHT, 3, '{"origin": "B'),
        (TRIP, 4, '_id": '),
        (FLIGHT, 5, 'erlin"'),
    ),
    *((TRIP, 6, '"LIS"}'), (FLIGHT, 7, ', "to": "Lisbon"}')),
]
"""Two calls whose fragments come in turns: call, event, text."""


def delivered(*fragments: tuple[int, int, str]) -> DeliveredFragments:
    return DeliveredFragments(DeliveredFragment(*each) for each in fragments)


def told(
    sent: str, fragments: list[tuple[int, int, str]] | None = None, own: int | None = FLIGHT
) -> list[tuple[str, int | None, int | None]]:
    """Each part of the sent text with call and event."""
    found = segments(sent, delivered(*(ARRIVED if fragments is None else fragments)), own)
    assert "".join(sent[each.start : each.end] for each in found) == sent
    return [
        (sent[each.start : each.end], *(each.source[:2] if each.source else (None, None)))
        for each in found
    ]


def joined(call: int) -> str:
    return "".join(text for of, _, text in ARRIVED if of == call)


def test_what_is_sent_as_delivered_comes_from_its_own_fragments() -> None:
    assert told(joined(FLIGHT)) == [
        ('{"origin": "B', FLIGHT, 3),
        ('erlin"', FLIGHT, 5),
        (', "to": "Lisbon"}', FLIGHT, 7),
    ]


def test_fragments_of_two_calls_that_are_mixed_are_told_apart() -> None:
    mixed = "".join(text for _, _, text in ARRIVED[1:])
    assert told(mixed) == [(text, call, event) for call, event, text in ARRIVED[1:]]


def test_a_fragment_that_is_missing_is_left_out() -> None:
    assert told('{"origin": "B, "to": "Lisbon"}') == [
        ('{"origin": "B', FLIGHT, 3),
        (', "to": "Lisbon"}', FLIGHT, 7),
    ]


def test_fewest_fragments_are_left_out() -> None:
    alike = [(0, 1, "abc"), (0, 2, "-"), (0, 3, "abc"), (0, 4, "def")]
    assert told("abcdef", alike, own=0) == [("abc", 0, 3), ("def", 0, 4)]
    late = [(0, 1, "ab"), (0, 2, "cd"), (0, 3, "-"), (0, 4, "abcd"), (0, 5, "e"), (0, 6, "f")]
    assert told("abcde", late, own=0) == [("abcd", 0, 4), ("e", 0, 5)]


def test_fragments_of_several_calls_that_fit_by_chance_are_no_mixture() -> None:
    turin = [(0, 1, '{"city":"Turin'), (0, 2, '"}')]
    genoa = [(1, 3, '{"city":"Genoa'), (1, 4, '","unit":"C"}')]
    assert told('{"city":"Turin","unit":"C"}', [*turin, *genoa], own=0) == [
        ('{"city":"Turin', 0, 1),
        ('"', 0, 2),
        (',"unit":"C"}', None, None),
    ]
    third = [(2, 2, "xyz")]
    mixed = [*turin[:1], *third, *genoa[:1], *turin[1:], *genoa[1:]]
    text = "".join(each for call, _, each in mixed if call != 2)
    assert [call for _, call, _ in told(text, mixed, own=0)] == [0, 1, 0, 1]


def test_the_last_fragment_may_be_cut() -> None:
    assert told('{"origin": "Ber') == [('{"origin": "B', FLIGHT, 3), ("er", FLIGHT, 5)]


def test_fragments_that_come_twice_have_the_same_source() -> None:
    mine = [(event, text) for call, event, text in ARRIVED if call == TRIP]
    each = "".join(text * 2 for _, text in mine)
    assert told(each, own=TRIP) == [(text, TRIP, event) for event, text in mine for _ in range(2)]
    whole = "".join(text for _, text in mine) * 2
    assert told(whole, own=TRIP) == [(text, TRIP, event) for event, text in [*mine, *mine]]


def test_whole_calls_that_are_joined_are_told_apart() -> None:
    for first, second in ((TRIP, FLIGHT), (FLIGHT, TRIP)):
        found = told(joined(first) + joined(second))
        assert [call for _, call, _ in found] == [first] * 3 + [second] * 3


def test_the_arguments_of_another_call_are_its_own() -> None:
    assert {call for _, call, _ in told(joined(TRIP))} == {TRIP}
    assert {call for _, call, _ in told(joined(TRIP), own=None)} == {TRIP}


def test_what_an_app_wrote_itself_has_no_source() -> None:
    assert told('{"origin": "Potsdam", "to": "Lisbon"}') == [
        ('{"origin": "', FLIGHT, 3),
        ("Potsdam", None, None),
        ('"', FLIGHT, 5),
        (', "to": "Lisbon"}', FLIGHT, 7),
    ]
    assert told("{}") == [("{}", None, None)]
    assert told("something else", own=None) == [("something else", None, None)]
    assert told('{"origin": "Bxyz') == [('{"origin": "B', FLIGHT, 3), ("xyz", None, None)]
    assert told("") == []


def test_long_arguments_are_aligned_with_bounded_work() -> None:
    many = [(FLIGHT, event, "a") for event in range(5_000)]
    assert told("a" * 4_999 + "b", many)[-1] == ("b", None, None)
    assert told("b" + "a" * 4_999, many)[0] == ("b", None, None)


def steps(one: str, other: str) -> list[tuple[str, str, str]]:
    """The edits with the texts of their ranges, which leave no gap."""
    found = edits(one, other)
    assert "".join(one[slice(*each.delivered)] for each in found) == one
    assert "".join(other[slice(*each.sent)] for each in found) == other
    return [(each.op, one[slice(*each.delivered)], other[slice(*each.sent)]) for each in found]


def test_texts_are_compared_character_by_character() -> None:
    assert steps('{"a":1,"b":22}', '{"a":1}') == [
        ("equal", '{"a":1', '{"a":1'),
        ("delete", ',"b":22', ""),
        ("equal", "}", "}"),
    ]
    assert steps("abxd", "abyyd") == [
        ("equal", "ab", "ab"),
        ("delete", "x", ""),
        ("insert", "", "yy"),
        ("equal", "d", "d"),
    ]
    assert steps("same", "same") == [("equal", "same", "same")]
    assert steps("", "") == []
    assert steps("", "new") == [("insert", "", "new")]


def test_long_texts_are_compared_word_by_word_and_longer_ones_as_a_whole() -> None:
    words = [f"word{number}" for number in range(300)]
    changed = [*words[:10], *words[11:150], "other", *words[151:]]
    one, other = f"({' '.join(words)})", f"[{' '.join(changed)}]"
    found = [(op, left.strip(), right.strip()) for op, left, right in steps(one, other)]
    assert [each for each in found if each[0] != "equal"] == [
        *(("delete", "(", ""), ("insert", "", "[")),
        ("delete", "word10", ""),
        *(("delete", "word150", ""), ("insert", "", "other")),
        *(("delete", ")", ""), ("insert", "", "]")),
    ]
    for times in (1_000, 100_000):
        long = "x y " * times
        assert [op for op, _, _ in steps(f"a{long}b", f"c{long}d")] == ["delete", "insert"]
        assert steps(f"a{long}b", f"a{long}cb")[1] == ("insert", "", "c")


def test_what_says_the_same_as_its_own_call_comes_from_no_other_one() -> None:
    arrived = delivered((0, 1, '{"a":1}'), (1, 2, '{"a"'), (1, 3, ": 1}"))
    sent = '{"a": 1}'
    assert {each.source and each.source.call for each in segments(sent, arrived, 0)} == {1}
    found = segments(sent, arrived, 0, alike=True)
    assert [(sent[each.start : each.end], each.source and each.source.call) for each in found] == [
        ('{"a":', 0),
        (" 1}", None),
    ]


def test_other_calls_are_not_looked_through_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("deltatape.why.alignment._MOST_LOOKS", 4)
    arrived = delivered((0, 1, "mine"), (1, 2, "other"))
    sources = [segments("other", arrived, 0)[0].source for _ in range(3)]
    assert [each and each.text for each in sources] == ["other", "other", None]
    assert segments("mine", arrived, 0)[0].source == arrived.all[0]
