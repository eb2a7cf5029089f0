"""Fixtures in the forms that aimock 1.43 reads and records."""

import json

import pytest

from deltatape.diagnose.check_tape import check_exchanges
from deltatape.diagnose.rebuild import analyse
from deltatape.errors import UsageError
from deltatape.importers.aimock import AimockImporter
from deltatape.model.reply import Reply
from deltatape.model.rule_settings import Settings
from helpers.imported import imported, notes, source


def fixtures(*responses: object) -> bytes:
    listed = [{"match": {"userMessage": "blue"}, "response": each} for each in responses]
    return json.dumps({"fixtures": listed}, indent=2).encode()


def reply(**response: object) -> Reply:
    (exchange,) = AimockImporter().read(source(fixtures(response)))
    return analyse(exchange).reply


def test_an_answer_is_an_exchange_of_whose_request_nothing_is_known() -> None:
    call = {"name": "paint", "arguments": {"background": "blue"}}
    first, second = imported(fixtures({"toolCalls": [call]}, {"content": "Done!"}))
    (made,) = analyse(first).reply.tool_calls
    assert (made.id, made.name, made.arguments) == ("call_1", "paint", '{"background": "blue"}')
    assert analyse(second).reply.text == "Done!"
    assert first.request.body == b""
    assert 'aimock: answers requests that match {"userMessage": "blue"}' in notes(first)
    assert not check_exchanges("x", (first, second), Settings()).reported


def test_arguments_that_are_a_text_stay_as_they_are() -> None:
    call = {"id": "c7", "name": "paint", "arguments": '{"a":'}
    (made,) = reply(content="I", toolCalls=[call], finishReason="length").tool_calls
    assert (made.id, made.arguments) == ("c7", '{"a":')


def test_blocks_are_the_answer_where_there_are_some() -> None:
    found = reply(
        blocks=[
            {"type": "text", "text": "a"},
            {"type": "toolCall", "name": "paint", "arguments": "{}"},
            {"type": "other"},
            {"type": "text", "text": "b"},
        ],
        reasoning="Hm.",
        id="x",
        model="m",
    )
    assert (found.text, found.reasoning, found.id, found.model) == ("ab", "Hm.", "x", "m")
    assert len(found.tool_calls) == 1


def test_structured_content_is_written_as_json() -> None:
    assert reply(content={"a": 1}).text == '{"a": 1}'


def test_an_error_is_an_answer() -> None:
    assert reply(error={"message": "overloaded"}).error == "overloaded"


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (fixtures({"embedding": [1]}), "none of which answers with text or calls"),
        (fixtures({"content": "a"})[:-9], "torn"),
    ],
)
def test_answers_of_other_kinds_and_torn_files_are_refused(data: bytes, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        imported(data)


@pytest.mark.parametrize("data", [b"", b'{"fixtures": []}', b'["fixtures", "match", "response"]'])
def test_other_files_are_not_for_this_importer(data: bytes) -> None:
    assert not AimockImporter().claims(source(data))
