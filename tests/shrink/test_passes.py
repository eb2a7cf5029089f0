import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltatape.diagnose.check import check
from deltatape.shrink.passes import COARSE, FINE, shrink
from deltatape.shrink.search import Exchanges, Search
from deltatape.store.reader import open_tape
from helpers.chat import FINISH, calls, choice, entry
from helpers.mutated import RECORDINGS
from helpers.shrunk import Asked, bodies, having, said, search_of, smallest, streamed

EVENTS = 2000
MARKED = (301, 1204, 1899)


def marked(found: Exchanges) -> int:
    """How many events carry the mark."""
    return sum(b"#" in event for event in bodies(found).split(b"\n\n"))


def test_of_two_thousand_events_those_with_the_three_bytes_are_left_in_few_runs() -> None:
    words = [f"word{at} {'#' if at in MARKED else ''}" for at in range(EVENTS - 2)]
    chunks = [choice({"content": word}) for word in words]
    exchange = streamed(choice({"role": "assistant"}), *chunks, choice({}, "stop"), done=False)
    assert len(exchange.reads) == EVENTS
    judge = Asked(lambda found: marked(found) == 3)
    search = search_of(exchange, judge=judge)
    assert shrink(search, lambda _: None)
    assert said(search) == [{"choices": [{"delta": {"content": "#"}}]}] * 3
    assert bodies(search.exchanges).count(b" ") == 3
    assert len(judge.known) < 200


def test_a_sound_stream_stays_sound_and_the_same_input_gives_the_same_output() -> None:
    pieces = ('{"a"', ': "some text', ' and a bit more"}')
    chunks = [choice({"role": "assistant"}), *(choice({"content": "x "}) for _ in range(30))]
    for index in (0, 1):
        chunks.append(calls(entry(index, f"call_{index}", name="get", arguments="")))
        chunks += [calls(entry(index, arguments=piece)) for piece in pieces]
    whole = streamed(*chunks, FINISH)

    def holds(found: Exchanges) -> bool:
        return bodies(found).count(b'"name": "get"') == 2

    (one,), (other,) = (smallest(whole, judge=Asked(holds), sound=True) for _ in range(2))
    assert one == other
    assert [finding.code for finding in check(one)] == [finding.code for finding in check(whole)]
    assert one.body.count(b"data:") == 5  # two calls, opened and filled, and the end
    assert len(one.body) < 500


@pytest.mark.parametrize("stem", ["anthropic-messages", "bedrock-converse", "gemini-array"])
def test_a_recording_shrinks_to_its_call_and_stays_sound(stem: str) -> None:
    (exchange,) = open_tape(RECORDINGS / f"{stem}.tape")
    before = {finding.code for finding in check(exchange)}
    (small,) = smallest(exchange, judge=having(b"Gent"), sound=True)
    assert len(small.body) < len(exchange.body) / 2
    assert {finding.code for finding in check(small)} <= before


@settings(max_examples=10, deadline=None)
@given(st.sets(st.integers(0, 11), min_size=1, max_size=4), st.integers(0, 1))
def test_what_is_left_holds_and_no_event_of_it_can_go(needed: set[int], sound: int) -> None:
    needles = [f"word{at}x".encode() for at in sorted(needed)]
    exchange = streamed(*(choice({"content": f"word{at}x "}) for at in range(12)))
    left = smallest(exchange, judge=having(*needles), sound=bool(sound))
    assert all(needle in bodies(left) for needle in needles)
    assert len(bodies(left)) <= len(exchange.body)


def test_a_search_without_runs_left_keeps_what_it_has() -> None:
    exchange = streamed(*(choice({"content": f"word{at}"}) for at in range(40)))
    told: list[str] = []
    search = search_of(exchange, judge=Asked(having(b"word7").holds, most=6))
    assert not shrink(search, told.append)
    assert b"word7" in bodies(search.exchanges)
    assert len(bodies(search.exchanges)) < len(exchange.body)
    assert told[:2] == ["times and reads", COARSE[0].name]


def test_every_pass_has_a_name_of_its_own() -> None:
    names = [each.name for each in (*COARSE, *FINE)]
    assert len({*names}) == len(names)


def test_an_empty_tape_is_as_small_as_can_be() -> None:
    assert shrink(Search((), lambda _: None), lambda _: None)
