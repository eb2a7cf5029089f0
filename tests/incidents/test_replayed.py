"""From the tape of the broken application alone: broken it fails, fixed it passes.

Both through the command and through the plugin, with what the user said on the tape.
"""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from deltatape.demo.demo import INCIDENTS
from helpers.healthy import APPS
from helpers.needed import needs_go
from helpers.program import environment
from helpers.pytest_projects import QUIET

ENDPOINT = "3-app-events"
LIMIT_S = 60
TRIP = "How is the weather on my trip, and where can I eat?\nThen just tell me what is planned.\n"
NEWS = "Do the ferries in Lisbon sail today?\n"
NEWS_TWICE = NEWS + "Hello? Did you find anything?\n"
PORT = "On which port does the server listen?\n"


@dataclass(frozen=True)
class Incident:
    """A tape of a broken application, and what a run against it shows."""

    tape: str
    suffix: str
    says: str = ""
    codes: tuple[str, ...] = ()
    """The mistakes that the broken one makes again."""
    volatile: str = ""
    """What the fix changes besides the mistake."""
    ends: bool = False
    """Whether the fixed one asks for more than the tape has."""


ALL = (
    Incident("1-index-keyed-accumulation/broken", ".mjs", TRIP, ("C001", "C002", "C009")),
    # The run shows a call that may have been dropped on purpose; the tape has what the app printed.
    Incident("2-responses-dead-zone/broken", ".mjs", NEWS_TWICE, ("C001",), ends=True),
    Incident("2-responses-dead-zone/silent", ".mjs", NEWS, ("D003",), ends=True),
    Incident("3-app-events/broken", ".py", ends=True),
    Incident("4-text-tool-calls/broken", ".go", PORT, ("C009",)),
    Incident(
        "5-agent-loop/broken",
        ".py",
        "What is in src?\nList my files.\nThanks, bye!\n",
        ("C001", "C004"),
        volatile="tool_choice",
    ),
)

each_incident = pytest.mark.parametrize("incident", ALL, ids=lambda one: one.tape)
each_version = pytest.mark.parametrize("version", ["broken", "fixed"])


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where applications are that were built: linking one takes longer than a test."""
    return tmp_path_factory.mktemp("built")


def started(incident: Incident, version: str, built: Path) -> list[str]:
    """What runs an application, with what its user says."""
    app = APPS / Path(incident.tape).parent / f"{version}{incident.suffix}"
    if app.parent.name == ENDPOINT:
        asks = Path(__file__).with_name("ask_endpoint.py")
        return [sys.executable, str(asks), str(app), "Analyze TSLA"]
    if app.suffix == ".py":
        return [sys.executable, str(app)]
    if app.suffix == ".mjs":
        return ["node", str(app)]
    needs_go()
    program = built / version
    if not program.exists():
        build = ["go", "build", "-o", str(program), str(app.parent / "agent.go"), str(app)]
        subprocess.run(build, check=True, timeout=4 * LIMIT_S)
    return [str(program)]


def run(argv: list[str], says: str, folder: Path) -> tuple[int, str]:
    """The exit code of a command, and what it printed."""
    done = subprocess.run(
        argv,
        input=says.encode(),
        env=environment(folder),
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=4 * LIMIT_S,
        check=False,
    )
    return done.returncode, done.stdout.decode()


@each_version
@each_incident
def test_the_command_fails_for_the_broken_application_alone(
    incident: Incident, version: str, tmp_path: Path, built: Path
) -> None:
    tape = INCIDENTS / f"{incident.tape}.tape"
    options = ["--volatile", incident.volatile] if incident.volatile else []
    replay = [sys.executable, "-m", "deltatape", "replay", "--speed", "instant", *options]
    code, printed = run(
        [*replay, str(tape), "--", *started(incident, version, built)], incident.says, tmp_path
    )
    mistakes = {line.split()[1] for line in printed.splitlines() if line.startswith("MISTAKE ")}
    if version == "broken":
        assert (code, mistakes) == (1, set(incident.codes)), printed
    else:
        assert (code, mistakes) == (0, set()), printed
        assert ("END OF TAPE POST" in printed) == incident.ends
        wanted = "only where that was wrong (C" in printed
        assert wanted or incident.tape.endswith(("/silent", "3-app-events/broken"))
    if ENDPOINT in incident.tape:
        assert "note: a replay cannot show A001, A002 of this tape" in printed


TESTS = """
import os, subprocess
import pytest

def run(argv, says):
    done = subprocess.run(
        argv, input=says.encode(), env=os.environ, timeout={limit}, check=False
    )
    assert done.returncode == 0
"""
TEST = """
@pytest.mark.tape({tape!r}, volatile={volatile!r})
def {name}():
    run({argv!r}, {says!r})
"""


def named(incident: Incident) -> str:
    """The name of its test in the project."""
    return "test_" + "".join(each if each.isalnum() else "_" for each in incident.tape)


@dataclass(frozen=True)
class Reported:
    """What pytest said in a project with a test for each incident."""

    version: str
    code: int
    printed: str

    def of(self, incident: Incident) -> str:
        """What it says of one test: its outcome, and of a failure everything."""
        name = named(incident)
        outcome = re.search(rf"^test_app\.py::{name} \w+", self.printed, re.MULTILINE)
        assert outcome is not None, self.printed
        _, _, failure = self.printed.partition(f"_ {name} _")
        return outcome[0] + re.split(r"\n(?:=+|_{2,}) \w", failure)[0]


@pytest.fixture(scope="module", params=["broken", "fixed"])
def reported(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, built: Path
) -> Reported:
    """A run with all applications in one version."""
    version: str = request.param
    tests = [
        TEST.format(
            tape=str(INCIDENTS / f"{each.tape}.tape"),
            volatile=each.volatile or [],
            name=named(each),
            argv=started(each, version, built),
            says=each.says,
        )
        for each in ALL
        if each.suffix != ".go" or shutil.which("go")
    ]
    folder = tmp_path_factory.mktemp(version)
    (folder / "test_app.py").write_text(TESTS.format(limit=LIMIT_S) + "".join(tests))
    return Reported(version, *run([sys.executable, "-m", "pytest", "-v", *QUIET], "", folder))


@each_incident
def test_the_plugin_fails_for_the_broken_application_alone(
    incident: Incident, reported: Reported
) -> None:
    if incident.suffix == ".go":
        needs_go()
    printed = reported.of(incident)
    if reported.version == "broken":
        assert reported.code == 1, reported.printed
        assert " FAILED" in printed
        for each in incident.codes:
            assert f"  {each} " in printed
    else:
        assert reported.code == 0, reported.printed
        assert " PASSED" in printed
        _, _, ended = reported.printed.partition("passed as far as their tapes go")
        assert (f"/{incident.tape}.tape\n" in ended) == incident.ends


def test_a_healthy_tape_accepts_nothing_but_what_is_on_it(tmp_path: Path) -> None:
    tape = INCIDENTS / "1-index-keyed-accumulation" / "fixed.tape"
    app = APPS / "1-index-keyed-accumulation" / "broken.mjs"
    replay = [sys.executable, "-m", "deltatape", "replay", "--speed", "instant", str(tape), "--"]
    code, printed = run([*replay, "node", str(app)], TRIP, tmp_path)
    assert code == 1, printed
    assert "MISSED POST" in printed
    assert "MISTAKE C001 in request 2" in printed
    assert "only where that was wrong" not in printed
    assert os.environ.get("OPENAI_BASE_URL") is None


BY_INDEX = """
    for (const part of delta.tool_calls ?? []) {
      const { name } = part.function;
      const empty = { id: part.id, type: "function", function: { name, arguments: "" } };
      toolCalls[part.index] ??= empty;
      toolCalls[part.index].function.arguments += part.function.arguments ?? "";
    }
  }
"""


def test_half_a_fix_fails_for_the_other_half(tmp_path: Path) -> None:
    """Calls are kept by their index now, and the second stream is still read for text alone."""
    folder = tmp_path / "app"
    shutil.copytree(APPS / "1-index-keyed-accumulation", folder)
    app = folder / "broken.mjs"
    written = app.read_text()
    start, end = (
        written.index("    for (const part"),
        written.index("  return { content, toolCalls }"),
    )
    app.write_text(written[:start] + BY_INDEX.lstrip("\n") + written[end:])
    tape = INCIDENTS / "1-index-keyed-accumulation" / "broken.tape"
    replay = [sys.executable, "-m", "deltatape", "replay", "--speed", "instant", str(tape), "--"]
    code, printed = run([*replay, "node", str(app)], TRIP, tmp_path)
    assert code == 1, printed
    assert "only where that was wrong (C" in printed
    mistakes = [line for line in printed.splitlines() if line.startswith("MISTAKE ")]
    assert mistakes
    assert all(line.startswith("MISTAKE C001 in request 3") for line in mistakes), printed
