"""`why --fix DIR`: what is written, and that its test fails for the broken app alone."""

import shlex
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from deltatape.store.reader import open_tape
from helpers import forgetful
from helpers.chat import FINISH, choice, sse
from helpers.console import called
from helpers.incidents import BROKEN, CUT, FIXED, recorded
from helpers.program import deltatape, environment

APP = [sys.executable, forgetful.__file__]
CALL = sse(*(choice(delta) for delta in forgetful.CHUNKS), FINISH, done=True)
TEXT = sse(choice({"content": "It rains."}), choice({}, "stop"), done=True)


class _Provider(BaseHTTPRequestHandler):
    """Answers a first request with a call, one with a result with a text."""

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers["Content-Length"]))
        answer = TEXT if b'"role": "tool"' in asked else CALL
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def provider() -> Iterator[str]:
    """A provider that really answers: its URL."""
    server = HTTPServer(("127.0.0.1", 0), _Provider)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kit for the broken app, from a recording of it."""
    folder = tmp_path_factory.mktemp("kit")
    with provider() as url:
        done = deltatape("record", "--upstream", url, "--to", "tapes", "--", *APP, folder=folder)
    assert done.returncode == 0, done.stderr
    (tape,) = (folder / "tapes").glob("*.tape")
    told = called("why", tape, "--fix", "fix", folder=folder)
    assert told.returncode == 0, told.stderr
    assert b"written: fix/BRIEF.md" in told.stderr
    return folder / "fix"


def verdict(kit: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What the kit's test says of the app with these arguments."""
    (test,) = kit.glob("test_*.py")
    env = environment(kit.parent) | {"APP_COMMAND": shlex.join([*APP, *arguments])}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test.name],
        cwd=kit,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_tape_is_whole_small_and_readable_for_all(kit: Path) -> None:
    (tape,) = kit.glob("*.tape")
    assert stat.S_IMODE(tape.stat().st_mode) == 0o644
    assert len(open_tape(tape)) == 2
    assert [path.name for path in sorted(kit.iterdir()) if path.name.startswith(".")] == []


def test_the_test_fails_for_the_broken_app(kit: Path) -> None:
    done = verdict(kit)
    assert done.returncode == 1
    assert "MISTAKE C002 in request 2" in done.stdout
    assert "call 0 (get_weather, c1) of #1 was delivered with" in done.stdout


def test_the_test_passes_for_the_mended_app(kit: Path) -> None:
    done = verdict(kit, "mended")
    assert done.returncode == 0, done.stdout


def test_the_test_fails_for_an_app_that_gives_up(kit: Path) -> None:
    (test,) = kit.glob("test_*.py")
    env = environment(kit.parent) | {"APP_COMMAND": f"{sys.executable} -c pass"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test.name]
    done = subprocess.run(command, cwd=kit, env=env, capture_output=True, timeout=120, check=False)
    assert done.returncode == 1
    assert b"0 played, 0 missed, 2 unplayed" in done.stdout


def test_the_javascript_test_fails_for_the_broken_app_alone(kit: Path, tmp_path: Path) -> None:
    vitest = Path(__file__).parents[1] / "clients" / "node_modules" / "vitest"
    if not vitest.exists():
        pytest.skip("needs Vitest: scripts/setup clients")
    (tape,) = kit.glob("*.tape")
    node = tmp_path / "node.tape"
    text = tape.read_bytes()
    agent = b'["user-agent","node"],'
    node.write_bytes(text.replace(b'"headers":[[', b'"headers":[' + agent + b"["))
    assert called("why", node, "--fix", "fix", folder=tmp_path).returncode == 0
    folder = tmp_path / "fix"
    (folder / "node_modules").symlink_to(vitest.parent)
    codes = []
    for arguments in ([], ["mended"]):
        env = environment(tmp_path) | {
            "APP_COMMAND": shlex.join([*APP, *arguments]),
            "DELTATAPE": str(Path(sys.executable).with_name("deltatape")),
        }
        node_program = shutil.which("node") or "node"
        run = [node_program, str(vitest / "vitest.mjs"), "run", "--root", str(folder)]
        done = subprocess.run(run, env=env, capture_output=True, timeout=120, check=False)
        codes.append((done.returncode, b"MISTAKE C002" in done.stdout + done.stderr))
    assert codes == [(1, True), (0, False)]


def test_there_is_no_kit_where_the_app_is_not_to_blame(tmp_path: Path) -> None:
    recorded(tmp_path, CUT)
    done = called("why", "--fix", "fix", folder=tmp_path)
    assert done.returncode == 2
    assert b"the verdict on #1 is" in done.stderr
    assert not (tmp_path / "fix").exists()


def test_there_is_no_kit_without_a_tape(tmp_path: Path) -> None:
    body = tmp_path / "body.sse"
    body.write_bytes(CALL)
    thrown = "Unexpected end of JSON input"
    done = called("why", body, "--error", thrown, "--fix", "fix", folder=tmp_path)
    assert done.returncode == 2
    assert b"is no tape, so nobody knows the app's requests" in done.stderr


def test_nothing_is_overwritten_and_what_cannot_be_written_is_told(tmp_path: Path) -> None:
    recorded(tmp_path, BROKEN)
    assert called("why", "--fix", "fix", folder=tmp_path).returncode == 0
    again = called("why", "--fix", "fix", folder=tmp_path)
    assert again.returncode == 2
    assert b"is there already; name another folder" in again.stderr
    (tmp_path / "file").write_text("")
    assert called("why", "--fix", "file", folder=tmp_path).returncode == 2


def test_there_is_no_kit_for_what_no_test_could_look_for(tmp_path: Path) -> None:
    recorded(tmp_path, FIXED)
    thrown = ("--error", "Unexpected end of JSON input", "--fix", "fix")
    done = called("why", *thrown, folder=tmp_path)
    assert done.returncode == 2
    assert b"not on a finding" in done.stderr
