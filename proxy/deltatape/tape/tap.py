"""The recorder's interface: calls in, tape lines out.

A recorder (the gateway, mitmproxy's addon) calls an `ExchangeTap` for each record of an exchange,
and a `TapeTap` for everything else: connections, the program's output, the end. A tap masks,
counts, hashes, and passes complete lines to `put`. It does no I/O, and never raises because of wire
data.

Invariants: `put` gets complete lines; lines of an exchange are in the order of their times; none
has a credential that was seen before; only pieces that may end within a credential, and those after
them, are held back; after `end` an exchange writes nothing more (a closing race cannot make a tape
contradict its own byte count); no record has more than `PIECE` bytes of a body.

Format: recordings/README.md, "Codes", "Log lines", "Masked bytes" and "Order".
"""

import hashlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import NamedTuple

from deltatape.model.content_coding import ContentDecoder, parse_codings
from deltatape.model.exchange import EndReason, Framing, Headers, MaskedSpan, Tap
from deltatape.model.tape_summary import LogStream
from deltatape.model.websocket import Side
from deltatape.tape import encode
from deltatape.tape.frames import SocketTaping, TapedPiece
from deltatape.tape.mask import Masker, content_coding, without_userinfo
from deltatape.tape.payload import (
    ClientState,
    DeliveredSoFar,
    EndRecord,
    FrameRecord,
    Idle,
    Informational,
    MaskedSpans,
    RemarkRecord,
    Stop,
    Trailers,
)
from deltatape.tape.record import Payload
from deltatape.tape.seen_credentials import LEAST, SeenCredentials, blanked, merged

Put = Callable[[int, bytes], None]
"""Takes an exchange's number and a line of it."""
_CLOSED = frozenset({EndReason.UPSTREAM_CLOSED, EndReason.CLIENT_CLOSED})
PIECE = 1 << 20
"""The most body bytes in one record."""


# Masks what comes in pieces, when a credential may begin in one piece and end in a later one.
#
# Strategy: the end of what has come that may begin a credential is kept, and with it the pieces it
# stands in; a piece is decided when nothing of it is in that end any more. Almost every piece is
# decided at once. What comes after a piece that is not decided waits behind it, so that the order
# of records is that of their times.
#
# Invariants: pieces keep their lengths; what is masked in one is given as spans of it; what waits
# is bounded.

MOST_HELD = 4 << 20
"""How many bytes may wait behind a piece; beyond that it is masked as if a credential came."""


class TapePiece:
    """A piece of a body. `decided`: its masking is final."""

    __slots__ = ("_data", "_spans", "decided", "start")

    def __init__(self, data: bytes, start: int) -> None:
        self._data = data
        self._spans: list[MaskedSpan] = []
        self.start = start
        self.decided = False

    @property
    def end(self) -> int:
        """Its end in the body."""
        return self.start + len(self)

    def mark(self, start: int, end: int, digest: str) -> None:
        """Mask the part of the body's `[start, end)` in this piece."""
        start, end = max(start - self.start, 0), min(end - self.start, len(self))
        if start < end:
            self._spans.append((start, end, digest))

    def __len__(self) -> int:
        return len(self._data)

    def masked(self) -> tuple[bytes, tuple[MaskedSpan, ...]]:
        """Return the piece to write, and the spans of asterisks in it."""
        spans = merged(self._spans)
        return (blanked(self._data, spans) if spans else self._data), spans


class BodySearch:
    """Searches a body, whose pieces come in order, for credentials that were seen."""

    __slots__ = ("_seen", "end", "tail")

    def __init__(self, seen: SeenCredentials) -> None:
        self._seen = seen
        self.end = 0
        self.tail = b""
        """The latest bytes, if they may begin a credential."""

    def add(self, data: bytes) -> Iterator[MaskedSpan]:
        """Yield the credentials that the next piece completes, by their places in the body."""
        window = self.tail + data
        at = self.end - len(self.tail)
        self.end += len(data)
        for start, end, digest in self._seen.find(window):
            yield at + start, at + end, digest
        length, _ = self._seen.tail(window)
        self.tail = window[len(window) - length :]

    def unfinished(self) -> tuple[int, str]:
        """Return the length and the hash of what may begin a credential."""
        return self._seen.tail(self.tail)


MOST_DECODED = 2 << 20
"""How many bytes one piece of a coded body may become."""
_CODED_STEP = 1024
"""Bytes decoded at once; they can become a thousand times as many."""


class CodedSearch:
    """Searches a body under its content-coding, where bytes cannot be masked.

    If its end may begin a credential, it counts as one at once: taping does not wait for the rest.
    The search ends at a piece that grows beyond `MOST_DECODED`: streams must not wait for it.
    """

    __slots__ = ("_decoder", "_search", "ended")

    def __init__(self, codings: Sequence[str], seen: SeenCredentials) -> None:
        self._decoder = ContentDecoder(codings, salvage=False)
        self._search = BodySearch(seen)
        self.ended = False

    def add(self, data: bytes) -> tuple[MaskedSpan, ...]:
        """Return the credentials that end in the next piece, by their places in the plain body."""
        plain = b""
        for at in range(0, len(data), _CODED_STEP):
            plain += self._decoder.feed(data[at : at + _CODED_STEP])
            if len(plain) > MOST_DECODED:
                self.ended = True
                return ()
        found = list(self._search.add(plain)) if plain else []
        length, digest = self._search.unfinished()
        if plain and length >= LEAST:
            found.append((self._search.end - length, self._search.end, digest))
        return merged(found)


class BodyMasker:
    """Masks one body, whose pieces come in order."""

    __slots__ = ("_open", "_search")

    def __init__(self, seen: SeenCredentials) -> None:
        self._search = BodySearch(seen)
        self._open: list[TapePiece] = []  # the pieces that its tail stands in

    @property
    def waiting(self) -> bool:
        """Check whether the next piece may continue a credential."""
        return bool(self._search.tail)

    def add(self, data: bytes) -> TapePiece:
        """Add the next piece; it may decide earlier ones."""
        search = self._search
        piece = TapePiece(data, search.end)
        self._open.append(piece)
        for span in search.add(data):
            self._mark(*span)
        self._decide(search.end - len(search.tail))
        return piece

    def finish(self) -> None:
        """Decide at the end: mask what may be an incomplete credential."""
        search = self._search
        length, digest = search.unfinished()
        if length >= LEAST:
            self._mark(search.end - length, search.end, digest)
        search.tail = b""
        self._decide(search.end)

    def give_up(self) -> None:
        """Decide early: mask what may begin a credential."""
        search = self._search
        length, digest = search.unfinished()
        self._mark(search.end - length, search.end, digest)
        self._decide(search.end)

    def _mark(self, start: int, end: int, digest: str) -> None:
        for piece in self._open:
            piece.mark(start, end, digest)

    def _decide(self, until: int) -> None:
        for piece in self._open:
            piece.decided = piece.end <= until
        self._open = [piece for piece in self._open if not piece.decided]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldPiece:
    """A piece of a body, and the data of its record."""

    t_ns: int
    middle: str
    """See `encode.data_record`."""
    piece: TapePiece
    chunk_ends: tuple[int, ...] | None
    frame: FrameRecord | None = None
    """What it is the data of, in a WebSocket."""


class MaskingQueue:
    """Records of an exchange that wait for an undecided piece before them.

    Args:
        put_line: takes a finished line.
        put_piece: takes a piece that is decided.
    """

    __slots__ = ("_bytes", "_put_line", "_put_piece", "_waiting")

    def __init__(
        self, put_line: Callable[[bytes], None], put_piece: Callable[[HeldPiece], None]
    ) -> None:
        self._put_line = put_line
        self._put_piece = put_piece
        self._waiting: deque[bytes | HeldPiece] = deque()
        self._bytes = 0

    def __bool__(self) -> bool:
        return bool(self._waiting)

    @property
    def full(self) -> bool:
        """Whether the limit of waiting records is exceeded."""
        return self._bytes > MOST_HELD

    def add(self, record: bytes | HeldPiece) -> None:
        """Add a record; pass it on at once if nothing is waiting."""
        self._waiting.append(record)
        self._bytes += _size(record)
        self.release()

    def release(self) -> None:
        """Pass on records that waited long enough."""
        while self._waiting:
            first = self._waiting[0]
            if isinstance(first, HeldPiece) and not first.piece.decided:
                return
            self._waiting.popleft()
            self._bytes -= _size(first)
            if isinstance(first, HeldPiece):
                self._put_piece(first)
            else:
                self._put_line(first)


class HeldBodies(NamedTuple):
    """What an exchange needs once a piece of a body may hold a credential; few ever do."""

    request: BodyMasker
    response: BodyMasker
    queue: MaskingQueue


def _size(record: bytes | HeldPiece) -> int:
    return len(record) if isinstance(record, bytes) else len(record.piece)


class ExchangeTap:
    """The recorder's interface for one exchange; every method takes the time first.

    Args:
        number: the exchange's number on the tape, from 1.
        put: takes each line.
        masker: makes credentials unreadable.
    """

    __slots__ = (
        "_body",
        "_coded_request",
        "_coded_response",
        "_ended",
        "_hash",
        "_held",
        "_masker",
        "_number",
        "_put",
        "_read",
        "_seen",
        "_socket",
        "_total",
        "_waiting",
    )

    def __init__(self, number: int, put: Put, masker: Masker) -> None:
        self._number = number
        self._put = put
        self._masker = masker
        self._seen = masker.seen
        self._coded_request: CodedSearch | None = None
        self._coded_response: CodedSearch | None = None
        self._held: HeldBodies | None = None  # once a piece had to be
        self._socket: SocketTaping | None = None  # once the connection has become one
        self._waiting = False  # whether a read may have to wait, or to continue a credential
        self._ended = False
        self._total = 0
        self._hash = hashlib.sha256()
        self._read = f',{number},"read",'
        self._body = f',{number},"request-body",'

    @property
    def total(self) -> int:
        """How many bytes of the response's body were taped so far; none of a WebSocket."""
        return self._total

    def request(
        self,
        t_ns: int,
        *,
        id: str,  # noqa: A002 - the name on the tape
        method: str,
        target: bytes,
        upstream: str,
        http: str,
        headers: Headers,
        tap: Tap = Tap.PROVIDER,
    ) -> None:
        """Write the request's head as sent upstream."""
        masker = self._masker
        masker.see(headers, target, upstream.encode(errors="replace"))
        self._write_line(
            encode.request_record(
                t_ns,
                self._number,
                id_text=encode.json_text(id),
                line_text=masker.line_text(method, target, without_userinfo(upstream)),
                http=http,
                headers_text=masker.headers_text(headers),
                tap=tap,
            )
        )
        self._coded_request = self._coded(t_ns, "request", headers)

    def request_body(self, t_ns: int, data: bytes) -> None:
        """Write a piece of the request body."""
        if self._ended:
            return
        for at in range(0, len(data), PIECE):
            piece = data[at : at + PIECE]
            if self._coded_request is not None:
                self._search_coded(t_ns, self._coded_request, piece)
            if self._waiting or not self._seen.clean(piece):
                self._hold(t_ns, self._body, piece, None)
            else:
                self._put(self._number, encode.data_record(t_ns, self._body, piece))

    def request_end(self, t_ns: int) -> None:
        """Write the end of the request."""
        if self._held is not None:
            self._held.request.finish()
            self._release(self._held)
        self._write_line(encode.request_end_record(t_ns, self._number))

    def sent(self, t_ns: int, *, connect_ns: int, tls_ns: int, reused: bool) -> None:
        """Write that the request's head was sent; both durations are 0 on a reused connection."""
        self._write_line(encode.sent_record(t_ns, self._number, connect_ns, tls_ns, reused=reused))

    def informational(
        self, t_ns: int, *, status: int, reason: bytes, http: str, headers: Headers
    ) -> None:
        """Write the head of a 1xx response."""
        masker = self._masker
        masker.see(headers)
        self._write(
            t_ns,
            Informational(
                status=status,
                reason=masker.data(reason),
                http=http,
                headers=masker.headers(headers),
            ),
        )

    def response(
        self,
        t_ns: int,
        *,
        status: int,
        reason: bytes,
        http: str,
        framing: Framing,
        headers: Headers,
    ) -> None:
        """Write the response head."""
        masker = self._masker
        masker.see(headers)
        self._write_line(
            encode.response_record(
                t_ns,
                self._number,
                status=status,
                reason_text=masker.data_text(reason),
                http=http,
                framing=framing,
                headers_text=masker.headers_text(headers),
            )
        )
        if status == HTTPStatus.SWITCHING_PROTOCOLS:
            self._socket = SocketTaping(headers)
        if framing is not Framing.NONE:
            self._coded_response = self._coded(t_ns, "response", headers)

    def read(self, t_ns: int, data: bytes, chunk_ends: tuple[int, ...] | None) -> None:
        """Write body bytes of one read from the upstream socket, at least 1.

        Args:
            t_ns: when.
            data: after transfer-coding, before content-coding.
            chunk_ends: ascending offsets into `data` at which HTTP chunks end (0: the previous
                read's chunk ended just before this one); None when the body is not chunked.
        """
        if self._ended:
            return
        size = len(data)
        if size > PIECE:
            self._long_read(t_ns, data, chunk_ends)
            return
        if self._coded_response is not None:
            self._search_coded(t_ns, self._coded_response, data)
        if self._waiting or not self._seen.clean(data):
            self._hold(t_ns, self._read, data, chunk_ends)
            return
        # One chunk per read is by far the commonest case and needs no record.
        if chunk_ends is not None and chunk_ends != (size,):
            self._put(self._number, encode.boundaries_record(t_ns, self._number, chunk_ends))
        self._put(self._number, encode.data_record(t_ns, self._read, data))
        self._total += size
        self._hash.update(data)

    def debris(self, t_ns: int, data: bytes) -> None:
        """Write bytes of a response without a valid head; mask the credentials in its fields."""
        if not self._total:
            self._masker.see(tuple(_fields_of(data)))
        self.read(t_ns, data, None)

    def _long_read(self, t_ns: int, data: bytes, chunk_ends: tuple[int, ...] | None) -> None:
        for at in range(0, len(data), PIECE):
            piece = data[at : at + PIECE]
            ends = chunk_ends
            if ends is not None:
                lowest = at + 1 if at else 0
                ends = tuple(end - at for end in ends if lowest <= end <= at + len(piece))
            self.read(t_ns, piece, ends)

    def frames(self, t_ns: int, side: Side, data: bytes, *, messages: bool = True) -> None:
        """Write bytes that one side of a WebSocket has sent, at least 1.

        Args:
            t_ns: when.
            side: who sent them.
            data: the bytes.
            messages: whether to write more than control frames.
        """
        if self._ended or self._socket is None:
            return
        for at in range(0, len(data), PIECE):
            for piece in self._socket.feed(side, data[at : at + PIECE]):
                if messages or (isinstance(piece, TapedPiece) and piece.control):
                    self._frame(t_ns, side, piece)

    def _frame(self, t_ns: int, side: Side, piece: TapedPiece | str) -> None:
        """Write a piece of a frame, or a note about it."""
        if isinstance(piece, str):
            self.note(t_ns, f"the {side}: {piece}")
            return
        record = FrameRecord.of(side, piece)
        seen = self._seen
        if not self._waiting and (piece.control or seen.clean(piece.data)):
            self._put_frame(t_ns, record, seen.spans(piece.data) if piece.control else ())
            return
        held = self._holding()
        masker = held.request if side is Side.CLIENT else held.response
        if piece.control:  # short, and part of no message
            taped = TapePiece(piece.data, 0)
            for span in seen.spans(piece.data):
                taped.mark(*span)
            taped.decided = True
        else:
            taped = masker.add(piece.data)
        held.queue.add(HeldPiece(t_ns=t_ns, middle="", piece=taped, chunk_ends=None, frame=record))
        if piece.ends and not piece.control:
            masker.finish()
        self._release(held)

    def _put_frame(self, t_ns: int, record: FrameRecord, spans: tuple[MaskedSpan, ...]) -> None:
        """Write the records of a piece that waits for nothing."""
        assert self._socket is not None
        if spans:
            # What was compressed would tell what was masked.
            record = replace(record, data=blanked(record.data, spans), wire=None)
            self._put_line(self._line(t_ns, MaskedSpans(spans=spans)))
        self._put_line(self._line(t_ns, record))
        self._socket.count(record.data)

    def trailers(self, t_ns: int, headers: Headers) -> None:
        """Write the fields after the last chunk."""
        if self._held is not None:
            self._held.response.finish()
            self._release(self._held)
        self._masker.see(headers)
        self._write(t_ns, Trailers(headers=self._masker.headers(headers)))

    def delivered(self, t_ns: int, total_bytes: int) -> None:
        """Write that a slow client has taken this many bytes of the body."""
        self._write(t_ns, DeliveredSoFar(bytes=total_bytes))

    def idle(self, t_ns: int) -> None:
        """Write that nothing has arrived for a while and the recorder is running."""
        self._write(t_ns, Idle())

    def note(self, t_ns: int, text: str) -> None:
        """Write a note about this exchange."""
        self._write(t_ns, RemarkRecord(text=self._masker.text(text)))

    def end(
        self,
        t_ns: int,
        reason: EndReason,
        *,
        detail: str = "",
        recorder: Mapping[str, object] | None = None,
    ) -> None:
        """Write the end of the transport. `recorder` is what taping lost: `TapeWriter.losses`.

        A WebSocket is complete if both sides had said that it ends.
        """
        frames = None
        if self._socket is not None and not self._ended:
            for side in Side:
                for piece in self._socket.end(side):
                    self._frame(t_ns, side, piece)
            if self._socket.closed and not detail and reason in _CLOSED:
                reason = EndReason.COMPLETE
        self.flush()
        if self._socket is not None:
            frames = self._socket.total
        sha256 = self._hash.hexdigest()
        if detail or recorder or frames is not None:
            self._write(
                t_ns,
                EndRecord(
                    reason=reason,
                    bytes=self._total,
                    sha256=sha256,
                    detail=self._masker.text(detail),
                    recorder=recorder or {},
                    frames=frames,
                ),
            )
        else:
            self._write_line(encode.end_record(t_ns, self._number, reason, self._total, sha256))
        self._ended = True
        self._held = None  # it refers to this, and this to it

    def flush(self) -> None:
        """Write held records: no more body bytes come. `end` does so, too."""
        if self._held is not None:
            self._held.request.finish()
            self._held.response.finish()
            self._release(self._held)

    def _coded(self, t_ns: int, body: str, headers: Headers) -> CodedSearch | None:
        """Write a note if a body has a content-coding, and return the search under that."""
        coding = content_coding(headers)
        if not coding:
            return None
        self.note(t_ns, f"credentials in the {body} body are not masked: it is {coding}-coded")
        return CodedSearch(parse_codings(coding.encode()), self._seen)

    def _search_coded(self, t_ns: int, search: CodedSearch, data: bytes) -> None:
        """Write which credentials are in a piece under its content-coding."""
        if search.ended:
            return
        found = search.add(data)
        if search.ended:
            self.note(
                t_ns, "credentials from here on are not searched for: the body grows too fast"
            )
        if found:
            self._write(t_ns, MaskedSpans(spans=(), decoded=found))

    def _hold(
        self, t_ns: int, middle: str, data: bytes, chunk_ends: tuple[int, ...] | None
    ) -> None:
        """Hold a piece with a possible credential, or one after such a piece."""
        held = self._holding()
        piece = (held.response if middle is self._read else held.request).add(data)
        held.queue.add(HeldPiece(t_ns=t_ns, middle=middle, piece=piece, chunk_ends=chunk_ends))
        self._release(held)

    def _holding(self) -> HeldBodies:
        if self._held is None:
            self._held = HeldBodies(
                BodyMasker(self._seen),
                BodyMasker(self._seen),
                MaskingQueue(self._put_line, self._put_held),
            )
        return self._held

    def _release(self, held: HeldBodies) -> None:
        held.queue.release()
        if held.queue.full:
            held.request.give_up()
            held.response.give_up()
            held.queue.release()
        self._waiting = bool(held.queue) or held.request.waiting or held.response.waiting

    def _put_held(self, held: HeldPiece) -> None:
        """Write the records of a decided piece."""
        if held.frame is not None:
            self._put_frame(held.t_ns, held.frame, held.piece.masked()[1])
            return
        data, spans = held.piece.masked()
        if spans:
            self._put_line(self._line(held.t_ns, MaskedSpans(spans=spans)))
        if held.chunk_ends is not None and held.chunk_ends != (len(data),):
            self._put_line(encode.boundaries_record(held.t_ns, self._number, held.chunk_ends))
        self._put_line(encode.data_record(held.t_ns, held.middle, data))
        if held.middle is self._read:
            self._total += len(data)
            self._hash.update(data)

    def _line(self, t_ns: int, payload: Payload) -> bytes:
        return encode.payload_record(t_ns, self._number, payload)

    def _put_line(self, line: bytes) -> None:
        self._put(self._number, line)

    def _write(self, t_ns: int, payload: Payload) -> None:
        if not self._ended:
            self._write_line(self._line(t_ns, payload))

    def _write_line(self, line: bytes) -> None:
        """Write a record, after those that wait."""
        if self._ended:
            return
        if self._waiting and self._held is not None:
            self._held.queue.add(line)
            self._release(self._held)
        else:
            self._put(self._number, line)


# A program's output, in whatever pieces it comes, to lines.
#
# A line ends at a line feed, which is not part of it. One that is longer than `LONGEST_LINE` is cut
# into several, never within a credential.

LONGEST_LINE = 64 << 10
"""The most bytes of a line in one record."""
Line = tuple[bytes, tuple[MaskedSpan, ...]]
"""A line to write, and the spans in it where asterisks replace a credential."""


def _fields_of(head: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield what clients may read as header fields in a head that is not valid."""
    for line in head.split(b"\n"):
        name, colon, value = line.partition(b":")
        if colon:
            yield name.strip(), value.strip()
        elif not line.strip():
            return


class LogLines:
    """Splits one output stream of a program into lines."""

    __slots__ = ("_rest", "_seen")

    def __init__(self, seen: SeenCredentials) -> None:
        self._seen = seen
        self._rest = bytearray()  # of the line that has not ended

    def add(self, data: bytes) -> Iterator[Line]:
        """Yield the lines that are now complete."""
        *ended, rest = data.split(b"\n")
        for part in ended:
            if self._rest or len(part) > LONGEST_LINE:
                self._rest += part
                yield from self._long()
                part = bytes(self._rest)  # noqa: PLW2901 - what is left of the line
                self._rest.clear()
            yield self._line(part)
        self._rest += rest
        yield from self._long()

    def end(self) -> Iterator[Line]:
        """Yield the unfinished last line, if any."""
        if self._rest:
            yield self._line(bytes(self._rest))
            self._rest.clear()

    def _line(self, line: bytes) -> Line:
        spans = self._seen.spans(line) if line else ()
        return blanked(line, spans) if spans else line, spans

    def _long(self) -> Iterator[Line]:
        """Yield the parts of a line that is too long."""
        while len(self._rest) > LONGEST_LINE:
            part = bytes(self._rest[:LONGEST_LINE])
            found = self._seen.find(part)
            cut = len(part) - self._seen.tail(part)[0]
            for start, end, _ in found:
                cut = start if start < cut < end else cut
            # A line that is nothing but credentials one in another has no place to be cut at.
            cut = cut or len(part)
            spans = tuple(span for span in found if span[1] <= cut)
            yield blanked(part[:cut], spans) if spans else part[:cut], spans
            del self._rest[:cut]


class TapeTap:
    """The recorder's interface for the tape itself: exchange 0.

    Args:
        put: takes each line.
        masker: masks credentials in notes and in the program's output; None: nothing is masked.
    """

    __slots__ = ("_logs", "_masker", "_put")

    def __init__(self, put: Put, masker: Masker | None = None) -> None:
        self._put = put
        self._masker = masker or Masker(b"")
        self._logs = {stream: LogLines(self._masker.seen) for stream in LogStream}

    def client(self, t_ns: int, *, connection: int, state: ClientState) -> None:
        """Write that a client connection, counted from 1, was opened or closed."""
        self._put(0, encode.client_record(t_ns, connection, state))

    def idle(self, t_ns: int) -> None:
        """Write that no exchange is open and the recorder is running."""
        self._write(t_ns, Idle())

    def note(self, t_ns: int, text: str) -> None:
        """Write a note about the whole tape."""
        self._write(t_ns, RemarkRecord(text=self._masker.text(text)))

    def log(self, t_ns: int, stream: LogStream, data: bytes, left_out: int = 0) -> None:
        """Write output of the recorded program, a record per line.

        `left_out` bytes before it are not taped: the line in which they begin ends there.
        """
        if left_out:
            for line in self._logs[stream].end():
                self._write_line(t_ns, stream, line)
            self.note(t_ns, f"{left_out} bytes of {stream.value} were left out here")
        for line in self._logs[stream].add(data):
            self._write_line(t_ns, stream, line)

    def log_end(self, t_ns: int) -> None:
        """Write unfinished lines: the program prints no more."""
        for stream, lines in self._logs.items():
            for line in lines.end():
                self._write_line(t_ns, stream, line)

    def _write_line(self, t_ns: int, stream: LogStream, line: Line) -> None:
        data, spans = line
        if spans:
            self._write(t_ns, MaskedSpans(spans=spans))
        self._put(0, encode.log_record(t_ns, stream.value, data))

    def stop(self, t_ns: int, reason: str, code: int | None) -> None:
        """Write the last record: recording ended in good order; `code` is the child's exit code.

        Unfinished lines of the program are written before it.
        """
        self.log_end(t_ns)
        self._write(t_ns, Stop(reason=reason, exit_code=code))

    def _write(self, t_ns: int, payload: Payload) -> None:
        self._put(0, encode.payload_record(t_ns, 0, payload))
