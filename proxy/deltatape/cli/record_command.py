"""`deltatape record`: options and exit code."""

import asyncio
import os
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deltatape.cli.addresses import listen_address, upstream_without_name, upstreams_of
from deltatape.cli.options import (
    CONTROL,
    DRAIN_TIMEOUT,
    DURABILITY,
    FOLDER,
    GRACE,
    KEEP,
    MITM,
    NEVER,
    NO_BODIES,
    ON_FINDING,
    OPEN,
    OTLP,
    QUIET,
    READY_FILE,
    REPLACE,
    SEAL,
    STRICT,
    TAPING_FAILED,
    WholeNumber,
    WrapperCommand,
    certificates,
    fail_on,
    failing_severities,
    option,
    refuse_useless,
    via_mitm,
)
from deltatape.cli.terminal import aside, say
from deltatape.clock import SystemClock
from deltatape.environment.clients import recognised
from deltatape.errors import UsageError
from deltatape.garbage import collecting_seldom
from deltatape.gateway.outbound import outbound_from
from deltatape.http1.event_loop import StreamingEventLoop
from deltatape.http1.listener import Address, parse_address
from deltatape.mitm.hosts import Hosts
from deltatape.model.finding import Severity
from deltatape.record.recording import RecordOptions, RunEnvironment
from deltatape.record.reporter import Reporter
from deltatape.record.session import Session
from deltatape.record.tool_server_session import ToolServerSession
from deltatape.settings.defaults import current_rules, current_settings
from deltatape.store.listing import recorded_folders
from deltatape.store.mask_key import mask_key
from deltatape.store.names import DEFAULT_FOLDER, folder_apart
from deltatape.store.ring import parse_keep

if TYPE_CHECKING:
    from deltatape.mitm.mitmdump import MitmOptions

FOUND = 1
LEAST_TOKEN = 16
MAX_WORKERS = 64

_NOT_WITH_MITM = {
    "workers": "mitmproxy is one process",
    "upstream": "mitmproxy sends a request where CMD does; --hosts tapes a host of your own",
    "app": "the app's own endpoint is tapped by a gateway; deltatape mitm --upstream URL can be it",
    "app_listen": "there is no --app with it",
    "replace": "mitmproxy listens itself",
    "drain_timeout": "there is no --replace with it",
    "token": "only this machine can reach the port",
    "allow_key_mismatch": "mitmproxy sends a key where CMD does, and refuses none",
    "no_tunnel": "CMD's proxy is mitmproxy, not the tunnel",
}
"""Options without an effect with --via mitm, and why."""
_WITH_MCP_STDIO = frozenset(
    {"mcp_stdio", "name", "to", "no_bodies", "durability", "strict", "quiet"}
)
"""Options that have an effect with --mcp-stdio."""
_WITH_CMD = frozenset({"mcp_stdio", "name", "via", "hosts", "no_log", "no_tunnel"})
"""Options that have an effect only with a command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TapingArguments:
    """The options of every way to record."""

    hosts: tuple[str, ...]
    ca: Path | None
    client_cert: Path | None
    client_key: Path | None
    no_bodies: bool
    quiet: bool
    keep: str | None
    on_finding: str | None
    fail_on: str
    ready_file: Path | None
    open: bool
    control: str | None
    otlp: str | None
    grace: float
    durability: str
    strict: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordArguments(TapingArguments):
    """The options."""

    mcp_stdio: bool
    name: str | None
    via: str | None
    listen: str | None
    workers: int
    upstream: tuple[str, ...]
    to: Path | None
    token: str | None
    app: str | None
    app_listen: str
    allow_key_mismatch: bool
    no_log: bool
    no_tunnel: bool
    replace: bool
    drain_timeout: float
    seal: bool


@click.command("record", cls=WrapperCommand)
@option(
    "--listen",
    metavar="HOST:PORT",
    help="Where to listen, or unix:PATH.  [default: 127.0.0.1:8377; with CMD any free port]",
)
@option(
    "--workers",
    type=WholeNumber(1, MAX_WORKERS),
    default=1,
    metavar="N",
    help="Number of processes that share the port, if one cannot keep up; not with CMD.",
)
@option(
    "--upstream",
    multiple=True,
    metavar="[NAME=]URL",
    help="A provider of your own at /NAME, or one URL that serves everything.",
)
@option(
    "--to",
    type=FOLDER,
    metavar="DIRECTORY",
    help="The folder for tapes.  [default: .deltatape; for coding agents, one in your state folder,"
    " since they list their own]",
)
@option(
    "--app",
    metavar="URL",
    help="Tape the app's own endpoint, too: point its clients at --app-listen.",
)
@option(
    "--app-listen",
    default="127.0.0.1:8387",
    metavar="HOST:PORT",
    help="Where to listen for clients of --app.",
)
@via_mitm(
    "Route CMD through mitmproxy instead of setting its base URLs, for apps without any.",
    "tape this host besides those of LLM providers",
)
@option(
    "--mcp-stdio",
    is_flag=True,
    help="CMD is an MCP server on stdin and stdout: tape it, in its place in a client's settings.",
)
@option("--name", metavar="NAME", help="With --mcp-stdio: what the tape calls the server.")
@REPLACE
@DRAIN_TIMEOUT
@option("--no-log", is_flag=True, help="Do not tape what CMD prints; it gets the terminal itself.")
@option("--no-tunnel", is_flag=True, help="Do not watch what CMD reaches past deltatape.")
@QUIET
@NO_BODIES
@KEEP
@SEAL
@ON_FINDING
@fail_on("Exit with 1 for a finding of this severity or worse.", default=NEVER)
@certificates
@option(
    "--allow-key-mismatch",
    is_flag=True,
    help="Let a key of one provider go to another.",
)
@option(
    "--token",
    metavar="TOKEN",
    help="If other machines can reach the port: the token that they must send.  [default: random]",
)
@CONTROL
@OTLP
@OPEN
@READY_FILE
@GRACE
@DURABILITY
@STRICT
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> int:
    """Sit between an app and its provider, and tape every stream.

    With CMD, runs it with its base URLs set. Without CMD, point the app at the printed address;
    Ctrl-C ends the tape. Every byte, boundary and ending passes through untouched.

    Exit code: that of CMD; 1 for --fail-on, 125 for --strict; 125 with either of them if
    exchanges could not be analysed.
    """
    arguments = RecordArguments(**options)
    argv = WrapperCommand.command_of(ctx)
    if arguments.mcp_stdio:
        refuse_useless(ctx, _WITH_MCP_STDIO, "with --mcp-stdio")
        return _record_tool_server(arguments, argv, os.environ)
    if arguments.name is not None:
        raise UsageError("--name: has no effect without --mcp-stdio")
    if arguments.via == MITM:
        useful = options.keys() - _NOT_WITH_MITM
        refuse_useless(ctx, useful, "with --via mitm", _NOT_WITH_MITM)
        if not argv:
            raise UsageError(
                "--via mitm: needs a command after --; deltatape mitm runs without one"
            )
    elif not argv:
        refuse_useless(ctx, set(options) - _WITH_CMD, "without a command after --")
    return record(arguments, argv, os.environ)


def _record_tool_server(
    arguments: RecordArguments, argv: tuple[str, ...], environment: Mapping[str, str]
) -> int:
    """Run an MCP server and tape what passes; return its exit code."""
    if not argv:
        raise UsageError("--mcp-stdio: needs the server's command after --")
    # What the server writes to stderr is for its client: we only add what goes wrong.
    reporter = Reporter(_silence, problem=say)
    around = RunEnvironment(
        environment=dict(environment),
        folder=Path.cwd(),
        clock=SystemClock(),
        mask_key=mask_key(environment, reporter.lasting_alarm),
        tell=_silence,
    )
    options = replace(
        options_of(arguments, argv, environment), keep=None, on_finding=None, workers=1
    )
    session = ToolServerSession(options, around, reporter, arguments.name)
    folders = recorded_folders() if arguments.to is None else (arguments.to,)
    with asyncio.Runner(loop_factory=StreamingEventLoop) as runner:
        code = runner.run(session.run(folders))
    return code or (TAPING_FAILED if arguments.strict and reporter.trouble else 0)


YOUNG_OBJECTS = 5_000
"""When Python's garbage collector is to run: exchanges leave no cycles behind, and streams wait for
it, the longer the more of them are open."""


def record(
    arguments: RecordArguments, argv: tuple[str, ...], environment: Mapping[str, str]
) -> int:
    """Record until the command or a signal ends it; return the exit code."""
    options = options_of(arguments, argv, environment)
    mitm = _mitm_of(arguments, options) if arguments.via == MITM else None
    judgement = Judgement(quiet=arguments.quiet, fail_on=arguments.fail_on, strict=arguments.strict)
    try:
        return run(options, judgement, environment, mitm)
    except UsageError as error:
        if argv:  # not to be taken for an exit code of the command, as env(1) has it
            error.exit_code = TAPING_FAILED
        raise


def _mitm_of(arguments: RecordArguments, options: RecordOptions) -> "MitmOptions":
    listen = options.listen
    if not listen.loopback:
        raise UsageError(
            f"--listen {listen}: other machines could use mitmproxy; use 127.0.0.1, or deltatape"
            " mitm, which can ask for a login"
        )
    return mitm_options(options, host=listen.host, port=listen.port, hosts=arguments.hosts)


def mitm_options(
    options: RecordOptions,
    *,
    host: str,
    port: int,
    hosts: tuple[str, ...],
    upstream: str | None = None,
    more: tuple[str, ...] = (),
) -> "MitmOptions":
    """Return how mitmproxy is run for such a recording."""
    Hosts(hosts)  # fails for a wrong pattern before anything starts
    from deltatape.mitm.mitmdump import MitmOptions  # noqa: PLC0415 - takes long; rare

    return MitmOptions(
        host=host,
        port=port,
        upstream=upstream,
        to=options.to,
        hosts=hosts,
        more=more,
        outbound=options.outbound,
        keep=options.keep.text if options.keep is not None else "",
        bodies=options.bodies,
        durable=options.durable,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What of a run is printed, and what makes it fail: the options of these names."""

    quiet: bool
    fail_on: str
    strict: bool


def run(
    options: RecordOptions,
    judgement: Judgement,
    environment: Mapping[str, str],
    mitm: "MitmOptions | None",
) -> int:
    """Record, through mitmproxy if there are options for it; return the exit code."""
    clock = SystemClock()
    tell = _silence if judgement.quiet else say
    reporter = Reporter(tell, problem=say)
    environment_of_run = RunEnvironment(
        environment=dict(environment),
        folder=Path.cwd(),
        clock=clock,
        mask_key=mask_key(environment, reporter.lasting_alarm),
        tell=tell,
    )
    settings = current_settings()
    if settings is not None:
        tell(f"options from {settings.path}")
    with (
        aside(environment_of_run.screen),
        collecting_seldom(YOUNG_OBJECTS),
        asyncio.Runner(loop_factory=StreamingEventLoop) as runner,
    ):
        if mitm is None:
            session = Session(options, environment_of_run, reporter)
        else:
            from deltatape.mitm.session import MitmSession  # noqa: PLC0415 - see mitm_options

            session = MitmSession(options, environment_of_run, reporter, mitm)
        code = runner.run(session.run())
    if code:
        return code
    code = _verdict(
        judgement,
        reporter.worst,
        trouble=bool(reporter.trouble),
        unjudged=session.incomplete,
    )
    if code == FOUND:
        say(f"--fail-on {judgement.fail_on}: failed, as a finding is of severity {reporter.worst}")
    return code


def _silence(_: str) -> None:
    """Print nothing."""


def _verdict(
    judgement: Judgement, worst: Severity | None, *, trouble: bool, unjudged: bool = False
) -> int:
    """Return the exit code of a run without other problems.

    Args:
        judgement: the options.
        worst: the worst of the findings.
        trouble: whether something could not be taped.
        unjudged: whether exchanges were not analysed.
    """
    if judgement.strict and (trouble or unjudged):
        return TAPING_FAILED
    failing = failing_severities(judgement.fail_on)
    if worst in failing:
        return FOUND
    return TAPING_FAILED if failing and unjudged else 0


def options_of(
    arguments: RecordArguments, argv: tuple[str, ...], environment: Mapping[str, str]
) -> RecordOptions:
    """Validate the options.

    Raises:
        UsageError: an option is invalid.
    """
    listen = listen_address(arguments.listen, 8377, argv)
    app_listen = parse_address(arguments.app_listen, "--app-listen")
    if arguments.replace:
        _refuse_replacing(arguments, argv, listen)
    if arguments.workers > 1:
        _refuse_workers(argv, listen, app_listen if arguments.app else listen)
    return replace(
        taping_options(arguments, environment, listen, _folder(arguments, argv, environment)),
        workers=arguments.workers,
        upstreams=upstreams_of(arguments.upstream),
        app=None if arguments.app is None else upstream_without_name(arguments.app, "--app"),
        app_listen=app_listen,
        token=_token(arguments.token, listen, app_listen if arguments.app else listen),
        check_keys=not arguments.allow_key_mismatch,
        replace=arguments.replace,
        drain_timeout_s=arguments.drain_timeout,
        seal=arguments.seal,
        command=argv,
        log=not arguments.no_log,
        tunnel=not arguments.no_tunnel,
    )


def taping_options(
    arguments: TapingArguments, environment: Mapping[str, str], listen: Address, to: Path
) -> RecordOptions:
    """Return how every way to record is run: as a proxy that has no upstreams, app or command.

    Args:
        arguments: the options.
        environment: the environment of the process, which may name a proxy.
        listen: where apps are listened for.
        to: the folder for tapes.
    """
    return RecordOptions(
        listen=listen,
        workers=1,
        upstreams=(),
        to=to,
        app=None,
        app_listen=listen,
        token=None,
        check_keys=False,
        outbound=outbound_from(
            environment,
            ca=arguments.ca,
            client_cert=arguments.client_cert,
            client_key=arguments.client_key,
        ),
        grace_s=arguments.grace,
        durable=arguments.durability == "exchange",
        bodies=not arguments.no_bodies,
        keep=parse_keep(arguments.keep) if arguments.keep else None,
        on_finding=arguments.on_finding,
        ready_file=arguments.ready_file,
        page=arguments.open,
        control=_control_address(arguments.control),
        otlp=arguments.otlp,
        command=(),
        log=False,
        tunnel=False,
        rules=current_rules(),
    )


def _folder(
    arguments: RecordArguments, argv: tuple[str, ...], environment: Mapping[str, str]
) -> Path:
    """Return the folder for tapes."""
    if arguments.to is not None:
        return arguments.to
    if any(each.client.is_agent for each in recognised(argv)):
        return folder_apart(Path.cwd(), environment)
    return Path(DEFAULT_FOLDER)


def _refuse_replacing(arguments: RecordArguments, argv: tuple[str, ...], listen: Address) -> None:
    """Refuse `--replace` where no other recorder could listen on the same address."""
    if argv:
        raise UsageError("--replace: CMD ends with its recorder; start deltatape record alone")
    if listen.path or not listen.port:
        raise UsageError(f"--replace: needs --listen HOST:PORT with a fixed port, not {listen}")
    if not listen.loopback and arguments.token is None:
        raise UsageError(
            "--replace: needs --token TOKEN, that of the recorder before: apps keep using it"
        )


def _refuse_workers(argv: tuple[str, ...], *addresses: Address) -> None:
    """Refuse what several processes cannot do."""
    if argv:
        raise UsageError(
            "--workers: what CMD prints and reaches is taped by one process; start deltatape record"
            " --workers alone, and the app with the base URLs that it prints"
        )
    if any(address.path for address in addresses):
        raise UsageError("--workers: several processes cannot share a Unix socket; use HOST:PORT")
    if not hasattr(socket, "SO_REUSEPORT"):
        raise UsageError("--workers: this system cannot share a port (SO_REUSEPORT)")


def _control_address(address_text: str | None) -> Address | None:
    """Parse `--control`."""
    address = parse_address(address_text, "--control") if address_text else None
    if address is not None and (address.path or not address.loopback):
        raise UsageError(
            f"--control {address_text!r}: only loopback is accepted, such as 127.0.0.1:8379 or"
            " [::1]:8379"
        )
    return address


def _token(token: str | None, *addresses: Address) -> str | None:
    """Return the user's token, or a new one if other machines can reach the port."""
    if token is not None:
        legible = token.isascii() and token.isprintable() and not set(token) & set("/?# ")
        if not legible or len(token) < LEAST_TOKEN:
            raise UsageError(
                f"--token: at least {LEAST_TOKEN} characters of printable ASCII without / ? # and"
                " spaces are accepted"
            )
        return token
    if all(address.loopback for address in addresses):
        return None
    return secrets.token_urlsafe(24)
