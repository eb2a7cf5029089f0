"""Report a replay, for people and for programs.

Credentials of requests are not shown: values of parameters that carry one are hidden, header fields
are left out.
"""

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from deltatape.match.difference import JsonDifference
from deltatape.match.endpoint import shown
from deltatape.match.request import NoMatch
from deltatape.match.suggest import any_place
from deltatape.model.exchange import Exchange
from deltatape.player.play_options import (
    CorrectedRequest,
    MissedRequest,
    PlayedRequest,
    PlayReport,
    RequestOutcome,
)
from deltatape.printable import count
from deltatape.render.json_document import document

if TYPE_CHECKING:
    from deltatape.run_check import RunMistake

STILL_SILENT = "no request with the results of its tool calls followed, as on the tape"
MOST = 20
"""How many lines of a kind a summary has."""
MOST_ALIKE = 3
"""How many other exchanges are named that would match, too."""


def request_lines(what: RequestOutcome) -> Iterator[str]:
    """Yield a line for a request; for a missed one also how it differs from recorded ones."""
    if isinstance(what, PlayedRequest):
        exchange = what.exchange
        how = f"{what.matched}; {what.note}" if what.note else what.matched
        request = f"{exchange.request.method} {exchange.request.path}"
        yield f"playing {name_of(exchange)} {request} ({how})"
        if what.alike:
            others = ", ".join(name_of(each) for each in what.alike[:MOST_ALIKE])
            left = len(what.alike) - MOST_ALIKE
            more = f" and {left} more" if left > 0 else ""
            yield (
                f"  note: {others}{more} would match as well: what differs is volatile, so"
                " exchanges play in their recorded order"
            )
        return
    request = f"{what.query.method} {shown(what.query.target)}"
    if isinstance(what, CorrectedRequest):
        yield f"END OF TAPE {request}: {what.message}"
        return
    if what.nearest is None:
        yield f"MISSED {request}: {what.message}"
        return
    yield f"MISSED {request}: not on the tape: {what.miss.problem}"
    yield f"  nearest: {name_of(what.nearest)}"
    for line in difference_lines(what.miss):
        yield f"  {line}"
    if what.miss.suggested:
        yield f"  to accept that: {options(what.miss.suggested)}"


def difference_lines(miss: NoMatch) -> Iterator[str]:
    """Yield a line for each difference; for one in several elements of an array, a single line.

    The last line tells what did not count.
    """
    alike: dict[str, list[JsonDifference]] = {}
    for each in miss.differences:
        alike.setdefault(any_place(each.path), []).append(each)
    for path, (first, *others) in alike.items():
        more = f" (and {len(others)} more at {path})" if others else ""
        yield f"{first.path}: recorded {first.recorded}, received {first.received}{more}"
    if miss.more:
        yield f"and {count(miss.more, 'other difference')}"
    if miss.volatile:
        yield f"volatile: {', '.join(miss.volatile)}"


def options(volatile: Sequence[str]) -> str:
    """Return options for a shell: `--volatile date`."""
    return " ".join(f"--volatile {shlex.quote(each)}" for each in volatile)


def name_of(exchange: Exchange) -> str:
    """Return `TAPE#N`."""
    return f"{exchange.tape}#{exchange.number}"


def summary(report: PlayReport, recorded: int = 0) -> Iterator[str]:
    """Yield the last lines of a replay; `recorded` exchanges came from the provider."""
    numbers = (
        f"{len(report.played)} played, {len(report.missed)} missed, {len(report.unplayed)} unplayed"
    )
    yield f"{numbers}, {recorded} recorded" if recorded else numbers
    for exchange in report.unplayed[:MOST]:
        yield f"  unplayed: {name_of(exchange)} {exchange.request.path}"
    if len(report.unplayed) > MOST:
        yield f"  and {count(len(report.unplayed) - MOST, 'other exchange')}"
    if report.left_behind:
        left = ", ".join(name_of(each) for each in report.left_behind[:MOST])
        yield f"  not needed: {left}: they follow a recorded mistake that this run did not repeat"
    yield from mistake_lines(report)
    if report.missed and not report.accused:
        yield (
            "note: `deltatape check` finds no mistake in the app's requests on this tape, so each"
            " request must match a recorded one"
        )


def mistake_lines(report: PlayReport) -> Iterator[str]:
    """Yield a line for each mistake of the application, repeated or corrected."""
    for each in report.failures[:MOST]:
        yield f"MISTAKE {mistake_text(each)}"
    if len(report.failures) > MOST:
        yield f"  and {count(len(report.failures) - MOST, 'other mistake')}"
    for each in report.mistakes:
        if not each.fails:
            yield f"note: {mistake_text(each)}; does not fail the run (see docs/replay.md)"
    if report.unseen:
        codes = ", ".join(sorted({finding.code for finding in report.unseen}))
        yield (
            f"note: a replay cannot show {codes} of this tape, at the app's own endpoint; the"
            " command itself has to fail for that"
        )


def mistake_text(mistake: "RunMistake") -> str:
    """Return `C001 in request 2 (x.tape#2): ...`."""
    finding, where = mistake.finding, name_of(mistake.recorded)
    if mistake.silent:
        return f"{finding.code} after request {mistake.request} ({where}): {STILL_SILENT}"
    return f"{finding.code} in request {mistake.request} ({where}): {finding.message}"


def json_report(
    report: PlayReport,
    recorded: Sequence[Exchange] = (),
    refused: Sequence[tuple[str, str]] = (),
) -> str:
    """Return the report, `recorded` and `refused` as JSON, each in order.

    Args:
        report: the report of the player.
        recorded: what came from the provider and is on the tape.
        refused: hosts requested past the player, each with the provider's name.
    """
    return document(
        played=[
            {
                **_exchange(one.exchange),
                "matched": one.level.name.lower(),
                "note": one.note,
                "codes": one.codes,
                "alike": [_exchange(each) for each in one.alike],
            }
            for one in report.played
        ],
        missed=[_missed(one) for one in report.missed],
        unplayed=[_exchange(one) for one in report.unplayed],
        recorded=[_exchange(one) for one in recorded],
        refused=[{"host": host, "provider": provider} for host, provider in refused],
        ended=[
            {
                "method": one.query.method,
                "target": shown(one.query.target),
                "codes": one.codes,
                "message": one.message,
            }
            for one in report.ended
        ],
        left_behind=[_exchange(one) for one in report.left_behind],
        mistakes=[_mistake(one) for one in report.mistakes],
    )


def _mistake(one: "RunMistake") -> dict[str, object]:
    finding = one.finding
    return {
        "request": one.request,
        "recorded": _exchange(one.recorded),
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity.value,
        "confidence": finding.confidence.value,
        "message": STILL_SILENT if one.silent else finding.message,
        "hint": finding.hint,
        "fails": one.fails,
    }


def _exchange(exchange: Exchange) -> dict[str, object]:
    return {
        "tape": exchange.tape,
        "exchange": exchange.number,
        "id": exchange.id,
        "method": exchange.request.method,
        "path": exchange.request.path,
    }


def _missed(one: MissedRequest) -> dict[str, object]:
    return {
        "method": one.query.method,
        "target": shown(one.query.target),
        "problem": one.miss.problem,
        "message": one.message,
        "nearest": None if one.nearest is None else _exchange(one.nearest),
        "differences": [
            {"path": each.path, "recorded": each.recorded, "received": each.received}
            for each in one.miss.differences
        ],
        "more_differences": one.miss.more,
        "volatile": one.miss.volatile,
        "suggested": one.miss.suggested,
    }
