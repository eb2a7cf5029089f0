"""The report of `deltatape doctor`: a line per check with its level, and what to do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from deltatape.printable import count
from deltatape.render.json_document import document
from deltatape.render.lines import BOLD, DIM, GOOD, WIDTH, Line, StyledText, cropped, line, wrapped


class RemarkLevel(StrEnum):
    """How urgent a remark is."""

    OK = "ok"
    NOTE = "note"
    """Good to know; or something to do if it is meant."""
    PROBLEM = "PROBLEM"
    """Something will not be recorded, or not work."""


STYLES = {RemarkLevel.OK: GOOD, RemarkLevel.NOTE: "yellow", RemarkLevel.PROBLEM: "bold red"}
_LEVEL_WIDTH = len(RemarkLevel.PROBLEM)
_INDENT = 2 + _LEVEL_WIDTH + 2
_NARROW = 60
_ARROW = "-> "


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorRemark:
    """The result of one check."""

    level: RemarkLevel
    text: str
    shown: str = ""
    """Code that it is about; "" for none."""
    instead: str = ""
    """Code to write instead; "" for none."""
    fix: str = ""
    """What to do; "" for nothing."""
    data: Mapping[str, object] | None = None
    """The same for programs, where there is more to say than text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Remarks about one subject."""

    title: str
    remarks: tuple[DoctorRemark, ...]


def doctor_lines(sections: Sequence[Section], width: int = WIDTH) -> list[Line]:
    """Format the report and a summary; leave out empty sections."""
    width = max(_NARROW, min(width, WIDTH))
    lines: list[Line] = []
    for section in sections:
        if section.remarks:
            lines.append(line(StyledText(section.title.upper(), BOLD)))
            for remark in section.remarks:
                lines += _remark_lines(remark, width)
            lines.append(line())
    return [*lines, _summary(sections)]


def problems(sections: Sequence[Section]) -> int:
    """Count the remarks that are problems."""
    return _number(sections, RemarkLevel.PROBLEM)


def _number(sections: Sequence[Section], level: RemarkLevel) -> int:
    return sum(remark.level is level for section in sections for remark in section.remarks)


def _remark_lines(remark: DoctorRemark, width: int) -> list[Line]:
    level = StyledText(f"  {remark.level:<{_LEVEL_WIDTH}}  ", STYLES[remark.level])
    first, *more = wrapped(remark.text, _INDENT, width=width)
    lines = [(level, *first[1:]), *more]
    margin = StyledText(" " * _INDENT)
    if remark.shown:
        lines.append(cropped(line(margin, StyledText(remark.shown, DIM)), width))
    if remark.instead:
        # Unbroken, so that it can be copied.
        lines.append(line(margin, "write ", StyledText(remark.instead, BOLD)))
    if remark.fix:
        first, *more = wrapped(remark.fix, _INDENT + len(_ARROW), width=width)
        lines += [(margin, StyledText(_ARROW), *first[1:]), *more]
    return lines


def _summary(sections: Sequence[Section]) -> Line:
    found = problems(sections)
    notes = count(_number(sections, RemarkLevel.NOTE), "note")
    if not found:
        return line(StyledText(f"no problems, {notes}", GOOD))
    return line(StyledText(f"{count(found, 'problem')}, {notes}", STYLES[RemarkLevel.PROBLEM]))


def doctor_json(sections: Sequence[Section]) -> str:
    """`doctor --format json`: in ASCII, as all JSON for programs."""
    checks = [
        {
            "section": section.title,
            "level": remark.level.lower(),
            "text": remark.text,
            "code": remark.shown,
            "instead": remark.instead,
            "fix": remark.fix,
            **(remark.data or {}),
        }
        for section in sections
        for remark in section.remarks
    ]
    return document(problems=problems(sections), checks=checks)
