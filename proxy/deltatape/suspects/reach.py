"""The texts that no client can produce: clients repeat what came, in pieces.

Whatever a client does with its calls, the strings in their arguments consist of pieces that the
stream has: fragments, joined in any order and cut where one begins or ends. So a run of plain
characters (`_PLAIN`) that is no part of any such row of pieces was never made by a mistake: an
application, a person or a schema wrote it.

What clients add or change by themselves is left out of the comparison or in the pieces:

- Numbers are spelled in many ways, and some clients put in indexes: only strings and keys count.
- Escapes, non-ASCII characters (which a wrong decoder damages) and characters that may be written
  as an escape end a run. Where plain characters may come from an escape, everything is possible.
- Repair of a cut text closes strings: a run may end anywhere that a piece does.
- Clients that spread a text, as JavaScript does, make keys of digits.
- Text that is not JSON, such as a dictionary as Python prints it, is not compared.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import islice

from deltatape.model.reply import ToolCall
from deltatape.model.request_summary import RepeatedCall
from deltatape.suspects.steps import ClientCallDelta, Step
from deltatape.wire.json_value import parse

_ADDED = ("undefined", "None", "[object Object]")
"""What some clients put in place of arguments."""
_PLAIN = re.compile(r"[ !#-.0-\[\]-~]+")
"""ASCII that JSON leaves unescaped: no quotation marks, and neither slash, which may be escaped."""
_END = "\n"
"""Ends each piece; no run contains it."""
_ESCAPED_PLAIN = re.compile(r"\\(?:u00[2-7]|(?:u0?0?)?(?:\n|$))")
"""An escape of a plain character, or the part of one before a cut."""
_WINDOW = 32
"""How many characters of a run are compared at once."""
_MOST = 64
"""How many windows of one text are compared; what is behind them counts as made."""


class Reach:
    """The results that clients can get from a stream.

    Args:
        steps: all that clients read, in each way to frame and to decode the stream.
        calls: that a client without mistakes finds, those in its text included.
    """

    def __init__(self, steps: Iterable[Step], calls: Iterable[ToolCall | RepeatedCall]) -> None:
        texts, names = {*_ADDED}, {""}
        for step in steps:
            if type(step) is ClientCallDelta:
                texts.add(step.text or "")
                names.add(step.name or "")
        for call in calls:
            texts.add(call.arguments)
            names.add(call.name or "")
        self._texts, self._names = _joined(texts), _joined(names)
        self._unsure = bool(_ESCAPED_PLAIN.search(self._texts))

    def has_arguments(self, text: str) -> bool:
        """Check whether a client may have made `text`; True if unsure."""
        if self._unsure:
            return True
        value = parse(text).value
        if isinstance(value, str):
            return self.has_arguments(value)  # encoded twice
        return _are_made_of(self._texts, _runs(value, outer=True))

    def has_name(self, name: str | None) -> bool:
        """Check whether a client may have made `name`; True if unsure."""
        return _are_made_of(self._names, [name or ""])


def _joined(pieces: Iterable[str]) -> str:
    return _END + _END.join(sorted(pieces)) + _END


def _are_made_of(pieces: str, runs: Iterable[str]) -> bool:
    """Check whether each run is a part of some pieces in a row; True if unsure."""
    windows = (
        run[at : at + _WINDOW]
        for run in runs
        if run not in pieces
        for at in range(0, len(run), _WINDOW // 2)
    )
    return all(_is_made_of(pieces, window) for window in islice(windows, _MOST))


def _is_made_of(pieces: str, text: str) -> bool:
    if text in pieces:
        return True
    ends = {at for at in range(len(text)) if f"{text[:at]}{_END}" in pieces}
    for at in range(len(text)):
        if at in ends:
            if f"{_END}{text[at:]}" in pieces:
                return True
            inner = range(at + 1, len(text))
            ends |= {end for end in inner if f"{_END}{text[at:end]}{_END}" in pieces}
    return False


def _runs(value: object, *, outer: bool) -> Iterator[str]:
    """Yield the runs of plain characters in the strings and keys of a JSON value."""
    if isinstance(value, str):
        yield from _PLAIN.findall(value)
    elif isinstance(value, list):
        for item in value:
            yield from _runs(item, outer=False)
    elif isinstance(value, dict):
        for key, item in value.items():
            if not (outer and key.isdigit()):
                yield from _PLAIN.findall(key)
            yield from _runs(item, outer=False)
