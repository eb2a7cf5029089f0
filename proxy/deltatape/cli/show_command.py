"""`deltatape show`: the parts of an exchange."""

import sys

import click

from deltatape.cli.options import FORMAT, option
from deltatape.cli.tapes import exchanges_of, latest, named
from deltatape.cli.terminal import show, write, write_bytes
from deltatape.conversation import check_conversation
from deltatape.diagnose.check import check_analysis
from deltatape.diagnose.digest import digest_analysis
from deltatape.diagnose.rebuild import analyse
from deltatape.errors import UsageError
from deltatape.model.exchange import Exchange
from deltatape.render.as_json import calls_json, events_json, reads_json
from deltatape.render.lines import Line, line
from deltatape.render.show import call_lines, event_lines, read_lines
from deltatape.render.summary import exchange_line
from deltatape.settings.defaults import current_rules


@click.command("show")
@click.argument("tape", default="", metavar="[TAPE[#N]]")
@option("--calls", is_flag=True, help="The rebuilt tool calls.")
@option("--events", is_flag=True, help="The events, with time and place (one #N).")
@option("--reads", is_flag=True, help="The socket reads (one #N).")
@option("--raw", is_flag=True, help="The response body's very bytes, to a file or pipe (one #N).")
@FORMAT
def command(*, tape: str, format: str, **parts: bool) -> int:  # noqa: A002 - the option's name
    """Show a tape: each exchange in a line, or the parts of one.

    Without TAPE: the latest one.
    """
    if not tape:
        tape = latest().name
    exchanges = list(exchanges_of(tape))
    asked = [part for part, wanted in parts.items() if wanted]
    if len(asked) > 1:
        raise UsageError(f"--{asked[0]} and --{asked[1]}: one at a time")
    if asked and asked[0] != "calls":
        _show_part(_only(exchanges, tape, asked[0]), asked[0], format)
    elif format == "json":
        write(calls_json(map(analyse, exchanges)))
    elif asked:
        show(call_lines([analyse(exchange) for exchange in exchanges]))
    else:
        show(_summaries(tape))
    return 0


def _summaries(tape: str) -> list[Line]:
    """Each exchange in a line, with its worst finding, also of what the app made of replies."""
    source = named(tape)
    analyses = [analyse(exchange) for exchange in source.exchanges]
    rules = current_rules()
    about_app = check_conversation(map(digest_analysis, analyses), rules)
    lines = []
    for analysis in analyses:
        number = analysis.exchange.number
        if source.number in (None, number):
            own = check_analysis(analysis, rules)
            found = (*(f for f in about_app if f.exchange == number), *own)
            lines.append(line(exchange_line(analysis, found)))
    return lines


def _only(exchanges: list[Exchange], tape: str, part: str) -> Exchange:
    if len(exchanges) != 1:
        numbers = f"#{exchanges[0].number} to #{exchanges[-1].number}" if exchanges else "none"
        raise UsageError(f"--{part} shows one exchange; {tape} has {numbers}: add #N")
    return exchanges[0]


def _show_part(exchange: Exchange, part: str, form: str) -> None:
    if part == "raw":
        _write_raw(exchange)
    elif part == "reads":
        write(reads_json(exchange)) if form == "json" else show(read_lines(exchange))
    else:
        analysis = analyse(exchange)
        write(events_json(analysis)) if form == "json" else show(event_lines(analysis))


def _write_raw(exchange: Exchange) -> None:
    if sys.stdout.isatty():
        raise UsageError(
            "--raw on a terminal would let the taped bytes act on it; redirect it to a file or a"
            " program, or use --reads"
        )
    write_bytes(exchange.body)
