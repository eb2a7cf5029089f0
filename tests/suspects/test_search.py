import pytest

from deltatape.model.suspect import Symptom
from deltatape.suspects import PRESETS, matrix, reads_rightly, search, suspect_page, suspects_of
from deltatape.suspects.client import client_of
from deltatape.suspects.search import difference, equal, likeness, same_arguments
from deltatape.suspects.simulation import ClientRunner
from helpers import chat
from helpers.chat import FINISH, calls, choice, entry, sse
from helpers.suspected import call_fields, deliver, follow_up, made, names, suspects

PIECES = (
    calls(entry(0, "c1", name="get", arguments="")),
    calls(entry(0, arguments='{"a":')),
    calls(entry(0, arguments="1}")),
    FINISH,
)
STREAM = deliver(sse(*PIECES))
WHOLE = deliver(sse(PIECES[0], calls(entry(0, arguments='{"a":1}')), FINISH))


def test_fewer_mistakes_come_first() -> None:
    found = suspects(STREAM, made(("c1", "get", "")))
    assert [len(one.mistakes) for one in found] == sorted(len(one.mistakes) for one in found)
    assert all(one.exact for one in found)


def test_two_mistakes_at_once_are_found_where_one_explains_nothing() -> None:
    found = suspects(STREAM, made(("c1", None, "1}")))
    assert found[0].name == "name=null-too,arguments=replace"
    assert found[0].says.startswith("overwrites the name")
    assert found[0].source == ""
    assert len(found[0].fix.split(". ")) == 2


@pytest.mark.slow
def test_three_mistakes_at_once_are_found_where_two_explain_nothing() -> None:
    stream = deliver(
        sse(
            calls(entry(0, "c1", name="get", arguments="{")),
            calls(entry(0, "c1", name="get", arguments="}!")),
            FINISH,
        )
    )
    found = suspects(stream, made(("c1c1", "getget", "}!")))
    assert len(found[0].mistakes) == 3
    assert found[0].exact


@pytest.mark.slow
def test_what_nothing_explains_has_suspects_that_come_near_or_none() -> None:
    near = suspects(STREAM, made(("c1", "get", "1}"), ("c9", "other", "?")))
    assert not any(one.exact for one in near)
    assert suspects(STREAM, made(("c7", "x", "{"))) == ()


def test_for_what_no_client_can_make_nothing_is_tried() -> None:
    two = deliver(sse(*PIECES[:3], calls(entry(1, "c2", name="put", arguments='{"b":2}')), FINISH))
    runner = ClientRunner(two)
    before = runner.spent
    edited = ("c1", "get", '{"a":"by a person"}')
    for repeated in (
        made(edited, ("c2", "put", '{"b":"by a person"}')),
        made(edited, ("c2", "put", '{"b":2}')),
        made(("c1", "get_v2", '{"a":1}'), ("c2", "put_v2", '{"b":2}')),
        made(("mine", "get", '{"elsewhere":1}')),
    ):
        symptom = Symptom(calls=repeated, errors=("Unexpected end of JSON input",))
        assert search.find(runner, symptom, 8) == ()
    assert runner.spent == before


def test_beside_a_call_that_a_person_edited_a_client_may_come_near() -> None:
    edited = made(("c1", "get", '{"a":"by a person"}'), ("c2", "put", ""))
    two = deliver(
        sse(
            *PIECES[:3],
            calls(entry(1, "c2", name="put", arguments="")),
            calls(entry(1, arguments="[2]")),
            FINISH,
        )
    )
    found = suspects(two, edited)
    assert found
    assert not any(one.exact for one in found)


def test_time_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "POINTS_LIMIT", 3)
    assert search.find(ClientRunner(STREAM), Symptom(calls=made(("c7", "x", "{"))), 8) == ()
    monkeypatch.setattr(search, "WORK_LIMIT", 0)
    runner = ClientRunner(STREAM)
    assert search.find(runner, Symptom(calls=made(("c1", "get", ""))), 8) == ()


@pytest.mark.slow
def test_work_is_bounded_for_long_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "WORK_LIMIT", 50_000)
    pieces = [calls(entry(at % 2, arguments="x")) for at in range(10_000)]
    runner = ClientRunner(deliver(sse(*pieces, FINISH)))
    before = runner.spent
    search.find(runner, Symptom(calls=made(("c7", "x", "{"))), 8)
    assert runner.spent - before < 3 * 50_000


@pytest.mark.slow
def test_the_error_that_a_client_throws_accuses_it() -> None:
    error = "[tool] failed: Unexpected end of JSON input"
    found = suspects(STREAM, None, error)
    assert {"each-event-is-a-call", "fragment-parsed-alone"} <= {*names(found)}
    assert all("Unexpected end of JSON input" in one.says for one in found)
    assert suspects(STREAM, None, "disk full") == ()


def test_calls_and_error_together_accuse_more_surely() -> None:
    said = "Unexpected token '1', \"1}\" is not valid JSON"
    after = "Unexpected non-whitespace character after JSON at position 1"
    found = suspects(STREAM, made(("c1", "get", "1}")), said, after)
    assert names(found)[0] == "last-piece-wins"
    assert after in found[0].says
    assert suspects(STREAM, made(("c1", "get", '{"a":1}')), after)[0].exact


def test_an_error_of_the_stream_itself_blames_nobody() -> None:
    cut = deliver(sse(*PIECES[:2], FINISH))
    repeated = made(("c1", "get", '{"a":'))
    assert suspects(cut, repeated, "Unexpected end of JSON input") == ()
    assert suspects(cut, None, "Unexpected end of JSON input") == ()


def test_running_a_stream_that_was_cut_is_a_mistake() -> None:
    cut = deliver(sse(*PIECES[:2], done=False))
    found = suspects(cut, made(("c1", "get", '{"a":')), "Unexpected end of JSON input")
    assert names(found)[0] == "eof-as-success"


def test_no_calls_at_all_are_explained_by_the_kind_of_stream() -> None:
    second = deliver(sse(*PIECES), request=follow_up())
    assert names(suspects(second, ()))[0] == "text-only-follow-up"
    assert suspects(second, ())[0].says.endswith("; it gets no calls instead of 1")
    assert "text-only-follow-up" not in names(suspects(STREAM, ()))


def test_calls_in_the_text_may_be_repeated_as_calls_or_as_text() -> None:
    text = choice({"content": '<tool>{"tool_name":"get","arguments":{}}</tool>'})
    stream = deliver(sse(*PIECES[:3], text, FINISH))
    both = (*stream.calls, *stream.text_calls)
    assert suspects(stream, both) == ()
    assert suspects(stream, stream.calls) == ()
    lost = (*made(("c1", "get", "")), *stream.text_calls)
    assert suspects(stream, lost)[0].exact


def test_a_limit_is_kept() -> None:
    found = search.find(ClientRunner(STREAM), Symptom(calls=made(("c1", "get", ""))), 1)
    assert len(found) == 1


def test_a_client_is_described_by_what_it_makes_or_throws() -> None:
    runner = ClientRunner(deliver(sse({"choices": []}, *PIECES)))
    client = client_of(("guard", "unguarded"))
    outcome = runner.outcome(client)
    assert search.describe(runner, client, outcome).endswith("; it gets no calls instead of 1")
    seen = search.describe(runner, client, outcome, ("IndexError: list index out of range",))
    assert seen.endswith('; it throws "list index out of range"')
    quiet = client_of(("empty", "parsed"))
    assert search.describe(runner, quiet, runner.outcome(quiet)).endswith(
        "; the calls come out right"
    )


def test_every_preset_of_the_dialect_has_a_row() -> None:
    found = {row.name: row for row in search.rows(ClientRunner(WHOLE))}
    assert not found["single-current-call"].differs
    assert found["single-current-call"].says == ""
    each = found["each-event-is-a-call"]
    assert each.differs
    assert call_fields(each.made.calls) == [("c1", "get", ""), (None, None, '{"a":1}')]
    assert each.says.endswith("; it gets 2 calls instead of 1")
    assert "arguments-at-item-added" not in found


def test_rows_end_where_time_does() -> None:
    runner = ClientRunner(WHOLE)
    runner.spent = search.WORK_LIMIT + 1
    assert not [*search.rows(runner)]


ONE = made(("c1", "get", '{"a":1}'))
IDS = frozenset({"c1", "c2"})


def test_equal_json_and_no_arguments_at_all_are_equal() -> None:
    assert equal(ONE, made(("c1", "get", '{ "a" : 1 }')), IDS)
    assert same_arguments("", " {} ")
    assert not same_arguments("{", "[")
    assert not equal(ONE, made(("c1", "get", '{"a":2}')), IDS)


def test_order_and_number_count() -> None:
    two = made(("c1", "get", ""), ("c2", "get", ""))
    assert not equal(two, tuple(reversed(two)), IDS)
    assert not equal(two, two[:1], IDS)


@pytest.mark.parametrize(
    ("mine", "heard", "same"),
    [
        ("c1", "c1", True),
        ("c1", "c2", False),
        ("c1", None, False),
        (None, None, True),
        (None, "call_made_up", True),
        (None, "c2", False),
    ],
)
def test_an_application_makes_up_only_ids_that_it_lacks(
    mine: str | None,
    heard: str | None,
    same: bool,  # noqa: FBT001
) -> None:
    assert equal(made((mine, "get", "")), made((heard, "get", "")), IDS) is same


def test_dialects_without_ids_need_none() -> None:
    assert equal(made(("x", "get", "")), made((None, "get", "")))
    assert not equal(made(("x", "get", "")), made(("y", "get", "")))


def test_likeness_counts_equal_parts() -> None:
    assert likeness(ONE, ONE, IDS) == 1
    assert likeness(ONE, made(("c1", "put", '{"a":1}')), IDS) == 0.75
    assert likeness(ONE, (), IDS) == 0
    assert likeness((), (), IDS) == 1


@pytest.mark.parametrize(
    ("mine", "told"),
    [
        ((), "it gets no calls instead of 1"),
        ((*ONE, *ONE), "it gets 2 calls instead of 1"),
        (made(("c1", None, "")), "call 0 gets no name instead of get"),
        (
            made(("c1", "get", "x" * 70)),
            f'call 0 gets the arguments {"x" * 60}... instead of {{"a":1}}',
        ),
        (made(("c9", "get", '{"a":1}')), "call 0 gets the id c9 instead of c1"),
        (ONE, "the calls come out right"),
    ],
)
def test_the_first_difference_is_reported(mine: tuple[()], told: str) -> None:
    assert difference(ONE, mine) == told


APP = b'data: {"type":"tool_call","name":"get","arguments":{}}\n\ndata: {"type":"done"}\n\n'


def test_clients_of_other_dialects_are_not_known() -> None:
    stream = deliver(APP, url="http://127.0.0.1/chat")
    assert matrix(stream) == ()
    assert suspects_of(stream, Symptom(calls=made(("x", "y", "z")))) == ()


def test_a_stream_without_calls_blames_nobody() -> None:
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
