"""A run of mitmproxy from beginning to end: until a signal ends it, or around a command."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from deltatape.child.child import run_child
from deltatape.child.signals import Signals
from deltatape.errors import UsageError
from deltatape.mitm.environment import ca_bundle, past, state_folder, variables
from deltatape.mitm.mitmdump import Ended, Mitmdump, MitmOptions, Started
from deltatape.mitm.outward import outward
from deltatape.mitm.told import NO_TRAFFIC_S, Tell, Told, introduce, what_to_set
from deltatape.model.watch import CHILD_EXIT

NEWS_S = 1.0
"""How long the news may take to reach mitmproxy that the command's connections are gone."""
GONE = "mitmproxy-exit"
FAILED = "child-not-run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run was. `trouble`: something could not be taped."""

    ended: Ended
    trouble: bool


async def serve(
    options: MitmOptions, *, grace_s: float, tell: Tell, environment: Mapping[str, str] = os.environ
) -> Outcome:
    """Run mitmproxy until SIGINT, SIGTERM or its own end; a second signal cuts streams.

    Args:
        options: of mitmproxy.
        grace_s: how long streams may go on at the end.
        tell: gets each line for the user.
        environment: of mitmproxy.

    Raises:
        UsageError: it cannot be started.
    """
    told = Told(tell, grace_s)
    mitmdump = Mitmdump(told)
    with outward(options, environment) as theirs:
        started = await mitmdump.start(options, theirs)
        signals = Signals(lambda: mitmdump.stop("hurried", None, 0.0))
        for line in introduce(started, options, alone=True):
            tell(line)
        for line in what_to_set(started, options, _bundle(started, options, environment)):
            tell(line)
        reminder = asyncio.get_running_loop().call_later(NO_TRAFFIC_S, told.remind, started.url)
        reason = await _first(signals, mitmdump)
        reminder.cancel()
        mitmdump.stop(reason, None, grace_s)
        ended = await mitmdump.ended(grace_s)
    told.summarise(ended, started)
    return Outcome(ended=ended, trouble=told.trouble)


async def serve_child(
    argv: Sequence[str],
    options: MitmOptions,
    *,
    log: bool,
    tell: Tell,
    environment: Mapping[str, str] = os.environ,
) -> tuple[int, Outcome]:
    """Run a command behind mitmproxy; its exit code as `child.child.run_child` gives it.

    Args:
        argv: the command, >= 1 item.
        options: of mitmproxy, without an upstream.
        log: tee what the command prints onto the tape.
        tell: gets each line for the user.
        environment: of mitmproxy, and with what leads it there of the command.

    Raises:
        UsageError: mitmproxy cannot be started.
    """
    told = Told(tell, 0.0)
    mitmdump = Mitmdump(told)
    with outward(options, environment) as theirs:
        started = await mitmdump.start(options, theirs)
        for line in introduce(started, options, alone=False):
            tell(line)
        ours = _environment_of_child(started, options, environment)
        reminder = asyncio.get_running_loop().call_later(NO_TRAFFIC_S, told.remind, started.url)
        try:
            code = await run_child(argv, ours, tee=mitmdump.log if log else None, tell=tell)
        except UsageError:
            mitmdump.stop(FAILED, None, 0.0)
            await mitmdump.ended(0.0)
            raise
        finally:
            reminder.cancel()
        mitmdump.stop(CHILD_EXIT, code, NEWS_S)
        ended = await mitmdump.ended(NEWS_S)
    told.summarise(ended, started)
    return code, Outcome(ended=ended, trouble=told.trouble)


def _environment_of_child(
    started: Started, options: MitmOptions, environment: Mapping[str, str]
) -> dict[str, str]:
    """What leads a command to mitmproxy, and has it trust what it says."""
    bundle = ca_bundle(started.ca, state_folder(environment), environment)
    ours = {**environment, **variables(started.url, bundle, environment)}
    return ours if options.proxy is None else {**ours, **past(environment)}


def _bundle(started: Started, options: MitmOptions, environment: Mapping[str, str]) -> Path | None:
    if options.upstream is not None:
        return None
    return ca_bundle(started.ca, state_folder(environment), environment)


async def _first(signals: Signals, mitmdump: Mitmdump) -> str:
    """The name of the signal that came, or that mitmproxy is gone."""
    signalled = asyncio.ensure_future(signals.wait())
    gone = asyncio.ensure_future(mitmdump.gone())
    await asyncio.wait((signalled, gone), return_when=asyncio.FIRST_COMPLETED)
    gone.cancel()
    if signalled.done():
        return signalled.result()
    signalled.cancel()
    return GONE
