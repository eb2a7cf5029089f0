"""What differs in framing alone."""

import json

import pytest

from deltatape.compare import Kind, Spacing, compare_exchanges
from deltatape.diagnose.rebuild import Analysis, analyse
from helpers.chat import URL
from helpers.compared import analysed, chat, words
from helpers.mutated import changed, recorded

PLAIN = b'data: {"type":"a","x":1}\n\ndata: {"type":"b"}\n\n'


def framed(left: Analysis, right: Analysis) -> list[tuple[str, int, str, str]]:
    comparison = compare_exchanges(left, right)
    assert {change.kind for change in comparison.changes} <= {Kind.EQUAL}
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
def test_each_sort_of_difference_is_told_once(
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


def test_a_gateway_that_pads_nothing_is_told_with_the_first_events() -> None:
    healthy = recorded("anthropic-messages")
    bare = changed("sse-no-event-line", healthy)
    assert bare is not None
    comparison = compare_exchanges(analyse(healthy), analyse(bare))
    (found,) = comparison.framing
    assert (found.what, found.event) == (Spacing.EVENT_LINE, (0, 0))
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
