import pytest

from deltatape.diagnose.rebuild import Analysis, analyse
from deltatape.rules.event_contribution import ContributionKind, EventContribution, brought
from helpers import app
from helpers.chat import FINISH, choice
from helpers.exchanges import TEXT, call, pasted


def told(analysis: Analysis, *, known: bool = True) -> list[list[tuple[ContributionKind, str]]]:
    things = brought(analysis.reply, analysis.stream, known=known)
    events = [things.get(event.number, ()) for event in analysis.stream.events]
    return [[(one.what, one.text) for one in here] for here in events]


@pytest.mark.parametrize(
    ("chunk", "things"),
    [
        (choice({"content": "a"}), [(ContributionKind.TEXT, "a")]),
        (choice({"reasoning": "a"}), [(ContributionKind.REASONING, "a")]),
        (choice({"refusal": "a"}), [(ContributionKind.REFUSAL, "a")]),
        (
            choice({"content": "a"}, "stop"),
            [(ContributionKind.TEXT, "a"), (ContributionKind.FINISH, "stop")],
        ),
        (choice({"role": "assistant", "content": ""}), []),
        (choice({}, ""), []),
        ({"choices": [], "usage": {"total_tokens": 3}}, []),
        ({"error": {"code": 1}}, [(ContributionKind.FINISH, "error")]),
        ("[1]", []),
    ],
)
def test_an_event_brings_what_the_reply_holds_of_it(
    chunk: object, things: list[tuple[ContributionKind, str]]
) -> None:
    first, end = told(analyse(pasted(chunk)))
    assert first == things
    assert end == [(ContributionKind.END, "finish_reason and [DONE]")]


def test_a_call_is_opened_and_its_arguments_come_piece_by_piece() -> None:
    analysis = analyse(pasted(*call(), FINISH))
    opened, *pieces, finish, _ = told(analysis)
    assert opened == [(ContributionKind.OPEN, "get")]
    assert [one for piece in pieces for one in piece] == [
        (ContributionKind.ARGUMENTS, '{"a'),
        (ContributionKind.ARGUMENTS, '":1}'),
    ]
    assert finish == [(ContributionKind.FINISH, "tool_calls")]
    things = brought(analysis.reply, analysis.stream, known=True)
    assert things[1] == (
        EventContribution(ContributionKind.ARGUMENTS, '{"a', analysis.reply.tool_calls[0]),
    )


def test_of_an_unknown_stream_every_event_with_data_brings_something() -> None:
    analysis = analyse(pasted(TEXT, " ", done=False))
    data = analysis.stream.events[0].data
    assert told(analysis, known=False) == [[(ContributionKind.UNKNOWN, data)], []]


def test_results_that_an_application_streams_are_brought() -> None:
    frames = ({"type": "tool_result", "name": "get"}, {"type": "done"})
    analysis = analyse(app.told(*frames))
    assert told(analysis) == [
        [(ContributionKind.RESULT, "get")],
        [(ContributionKind.END, "done or error")],
    ]
