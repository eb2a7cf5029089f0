"""Command-line options shared by several commands, with default and variable in the help."""

import re
from collections.abc import Callable, Container, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import click

from deltatape.errors import UsageError
from deltatape.model.finding import Severity
from deltatape.objects.urls import check_store_url

_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(ms|s|m)")
_EXTRA = re.compile(r"unexpected extra arguments? \((\S+?)(?: .*)?\)")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0}

NEVER = "never"
"""The value of --fail-on that makes no finding fail."""
TAPING_FAILED = 125
"""The exit code of commands that record, if recording failed."""

FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)

F = TypeVar("F", bound=Callable[..., Any])
MITM = "mitm"
_UNEXPLAINED: Mapping[str, str] = MappingProxyType({})


class WholeNumber(click.IntRange):
    """A number in a range; an error calls it an integer, not an integer range."""

    name = "integer"


def _refuse_empty(ctx: click.Context, param: click.Parameter, value: object) -> None:
    """Refuse an empty path, which would be read as the current folder or as the latest tape."""
    given = ctx.get_parameter_source(param.name or "") is not click.core.ParameterSource.DEFAULT
    if given and "" in (value if isinstance(value, tuple) else (value,)):
        raise click.BadParameter(
            "the path is empty; a variable in the command line may be unset", ctx=ctx, param=param
        )


class PathArgument(click.Argument):
    """An argument for paths or URLs, not empty ones."""

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        _refuse_empty(ctx, self, value)
        return super().process_value(ctx, value)


class TapeArgument(PathArgument):
    """An argument for tapes and folders: paths, or URLs of object stores."""

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        for each in value if isinstance(value, tuple) else (value,):
            if isinstance(each, str):  # click has a value of its own for one that is missing
                check_store_url(each)
        return super().process_value(ctx, value)


class PathOption(click.Option):
    """An option for a path, not an empty one."""

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        _refuse_empty(ctx, self, value)
        return super().process_value(ctx, value)


def option(*names: str, help: str, **settings: Any) -> Callable[[F], F]:  # noqa: A002 - click's word
    """Return a `click.option` whose help shows its default and its environment variable."""
    settings.setdefault("show_default", True)
    if isinstance(settings.get("type"), click.Path):
        settings.setdefault("cls", PathOption)
    return click.option(*names, help=help, show_envvar=True, **settings)


FORMAT = option(
    "--format",
    type=click.Choice(["text", "json"]),
    default="text",
    help="Text for people, JSON for programs.",
)
"""The same on every command that prints results; its parameter is called as the option is, since
click names the variable after the parameter."""


FULL = option(
    "--full",
    is_flag=True,
    help="Read all of a large tape, not only the part around #N.",
)
"""The same on commands that take `TAPE#N` and show it in its conversation."""


def seconds(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """Parse a duration such as `30s`, `1.5s`, `500ms` or `2m` to seconds; a click callback."""
    if value is None:
        return None
    match = _DURATION.fullmatch(value)
    if match is not None:
        return float(match[1]) * _UNITS[match[2]]
    raise click.BadParameter(
        f"{value!r}: invalid duration; use 500ms, 30s or 2m", ctx=ctx, param=param
    )


def refuse_useless(
    ctx: click.Context, useful: Container[str], when: str, why: Mapping[str, str] = _UNEXPLAINED
) -> None:
    """Refuse an option that would have no effect but is on the command line.

    Args:
        ctx: the command's context.
        useful: the options that have one.
        when: the circumstances.
        why: reasons, by option.

    Raises:
        UsageError: there is one.
    """
    for parameter in ctx.command.params:
        name = parameter.name or ""
        source = ctx.get_parameter_source(name)
        if name not in useful and source is click.core.ParameterSource.COMMANDLINE:
            reason = f": {why[name]}" if name in why else ""
            raise UsageError(f"{parameter.opts[0]}: has no effect {when}{reason}")


def duration(name: str, default: str | None, help: str) -> Callable[[F], F]:  # noqa: A002
    """Return an option whose value is a duration, in seconds."""
    return option(name, default=default, callback=seconds, metavar="DURATION", help=help)


def size(
    name: str,
    default: str | None,
    help: str,  # noqa: A002 - click's word
    *,
    least: str = "",
    why: str = "",
) -> Callable[[F], F]:
    """Return an option whose value is a size such as `64MB`, in bytes; `/s` may follow.

    Args:
        name: of the option.
        default: a size, or None.
        help: of the option.
        least: the smallest size that is accepted, and
        why: as a part of the error's sentence.
    """

    def parse(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
        found = _parse_size(ctx, param, value)
        if found is not None and least and found < (_parse_size(ctx, param, least) or 0):
            raise UsageError(f"{name} {value}: too little; use {least} or more{why}")
        return found

    return option(name, default=default, callback=parse, metavar="SIZE", help=help)


def _parse_size(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    if value is None:
        return None
    from deltatape.store.ring import parse_size  # noqa: PLC0415 - not for help

    if found := parse_size(value.removesuffix("/s")):
        return found
    raise click.BadParameter(
        f"{value!r}: invalid size; use 500KB, 64MB or 5GiB (KB MB GB TB KiB MiB GiB TiB)",
        ctx=ctx,
        param=param,
    )


def via_mitm(what: str, hosts: str) -> Callable[[F], F]:
    """Return the options --via and --hosts.

    Args:
        what: the help of --via: what mitmproxy does there.
        hosts: what --hosts makes it do with a host.
    """
    via = option("--via", type=click.Choice([MITM]), help=what)
    more = option(
        "--hosts",
        multiple=True,
        metavar="HOST",
        help=f"With --via mitm: {hosts}; * stands for anything.",
    )
    return lambda command: via(more(command))


def output(help: str, *, required: bool = False) -> Callable[[F], F]:  # noqa: A002 - click's word
    """Return the option for the path of a new tape."""
    return option("-o", "--output", required=required, type=FILE, metavar="TAPE", help=help)


def fail_on(
    help: str,  # noqa: A002 - click's word
    *,
    default: str,
    severities: Sequence[Severity] = tuple(Severity),
) -> Callable[[F], F]:
    """Return the option for the least severity that makes a command fail."""
    choices = click.Choice([*(severity.value for severity in severities), NEVER])
    return option("--fail-on", type=choices, default=default, help=help)


def failing_severities(fail_on: str) -> frozenset[Severity]:
    """Return the severities that make a command fail, given the value of `--fail-on`."""
    if fail_on == NEVER:
        return frozenset()
    least = Severity(fail_on)
    return frozenset(severity for severity in Severity if severity.rank <= least.rank)


TO = option("--to", default=".deltatape", type=FOLDER, help="The folder for tapes.")
GRACE = duration("--grace", "5s", "How long open streams may continue at the end.")
REPLACE = option(
    "--replace",
    is_flag=True,
    help="Replace the recorder that was started with --replace on the same address: no request is"
    " refused, and its open streams run to their ends.",
)
DRAIN_TIMEOUT = duration(
    "--drain-timeout",
    "10m",
    "How long open streams may continue after another recorder has replaced this one.",
)
STRICT = option("--strict", is_flag=True, help="Exit with 125 if anything could not be recorded.")
QUIET = option("--quiet", is_flag=True, help="Print problems only.")
NO_BODIES = option(
    "--no-bodies", is_flag=True, help="Do not tape the bodies of requests: prompts, history."
)
KEEP = option(
    "--keep",
    metavar="TIME|SIZE",
    help="Keep only the last 2h or 5GB, and the tapes around findings; default: keep everything.",
)
SEAL = option(
    "--seal",
    is_flag=True,
    help="Seal finished tapes of the folder, in a process of low priority; see deltatape pack.",
)
ON_FINDING = option(
    "--on-finding",
    metavar="COMMAND",
    help="Run by the shell for an exchange with findings: './notify \"$1\"' gets the tape, and JSON"
    " on stdin.",
)
CONTROL = option(
    "--control",
    metavar="HOST:PORT",
    help="Serve /health, /status and /metrics there.",
)
OTLP = option(
    "--otlp",
    is_flag=False,
    flag_value="",
    metavar="[URL]",
    help="Push metrics to this OpenTelemetry collector; without URL, to the one that"
    " OTEL_EXPORTER_OTLP_* name.",
)
OPEN = option("--open", is_flag=True, help="Open a page that shows exchanges as they come.")
READY_FILE = option(
    "--ready-file", type=FILE, help="Write JSON with the URL to FILE once requests are accepted."
)
DURABILITY = option(
    "--durability",
    type=click.Choice(["exchange", "none"]),
    default="exchange",
    help="When the tape is synced to disk: after each exchange, or by the system.",
)
VOLATILE = option(
    "--volatile",
    multiple=True,
    metavar="WHAT",
    help="What may differ in request bodies: a field (metadata.session, messages.*.id), parts of"
    " all texts (date, hash, home, path, pid, port, uuid, /REGEX/), or of those in a field"
    " (messages[0].content:date).",
)


def certificates(command: F) -> F:
    """Add --ca, --client-cert and --client-key, as every command that records has them."""
    for add in reversed(_CERTIFICATES):
        command = add(command)
    return command


_CERTIFICATES: Sequence[Callable[[F], F]] = (
    option("--ca", type=FILE, help="Certificates to trust in addition to the system's, as PEM."),
    option("--client-cert", type=FILE, help="A certificate to show upstreams, as PEM."),
    option("--client-key", type=FILE, help="The key of the certificate, if it is in another file."),
)


class WrapperCommand(click.Command):
    """A command that may run another one, given after `--`."""

    _KEY = "deltatape.command"

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        at = args.index("--") if "--" in args else len(args)
        own, argv = args[:at], tuple(args[at + 1 :])
        if at < len(args) and not argv:
            raise click.UsageError("no command after --", ctx)
        ctx.meta[self._KEY] = argv
        try:
            return super().parse_args(ctx, list(own))
        except click.UsageError as error:
            extra = _EXTRA.search(error.message)
            if argv or extra is None or extra[1] not in own:
                raise
            at = own.index(extra[1])
            command = " ".join([ctx.command_path, *own[:at], "--", *own[at:]])
            raise click.UsageError(f"put -- before the command: {command}", ctx) from None

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- CMD [ARG]...]"]

    @classmethod
    def command_of(cls, ctx: click.Context) -> tuple[str, ...]:
        """Return the command to run; empty if there is none."""
        argv: tuple[str, ...] = ctx.meta[cls._KEY]
        return argv


def jobs(help: str) -> Callable[[F], F]:  # noqa: A002 - click's word
    """Return the option for how many processes work at once; without it, None."""
    return option("--jobs", type=WholeNumber(min=1), help=help)


def codes(name: str, help: str) -> Callable[[F], F]:  # noqa: A002 - click's word
    """Return an option whose value is a list of finding codes and their prefixes."""
    return option(name, default="", callback=_parse_codes, metavar="CODES", help=help)


def _parse_codes(_: click.Context, param: click.Parameter, value: str) -> frozenset[str]:
    """Parse `T001,D` to known codes and prefixes; a click callback."""
    if not value:
        return frozenset()
    from deltatape.rules import RULES  # noqa: PLC0415 - record imports no rule

    known = {rule.code for rule in RULES}
    prefixes = frozenset(part.strip().upper() for part in value.split(",") if part.strip())
    for prefix in prefixes:
        if not any(code.startswith(prefix) for code in known):
            raise UsageError(
                f"{param.opts[0]} {prefix}: no finding code starts so; use a code such as T001,"
                " or a prefix such as T"
            )
    return prefixes
