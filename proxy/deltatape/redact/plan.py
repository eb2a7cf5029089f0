"""What has to change on a tape, record by record; also the search that changes nothing.

Strategy: one pass over the records puts the bodies together and searches each as soon as it is
whole; what is found is kept as changes of single records, so that a second pass can rewrite the
tape line by line. In memory stand the bodies of open exchanges, the log, and the changes.

What comes after an exchange's `end` is no part of it, but may hold secrets like anything else.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from deltatape.model.exchange import MaskedSpan
from deltatape.redact.bodies import (
    Body,
    Coded,
    Looked,
    Side,
    blanked,
    by_line,
    codings_of,
    look,
    mend,
)
from deltatape.redact.content import mask, vocabulary
from deltatape.redact.eventstream import Checked
from deltatape.redact.fillers import Fillers
from deltatape.redact.layers import Edit
from deltatape.redact.search import Secret, overwrite
from deltatape.redact.strings import clean
from deltatape.rules.words import count
from deltatape.tape.assemble import Numbered
from deltatape.tape.heads import RequestHead, ResponseStart
from deltatape.tape.mask import Masker
from deltatape.tape.payload import (
    BodyRead,
    Boundaries,
    Ending,
    LogLine,
    MaskedSpans,
    RequestBody,
)
from deltatape.tape.record import Record

SpanOf = tuple[int, int, str]
"""`[start, end)` in a record, and the hash of the credential that stood there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leak:
    """A secret, by its place; the secret itself is nowhere in it."""

    kind: str
    certain: bool
    exchange: int
    line: int
    """The record in which it begins."""
    where: str
    """`response body`, `stderr`, `header X-Debug`, ..."""
    span: tuple[int, int] | None
    """In the body as taped, or in the one before content-coding if it is `coded`."""
    coded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Opaque:
    """A body that nobody can look into."""

    exchange: int
    line: int
    where: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """Checksums of a response body of Amazon's messages that do not fit, by their place in it."""

    exchange: int
    line: int
    """The record in which the first one is."""
    masked: tuple[int, ...]
    """Those of messages in which bytes were masked."""
    wrong: tuple[int, ...]
    """Where the other messages begin."""


@dataclass(slots=True, kw_only=True)
class Plan:
    """The changes of a tape, by line number."""

    edits: dict[int, list[Edit]] = field(default_factory=dict)
    spans: dict[int, list[SpanOf]] = field(default_factory=dict)
    """To be told in a `masked` record: by the line before which it stands, or that is one."""
    remarks: dict[int, str] = field(default_factory=dict)
    """Notes to be put before a line."""
    changed: set[int] = field(default_factory=set)
    """Exchanges whose response changes."""
    leaks: list[Leak] = field(default_factory=list)
    opaque: list[Opaque] = field(default_factory=list)
    sums: list[Sums] = field(default_factory=list)

    @property
    def kinds(self) -> Counter[str]:
        """How many secrets of each kind were found."""
        return Counter(leak.kind for leak in self.leaks)


class Planner:
    """Takes the records of a tape, in order, and makes the plan.

    Args:
        masker: makes the hashes of what is overwritten.
        fillers: what prose gives way to; None: it stays.
    """

    def __init__(self, masker: Masker, fillers: Fillers | None = None) -> None:
        self._masker = masker
        self._fillers = fillers
        self._plan = Plan()
        self._bodies: dict[tuple[int, Side], Body] = {}
        self._before: dict[int, int] = {}
        self._masked: dict[int, tuple[MaskedSpan, ...]] = {}
        self._anchor: dict[int, int] = {}

    def take(self, line: int, record: Record) -> None:
        """The next record."""
        exchange, payload = record.exchange, record.payload
        match payload:
            case RequestBody(data=data):
                self._piece(self._body(exchange, Side.REQUEST), line, data)
            case BodyRead(data=data):
                self._piece(self._body(exchange, Side.RESPONSE), line, data)
            case LogLine(line=data):
                self._piece(self._body(exchange, Side(payload.stream.value)), line, data)
            case MaskedSpans(spans=spans):
                self._before[exchange] = line
                self._masked[exchange] = spans
            case Boundaries():  # stay with their read
                self._before.setdefault(exchange, line)
            case _:
                self._head(line, record)

    def finish(self) -> Plan:
        """The plan, when there are no more records."""
        for key in list(self._bodies):
            self._close(key)
        return self._plan

    def _body(self, exchange: int, side: Side) -> Body:
        return self._bodies.setdefault((exchange, side), Body(exchange=exchange, side=side))

    def _piece(self, body: Body, line: int, data: bytes) -> None:
        self._anchor[line] = self._before.pop(body.exchange, line)
        body.add(line, data, self._masked.pop(body.exchange, ()))

    def _head(self, line: int, record: Record) -> None:
        exchange, payload = record.exchange, record.payload
        for hit in clean(payload.to_json(), self._masker).hits:
            leak = Leak(
                kind=hit.kind,
                certain=hit.certain,
                exchange=exchange,
                line=line,
                where=f"{payload.code} {hit.where}".rstrip(),
                span=None,
            )
            self._plan.leaks.append(leak)
        match payload:
            case RequestHead(headers=headers):
                self._body(exchange, Side.REQUEST).codings = codings_of(headers)
            case ResponseStart(headers=headers):
                self._body(exchange, Side.RESPONSE).codings = codings_of(headers)
            case Ending():
                self._close((exchange, Side.REQUEST))
                self._close((exchange, Side.RESPONSE))
            case _:
                pass

    def _close(self, key: tuple[int, Side]) -> None:
        """Search a body that is whole."""
        body = self._bodies.pop(key, None)
        if body is None or not body.pieces:
            return
        sums = mend(body)
        self._change(body, sums.mends)
        self._tell_sums(body, sums)
        found = look(body)
        self._tell(body, found)
        if found.coded is Coded.NO:
            edits = tuple(edit for secret in found.secrets for edit in secret.edits)
            self._mark(body, found.secrets)
            edits += self._content(body, overwrite(bytes(body.data), edits))
        else:
            edits = self._blank(body) if found.secrets or self._fillers else ()
        self._change(body, edits)
        for piece in body.pieces:
            self._anchor.pop(piece.line)

    def _tell(self, body: Body, found: Looked) -> None:
        coded = found.coded is Coded.READ
        for secret in found.secrets:
            start = secret.spans[0][0]
            leak = Leak(
                kind=secret.kind,
                certain=secret.certain,
                exchange=body.exchange,
                line=body.pieces[0].line if coded else body.at(start).line,
                where=body.side.value,
                span=(start, secret.spans[-1][1]),
                coded=coded,
            )
            self._plan.leaks.append(leak)
        if found.detail:
            self._plan.opaque.append(
                Opaque(
                    exchange=body.exchange,
                    line=body.pieces[0].line,
                    where=body.side.value,
                    detail=found.detail,
                )
            )

    def _tell_sums(self, body: Body, sums: Checked) -> None:
        masked = tuple(edit.start for edit in sums.mends)
        if masked or sums.wrong:
            line = body.at(min((*masked, *sums.wrong))).line
            told = Sums(exchange=body.exchange, line=line, masked=masked, wrong=sums.wrong)
            self._plan.sums.append(told)
        if masked:
            self._plan.remarks[self._anchor[body.pieces[0].line]] = (
                f"{count(len(masked), 'checksum')} of the {body.side} made anew: of messages in "
                "which bytes are masked"
            )

    def _blank(self, body: Body) -> tuple[Edit, ...]:
        edits = blanked(body)
        if overwrite(bytes(body.data), edits) == body.data:
            return ()
        name = ", ".join(body.codings)
        self._plan.remarks[self._anchor[body.pieces[0].line]] = (
            f"the {body.side} was overwritten as a whole: behind its content-coding ({name}) "
            "nothing can be overwritten byte by byte"
        )
        return edits

    def _mark(self, body: Body, found: Iterable[Secret]) -> None:
        """Have `masked` records tell what is overwritten."""
        for secret in found:
            name = self._masker.value(secret.value).hash
            for span in secret.spans:
                for piece, start, end in body.cut(*span):
                    anchor = self._anchor[piece.line]
                    self._plan.spans.setdefault(anchor, []).append((start, end, name))

    def _content(self, body: Body, data: bytes) -> tuple[Edit, ...]:
        if self._fillers is None:
            return ()
        if body.side in (Side.REQUEST, Side.RESPONSE):
            return mask(data, self._fillers)
        lines = [
            (piece.start, data[piece.start : piece.start + piece.size]) for piece in body.pieces
        ]
        masked = [(at, self._fillers.masked(line.decode("latin-1"))) for at, line in lines]
        return tuple(Edit(at, text) for at, text in masked)

    def _change(self, body: Body, edits: Iterable[Edit]) -> None:
        for line, edit in by_line(body, edits):
            self._plan.edits.setdefault(line, []).append(edit)
            if body.side is Side.RESPONSE:
                self._plan.changed.add(body.exchange)


def words_of(records: Iterable[Numbered]) -> frozenset[str]:
    """The vocabulary of a tape: what the tools of its requests define."""
    words: set[str] = set()
    bodies: dict[int, bytearray] = {}
    for _, record in records:
        if isinstance(record.payload, RequestBody):
            bodies.setdefault(record.exchange, bytearray()).extend(record.payload.data)
        elif isinstance(record.payload, ResponseStart | Ending):
            words |= vocabulary(bytes(bodies.pop(record.exchange, b"")))
    for body in bodies.values():
        words |= vocabulary(bytes(body))
    return frozenset(words)
