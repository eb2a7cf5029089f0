import pytest

from deltatape.model.suspect import Symptom
from deltatape.suspects import PRESETS, matrix, reads_rightly, suspect_page, suspects_of
from helpers import chat
from helpers.chat import FINISH, calls, entry, sse
from helpers.suspected import deliver, made, names, suspects

APP = b'data: {"type":"tool_call","name":"get","arguments":{}}\n\ndata: {"type":"done"}\n\n'


def test_clients_of_other_dialects_are_not_known() -> None:
    stream = deliver(APP, url="http://127.0.0.1/chat")
    assert matrix(stream) == ()
    assert suspects_of(stream, Symptom(calls=made(("x", "y", "z")))) == ()


def test_a_stream_without_calls_accuses_nobody() -> None:
    stream = deliver(chat.sse(chat.choice({"content": "x"}), chat.choice({}, "stop")))
    assert suspects(stream, ()) == ()
    assert all(not row.differs for row in matrix(stream))


def test_presets_are_explained() -> None:
    assert all(suspect_page(preset.name) for preset in PRESETS)


@pytest.mark.parametrize("name", ["single-current-call", "each-event-is-a-call"])
def test_a_preset_is_found_by_what_it_makes(name: str) -> None:
    stream = deliver(
        chat.sse(
            chat.calls(chat.entry(0, "c1", name="get", arguments="")),
            chat.calls(chat.entry(1, "c2", name="put", arguments="")),
            chat.calls(chat.entry(0, arguments="[1]")),
            chat.FINISH,
        )
    )
    row = next(row for row in matrix(stream) if row.name == name)
    assert names(suspects(stream, row.made.calls))[0] == name


def test_a_suspect_may_read_another_stream_rightly() -> None:
    one = [calls(entry(0, "c1", name="get", arguments='{"a":1}')), FINISH]
    two = [*one[:1], calls(entry(1, "c2", name="put", arguments='{"b":2}')), FINISH]
    both = deliver(sse(*two))
    (first, *_) = suspects_of(both, Symptom(calls=made(("c2", "put", '{"b":2}'))))
    assert first.name == "single-current-call"
    assert not reads_rightly(both, first)
    assert reads_rightly(deliver(sse(*one)), first)
