"""Records, checks and replays a small app on an embedded provider: no key, no network, seconds.

The provider is a tape of an incident that `deltatape replay` plays. A broken application talks to
it through `deltatape record`; `deltatape why` reads the tape; the repaired application is tested
against the capture. Each step is the command that a user would type.
"""

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

INCIDENTS = (Path(__file__).parent / "incidents").resolve()
"""The recorded incidents; in a checkout this is recordings/incidents."""
APP = ("-m", "deltatape.demo.app", "--accumulator")
OTHERS = ("cut-mid-arguments", "empty-arguments", "stall-before-arguments")
Tell = Callable[[str], None]


class Demo:
    """Runs the steps and prints them.

    Args:
        folder: where the tapes of the demo go.
        tell: takes a line for the user.
        kept: whether the folder is still there after the demo.
    """

    def __init__(self, folder: Path, tell: Tell, *, kept: bool) -> None:
        self._folder = folder
        self._tell = tell
        self._kept = kept

    def run(self) -> bool:
        """Run all steps; return whether each succeeded."""
        done = all((self._record(), self._why(), self._replay(), self._check()))
        self._look()
        return done

    def _record(self) -> bool:
        self._title("1. A broken app talks to its provider through deltatape record")
        provider = self._tapes("itinerary-broken")
        with background("replay", "--listen", "127.0.0.1:0", *provider) as player:
            self._command("replay", *provider)
            upstream = ("--upstream", player.url, "--to", str(self._folder))
            app = ("python", *APP, "single-call")
            self._command("record", *upstream, "--", *app)
            command = ("-m", "deltatape", "record", *upstream, "--", sys.executable, *app[1:])
            code = self._show(command, os.environ)
            player.stop()
        return code != 0

    def _why(self) -> bool:
        self._title("2. What went wrong, and whose fault was it?")
        return self._run("why", str(self._capture)) == 0

    def _replay(self) -> bool:
        self._title("3. The capture becomes a test: the repaired app against the same stream")
        tapes = (f"{self._capture}#1", *self._tapes("itinerary-fixed", "#2"))
        with background("replay", "--listen", "127.0.0.1:0", *tapes) as player:
            self._command("replay", *tapes)
            code = self._app("by-index", player.url)
            verdict, told = player.stop()
        self._tell(f"    {told.splitlines()[-1]}")
        return code == 0 and verdict == 0

    def _check(self) -> bool:
        self._title("4. Streams that the app is not to blame for, as CI would report them")
        tapes = tuple(tape for name in OTHERS for tape in self._tapes(name))
        return self._run("check", *tapes) == 1

    def _look(self) -> None:
        """Tell how to see on a page what the demo recorded, or the same streams if that is gone."""
        self._title("5. See these streams on a page, fragment by fragment")
        shown = os.path.relpath(self._folder if self._kept else INCIDENTS)
        self._tell(f"\n$ {program()} open {shlex.quote(shown)}")

    @property
    def _capture(self) -> Path:
        """Return the tape that step 1 made."""
        (path,) = self._folder.glob("*.tape")
        return path

    def _tapes(self, name: str, place: str = "") -> tuple[str, ...]:
        return (os.path.relpath(INCIDENTS / f"{name}.tape") + place,)

    def _app(self, accumulator: str, url: str) -> int:
        arguments = (*APP, accumulator)
        self._tell(f"\n$ OPENAI_BASE_URL={url}/v1 python {' '.join(arguments)}")
        return self._show(arguments, {**os.environ, "OPENAI_BASE_URL": f"{url}/v1"})

    def _show(self, arguments: Sequence[str], environment: Mapping[str, str]) -> int:
        """Run Python and print its output; return its exit code."""
        result = subprocess.run(  # noqa: S603 - our own program
            [sys.executable, *arguments],
            env=dict(environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        for line in result.stdout.splitlines():
            self._tell(f"    {line}")
        return result.returncode

    def _run(self, *arguments: str) -> int:
        self._command(*arguments)
        result = subprocess.run(  # noqa: S603 - our own program
            [sys.executable, "-m", "deltatape", *arguments], check=False
        )
        return result.returncode

    def _title(self, text: str) -> None:
        self._tell(f"\n== {text}")

    def _command(self, *arguments: str) -> None:
        self._tell(f"\n$ deltatape {' '.join(arguments)}")


def program() -> str:
    """Return the shell command that starts deltatape here: its bare name only if that is found."""
    if shutil.which("deltatape"):
        return "deltatape"
    return f"{shlex.quote(os.path.relpath(sys.executable))} -m deltatape"


# deltatape as a process of its own: started, waited for by what it prints, ended by signal.

LIMIT_S = 20.0
_URL = re.compile(r"https?://\S+?:[0-9]+(?=/|\s)")


class Background:
    """A running `deltatape record` or `deltatape replay`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []
        """What it has printed on stderr."""
        self._grown = threading.Condition()
        self._ended = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._grown:
                self.lines.append(line)
                self._grown.notify_all()
        with self._grown:
            self._ended = True
            self._grown.notify_all()

    def wait_for(self, pattern: str) -> str:
        """Return the first printed line that matches.

        Raises:
            TimeoutError: no line matched within 20 s, or before the process ended.
        """

        def found() -> str | None:
            return next((line for line in self.lines if re.search(pattern, line)), None)

        with self._grown:
            self._grown.wait_for(lambda: found() or self._ended, LIMIT_S)
            line = found()
        if line is None:
            raise TimeoutError(f"no line matches {pattern!r} in {''.join(self.lines)!r}")
        return line

    @property
    def url(self) -> str:
        """Return the address at which it listens: `http://127.0.0.1:8377`."""
        found = _URL.search(self.wait_for(_URL.pattern))
        assert found is not None
        return found[0]

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def stop(self, number: int = signal.SIGINT) -> tuple[int, str]:
        """End it with a signal; return its exit code and output."""
        self.process.send_signal(number)
        code = self.process.wait(LIMIT_S)
        self._reader.join(LIMIT_S)
        return code, "".join(self.lines)


@contextlib.contextmanager
def background(
    *arguments: str,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    before: Callable[[], None] | None = None,
) -> Iterator[Background]:
    """Start `deltatape ARGUMENTS`; kill it at the end if it still runs.

    Args:
        arguments: the arguments of the command line, without `deltatape`.
        cwd: the folder to start it in.
        env: its environment; this process's own by default.
        before: run in the new process before deltatape, to set a resource limit.
    """
    process = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-m", "deltatape", *arguments],
        cwd=cwd,
        env=dict(os.environ if env is None else env),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=before,  # noqa: PLW1509 - a resource limit; no thread of ours runs yet
    )
    running = Background(process)
    try:
        yield running
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        running._reader.join(LIMIT_S)  # noqa: SLF001 - its own module
        if process.stderr is not None:
            process.stderr.close()
