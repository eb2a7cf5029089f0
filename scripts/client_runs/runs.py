"""Runs a program: recorded, replayed, replayed a week later elsewhere, and with broken providers.

Everything is done as docs/clients.md says: the command with what `record` prints as missing, the
port of the client where its configuration alone has the base URL, its `--volatile` options. Each
run gets a HOME and a working directory with the same files; a replay gets them at the same path.
"""

import asyncio
import contextlib
import glob
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from client_runs.programs import DRIVERS, Program
from client_runs.provider import CUT, DONE, EMPTY, HEALTHY, SPLIT, Provider, serving
from deltatape.environment.clients import recognised

PROMPT = "What do my notes say?"
NOTES = "Grüße aus 東京 👩\u200d🚀\n"
_OWN = Path(sys.executable).parent
"""Where `deltatape` is, also where that environment is not active."""
_LIMIT_S = 240
_DEFAULT_PORT = "127.0.0.1:8377"
_SHOWN = 160
"""Characters of what a program prints or tells its model that are kept."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Ran:
    """What became of a command."""

    exit: int | None
    """None: it was ended after the limit."""
    output: str
    """What it printed on standard output."""
    errors: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where, as whom and by which clock a program runs."""

    root: Path
    user: str = "ann"
    folder: str = "project"
    clock: Mapping[str, str] | None = None
    """Variables that change its clock."""

    @property
    def home(self) -> Path:
        """The user's."""
        return self.root / "home" / self.user

    @property
    def project(self) -> Path:
        """The working directory."""
        return self.root / self.folder

    def prepare(self, program: Program) -> None:
        """Make both anew."""
        for folder in (self.home, self.project):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        (self.project / "notes.txt").write_text(NOTES)
        if program.driver:
            shutil.copy(DRIVERS / program.driver, self.project)
        for folder, files in ((self.home, program.home), (self.project, program.project)):
            for name, text in files.items():
                path = folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(_filled(text, program))

    def environment(self, program: Program) -> dict[str, str]:
        """Few variables, so that runs are the same on every machine."""
        kept = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
        return {
            **kept,
            "PATH": os.pathsep.join(map(str, (program.executables, _OWN, os.environ["PATH"]))),
            "HOME": str(self.home),
            "USER": self.user,
            "LOGNAME": self.user,
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            **program.environment,
        }


def _filled(text: str, program: Program) -> str:
    """Text of the table with the gateway's URL in it."""
    listen = program.client.listen or _DEFAULT_PORT
    return text.replace("{base_url}", f"http://{listen}/{program.upstream}")


def run(program: Program, root: Path) -> Json:
    """Run a program in every way; return what was observed, as data."""
    healthy, tape = asyncio.run(_recorded(program, Place(root), HEALTHY))
    found: Json = {"packages": list(program.packages), "healthy": healthy}
    if tape is not None:
        found["replays"] = [_replayed(program, Place(root), tape) for _ in range(2)]
        found["later"] = _later(program, root, tape)
    found["broken"] = {
        way: asyncio.run(_recorded(program, Place(root), way))[0] for way in (EMPTY, CUT, SPLIT)
    }
    return found


async def _recorded(program: Program, place: Place, way: str) -> tuple[Json, Path | None]:
    """Record a run against the provider in one of its ways; what was seen, and the tape."""
    provider = Provider(tool=program.tool, arguments=program.arguments, way=way)
    tapes = place.root / f"tapes-{way}"
    shutil.rmtree(tapes, ignore_errors=True)
    async with serving(provider) as url:
        place.prepare(program)
        if program.setup:
            await _run([_filled(each, program) for each in program.setup], program, place)
        options = [
            "--to",
            str(tapes),
            "--upstream",
            f"{program.upstream}={url}{program.path}",
            "--quiet",
        ]
        argv = ["deltatape", "record", *options, *_listen(program), "--", *_command(program, place)]
        ran = await _run(argv, program, place)
    found: Json = {"exit": ran.exit, "attempts": provider.attempts, "told": _short(provider.told)}
    if provider.problems:
        found["problems"] = provider.problems
    tape = next(iter(tapes.glob("*.tape")), None)
    if tape is None or not _exchanges(tape):
        return {**found, "exchanges": 0, "printed": _short(_last_line(ran.errors))}, None
    return {**found, **_on_tape(tape, program, way, place)}, tape


def _on_tape(tape: Path, program: Program, way: str, place: Place) -> Json:
    """What deltatape says about a tape."""
    shown = _deltatape("show", "--calls", str(tape))
    calls = [each for each in shown["calls"] if each["name"] == program.tool]
    number = calls[0]["exchange"] if calls and way != HEALTHY else None
    verdict = _deltatape("why", f"{tape}#{number}" if number else str(tape))["verdict"]
    findings = _deltatape("check", str(tape))["findings"]
    log = _deltatape("show", "--log", str(tape))
    lines = [each["line"] for each in log["log"] if each["line"].strip()]
    return {
        "exchanges": _exchanges(tape),
        "rebuilt": bool(calls) and calls[0]["arguments"] == program.arguments,
        "codes": sorted({each["code"] for each in findings}),
        "verdict": verdict["shown"],
        "code": verdict["code"],
        "printed": _short(_placeless(lines[-1] if lines else "", place)),
        "answered": any(DONE in line for line in lines),
    }


def _exchanges(tape: Path) -> int:
    """How many exchanges a tape has."""
    with tape.open() as file:
        lines = [json.loads(line) for line in file]
    return len({line[1] for line in lines if isinstance(line, list) and line[2] == "request"})


def _replayed(program: Program, place: Place, tape: Path) -> Json:
    """Replay a tape; what was played, and what missed."""
    place.prepare(program)
    report = place.root / "report.json"
    report.unlink(missing_ok=True)
    volatile = [word for each in program.client.volatile for word in ("--volatile", each)]
    argv = ["deltatape", "replay", *volatile, *_listen(program), "--speed", "instant"]
    argv += ["--report", str(report), str(tape), "--", *_command(program, place)]

    async def replay() -> Ran:
        if program.setup:
            await _run([_filled(each, program) for each in program.setup], program, place)
        return await _run(argv, program, place)

    ran = asyncio.run(replay())
    if not report.exists():
        return {"exit": ran.exit, "problem": _short(_last_line(ran.errors))}
    told = json.loads(report.read_text())
    missed = sorted({path for each in told["missed"] for path in _differing(each)})
    return {
        "exit": ran.exit,
        "played": [each["exchange"] for each in told["played"]],
        "missed": missed,
        "unplayed": [each["exchange"] for each in told["unplayed"]],
        "answered": DONE in ran.output,
    }


def _differing(missed: Json) -> list[str]:
    """Where a missed request differs, and the options that would accept it."""
    suggested = [f"--volatile {each}" for each in missed.get("suggested") or ()]
    return suggested or [f"{missed['method']} {missed['target']}"]


def libfaketime() -> str | None:
    """Return the library that sets a program's clock; None if it is not installed."""
    return next(iter(glob.glob("/usr/lib/*/faketime/libfaketime.so.1")), None)  # noqa: PTH207


def _later(program: Program, root: Path, tape: Path) -> Json:
    """Replay a week later, in another folder, as another user."""
    library = libfaketime()
    clock = program.clock if library else "tape"
    if clock == "tape":
        aged = root / "aged" / tape.name
        aged.parent.mkdir(exist_ok=True)
        aged.write_text(_aged(tape))
        tape, variables = aged, None
    else:
        variables = {
            "LD_PRELOAD": str(library),
            "FAKETIME": "+7d",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
    elsewhere = Place(root, user="robert", folder="elsewhere/my-work", clock=variables)
    return {"clock": clock, **_replayed(program, elsewhere, tape)}


def _aged(tape: Path) -> str:
    """A tape whose requests were sent a year before, for programs whose clock cannot be changed."""
    lines = tape.read_text().splitlines(keepends=True)
    today = tape.stem[:10]
    before = f"{int(today[:4]) - 1}{today[4:]}"
    return "".join(
        line.replace(today, before) if '"request-body"' in line[:80] else line for line in lines
    )


def _listen(program: Program) -> list[str]:
    return ["--listen", program.client.listen] if program.client.listen else []


def _command(program: Program, place: Place) -> list[str]:
    """The command with what docs/clients.md adds to it."""
    command = [word.replace("{prompt}", PROMPT) for word in program.command]
    found = next(iter(recognised(command)), None)
    if found is not None and (line := found.missing()):
        command = shlex.split(line)
    if place.clock:
        return ["env", *(f"{name}={value}" for name, value in place.clock.items()), *command]
    return command


async def _run(argv: Sequence[str], program: Program, place: Place) -> Ran:
    """Run a command in a session of its own, which is ended after the limit."""
    process = await asyncio.create_subprocess_exec(
        *argv,
        cwd=place.project,
        env=place.environment(program),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    reading = asyncio.ensure_future(process.communicate())
    in_time, _ = await asyncio.wait([reading], timeout=_LIMIT_S)
    if not in_time:
        # The recorder ends its command, and finishes the tape.
        process.terminate()
        done, _ = await asyncio.wait([reading], timeout=15)
        if not done:
            os.killpg(process.pid, signal.SIGKILL)
    _end_daemons(place)
    output, errors = await reading
    code = process.returncode if in_time else None
    return Ran(code, output.decode(errors="replace"), errors.decode(errors="replace"))


def _end_daemons(place: Place) -> None:
    """End what a program left behind, such as a daemon in a session of its own: by its HOME."""
    mark = f"HOME={place.home}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        # It may end meanwhile, or be another user's.
        with contextlib.suppress(OSError):
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                os.kill(int(folder.name), signal.SIGKILL)


def _deltatape(*words: str) -> Json:
    """What a command of deltatape says in JSON."""
    argv = ["deltatape", words[0], "--format", "json", *words[1:]]
    ran = subprocess.run(argv, capture_output=True, text=True, check=False)
    told: Json = json.loads(ran.stdout)
    return told


_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _placeless(text: str, place: Place) -> str:
    """Text without what is another one each time: the folders of this run, and ids."""
    return _UUID.sub("UUID", text.replace(str(place.root), ""))


def _short(text: str) -> str:
    plain = " ".join(_ESCAPES.sub("", text).split())
    return plain if len(plain) <= _SHOWN else plain[: _SHOWN - 1] + "…"
