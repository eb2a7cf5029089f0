"""The lines of a tape, with what a plan says changed.

Lines that nothing changes are kept byte by byte, also those of codes that nobody knows. The header
is kept, its `id` included: a redacted tape is the same recording with less in it, and redacting it
again changes nothing. `end.sha256` is made anew over what the tape now holds, since the old one
would let anyone try guesses at what was there; if it did not fit before, it stays as it is.

Format: recordings/README.md.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence

from deltatape.redact.fillers import Fillers
from deltatape.redact.layers import Edit
from deltatape.redact.plan import Plan, SpanOf
from deltatape.redact.search import overwrite
from deltatape.redact.strings import clean, filled
from deltatape.tape.decode import CODES
from deltatape.tape.encode import json_bytes, json_text
from deltatape.tape.fields import bytes_from_json
from deltatape.tape.mask import Masker
from deltatape.tape.payload import ParsedAs

CONTENT = "content was replaced by fillers of the same length"

_BODIES = frozenset(("request-body", "read"))


class _Hashes:
    """The response of an exchange as it was and as it becomes."""

    def __init__(self) -> None:
        self.old = hashlib.sha256()
        self.new = hashlib.sha256()


class Rewriter:
    """Rewrites the lines of a tape, in order.

    Args:
        plan: of the same tape.
        masker: as of the plan.
        fillers: as of the plan; a note tells of them.
    """

    def __init__(self, plan: Plan, masker: Masker, fillers: Fillers | None = None) -> None:
        self._plan = plan
        self._masker = masker
        self._fillers = fillers
        self._hashes = {exchange: _Hashes() for exchange in plan.changed}
        self._edited = set(plan.changed)

    def lines(self, number: int, line: bytes) -> Iterator[bytes]:
        """What stands in the place of the line `number`, a record with its line feed."""
        if number == 2 and self._fillers is not None:  # noqa: PLR2004 - the first record
            note = _record(0, 0, "note", {"text": CONTENT})
            if line != note:
                yield note
        t_ns, exchange, code, value = json.loads(line)
        if number in self._plan.edits:
            self._edited.add(exchange)
        if code == ParsedAs.code and exchange in self._edited:
            return  # what was read is not on the tape any more
        if number in self._plan.remarks:
            yield _record(t_ns, exchange, "note", {"text": self._plan.remarks[number]})
        spans = self._plan.spans.get(number, [])
        if code == "masked" and spans:
            yield _record(t_ns, exchange, code, {**value, "spans": _merged(value["spans"], spans)})
            return
        if spans:
            yield _record(t_ns, exchange, "masked", {"spans": _merged([], spans)})
        changed = self._changed(number, exchange, code, value)
        yield line if changed == value else _record(t_ns, exchange, code, changed)

    def _changed(self, number: int, exchange: int, code: str, value: object) -> object:
        edits = self._plan.edits.get(number, [])
        if code in _BODIES:
            return self._body(exchange, code, value, edits)
        if code == "log" and isinstance(value, dict):
            line = overwrite(bytes_from_json(value["line"]), edits)
            return {**value, "line": json.loads(json_bytes(line))} if edits else value
        if code in ("masked", "boundaries"):
            return value
        cleaned = clean(value, self._masker).value
        if code not in CODES and self._fillers is not None:
            return filled(cleaned, self._fillers)
        return self._ended(exchange, cleaned) if code == "end" else cleaned

    def _body(self, exchange: int, code: str, value: object, edits: Sequence[Edit]) -> object:
        hashes = self._hashes.get(exchange)
        if hashes is None and not edits:
            return value
        old = bytes_from_json(value)
        new = overwrite(old, edits)
        if hashes is not None and code == "read":
            hashes.old.update(old)
            hashes.new.update(new)
        return value if new == old else json.loads(json_bytes(new))

    def _ended(self, exchange: int, value: object) -> object:
        hashes = self._hashes.pop(exchange, None)
        if hashes is None or not isinstance(value, dict):
            return value
        if value["sha256"] != hashes.old.hexdigest() and not value.get("recorder"):
            return value
        return {**value, "sha256": hashes.new.hexdigest()}


def _record(t_ns: int, exchange: int, code: str, value: object) -> bytes:
    return f"[{t_ns},{exchange},{json_text(code)},{json_text(value)}]\n".encode()


def _merged(known: Iterable[Sequence[object]], spans: Sequence[SpanOf]) -> list[SpanOf]:
    """The spans of a `masked` record and further ones, in their order."""
    return sorted({*((int(str(a)), int(str(b)), str(name)) for a, b, name in known), *spans})
