"""A recorder of some thirty lines on another shell: mitmproxy feeds the same taps and writer."""

import os
from pathlib import Path

from mitmproxy import http

from deltatape.clock import SystemClock
from deltatape.model.exchange import EndReason, Framing, Source
from deltatape.store.ids import ulid
from deltatape.store.writer import TapeWriter
from deltatape.tape.mask import Masker
from deltatape.tape.tap import ExchangeTap, TapeTap

CLOCK = SystemClock()


class Recorder:
    """mitmproxy's hooks, each one call of a tap."""

    def __init__(self) -> None:
        folder = Path(os.environ["ADDON_FOLDER"])
        self.writer = TapeWriter.create(
            folder, "mitm", clock=CLOCK, tool="addon", source=Source.MITM, alarm=print
        )
        self.taps: dict[str, ExchangeTap] = {}

    def request(self, flow: http.HTTPFlow) -> None:
        tap = ExchangeTap(len(self.taps) + 1, self.writer.put, Masker(b"key"))
        self.taps[flow.id] = tap
        asked, now = flow.request, self.writer.now_ns()
        tap.request(
            now,
            id=ulid(CLOCK),
            method=asked.method,
            target=asked.path.encode(),
            upstream=f"{asked.scheme}://{asked.host}:{asked.port}",
            http=asked.http_version.removeprefix("HTTP/"),
            headers=asked.headers.fields,
        )
        tap.request_body(now, asked.raw_content or b"")
        tap.request_end(now)

    def responseheaders(self, flow: http.HTTPFlow) -> None:
        tap, response = self.taps[flow.id], flow.response
        assert response is not None
        chunked = response.headers.get("transfer-encoding", "").lower() == "chunked"
        tap.response(
            self.writer.now_ns(),
            status=response.status_code,
            reason=(response.reason or "").encode(),
            http=response.http_version.removeprefix("HTTP/"),
            framing=Framing.CHUNKED if chunked else Framing.LENGTH,
            headers=response.headers.fields,
        )

        def read(data: bytes) -> bytes:
            if data:
                tap.read(self.writer.now_ns(), data, (len(data),) if chunked else None)
            return data

        response.stream = read

    def response(self, flow: http.HTTPFlow) -> None:
        self.taps[flow.id].end(self.writer.now_ns(), EndReason.COMPLETE)

    def error(self, flow: http.HTTPFlow) -> None:
        told = flow.error.msg if flow.error else ""
        left = EndReason.CLIENT_CLOSED if "lient" in told else EndReason.UPSTREAM_CLOSED
        self.taps[flow.id].end(self.writer.now_ns(), left, detail=told)

    def done(self) -> None:
        TapeTap(self.writer.put).stop(self.writer.now_ns(), "done", None)
        self.writer.close()


addons = [Recorder()]
