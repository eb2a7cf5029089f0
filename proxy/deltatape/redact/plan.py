"""Plan the changes of a tape, record by record, and write the changed lines.

Strategy: a first pass over the records joins the bodies and searches each when it is complete;
matches become changes of single records, so that a second pass can rewrite the tape line by line.
Memory holds the bodies of open exchanges, the log, and the changes.

Records after an exchange's `end` are not part of it, but are searched, too.
"""

import bisect
import enum
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import NamedTuple, Protocol

from deltatape.model.content_coding import ContentDecoder, decode_body
from deltatape.model.exchange import MaskedSpan, content_codings, uncoded_headers
from deltatape.model.websocket import Side
from deltatape.printable import count
from deltatape.redact.body_texts import texts_to_search
from deltatape.redact.content import mask, vocabulary
from deltatape.redact.eventstream import ChecksummedBody, check_checksums, unfold
from deltatape.redact.fillers import Fillers
from deltatape.redact.json_strings import framed
from deltatape.redact.payload_strings import (
    PlainText,
    fill_payload,
    joined_texts,
    plain_texts,
    redact_payload,
)
from deltatape.redact.search import found_secrets
from deltatape.secret_text.escaped_text import LayeredView, Overwrite, overwrite
from deltatape.secret_text.prefilter import may_any_hold_secret
from deltatape.secret_text.search import Secret
from deltatape.tape.assemble import Numbered
from deltatape.tape.decode import CODES
from deltatape.tape.encode import json_bytes, payload_record
from deltatape.tape.fields import bytes_from_json, headers_from_json, headers_to_json
from deltatape.tape.mask import Masker
from deltatape.tape.payload import (
    BodyRead,
    Boundaries,
    EndRecord,
    FrameRecord,
    Idle,
    LogLine,
    MaskedSpans,
    ParsedAs,
    RemarkRecord,
    RequestBodyPiece,
    RequestEnd,
    RequestHeadRecord,
    ResponseStart,
    SentUpstream,
)
from deltatape.tape.record import Record, Unknown
from deltatape.tape.seen_credentials import blanked, merged
from deltatape.tape.serialize import request_body
from deltatape.wire.websocket import is_control

_NUMBERS = (Idle, RequestEnd, SentUpstream)
"""Payloads without any text."""
_TOGETHER, _TOGETHER_BYTES = 512, 500_000
"""How many texts are searched at once, and the most bytes of them."""
_CLEARED = 4096
"""How many strings without a secret are remembered: heads repeat most of theirs."""


class BodySide(enum.StrEnum):
    """The place of the bytes: a body, a message, or the application's output."""

    REQUEST = "request body"
    RESPONSE = "response body"
    CLIENT = "message of the client"
    SERVER = "message of the server"
    STDOUT = "stdout"
    STDERR = "stderr"
    OUTPUT = "output"


_LOGS = frozenset((BodySide.STDOUT, BodySide.STDERR, BodySide.OUTPUT))
_SIDES = {Side.CLIENT: BodySide.CLIENT, Side.SERVER: BodySide.SERVER}
_EMPTY = 8
"""Bytes that an empty message may have when it is compressed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeakedSecret:
    """A secret's place, without the secret itself."""

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
class OpaqueBody:
    """A body that cannot be decoded."""

    exchange: int
    line: int
    where: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChecksumErrors:
    """Wrong checksums in a response body of Amazon's messages, by their place."""

    exchange: int
    line: int
    """The record in which the first one is."""
    masked: tuple[int, ...]
    """The positions of messages in which bytes were masked."""
    wrong: tuple[int, ...]
    """Where the other messages begin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UncodedBody:
    """A redacted request body that the tape has without its content-coding."""

    data: bytes
    masked: tuple[MaskedSpan, ...]


@dataclass(slots=True, kw_only=True)
class RedactionPlan:
    """The changes of a tape, by line number."""

    edits: dict[int, list[Overwrite]] = field(default_factory=dict)
    spans: dict[int, list[MaskedSpan]] = field(default_factory=dict)
    """To be listed in a `masked` record: by the line that it precedes, or that is one."""
    remarks: dict[int, str] = field(default_factory=dict)
    """Notes to be put before a line."""
    changed: set[int] = field(default_factory=set)
    """Exchanges whose response changes, or the messages of whose WebSocket."""
    unwired: set[int] = field(default_factory=set)
    """Lines of messages whose compressed form must be removed."""
    leaks: list[LeakedSecret] = field(default_factory=list)
    opaque: list[OpaqueBody] = field(default_factory=list)
    sums: list[ChecksumErrors] = field(default_factory=list)
    undecoded: set[int] = field(default_factory=set)
    """Lines of `masked` records whose `decoded` is about a body that is overwritten."""
    uncoded: dict[int, UncodedBody] = field(default_factory=dict)
    """Request bodies to be written without their content-coding, by their first line."""
    left_out: set[int] = field(default_factory=set)
    """Their other lines, which are not to be written."""
    uncoded_lengths: dict[int, int] = field(default_factory=dict)
    """How long they are, by exchange."""

    @property
    def kinds(self) -> Counter[str]:
        """Return how many secrets of each kind were found."""
        return Counter(leak.kind for leak in self.leaks)


# The bodies of a tape as they are put together from its records, and what is secret in them.
#
# A body is the request's or the response's of an exchange, or all lines of one stream of the
# recorded program. Its secrets are searched in the whole, since a record may begin anywhere in
# them.
#
# A body with a content-coding cannot be changed byte by byte: it is decoded and searched. If it
# holds anything, that of a response is overwritten as a whole. That of a request is written without
# its coding: nothing on the tape depends on its bytes, and the tape can still be read back and
# replayed.


class ContentCoding(enum.Enum):
    """Whether a content-coding can be decoded."""

    NO = enum.auto()
    READ = enum.auto()
    """It was decoded as far as possible."""
    UNREADABLE = enum.auto()
    """Nobody knows what is in it."""


class BodyPiece(NamedTuple):
    """A record's part of a body."""

    line: int
    start: int
    size: int


@dataclass(slots=True, kw_only=True)
class RecordedBody:
    """A body and the records that contain it."""

    exchange: int
    side: BodySide
    codings: tuple[str, ...] = ()
    pieces: list[BodyPiece] = field(default_factory=list)
    data: bytearray = field(default_factory=bytearray)
    masked: list[tuple[int, int]] = field(default_factory=list)
    """What the tape itself says was overwritten."""
    hidden: dict[int, tuple[MaskedSpan, ...]] = field(default_factory=dict)
    """What it says is a credential under the content-coding, by the line that says it."""
    wired: list[int] = field(default_factory=list)
    """The lines that have a compressed message also as it was sent."""
    unread: int = 0
    """How many bytes those are."""
    ends: bool = True
    """Whether the present frame is the last one of its message."""

    def add(self, line: int, data: bytes, masked: Sequence[MaskedSpan] = ()) -> None:
        """Add the next record; the line of a log includes its line feed."""
        at = len(self.data)
        if masked:
            self.masked += ((at + start, at + end) for start, end, _ in masked)
        self.pieces.append(BodyPiece(line, at, len(data)))
        self.data += data
        if self.side in _LOGS:
            self.data += b"\n"

    def at(self, offset: int) -> BodyPiece:
        """Return the record with the byte at `offset`."""
        return self.pieces[bisect.bisect_right(self.pieces, offset, key=lambda p: p.start) - 1]

    def cut(self, start: int, end: int) -> Iterator[tuple[BodyPiece, int, int]]:
        """Yield the records with `[start, end)`, each with its part."""
        place = bisect.bisect_right(self.pieces, start, key=lambda piece: piece.start) - 1
        for piece in map(self.pieces.__getitem__, range(place, len(self.pieces))):
            if piece.start >= end:
                return
            first, last = max(start, piece.start), min(end, piece.start + piece.size)
            if first < last:
                yield piece, first - piece.start, last - piece.start


_LONGEST_JOINED = 16_384
"""Messages of more bytes are no pieces of a text that comes in several."""


@dataclass(slots=True)
class _JoinedMessages:
    """The messages of one side of a WebSocket that are JSON, as lines: a text may be in several."""

    body: RecordedBody
    starts: list[int] = field(default_factory=list)
    wired: list[tuple[int, ...]] = field(default_factory=list)
    """Lines of each message; see `RecordedBody.wired`."""
    first_lines: dict[int, int] = field(default_factory=dict)

    def add(self, message: RecordedBody, first_lines: Mapping[int, int]) -> None:
        """Add the next message."""
        at = len(self.body.data)
        self.starts.append(at)
        self.wired.append(tuple(message.wired))
        for line, start, size in message.pieces:
            self.body.pieces.append(BodyPiece(line, at + start, size))
            self.first_lines[line] = first_lines.get(line, line)
        self.body.data += message.data.replace(b"\n", b" ") + b"\n"

    def messages_with(self, secret: Secret) -> list[int]:
        """Return the places of the messages in which a secret is."""
        at = (bisect.bisect_right(self.starts, start) - 1 for start, _ in secret.spans)
        return [*dict.fromkeys(at)]


class ReadableBody(NamedTuple):
    """A body in the form that is searched."""

    coded: ContentCoding
    plain: bytes
    """Decoded if `coded` is READ."""
    detail: str = ""
    """Why it, or a part of it, is unreadable."""


class _Plan(Protocol):
    def __call__(self, *, may_hold: bool) -> None:
        """Plan the changes, after a search if there may be a secret."""


class _Waiting(NamedTuple):
    """A record or a body to search."""

    texts: Sequence[bytes] | None
    """`may_hold_secret` finds something in one if there is a secret; None: only an exact search
    tells."""
    plan: _Plan


class RedactionPlanner:
    """Reads the records of a tape, in order, and makes the plan.

    Strategy: nearly nothing has a secret. What the quick search needs to see of some exchanges is
    put together and searched at once, since a search costs more than its text for texts as small as
    heads; only if that finds something, each is searched by itself, in their order.

    Args:
        masker: makes the hashes of what is overwritten.
        fillers: replace prose; None: prose stays.
    """

    def __init__(self, masker: Masker, fillers: Fillers | None = None) -> None:
        self._masker = masker
        self._fillers = fillers
        self._plan = RedactionPlan()
        self._bodies: dict[tuple[int, BodySide], RecordedBody] = {}
        self._joined: dict[tuple[int, BodySide], _JoinedMessages] = {}
        self._pending_lines: dict[int, int] = {}
        self._pending_spans: dict[int, tuple[MaskedSpan, ...]] = {}
        self._pending_decoded: dict[int, dict[int, tuple[MaskedSpan, ...]]] = {}
        self._first_lines: dict[int, int] = {}
        self._waiting: list[_Waiting] = []
        self._waiting_bytes = 0
        self._cleared: set[PlainText] = set()

    def add_read(self, line: int, exchange: int, data: bytes) -> None:
        """Read the next record, a read."""
        self._add_piece(self._body(exchange, BodySide.RESPONSE), line, data)

    def add(self, line: int, record: Record) -> None:
        """Read the next record.

        Args:
            line: its number.
            record: with its time and exchange.
        """
        exchange, payload = record.exchange, record.payload
        match payload:
            case RequestBodyPiece(data=data):
                self._add_piece(self._body(exchange, BodySide.REQUEST), line, data)
            case FrameRecord():
                self._add_frame(line, exchange, payload)
            case BodyRead(data=data):
                self.add_read(line, exchange, data)
            case LogLine(line=data):
                self._add_piece(self._body(exchange, BodySide(payload.stream.value)), line, data)
            case MaskedSpans():
                self._add_masked(exchange, line, payload)
            case Boundaries():  # stay with their read
                self._pending_lines.setdefault(exchange, line)
            case _:
                self._add_other(line, record)

    def finish(self) -> RedactionPlan:
        """Return the plan after the last record."""
        for key in list(self._bodies):
            self._close(key)
        for key in list(self._joined):
            self._close_joined(key)
        self._search()
        return self._plan

    def _body(self, exchange: int, side: BodySide) -> RecordedBody:
        body = self._bodies.get((exchange, side))
        if body is None:
            body = self._bodies[exchange, side] = RecordedBody(exchange=exchange, side=side)
        return body

    def _add_masked(self, exchange: int, line: int, masked: MaskedSpans) -> None:
        if masked.decoded:
            self._pending_decoded.setdefault(exchange, {})[line] = masked.decoded
        if masked.spans or not masked.decoded:
            self._pending_lines[exchange] = line
            self._pending_spans[exchange] = masked.spans

    def _add_piece(self, body: RecordedBody, line: int, data: bytes) -> None:
        pending = self._pending_spans
        if self._pending_lines:
            self._first_lines[line] = self._pending_lines.pop(body.exchange, line)
        body.add(line, data, pending.pop(body.exchange, ()) if pending else ())
        if self._pending_decoded:
            body.hidden |= self._pending_decoded.pop(body.exchange, {})

    def _add_frame(self, line: int, exchange: int, record: FrameRecord) -> None:
        """Add a piece of a message; each message, and each control frame, is a separate body."""
        side = _SIDES[record.side]
        apart = record.raw or is_control(record.opcode)
        body = RecordedBody(exchange=exchange, side=side) if apart else self._body(exchange, side)
        self._add_piece(body, line, record.data)
        if record.wire is not None:
            body.wired.append(line)
            body.unread += len(record.wire)
        if apart:
            self._enqueue_body(body)
            return
        if record.head is not None:
            body.ends = record.head.fin
        if body.ends and not record.more:
            if body.data.startswith(b"{") and len(body.data) <= _LONGEST_JOINED:
                apart_too = _JoinedMessages(RecordedBody(exchange=exchange, side=side))
                joined = self._joined.setdefault((exchange, side), apart_too)
                joined.add(body, self._first_lines)
            self._close((exchange, side))

    def _add_other(self, line: int, record: Record) -> None:
        exchange, payload = record.exchange, record.payload
        if not isinstance(payload, _NUMBERS):
            self._enqueue_record(line, record)
        match payload:
            case RequestHeadRecord(headers=headers):
                self._body(exchange, BodySide.REQUEST).codings = content_codings(headers)
            case ResponseStart(headers=headers):
                self._body(exchange, BodySide.RESPONSE).codings = content_codings(headers)
            case EndRecord():
                for side in (BodySide.REQUEST, BodySide.RESPONSE, BodySide.CLIENT, BodySide.SERVER):
                    self._close((exchange, side))
                    self._close_joined((exchange, side))
            case _:
                pass

    def _enqueue_record(self, line: int, record: Record) -> None:
        texts = plain_texts(record.payload, self._masker, self._cleared)
        plan = partial(self._plan_record, line, record, texts or ())
        if texts is None:
            self._enqueue(_Waiting(None, plan), 0)
        elif texts:
            text = joined_texts(texts)
            self._enqueue(_Waiting((text,), plan), len(text))

    def _enqueue(self, waiting: _Waiting, size: int) -> None:
        self._waiting.append(waiting)
        self._waiting_bytes += size
        if len(self._waiting) >= _TOGETHER or self._waiting_bytes > _TOGETHER_BYTES:
            self._search()

    def _search(self) -> None:
        """Search all that waits."""
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if len(self._cleared) > _CLEARED:
            self._cleared.clear()
        every = dict.fromkeys(chain.from_iterable(each.texts or () for each in waiting))
        may_hold = may_any_hold_secret(every)
        for texts, plan in waiting:
            plan(may_hold=texts is None or (may_hold and may_any_hold_secret(texts)))

    def _plan_record(
        self, line: int, record: Record, texts: Iterable[PlainText], *, may_hold: bool
    ) -> None:
        if not may_hold:
            self._cleared.update(texts)
            return
        for hit in redact_payload(record.payload.to_json(), self._masker).hits:
            leak = LeakedSecret(
                kind=hit.kind,
                certain=hit.certain,
                exchange=record.exchange,
                line=line,
                where=f"{record.payload.code} {hit.where}".rstrip(),
                span=None,
            )
            self._plan.leaks.append(leak)

    def _close(self, key: tuple[int, BodySide]) -> None:
        """Have a complete body searched."""
        body = self._bodies.pop(key, None)
        if body is not None and body.pieces:
            self._enqueue_body(body)

    def _close_joined(self, key: tuple[int, BodySide]) -> None:
        """Search the messages of a side together, and each by itself."""
        joined = self._joined.pop(key, None)
        if joined is not None and len(joined.starts) > 1:
            data = bytes(joined.body.data)
            texts = texts_to_search(data)
            self._enqueue(_Waiting(texts, partial(self._plan_joined, joined, data)), len(data))

    def _plan_joined(self, joined: _JoinedMessages, data: bytes, *, may_hold: bool) -> None:
        """Plan what is secret in several messages together."""
        for secret in found_secrets(data) if may_hold else ():
            messages = joined.messages_with(secret)
            if len(messages) == 1:
                continue  # found in the message
            body, name = joined.body, self._masker.value(secret.value).hash
            self._plan.leaks.append(
                LeakedSecret(
                    kind=secret.kind,
                    certain=secret.certain,
                    exchange=body.exchange,
                    line=body.at(secret.spans[0][0]).line,
                    where=body.side.value,
                    span=None,
                )
            )
            for span in secret.spans:
                for piece, start, end in body.cut(*span):
                    first = joined.first_lines[piece.line]
                    self._plan.spans.setdefault(first, []).append((start, end, name))
            self._change(body, secret.edits)
            for place in messages:
                self._plan.unwired.update(joined.wired[place])

    def _enqueue_body(self, body: RecordedBody) -> None:
        sums = repair_checksums(body)
        self._change(body, sums.repairs)
        self._report_checksums(body, sums)
        found = readable(body)
        texts = texts_to_search(found.plain)
        self._enqueue(_Waiting(texts, partial(self._plan_body, body, found)), len(found.plain))

    def _plan_body(self, body: RecordedBody, found: ReadableBody, *, may_hold: bool) -> None:
        secrets = found_secrets(found.plain) if may_hold else ()
        self._report_secrets(body, found, secrets)
        if found.coded is ContentCoding.NO or body.wired:
            edits = tuple(edit for secret in secrets for edit in secret.edits)
            self._list_masked(body, secrets)
            edits += self._fill_content(body, overwrite(body.data, edits))
        elif body.side is BodySide.REQUEST and not found.detail:
            self._uncode(body, found.plain, secrets)
            edits = ()
        else:
            is_secret = secrets or body.hidden or self._fillers
            edits = self._overwrite_whole(body) if is_secret else ()
        self._change(body, edits)
        if edits or (self._fillers and found.coded is ContentCoding.UNREADABLE):
            self._plan.unwired.update(body.wired)
        for piece in body.pieces if self._first_lines else ():
            self._first_lines.pop(piece.line, None)

    def _first_line(self, line: int) -> int:
        """Return the line of the first record that belongs to a piece of a body."""
        return self._first_lines.get(line, line)

    def _report_secrets(
        self, body: RecordedBody, found: ReadableBody, secrets: Iterable[Secret]
    ) -> None:
        coded = found.coded is ContentCoding.READ
        known = [(span[:2], line) for line, spans in body.hidden.items() for span in spans]
        for place, line in known:
            leak = LeakedSecret(
                kind="unmasked credential",
                certain=True,
                exchange=body.exchange,
                line=line,
                where=body.side.value,
                span=place,
                coded=True,
            )
            self._plan.leaks.append(leak)
        for secret in secrets:
            start = secret.spans[0][0]
            leak = LeakedSecret(
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
                OpaqueBody(
                    exchange=body.exchange,
                    line=body.pieces[0].line,
                    where=body.side.value,
                    detail=found.detail,
                )
            )

    def _report_checksums(self, body: RecordedBody, sums: ChecksummedBody) -> None:
        masked = tuple(edit.start for edit in sums.repairs)
        if masked or sums.wrong:
            line = body.at(min((*masked, *sums.wrong))).line
            self._plan.sums.append(
                ChecksumErrors(exchange=body.exchange, line=line, masked=masked, wrong=sums.wrong)
            )
        if masked:
            self._plan.remarks[self._first_line(body.pieces[0].line)] = (
                f"{count(len(masked), 'checksum')} in the {body.side} recomputed, for messages with"
                " masked bytes"
            )

    def _overwrite_whole(self, body: RecordedBody) -> tuple[Overwrite, ...]:
        self._plan.undecoded |= body.hidden.keys()
        edits = (Overwrite(0, "*" * len(body.data)),)
        if overwrite(body.data, edits) == body.data:
            return ()
        name = ", ".join(body.codings)
        self._plan.remarks[self._first_line(body.pieces[0].line)] = (
            f"the whole {body.side} was overwritten, since single bytes cannot be overwritten under"
            f" its content-coding ({name})"
        )
        return edits

    def _uncode(self, body: RecordedBody, plain: bytes, found: Iterable[Secret]) -> None:
        """Redact a request body, without its content-coding, if there is anything to redact."""
        masked = [span for spans in body.hidden.values() for span in spans]
        for secret in found:
            name = self._masker.value(secret.value).hash
            masked += ((start, end, name) for start, end in secret.spans)
        data = overwrite(plain, (edit for secret in found for edit in secret.edits))
        data = blanked(data, (span for spans in body.hidden.values() for span in spans))
        if self._fillers is not None:
            data = overwrite(data, mask(data, self._fillers))
        if data == plain:
            return
        first, *others = (piece.line for piece in body.pieces)
        self._plan.uncoded[first] = UncodedBody(data=data, masked=merged(masked))
        self._plan.uncoded_lengths[body.exchange] = len(data)
        told = (self._first_line(piece.line) for piece in body.pieces)
        self._plan.left_out |= {*others, *told, *body.hidden} - {first}
        self._plan.remarks[first] = (
            "the request body is written without its content-coding"
            f" ({', '.join(body.codings)}), since single bytes cannot be overwritten under it"
        )

    def _list_masked(self, body: RecordedBody, found: Iterable[Secret]) -> None:
        """Add overwritten spans to the `masked` records."""
        for secret in found:
            name = self._masker.value(secret.value).hash
            for span in secret.spans:
                for piece, start, end in body.cut(*span):
                    first = self._first_line(piece.line)
                    self._plan.spans.setdefault(first, []).append((start, end, name))

    def _fill_content(self, body: RecordedBody, data: bytes) -> tuple[Overwrite, ...]:
        if self._fillers is None:
            return ()
        if body.side not in _LOGS:
            return mask(data, self._fillers)
        lines = [
            (piece.start, data[piece.start : piece.start + piece.size]) for piece in body.pieces
        ]
        masked = [(at, self._fillers.masked(line.decode("latin-1"))) for at, line in lines]
        return tuple(Overwrite(at, text) for at, text in masked)

    def _change(self, body: RecordedBody, edits: Iterable[Overwrite]) -> None:
        for line, edit in by_line(body, edits):
            self._plan.edits.setdefault(line, []).append(edit)
            if body.side in (BodySide.RESPONSE, BodySide.CLIENT, BodySide.SERVER):
                self._plan.changed.add(body.exchange)


def words_of(records: Iterable[Numbered]) -> frozenset[str]:
    """Return the vocabulary of a tape: the words that the tools of its requests define."""
    words: set[str] = set()
    bodies: dict[int, bytearray] = {}
    codings: dict[int, tuple[str, ...]] = {}
    for _, record in records:
        exchange, payload = record.exchange, record.payload
        if isinstance(payload, RequestHeadRecord):
            codings[exchange] = content_codings(payload.headers)
        elif isinstance(payload, RequestBodyPiece):
            bodies.setdefault(exchange, bytearray()).extend(payload.data)
        elif isinstance(payload, FrameRecord) and payload.side is Side.CLIENT:
            message = bodies.setdefault(exchange, bytearray())
            message += payload.data
            if not payload.more:
                words |= vocabulary(bytes(message))
                message.clear()
        elif isinstance(payload, ResponseStart | EndRecord):
            body = bytes(bodies.pop(exchange, b""))
            words |= vocabulary(decode_body(body, codings.pop(exchange, ())).data)
    for exchange, rest in bodies.items():
        words |= vocabulary(decode_body(bytes(rest), codings.get(exchange, ())).data)
    return frozenset(words)


def repair_checksums(body: RecordedBody) -> ChecksummedBody:
    """Correct the checksums of a body that masking had broken; return what was wrong."""
    if body.side is not BodySide.RESPONSE or body.codings:
        return ChecksummedBody((), ())
    found = check_checksums(bytes(body.data), body.masked)
    if found.repairs:
        body.data[:] = overwrite(body.data, found.repairs)
    return found


def readable(body: RecordedBody) -> ReadableBody:
    """Return a body, decoded if it is coded."""
    data = bytes(body.data)
    if not data and body.unread > _EMPTY:
        return ReadableBody(ContentCoding.UNREADABLE, b"", "the recorder could not decompress it")
    if not body.codings:
        return ReadableBody(ContentCoding.NO, data)
    decoder = ContentDecoder(body.codings)
    plain = decoder.feed(data)
    decoder.end()
    fault = decoder.fault
    if fault is None or plain:
        return ReadableBody(ContentCoding.READ, plain, fault.detail if fault else "")
    if framed(LayeredView(data.decode("latin-1"))).events or unfold(data):
        # What was imported from a file has lost its coding while the head still names it.
        return ReadableBody(ContentCoding.NO, data)
    return ReadableBody(ContentCoding.UNREADABLE, b"", fault.detail)


def by_line(body: RecordedBody, edits: Iterable[Overwrite]) -> Iterator[tuple[int, Overwrite]]:
    """Yield changes of a body as changes of its records, with the line of each."""
    for edit in edits:
        for piece, start, end in body.cut(edit.start, edit.end):
            offset = piece.start + start - edit.start
            yield piece.line, Overwrite(start, edit.text[offset : offset + end - start])


# The lines of a tape, with what a plan says changed.
#
# Lines that nothing changes are kept byte by byte, also those of codes that nobody knows. The
# header is kept, its `id` included: a redacted tape is the same recording with less in it, and
# redacting it again changes nothing. `end.sha256` is recreated over what the tape now holds, since
# the old one would let anyone try guesses at what was there; if it did not fit before, it stays as
# it is.
#
# Format: recordings/README.md.

CONTENT = "content was replaced by fillers of the same length"
_BODIES = frozenset(("request-body", "read"))


class TapeRewriter:
    """Rewrites the lines of a tape, in order.

    Args:
        plan: the plan of the same tape.
        masker: as of the plan.
        fillers: as of the plan; a note mentions them.
    """

    def __init__(self, plan: RedactionPlan, masker: Masker, fillers: Fillers | None = None) -> None:
        self._plan = plan
        self._masker = masker
        self._fillers = fillers
        self._hashes = {exchange: (hashlib.sha256(), hashlib.sha256()) for exchange in plan.changed}
        """The hashes of each changed response: as it was, and as it is now."""
        self._frames = {exchange: (hashlib.sha256(), hashlib.sha256()) for exchange in plan.changed}
        """The same of the messages of a WebSocket."""
        self._edited = set(plan.changed)

    def lines(self, number: int, line: bytes) -> Iterator[bytes]:
        """Yield the replacement of line `number`, a record with its line feed."""
        if number == 2 and self._fillers is not None:  # noqa: PLR2004 - the first record
            note = payload_record(0, 0, RemarkRecord(text=CONTENT))
            if line != note:
                yield note
        t_ns, exchange, code, value = json.loads(line)
        if number in self._plan.edits or number in self._plan.uncoded:
            self._edited.add(exchange)
        if number in self._plan.left_out:
            return
        if code == ParsedAs.code and exchange in self._edited:
            return  # it describes bytes that are no longer on the tape
        if number in self._plan.remarks:
            remark = RemarkRecord(text=self._plan.remarks[number])
            yield payload_record(t_ns, exchange, remark)
        body = self._plan.uncoded.get(number)
        if body is not None:
            for payload in chain.from_iterable(request_body(body.data, body.masked)):
                yield payload_record(t_ns, exchange, payload)
            return
        spans = self._plan.spans.get(number, [])
        if number in self._plan.undecoded:
            left = Unknown(code=code, value={"spans": value["spans"]})
            if value["spans"]:
                yield payload_record(t_ns, exchange, left)
            return
        if code == "masked" and spans:
            merged = {**value, "spans": _merged(value["spans"], spans)}
            yield payload_record(t_ns, exchange, Unknown(code=code, value=merged))
            return
        if spans:
            yield payload_record(t_ns, exchange, MaskedSpans(spans=tuple(_merged([], spans))))
        changed = self._changed(number, exchange, code, value)
        if changed != value:
            line = payload_record(t_ns, exchange, Unknown(code=code, value=changed))
        yield line

    def _changed(self, number: int, exchange: int, code: str, value: object) -> object:
        edits = self._plan.edits.get(number, [])
        if code in _BODIES:
            return self._body(exchange, code, value, edits)
        if code == FrameRecord.code:
            return self._frame(number, exchange, value, edits)
        if code == "log" and isinstance(value, dict):
            line = overwrite(bytes_from_json(value["line"]), edits)
            return {**value, "line": json.loads(json_bytes(line))} if edits else value
        if code in ("masked", "boundaries"):
            return value
        cleaned = redact_payload(value, self._masker).value
        if code == RequestHeadRecord.code and exchange in self._plan.uncoded_lengths:
            return _without_coding(cleaned, self._plan.uncoded_lengths[exchange])
        if code not in CODES and self._fillers is not None:
            return fill_payload(cleaned, self._fillers)
        return self._with_new_hash(exchange, cleaned) if code == "end" else cleaned

    def _body(self, exchange: int, code: str, value: object, edits: Sequence[Overwrite]) -> object:
        hashes = self._hashes.get(exchange)
        if hashes is None and not edits:
            return value
        old = bytes_from_json(value)
        new = overwrite(old, edits)
        if hashes is not None and code == "read":
            hashes[0].update(old)
            hashes[1].update(new)
        return value if new == old else json.loads(json_bytes(new))

    def _frame(
        self, number: int, exchange: int, value: object, edits: Sequence[Overwrite]
    ) -> object:
        hashes, unwired = self._frames.get(exchange), number in self._plan.unwired
        if hashes is None and not edits and not unwired:
            return value
        old = FrameRecord.from_json(value)
        new = replace(old, data=overwrite(old.data, edits), wire=None if unwired else old.wire)
        if hashes is not None:
            hashes[0].update(old.data)
            hashes[1].update(new.data)
        return value if new == old else new.to_json()

    def _with_new_hash(self, exchange: int, value: object) -> object:
        hashes, frames = self._hashes.pop(exchange, None), self._frames.pop(exchange, None)
        if hashes is None or frames is None or not isinstance(value, dict):
            return value
        new = _rehashed(value, hashes, lossy="recorder" in value)
        if "frames" in value:
            new = {**new, "frames": _rehashed(value["frames"], frames, lossy="recorder" in value)}
        return new


def _rehashed(
    value: Mapping[str, object], hashes: tuple["hashlib._Hash", "hashlib._Hash"], *, lossy: bool
) -> Mapping[str, object]:
    """Return a value with the new hash; unchanged if the old hash was wrong without a loss."""
    if value["sha256"] != hashes[0].hexdigest() and not lossy:
        return value
    return {**value, "sha256": hashes[1].hexdigest()}


def _without_coding(head: object, length: int) -> object:
    """Return the payload of a request's head whose body has no content-coding any more."""
    assert isinstance(head, dict)
    headers = uncoded_headers(headers_from_json(head["headers"]), length)
    return {**head, "headers": headers_to_json(headers)}


def _merged(known: Iterable[Sequence[object]], spans: Sequence[MaskedSpan]) -> list[MaskedSpan]:
    """Return the spans of a `masked` record and further ones, in order."""
    return sorted({*((int(str(a)), int(str(b)), str(name)) for a, b, name in known), *spans})
