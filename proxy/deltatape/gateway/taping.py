"""Writes an exchange to its tape, with the recorder's clock; see `taping_guard`."""

from collections.abc import Callable

from deltatape.gateway.tapes import OpenTape
from deltatape.gateway.taping_guard import GuardedTaping
from deltatape.http1.head import Fields, ParsedResponseHead
from deltatape.model.exchange import EndReason, Tap
from deltatape.tape.tap import ExchangeTap


class ExchangeTaping(GuardedTaping):
    """Writes one exchange; each method writes one record."""

    def __init__(
        self,
        serial: int,
        ident: str,
        tape: OpenTape,
        tap: ExchangeTap,
        alarm: Callable[[str], None],
        *,
        side: Tap = Tap.PROVIDER,
        bodies: bool = True,
    ) -> None:
        """Args: serial: the exchange's number in the run. bodies: tape those of requests, too."""
        super().__init__(tape.exchanges, tape.writer, tap, alarm)
        self.serial = serial
        self.tape = tape
        self._ident = ident
        self._side = side
        self._bodies = bodies
        self._untaped = 0

    def request(
        self, *, method: str, target: bytes, upstream: str, http: str, headers: Fields
    ) -> None:
        """Write the request head as sent upstream."""
        self._write(
            ExchangeTap.request,
            id=self._ident,
            method=method,
            target=target,
            upstream=upstream,
            http=http,
            headers=headers,
            tap=self._side,
        )

    def request_body(self, data: bytes) -> None:
        """Write bytes of the request body."""
        if self._bodies:
            self._write(ExchangeTap.request_body, data)
        else:
            self._untaped += len(data)

    def request_end(self) -> None:
        """Write the end of the request."""
        if self._untaped:
            self.note(f"the request's body, {self._untaped} bytes, was left out on demand")
        self._write(ExchangeTap.request_end)

    def sent(self, *, connect_ns: int, tls_ns: int, reused: bool) -> None:
        """Write that the request was sent."""
        self._write(ExchangeTap.sent, connect_ns=connect_ns, tls_ns=tls_ns, reused=reused)

    def informational(self, head: ParsedResponseHead) -> None:
        """Write a 1xx head."""
        self._write(
            ExchangeTap.informational,
            status=head.status,
            reason=head.reason,
            http=head.http,
            headers=head.fields,
        )

    def response(self, head: ParsedResponseHead) -> None:
        """Write the final head."""
        self._write(
            ExchangeTap.response,
            status=head.status,
            reason=head.reason,
            http=head.http,
            framing=head.framing,
            headers=head.fields,
        )

    def read(self, data: bytes, ends: tuple[int, ...] | None) -> None:
        """Write one socket read of the response body: the hot path, so without `_write`."""
        tap = self._tap
        if tap is None:
            return
        now = self.last_ns = self._writer.now_ns()
        try:
            tap.read(now, data, ends)
        except Exception as error:  # noqa: BLE001 - the tap guard: taping never harms a stream
            self._fail(error)

    def trailers(self, fields: Fields) -> None:
        """Write the fields after a chunked body."""
        self._write(ExchangeTap.trailers, fields)

    def delivered(self, total: int) -> None:
        """Write that a slow client has taken `total` body bytes."""
        self._write(ExchangeTap.delivered, total)

    def watch(self, every_ns: int) -> None:
        """Write that a silent exchange is still being recorded."""
        last = self.last_ns
        if self._writer.now_ns() - last >= every_ns:
            self._write(ExchangeTap.idle)
            self.last_ns = last

    def note(self, text: str) -> None:
        """Write a note."""
        self._write(ExchangeTap.note, text)

    def end(self, reason: EndReason, detail: str) -> None:
        """Write the end."""
        losses = self._writer.losses(self.number)
        self._write(ExchangeTap.end, reason, detail=detail, recorder=losses)
