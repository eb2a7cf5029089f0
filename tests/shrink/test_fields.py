from dataclasses import replace

from deltatape.shrink.fields import (
    fewer_blanks,
    fewer_columns,
    fewer_members,
    less_between,
    members,
    smaller_numbers,
)
from helpers.chat import choice
from helpers.shrunk import Asked, bodies, having, recorded, said, search_of, streamed


def test_members_go_from_all_events_at_once() -> None:
    events = [{"id": "x", "n": at, "deep": {"a": [1, {"keep": at}], "b": 2}} for at in range(20)]
    judge = having(*(b'"keep": %d' % at for at in range(20)))
    search = search_of(streamed(*events, done=False), judge=judge)
    fewer_columns(search)
    assert said(search) == [{"deep": {"a": [{"keep": at}]}} for at in range(20)]
    assert len(judge.known) < 20


def test_members_go_from_single_events() -> None:
    events = [{"a": 1, "b": 1}, {"a": 2, "b": 2}]
    search = search_of(streamed(*events), judge=having(b'"a": 1', b'"b": 2'))
    fewer_columns(search)
    assert said(search) == [*events, "[DONE]"]
    fewer_members(search)
    assert said(search) == [{"a": 1}, {"b": 2}, "[DONE]"]


def test_a_sound_stream_keeps_what_tells_what_an_event_is() -> None:
    event = {"type": "x", "a": {"type": "y", "b": 1}}
    for sound, left in ((True, {"type": "x", "a": {"type": "y"}}), (False, {"a": {}})):
        search = search_of(streamed(event, done=False), judge=having(b'"a"'), sound=sound)
        fewer_columns(search)
        fewer_members(search)
        assert said(search) == [left]


def test_numbers_become_zero_but_for_those_that_matter() -> None:
    event = {"created": 1700000000, "index": 1, "rate": 2.5, "on": True, "none": 0}
    search = search_of(streamed(event, done=False), judge=having(b'"index": 1'))
    smaller_numbers(search)
    assert said(search) == [{"created": 0, "index": 1, "rate": 0, "on": True, "none": 0}]


def test_blanks_go_but_not_those_in_texts() -> None:
    body = b'data: { "a" : "b  \\" c" ,\t"d": [ 1, 2 ] }\n\ndata: 1\n\ndata: {"needed": 1}\n\n'
    search = search_of(recorded(body), judge=having(b'needed": '))
    fewer_blanks(search)
    assert bodies(search.exchanges).split(b"\n\n")[::2] == [
        b'data: {"a":"b  \\" c","d":[1,2]}',
        b'data: {"needed": 1}',
    ]


def test_comments_go_and_events_stay() -> None:
    body = b": hello\n\ndata: 1\n\n: ping\n: needed\n\ndata: 2\n\n"
    search = search_of(recorded(body), judge=having(b"needed"))
    less_between(search)
    left = bodies(search.exchanges)
    assert b"ping" not in left
    assert b"hello" not in left
    assert said(search) == [1, 2]


def test_a_body_without_events_shrinks_to_its_bytes() -> None:
    search = search_of(
        recorded(b"a page\nthat says 503 twice\n503\n", "text/plain"), judge=having(b"503")
    )
    less_between(search)
    assert bodies(search.exchanges) == b"503"


def test_members_are_listed_by_depth() -> None:
    value = {"a": [1, {"b": 2}], "c": 3}
    assert list(members(value, 1)) == [("a",), ("c",)]
    assert list(members(value, 2)) == [("a", 0), ("a", 1)]
    assert list(members(value, 3)) == [("a", 1, "b")]
    assert list(members(1, 1)) == []


def test_a_body_that_cannot_be_rewritten_is_passed_over() -> None:
    bare = replace(streamed(choice({})), reads=())
    judge = Asked(lambda _: False)
    search = search_of(bare, judge=judge)
    for each in (fewer_columns, fewer_members, smaller_numbers, fewer_blanks, less_between):
        each(search)
    assert judge.known == {}
