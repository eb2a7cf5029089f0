import pytest

from helpers.chat import FINISH, calls, codes, entry, reply_to, told

A1 = '{"a":1}'
B2 = '{"b":2}'


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        pytest.param(
            [entry(None, "c1", name="get"), entry(arguments='{"a"'), entry(arguments=":1}")],
            [("c1", "get", A1)],
            id="fragments",
        ),
        pytest.param(
            [
                entry(None, "c1", name="get", arguments='{"a"'),
                entry(None, "c2", name="put", arguments='{"b"'),
                entry(None, "c1", arguments=":1}"),
                entry(None, "c2", arguments=":2}"),
            ],
            [("c1", "get", A1), ("c2", "put", B2)],
            id="fragments with ids",
        ),
        pytest.param(
            [entry(name="get", arguments=A1), entry(name="get", arguments=A1)],
            [(None, "get", A1), (None, "get", A1)],
            id="whole calls with names",
        ),
        pytest.param(
            [entry(name="get", arguments='{"a"'), entry(name="get", arguments=":1}")],
            [(None, "get", A1)],
            id="a name on each fragment",
        ),
        pytest.param(
            [entry(arguments='{"a"'), entry(name="get", arguments=":1}")],
            [(None, "get", A1)],
            id="a late name",
        ),
        pytest.param(
            [entry(None, "c1", name="get", arguments='{"a"'), entry(None, "c2", arguments=":1}")],
            [("c1", "get", A1)],
            id="an id that changes",
        ),
        pytest.param(
            [entry(name="get", arguments='{"a"'), entry(name="get", arguments='{"a":1}')],
            [(None, "get", A1)],
            id="cumulative with names",
        ),
        pytest.param(
            [entry(name="get", arguments=text) for text in ('{"a"', '{"a":', '{"a":1', '{"a":1}')],
            [(None, "get", A1)],
            id="cumulative in many pieces",
        ),
        pytest.param(
            [entry(name="get", arguments='{"a"'), entry(name="put", arguments=B2)],
            [(None, "get", '{"a"'), (None, "put", B2)],
            id="a cut call and another",
        ),
        pytest.param(
            [entry(name="get", arguments='{"a"'), entry(name="get", arguments="{")],
            [(None, "get", '{"a"'), (None, "get", "{")],
            id="a cut call and the same tool again",
        ),
        pytest.param(
            [entry(name="get"), entry(name="put")],
            [(None, "get", ""), (None, "put", "")],
            id="names only",
        ),
        pytest.param(
            [
                entry(None, "get", name="get", arguments=A1),
                entry(None, "get", name="get", arguments=B2),
            ],
            [("get", "get", A1), ("get", "get", B2)],
            id="the name as id",
        ),
        pytest.param(
            [
                entry(None, "c1", name="get", arguments=A1),
                entry(None, "c1", name="get", arguments=A1),
            ],
            [("c1", "get", A1)],
            id="a whole call again",
        ),
        pytest.param(
            [entry(None, "c1", name="get", arguments=A1), entry(None, "c1", arguments=" ")],
            [("c1", "get", A1 + " ")],
            id="whitespace after a whole call",
        ),
    ],
)
def test_without_index_the_id_or_the_last_call_tells_where_an_entry_belongs(
    entries: list[dict[str, object]], expected: list[tuple[str | None, str | None, str]]
) -> None:
    reply = reply_to(*[calls(one) for one in entries], FINISH)
    assert told(reply) == expected
    assert "T011" in codes(reply)
