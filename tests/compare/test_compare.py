"""Two exchanges compared as wholes, and the hops of several."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltatape.compare import (
    VOLATILE,
    ChangeKind,
    SpacingDifference,
    compare_exchanges,
    first_damage,
)
from deltatape.compare.comparable_events import DEEPEST
from deltatape.diagnose.rebuild import Analysis, analyse
from deltatape.model.exchange import Exchange, Headers, MaskedCredential
from deltatape.mutate import MUTATORS, SeededChoices
from helpers.chat import FINISH, URL, calls, choice, entry, sse
from helpers.compared import analysed, call, chat, words
from helpers.mutated import RECORDINGS, changed, recorded

CHUNKS = [
    *words("a", "b", "ab", "", "ba"),
    *call("{", "}", "{}"),
    *call("{", "}", index=1),
    FINISH,
    "no json",
    "[1]",
    {"choices": [], "usage": {}},
]
STEMS = sorted(path.stem for path in RECORDINGS.glob("*.tape"))


@pytest.mark.slow
@pytest.mark.parametrize("stem", STEMS)
def test_every_recording_equals_itself(stem: str) -> None:
    analysis = analyse(recorded(stem))
    comparison = compare_exchanges(analysis, analysis)
    assert comparison.equal
    assert comparison.by_event


@pytest.mark.slow
@pytest.mark.parametrize("stem", STEMS)
def test_a_mutated_recording_differs_unless_only_times_or_ids_of_answers_do(stem: str) -> None:
    healthy = recorded(stem)
    for mutator in MUTATORS:
        mutated = mutator.mutate(healthy, SeededChoices(2))
        if mutated is None:
            continue
        comparison = compare_exchanges(analyse(healthy), analyse(mutated))
        same = mutated.body == healthy.body or mutator.name == "chunk-id-changes"
        assert comparison.equal == same, mutator.name
        assert all(call.cause is not None for call in comparison.calls), mutator.name


@pytest.mark.slow
@given(
    st.lists(st.sampled_from(CHUNKS), max_size=14), st.lists(st.sampled_from(CHUNKS), max_size=14)
)
def test_every_event_of_both_sides_is_reported_once(
    left: list[object], right: list[object]
) -> None:
    sides = [chat(*each) for each in (left, right)]
    changes = compare_exchanges(sides[0], sides[1]).changes
    for side, numbers in (
        (sides[0], [number for change in changes for number in change.left]),
        (sides[1], [number for change in changes for number in change.right]),
    ):
        assert sorted(numbers) == [event.number for event in side.stream.events]
    for change in changes:
        assert change.kind is not ChangeKind.EQUAL or len(change.left) == len(change.right)
    equal = [change for change in changes if change.kind is ChangeKind.EQUAL]
    for at in ("left", "right"):
        order = [number for change in equal for number in getattr(change, at)]
        assert order == sorted(order)


def test_a_document_and_a_stream_are_compared_by_what_they_bring() -> None:
    message = {"role": "assistant", "content": "Hi"}
    document = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    body = json.dumps({"object": "chat.completion", **document}).encode()
    whole = analysed(body, URL, "application/json")
    comparison = compare_exchanges(whole, whole)
    assert (comparison.by_event, comparison.equal) == (True, True)
    stream = chat(
        *words("H", "i"), {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    )
    comparison = compare_exchanges(whole, stream)
    assert (comparison.by_event, comparison.equal) == (False, True)


def test_all_fields_are_compared_where_nothing_is_ignored() -> None:
    one, other = (chat({"id": name, "created": 1, "choices": []}) for name in "ab")
    assert compare_exchanges(one, other).equal
    assert not compare_exchanges(one, other, ()).equal
    assert compare_exchanges(one, other, ("id",)).volatile == (("id", 1),)
    assert "id" in VOLATILE


def test_the_most_frequent_ignored_field_comes_first() -> None:
    left = chat(*({"id": "a", "created": at, "choices": []} for at in range(3)))
    right = chat(*({"id": "b", "created": max(at, 1), "choices": []} for at in range(3)))
    assert compare_exchanges(left, right).volatile == (("id", 3), ("created", 1))


def test_the_first_hop_that_damaged_a_call_is_found() -> None:
    whole = chat(*words("a"), *call('{"a":1}'), FINISH)
    worded = chat(*words("b"), *call('{"a":1}'), FINISH)
    broken = chat(*words("b"), *call('{"a":'), FINISH)
    hops = [
        compare_exchanges(one, other)
        for one, other in ((whole, worded), (worded, broken), (broken, broken))
    ]
    assert first_damage(hops) == 1
    assert first_damage(hops[:1]) is None
    more = chat(*words("a"), *call('{"a":1}'), *call("{}", index=1, name="put"), FINISH)
    added = compare_exchanges(whole, more)
    assert (len(added.calls), first_damage([added])) == (1, None)
    assert first_damage(()) is None


def test_an_empty_answer_is_compared_event_by_event() -> None:
    nothing = analysed(b"")
    comparison = compare_exchanges(chat(*call("{}"), FINISH), nothing)
    assert comparison.by_event
    assert [each.damage.value for each in comparison.calls] == ["lost"]
    assert not compare_exchanges(nothing, nothing).changes


@pytest.mark.slow
@pytest.mark.parametrize("depth", [90, 300, 510, 900])
def test_values_inside_each_other_without_end_are_compared_all_the_same(depth: int) -> None:
    one, other = (f'{{"index":{"[" * depth}{value}{"]" * depth},"choices":[]}}' for value in (1, 2))
    assert {change.kind for change in compare_exchanges(chat(one), chat(other)).changes} == {
        "altered" if depth > DEEPEST else "re-indexed",
        "equal",
    }
    left, right = (chat(*call("[" * depth + value + "]" * depth), FINISH) for value in "12")
    (damaged,) = compare_exchanges(left, right).calls
    assert damaged.damage.value == "arguments"


PLAIN = b'data: {"type":"a","x":1}\n\ndata: {"type":"b"}\n\n'


def framed(left: Analysis, right: Analysis) -> list[tuple[str, int, str, str]]:
    comparison = compare_exchanges(left, right)
    assert {change.kind for change in comparison.changes} <= {ChangeKind.EQUAL}
    return [(each.what.value, each.count, each.left, each.right) for each in comparison.framing]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (PLAIN, []),
        (PLAIN.replace(b"\n", b"\r\n"), [("line-ends", 2, "LF", "CR LF")]),
        (PLAIN.replace(b"data: ", b"data:"), [("fields", 2)]),
        (PLAIN.replace(b'"x":1', b'"x": 1'), [("json", 1, 'pe":"a","x":1}', 'pe":"a","x": 1}')]),
        (
            PLAIN.replace(b'"type":"a","x":1', b'"x":1,"type":"a"'),
            [("json", 1, "keys in one order", "keys in another")],
        ),
        (
            PLAIN.replace(b"data", b"event: a\ndata", 1),
            [("event-line", 1, "no event line", "event: a")],
        ),
        (PLAIN.replace(b"data", b"id: 7\ndata", 1), [("id-line", 1, "id: ", "id: 7")]),
        (
            PLAIN.replace(b"data", b"retry: 9\ndata", 1),
            [("retry-line", 1, "retry: None", "retry: 9")],
        ),
        (b": ping\n\n" + PLAIN, [("comments", 1, "0 comments", "1 comment, first: ping")]),
        (PLAIN + b"data: x\n", [("pending", 1, "nothing", "x")]),
    ],
)
def test_each_sort_of_difference_is_reported_once(
    body: bytes, expected: list[tuple[object, ...]]
) -> None:
    found = framed(analysed(PLAIN), analysed(body))
    assert [each[: len(wanted)] for each, wanted in zip(found, expected, strict=True)] == expected


def test_lines_and_an_array_are_other_formats() -> None:
    values = [{"type": "a"}, {"type": "b"}]
    lines = analysed(
        "".join(f"{json.dumps(each)}\n" for each in values).encode(), URL, "application/x-ndjson"
    )
    array = analysed(json.dumps(values).encode(), URL, "application/json")
    assert framed(lines, array)[0] == ("format", 1, "ndjson", "json-array")


def test_a_gateway_that_pads_nothing_is_reported_with_the_first_events() -> None:
    healthy = recorded("anthropic-messages")
    bare = changed("sse-no-event-line", healthy)
    assert bare is not None
    comparison = compare_exchanges(analyse(healthy), analyse(bare))
    (found,) = comparison.framing
    assert (found.what, found.event) == (SpacingDifference.EVENT_LINE, (0, 0))
    assert found.count == len(comparison.left.stream.events)
    assert not comparison.equal


def test_other_ids_of_answers_are_no_other_spelling() -> None:
    one, other = ({"id": name, "choices": []} for name in "ab")
    comparison = compare_exchanges(chat(one), chat(other))
    assert comparison.equal
    assert comparison.volatile == (("id", 1),)


def test_the_same_bytes_are_no_difference_whatever_they_are() -> None:
    assert framed(chat(*words("a"), "no json"), chat(*words("a"), "no json")) == []
    spaced = analysed(b"data:  [DONE]\n\n"), analysed(b"data:  [DONE]\r\n\r\n")
    assert framed(*spaced) == [("line-ends", 1, "LF", "CR LF")]


WHOLE = chat(*call("{}"), FINISH)


def test_any_difference_makes_two_exchanges_unequal() -> None:
    same = compare_exchanges(WHOLE, WHOLE)
    less = compare_exchanges(WHOLE, chat(*call("{}")))
    lost = compare_exchanges(WHOLE, chat(FINISH))
    framed = compare_exchanges(analysed(b"data: {}\n\n"), analysed(b"data:{}\n\n"))
    assert same.equal
    assert not less.equal
    assert not framed.equal
    for part in (
        replace(same, changes=less.changes),
        replace(same, reply=less.reply),
        replace(same, calls=lost.calls),
        replace(same, framing=framed.framing),
    ):
        assert not part.equal
    assert replace(same, volatile=(("id", 1),)).equal


NEAR_PROVIDER = recorded("openai-chat")


def passed_on(
    fields: dict[str, object] | None = None,
    headers: Headers = (),
    status: int = 200,
    of: Exchange = NEAR_PROVIDER,
) -> Exchange:
    """The exchange as an application saw it that sent other fields, with more headers."""
    assert of.response is not None
    body = of.request.body
    if fields is not None:
        body = json.dumps({**json.loads(body), **fields}).encode()
    head = replace(of.response, headers=(*of.response.headers, *headers), status=status)
    return replace(of, request=replace(of.request, body=body), response=head)


def context(left: Exchange, right: Exchange) -> list[tuple[str, str, str, str]]:
    comparison = compare_exchanges(analyse(left), analyse(right))
    assert comparison.equal
    return [
        (each.part.value, each.difference.path, each.difference.recorded, each.difference.received)
        for each in comparison.context
    ]


def test_what_a_gateway_makes_of_the_request_is_told_and_counts_as_nothing() -> None:
    assert context(NEAR_PROVIDER, NEAR_PROVIDER) == []
    sent = passed_on({"model": "alias", "drop_params": True})
    assert context(NEAR_PROVIDER, sent) == [
        ("request", "$.model", '"gpt-4o"', '"alias"'),
        ("request", "$.drop_params", "(absent)", "true"),
    ]
    assert context(NEAR_PROVIDER, replace(sent, request=replace(sent.request, body=b""))) == []


def test_headers_that_a_gateway_adds_drops_or_changes_are_told() -> None:
    more: Headers = (
        (b"Date", b"Thu, 26 Nov 2026 13:00:00 GMT"),
        (b"X-Call", b"1"),
        (b"X-Key", MaskedCredential(length=9, hash="00000000")),
        (b"x-call", b"2"),
    )
    near_app = passed_on(headers=more)
    assert context(NEAR_PROVIDER, near_app) == [
        ("headers", "x-call", "(absent)", "1, 2"),
        ("headers", "x-key", "(absent)", "***"),
    ]
    assert context(near_app, NEAR_PROVIDER)[0] == ("headers", "x-call", "1, 2", "(absent)")


def test_between_dialects_the_model_the_path_and_the_counts_are_told() -> None:
    found = context(NEAR_PROVIDER, recorded("openai-responses"))
    told = {(part, path): (left, right) for part, path, left, right in found}
    assert not any(part == "usage" for part, _ in told)
    paths = ('"/v1/chat/completions"', '"/v1/responses"')
    assert told["request", "path"] == paths
    assert told["request", "$.model"] == ('"gpt-4o"', '"gpt-4.1"')
    assert told["model", "model"] == ('"gpt-4o-2024-08-06"', '"gpt-4.1-2025-04-14"')
    assert "messages" not in str([path for _, path in told])

    other = analyse(recorded("openai-responses"))
    for usage, model, expected in (
        ({"input_tokens": 96, "output_tokens": 5}, None, ["answer tokens"]),
        (None, "gpt-4o-2024-08-06", []),
    ):
        changed_ = replace(other, reply=replace(other.reply, model=model, usage=usage))
        comparison = compare_exchanges(analyse(NEAR_PROVIDER), changed_)
        said = [e.difference.path for e in comparison.context if e.part.value in ("model", "usage")]
        assert said == expected


def test_another_status_with_the_same_body_is_a_difference() -> None:
    left, right = (analyse(each) for each in (NEAR_PROVIDER, passed_on(status=201)))
    comparison = compare_exchanges(left, right)
    assert not comparison.equal
    assert [(each.path, each.recorded, each.received) for each in comparison.reply] == [
        ("status", "200", "201")
    ]
    unanswered = analyse(replace(NEAR_PROVIDER, response=None, reads=()))
    assert "status" not in [each.path for each in compare_exchanges(left, unanswered).reply]


def rewritten(*chunks: object) -> Analysis:
    """A chat of which a gateway writes every chunk anew."""
    return chat(
        *({**each, "model": "alias"} if isinstance(each, dict) else each for each in chunks)
    )


def test_a_dropped_event_is_the_cause_where_all_others_are_altered() -> None:
    opened, *pieces = call("{", '"a"', ":", "1", "}")
    comparison = compare_exchanges(
        chat(opened, *pieces, FINISH), rewritten(opened, *pieces[:1], *pieces[2:], FINISH)
    )
    (damaged,) = comparison.calls
    assert damaged.cause is not None
    assert (damaged.cause.kind, damaged.cause.left) == (ChangeKind.DROPPED, (2,))
    assert [change.kind for change in comparison.changes].count(ChangeKind.DROPPED) == 1


def test_event_lines_of_altered_events_are_framing_where_the_data_names_the_type() -> None:
    left = b'event: a\nid: 1\ndata: {"type":"a","x":1}\n\nevent: b\n' + sse(*words("a"))
    right = b'id: 2\ndata: {"type":"a","x":2}\n\n' + sse({**choice({"content": "a"}), "y": 2})
    comparison = compare_exchanges(analysed(left), analysed(right))
    assert [(each.what.value, each.count) for each in comparison.framing] == [
        ("event-line", 1),
        ("id-line", 2),
    ]
    paths = [each.path for change in comparison.changes for each in change.differences]
    assert paths.count("(event type)") == 1


def test_an_index_that_two_calls_share_is_damage_unless_it_was_shared_before() -> None:
    def two(second: object) -> Analysis:
        return chat(
            calls(entry(0, "c0", name="get", arguments="{}")),
            calls(entry(second, "c1", name="put", arguments="{}")),
            FINISH,
        )

    (damaged,) = compare_exchanges(two(1), two(0)).calls
    assert (damaged.damage.value, damaged.right and damaged.right.name) == ("identity", "put")
    (index,) = damaged.differences
    assert (index.path, index.recorded, index.received) == ("index", "1", "0, as call 0")
    assert compare_exchanges(two(0), two(0)).calls == ()
    assert compare_exchanges(two(1), two(None)).calls == ()
