"""What was read of an exchange, to be compared later."""

from dataclasses import replace

import pytest

from deltatape.diagnose.parsed_record import FORM, misread, parsed_as
from deltatape.diagnose.rebuild import Analysis, analyse
from deltatape.tape.payload import ParsedAs
from helpers.chat import FINISH, choice
from helpers.compared import call, chat, words
from helpers.mutated import RECORDINGS, recorded

TOOL = "deltatape 0.1.0"
STEMS = sorted(path.stem for path in RECORDINGS.glob("*.tape"))


def read(analysis: Analysis) -> ParsedAs:
    return parsed_as(analysis, TOOL)


THEN = read(chat(*call('{"a":1}'), FINISH))


@pytest.mark.parametrize("stem", STEMS)
def test_every_recording_is_read_the_same_twice(stem: str) -> None:
    one, other = read(analyse(recorded(stem))), read(analyse(recorded(stem)))
    assert one == other
    assert misread(one, other) == ""
    assert ParsedAs.from_json(one.to_json()) == one


def test_what_was_read_stands_there_in_plain_numbers() -> None:
    assert (THEN.dialect, THEN.events, THEN.calls, THEN.finish) == (
        *("openai-chat", 4, 1, "tool_calls"),
    )
    assert (THEN.tool, THEN.form, len(THEN.sha256)) == (TOOL, FORM, 64)


def test_what_differs_is_described_by_its_name() -> None:
    now = read(chat(*words("a", "b")))
    assert misread(THEN, now) == (
        "events 4, now 3; calls 1, now 0; finish reason tool_calls, now none"
    )
    other = replace(THEN, dialect="mistral")
    assert misread(THEN, other) == "dialect openai-chat, now mistral"


@pytest.mark.parametrize(
    "now",
    [
        chat(*call('{"a":2}'), FINISH),
        chat(*call('{"a":1}', name="put"), FINISH),
        chat(*call('{"a":'), FINISH),
        chat(*call('{"a":1}'), choice({"content": "x"}, "tool_calls")),
    ],
    ids=["arguments", "name", "status", "text"],
)
def test_content_shows_by_its_hash(now: Analysis) -> None:
    assert "a call or its arguments" in misread(THEN, read(now))


def test_hashes_of_another_form_are_not_compared() -> None:
    assert misread(replace(THEN, form=FORM + 1, sha256="0" * 64), THEN) == ""
