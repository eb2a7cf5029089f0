"""Torture finds, from a tape on which nothing is wrong, what was wrong with the applications.

Two kinds of mistakes. Those of cutting, order or ending do not show while a provider cuts, orders
and ends its streams as it happens to; a variation brings them out, and the application that was
mended stands it. The others show with every stream of their kind, so that the tape as it is finds
them.
"""

import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from deltatape.demo.demo import INCIDENTS
from deltatape.model.exchange import Exchange, Tap
from deltatape.model.torture import TortureResult
from deltatape.store.reader import open_tape
from deltatape.trials.torture import TortureSetup, torture
from deltatape.trials.torture_plan import CaseFiler
from helpers import responses
from helpers.healthy import APPS, Story, called, command, healthy, said
from helpers.needed import needs_go
from helpers.tortured import named

TRIP = "How is the weather on my trip, and where can I eat?\n"
NEWS = "Do the ferries in Lisbon sail today?\n"
PORT = "On which port does the server listen?\n"
FILES = "What is in src?\n"
READ = '<tool>{"tool_name": "read_file", "arguments": {"path": "config.yaml"}}</tool>'


def opened(arguments: str) -> dict[str, object]:
    function = {"name": "get_weather", "arguments": arguments}
    return {"index": 0, "id": "call_1", "type": "function", "function": function}


def whole(name: str, arguments: str) -> dict[str, object]:
    return {**opened(""), "function": {"name": name, "arguments": arguments}}


def more(arguments: str) -> dict[str, object]:
    return {"index": 0, "function": {"arguments": arguments}}


def sentence(*words: str) -> bytes:
    """A response of text."""
    item = responses.message(*words)
    events = (
        responses.created(),
        responses.added(responses.message()),
        *(responses.say(word) for word in words),
        responses.done(item),
        responses.ended(item),
    )
    return responses.sse(*responses.numbered(*events))


@dataclass(frozen=True, slots=True, kw_only=True)
class Hidden:
    """A mistake that only a variation shows, and what the broken application does then."""

    story: Story
    variation: str
    verdict: str
    why: str
    own: bool = False
    """Whether the mended application request differs at and so has a tape of its own."""
    known: str = ""
    """The mistake that the tape as it is shows already: then no variation is tried."""


HIDDEN = {
    "1: a call counts when the finish reason says so": Hidden(
        story=Story(
            app="1-index-keyed-accumulation/{}.mjs",
            says=TRIP,
            replies=(
                called(opened(""), more('{"city":'), more(' "Lisbon"}')),
                said("It will be ", "sunny."),
            ),
        ),
        variation="end-before-end",
        verdict="swallowed",
        why="exit code 0 and no error message: 1 request missing",
    ),
    "2: a stream is whole without response.completed": Hidden(
        story=Story(
            app="2-responses-dead-zone/{}.mjs",
            says=NEWS,
            replies=(sentence("They do, ", "all of them."),),
            target=b"/v1/responses",
        ),
        variation="end-in-text",
        verdict="swallowed",
        why="exit code 0 and no error message: ",
    ),
    "4: a closing tag comes whole": Hidden(
        story=Story(
            app="4-text-tool-calls/{}.go",
            says=PORT,
            replies=(said("I will look.\n", READ), said("On port 8081.")),
        ),
        variation="finer-text",
        verdict="differs",
        why="C009 in request 2 (healthy.tape#",
    ),
    "5: a call comes in one chunk": Hidden(
        story=Story(
            app="5-agent-loop/{}.py",
            says=FILES,
            replies=(
                called(whole("list_directory", '{"path": "src"}')),
                said("agent.py ", "and ui.py."),
            ),
        ),
        variation="opened-first",
        verdict="differs",
        why="1 request missing",
        own=True,
        known="C004 in request 2 (healthy.tape#2): ",
    ),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_a_variation_shows_a_mistake_that_a_healthy_tape_hides(name: str, tmp_path: Path) -> None:
    hidden = HIDDEN[name]
    broken, fixed = (
        replace(hidden.story, app=hidden.story.app.format(version))
        for version in ("broken", "fixed")
    )
    go = {story.app: built(story, tmp_path) for story in (broken, fixed)}
    tape = healthy(broken, tmp_path, go=go[broken.app])
    found = tortured(broken, tape, hidden.variation, tmp_path, go[broken.app])
    if hidden.known:
        assert found.problem.startswith(hidden.known)
    else:
        assert found.problem == ""
        assert [cell.verdict.value for cell in found.failed[:1]] == [hidden.verdict]
        assert found.failed[0].why.startswith(hidden.why)
    if hidden.own:
        tape = healthy(fixed, tmp_path, go=go[fixed.app])
    mended = tortured(fixed, tape, hidden.variation, tmp_path, go[fixed.app])
    assert mended.passes, (mended.problem, mended.failed)


@pytest.mark.parametrize(
    ("app", "says", "problem"),
    [
        (
            "1-index-keyed-accumulation/broken.mjs",
            TRIP,
            "C001 in request 2 (",
        ),
        ("2-responses-dead-zone/broken.mjs", NEWS, "the command did not request "),
        ("5-agent-loop/broken.py", FILES, "request differs at $.tool_choice: "),
    ],
)
def test_a_mistake_that_every_such_stream_shows_is_found_with_the_tape_as_it_is(
    app: str, says: str, problem: str, tmp_path: Path
) -> None:
    story = Story(app=app, says=says, replies=())
    tape = recorded(INCIDENTS / Path(app).parent / "fixed.tape")
    found = tortured(story, tape, "crlf", tmp_path)
    assert found.problem.startswith(problem), found.problem


def test_an_endpoint_that_tells_pieces_of_calls_is_found_with_the_tape_as_it_is(
    tmp_path: Path,
) -> None:
    asks = Path(__file__).with_name("ask_endpoint.py")
    tape = recorded(INCIDENTS / "3-app-events" / "fixed.tape")
    for version, problem in (("broken", "exit code 1; "), ("fixed", "")):
        app = APPS / "3-app-events" / f"{version}.py"
        argv = (sys.executable, str(asks), str(app), "Analyze TSLA")
        found = torture(rig(argv, tape, "crlf", tmp_path))
        assert found.problem.startswith(problem)
        assert bool(found.problem) == bool(problem)


def built(story: Story, folder: Path) -> str:
    """The program of an application in Go; "" for others."""
    app = APPS / story.app
    if app.suffix != ".go":
        return ""
    needs_go()
    program = folder / app.stem
    sources = (str(app.with_name("agent.go")), str(app))
    subprocess.run(["go", "build", "-o", str(program), *sources], check=True, timeout=120)
    return str(program)


def recorded(path: Path) -> tuple[Exchange, ...]:
    """What is on a tape of the provider's side."""
    exchanges = sorted(open_tape(path).exchanges(), key=lambda one: one.number)
    return tuple(one for one in exchanges if one.tap is Tap.PROVIDER)


def tortured(
    story: Story, tape: tuple[Exchange, ...], variation: str, folder: Path, go: str = ""
) -> TortureResult:
    return torture(rig(command(story, folder, go=go), tape, variation, folder))


def rig(
    argv: tuple[str, ...], tape: tuple[Exchange, ...], variation: str, folder: Path
) -> TortureSetup:
    return TortureSetup(
        command=argv,
        exchanges=tape,
        variations=named(variation),
        environ=os.environ,
        folder=folder,
        filing=CaseFiler(tapes=("healthy.tape",), options=(), command=argv),
        seeds=(1,),
        deadline_s=10.0,
        jobs=2,
    )
