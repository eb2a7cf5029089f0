"""The command line: one file per command, imported when called.

stdout is for results, stderr for everything else. Exit codes: 0, 1 for findings or misses, 2 for
a wrong call or unreadable input.
"""

import contextlib
import gc
import importlib
import io
import os
import re
import sys
from collections.abc import Iterable, Iterator

import click

from deltatape import __version__
from deltatape.errors import DeltatapeError, UsageError, did_you_mean

COMMANDS = {
    "record": "Sit between an app and its provider, and tape every stream.",
    "replay": "Play tapes as the provider: same bytes, boundaries, timing, ending.",
    "why": "Explain an exchange: what went wrong, and whose fault it was.",
    "check": "Report the defects on tapes; for CI.",
    "torture": "Run a command against variations of good tapes: what breaks it?",
    "shrink": "Make the smallest tape on which a command still fails, and tests for it.",
    "open": "Open a page that shows exchanges, what went wrong, and where on the wire.",
    "watch": "Watch exchanges while they are recorded, each with a timeline.",
    "show": "Show an exchange: its calls, events, reads or raw bytes.",
    "diff": "Compare exchanges event by event; which hop of several damaged a call.",
    "ask": "Answer questions about the exchanges of many tapes, from a dataset of scan.",
    "doctor": "Look for what keeps an app's traffic from the recorder, and say what to change.",
    "ls": "List tapes, the newest first.",
    "learn": "Learn from two recordings what differs from run to run, for replays that last.",
    "keep": "Redact a tape and keep it in recordings/, to be shared.",
    "redact": "Overwrite what looks like a secret on tapes; lengths, boundaries, JSON stay.",
    "ship": "Send finished tapes to an object store, and delete what is verified there.",
    "splice": "Join tapes, or single exchanges of them, to one tape.",
    "cut": "Keep chosen exchanges: a tape of their own.",
    "pack": "Seal tapes: compressed by conversation, with an index; or unpack sealed ones.",
    "fsck": "Check tapes as files: damage, contradictions, and secrets that are left.",
    "mutate": "Put a defect, a fault or a variation into a tape.",
    "import": "Make a tape from a response body, a pasted stream or a captured case.",
    "export": "Write a tape in the format of another program: HAR, cassette, curl, spans.",
    "mitm": "Tape an app that cannot be pointed anywhere, by mitmproxy.",
    "scan": "Read any number of tapes into tables that other programs query.",
    "demo": "Record, check and replay an app on an embedded provider: no key, no network.",
}
"""Every command and its one-line help, in the order of use."""
_INDENT = re.compile(r"^\t")
"""Stands before each value in click's lists of choices; a tab would be printed as an escape."""


@contextlib.contextmanager
def _not_collecting() -> Iterator[None]:
    """Import modules without garbage collection, which takes a tenth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class Commands(click.Group):
    """Imports a command's module when the command is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        with _not_collecting():
            module = importlib.import_module(f"deltatape.cli.{cmd_name}_command")
        command: click.Command = module.command
        command.short_help = COMMANDS[cmd_name]
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Apply the defaults from deltatape.yaml."""
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            ctx.fail(f"No such command {args[0]!r}.{did_you_mean(args[0], COMMANDS)}")
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None and name != "doctor":  # which reports on the file instead
            from deltatape.settings.defaults import use_settings  # noqa: PLC0415 - not for help

            use_settings(ctx, command, rest)
        return name, command, rest

    def invoke(self, ctx: click.Context) -> object:
        """Report errors in deltatape.yaml with their place."""
        try:
            return super().invoke(ctx)
        except UsageError as error:
            from deltatape.settings.defaults import located  # noqa: PLC0415 - not for help

            raise located(ctx, error) from None


@click.group(
    cls=Commands,
    context_settings={
        "auto_envvar_prefix": "DELTATAPE",
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
    },
    epilog="Every option has a variable: DELTATAPE_<COMMAND>_<OPTION>.",
)
@click.version_option(__version__, prog_name="deltatape")
def deltatape() -> None:
    """A flight recorder for LLM streams.

    Tapes every byte between an app and its provider, rebuilds the tool calls, says what went wrong
    and whose fault it was, and plays any tape back.
    """


def main() -> int:
    """Run the command line; return the exit code."""
    _replace_closed_streams()
    if isinstance(sys.stdout, io.TextIOWrapper):
        # What the terminal's encoding cannot say is shown as an escape.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        result: object = deltatape.main(prog_name="deltatape", standalone_mode=False)
    except click.exceptions.Abort:
        return 130
    except click.ClickException as error:
        printed = io.StringIO()
        error.show(printed)
        lines = printed.getvalue().rstrip("\n").split("\n")
        _print_error(_INDENT.sub("    ", line) for line in lines)
        return DeltatapeError.exit_code
    except DeltatapeError as error:
        _print_error([f"deltatape: {error}"])
        return error.exit_code
    except OSError as error:
        problem = _problem_of(error)
        if problem is None:
            raise
        _print_error([f"deltatape: {problem}"])
        return DeltatapeError.exit_code
    return result if isinstance(result, int) else 0


def _replace_closed_streams() -> None:
    """Replace standard streams that were closed before this program began.

    The use of stdin and stdout is an error then (EBADF), since their files are opened for the
    opposite; what is said on stderr is lost. Without them, files that are opened later would get
    their descriptors.
    """
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_WRONLY), "r", encoding="utf-8")
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")


def _problem_of(error: OSError) -> str | None:
    """Return what to tell about an error of the system; None: it is a mistake of ours."""
    if error.filename is not None:
        # A path that the system refuses even to look for: too long, a loop of links.
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    if _raised_by(error) != click.echo.__module__:
        return None
    from deltatape.cli.terminal import leave_stdout  # noqa: PLC0415 - see below

    leave_stdout()
    return f"standard output: {error.strerror}"  # all that click prints itself: help, the version


def _raised_by(error: BaseException) -> object:
    """Return the name of the module that raised an error, or called what did."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace and trace.tb_frame.f_globals.get("__name__")


def _print_error(lines: Iterable[str]) -> None:
    """Print an error, escaped: its file names may contain anything."""
    from deltatape.cli.terminal import say  # noqa: PLC0415 - costs a moment that help does not need

    for line in lines:
        say(line)
