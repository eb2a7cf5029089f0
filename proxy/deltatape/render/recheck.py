"""What a live provider does differently today, as text and as JSON: `fsck --against`.

The keys of the JSON are a contract: they are added to, never renamed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from deltatape.compare.recheck import PRESENT, Aspect, Recheck, RecheckedExchange, ResponseDrift
from deltatape.model.exchange import Exchange
from deltatape.model.finding import Severity
from deltatape.printable import count
from deltatape.render.lines import BOLD, DIM, GOOD, STYLES, WIDTH, Line, StyledText, line, wrapped
from deltatape.render.numbers import duration

_MOST = 30
"""Differences of one exchange that are shown."""
_LABELS: Mapping[Aspect, str] = {
    Aspect.CONTENT_TYPE: "content type",
    Aspect.FRAMING: "HTTP framing",
    Aspect.FORMAT: "format of the body",
    Aspect.ANSWER: "the answer brings",
    Aspect.FINISH: "finish reason",
}
_NOTHING = "nothing"


def today_lines(asked: Sequence[Recheck], url: str, width: int = WIDTH) -> list[Line]:
    """Format what each exchange of a tape gives today, when it is requested from `url` again."""
    compared = [one.today for one in asked if one.today is not None]
    same = sum(1 for today in compared if not today.drifts)
    answers = f"{count(len(compared), 'answer')}, {same} as on the tape"
    lines = [line("  ", StyledText(f"today at {url}", BOLD), f": {answers}")]
    for one in asked:
        lines += _one_today(one, width)
    return lines


def _one_today(asked: Recheck, width: int) -> Iterator[Line]:
    request = asked.recorded.request
    front = f"#{asked.recorded.number} {request.method} {request.path}: "
    if asked.passed_over:
        yield from wrapped(f"{front}passed over: {asked.passed_over}", 4, DIM, width)
        return
    if asked.problem:
        yield from wrapped(f"{front}{asked.problem}", 4, STYLES[Severity.ERROR], width)
    if asked.today is not None:
        yield from _compared(asked, asked.today, front, width)


def _compared(asked: Recheck, today: RecheckedExchange, front: str, width: int) -> Iterator[Line]:
    drifts = today.drifts
    if drifts:
        differences = count(len(drifts), "difference")
        yield from wrapped(f"{front}{differences}", 4, STYLES[Severity.WARNING], width)
    else:
        yield from wrapped(f"{front}as on the tape", 4, GOOD, width)
    for drift in drifts[:_MOST]:
        yield from wrapped(_said_today(drift), 8, "", width)
    if len(drifts) > _MOST:
        more = f"and {len(drifts) - _MOST} more; all of them: --format json"
        yield from wrapped(more, 8, DIM, width)
    for note in _notes(asked, today):
        yield from wrapped(f"note: {note}", 8, DIM, width)


def _said_today(drift: ResponseDrift) -> str:
    """Describe one difference: `field chunk: usage.cost: new today (number)`."""
    label = _LABELS.get(drift.aspect, drift.aspect.value)
    if not drift.what:
        return f"{label}: {drift.recorded or _NOTHING}, today {drift.today or _NOTHING}"
    front = f"{label} {drift.what}"
    if drift.recorded and drift.today:
        return f"{front}: {drift.recorded}, today {drift.today}"
    how, about = ("new today", drift.today) if drift.today else ("gone today", drift.recorded)
    return f"{front}: {how}" if about == PRESENT else f"{front}: {how} ({about})"


def _notes(asked: Recheck, today: RecheckedExchange) -> Iterator[str]:
    yield from today.notes
    times = [_times(each) for each in (asked.recorded, today.comparison.right.exchange)]
    if all(times):
        yield f"{times[0]}; today {times[1]}"
    if asked.left_out:
        yield f"not sent, since it is masked on the tape: {', '.join(asked.left_out)}"


def _times(exchange: Exchange) -> str:
    """Describe when an answer began and ended; "" without recorded times."""
    if not exchange.timed or exchange.end is None or not exchange.reads:
        return ""
    first, end = (t - exchange.request.t_ns for t in (exchange.reads[0].t_ns, exchange.end.t_ns))
    return f"began after {duration(first)}, ended after {duration(end)}"


def today_object(asked: Iterable[Recheck], url: str) -> dict[str, object]:
    """Return the same for programs: `against` of a tape in `fsck --format json`."""
    return {"url": url, "exchanges": [_object(one) for one in asked]}


def _object(asked: Recheck) -> dict[str, object]:
    today = asked.today
    return {
        "exchange": asked.recorded.number,
        "id": asked.recorded.id,
        "same": None if today is None else not today.drifts,
        "equal": None if today is None else today.comparison.equal,
        "passed_over": asked.passed_over or None,
        "problem": asked.problem or None,
        "left_out": list(asked.left_out),
        "differences": [_drift(drift) for drift in (today.drifts if today else ())],
        "notes": list(today.notes) if today else [],
    }


def _drift(drift: ResponseDrift) -> dict[str, object]:
    return {
        "aspect": drift.aspect,
        "what": drift.what or None,
        "recorded": drift.recorded or None,
        "today": drift.today or None,
    }
