"""Metrics of a recorder: Prometheus scrapes them at `/metrics`, `--otlp` pushes them as OTLP.

Both come from one table of instruments, computed on demand from counters that the recorder keeps
anyway, so no stream is slower for them. The table has the names of OpenTelemetry; Prometheus gets
the names that its specification derives from them, so one dashboard fits both.

No label comes from traffic, so the number of series is bounded by the number of codes.

Source: https://opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics/
"""

import asyncio
import contextlib
import logging
import math
import os
import socket
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from deltatape import __version__
from deltatape.child.background import BackgroundTask
from deltatape.clock import Clock
from deltatape.errors import UsageError
from deltatape.live.client import AnalysisLag
from deltatape.live.messages import ExchangeReport
from deltatape.model.recording_counts import RecordingCounts
from deltatape.urls import split_url

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

INSTALL = 'pip install "deltatape[fleet]"'
PUSH_EVERY_MS = 60_000
"""The interval of pushes unless `OTEL_METRIC_EXPORT_INTERVAL` sets it."""
LAST_PUSH_S = 5.0
"""The longest wait for the last push at the end of a recording."""
_COLLECTOR = "http://localhost:4318"
_PATH = "/v1/metrics"
_PROTOCOL = "http/protobuf"
_NS = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The counters of a recorder at one moment.

    Attributes:
        counts: the counts of the recording.
        lag: the lag of the analysis.
        findings: by code and severity.
        exchanges_with_findings: how many have a warning or an error.
        unanalysed: how many exchanges nobody has analysed.
        trouble: whether something cannot be taped now.
        started_s: since when it records, by the wall clock.
    """

    counts: RecordingCounts
    lag: AnalysisLag
    findings: Mapping[tuple[str, str], int]
    exchanges_with_findings: int
    unanalysed: int
    trouble: bool
    started_s: float


class Kind(Enum):
    """The kind of a metric: a total that only grows, an amount that can be summed, a state."""

    COUNTER = "counter"
    UP_DOWN = "up-down counter"
    GAUGE = "gauge"


Values = Iterable[tuple[tuple[str, ...], float]]
"""The values of the labels, and the number."""


@dataclass(frozen=True, slots=True)
class Instrument:
    """One metric. `read` returns its numbers from a sample; `unit` is a UCUM code."""

    name: str
    kind: Kind
    unit: str
    description: str
    read: Callable[[Sample], Values]
    labels: tuple[str, ...] = ()

    @property
    def prometheus(self) -> str:
        """The name for Prometheus: with the unit, and `_total` for a counter."""
        unit = {"By": "_bytes", "s": "_seconds"}.get(self.unit, "")
        total = "_total" if self.kind is Kind.COUNTER else ""
        return self.name.replace(".", "_") + unit + total


def _one(read: Callable[[Sample], float]) -> Callable[[Sample], Values]:
    """Return a reader of a number without labels."""
    return lambda sample: (((), read(sample)),)


INSTRUMENTS: Sequence[Instrument] = (
    Instrument(
        "deltatape.build.info",
        Kind.GAUGE,
        "",
        "Which version records: always 1",
        lambda _: (((__version__,), 1),),
        ("version",),
    ),
    Instrument(
        "deltatape.start.time",
        Kind.GAUGE,
        "s",
        "When the recorder started, since the epoch",
        _one(lambda sample: sample.started_s),
    ),
    Instrument(
        "deltatape.streams.open",
        Kind.UP_DOWN,
        "{stream}",
        "Exchanges in progress",
        _one(lambda sample: sample.counts.active),
    ),
    Instrument(
        "deltatape.exchanges",
        Kind.COUNTER,
        "{exchange}",
        "Exchanges since the start",
        _one(lambda sample: sample.counts.exchanges),
    ),
    Instrument(
        "deltatape.connections",
        Kind.COUNTER,
        "{connection}",
        "Connections of clients",
        _one(lambda sample: sample.counts.clients),
    ),
    Instrument(
        "deltatape.requests.refused",
        Kind.COUNTER,
        "{request}",
        "Requests that were answered without an upstream",
        _one(lambda sample: sample.counts.refused),
    ),
    Instrument(
        "deltatape.transferred",
        Kind.COUNTER,
        "By",
        "Bytes of bodies and WebSockets: of requests to providers, of responses to apps",
        lambda sample: (
            (("request",), sample.counts.request_bytes),
            (("response",), sample.counts.response_bytes),
        ),
        ("direction",),
    ),
    Instrument(
        "deltatape.findings",
        Kind.COUNTER,
        "{finding}",
        "Findings, by code and severity",
        lambda sample: sample.findings.items(),
        ("code", "severity"),
    ),
    Instrument(
        "deltatape.exchanges.flagged",
        Kind.COUNTER,
        "{exchange}",
        "Exchanges with a warning or an error",
        _one(lambda sample: sample.exchanges_with_findings),
    ),
    Instrument(
        "deltatape.exchanges.unanalysed",
        Kind.COUNTER,
        "{exchange}",
        "Exchanges that are on a tape and that the recorder has not analysed",
        _one(lambda sample: sample.unanalysed),
    ),
    Instrument(
        "deltatape.analysis.waiting",
        Kind.UP_DOWN,
        "{exchange}",
        "Exchanges that have ended and wait for their analysis",
        _one(lambda sample: sample.lag.exchanges),
    ),
    Instrument(
        "deltatape.analysis.lag",
        Kind.GAUGE,
        "s",
        "How long the oldest exchange has waited for its analysis",
        _one(lambda sample: sample.lag.seconds),
    ),
    Instrument(
        "deltatape.lost.records",
        Kind.COUNTER,
        "{record}",
        "Records that could not be written to a tape",
        _one(lambda sample: sample.counts.lost_records),
    ),
    Instrument(
        "deltatape.lost",
        Kind.COUNTER,
        "By",
        "Bytes of records that could not be written to a tape",
        _one(lambda sample: sample.counts.lost_bytes),
    ),
    Instrument(
        "deltatape.taping.trouble",
        Kind.GAUGE,
        "",
        "1 while something cannot be taped, otherwise 0",
        _one(lambda sample: int(sample.trouble)),
    ),
    Instrument(
        "deltatape.tapes.open",
        Kind.UP_DOWN,
        "{tape}",
        "Tapes that are being written",
        _one(lambda sample: len(sample.counts.tapes)),
    ),
)


class FindingCounter:
    """Counts findings by code and severity."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()

    def add(self, report: ExchangeReport) -> None:
        """Count the findings of an exchange."""
        for finding in report.findings:
            self.counts[str(finding["code"]), str(finding["severity"])] += 1


# Prometheus.


class _Collector:
    """A collector of prometheus-client for one sample."""

    def __init__(self, sample: Sample) -> None:
        self._sample = sample

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import (  # noqa: PLC0415 - an extra
            CounterMetricFamily,
            GaugeMetricFamily,
        )

        for each in INSTRUMENTS:
            family = CounterMetricFamily if each.kind is Kind.COUNTER else GaugeMetricFamily
            metric = family(each.prometheus, each.description, labels=each.labels)
            for labels, value in each.read(self._sample):
                metric.add_metric(labels, value)
            yield metric


def load_prometheus() -> bool:
    """Import what `exposition` needs, before any stream could wait for it; False if it lacks."""
    try:
        import prometheus_client.core  # noqa: F401, PLC0415 - an extra
    except ImportError:
        return False
    return True


def exposition(sample: Sample, accept: str) -> tuple[str, bytes]:
    """Return the type and the text of an answer to a scrape whose `Accept` field is `accept`.

    Raises:
        UsageError: prometheus-client is not installed.
    """
    if not load_prometheus():
        raise UsageError(f"/metrics needs prometheus-client: {INSTALL}")
    from prometheus_client import CollectorRegistry  # noqa: PLC0415 - an extra
    from prometheus_client.exposition import choose_encoder  # noqa: PLC0415 - an extra

    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(sample))
    encode, content_type = choose_encoder(accept)
    return content_type, encode(registry)


# OTLP.


def collector_url(url: str, environment: Mapping[str, str]) -> str:
    """Return the URL to push metrics to.

    Args:
        url: the url of a collector, or of its metrics; "" for the one that the environment names.
        environment: can have the variables of OpenTelemetry.

    Raises:
        UsageError: it is not such a URL, or the protocol is not supported.
    """
    general = "OTEL_EXPORTER_OTLP_PROTOCOL"
    protocol = environment.get("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL") or environment.get(general)
    if protocol not in (None, "", _PROTOCOL):
        raise UsageError(f"{general}={protocol}: metrics are pushed by {_PROTOCOL} only")
    if not url and (own := environment.get("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT")):
        return own
    url = url or environment.get("OTEL_EXPORTER_OTLP_ENDPOINT") or _COLLECTOR
    parts = split_url(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(
            f"--otlp {url!r}: use the URL of a collector that speaks OTLP over HTTP, such as"
            f" {_COLLECTOR}"
        )
    return url if parts.path.endswith(_PATH) else url.rstrip("/") + _PATH


class OtlpPush(BackgroundTask):
    """Pushes metrics to a collector, from a thread that nobody waits for.

    The variables `OTEL_EXPORTER_OTLP_*` set headers, timeout, compression and certificates;
    `OTEL_RESOURCE_ATTRIBUTES` and `OTEL_SERVICE_NAME` set the resource.

    Args:
        url: the url of a collector; "" for the one that the variables name.
        sample: counts; called in the event loop.
        tell: gets a line when a push first fails, and when pushes succeed again.

    Raises:
        UsageError: the extra is not installed, or the URL or a variable is invalid.
    """

    def __init__(self, url: str, sample: Callable[[], Sample], tell: Callable[[str], None]) -> None:
        self.url = collector_url(url, os.environ)
        self._every_s = _interval_s(os.environ.get("OTEL_METRIC_EXPORT_INTERVAL", ""))
        self._take = sample
        self._tell = tell
        self._sample = sample()
        self._took = True  # whether the collector took the last push
        self._failing = False
        try:
            self._reader = self._instruments()
        except ImportError:
            raise UsageError(f"--otlp needs OpenTelemetry's SDK: {INSTALL}") from None

    def _instruments(self) -> "PeriodicExportingMetricReader":
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import (  # noqa: PLC0415 - an extra
            OTLPMetricExporter,
        )
        from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415
        from opentelemetry.sdk.metrics.export import (  # noqa: PLC0415
            MetricExportResult,
            PeriodicExportingMetricReader,
        )
        from opentelemetry.sdk.resources import (  # noqa: PLC0415
            OTELResourceDetector,
            Resource,
        )

        # It says in lines of its own what `tell` says once.
        logging.getLogger("opentelemetry").addHandler(logging.NullHandler())
        logging.getLogger("opentelemetry").propagate = False
        push = self

        class Exporter(OTLPMetricExporter):
            def export(self, *args: Any, **kwargs: Any) -> MetricExportResult:
                result = super().export(*args, **kwargs)
                push._took = result is MetricExportResult.SUCCESS
                return result

        reader = PeriodicExportingMetricReader(Exporter(self.url), export_interval_millis=math.inf)
        own = Resource(
            {
                "service.name": "deltatape",
                "service.version": __version__,
                "service.instance.id": str(uuid.uuid4()),
                "host.name": socket.gethostname(),
                "process.pid": os.getpid(),
            }
        )
        provider = MeterProvider(
            (reader,), own.merge(OTELResourceDetector().detect()), shutdown_on_exit=False
        )
        meter = provider.get_meter("deltatape", __version__)
        make = {
            Kind.COUNTER: meter.create_observable_counter,
            Kind.UP_DOWN: meter.create_observable_up_down_counter,
            Kind.GAUGE: meter.create_observable_gauge,
        }
        for each in INSTRUMENTS:
            make[each.kind](each.name, (self._observe(each),), each.unit, each.description)
        return reader

    def _observe(self, each: Instrument) -> Callable[[object], Iterator[Any]]:
        from opentelemetry.metrics import Observation  # noqa: PLC0415 - an extra

        def observe(_: object) -> Iterator[Any]:
            for labels, value in each.read(self._sample):
                yield Observation(value, dict(zip(each.labels, labels, strict=True)))

        return observe

    async def stop(self) -> None:
        """Push for the last time; harmless without a start, and twice."""
        if self._task is None:
            return
        await super().stop()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._push(), LAST_PUSH_S)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._every_s)
            await self._push()

    async def _push(self) -> None:
        """Push in a separate thread: the loop's threads resolve names, and exit must not wait."""
        self._sample = self._take()
        loop = asyncio.get_running_loop()
        done = asyncio.Event()

        def collect() -> None:
            self._reader.collect()
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(done.set)

        threading.Thread(target=collect, name="deltatape-otlp", daemon=True).start()
        await done.wait()
        if self._took is self._failing:
            self._failing = not self._took
            if self._took:
                self._tell(f"note: {self.url} takes metrics again")
            else:
                self._tell(f"note: {self.url} takes no metrics; recording goes on")


def _interval_s(text: str) -> float:
    """Return how often to push, given `OTEL_METRIC_EXPORT_INTERVAL`, in milliseconds."""
    try:
        milliseconds = float(text or PUSH_EVERY_MS)
    except ValueError:
        milliseconds = 0
    if not 0 < milliseconds < math.inf:
        raise UsageError(
            f"OTEL_METRIC_EXPORT_INTERVAL={text}: use a number of milliseconds, such as 60000"
        )
    return milliseconds / 1e3


def started_s(clock: Clock) -> float:
    """Return the time, as `Sample.started_s` has it."""
    return clock.wall_ns() / _NS
