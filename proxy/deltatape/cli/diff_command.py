"""`deltatape diff`: compare exchanges event by event."""

from itertools import islice, pairwise
from pathlib import Path

import click

from deltatape.cli.options import FORMAT, TapeArgument, option
from deltatape.cli.tapes import NamedExchanges, is_tape, named
from deltatape.cli.terminal import show, width, write
from deltatape.compare import VOLATILE, compare_exchanges, first_damage
from deltatape.diagnose.rebuild import analyse
from deltatape.errors import UsageError
from deltatape.model.exchange import Exchange
from deltatape.printable import count
from deltatape.render.diff import ComparedSides, diff_json, diff_lines
from deltatape.settings.defaults import current_rules
from deltatape.store.listing import locate
from deltatape.store.reader import Tape, open_tape

_TWO = 2


@click.command("diff")
@click.argument("exchanges", cls=TapeArgument, nargs=-1, required=True, metavar="TAPE#N TAPE#M...")
@option(
    "--volatile",
    multiple=True,
    metavar="PATH",
    help="Ignore this field of events, too, such as provider or choices.*.logprobs.",
)
@option(
    "--all-fields",
    is_flag=True,
    help="Also compare fields that differ in every response, such as ids and times.",
)
@FORMAT
def command(
    *,
    exchanges: tuple[str, ...],
    volatile: tuple[str, ...],
    all_fields: bool,
    format: str,  # noqa: A002 - the option's name
) -> int:
    """Compare two exchanges event by event, and the calls rebuilt from them.

    Show which events were dropped, inserted, altered, re-indexed, merged, split or moved, which
    calls differ, and which event changed them. Exchanges of different dialects are compared by
    the content of their events. Given more than two exchanges, in order from the provider to the
    app, also show the first hop that damaged a call.

    Ignores fields that differ in every response (response ids, times, padding, sequence numbers;
    see docs/diff.md), except with --all-fields.

    Exit code: 1 if the exchanges differ.
    """
    if len(exchanges) < _TWO:
        raise UsageError(f"{exchanges[0]}: name a second exchange to compare with")
    app = current_rules().app
    sides = [(text, analyse(exchange_of(text), app)) for text in exchanges]
    ignored = (*(() if all_fields else VOLATILE), *volatile)
    hops = [
        ComparedSides(left=here, right=there, comparison=compare_exchanges(left, right, ignored))
        for (here, left), (there, right) in pairwise(sides)
    ]
    damaged = first_damage(hop.comparison for hop in hops)
    if format == "json":
        write(diff_json(hops, damaged))
    else:
        show(diff_lines(hops, damaged, width()))
    return 0 if all(hop.comparison.equal for hop in hops) else 1


def exchange_of(text: str) -> Exchange:
    """Return the exchange that `TAPE#N`, a tape with a single exchange, or another file names.

    Raises:
        UsageError: there is no such exchange, or there are several.
        TapeFormatError: the tape is damaged.
    """
    place = None if text == "-" else locate(text)
    if place is None or not is_tape(place.path):
        return _named_exchange(named(text))
    tape = open_tape(place.path)
    return (
        tape[place.exchange] if place.exchange is not None else _single_exchange(tape, place.path)
    )


def _named_exchange(found: NamedExchanges) -> Exchange:
    """Return the exchange that is named, or the only one, of a capture of another program."""
    if found.number is None and len(found.exchanges) > 1:
        raise UsageError(f"{found.name} has {count(len(found.exchanges), 'exchange')}: add #N")
    return found.exchanges[(found.number or 1) - 1]


def _single_exchange(tape: Tape, path: Path) -> Exchange:
    found = list(islice(tape, _TWO))
    if len(found) != 1:
        has = f"has {len(tape)} exchanges" if found else "has no exchange"
        raise UsageError(f"{path}: {has}; name one exchange, such as {path}#1")
    return found[0]
