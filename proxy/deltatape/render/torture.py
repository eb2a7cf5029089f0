"""The report of `deltatape torture`: the matrix, and each variation that failed."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from xml.etree import ElementTree as ET

from deltatape.model.torture import MatrixCell, RunVerdict, TortureResult
from deltatape.printable import count, escape
from deltatape.render.json_document import document
from deltatape.render.junit import XML_HEAD, suite_of, xml_text
from deltatape.render.lines import (
    BOLD,
    DIM,
    GOOD,
    Line,
    StyledText,
    cropped,
    hanging,
    line,
    measured,
    table,
    wrapped,
)
from deltatape.vary.variation import Variation

_BAD = "bold red"
_KINDS = {True: "harmless", False: "hostile"}
_FIRST, _LAST = 5, 3
"""Lines of what a command printed that are shown."""


def torture_lines(result: TortureResult, width: int) -> list[Line]:
    """Format the whole report."""
    if result.problem:
        return _unfit(result, width)
    if why := untried(result):
        head = wrapped(f"no variation was run: {why}", 0, _BAD, width)
        return [*head, *_unvaried_lines(result, width)]
    lines = _matrix(result, width)
    for failures in _alike(result.failed):
        lines += [(), *_failure(failures, width)]
    return [*lines, (), *_end(result, width)]


def untried(result: TortureResult) -> str:
    """Return why no variation was run; "" if at least one was, or if the baseline failed."""
    if result.problem or _placed(result):
        return ""
    if not result.cells:
        return "the command requested none of the selected exchanges"
    several = len(result.columns) > 1
    where = f"any of the {len(result.columns)} responses" if several else result.columns[0]
    return f"none of the selected variations applies to {where}"


def variation_lines(variations: Sequence[Variation], width: int) -> list[Line]:
    """Format `torture --list`."""
    wide = max((len(one.name) for one in variations), default=0)
    lines: list[Line] = []
    for harmless, group in groupby(variations, key=lambda one: one.harmless):
        lines += [(), line(StyledText(_KINDS[harmless], BOLD))]
        for one in group:
            first, *more = wrapped(one.summary, wide + 4, width=width)
            lines.append(line(f"  {one.name:{wide}}  ", *first[1:]))
            lines += more
    return lines[1:]


def cell_line(cell: MatrixCell) -> str:
    """Format a failed cell as one line, printed during the run."""
    return f"FAILED {_name(cell)}: {cell.why}"


def _name(cell: MatrixCell) -> str:
    return f"{cell.variation} {_cell_place(cell)}"


def _cell_place(cell: MatrixCell) -> str:
    seed = "" if cell.seed is None else f" (seed {cell.seed})"
    return f"{cell.exchange}{seed}"


def _unfit(result: TortureResult, width: int) -> list[Line]:
    """Format the report if the unchanged tapes fail."""
    return [
        line(StyledText("FAILED", _BAD), " with the unchanged tapes"),
        *wrapped(result.problem, 2, width=width),
        *_output(result.printed, width),
        (),
        *wrapped(
            "No variation was run: each one is compared with a run that passes with the unchanged"
            " tapes.",
            0,
            width=width,
        ),
    ]


def _matrix(result: TortureResult, width: int) -> list[Line]:
    cells = {(cell.variation, cell.exchange): cell for cell in result.cells}
    placed = _placed(result)
    rows: list[list[str | StyledText]] = []
    before = None
    for row in result.rows:
        if row.name not in placed:
            continue
        marks = [_mark(cells.get((row.name, column))) for column in result.columns]
        kind = _KINDS[row.harmless]
        rows.append([StyledText(kind if kind != before else "", DIM), row.name, *marks])
        before = kind
    head: list[str | StyledText] = ["", "", *(StyledText(each, DIM) for each in result.columns)]
    lines = table([head, *rows])
    if max(map(measured, lines), default=0) <= width:
        return lines
    return _narrow(result, rows, width)


def _narrow(
    result: TortureResult, rows: Sequence[Sequence[str | StyledText]], width: int
) -> list[Line]:
    """Format the matrix with one character per exchange."""
    first, last = result.columns[0], result.columns[-1]
    wide = max(len(str(row[1])) for row in rows)
    lines = [line(StyledText(f"one column per exchange, from {first} to {last}", DIM))]
    for kind, name, *marks in rows:
        shown = kind.text if isinstance(kind, StyledText) else kind
        pieces = (mark if isinstance(mark, StyledText) else StyledText(mark) for mark in marks)
        head = StyledText(f"{shown:8}  ", DIM), StyledText(f"{name!s:{wide}}  ")
        letters = tuple(StyledText(piece.text[:1], piece.style) for piece in pieces)
        lines.append(cropped((*head, *letters), width))
    return lines


def _placed(result: TortureResult) -> frozenset[str]:
    """Return the variations that apply to at least one answer."""
    return frozenset(
        cell.variation for cell in result.cells if cell.verdict is not RunVerdict.NO_PLACE
    )


def _mark(cell: MatrixCell | None) -> StyledText:
    if cell is None or cell.verdict is RunVerdict.NO_PLACE:
        return StyledText("-", DIM)
    return StyledText("ok", GOOD) if cell.verdict.passes else StyledText("FAIL", _BAD)


def _alike(failed: Iterable[MatrixCell]) -> list[list[list[MatrixCell]]]:
    """Group variations whose failures look the same."""
    groups: dict[object, list[list[MatrixCell]]] = {}
    for _, found in groupby(failed, key=lambda cell: cell.variation):
        cells = list(found)
        hangs = all(cell.verdict is RunVerdict.HANGS for cell in cells)
        looks = [(cell.exchange, cell.verdict, cell.printed) for cell in cells]
        groups.setdefault("hangs" if hangs else tuple(looks), []).append(cells)
    return list(groups.values())


def _failure(variations: Sequence[Sequence[MatrixCell]], width: int) -> list[Line]:
    """Format variations that fail alike: the first in full, the others by name."""
    first, *more = variations
    cell = first[0]
    lines = [line(StyledText("FAILED", _BAD), " ", StyledText(_name(cell), BOLD))]
    lines += wrapped(f"{cell.verdict}: {cell.why}", 2, width=width)
    lines += _output(cell.printed, width)
    lines.append(line("  ", StyledText(cell.reproduce)))
    if cell.kept:
        lines.append(line("  ", StyledText(f"tape: {cell.kept}", DIM)))
    for other in first[1:]:
        why = "" if other.why == cell.why else f": {other.why}"
        lines += hanging(f"  also {_cell_place(other)}{why}", width, 7)
    if more:
        names = "; ".join(f"{_name(each[0])}{_others(each[1:])}" for each in more)
        lines += hanging(f"  same failure: {names}", width)
    return lines


def _others(cells: Sequence[MatrixCell]) -> str:
    return "".join(f", {_cell_place(cell)}" for cell in cells)


def _output(printed: str, width: int) -> list[Line]:
    """Format the beginning and the end of the output."""
    texts = [text.rstrip() for text in printed.splitlines() if text.strip()]
    if len(texts) > _FIRST + _LAST + 1:
        texts[_FIRST:-_LAST] = ["..."]
    return [cropped(line(StyledText("  | ", DIM), text), width) for text in texts]


def _end(result: TortureResult, width: int) -> list[Line]:
    """Format the totals."""
    failed = len({cell.variation for cell in result.failed})
    style = _BAD if failed else GOOD
    of = count(len(_placed(result)), "variation")
    verdict = f"{failed} of {of} failed" if failed else f"{of} passed"
    runs = f"; {count(result.runs, 'run')} in {result.seconds:.1f} s"
    return [line(StyledText(verdict, style), runs), *_unvaried_lines(result, width)]


def _unvaried_lines(result: TortureResult, width: int) -> list[Line]:
    """Format what was not varied, and which variations were not played."""
    lines: list[Line] = []
    without = [row.name for row in result.rows if row.name not in _placed(result)]
    if without and result.cells:
        lines += wrapped(f"not applicable to these responses: {', '.join(without)}", 0, DIM, width)
    if result.idle:
        named = ", ".join(result.idle)
        lines += wrapped(f"not requested by the command, so not varied: {named}", 0, DIM, width)
    return lines


# What torture found as JSON, for programs; the keys are a contract.


def torture_json(result: TortureResult) -> str:
    """`torture --format json`."""
    nothing = untried(result)
    return document(
        passes=result.passes and not nothing,
        problem=f"no variation was run: {nothing}" if nothing else result.problem,
        printed=result.printed,
        command=list(result.command),
        tapes=list(result.tapes),
        exchanges=list(result.columns),
        unplayed=list(result.idle),
        variations=[
            {"name": row.name, "harmless": row.harmless, "summary": row.summary}
            for row in result.rows
        ],
        cells=[_cell(cell) for cell in result.cells],
        runs=result.runs,
        seconds=round(result.seconds, 3),
    )


def _cell(cell: MatrixCell) -> dict[str, object]:
    return {
        "variation": cell.variation,
        "harmless": cell.harmless,
        "exchange": cell.exchange,
        "verdict": cell.verdict,
        "passes": cell.verdict.passes,
        "why": cell.why,
        "seed": cell.seed,
        "seconds": round(cell.seconds, 3),
        "runs": cell.runs,
        "reproduce": cell.reproduce,
        "tape": cell.kept,
        "printed": cell.printed,
    }


# What torture found as a JUnit report: a suite of harmless variations and one of hostile ones.
#
# A case is a variation of one exchange. One that has no place there is skipped; where that goes for
# all, a case more fails. Where the tapes as they are fail already, that is the only case.


def torture_junit(result: TortureResult) -> str:
    """`torture --junit FILE`."""
    root = ET.Element("testsuites", name="deltatape torture")
    if result.problem:
        case = _failing("recorded", "the unchanged tapes", result.problem, result.printed)
        root.append(suite_of("recorded", [case]))
    if why := untried(result):
        case = _failing("tried", "a variation", f"no variation was run: {why}")
        root.append(suite_of("tried", [case]))
    for name, harmless in (("harmless", True), ("hostile", False)):
        cells = [_case(name, cell) for cell in result.cells if cell.harmless is harmless]
        if cells:
            root.append(suite_of(name, cells))
    return XML_HEAD + xml_text(root)


def _failing(suite: str, name: str, problem: str, printed: str = "") -> ET.Element:
    case = ET.Element("testcase", classname=suite, name=name, time="0")
    failure = ET.SubElement(case, "failure", message=escape(problem), type=suite)
    failure.text = _text(printed)
    return case


def _case(suite: str, cell: MatrixCell) -> ET.Element:
    name = escape(f"{cell.variation} {cell.exchange}")
    case = ET.Element("testcase", classname=suite, name=name, time=f"{cell.seconds:.3f}")
    if cell.verdict is RunVerdict.NO_PLACE:
        ET.SubElement(case, "skipped", message="not applicable to this exchange")
    elif not cell.verdict.passes:
        failure = ET.SubElement(case, "failure", message=escape(cell.why), type=cell.verdict.value)
        failure.text = _text(f"{cell.reproduce}\n{cell.printed}")
    return case


def _text(text: str) -> str:
    return "".join(f"{escape(one)}\n" for one in text.splitlines())
