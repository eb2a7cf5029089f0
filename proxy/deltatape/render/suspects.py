"""Suspects as text, and what known clients make of a stream."""

from collections.abc import Iterable, Iterator, Sequence

from deltatape.model.request_summary import RepeatedCall
from deltatape.model.suspect import ClientReading, ClientTrial, Suspect
from deltatape.printable import count, excerpt
from deltatape.render.lines import (
    BOLD,
    DIM,
    GOOD,
    LEAST,
    WIDTH,
    Cell,
    Line,
    StyledText,
    line,
    measured,
    table,
    wrapped,
)

_WRONG = StyledText("WRONG", "bold red")
_NOT_TRIED = StyledText("not tried", DIM)
_OTHERS = 5
"""Suspects that are named beside the first."""
_CALLS = 4
_SHOWN = 60


def suspect_lines(
    suspects: Sequence[Suspect], indent: int, width: int = WIDTH, *, said: str = ""
) -> list[Line]:
    """Format the first suspect in full and name the others.

    Args:
        suspects: best first.
        indent: of every line.
        width: of the page.
        said: what stands above; it is not said again.
    """
    if not suspects:
        return []
    first, *others = suspects
    lines = [line(" " * indent, StyledText(first.name, BOLD), StyledText(f"  {how(first)}", DIM))]
    if measured(lines[0]) > width:
        lines = [line(" " * indent, StyledText(first.name, BOLD))]
        lines += wrapped(how(first), indent, DIM, width)
    if first.says not in said:
        lines += wrapped(f"it {first.says}", indent, width=width)
    if others:
        lines += wrapped(f"or {_names(others)}", indent, DIM, width)
    return lines


def how(suspect: Suspect) -> str:
    """Describe how well a suspect explains the app, and by which mistakes."""
    mistakes = ", ".join(f"{each.axis}={each.value}" for each in suspect.mistakes)
    fit = "reproduces exactly what the app did" if suspect.exact else "comes close to it"
    fit = "loses the same calls" if suspect.drop else fit
    return f"{fit} ({mistakes})"


def _names(suspects: Sequence[Suspect]) -> str:
    named = [each.name for each in suspects]
    rest = len(named) - _OTHERS
    more = f", and {rest} more" if rest > 0 else ""
    fit = "would do the same" if all(each.exact for each in suspects) else "come near"
    return f"{', '.join(named[:_OTHERS])}{more}, which {fit}: deltatape why NAME"


def tried_lines(tried: Iterable[ClientTrial], indent: int, width: int = WIDTH) -> list[Line]:
    """Format a row per client that reads the response wrongly or was not tried; name the others."""
    every = tuple(tried)
    rows: list[list[Cell]] = [
        [each.name, _NOT_TRIED if each.problem else _WRONG, outcome(each)]
        for each in every
        if each.problem or each.differs
    ]
    right = [each.name for each in every if not each.problem and not each.differs]
    lines = table(rows, indent, width=width, give={2: LEAST, 0: LEAST})
    if right:
        lines += wrapped(f"right: {', '.join(right)}", indent, GOOD, width)
    return lines


def outcome(tried: ClientTrial) -> str:
    """Describe what a client makes of a response; not escaped."""
    if tried.problem:
        return tried.problem
    return "; ".join(_made(tried.made))


def _made(made: ClientReading) -> Iterator[str]:
    for problem in made.errors[:1]:
        yield f"throws {excerpt(problem)}"
    for call in made.calls[:_CALLS]:
        yield _call(call)
    if len(made.calls) > _CALLS:
        yield f"and {count(len(made.calls) - _CALLS, 'more call')}"
    if not made.calls and not made.errors:
        yield "no call"


def _call(call: RepeatedCall) -> str:
    arguments = excerpt(call.arguments, _SHOWN) or "(no bytes)"
    identity = f" ({excerpt(call.id, _SHOWN)})" if call.id else ""
    return f"{excerpt(call.name or 'no name', _SHOWN)}{identity} {arguments}"
