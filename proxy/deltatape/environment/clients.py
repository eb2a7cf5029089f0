"""The programs that people run, such as coding agents, and what each needs to be recorded.

`clients.toml` lists them; it drives `record -- CMD`, `replay -- CMD`, `doctor` and docs/clients.md.
A program is recognised in the command itself, behind what starts it (`npx`, `uvx`, `env`,
`sh -c`). Only words in the place of a command count: `grep claude` starts no Claude Code.

Some read base URLs from files of the user as well, which may win over the environment; they are
read here as untrusted input, and only for URLs.
"""

import json
import re
import shlex
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import takewhile
from pathlib import Path, PurePath
from typing import Any

from deltatape.environment.dotenv import DotenvFile, read_dotenv_file, read_file

TABLE = Path(__file__).with_name("clients.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsFile:
    """A file of the user in which a program looks for base URLs that win over the environment."""

    path: str
    """From the home folder (`~/`), or from the working directory."""
    urls: tuple[str, ...]
    """Paths to the URLs, with `*` for any name or number, and `{name}` for the value of `name`."""
    folder_variable: str = ""
    """A variable that names the file's folder instead; "" for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """Facts about a program or library."""

    name: str
    title: str
    version: str
    """The one that was tried."""
    know: str
    """What to know, in Markdown."""
    example: str
    """A command that uses it."""

    # How it is recognised.
    commands: tuple[str, ...] = ()
    """Names of its executables."""
    packages: tuple[str, ...] = ()
    """Packages that `npx`, `uvx` and the like run, and whose files `node` and `python` do."""
    modules: tuple[str, ...] = ()
    """For `python -m`."""

    # How it is recorded and replayed.
    base_urls: tuple[str, ...] = ()
    """Variables from which it reads base URLs; empty where it reads none."""
    keys: tuple[str, ...] = ()
    """Variables from which it reads keys."""
    environment_file: str = ""
    """A file of variables in the home folder that it loads, weaker than the environment."""
    set_with_own_host: Mapping[str, str] = field(default_factory=dict)
    """Variables without which a base URL changes what it sends to its provider's own host."""
    arguments: str = ""
    """Where it reads no variable: what the command line needs, for a shell."""
    pointed_by: tuple[str, ...] = ()
    """Words in a command line that points it somewhere already."""
    listen: str = ""
    """Where only its configuration has the base URL: a port that can stay in there."""
    configure: str = ""
    """How to put it there, once."""
    files: tuple[SettingsFile, ...] = ()
    volatile: tuple[str, ...] = ()
    """Fields that differ between two runs of the same task."""
    user_agents: tuple[str, ...] = ()
    """How the `User-Agent` of its requests begins."""
    telemetry: tuple[str, ...] = ()
    """LLM hosts to which it sends telemetry, too, whatever its base URL."""

    # How it behaves.
    is_agent: bool = False
    """Whether it lists the files of the working directory for its model."""
    takes_screen: bool = False
    """Whether it takes over the terminal when it is used by hand."""


@cache
def clients() -> tuple[Client, ...]:
    """Return all, in the order of the table."""
    with TABLE.open("rb") as file:
        return tuple(_client(each) for each in tomllib.load(file)["client"])


def _client(entry: Mapping[str, Any]) -> Client:
    files = tuple(SettingsFile(**_frozen(each)) for each in entry.get("files", ()))
    return Client(**{**_frozen(entry), "files": files})


def _frozen(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entry with tuples for lists."""
    return {name: tuple(v) if isinstance(v, list) else v for name, v in entry.items()}


def telemetry_hosts(known: Iterable[Client], user_agents: Iterable[str]) -> Mapping[str, str]:
    """Return the LLM hosts that get telemetry, each with the title of the client that sends it.

    Args:
        known: programs that run.
        user_agents: the user agents of requests, for the libraries that send them.
    """
    marks = tuple(user_agents)
    found = (
        *known,
        *(c for c in clients() if any(each.startswith(c.user_agents) for each in marks)),
    )
    return {host: each.title for each in found for host in each.telemetry}


# Recognise programs in a command.

_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "fish"})
_WRAPPERS = frozenset(
    {"command", "env", "exec", "nice", "nohup", "setsid", "stdbuf", "time", "timeout"}
)
"""Programs whose arguments end with a command."""
_RUNNERS: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("npx",): ("-p", "--package"),
    ("bunx",): ("-p", "--package"),
    ("uvx",): ("--from",),
    ("npm", "exec"): ("-p", "--package"),
    ("npm", "x"): ("-p", "--package"),
    ("pnpm", "dlx"): ("--package",),
    ("pnpm", "exec"): (),
    ("yarn", "dlx"): ("-p", "--package"),
    ("yarn", "exec"): (),
    ("bun", "x"): ("-p", "--package"),
    ("uv", "tool", "run"): ("--from",),
    ("uv", "run"): ("--with", "--package"),
    ("pipx", "run"): ("--spec",),
    ("poetry", "run"): (),
    ("pdm", "run"): (),
    ("hatch", "run"): (),
    ("pipenv", "run"): (),
    ("mise", "exec"): (),
}
"""How packages are run, and the options before the command that have a value."""
_INTERPRETER = re.compile(r"(?:python[0-9.]*|node|bun|deno)")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)
_VALUED = frozenset({"-C", "-k", "-n", "-s", "-u", "--chdir", "--signal", "--unset"})
"""Options of wrappers that have a value."""
_DURATION = re.compile(r"[0-9.]+[smhd]?")
"""What `timeout` has before the command."""
_VERSION = re.compile(r"(?<=[A-Za-z0-9_.\]-])(?:@|[=<>~!]=?).*|\[.*")
_PUNCTUATION = re.compile(r"[;&|()\n]+")
_KEYWORDS = frozenset({"if", "then", "else", "do", "while", "until", "!", "{", "elif"})
_DEPTH_LIMIT = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """A program in a command."""

    client: Client
    words: tuple[str, ...]
    """The program and its arguments."""
    runner: tuple[str, ...] = ()
    """The command before it that runs packages: `npx -y`."""

    @property
    def is_pointed(self) -> bool:
        """Whether the command line itself says where requests go."""
        return any(mark in word for mark in self.client.pointed_by for word in self.words)

    def missing(self) -> str:
        """Return the command with what it needs to reach the gateway; "" for nothing."""
        if not self.client.arguments or self.is_pointed:
            return ""
        begin = shlex.join((*self.runner, *self.words[:1]))
        parts = (begin, self.client.arguments, shlex.join(self.words[1:]))
        return f"sh -c {shlex.quote(' '.join(filter(None, parts)))}"


def recognised(argv: Sequence[str]) -> tuple[Invocation, ...]:
    """Return the known programs that a command starts, each once."""
    found = {each.client.name: each for each in _recognised(tuple(argv), 0)}
    return tuple(found.values())


def _recognised(words: tuple[str, ...], depth: int) -> Iterator[Invocation]:
    if depth > _DEPTH_LIMIT:
        return
    words = _unwrapped(words)
    if not words:
        return
    name = PurePath(words[0]).name
    if name in _SHELLS:
        for script in _scripts(words[1:]):
            for command in _commands(script):
                yield from _recognised(command, depth + 1)
        return
    for runner, valued in _RUNNERS.items():
        if (name, *words[1 : len(runner)]) == runner:
            yield from _run_by_runner(runner, words[len(runner) :], valued, depth)
            return
    if _INTERPRETER.fullmatch(name):
        yield from _interpreted(words)
        return
    for client in clients():
        if name in client.commands:
            yield Invocation(client=client, words=words)


def _unwrapped(words: tuple[str, ...]) -> tuple[str, ...]:
    """Remove `env A=b`, `timeout 10` and the like."""
    wrapper = ""
    at = 0
    while at < len(words):
        word = words[at]
        if PurePath(word).name in _WRAPPERS:
            wrapper = PurePath(word).name
        elif wrapper and word.startswith("-"):
            at += word in _VALUED
        elif not _ASSIGNMENT.fullmatch(word) and not (
            wrapper == "timeout" and _DURATION.fullmatch(word)
        ):
            return words[at:]
        at += 1
    return ()


def _scripts(words: Sequence[str]) -> Iterator[str]:
    """Yield the text of `-c`, also of `-lc` and `-euo pipefail -c`."""
    at, has_script = 0, False
    while at < len(words) and words[at].startswith(("-", "+")):
        letters = "" if words[at].startswith("--") else words[at]
        has_script = has_script or "c" in letters
        at += 1 + ("o" in letters)
    if has_script:
        yield from words[at : at + 1]


def _commands(script: str) -> Iterator[tuple[str, ...]]:
    """Yield the simple commands of a shell script that can be recognised without a shell."""
    lexer = shlex.shlex(script, posix=True, punctuation_chars=";&|()\n")
    lexer.whitespace = " \t\r"
    lexer.commenters = ""
    words: list[str] = []
    try:
        for word in lexer:
            if _PUNCTUATION.fullmatch(word):
                yield tuple(words)
                words = []
            elif words or word not in _KEYWORDS:
                words.append(word)
    except ValueError:
        return  # a quote that is never closed: the shell will say so
    yield tuple(words)


def _run_by_runner(
    runner: tuple[str, ...], words: tuple[str, ...], valued: Sequence[str], depth: int
) -> Iterator[Invocation]:
    """Find the package or command that `npx`, `uvx` and the like run."""
    packages: list[str] = []
    at = 0
    while at < len(words) and words[at].startswith("-"):
        option, equals, value = words[at].partition("=")
        if words[at] == "--":
            at += 1
            break
        if option in valued:
            packages.append(value if equals else "".join(words[at + 1 : at + 2]))
            at += not equals
        elif option in {"-c", "--call"}:
            for command in _commands(value if equals else "".join(words[at + 1 : at + 2])):
                yield from _recognised(command, depth + 1)
            return
        at += 1
    run = words[at:]
    named = {_VERSION.sub("", each) for each in (*packages, *run[:1])}
    by_package = [each for each in clients() if named & set(each.packages)]
    if by_package:
        for client in by_package:
            yield Invocation(client=client, words=run, runner=(*runner, *words[:at]))
    else:
        for found in _recognised(run, depth + 1):
            yield replace(found, runner=(*runner, *words[:at], *found.runner))


def _interpreted(words: tuple[str, ...]) -> Iterator[Invocation]:
    """Find what `python -m MODULE` and `node .../node_modules/PACKAGE/...` run."""
    options = tuple(takewhile(lambda word: word.startswith("-") and word != "-m", words[1:]))
    rest = words[1 + len(options) :]
    if rest[:1] == ("-m",):
        top = rest[1].partition(".")[0] if rest[1:] else ""
        found = (client for client in clients() if top in client.modules)
        rest = rest[1:]
    else:
        file = rest[0] if rest else ""
        name = PurePath(file).name
        found = (
            client
            for client in clients()
            if any(f"/node_modules/{package}/" in f"/{file}" for package in client.packages)
            or (name in client.commands and "/bin/" in file)
        )
    for client in found:
        yield Invocation(client=client, words=(*words[: len(words) - len(rest)], *rest))


# Base URLs in the files of the user.

_MAX_FILE_BYTES = 1024 * 1024
_REFERENCE = re.compile(r"\$\{|\{env:|\$[A-Za-z_]")
"""A value that is taken from the environment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredUrl:
    """A base URL that a program reads from a file, whatever the environment says."""

    client: Client
    file: str
    """As shown to the user: `~/.codex/config.toml`."""
    key: str
    """`env.ANTHROPIC_BASE_URL`."""
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedClients:
    """The known programs that a command starts, and what their files say."""

    invocations: tuple[Invocation, ...] = ()
    urls: tuple[ConfiguredUrl, ...] = ()
    files: tuple[DotenvFile, ...] = ()
    """Files of variables that they load, weaker than the environment and the project's."""
    problems: tuple[str, ...] = ()
    """A line per file that could not be read."""


def started_clients(
    argv: Sequence[str], folder: Path, environment: Mapping[str, str]
) -> StartedClients:
    """Return the known programs that `argv` starts in `folder`, with the URLs in their files."""
    invocations = recognised(argv)
    problems: list[str] = []
    urls = tuple(
        url
        for each in invocations
        for url in configured_urls(each.client, folder, environment, problems)
    )
    files = (_environment_file(each.client, environment) for each in invocations)
    return StartedClients(
        invocations=invocations,
        urls=urls,
        files=tuple(file for file in files if file is not None),
        problems=tuple(problems),
    )


def _environment_file(client: Client, environment: Mapping[str, str]) -> DotenvFile | None:
    shown = client.environment_file
    path = _home(environment) / shown.removeprefix("~/")
    return read_dotenv_file(path, shown) if shown and path.is_file() else None


def configured_urls(
    client: Client, folder: Path, environment: Mapping[str, str], problems: list[str]
) -> Iterator[ConfiguredUrl]:
    """Yield the base URLs in a program's files; add a line to `problems` per unreadable file."""
    seen: set[Path] = set()
    for file in client.files:
        path, shown = _place(file, folder, environment)
        if path in seen or not path.is_file():
            continue
        seen.add(path)
        try:
            document = _document(path)
        except ValueError as error:
            problems.append(f"{shown}: not read for {client.title}'s base URL: {error}")
            continue
        for pattern in file.urls:
            steps = [_named(step, document) for step in pattern.split(".")]
            for key, value in _values(document, steps, ()):
                if not _REFERENCE.search(value):
                    yield ConfiguredUrl(client=client, file=shown, key=key, url=value)


def _home(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("HOME") or "/")


def _place(file: SettingsFile, folder: Path, environment: Mapping[str, str]) -> tuple[Path, str]:
    """Return where a file is, and how the user calls it."""
    own = environment.get(file.folder_variable) if file.folder_variable else None
    if own:
        path = Path(own) / PurePath(file.path).name
        return path, str(path)
    if file.path.startswith("~/"):
        return _home(environment) / file.path[2:], file.path
    return folder / file.path, file.path


def _document(path: Path) -> object:
    """Return the content of a JSON, TOML or YAML file.

    Raises:
        ValueError: it cannot be read; the message says why.
    """
    text = read_file(path, _MAX_FILE_BYTES)
    try:
        if path.suffix == ".toml":
            return tomllib.loads(text)
        if path.suffix in {".yaml", ".yml"}:
            import yaml  # noqa: PLC0415 - most programs have no such file

            try:
                return yaml.safe_load(text)
            except yaml.YAMLError as error:
                raise ValueError(error) from None
        return json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError(f"no valid {path.suffix.lstrip('.').upper()}") from None


def _named(step: str, document: object) -> str:
    """Return the member that `{name}` means, or the step itself."""
    if not step.startswith("{") or not isinstance(document, dict):
        return step
    return str(document.get(step.strip("{}"), ""))


def _values(node: object, steps: Sequence[str], path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield the texts at a path, each with its own path."""
    if not steps:
        if isinstance(node, str):
            yield ".".join(path), node
        return
    if isinstance(node, list):
        members: Iterator[tuple[object, object]] = iter(enumerate(node))
    elif isinstance(node, dict):
        members = iter(node.items())
    else:
        return
    for name, value in members:
        if steps[0] in {"*", name}:
            yield from _values(value, steps[1:], (*path, str(name)))
