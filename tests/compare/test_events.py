"""What became of events: the mutators say what they did, the comparison has to find it."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltatape.compare import ChangeKind, EventChange, compare_exchanges
from deltatape.compare.events import MAX_EDITS, RunMatcher, align, changes_of
from deltatape.diagnose.rebuild import Analysis, analyse
from helpers.chat import FINISH, calls, choice, entry
from helpers.compared import analysed, call, chat, units, unlike, words
from helpers.mutated import changed, recorded
from helpers.splits import cut, random_cuts

STREAM = [*words("I ", "am ", "here."), *call('{"a"', ':"x', '"}'), FINISH]


def between(left: Analysis, right: Analysis) -> list[tuple[str, tuple[int, ...], tuple[int, ...]]]:
    return unlike(compare_exchanges(left, right))


def paths(change: EventChange) -> list[str]:
    return [difference.path for difference in change.differences]


def kinds_of(name: str, stem: str) -> tuple[set[str], set[str]]:
    """The kinds of changes that a mutator causes, and the paths that differ."""
    healthy = recorded(stem)
    mutated = changed(name, healthy)
    assert mutated is not None
    comparison = compare_exchanges(analyse(healthy), analyse(mutated))
    found = [change for change in comparison.changes if change.kind is not ChangeKind.EQUAL]
    return {change.kind.value for change in found}, {
        path.rpartition(".")[2] for change in found for path in paths(change)
    }


@pytest.mark.slow
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
def test_the_change_by_a_mutator_is_named(
    name: str, stem: str, kinds: set[str], where: set[str]
) -> None:
    assert kinds_of(name, stem) == (kinds, where)


def test_equal_streams_are_one_equal_change() -> None:
    (change,) = changes_of(units(chat(*STREAM)), units(chat(*STREAM)))
    assert (change.kind, change.left, change.right) == (
        ChangeKind.EQUAL,
        tuple(range(9)),
        tuple(range(9)),
    )
    assert changes_of((), ()) == ()


@pytest.mark.slow
@settings(max_examples=40)
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
        change
        for change in compare_exchanges(left, right).changes
        if change.kind is ChangeKind.ALTERED
    )
    assert paths(found) == ["$.choices[0].delta.content", "$.choices[0].delta.role"]


def test_data_that_is_not_json_and_types_are_reported_as_such() -> None:
    left, right = chat("oops", done=False), chat("other", done=False)
    (found,) = compare_exchanges(left, right).changes
    assert (found.kind, paths(found)) == (ChangeKind.ALTERED, ["(data)"])
    (one,) = units(chat(*words("a"), done=False))
    other = replace(one, key="k", loose="l", event=one.event._replace(type="other"))
    (renamed,) = changes_of([one], [other])
    assert paths(renamed) == ["(event type)"]


def test_a_type_may_be_all_that_differs() -> None:
    one, other = (
        analysed(f"event: {name}\ndata: hello\n\n".encode(), "http://127.0.0.1/x") for name in "ab"
    )
    (found,) = compare_exchanges(one, other).changes
    assert (found.kind, paths(found)) == (ChangeKind.ALTERED, ["(event type)"])


def test_events_of_different_sorts_are_no_altered_forms_of_each_other() -> None:
    left, right = chat(*words("a"), "[1]", done=False), chat("[2]", *words("b"), done=False)
    found = between(left, right)
    assert ("altered", (1,), (0,)) in found or ("altered", (0,), (1,)) in found
    assert len(found) == 3


def test_calls_that_change_places_are_described_by_their_events() -> None:
    first, second = call('{"a":1}'), call('{"b":2}', index=1)
    found = between(chat(*first, *second), chat(*second, *first))
    assert {kind for kind, _, _ in found} == {"moved"}


def test_merged_calls_tell_when_they_are_for_somebody_else() -> None:
    left = chat(*call('{"a"', ":1}", index=1), FINISH)
    right = chat(calls(entry(0, "c1", name="get", arguments='{"a":1}')), FINISH)
    (found,) = (c for c in compare_exchanges(left, right).changes if c.kind is not ChangeKind.EQUAL)
    assert (found.kind, [*paths(found)]) == (ChangeKind.MERGED, ["choices.delta.tool_calls.index"])
    assert (found.differences[0].recorded, found.differences[0].received) == ("1", "0")


@pytest.mark.slow
def test_thousands_of_events_are_aligned_at_once() -> None:
    texts = [f"w{at % 97} " for at in range(4_000)]
    left = chat(*words(*texts))
    right = chat(*words(*(text for at, text in enumerate(texts) if at % 100)), *words("x"))
    merged = chat(*words("".join(texts)))
    assert len(unlike(compare_exchanges(left, right))) == 41
    assert [kind for kind, *_ in between(left, merged)] == ["merged"]


SHORT = st.text("abcd", max_size=14)


def longest(left: str, right: str) -> int:
    """The length of the longest common subsequence, by the textbook."""
    row = [0] * (len(right) + 1)
    for one in left:
        before = 0
        for at, other in enumerate(right, 1):
            before, row[at] = row[at], before + 1 if one == other else max(row[at], row[at - 1])
    return row[-1]


@given(SHORT, SHORT)
def test_pairs_ascend_and_hold_equal_values(left: str, right: str) -> None:
    pairs = align(left, right)
    assert all(left[i] == right[j] for i, j in pairs)
    for side in zip(*pairs, strict=True):
        assert list(side) == sorted(set(side))


@pytest.mark.slow
@given(st.lists(st.sampled_from("ab"), max_size=9), st.lists(st.sampled_from("ab"), max_size=9))
def test_without_anchors_the_alignment_is_the_longest(left: list[str], right: list[str]) -> None:
    # Between walls of values that stand twice there is nothing to be an anchor.
    one, other = "xyxy" + "".join(left * 2), "zwzw" + "".join(right * 2)
    if all(one.count(each) != 1 != other.count(each) for each in "ab"):
        assert len(align(one + "vv", other + "uu")) == longest(one, other)


@pytest.mark.slow
@given(st.lists(st.integers(0, 99), max_size=60), st.data())
def test_what_is_left_out_or_put_in_is_all_that_is_not_paired(
    left: list[int], data: st.DataObject
) -> None:
    left = list(dict.fromkeys(left))
    gone = data.draw(st.sets(st.sampled_from(left))) if left else set()
    right = [each for each in left if each not in gone]
    right.insert(data.draw(st.integers(0, len(right))), -1)
    pairs = align(left, right)
    assert [left[i] for i, _ in pairs] == [each for each in right if each != -1]


def test_one_left_out_of_many_equal_ones_is_one() -> None:
    assert len(align("a" * 10_000, "a" * 9_999)) == 9_999


@pytest.mark.slow
def test_ten_thousand_events_with_many_changes_are_aligned_at_once() -> None:
    words = [f"word {at % 50}" for at in range(10_000)]
    changed = [word for at, word in enumerate(words) if at % 7]
    backwards = words[::-1]
    assert len(align(words, changed)) > 8_000
    assert align(words, backwards)


def test_unlike_beginnings_do_not_keep_what_follows_from_being_found() -> None:
    left = "a" * MAX_EDITS * 2 + "xy" * 100
    right = "b" * MAX_EDITS * 2 + "xy" * 99 + "yx"
    assert len(align(left, right)) > 150


def run(left: list[object], right: list[object], i: int = 0, j: int = 0) -> object:
    return RunMatcher(units(chat(*left, done=False)), units(chat(*right, done=False))).at(i, j)


def test_a_run_ends_where_both_sides_end_an_event() -> None:
    assert run(words("Hel", "lo", "x"), words("Hello", "x")) == (2, 1)
    assert run(words("Hello", "x"), words("Hel", "lo", "x")) == (1, 2)
    assert run(words("ab", "c"), words("a", "bc")) == (2, 2)
    assert run(words("a"), words("a")) == (1, 1)


def test_no_run_begins_where_the_texts_differ_or_one_side_ends() -> None:
    assert run(words("Hel"), words("Helo")) is None
    assert run(words("Hex"), words("Hello")) is None
    assert run(words("a"), call("a")) is None
    assert run([{"choices": []}], words("a")) is None
    assert run(words("a"), [{"choices": []}]) is None
    assert run(words("a"), words("a"), 1, 0) is None


def test_a_call_may_come_with_its_arguments_in_one_event() -> None:
    opened, *later = call('{"a"', ":1}")
    whole = call('{"a":1}')
    assert run([opened, *later], whole, 1, 1) == (3, 2)
    assert run(call("x", index=1, name="put"), call("x", index=1)) is None


def test_an_event_without_content_ends_a_run() -> None:
    assert run(words("a", "") + words("b"), words("ab")) is None


def test_an_end_is_compared_as_a_whole() -> None:
    assert run([*words("a"), FINISH], [*words("a"), FINISH], 1, 1) == (2, 2)


@pytest.mark.slow
@given(st.text(min_size=1, max_size=20), st.data())
def test_any_two_cuttings_of_a_text_are_runs(text: str, data: st.DataObject) -> None:
    sides = [words(*cut(text, data.draw(random_cuts(len(text))))) for _ in range(2)]
    left, right = (units(chat(*side, done=False)) for side in sides)
    runs = RunMatcher(left, right)
    i = j = 0
    while i < len(left) and j < len(right):
        found = runs.at(i, j)
        assert found is not None
        i, j = found
    assert (i, j) == (len(left), len(right))


@pytest.mark.slow
def test_attempts_that_fail_do_not_go_on_for_ever() -> None:
    left, right = (units(chat(*words(*"a" * 300, end), done=False)) for end in ("x", "y"))
    runs = RunMatcher(left[:-1], right)
    assert all(runs.at(0, 0) == (1, 1) for _ in range(5))
    merged = units(chat(*words("a" * 299 + "b"), done=False))
    tries = RunMatcher(left, merged)
    assert [tries.at(at, 0) for at in range(300)] == [None] * 300
