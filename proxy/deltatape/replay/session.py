"""One run of `deltatape replay`: a player, the command or the user around it, and the result.

With a command, its exit code counts first; then whether all its requests were on the tapes, all
exchanges were requested, and the app made no mistake with its replies. If the tape ended because a
mistake was not repeated, the command got an error from the player, so its exit code is ignored.
Live lines then report problems only, so as not to mix with the command's output.
"""

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Protocol

from deltatape import __version__
from deltatape.child.child import run_child
from deltatape.child.ready import ReadyFile
from deltatape.child.screen import Screen
from deltatape.child.signals import Signals
from deltatape.errors import UsageError
from deltatape.http1.listener import Address
from deltatape.match.request import MatchLevel
from deltatape.model.exchange import Exchange
from deltatape.player.play_options import PlayedRequest, PlayReport, RequestOutcome
from deltatape.printable import count
from deltatape.record.reporter import Tell
from deltatape.replay.playback import ReplayServer, end, settle
from deltatape.replay.report import json_report, name_of, request_lines, summary
from deltatape.store.report_file import may_be_written

REPLAY_FAILED = 1
"""The exit code for a miss, an exchange that was not played, a mistake that was made again, or a
fault that changed nothing."""

_MOST_OWN = 125
"""The last exit code that is a command's own; see env(1)."""

_BY_SIGNAL = 128
"""Exit codes above it say that a signal ended a command."""


class CommandGuard(Protocol):
    """Keeps a command from providers, such as `NetworkGuardTunnel`."""

    @property
    def refused(self) -> Mapping[str, str]:
        """Return the LLM hosts requested past the player, with their providers."""

    def remarks(self) -> Iterable[str]:
        """Yield a line for each host that was requested past the player for a good reason."""

    async def start(self, player_port: int) -> Mapping[str, str]:
        """Listen; return the variables that route the command here."""

    async def stop(self) -> None:
        """Cut open connections, and report the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOptions:
    """How to run.

    Attributes:
        listen: where the player listens.
        tapes: what the user named.
        command: the application to run; empty to wait for a signal.
        report: a file to be written at the end.
        ready_file: written when the player listens.
        grace_s: how long open answers may continue at the end.
        guard: blocks the command's requests that bypass the player.
        screen: where lines are printed, and the command's output.
    """

    listen: Address
    tapes: tuple[str, ...]
    command: tuple[str, ...] = ()
    report: Path | None = None
    ready_file: Path | None = None
    grace_s: float = 0.0
    guard: CommandGuard | None = None
    screen: Screen = field(default_factory=Screen)


def no_notes(_: str) -> Sequence[str]:
    """Return nothing to tell."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Responders:
    """Who answers.

    Attributes:
        machine: a `Player`, or one that records, too.
        number: the number of exchanges that it has to play.
        environment: the command's whole environment, from the machine's URL.
        recorded: what it has added to a tape; after it was stopped.
        ending: called when a signal ends the command, since answers cut from then on must not be
            recorded.
        notes: what keeps the command from the machine, from its URL.
        telemetry: see `environment.known_telemetry`.
    """

    machine: ReplayServer
    number: int
    environment: Callable[[str], Mapping[str, str]]
    recorded: Callable[[], Sequence[Exchange]] = tuple
    ending: Callable[[], None] | None = None
    notes: Callable[[str], Sequence[str]] = no_notes
    telemetry: Mapping[str, str] = field(default_factory=dict)


def teller(tell: Tell, *, alone: bool) -> Callable[[RequestOutcome], None]:
    """Return a function that prints requests: all if `alone`, else only unexpected ones."""

    def print_request(what: RequestOutcome) -> None:
        if alone or not isinstance(what, PlayedRequest) or what.note or what.codes or what.alike:
            for line in request_lines(what):
                tell(line)

    return print_request


async def replay(responders: Responders, options: ReplayOptions, tell: Tell) -> int:
    """Run a replay; return the command's exit code if it is not 0, else 1 for a failed replay.

    Raises:
        UsageError: an address or a file is not available.
    """
    machine = responders.machine
    if options.report is not None:
        _check(options.report)
    with contextlib.ExitStack() as services:
        ready = None
        if options.ready_file is not None:
            ready = ReadyFile(options.ready_file)
            services.callback(ready.remove)
        await machine.start(options.listen)
        base = machine.listener.url
        signals = None if options.command else Signals()
        if ready is not None:
            ready.write({"url": base, "tapes": options.tapes})
        _introduce(responders, options, tell)
        if signals is None:
            code = await _run(responders, options, tell)
        else:
            code = 0
            await signals.wait()
        await settle()
        await end(machine, options.grace_s)
    report = machine.report
    verdict = _conclude(responders, report, options, tell)
    if 0 < code <= _MOST_OWN and report.ended and not verdict:
        tell(
            f"passed up to the end of the tape: exit code {code} does not count, since the command"
            " requested more than the tape has"
        )
        return 0
    if 0 < code <= _MOST_OWN and not verdict:
        _explain_failure(code, report, tell)
    return code or verdict


def _explain_failure(code: int, report: PlayReport, tell: Tell) -> None:
    """Say what a command may have failed for that repeated no mistake."""
    corrected = (one for one in report.played if one.level is MatchLevel.CORRECTED)
    if (first := next(corrected, None)) is not None:
        tell(
            f"note: the app repeats no mistake of the tape; exit code {code} is the command's own."
            f" The answers from {name_of(first.exchange)} on were recorded for wrong requests: if"
            " the command fails for what they say, record a tape of the fixed app"
        )


async def _run(responders: Responders, options: ReplayOptions, tell: Tell) -> int:
    listener, guard = responders.machine.listener, options.guard
    environment = responders.environment(listener.url)
    if guard is not None:
        environment = {**environment, **await guard.start(listener.port)}
    try:
        code = await run_child(
            options.command,
            environment,
            tee=None,
            tell=tell,
            ending=responders.ending,
            screen=options.screen,
        )
        if code > _BY_SIGNAL and responders.ending is not None:
            responders.ending()
    finally:
        Signals()  # the command's end is no reason to lose the report
        if guard is not None:
            await guard.stop()
    return code


def _introduce(responders: Responders, options: ReplayOptions, tell: Tell) -> None:
    base, exchanges = responders.machine.listener.url, count(responders.number, "exchange")
    if options.command:
        program = PurePath(options.command[0]).name
        tell(f"deltatape {__version__} plays {exchanges} to {program} at {base}")
        for note in responders.notes(base):
            tell(f"  note     {note}")
    else:
        tell(f"deltatape {__version__} plays {exchanges} at {base} (Ctrl-C ends)")
        tell(f"  set OPENAI_BASE_URL={base}/v1, or with a provider's prefix {base}/openai/v1")


def _conclude(
    responders: Responders, report: PlayReport, options: ReplayOptions, tell: Tell
) -> int:
    if not options.command:
        # Whether the application lives on, and will yet ask, is not known.
        known = tuple(each for each in report.mistakes if not each.silent)
        report = replace(report, mistakes=known)
    recorded = tuple(responders.recorded())
    refused = {} if options.guard is None else options.guard.refused
    for line in summary(report, len(recorded)):
        tell(line)
    if refused:
        tell(f"blocked: requests sent directly to {', '.join(sorted(refused))}")
    if options.guard is not None:
        for line in options.guard.remarks():
            tell(line)
    if options.report is not None:
        try:
            options.report.write_text(
                json_report(report, recorded, tuple(refused.items())), "ascii"
            )
        except OSError as error:
            raise _unwritable(options.report, error.strerror or str(error)) from None
    return 0 if report.whole and not refused else REPLAY_FAILED


def _check(path: Path) -> None:
    """Raise before the run what would otherwise fail after it."""
    if path.is_dir():
        raise _unwritable(path, "it is a folder")
    if not path.parent.is_dir():
        raise _unwritable(path, f"there is no folder {path.parent}")
    place = path if path.exists() else path.parent
    if not may_be_written(place):
        raise _unwritable(path, f"{place} must not be written to")


def _unwritable(path: Path, problem: str) -> UsageError:
    return UsageError(f"--report {path}: {problem}; name a writable file")
