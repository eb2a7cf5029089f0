from dataclasses import replace

from deltatape.model.exchange import Exchange
from deltatape.shrink.body import EditableBody
from deltatape.shrink.events import (
    fewer_events,
    fewer_kinds,
    fewer_neighbours,
    fewer_single_events,
    joined,
    labels,
    leaves,
)
from deltatape.shrink.search import Exchanges
from helpers.chat import FINISH, calls, choice, entry
from helpers.shrunk import Asked, bodies, having, recorded, said, search_of, streamed


def test_a_block_goes_in_one_run() -> None:
    first = [calls(entry(0, arguments=str(at))) for at in range(5)]
    second = [calls(entry(1, arguments=f"needle{at}")) for at in range(5)]
    mixed = [each for pair in zip(first, second, strict=True) for each in pair]
    judge = having(*(f"needle{at}".encode() for at in range(5)), b"[DONE]")
    search = search_of(streamed(*mixed), judge=judge)
    fewer_kinds(search)
    assert said(search) == [*second, "[DONE]"]
    assert len(judge.known) <= 5


def test_single_events_go() -> None:
    words = [choice({"content": f"word{at}"}) for at in range(50)]
    search = search_of(streamed(*words), judge=having(b"word7", b"word31"))
    fewer_events(search)
    assert said(search) == [words[7], words[31]]


def test_where_nearly_all_events_are_needed_it_is_given_up_at_first() -> None:
    words = [choice({"content": f"word{at}"}) for at in range(130)]
    judge = Asked(lambda found: bodies(found).count(b"data") >= 125)
    search = search_of(streamed(*words, done=False), judge=judge)
    fewer_events(search)
    assert len(search.exchanges[0].reads) == 125
    given_up = len(judge.known)
    assert given_up < 115
    fewer_neighbours(search)  # there are too many
    assert len(judge.known) == given_up
    fewer_single_events(search)
    assert len(judge.known) > 125


def test_neighbours_that_need_each_other_go_together() -> None:
    begin, end = {"begin": 1}, {"end": 1}

    def holds(found: Exchanges) -> bool:
        body = bodies(found)
        return b"needle" in body and (b"begin" in body) == (b"end" in body)

    search = search_of(streamed({"needle": 1}, begin, end, done=False), judge=Asked(holds))
    fewer_events(search)
    assert said(search) == [{"needle": 1}, begin, end]
    fewer_neighbours(search)
    assert said(search) == [{"needle": 1}]


def test_pieces_of_a_text_become_one() -> None:
    pieces = [choice({"content": piece}) for piece in ("a", "b", "b", "\u00e9")]
    search = search_of(streamed(*pieces, FINISH), judge=having(b"abb"))
    joined(search)
    assert said(search) == [choice({"content": "abb\u00e9"}), FINISH, "[DONE]"]


def test_as_many_pieces_are_put_together_as_can_be() -> None:
    pieces = [choice({"content": piece}) for piece in ("a", "b", "c", "d")]
    search = search_of(
        streamed(*pieces, done=False), judge=Asked(lambda found: b"abc" not in bodies(found))
    )
    joined(search)
    assert said(search) == [choice({"content": "ab"}), choice({"content": "cd"})]


def test_what_differs_in_more_than_a_text_is_not_put_together() -> None:
    events = [
        {"a": "x", "b": "y"},
        {"a": "z", "b": "w"},
        {"a": "z", "c": "w"},
        {"index": "a"},
        {"index": "b"},
        {"n": 1},
        {"n": 2},
        "text",
        {"t": "a", "u": "b"},
        {"t": "c", "u": "b"},
        {"t": "c", "u": "d"},
    ]
    judge = Asked(lambda _: False)
    search = search_of(streamed(*events, done=False), judge=judge)
    joined(search)
    assert len(judge.known) == 2  # the last three, two by two


def test_equal_pieces_alone_are_left() -> None:
    judge = Asked(lambda _: False)
    joined(search_of(streamed({"a": "x"}, {"a": "x"}, done=False), judge=judge))
    assert judge.known == {}


def test_an_event_is_told_by_its_type_its_form_and_what_it_belongs_to() -> None:
    body = EditableBody.of(
        recorded(b'event: x\ndata: {"index":1,"delta":{"text":"a"}}\n\ndata: 1\n\n')
    )
    assert body is not None
    assert labels(body, 0) == {("type", "x"), ("form", "delta/text", "index"), ("index", "1")}
    assert labels(body, 1) == {("type", "message")}


def test_leaves_are_what_holds_nothing_more() -> None:
    assert list(leaves({"a": [1, {"b": None}], "c": {}})) == [
        (("a", 0), 1),
        (("a", 1, "b"), None),
    ]


def test_a_body_without_events_is_passed_over() -> None:
    bare = replace(streamed(FINISH), reads=())
    judge = Asked(lambda _: False)
    search = search_of(bare, judge=judge)
    for each in (fewer_kinds, fewer_events, fewer_neighbours, fewer_single_events, joined):
        each(search)
    assert judge.known == {}


def test_an_exchange_that_goes_meanwhile_ends_its_passes() -> None:
    events = [{"n": at % 3, "index": at % 2} for at in range(6)]
    keep = replace(streamed({"keep": 1}), number=2)

    def only_second(found: tuple[Exchange, ...]) -> tuple[Exchange, ...]:
        return found[1:]

    for each in (fewer_kinds, fewer_neighbours):
        search = search_of(streamed(*events, done=False), keep, judge=Asked(lambda _: True))
        search._judge = only_second
        each(search)
        assert 1 not in search.numbers
