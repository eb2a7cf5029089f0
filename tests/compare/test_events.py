"""What became of events: the mutators say what they did, the comparison has to find it."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltatape.clock import SystemClock
from deltatape.compare import Kind, compare_exchanges
from deltatape.compare.events import changes_of
from deltatape.diagnose.rebuild import analyse
from helpers.chat import FINISH, calls, choice, entry
from helpers.compared import analysed, between, call, chat, paths, units, unlike, words
from helpers.mutated import changed, recorded

STREAM = [*words("I ", "am ", "here."), *call('{"a"', ':"x', '"}'), FINISH]


def kinds_of(name: str, stem: str) -> tuple[set[str], set[str]]:
    """The kinds of changes that a mutator causes, and the paths that differ."""
    healthy = recorded(stem)
    mutated = changed(name, healthy)
    assert mutated is not None
    comparison = compare_exchanges(analyse(healthy), analyse(mutated))
    found = [change for change in comparison.changes if change.kind is not Kind.EQUAL]
    return {change.kind.value for change in found}, {
        path.rpartition(".")[2] for change in found for path in paths(change)
    }


@pytest.mark.parametrize(
    ("name", "stem", "kinds", "where"),
    [
        ("index-missing", "openai-chat", {"re-indexed"}, {"index"}),
        ("index-not-zero-based", "openai-chat", {"re-indexed"}, {"index"}),
        ("bridge-identity-lost", "openai-chat", {"re-indexed"}, {"index"}),
        ("id-missing", "openai-chat", {"re-indexed"}, {"id"}),
        ("index-all-zero", "openai-chat", {"merged"}, {"index"}),
        ("no-tool-streaming", "openai-chat", {"merged"}, set()),
        ("args-missing-tail", "openai-chat", {"altered"}, {"arguments"}),
        ("args-null", "openai-chat", {"altered"}, {"arguments"}),
        ("name-polluted", "openai-chat", {"altered"}, {"name"}),
        ("finish-stop-with-calls", "openai-chat", {"altered"}, {"finish_reason"}),
        ("args-lost-in-one-delta", "openai-chat", {"dropped"}, set()),
        ("args-trailing-ws", "openai-chat", {"inserted"}, set()),
        ("finish-twice", "openai-chat", {"inserted"}, set()),
        ("sse-last-event-unterminated", "openai-chat", {"dropped"}, set()),
        ("r-item-id-rotates", "openai-responses", {"re-indexed"}, {"id", "item_id"}),
        ("r-output-index-collides", "openai-responses", {"re-indexed"}, {"output_index"}),
        ("r-no-item-done", "openai-responses", {"dropped"}, set()),
        ("r-empty-first-delta", "openai-responses", {"inserted"}, set()),
        ("r-cipher-delta", "openai-responses", {"altered"}, {"delta"}),
        ("r-no-terminal", "openai-responses", {"dropped"}, set()),
        ("a-no-message-stop", "anthropic-messages", {"dropped"}, set()),
        ("a-dup-message-start", "anthropic-messages", {"inserted"}, set()),
        ("a-delta-unknown-block", "anthropic-messages", {"re-indexed"}, {"index"}),
        ("args-corrupt-punct", "anthropic-messages", {"altered"}, {"partial_json"}),
        ("args-missing-tail", "bedrock-converse", {"altered"}, {"input"}),
        ("args-extra-brace", "bedrock-invoke", {"altered"}, {"partial_json"}),
        ("agui-order", "ai-sdk-ui", {"moved"}, set()),
        ("ui-no-start", "ai-sdk-ui", {"dropped"}, set()),
        ("proxy-buffered", "gemini", set(), set()),
        ("sse-no-event-line", "anthropic-messages", set(), set()),
    ],
)
def test_what_a_mutator_did_is_named(
    name: str, stem: str, kinds: set[str], where: set[str]
) -> None:
    assert kinds_of(name, stem) == (kinds, where)


def test_equal_streams_are_one_equal_change() -> None:
    (change,) = changes_of(units(chat(*STREAM)), units(chat(*STREAM)))
    assert (change.kind, change.left, change.right) == (
        Kind.EQUAL,
        tuple(range(9)),
        tuple(range(9)),
    )
    assert changes_of((), ()) == ()


@settings(max_examples=40, deadline=None)
@given(st.sets(st.integers(0, 8)))
def test_what_is_left_out_is_dropped_and_the_other_way_round_inserted(gone: set[int]) -> None:
    whole = [*STREAM, "[DONE]"]
    rest = [each for at, each in enumerate(whole) if at not in gone]
    left, right = chat(*whole, done=False), chat(*rest, done=False)
    dropped = [number for kind, numbers, _ in between(left, right) for number in numbers]
    assert {kind for kind, _, _ in between(left, right)} <= {"dropped"}
    assert sorted(dropped) == sorted(gone)
    assert {kind for kind, _, _ in between(right, left)} <= {"inserted"}


def test_pieces_that_were_put_together_are_merged_and_back_again_split() -> None:
    one, other = chat(*words("a", "b", "c", "d", "e")), chat(*words("abc", "d", "e"))
    assert between(one, other) == [("merged", (0, 1, 2), (0,))]
    assert between(other, one) == [("split", (0,), (0, 1, 2))]
    recut = chat(*words("ab", "cde"))
    assert between(one, recut) == [("merged", (0, 1), (0,)), ("merged", (2, 3, 4), (1,))]
    assert between(chat(*words("ab", "c")), chat(*words("a", "bc"))) == [("re-cut", (0, 1), (0, 1))]


def test_an_event_that_stands_elsewhere_was_moved() -> None:
    usage = {"choices": [], "usage": {"n": 1}}
    one, other = chat(usage, *STREAM), chat(*STREAM, usage)
    assert between(one, other) == [("moved", (0,), (8,))]
    twice = between(chat(usage, usage, *STREAM), chat(*STREAM, usage, usage))
    assert twice == [("moved", (0,), (8,)), ("moved", (1,), (9,))]


def test_an_altered_event_tells_where() -> None:
    left = chat(*words("a", "b"), FINISH)
    right = chat(*words("a"), choice({"content": "c", "role": "x"}), FINISH)
    (found,) = (
        change for change in compare_exchanges(left, right).changes if change.kind is Kind.ALTERED
    )
    assert paths(found) == ["$.choices[0].delta.content", "$.choices[0].delta.role"]


def test_data_that_is_no_json_and_types_are_told_as_such() -> None:
    left, right = chat("oops", done=False), chat("other", done=False)
    (found,) = compare_exchanges(left, right).changes
    assert (found.kind, paths(found)) == (Kind.ALTERED, ["(data)"])
    (one,) = units(chat(*words("a"), done=False))
    other = replace(one, key="k", loose="l", event=one.event._replace(type="other"))
    (renamed,) = changes_of([one], [other])
    assert paths(renamed) == ["(event type)"]


def test_a_type_may_be_all_that_differs() -> None:
    one, other = (
        analysed(f"event: {name}\ndata: hello\n\n".encode(), "http://127.0.0.1/x") for name in "ab"
    )
    (found,) = compare_exchanges(one, other).changes
    assert (found.kind, paths(found)) == (Kind.ALTERED, ["(event type)"])


def test_events_of_different_sorts_are_no_altered_forms_of_each_other() -> None:
    left, right = chat(*words("a"), "[1]", done=False), chat("[2]", *words("b"), done=False)
    found = between(left, right)
    assert ("altered", (1,), (0,)) in found or ("altered", (0,), (1,)) in found
    assert len(found) == 3


def test_calls_that_change_places_are_told_by_their_events() -> None:
    first, second = call('{"a":1}'), call('{"b":2}', index=1)
    found = between(chat(*first, *second), chat(*second, *first))
    assert {kind for kind, _, _ in found} == {"moved"}


def test_merged_calls_tell_when_they_are_for_somebody_else() -> None:
    left = chat(*call('{"a"', ":1}", index=1), FINISH)
    right = chat(calls(entry(0, "c1", name="get", arguments='{"a":1}')), FINISH)
    (found,) = (c for c in compare_exchanges(left, right).changes if c.kind is not Kind.EQUAL)
    assert (found.kind, [*paths(found)]) == (Kind.MERGED, ["choices.delta.tool_calls.index"])
    assert (found.differences[0].recorded, found.differences[0].received) == ("1", "0")


@pytest.mark.exhaustive
def test_ten_thousand_events_take_seconds() -> None:
    texts = [f"w{at % 97} " for at in range(10_000)]
    left = chat(*words(*texts))
    right = chat(*words(*(text for at, text in enumerate(texts) if at % 100)), *words("x"))
    merged = chat(*words("".join(texts)))
    start_ns = SystemClock.now_ns()
    assert len(unlike(compare_exchanges(left, right))) == 101
    assert [kind for kind, *_ in between(left, merged)] == ["merged"]
    assert SystemClock.now_ns() - start_ns < 30 * 10**9
