"""A stream copied from a terminal or a log, with what copying and logging did to it.

Strategy: heads and remarks of curl are told from the body; every line of the body is freed of
what a logger put before it; lines that belong to no event stream are left out. Blank lines are put
back only when there is none at all, since a stream that has some shows where its events end. Where
no event stream is shown, JSON lines are taken from the ends of lines.
Everything that was done is said in the exchange's notes: whoever needs the wire's own bytes has to
record them.
"""

import json
from collections.abc import Iterator, Sequence

from deltatape.importers._base import Answered, Asked, Material
from deltatape.importers._curl import has_head, split_heads
from deltatape.importers._prefixes import json_line, strip_line, without_escapes
from deltatape.importers.envelope import read_request, read_response
from deltatape.importers.raw import UNKNOWN, from_parts, sniff
from deltatape.model.exchange import Exchange

_SHOWN = 60
_FEW = 2


class Pasted:
    """Takes text that is not the stream itself, but shows one."""

    name = "pasted text"

    def claims(self, material: Material) -> bool:
        """See `Importer.claims`."""
        lines = _lines(material.only)
        return lines is not None and (
            has_head(lines) or _is_altered(lines) or _shows_json_lines(lines)
        )

    def read(self, material: Material) -> Exchange:
        """See `Importer.read`."""
        notes: list[str] = []
        lines = _lines(material.only) or []
        asked, answered = Asked(), Answered()
        if has_head(lines):
            heads = split_heads(lines)
            lines = list(heads.rest)
            asked, answered = heads.asked or asked, heads.answered or answered
            notes.append("pasted: HTTP heads taken from the text")
        if material.request is not None:
            asked = read_request(material.name, material.request)
        if material.response is not None:
            answered = read_response(material.name, material.response)
        if _is_altered(lines):
            lines = _stream_lines(lines, notes)
        elif _shows_json_lines(lines):
            lines = _json_lines(lines, notes)
        body = "\n".join(lines).encode("utf-8", "surrogateescape")
        return from_parts(material.name, asked, answered, body, notes)


def _lines(data: bytes | None) -> list[str] | None:
    """The lines, bytes that are no UTF-8 as surrogates; None if it is binary."""
    if data is None or b"\0" in data:
        return None
    return data.decode("utf-8", "surrogateescape").split("\n")


def _is_altered(lines: Sequence[str]) -> bool:
    """Whether an event stream is shown, but not as it stands.

    A stream whose data lines stand at the start of their lines, with blank lines between, is not
    altered even if other lines do not belong to it: they may be the defect.
    """
    plain = sum(line.removeprefix("\ufeff").startswith("data:") for line in lines)
    found = sum(map(_shows_data, lines)) - plain
    first = next((line for line in lines if line.strip()), "")
    if first.lstrip().startswith("{") and _FEW * found < sum(map(bool, lines)):
        return False  # JSON, some of whose texts look like data lines
    return found > plain or _lacks_blank_lines(lines)


def _shows_data(line: str) -> bool:
    return any(part.startswith("data:") for part in strip_line(without_escapes(line)) or ())


def _lacks_blank_lines(lines: Sequence[str]) -> bool:
    """Whether several events follow one another without a blank line anywhere."""
    data = sum(line.startswith("data:") for line in lines)
    return data >= _FEW and not any(line in {"", "\r"} for line in lines[:-1])


def _shows_json_lines(lines: Sequence[str]) -> bool:
    """Whether JSON lines are shown, each behind something else: what a text is that is nothing."""
    found = sum(json_line(without_escapes(line)) is not None for line in lines)
    body = "\n".join(lines).encode("utf-8", "surrogateescape")
    return found >= _FEW and sniff(body) == UNKNOWN


def _json_lines(lines: Sequence[str], notes: list[str]) -> list[str]:
    """The JSON lines that `lines` show; `notes` tell what was done."""
    shown = [without_escapes(line) for line in lines if line.strip()]
    *found, last = map(json_line, shown)
    kept = [text for text in found if text is not None]
    cut = json_line(shown[-1], cut=True)
    kept += [cut or ""] if last is None else [last, ""]
    lost = found.count(None) + (cut is None)
    notes.append(f"pasted: JSON taken from the ends of lines: {len(shown) - lost}")
    if lost:
        notes.append(f"pasted: lines left out that hold no JSON: {lost}")
    return kept


def _stream_lines(lines: Sequence[str], notes: list[str]) -> list[str]:
    """The lines of the event stream that `lines` show; `notes` tell what was done."""
    stream: list[str] = []
    left_out: list[str] = []
    freed = 0
    for line in lines:
        parts = strip_line(without_escapes(line.removesuffix("\r")))
        if parts is None:
            left_out.append(line)
        else:
            freed += parts != (line,)
            stream.extend(parts)
    if freed:
        notes.append(f"pasted: lines freed of what a log or terminal put around them: {freed}")
    if left_out:
        shown = ascii(left_out[0][:_SHOWN])
        notes.append(
            f"pasted: lines left out that are no event stream: {len(left_out)}, first {shown}"
        )
    if _lacks_blank_lines(stream):
        stream = list(_separated(stream))
        notes.append("pasted: blank lines put back after each data line, the text had none")
    return _ended(stream, notes)


def _separated(stream: Sequence[str]) -> Iterator[str]:
    for line, following in zip(stream, [*stream[1:], ""], strict=True):
        yield line
        if line.startswith("data:") and following:
            yield ""


def _ended(stream: list[str], notes: list[str]) -> list[str]:
    """`stream` with the blank line that copying cuts off, if its last line is whole."""
    content = [line for line in stream if line]
    if not content or stream[-2:] == ["", ""] or not _is_whole(content[-1]):
        return stream
    notes.append("pasted: blank line put back after the last event, copying cuts it off")
    return [*stream[: len(stream) - 1 if stream[-1] == "" else len(stream)], "", ""]


def _is_whole(line: str) -> bool:
    """Whether a field's value is no JSON that was cut off."""
    _, _, value = line.partition(":")
    if not value.strip().startswith(("{", "[{", '"')):
        return True
    try:
        json.loads(value)
    except (ValueError, RecursionError):
        return False
    return True
