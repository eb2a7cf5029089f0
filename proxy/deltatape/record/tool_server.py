"""Tapes the traffic of an MCP client and an MCP server over stdin and stdout.

Strategy: tape it like MCP's HTTP transport. A message of the client is a request; its response is
the server's answer, or 202 if there is none: for notifications, and answers to the server. All
other messages of the server are the response to one GET, as lines. So tapes have only one form of
MCP.

Invariant: bodies are the lines as they passed, line feeds included; together they are all bytes
that passed, except lines of white space.

Format: recordings/README.md, "MCP over stdin and stdout".
Source: https://modelcontextprotocol.io/specification/2025-06-18/basic/transports
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from deltatape.gateway.recorder import ExchangeTaping, Recorder
from deltatape.gateway.taping_guard import Writer
from deltatape.http1.head import Fields, ParsedResponseHead
from deltatape.model.exchange import EndReason, Framing
from deltatape.model.tool_server import stdio_upstream
from deltatape.model.websocket import Side

MAX_LINE = 64 << 20
"""A longer line is taken for several, which are no messages."""
_TARGET = b"/mcp"
_REQUEST: Fields = (
    (b"Content-Type", b"application/json"),
    (b"Accept", b"application/json, text/event-stream"),
)
_LISTEN: Fields = ((b"Accept", b"application/x-ndjson"),)
_CANCELLED = "notifications/cancelled"


@dataclass(slots=True)
class _Lines:
    """Cuts what a side writes into lines."""

    pieces: list[bytes] = field(default_factory=list)
    size: int = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        for piece in _lines(data):
            self.pieces.append(piece)
            self.size += len(piece)
            if piece.endswith(b"\n") or self.size > MAX_LINE:
                yield self.rest()

    def rest(self) -> bytes:
        """Return the beginning of the next line that was read."""
        line = b"".join(self.pieces)
        self.pieces, self.size = [], 0
        return line


def _lines(data: bytes) -> list[bytes]:
    """Return the lines of `data`, which end with line feeds only."""
    lines = [line + b"\n" for line in data.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    return [line for line in lines if line]


@dataclass(frozen=True, slots=True)
class _Messages:
    """What a line says.

    Attributes:
        asked: the ids of the requests in it.
        answered: the ids of the answers in it.
        cancelled: the ids of the requests that it takes back.
    """

    asked: tuple[str, ...] = ()
    answered: tuple[str, ...] = ()
    cancelled: tuple[str, ...] = ()


_NO_MESSAGES = _Messages()


def _read(line: bytes) -> _Messages:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return _NO_MESSAGES
    every = [each for each in (value if isinstance(value, list) else [value]) if _is_message(each)]
    cancelled = (each.get("params") for each in every if each.get("method") == _CANCELLED)
    return _Messages(
        asked=tuple(_key(each["id"]) for each in every if "id" in each and "method" in each),
        answered=tuple(_key(each["id"]) for each in every if "id" in each and "method" not in each),
        cancelled=tuple(
            _key(each["requestId"])
            for each in cancelled
            if isinstance(each, dict) and "requestId" in each
        ),
    )


def _is_message(value: object) -> bool:
    return isinstance(value, dict)


def _key(value: object) -> str:
    """Return what tells an id from others: 1 is not "1"."""
    return json.dumps(value)


@dataclass(slots=True, eq=False)
class _OpenExchange:
    """An exchange that waits for more."""

    taping: ExchangeTaping
    waits_for: set[str]
    """The ids of the requests that are not answered yet."""
    begun: bool = False
    """Whether its response has begun."""


class StdioTaping:
    """Tapes one client's connection to one server."""

    def __init__(self, recorder: Recorder, name: str) -> None:
        """Begin.

        Args:
            recorder: has the tape.
            name: the name of the server.
        """
        self._recorder = recorder
        self._upstream = stdio_upstream(name)
        self._connection = recorder.client()
        self._lines = {side: _Lines() for side in Side}
        self._open: dict[str, _OpenExchange] = {}
        self._heard: _OpenExchange | None = None
        """The exchange of messages that the server sends unasked."""
        self.ago_ns = 0
        """How long ago the bytes that are being taped arrived."""
        self._client_left = False
        self._ended = False

    def passed(self, side: Side, data: bytes, at_ns: int) -> None:
        """Tape what a side wrote; b"": it has closed.

        Args:
            side: which.
            data: what it wrote.
            at_ns: when that came, on the clock of the recorder.
        """
        if not self._ended:
            self.ago_ns = max(0, self._recorder.clock.now_ns() - at_ns)
            self._passed(side, data)
            self.ago_ns = 0

    def _passed(self, side: Side, data: bytes) -> None:
        lines = self._lines[side]
        every = [*lines.feed(data)] if data else [lines.rest()]
        for line in every:
            if line.strip():
                (self._asked if side is Side.CLIENT else self._answered)(line)
        if not data and side is Side.CLIENT:
            self._client_left = True
        elif not data:
            self._cut("the server closed its output")

    def end(self, reason: EndReason, detail: str) -> None:
        """End open exchanges with this reason; nothing is taped afterwards."""
        if not self._ended:
            self._end_all(reason, detail)
            self._ended = True
            self._recorder.client_left(self._connection)

    def exited(self, code: int) -> None:
        """End, since the server has exited with `code`."""
        self._cut(f"the server exited with {code}")
        self.end(EndReason.UPSTREAM_CLOSED, "")

    def _cut(self, detail: str) -> None:
        if self._client_left:
            self._end_all(EndReason.CLIENT_CLOSED, "the client closed the server's input")
        else:
            self._end_all(EndReason.UPSTREAM_CLOSED, detail)

    def _end_all(self, reason: EndReason, detail: str) -> None:
        for exchange in dict.fromkeys(self._open.values()):
            self._end(exchange, reason, detail)
        if self._heard is not None:
            self._complete(self._heard)
            self._heard = None

    def _asked(self, line: bytes) -> None:
        messages = _read(line)
        exchange = self._begin("POST", _REQUEST, line, messages.asked)
        if not messages.asked:
            self._respond(exchange, _head(202, b"Accepted", Framing.NONE))
            self._complete(exchange)
        for key in messages.asked:
            self._open[key] = exchange
        for key in messages.cancelled:
            cancelled = self._open.get(key)
            if cancelled is not None:
                self._end(cancelled, EndReason.CLIENT_CLOSED, "the client cancelled the request")

    def _answered(self, line: bytes) -> None:
        messages = _read(line)
        found = [self._open[key] for key in messages.answered if key in self._open]
        exchange = found[0] if found else self._hearing()
        if not exchange.begun:
            media = b"application/json" if found else b"application/x-ndjson"
            self._respond(exchange, _head(200, b"OK", Framing.CLOSE, media))
        exchange.taping.arrived()
        exchange.taping.read(line, None)
        for key in messages.answered:
            answered = self._open.pop(key, None)
            if answered is not None:
                answered.waits_for.discard(key)
                if not answered.waits_for:
                    self._complete(answered)

    def _hearing(self) -> _OpenExchange:
        if self._heard is None:
            self._heard = self._begin("GET", _LISTEN, b"", ())
        return self._heard

    def _begin(
        self, method: str, headers: Fields, body: bytes, asked: Sequence[str]
    ) -> _OpenExchange:
        def stop() -> None:
            self._end(exchange, EndReason.STOPPED, "")

        taping = self._recorder.begin(
            ExchangeTaping,
            stop,
            None,
            self._connection,
            times=lambda writer: _Times(self, writer),
        )
        exchange = _OpenExchange(taping, set(asked))
        taping.request(
            method=method, target=_TARGET, upstream=self._upstream, http="1.1", headers=headers
        )
        if body:
            taping.request_body(body)
        taping.request_end()
        return exchange

    @staticmethod
    def _respond(exchange: _OpenExchange, head: ParsedResponseHead) -> None:
        exchange.taping.arrived()
        exchange.taping.response(head)
        exchange.begun = True

    def _complete(self, exchange: _OpenExchange) -> None:
        exchange.taping.complete()
        self._recorder.ended(exchange.taping)

    def _end(self, exchange: _OpenExchange, reason: EndReason, detail: str) -> None:
        for key in exchange.waits_for:
            self._open.pop(key, None)
        if exchange is self._heard:
            self._heard = None
        exchange.taping.end(reason, detail)
        self._recorder.ended(exchange.taping)


class _Times:
    """A clock that returns the time when the current bytes came."""

    def __init__(self, taping: StdioTaping, writer: Writer) -> None:
        self._taping = taping
        self._writer = writer
        self._last_ns = 0

    def now_ns(self) -> int:
        """Return that time on the tape; never earlier than the last one."""
        self._last_ns = max(self._last_ns, self._writer.now_ns() - self._taping.ago_ns)
        return self._last_ns


def _head(
    status: int, reason: bytes, framing: Framing, media: bytes | None = None
) -> ParsedResponseHead:
    return ParsedResponseHead(
        status=status,
        reason=reason,
        http="1.1",
        fields=() if media is None else ((b"Content-Type", media),),
        framing=framing,
        length=0,
        keep_alive=True,
        raw=b"",
    )
