"""The programs that are run: read from programs.toml, which explains its fields; and installed."""

import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deltatape.environment.clients import Client, clients

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TABLE = HERE / "programs.toml"
DRIVERS = HERE / "drivers"
INSTALLED = ROOT / ".clients"
_INSTALL_S = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """How a program is installed and run; see programs.toml."""

    name: str
    command: tuple[str, ...]
    upstream: str
    of: str = ""
    title: str = ""
    path: str = ""
    npm: tuple[str, ...] = ()
    pip: tuple[str, ...] = ()
    installer: tuple[str, ...] = ()
    tool: str = ""
    arguments: str = ""
    driver: str = ""
    setup: tuple[str, ...] = ()
    clock: str = "faketime"
    remark: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    home: Mapping[str, str] = field(default_factory=dict)
    project: Mapping[str, str] = field(default_factory=dict)

    @property
    def client(self) -> Client:
        """What docs/clients.md says of it."""
        return next(each for each in clients() if each.name == (self.of or self.name))

    @property
    def shown(self) -> str:
        """Its name on the page."""
        return self.title or self.client.title

    @property
    def packages(self) -> tuple[str, ...]:
        """Names and versions; the first is the program itself."""
        return self.npm or self.pip

    @property
    def version(self) -> str:
        """The version of the program itself."""
        return self.packages[0].rpartition("@" if self.npm else "==")[2]

    @property
    def folder(self) -> Path:
        """Where it is installed."""
        return INSTALLED / (self.of or self.name)

    @property
    def executables(self) -> Path:
        """The folder of its commands."""
        return self.folder / ("node_modules/.bin" if self.npm else "bin")


def programs() -> tuple[Program, ...]:
    """All, in the order of the table."""
    with TABLE.open("rb") as file:
        entries = tomllib.load(file)["program"]
    return tuple(map(_program, entries))


def _program(entry: Mapping[str, Any]) -> Program:
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()
    }
    return Program(**fields)


def install(program: Program) -> str:
    """Install a program where it is not; return why that is not possible, "" if it is."""
    done = program.folder / "installed"
    wanted = "\n".join(program.packages)
    if done.exists() and done.read_text() == wanted:
        return ""
    shutil.rmtree(program.folder, ignore_errors=True)
    program.folder.mkdir(parents=True)
    steps = [_npm(program)] if program.npm else _pip(program)
    if program.installer:
        steps.append([*program.installer])
    for argv in steps:
        try:
            ran = subprocess.run(
                argv,
                cwd=program.folder,
                capture_output=True,
                text=True,
                timeout=_INSTALL_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        if ran.returncode:
            lines = [line for line in ran.stderr.splitlines() if line.strip()]
            return lines[-1] if lines else f"exit code {ran.returncode}"
    done.write_text(wanted)
    return ""


def _npm(program: Program) -> list[str]:
    """The command that installs packages of npm; their install scripts do not run."""
    (program.folder / "package.json").write_text('{"private": true}\n')
    options = ["--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--silent"]
    return ["npm", "install", *options, *program.npm]


def _pip(program: Program) -> list[list[str]]:
    """The commands that make a virtual environment."""
    python = str(program.executables / "python")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    return [[sys.executable, "-m", "venv", str(program.folder)], [*pip, *program.pip]]
