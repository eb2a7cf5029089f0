"""The pinned SDKs make of all streams what docs/sdks.md says, and the words for it are right."""

import pytest

from deltatape.model.request_summary import RepeatedCall
from deltatape.sdks.runner import SdkReply
from helpers.clients import SDKS, available
from helpers.sdk_table import COLUMNS, Column, captured, measured, vectors, word, written


def called(call_id: str | None, name: str | None, arguments: str) -> RepeatedCall:
    return RepeatedCall(id=call_id, name=name, arguments=arguments)


SAMPLED = 8
"""Of the captured streams every eighth: all take 40 s, and `scripts/sdk-table` runs them."""
GET, PUT = called("c1", "get", '{"a":1}'), called("c2", "put", '{"b":2}')
CUT = called("c1", "get", '{"a":')


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.name)
def test_a_column_is_installed(column: Column) -> None:
    for client in SDKS:
        available(client)
    assert column.installed


def test_every_sdk_does_what_is_written() -> None:
    for client in SDKS:
        available(client)
    rows = vectors() + captured()[::SAMPLED]
    told, now = written(), measured(COLUMNS, rows)
    assert now.versions == told.versions
    names = {row.name for row in rows}
    for column in COLUMNS:
        words = {name: said for name, said in told.words[column.name].items() if name in names}
        assert now.words[column.name] == words, column.name


@pytest.mark.parametrize(
    ("calls", "told"),
    [
        ((GET, PUT), "same"),
        ((called("c1", "get", '{ "a": 1 }'), PUT), "same"),
        ((GET,), "silently: 1 call lost"),
        ((), "silently: 2 calls lost"),
        ((GET, PUT, called("c3", "run", "{}")), "silently: 1 call too many"),
        ((called("c3", "run", "{}"), GET, PUT), "silently: 1 call too many"),
        ((called("c1c1", "get", '{"a":1}'), PUT), "silently: id"),
        ((called("c1", "getget", '{"a":1}'), PUT), "silently: name"),
        ((called("c2", "put", '{"a":1}{"b":2}'),), "silently: 1 call lost, arguments"),
    ],
)
def test_a_word_tells_what_differs(calls: tuple[RepeatedCall, ...], told: str) -> None:
    assert word((GET, PUT), SdkReply(calls=calls)) == told


def test_an_id_that_the_stream_lacks_may_be_made_up() -> None:
    assert word((called(None, "get", ""),), SdkReply(calls=(called("x", "get", "{}"),))) == "same"


def test_what_is_encoded_twice_may_be_given_decoded() -> None:
    twice = called("c1", "get", '"{\\"a\\": 1}"')
    assert word((twice,), SdkReply(calls=(GET,))) == "same"


def test_a_cut_call_may_be_kept_back_but_not_be_mended() -> None:
    assert word((CUT,), SdkReply(calls=(CUT,))) == "same"
    assert word((CUT,), SdkReply(calls=())) == "keeps 1 call back"
    assert word((CUT,), SdkReply(calls=(), refused=(CUT,))) == "marks 1 call invalid"
    mended = SdkReply(calls=(called("c1", "get", "{}"),))
    assert word((CUT,), mended) == "silently: arguments"


def test_an_exception_goes_by_its_type() -> None:
    error = "TypeError: list indices: no None"
    assert word((GET,), SdkReply(calls=(), error=error)) == "raises TypeError"
    assert word((GET,), SdkReply(calls=(GET,), error=error)) == "raises TypeError, gives 1 call"
