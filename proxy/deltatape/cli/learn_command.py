"""`deltatape learn`: what differs from run to run, stored with a tape."""

import os
import shlex
from collections.abc import Callable
from pathlib import Path

import click

from deltatape.cli.options import VOLATILE, TapeArgument, option
from deltatape.cli.redact_command import whole_tape
from deltatape.cli.tapes import read_tape
from deltatape.cli.terminal import say, write
from deltatape.environment.dotenv import read_dotenv
from deltatape.environment.known_secrets import known_secrets
from deltatape.errors import UsageError
from deltatape.match.learn import LearnedRules, learned
from deltatape.match.volatile import VolatileRules
from deltatape.model.exchange import Exchange, Tap
from deltatape.player.player import hider
from deltatape.printable import count
from deltatape.replay.report import difference_lines, name_of, options
from deltatape.store.rewrite import store_volatile
from deltatape.store.shards import ShardedTape, open_recording


@click.command("learn")
@click.argument("tape", cls=TapeArgument, metavar="TAPE")
@click.argument("other", cls=TapeArgument, default="", metavar="[OTHER]")
@VOLATILE
@option("--forget", is_flag=True, help="Begin anew: leave out what is stored with TAPE.")
@option("--dry-run", is_flag=True, help="Only print what would be stored.")
def command(
    *, tape: str, other: str, volatile: tuple[str, ...], forget: bool, dry_run: bool
) -> int:
    """Learn from two recordings of one run what differs from run to run, and store it with TAPE.

    Prompts contain dates, working folders, process ids. Compare the requests of OTHER with those of
    TAPE, and find the narrowest --volatile options with which they match: presets, expressions for
    ids, whole fields. Options that let no request match are left out. deltatape replay, torture,
    shrink and the pytest plugin use what is stored with a tape. Without OTHER, store the options
    that are given; without any, print what is stored.

    Prints the options, one on each line.

    Exit code: 1 if a request of OTHER does not match even so.
    """
    source = open_recording(whole_tape(tape).path)
    stored = () if forget else source.volatile
    rules = LearnedRules(
        options=VolatileRules((*stored, *volatile)).texts, matched=0, alike=0, missed=()
    )
    if other:
        rules = learned(_requests(tape), _requests(other), rules.options, _hider())
    for text in rules.options:
        write(f"{text}\n")
    if other:
        _report(tape, other, rules)
    if rules.options != source.volatile and not dry_run:
        shards = source.shards if isinstance(source, ShardedTape) else (source,)
        for shard in shards:
            store_volatile(shard, rules.options)
        if rules.options:
            say(f"stored with {tape}: deltatape replay {shlex.quote(tape)} uses it")
        else:
            say(f"nothing is stored with {tape} any more")
    elif other and not dry_run:
        _report_unchanged(tape, rules)
    return 1 if rules.missed else 0


def _requests(text: str) -> list[Exchange]:
    _, exchanges = read_tape(text)
    found = [each for each in exchanges if each.tap is Tap.PROVIDER]
    if not found:
        raise UsageError(f"{text}: no request to a provider to compare")
    return found


def _hider() -> Callable[[str], str]:
    return hider(known_secrets(os.environ, read_dotenv(Path.cwd(), os.environ)))


def _report(tape: str, other: str, rules: LearnedRules) -> None:
    every = rules.matched + len(rules.missed)
    how = " with these options" if rules.options else ""
    say(f"{rules.matched} of {count(every, 'request')} of {other} match {tape}{how}")
    if rules.alike:
        say(
            f"note: {count(rules.alike, 'request')} match several on the tape, which differ only in"
            " what is volatile; they play in their recorded order"
        )
    for exchange, miss in rules.missed:
        say(f"MISSED {name_of(exchange)}: {miss.problem}")
        for line in difference_lines(miss):
            say(f"  {line}")
    if rules.options:
        say(f"the same as options: {options(rules.options)}")


def _report_unchanged(tape: str, rules: LearnedRules) -> None:
    """Say why nothing was stored with a tape."""
    if rules.options:
        why = "it has these options already"
    elif rules.missed:
        why = "no option lets more requests match"
    else:
        why = "all requests match without options"
    say(f"nothing new is stored with {tape}: {why}")
