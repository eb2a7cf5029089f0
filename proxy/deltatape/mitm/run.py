"""The state while mitmproxy runs: the tape, open exchanges, the watchdog."""

import asyncio
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from deltatape.clock import Clock, SystemClock, file_stamp
from deltatape.environment.dotenv import read_dotenv
from deltatape.environment.known_secrets import known_secrets
from deltatape.gateway.tapes import TapeBook
from deltatape.mitm.addon_log import AddonLogger, MakeLive
from deltatape.mitm.exchange import FlowTaping
from deltatape.mitm.flows import Flow, Server, ending
from deltatape.mitm.ipc import AddonMessage
from deltatape.model.exchange import EndReason, Source
from deltatape.store.mask_key import mask_key
from deltatape.store.names import ulid
from deltatape.store.writer import TapeWriter
from deltatape.tape.mask import Masker
from deltatape.tape.payload import ClientState
from deltatape.tape.tap import ExchangeTap

IDLE_NS = 5_000_000_000
"""How often to record that a silent exchange is still being watched."""
LAST_BYTES_S = 0.5
"""How long mitmproxy may take to send the last bytes of a stream."""
_NEARLY = 0.99
"""Share of mitmproxy's timeout for silence. At the timeout it ends a connection itself, but reports
that the client did."""


class MitmRun:
    """One run of mitmproxy; needs a running loop.

    Args:
        folder: for the tape.
        version: mitmproxy's.
        logger: gets messages.
        make_live: see `addon_log.find_live`.
        patience_s: after how much silence mitmproxy ends a connection.
        environment: where the state folder is looked up, and credentials that are to be masked.
    """

    def __init__(
        self,
        folder: Path,
        version: str,
        logger: AddonLogger,
        make_live: MakeLive,
        patience_s: Callable[[], float],
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._clock: Clock = SystemClock()
        self._logger = logger
        self._patience_s = patience_s
        self._masker = Masker(mask_key(environment, self.alarm))
        for secret in known_secrets(environment, read_dotenv(Path.cwd(), environment)):
            self._masker.learn(secret)
        self._live = make_live(lambda text: logger.send(AddonMessage.LINE, text=text))
        self.book = TapeBook(lambda _: self._writer(folder), self._masker)
        self.book.start()
        self._open: dict[str, FlowTaping] = {}
        self._clients: dict[str, int] = {}
        self._served: set[str] = set()
        self._connections = 0
        self._drained: Callable[[], object] | None = None
        """Called when the last exchange has ended, once a stop is wanted."""
        tape = self.book.current
        tape.tap.note(
            tape.writer.now_ns(),
            f"taped by mitmproxy {version}: reads are the pieces that it passed on, and whether"
            " upstream closed or reset a connection cannot be told",
        )
        self._ticker = asyncio.get_running_loop().call_later(IDLE_NS / 1e9, self._tick)

    def _writer(self, folder: Path) -> TapeWriter:
        return TapeWriter.create(
            folder,
            file_stamp(self._clock.wall_ns()),
            clock=self._clock,
            source=Source.MITM,
            alarm=self.alarm,
        )

    def alarm(self, problem: str) -> None:
        """Report a problem with taping; any thread may call it."""
        self._logger.send(AddonMessage.ALARM, text=problem)

    def _tick(self) -> None:
        for taping in self._open.values():
            taping.watch(IDLE_NS)
        self.book.watch(IDLE_NS)
        self._ticker = asyncio.get_running_loop().call_later(IDLE_NS / 1e9, self._tick)

    # Connections.

    def client(self, ident: str) -> None:
        """Report a client of a taped host, once."""
        if ident not in self._clients:
            self._connections += 1
            self._clients[ident] = self._connections
            self.book.client(self._connections, ClientState.OPENED)

    def client_left(self, ident: str) -> None:
        """Forget a client that has disconnected."""
        number = self._clients.pop(ident, None)
        if number is not None:
            self.book.client(number, ClientState.CLOSED)

    def _reused(self, server: Server) -> bool:
        """Return whether an upstream connection is used again."""
        reused = server.id in self._served
        self._served.add(server.id)
        return reused

    def server_left(self, ident: str) -> None:
        """Forget an upstream connection."""
        self._served.discard(ident)

    # Exchanges.

    def begin(self, flow: Flow) -> None:
        """Begin an exchange and set the stream filters of its bodies."""
        tape = self.book.current
        self.client(flow.client_conn.id)
        tape.exchanges += 1
        tape.active += 1
        number = tape.exchanges
        self._live.begin(number)
        keep, put = self._live.put, tape.writer.put

        def both(exchange: int, line: bytes) -> None:
            keep(exchange, line)
            put(exchange, line)

        taping = FlowTaping(
            number, tape.writer, ExchangeTap(number, both, self._masker), self.alarm
        )
        self._open[flow.id] = taping
        taping.request(flow, ulid(self._clock))
        if flow.response is None:
            flow.request.stream = taping.upload(flow, self._reused)

    def request_end(self, flow: Flow) -> None:
        """End the request."""
        if taping := self._open.get(flow.id):
            taping.request_end(flow)

    def response(self, flow: Flow) -> None:
        """Tape the response's head."""
        taping, response = self._open.get(flow.id), flow.response
        if taping is not None and response is not None:
            taping.response(flow, response)
            response.stream = taping.download(flow, response)

    def complete(self, flow: Flow) -> None:
        """End a complete exchange."""
        taping = self._open.get(flow.id)
        if taping is None:
            return
        if flow.response is not None:
            taping.response_end(flow.response)
        if flow.server_conn.timestamp_start is None:
            taping.note("mitmproxy answered itself; nothing went upstream")
        if flow.websocket is not None:
            taping.note("a WebSocket follows; its frames are not taped")
        self._end(flow, taping, EndReason.COMPLETE, "")

    def failed(self, flow: Flow) -> None:
        """End a failed exchange."""
        taping = self._open.get(flow.id)
        if taping is None:
            return
        reason, detail = ending(flow)
        silent_s = taping.silent_ns() / 1e9
        if reason is EndReason.CLIENT_CLOSED and silent_s >= _NEARLY * self._patience_s():
            reason = EndReason.TIMEOUT
            detail = f"mitmproxy gave up after {silent_s:.0f} s without a byte: {detail}"
        self._end(flow, taping, reason, detail)

    def _end(self, flow: Flow, taping: FlowTaping, reason: EndReason, detail: str) -> None:
        del self._open[flow.id]
        taping.end(reason, detail)
        tape = self.book.current
        tape.active -= 1
        tape.watched_ns = tape.writer.now_ns()
        tape.writer.durable()
        self._live.ended(tape, taping.number, _ended_line(flow, reason))
        if self._drained is not None and not self._open:
            self._drained()

    # The end.

    def drain(self, grace_s: float, then: Callable[[], None]) -> None:
        """Let streams go on for `grace_s` at most, and let their last bytes leave."""
        loop = asyncio.get_running_loop()
        active = len(self._open)
        self._logger.send(AddonMessage.STOPPING, active=active)
        self._drained = lambda: loop.call_later(LAST_BYTES_S, then)
        if active:
            loop.call_later(grace_s, then)
        else:
            then()

    async def stop(self, reason: str, code: int | None) -> None:
        """End open exchanges, then the tape."""
        self._ticker.cancel()
        for taping in self._open.values():
            taping.end(EndReason.STOPPED, "mitmproxy ended")
        self._open.clear()
        await self._live.finish()
        self.book.stop(reason, code)
        lost_records, lost_bytes = self.book.losses()
        self._logger.send(
            AddonMessage.ENDED,
            exchanges=self.book.current.exchanges,
            with_findings=self._live.with_findings,
            worst=self._live.worst,
            lost_records=lost_records,
            lost_bytes=lost_bytes,
        )


def _ended_line(flow: Flow, reason: EndReason) -> str:
    """Return `POST /v1/chat/completions 200 complete`, with credentials masked."""
    path = flow.request.data.path.partition(b"?")[0].decode("ascii", "backslashreplace")
    shown = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in path)
    status = flow.response.status_code if flow.response is not None else "no response"
    return f"{flow.request.method} {shown} {status} {reason}"
