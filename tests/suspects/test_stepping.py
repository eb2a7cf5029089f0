"""What clients have after each event, compared with what they have when they read only so much."""

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltatape.diagnose.rebuild import analyse
from deltatape.model.exchange import Source
from deltatape.model.stepping import BuildStep, StepUnit, built_calls
from deltatape.suspects import delivered
from deltatape.suspects.accumulate import accumulate
from deltatape.suspects.client import CORRECT, ClientModel, client_of
from deltatape.suspects.mistakes import MISTAKES
from deltatape.suspects.presets import PRESETS
from deltatape.suspects.simulation import ClientRunner
from deltatape.suspects.stepping import step_client, step_presets, step_suspects
from helpers import gemini, messages, responses, suspect_apps
from helpers.chat import FINISH, calls, choice, entry, sse
from helpers.suspected import call_fields, deliver, made, suspects

FIRST, SECOND = entry(0, "c1", name="get", arguments=""), entry(1, "c2", name="put", arguments="")
INTERLEAVED = (
    calls(FIRST),
    calls(SECOND),
    calls(entry(0, arguments='{"a":')),
    calls(entry(1, arguments='{"b":2}')),
    calls(entry(0, arguments="1}")),
    FINISH,
)
TAG = '<tool>{"tool_name":"get","arguments":{"a":"}"}}</tool>'

ALL = pytest.mark.slow

Row = tuple[int | None, list[tuple[int, str]], str]
"""Event or read, what is added to which call, and the note."""


def _runner(*chunks: object) -> ClientRunner:
    return ClientRunner(deliver(sse(*chunks)))


def _steps(runner: ClientRunner, *mistakes: tuple[str, str]) -> tuple[BuildStep, ...]:
    return step_client(runner, client_of(*mistakes))[1]


def _rows(*mistakes: tuple[str, str], chunks: tuple[object, ...] = INTERLEAVED) -> list[Row]:
    return [
        (step.at, [(each.call, each.added) for each in step.changes], step.note)
        for step in _steps(_runner(*chunks), *mistakes)
    ]


@cache
def _streams() -> dict[str, ClientRunner]:
    """Runners of many streams of all families, those with real reads among them."""
    function = gemini.call("get", id="i")
    second = {"functionCall": {"name": "put", "args": {"b": 2}}}
    whole = {"gemini": sse(gemini.candidate(function, second, finish="STOP"), done=False)}
    found = {name: deliver(body, url=gemini.STREAM) for name, body in whole.items()}
    for name, exchange in suspect_apps.streams().items():
        analysis = analyse(replace(exchange, source=Source.GATEWAY))
        of = (analysis.exchange, analysis.stream, analysis.reply, analysis.request)
        found[name] = delivered(*of)
    return {name: ClientRunner(each) for name, each in found.items() if each.family is not None}


def _clients(runner: ClientRunner) -> list[ClientModel]:
    singles = [client_of(one) for one in MISTAKES]
    presets = [client for preset in PRESETS for client in preset.clients]
    return [one for one in (CORRECT, *singles, *presets) if runner.applies(one)]


@pytest.mark.slow
@pytest.mark.parametrize("part", [0, *(pytest.param(at, marks=ALL) for at in range(1, 6))])
def test_the_last_step_has_what_the_client_ends_up_with(part: int) -> None:
    for name, runner in [*_streams().items()][part::6]:
        for client in _clients(runner):
            outcome = runner.outcome(client)
            _, steps = step_client(runner, client)
            assert built_calls(steps) == outcome.calls, (name, client)
            assert steps[-1].errors == runner.errors(client, outcome), (name, client)
            places = [step.at for step in steps[:-1]]
            assert places == sorted({at for at in places if at is not None}), (name, client)
            assert steps[-1].at is None


GROWING = (
    *("key", "id", "name", "arguments", "absent", "value", "entries", "kinds"),
    *("guard", "stop"),
)
"""Axes on which a client does nothing more at the end."""
ENTRIES = st.lists(
    st.lists(
        st.builds(
            entry,
            st.sampled_from([None, 0, 1, 2]),
            st.sampled_from([None, "c1", "c2", ""]),
            name=st.sampled_from([None, "get", "put", ""]),
            arguments=st.sampled_from(["", "{", '"a":1', "}", "{}", {"b": 2}]),
        ),
        max_size=2,
    ).map(lambda entries: calls(*entries)),
    max_size=6,
)


@settings(max_examples=12)
@given(chunks=ENTRIES)
def test_each_step_has_what_a_client_has_that_reads_no_further(chunks: list[object]) -> None:
    runner = _runner(*chunks, choice({}, ""), FINISH)
    for mistake in MISTAKES:
        client = client_of(mistake)
        if mistake[0] not in GROWING or not runner.applies(client):
            continue
        _, steps = step_client(runner, client)
        for event in range(len(chunks) + 3):
            read = [step for step in runner.steps if step.event <= event]
            so_far = [step for step in steps if step.at is not None and step.at <= event]
            assert built_calls(so_far) == accumulate(read, client).calls, (mistake, event)


def test_a_fragment_that_goes_to_another_call_is_told() -> None:
    assert _rows(("key", "current")) == [
        (0, [(0, "")], "begins call 0, get"),
        (1, [(1, "")], "begins call 1, put"),
        (2, [(1, '{"a":')], "appends a fragment of call 0 to call 1, the one that began last"),
        (3, [(1, '{"b":2}')], "appends to call 1"),
        (4, [(1, "1}")], "appends a fragment of call 0 to call 1, the one that began last"),
        (None, [], "uses 2 calls"),
    ]
    assert _rows(("key", "single"))[1] == (1, [(1, "")], "begins call 1, put; loses call 0")
    assert _rows(("key", "none"))[2][2] == "begins call 2 with a fragment of call 0"
    assert _rows(("key", "one"))[1][2] == "call 0 gets the id c2; call 0 gets the name put"


def test_a_correct_client_has_nothing_to_explain() -> None:
    assert {note.partition(" call")[0] for _, _, note in _rows()} == {
        "begins",
        "appends to",
        "uses 2",
    }


MISTAKE = {one: choice.mistake.says for one, choice in MISTAKES.items()}


def _notes(*mistakes: tuple[str, str], chunks: tuple[object, ...] = INTERLEAVED) -> list[str]:
    return [note for _, _, note in _rows(*mistakes, chunks=chunks)]


@pytest.mark.parametrize(
    ("mistake", "place", "note"),
    [
        (("arguments", "replace"), 4, "replaces the arguments of call 0: it {says}"),
        (("arguments", "index"), 3, "makes '1' of a fragment of call 1: it {says}"),
        (("arguments", "first-only"), 2, "keeps nothing of a fragment: it {says}"),
        (("parse", "fragments"), 2, "keeps nothing of a fragment: it {says}"),
        (("parse", "fragments"), 3, "replaces the arguments of call 1: it {says}"),
        (("id", "null-too"), 2, "appends to call 0; call 0 gets no id: it {says}"),
        (("entries", "with-arguments"), 0, "leaves out a fragment of call 0: it {says}"),
        (("emit", "when-parses"), 3, "appends to call 1; uses call 1 now: it {says}"),
        (("emit", "on-finish"), -2, "uses the 2 calls that it has"),
        (("stop", "finish"), -2, "stops reading: it {says}"),
        (("stop", "first-entry"), 0, "begins call 0, get; stops reading: it {says}"),
        (("calls", "ignored"), -1, "uses no call: it {says}"),
        (("written", "twice"), -1, "uses 2 calls: it {says}"),
        (("key", "delta-item-id"), 0, "leaves out a fragment of call 0: it {says}"),
    ],
)
def test_what_a_mistake_does_is_told_where_it_does_it(
    mistake: tuple[str, str], place: int, note: str
) -> None:
    assert _notes(mistake)[place] == note.replace("{says}", MISTAKE[mistake])


def test_calls_that_are_dropped_at_the_end_are_told() -> None:
    cut = (*INTERLEAVED[:3], FINISH)
    dropped = _steps(_runner(*cut), ("parse", "drop"))[-1]
    assert dropped.dropped == (0, 1)
    assert dropped.note == f"uses none of its 2 calls: it {MISTAKE['parse', 'drop']}"
    alone = _steps(_runner(INTERLEAVED[0], FINISH), ("parse", "drop"))[-1]
    assert alone.note == f"drops its call: it {MISTAKE['parse', 'drop']}"


def test_an_error_ends_a_client_and_takes_its_calls() -> None:
    chunks: tuple[object, ...] = (INTERLEAVED[0], {"choices": []}, *INTERLEAVED[1:])
    thrown, end = _steps(_runner(*chunks), ("guard", "unguarded"))[-2:]
    assert (thrown.at, thrown.dropped, thrown.note) == (1, (0,), "throws 'list index out of range'")
    assert (end.at, end.errors) == (None, thrown.errors)
    assert end.note == "has no call, since an error ended it"


def test_a_call_that_is_used_again_after_it_was_lost_has_another_number() -> None:
    again = (calls(FIRST), FINISH, calls(SECOND))
    runner = _runner(*again)
    steps = _steps(runner, ("key", "single"), ("emit", "on-finish"))
    assert steps[-1].dropped == (1,)
    assert [each.call for each in steps[-1].changes] == [2]
    assert call_fields(built_calls(steps)) == [("c1", "get", "")]


def test_equal_calls_that_are_dropped_leave_the_order_of_the_others() -> None:
    one, other = (
        entry(0, "c1", name="get", arguments="{}"),
        entry(1, "c2", name="put", arguments="{}"),
    )
    same = entry(2, "c3", name="get", arguments="{}")
    runner = _runner(calls(one, other, same), FINISH)
    steps = _steps(runner, ("repeats", "dropped"))
    assert [name for _, name, _ in call_fields(built_calls(steps))] == ["put", "get"]


def test_a_whole_call_takes_the_place_of_another() -> None:
    second = gemini.candidate(gemini.call("put"), finish="STOP")
    body = sse(gemini.candidate(gemini.call("get")), second, done=False)
    runner = ClientRunner(deliver(body, url=gemini.STREAM))
    assert [step.note for step in _steps(runner, ("key", "position"))][1] == (
        "begins call 1, put; loses call 0"
    )


def test_the_end_of_a_call_may_be_left_out_or_replace_what_came() -> None:
    start, end = messages.tool_block(0), messages.stop(0)
    body = messages.sse(messages.start(), start, messages.piece("{}"), end, *messages.END)
    runner = ClientRunner(deliver(body, url=messages.URL))
    assert [step.note for step in _steps(runner)] == [
        "begins call 0, get",
        "appends to call 0",
        "uses 1 call",
    ]
    events = responses.sse(responses.created(), *responses.call(), responses.ended())
    stream = ClientRunner(deliver(events, url=responses.URL))
    notes = [step.note for step in _steps(stream, ("kinds", "wrapped"))]
    assert notes[0].startswith("leaves out the start of call 0: ")
    assert notes[-2].startswith("leaves out the end of a call: ")


def test_calls_in_the_text_are_found_with_their_last_fragment() -> None:
    chunks = [choice({"content": piece}) for piece in (TAG[:20], TAG[20:], " and ")]
    runner = _runner(*chunks, choice({}, "stop"))
    assert [(step.at, step.note) for step in _steps(runner, ("tags", "rescan"))] == [
        (1, "finds call 0 in the text"),
        (2, "finds call 1 in the text"),
        (None, "uses 0 calls"),
    ]
    early = _steps(runner, ("tags", "flush-early"))
    says = MISTAKE["tags", "flush-early"]
    assert (early[0].at, early[0].note) == (1, f"cannot parse the call in the text: it {says}")
    assert built_calls(early) == ()


def test_clients_that_frame_wrongly_are_followed_by_reads() -> None:
    body = sse(*INTERLEAVED)
    cut = body.index(b"put")
    stream = deliver(body[:cut], body[cut:], taped=True)
    runner = ClientRunner(stream)
    unit, steps = step_client(runner, client_of(("framing", "reads")))
    assert (unit, [step.at for step in steps]) == (StepUnit.READ, [0, 1, None])
    assert steps[0].note.startswith('cannot parse \'{"choices": ')
    assert steps[0].note.endswith("...'; begins call 0, get")
    assert [each.call for each in steps[1].changes] == [0, 1]
    comment = ClientRunner(deliver(body[:cut], body[cut:], b": x\n\n", taped=True))
    _, dying = step_client(comment, client_of(("framing", "every-line")))
    assert dying[-1].note == "has no call, since an error ended it"
    assert built_calls(dying) == ()
    tagged = deliver(sse(choice({"content": "é" + TAG}), choice({}, "stop"), done=False))
    assert tagged.text_calls


def test_half_a_character_at_the_end_belongs_to_the_last_read() -> None:
    body = sse(*INTERLEAVED[:3]) + "data: é".encode()[:-1]
    runner = ClientRunner(deliver(body[:30], body[30:], taped=True))
    _, steps = step_client(runner, client_of(("framing", "reads")))
    assert [step.at for step in steps] == [0, 1, None]


def test_a_suspect_is_followed_with_what_the_documentation_leaves_open() -> None:
    chunks = (
        calls(entry(0, "c1", name="get", arguments="{")),
        calls(entry(0, "c9", arguments="}")),
        FINISH,
    )
    stream = deliver(sse(*chunks))
    (first, *_) = suspects(stream, made(("c1", "get", "}")))
    (stepped,) = step_suspects(ClientRunner(stream), [first])
    assert built_calls(stepped.steps) == first.made.calls
    assert (stepped.name, stepped.says, stepped.fix) == (first.name, first.says, first.fix)
    assert stepped.exact is True


@pytest.mark.slow
def test_the_presets_that_go_wrong_are_followed_fewer_of_long_streams() -> None:
    runner = _runner(*INTERLEAVED)
    found = [*step_presets(runner, 8)]
    assert len(found) == 8
    assert {each.exact for each in found} == {None}
    assert all(built_calls(each.steps) != runner.stream.calls for each in found[:1])
    many = [calls(entry(at % 2, arguments="1")) for at in range(7000)]
    assert len([*step_presets(_runner(*INTERLEAVED[:2], *many, FINISH), 8)]) == 2


@pytest.mark.slow
def test_no_fragments_are_joined_of_long_streams() -> None:
    many = [calls(entry(0, arguments=str(at % 10))) for at in range(2500)]
    runner = _runner(INTERLEAVED[0], *many, FINISH)
    steps = _steps(runner)
    assert len(steps) == 2502
    assert built_calls(steps) == runner.stream.calls
