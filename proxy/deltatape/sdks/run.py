"""`why --with`: pass a recorded response to real SDKs, in the versions that the user names.

Each is installed once into a folder of its own in the user's cache,
`$XDG_CACHE_HOME/deltatape/sdks/`. An environment is built next to its place and moved there when
complete. No code of a package runs during installation: pip installs only wheels, npm runs no
scripts.
"""

import asyncio
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from deltatape.diagnose.rebuild import Analysis, analyse
from deltatape.errors import DeltatapeError, UsageError
from deltatape.model.exchange import Exchange
from deltatape.model.request_summary import RepeatedCall
from deltatape.model.suspect import ClientReading
from deltatape.sdks.runner import (
    Environment,
    SdkStream,
    node_environment,
    python_environment,
    run_sdk,
)
from deltatape.sdks.table import Ecosystem, version_numbers

_LIMIT_S = 600
_MOST_SHOWN = 300
_ERROR = re.compile(r"(?:ERROR:|npm error(?: notarget)?) ")
_NO_WORDS = re.compile(r"(?:code|errno|syscall) ")
_VERSIONS = re.compile(r" \(from versions: [^)]*\)")

# Which SDKs are known, and how one is named: `openai==3.54.0` (pip), `ai@6` (npm).

_NAMED = re.compile(
    r"(?P<package>@?[A-Za-z0-9][\w./-]*?)(?P<sign>==|@)(?P<version>[0-9][0-9A-Za-z.*+-]*)"
)
_CHAT, _RESPONSES, _MESSAGES = "openai-chat", "openai-responses", "anthropic-messages"
_SIGNS = {"==": Ecosystem.PYTHON, "@": Ecosystem.NODE}


class Package(NamedTuple):
    """An SDK that a runner can drive."""

    dialects: tuple[str, ...]
    """What it reads."""
    since: int
    """The first major version with the interface that the runner uses."""
    beside: Mapping[str, int] = {}
    """Packages that do a part of its work, and how far their major version is from its own."""


PACKAGES: Mapping[Ecosystem, Mapping[str, Package]] = {
    Ecosystem.PYTHON: {
        "openai": Package((_CHAT, _RESPONSES), 1),
        "anthropic": Package((_MESSAGES,), 0),
        "google-genai": Package(("gemini",), 1),
        "langchain-openai": Package((_CHAT, _RESPONSES), 1),
        "litellm": Package((_CHAT, _MESSAGES), 1),
    },
    Ecosystem.NODE: {
        "openai": Package((_CHAT, _RESPONSES), 4),
        "@anthropic-ai/sdk": Package((_MESSAGES,), 0),
        "ai": Package(
            (_CHAT, _RESPONSES, _MESSAGES),
            5,
            {"@ai-sdk/openai-compatible": -4, "@ai-sdk/openai": -3, "@ai-sdk/anthropic": -3},
        ),
        "@ai-sdk/openai": Package((_CHAT,), 2, {"ai": 3}),
    },
}


class SdkSpec(NamedTuple):
    """An SDK in a version, as the user named it."""

    text: str
    ecosystem: Ecosystem
    name: str
    version: str

    @property
    def package(self) -> Package:
        """Return its package."""
        return PACKAGES[self.ecosystem][self.name]

    @property
    def requirements(self) -> tuple[str, ...]:
        """Return the requirements in the form that pip and npm take."""
        (major, *_), beside = version_numbers(self.version), self.package.beside.items()
        return (self.text, *(f"{name}@{major + apart}" for name, apart in beside))


@dataclass(frozen=True, slots=True, kw_only=True)
class SdkReading:
    """What an SDK returns for a response."""

    spec: str
    """As the user named it: `ai@6`."""
    versions: Mapping[str, str]
    """The exact ones: of the package itself, first, and of those that do a part of its work."""
    made: ClientReading
    refused: tuple[RepeatedCall, ...]
    """Calls that it hands over marked as unusable; they are not in `made`."""
    finish: str | None
    """Why the model stopped, in the SDK's own word."""


def made_by(
    exchange: Exchange,
    specs: Sequence[str],
    *,
    tell: Callable[[str], None],
    environment: Mapping[str, str] = os.environ,
) -> tuple[SdkReading, ...]:
    """Return the readings of the response of `exchange` by each of `specs`, in their order.

    Each runs in a process and an environment of its own, and gets the response from a server on
    loopback; the SDKs that are not installed yet are, with pip or npm.

    Args:
        exchange: a recorded one.
        specs: `openai==3.54.0`, `ai@6`.
        tell: gets a line before slow steps.
        environment: its variables name the cache folder.

    Raises:
        UsageError: an unknown name, or an SDK that does not read the dialect.
        DeltatapeError: an SDK cannot be installed or started.
    """
    analysis = analyse(exchange)
    found = [parse_spec(spec) for spec in specs]
    for spec in found:
        _check(spec, analysis.reply.dialect)
    stream = SdkStream(
        exchange=exchange, dialect=analysis.reply.dialect, tools=tuple(_tools(analysis))
    )
    return tuple(_made_by(spec, stream, tell, environment) for spec in found)


def _check(spec: SdkSpec, dialect: str) -> None:
    if dialect in spec.package.dialects:
        return
    able = known(dialect)
    instead = (
        f"what reads {dialect}: {', '.join(able)}" if able else f"nothing known reads {dialect}"
    )
    raise UsageError(
        f"--with {spec.text!r}: reads {', '.join(spec.package.dialects)}; the response is"
        f" {dialect}; {instead}"
    )


def _tools(analysis: Analysis) -> dict[str, None]:
    """Return the names of the tools to offer: some SDKs refuse calls of others."""
    offered = [tool.name for tool in analysis.request.tools]
    called = [call.name for call in analysis.reply.tool_calls if call.name]
    return dict.fromkeys((*offered, *called))


def _made_by(
    spec: SdkSpec,
    stream: SdkStream,
    tell: Callable[[str], None],
    environment: Mapping[str, str],
) -> SdkReading:
    run = asyncio.run(run_sdk(installed(spec, tell, environment), [stream]))
    (reply,) = run.replies
    made = ClientReading(
        calls=reply.calls, errors=(reply.error,) if reply.error else (), text=reply.text
    )
    return SdkReading(
        spec=spec.text,
        versions=run.versions,
        made=made,
        refused=reply.refused,
        finish=reply.finish,
    )


def parse_spec(text: str) -> SdkSpec:
    """Parse one `--with`.

    Raises:
        UsageError: not such a name, an unknown package, or one that is too old.
    """
    match = _NAMED.fullmatch(text)
    if match is None:
        raise UsageError(
            f"--with {text!r}: not a package with its version, such as openai==3.54.0 from PyPI or"
            " ai@6 from npm"
        )
    ecosystem, name, version = _SIGNS[match["sign"]], match["package"], match["version"]
    package = PACKAGES[ecosystem].get(name)
    if package is None:
        raise UsageError(f"--with {text!r}: unknown; known are {', '.join(known())}")
    if version_numbers(version) < (package.since,):
        raise UsageError(f"--with {text!r}: too old; {name} {package.since} and later are accepted")
    return SdkSpec(text=text, ecosystem=ecosystem, name=name, version=version)


def known(dialect: str = "") -> list[str]:
    """Return the SDKs, of `dialect` if one is given: `openai==VERSION`, `ai@VERSION`."""
    return [
        f"{name}{sign}VERSION"
        for sign, ecosystem in _SIGNS.items()
        for name, package in PACKAGES[ecosystem].items()
        if not dialect or dialect in package.dialects
    ]


def installed(
    spec: SdkSpec, tell: Callable[[str], None], environment: Mapping[str, str] = os.environ
) -> Environment:
    """Return the SDK's environment; install it if it is missing.

    Args:
        spec: which.
        tell: gets a line before slow steps.
        environment: its variables name the cache folder.

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
    """Return the folder of all SDKs."""
    named = environment.get("XDG_CACHE_HOME", "")
    home = Path(named) if Path(named).is_absolute() else Path.home() / ".cache"
    return home / "deltatape" / "sdks"


def _name(spec: SdkSpec) -> str:
    """Return the folder's name; wheels depend on the version of Python."""
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
    python = str(folder / "bin" / "python")
    # Where we have pip, it installs elsewhere, too: a pip of its own would take most of the time.
    ours = find_spec("pip") is not None
    environment = (sys.executable, "-m", "venv", *(("--without-pip",) if ours else ()), str(folder))
    _run(spec, environment, "it needs venv (on Debian: apt-get install python3-venv)")
    pip = (sys.executable, "-m", "pip", "--python", python) if ours else (python, "-m", "pip")
    install = ("install", "--quiet", "--no-compile", "--no-input", "--disable-pip-version-check")
    options = ("--retries", "1", "--only-binary", ":all:")
    _run(
        spec,
        (*pip, *install, *options, *spec.requirements),
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
        error = _problem(done.stderr or done.stdout) or f"exit code {done.returncode}"
        raise DeltatapeError(f"--with {spec.text!r}: cannot be installed: {error}; {advice}")


def _problem(output: str) -> str:
    """Return the first error in the output of pip or npm, without its list of all versions."""
    lines = output.splitlines()
    errors = [line for line in lines if _ERROR.match(line)] or lines[-1:]
    texts = (_VERSIONS.sub("", _ERROR.sub("", line)) for line in errors)
    sentences = (text for text in texts if " " in text and not _NO_WORDS.match(text))
    return next(sentences, "")[:_MOST_SHOWN]
