"""Installs an SDK in a version into a folder of its own, once.

The folders are in the user's cache: `$XDG_CACHE_HOME/deltatape/sdks/`. One is made beside its place
and moved there when it is whole, so that what is in place can be used. Nothing of a package is run
while it is installed: pip takes wheels alone, npm runs no scripts.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from deltatape.errors import DeltatapeError
from deltatape.sdks.packages import SdkSpec
from deltatape.sdks.runner import Environment, node_environment, python_environment
from deltatape.sdks.table import Ecosystem

_LIMIT_S = 600
_SAID = 300
_ERROR = re.compile(r"(?:ERROR:|npm error(?: notarget)?) ")
_NO_WORDS = re.compile(r"(?:code|errno|syscall) ")
_VERSIONS = re.compile(r" \(from versions: [^)]*\)")


def installed(
    spec: SdkSpec, tell: Callable[[str], None], environment: Mapping[str, str] = os.environ
) -> Environment:
    """Where the SDK is; installs it if it is not there yet.

    Args:
        spec: which.
        tell: is told in one line what takes long.
        environment: says where the cache is.

    Raises:
        DeltatapeError: it cannot be installed; the message says what to do.
    """
    folder = cache(environment) / _name(spec)
    if not folder.is_dir():
        tell(f"installing {' '.join(spec.requirements)} into {folder}, once")
        _make(spec, folder)
    if spec.ecosystem is Ecosystem.NODE:
        return node_environment(spec.name, folder)
    return python_environment(spec.name, folder / "bin" / "python")


def cache(environment: Mapping[str, str]) -> Path:
    """The folder of all SDKs."""
    named = environment.get("XDG_CACHE_HOME", "")
    home = Path(named) if Path(named).is_absolute() else Path.home() / ".cache"
    return home / "deltatape" / "sdks"


def _name(spec: SdkSpec) -> str:
    """The folder's name; wheels go by the version of Python."""
    plain = spec.text.replace("/", "+").replace("*", "x")
    if spec.ecosystem is Ecosystem.NODE:
        return f"npm-{plain}"
    return f"python{sys.version_info.major}.{sys.version_info.minor}-{plain}"


def _make(spec: SdkSpec, folder: Path) -> None:
    draft = folder.with_name(f".{folder.name}.{os.getpid()}")
    try:
        draft.mkdir(parents=True)
        if spec.ecosystem is Ecosystem.NODE:
            _npm(spec, draft)
        else:
            _pip(spec, draft)
        draft.rename(folder)
    except OSError as problem:
        if not folder.is_dir():  # else another run was faster
            raise DeltatapeError(f"--with {spec.text!r}: {folder}: {problem.strerror}") from problem
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _pip(spec: SdkSpec, folder: Path) -> None:
    environment = (sys.executable, "-m", "venv", str(folder))
    _run(spec, environment, "it needs venv (on Debian: apt-get install python3-venv)")
    pip = (str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-compile")
    options = ("--no-input", "--disable-pip-version-check", "--retries", "1")
    _run(
        spec,
        (*pip, *options, "--only-binary", ":all:", *spec.requirements),
        f"see with `pip index versions {spec.name}` which versions there are, and whether a package"
        " index can be reached",
    )


def _npm(spec: SdkSpec, folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        raise DeltatapeError(
            f"--with {spec.text!r}: needs Node.js 20 or newer with npm in PATH"
            " (on Debian: apt-get install nodejs npm)"
        )
    (folder / "package.json").write_text('{"private": true}\n')
    install = (npm, "install", "--prefix", str(folder), "--loglevel", "error")
    options = ("--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries", "1")
    _run(
        spec,
        (*install, *options, *spec.requirements),
        f"see with `npm view {spec.name} versions` which versions there are, and whether the"
        " registry can be reached",
    )


def _run(spec: SdkSpec, command: Sequence[str], advice: str) -> None:
    try:
        done = subprocess.run(  # noqa: S603 - pip and npm, asked for by the user
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as problem:
        raise DeltatapeError(
            f"--with {spec.text!r}: not installed after {_LIMIT_S} s; {advice}"
        ) from problem
    if done.returncode:
        said = _problem(done.stderr or done.stdout) or f"exit code {done.returncode}"
        raise DeltatapeError(f"--with {spec.text!r}: cannot be installed: {said}; {advice}")


def _problem(said: str) -> str:
    """The first thing that pip or npm calls an error, without the list of all versions."""
    errors = [line for line in said.splitlines() if _ERROR.match(line)] or said.splitlines()[-1:]
    told = (_VERSIONS.sub("", _ERROR.sub("", line)) for line in errors)
    return next((line for line in told if " " in line and not _NO_WORDS.match(line)), "")[:_SAID]
