"""What tool servers were asked stands between the call and its result."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from deltatape.model.explanation import EventSource
from deltatape.store.reader import open_tape
from deltatape.why.explain import explain
from helpers.rule_recordings.build import GENT, ONE_CALL
from helpers.rule_recordings.tape import ScriptedExchange, tape_of
from helpers.rule_recordings.tool_servers import ANSWER, LIST, answered, message, served, told

ASKED = (EventSource.APP, 'asks the tool server for call 0: get_weather {"city": "Gent"}')
NOT_ANSWERED = message("tools/call", {"name": "get_weather", "arguments": {"city": "Gent"}}, None)


@pytest.mark.parametrize(
    ("exchanges", "shown"),
    [
        (
            answered(ANSWER, ANSWER),
            [ASKED, (EventSource.WIRE, f"the tool server answers: {ANSWER}")],
        ),
        (
            answered("no such city", "no such city", failed=True),
            [ASKED, (EventSource.WIRE, "the tool server fails: no such city")],
        ),
        (
            [LIST, ONE_CALL, NOT_ANSWERED, served(GENT, ANSWER), told(ANSWER)],
            [ASKED, ASKED, (EventSource.WIRE, f"the tool server answers: {ANSWER}")],
        ),
    ],
)
def test_the_timeline_shows_the_second_witness(
    tmp_path: Path,
    exchanges: Sequence[ScriptedExchange],
    shown: Sequence[tuple[EventSource, str]],
) -> None:
    path = tmp_path / "x.tape"
    path.write_bytes(tape_of(exchanges, 1))
    every = sorted(open_tape(path), key=lambda each: each.number)
    timeline = explain(every, 2).timeline
    found = [(each.source, each.what) for each in timeline if "the tool server" in each.what]
    assert found == shown
    times = [each.t_ns for each in timeline if each.t_ns is not None]
    assert times == sorted(times)
