"""The applications of the incidents, run anew against their tapes."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from deltatape.demo.demo import INCIDENTS
from deltatape.model.exchange import Tap
from deltatape.store.reader import open_tape
from helpers.needed import needs_go, skip_unless
from helpers.program import environment, program
from helpers.upstream import free_port

ROOT = Path(__file__).resolve().parent.parent.parent
APPS = ROOT / "examples" / "incidents"
LIMIT_S = 30
TRIP = "How is the weather on my trip, and where can I eat?\n"
PLAN = "Then just tell me what is planned.\n"
NEWS = "Do the ferries in Lisbon sail today?\n"
PORT = "On which port does the server listen?\n"


@dataclass(frozen=True)
class Run:
    """An application, the tape that is its provider, what the user says, what is to be seen."""

    app: str
    tape: str
    says: str
    prints: tuple[str, ...]
    wrong: tuple[str, ...] = ()
    """Codes of the mistakes that the player sees."""


RUNS = (
    Run(
        "1-index-keyed-accumulation/broken.mjs",
        "1-index-keyed-accumulation/broken",
        TRIP + PLAN,
        (
            'Tool "get_itinerary" failed: Unexpected end of JSON input',
            "Second stream ended, received 40 chunks, finalContent length: 0",
            "designer: (nothing)",
        ),
        wrong=("C001", "C002", "C009"),
    ),
    Run(
        "1-index-keyed-accumulation/fixed.mjs",
        "1-index-keyed-accumulation/fixed",
        TRIP + PLAN,
        ("designer: It will be sunny", "designer: Alfama, Sintra"),
    ),
    Run(
        "1-index-keyed-accumulation/published-fix.mjs",
        "1-index-keyed-accumulation/published-fix",
        TRIP + PLAN,
        ("designer: It will be sunny", 'Tool "get_itinerary" called with empty arguments'),
        wrong=("C009",),
    ),
    Run(
        "1-index-keyed-accumulation/fixed.mjs",
        "1-index-keyed-accumulation/upstream",
        TRIP,
        ('Tool "get_weather" failed: Unexpected end of JSON input',),
    ),
    Run(
        "2-responses-dead-zone/broken.mjs",
        "2-responses-dead-zone/broken",
        NEWS + "Hello? Did you find anything?\n",
        ("Filtering out malformed tool call (missing id or name)", "I have not searched"),
        wrong=("C001",),
    ),
    Run(
        "2-responses-dead-zone/published-fix.mjs",
        "2-responses-dead-zone/published-fix",
        NEWS,
        ("web_search failed: web_search needs a query", "the search does not work"),
        wrong=("C002",),
    ),
    Run(
        "2-responses-dead-zone/fixed.mjs",
        "2-responses-dead-zone/fixed",
        NEWS,
        ("assistant: The ferry strike was called off today.",),
    ),
    Run(
        "2-responses-dead-zone/fixed.mjs",
        "2-responses-dead-zone/upstream",
        NEWS,
        ("the stream ended without response.completed", "The answer broke off"),
    ),
    Run(
        "4-text-tool-calls/broken.go",
        "4-text-tool-calls/broken",
        PORT,
        ("invalid character '>' after top-level value", "agent: The server listens on port 8081"),
        wrong=("C009",),
    ),
    Run(
        "4-text-tool-calls/fixed.go",
        "4-text-tool-calls/fixed",
        PORT,
        ("agent: The server listens on port 8081",),
    ),
    Run(
        "4-text-tool-calls/fixed.go",
        "4-text-tool-calls/upstream",
        PORT,
        ("invalid character '>' after top-level value",),
    ),
    Run(
        "5-agent-loop/broken.py",
        "5-agent-loop/broken",
        "What is in src?\nList my files.\nThanks, bye!\n",
        ("assistant: (nothing)", "iteration 5: has_tool_calls: true", "assistant: (gave up)"),
        wrong=("C001", "C004"),
    ),
    Run(
        "5-agent-loop/fixed.py",
        "5-agent-loop/fixed",
        "What is in src?\nThanks, bye!\n",
        ("assistant: There are agent.py and ui.py in src.", "assistant: See you!"),
    ),
    Run(
        "5-agent-loop/fixed.py",
        "5-agent-loop/upstream",
        "What is in src?\n",
        ("assistant: (the model only calls tools)",),
    ),
)


def command(app: Path, folder: Path) -> tuple[str, ...]:
    """How an application is started; skips what cannot run here."""
    if app.suffix == ".py":
        return (sys.executable, str(app))
    if app.suffix == ".mjs":
        skip_unless(shutil.which("node"), "no Node.js 20")
        return ("node", str(app))
    needs_go()
    built = folder / "app"
    sources = (str(app.parent / "agent.go"), str(app))
    subprocess.run(["go", "build", "-o", str(built), *sources], check=True, timeout=4 * LIMIT_S)
    return (str(built),)


def to_provider(tape: Path) -> list[str]:
    """The exchanges of a tape that a provider has to play."""
    return [f"{tape}#{each.number}" for each in open_tape(tape) if each.tap is Tap.PROVIDER]


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.tape)
def test_an_application_behaves_as_on_its_tape(run: Run, tmp_path: Path) -> None:
    started = command(APPS / run.app, tmp_path)
    tape = INCIDENTS / f"{run.tape}.tape"
    playing = ("replay", "--listen", "127.0.0.1:0", "--speed", "instant", *to_provider(tape))
    with program(*playing, folder=tmp_path) as player:
        result = subprocess.run(
            started,
            input=run.says.encode(),
            env={**environment(tmp_path), "OPENAI_BASE_URL": f"{player.url}/v1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=LIMIT_S,
            check=False,
        )
        code, told = player.stop()
    printed = result.stdout.decode()
    assert result.returncode == 0, printed
    for wanted in run.prints:
        assert wanted in printed
    wrong = {line.split()[1] for line in told.splitlines() if line.startswith("MISTAKE ")}
    assert (code, wrong) == (1 if run.wrong else 0, set(run.wrong)), told


@pytest.mark.parametrize(
    ("name", "prints"),
    [
        ("broken", ('"name": null, "arguments": 10}', "the connection closed after 'tool_call'")),
        ("fixed", ('{"type": "tool_result"', '{"type": "done"')),
        ("upstream", ('{"type": "error"',)),
    ],
)
def test_an_endpoint_behaves_as_on_its_tape(
    name: str, prints: tuple[str, ...], tmp_path: Path
) -> None:
    apps = APPS / "3-app-events"
    app = apps / f"{'fixed' if name == 'upstream' else name}.py"
    tapes = to_provider(INCIDENTS / "3-app-events" / f"{name}.tape")
    port = free_port()
    playing = ("replay", "--listen", "127.0.0.1:0", "--speed", "instant", *tapes)
    with program(*playing, folder=tmp_path) as player:
        env = {**environment(tmp_path), "OPENAI_BASE_URL": f"{player.url}/v1"}
        with subprocess.Popen(
            [sys.executable, app, str(port)], env=env, stderr=subprocess.PIPE
        ) as endpoint:
            try:
                assert endpoint.stderr is not None
                assert b"listening" in endpoint.stderr.readline()
                asked = subprocess.run(
                    [sys.executable, apps / "page.py", f"http://127.0.0.1:{port}", "Analyze TSLA"],
                    env=dict(os.environ),
                    capture_output=True,
                    timeout=LIMIT_S,
                    check=False,
                )
            finally:
                endpoint.kill()
        code, told = player.stop()
    printed = asked.stdout.decode()
    for wanted in prints:
        assert wanted in printed
    assert asked.returncode == (0 if name == "fixed" else 1)
    assert code == 0, told


@pytest.mark.parametrize("folder", sorted(APPS.glob("[1-5]-*")), ids=lambda path: path.name)
def test_the_broken_and_the_fixed_application_heard_the_same(folder: Path) -> None:
    first = {}
    for name in ("broken", "fixed"):
        tape = open_tape(INCIDENTS / folder.name / f"{name}.tape")
        reply = next(each for each in tape if each.tap is Tap.PROVIDER)
        first[name] = b"".join(read.data for read in reply.reads)
    assert first["broken"].startswith((b"data: ", b"event: "))
    assert first["broken"] == first["fixed"]
