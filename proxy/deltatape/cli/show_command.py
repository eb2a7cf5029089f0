"""`deltatape show`: prints the parts of a tape."""

import shlex
import sys

import click

from deltatape.cli.options import FORMAT, FULL, TapeArgument, option
from deltatape.cli.tapes import NO_REQUEST, NamedExchanges, latest, named
from deltatape.cli.terminal import list_width, say, show, width, write, write_bytes
from deltatape.conversation import check_conversation
from deltatape.diagnose.check import check_analysis
from deltatape.diagnose.digest import digests_of, in_order
from deltatape.diagnose.rebuild import Analysis, analyse
from deltatape.errors import UsageError
from deltatape.model.exchange import Exchange
from deltatape.render.lines import Line, hanging, line
from deltatape.render.show import (
    call_lines,
    calls_json,
    event_lines,
    events_json,
    log_hint,
    log_json,
    log_lines,
    read_lines,
    reads_json,
    surrounded_json,
)
from deltatape.render.steps import steps_json, steps_lines
from deltatape.render.summary import exchange_line
from deltatape.render.time_strip import strip_lines
from deltatape.settings.defaults import current_rules
from deltatape.why.explain import explain
from deltatape.why.stepping import stepping
from deltatape.why.timeline import time_axis


@click.command("show")
@click.argument("tape", cls=TapeArgument, default="", metavar="[TAPE[#N]]")
@option("--calls", is_flag=True, help="Show the rebuilt tool calls.")
@option("--events", is_flag=True, help="Show each event with its time and place (one #N).")
@option("--reads", is_flag=True, help="Show the socket reads (one #N).")
@option(
    "--raw",
    is_flag=True,
    help="Write the bytes of the response body to a file or pipe (one #N).",
)
@option(
    "--steps",
    is_flag=True,
    help="Show the reply event by event, beside that of a suspect (one #N).",
)
@option("--log", is_flag=True, help="Show the output of the recorded program.")
@FULL
@FORMAT
def command(*, tape: str, format: str, full: bool, **parts: bool) -> int:  # noqa: A002 - the option's name
    """Show a tape: each exchange in a line, or the parts of one.

    Without TAPE: the latest one. `TAPE#N --format json` has all of an exchange, the request and the
    time axis included.
    """
    asked = [part for part, wanted in parts.items() if wanted]
    if len(asked) > 1:
        raise UsageError(f"--{asked[0]} and --{asked[1]}: one at a time")
    alone = bool(asked) and asked != ["steps"]  # what the app made of it is on later ones
    source = named(tape, alone=alone, full=full) if tape else latest()
    exchanges = [each for each in source.exchanges if source.number in (None, each.number)]
    app = current_rules().app
    if asked == ["log"]:
        _show_log(source, format)
    elif asked == ["steps"]:
        _show_steps(source, _single_exchange(exchanges, source.name, "steps"), format)
    elif asked and asked[0] != "calls":
        _show_part(_single_exchange(exchanges, source.name, asked[0]), asked[0], format)
    elif format == "json" and not asked and source.number is not None:
        write(_whole(source, exchanges[0]))
    elif format == "json":
        write(calls_json(analyse(exchange, app) for exchange in exchanges))
    elif asked:
        show(call_lines([analyse(exchange, app) for exchange in exchanges], width()))
    else:
        _show_summaries(source)
    return 0


def _whole(source: NamedExchanges, exchange: Exchange) -> str:
    """Return all of an exchange as JSON, with what other exchanges show about it."""
    return surrounded_json(
        source.exchanges,
        exchange.number,
        current_rules(),
        source.beside().logs,
        alone=source.lacks_shards,
    )


def _show_summaries(source: NamedExchanges) -> None:
    """Print each exchange in a line, with its worst finding."""
    if not source.exchanges:
        say(f"note: {source.name}: {NO_REQUEST}")
    rules = current_rules()
    analyses = [analyse(exchange, rules.app) for exchange in source.exchanges]
    printed = source.beside().logs
    digests = in_order(digests_of(analysis, rules) for analysis in analyses)
    about_app = () if source.lacks_shards else check_conversation(digests, rules, printed)
    lines: list[Line] = []
    columns = list_width()
    for analysis in analyses:
        number = analysis.exchange.number
        if source.number in (None, number):
            own = check_analysis(analysis, rules)
            found = (*(f for f in about_app if f.exchange == number), *own)
            lines += hanging(exchange_line(analysis, found), columns)
    if printed and source.number is None:
        lines.append(log_hint(len(printed), shlex.quote(source.name)))
    show(lines)


def _show_log(source: NamedExchanges, form: str) -> None:
    if source.number is not None:
        raise UsageError(f"--log shows that of the whole tape; leave out #{source.number}")
    printed = source.tape.logs if source.tape else ()
    write(log_json(printed)) if form == "json" else show(log_lines(printed, width()))


def _show_steps(source: NamedExchanges, exchange: Exchange, form: str) -> None:
    rules = current_rules()
    exchanges = (exchange,) if source.lacks_shards else source.exchanges
    explanation = explain(exchanges, exchange.number, rules, source.beside())
    found = stepping(explanation, exchanges, rules)
    write(steps_json(found)) if form == "json" else show(steps_lines(found, width()))


def _single_exchange(exchanges: list[Exchange], tape: str, part: str) -> Exchange:
    if len(exchanges) != 1:
        numbers = f"#{exchanges[0].number} to #{exchanges[-1].number}" if exchanges else "none"
        raise UsageError(f"--{part} shows one exchange; {tape} has {numbers}: add #N")
    return exchanges[0]


def _show_part(exchange: Exchange, part: str, form: str) -> None:
    if part == "raw":
        _write_raw(exchange)
    elif part == "reads" and form == "json":
        write(reads_json(exchange))
    else:
        analysis = analyse(exchange, current_rules().app)
        if form == "json":
            write(events_json(analysis))
            return
        reads = part == "reads"
        rows = read_lines(exchange, width()) if reads else event_lines(analysis, width())
        show([*_strip(analysis), *rows])


def _strip(analysis: Analysis) -> list[Line]:
    """Return the time axis of an exchange, and a blank line; nothing if it has no times."""
    exchange, rules = analysis.exchange, current_rules()
    reported = {each.code for each in check_analysis(analysis, rules)}
    axis = time_axis(analysis, reported, rules)
    reads = [read.t_ns for read in exchange.reads] + [piece.t_ns for piece in exchange.frames]
    events = [each.t_ns for each in analysis.stream.events]
    strip = strip_lines(axis, reads, events, width())
    return [*strip, line()] if strip else []


def _write_raw(exchange: Exchange) -> None:
    if exchange.upgraded:
        raise UsageError(
            "--raw: a WebSocket has no body; --reads shows the frames of both sides, with --format"
            " json all of their data"
        )
    if sys.stdout.isatty():
        raise UsageError(
            "--raw on a terminal would let the taped bytes act on it; redirect it to a file or a"
            " program, or use --reads"
        )
    write_bytes(exchange.body)
