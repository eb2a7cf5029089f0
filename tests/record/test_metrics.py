"""Metrics of a recorder, scraped as Prometheus does and received as a collector of OTLP does."""

import asyncio
import contextlib
import json
import re
import threading
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import SimpleQueue

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as openmetrics_families,
)
from prometheus_client.parser import text_string_to_metric_families

from deltatape.clock import SystemClock
from deltatape.demo.demo import Background, background
from deltatape.errors import UsageError
from deltatape.live.client import AnalysisLag
from deltatape.live.messages import ExchangeReport
from deltatape.model.recording_counts import RecordingCounts
from deltatape.record.metrics import (
    INSTALL,
    INSTRUMENTS,
    FindingCounter,
    Kind,
    OtlpPush,
    Sample,
    collector_url,
    exposition,
    started_s,
)
from helpers.chat import FINISH, choice, sse
from helpers.clients import ROOT
from helpers.disk import small_disk
from helpers.exchanges import TEXT_REPLY, USER, asks, call
from helpers.program import deltatape, environment, program
from helpers.upstream import SSE_HEAD, Peer, chunk, connect, eventually, post, provider, run

LONG_S = 90.0
CUT = sse(*call(arguments='{"city":'), FINISH)
"""A reply whose arguments are cut: an error."""
ASKED = json.dumps(asks(USER)).encode()
Series = dict[tuple[str, ...], float]
"""Numbers by name and values of labels."""
OPEN = ("deltatape_streams_open",)


async def broken(peer: Peer) -> None:
    """A provider whose every second reply on a connection is broken."""
    while True:
        for reply in (sse(*TEXT_REPLY), CUT):
            await peer.request()
            await peer.send(SSE_HEAD + chunk(reply) + b"0\r\n\r\n")


async def exchange(client: Peer, body: bytes = ASKED) -> None:
    await client.send(post(body))
    await client.until(b"\r\n0\r\n\r\n")


def scraped(control: str, accept: str = "") -> Series:
    """What a scrape gives."""
    request = urllib.request.Request(f"{control}/metrics", headers={"Accept": accept})  # noqa: S310 - on loopback
    with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310
        text = answer.read().decode()
        parse = text_string_to_metric_families
        if answer.headers["Content-Type"].startswith("application/openmetrics-text"):
            parse = openmetrics_families
    return {
        (each.name, *each.labels.values()): each.value
        for family in parse(text)
        for each in family.samples
    }


@dataclass
class Scraping:
    """A recorder with a control address."""

    running: Background
    control: str

    async def until(self, condition: Callable[[Series], bool]) -> Series:
        """A scrape that meets a condition."""
        series: Series = {}
        for _ in range(3000):
            series = await asyncio.to_thread(scraped, self.control)
            if condition(series):
                return series
            await asyncio.sleep(0.01)
        raise AssertionError(f"never so: {series}")


@contextlib.asynccontextmanager
async def scraping(folder: Path, port: int, *options: str) -> AsyncIterator[Scraping]:
    ready = folder / "ready.json"
    arguments = ("record", "--listen", "127.0.0.1:0", "--to", "tapes", "--ready-file", str(ready))
    more = ("--upstream", f"http://127.0.0.1:{port}", "--control", "127.0.0.1:0")
    with program(*arguments, *more, *options, folder=folder) as running:
        await asyncio.to_thread(running.wait_for, "  health ")
        yield Scraping(running, json.loads(ready.read_text())["control"])


@pytest.mark.parametrize("workers", [1, 2])
def test_a_scrape_tells_what_was_recorded(tmp_path: Path, workers: int) -> None:
    bodies = len(sse(*TEXT_REPLY)) + len(CUT)

    async def scenario() -> None:
        async with (
            provider(broken) as port,
            scraping(tmp_path, port, "--workers", str(workers)) as recorder,
        ):
            clients = [await connect(recorder.running.port) for _ in range(8)]
            for client in clients:
                await exchange(client)
                await exchange(client)
            refused = await connect(recorder.running.port)
            await refused.send(b"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n")
            await refused.rest()
            series = await recorder.until(
                lambda got: (
                    got["deltatape_exchanges_total",] == 16
                    and got["deltatape_analysis_waiting",] == 0
                    and got["deltatape_exchanges_flagged_total",] == 8
                    and got["deltatape_requests_refused_total",] == 1
                    and got["deltatape_streams_open",] == 0
                )
            )
            assert series["deltatape_transferred_bytes_total", "response"] == 8 * bodies
            assert series["deltatape_transferred_bytes_total", "request"] == 16 * len(ASKED)
            assert series["deltatape_connections_total",] == 9
            assert series["deltatape_tapes_open",] == workers
            assert series["deltatape_analysis_lag_seconds",] == 0
            assert series["deltatape_lost_records_total",] == 0
            assert series["deltatape_lost_bytes_total",] == 0
            assert series["deltatape_taping_trouble",] == 0
            assert series["deltatape_exchanges_unanalysed_total",] == 0
            assert series["deltatape_findings_total", "T003", "error"] == 8
            code, told = await asyncio.to_thread(recorder.running.stop)
            assert code == 0
            printed = re.findall(r"^    (\w+) ([A-Z]\d+) ", told, re.MULTILINE)
            for severity, finding in set(printed):
                counted = series["deltatape_findings_total", finding, severity]
                assert counted == printed.count((severity, finding))

    run(scenario(), LONG_S)


def test_a_stream_is_counted_while_it_is_open(tmp_path: Path) -> None:
    head = sse(*TEXT_REPLY[:1])

    async def scenario() -> None:
        goes_on = asyncio.Event()

        async def slow(peer: Peer) -> None:
            await peer.request()
            await peer.send(SSE_HEAD + chunk(head))
            await goes_on.wait()
            await peer.send(b"0\r\n\r\n")

        async with provider(slow) as port, scraping(tmp_path, port) as recorder:
            client = await connect(recorder.running.port)
            await client.send(post(ASKED))
            await client.until(head[-8:])
            series = await recorder.until(
                lambda got: got["deltatape_transferred_bytes_total", "response"] > 0
            )
            assert series["deltatape_transferred_bytes_total", "response"] == len(head)
            assert series["deltatape_transferred_bytes_total", "request"] == len(ASKED)
            assert series["deltatape_streams_open",] == 1
            goes_on.set()
            await client.until(b"\r\n0\r\n\r\n")
            series = await recorder.until(lambda got: got["deltatape_streams_open",] == 0)
            assert series["deltatape_transferred_bytes_total", "response"] == len(head)

    run(scenario(), LONG_S)


SAMPLE = Sample(
    counts=RecordingCounts(exchanges=3, active=2, tapes=("a", "b"), request_bytes=5),
    lag=AnalysisLag(2, 1.5),
    findings={("T002", "error"): 1},
    exchanges_with_findings=1,
    unanalysed=0,
    trouble=True,
    started_s=12.5,
)


@pytest.mark.parametrize(
    ("accept", "kind", "end"),
    [
        ("", "text/plain; version=0.0.4", "\n"),
        ("application/openmetrics-text;version=1.0.0", "application/openmetrics-text", "# EOF\n"),
    ],
)
def test_a_scraper_gets_the_format_that_it_accepts(accept: str, kind: str, end: str) -> None:
    content_type, text = exposition(SAMPLE, accept)
    assert content_type.startswith(kind)
    assert text.decode().endswith(end)
    assert 'deltatape_findings_total{code="T002",severity="error"} 1.0\n' in text.decode()
    assert "deltatape_analysis_lag_seconds 1.5\n" in text.decode()


def test_no_label_comes_from_traffic() -> None:
    labels = {each.name: each.labels for each in INSTRUMENTS if each.labels}
    assert labels == {
        "deltatape.build.info": ("version",),
        "deltatape.transferred": ("direction",),
        "deltatape.findings": ("code", "severity"),
    }
    names = [each.prometheus for each in INSTRUMENTS]
    assert len({*names}) == len(names)
    assert all(re.fullmatch(r"deltatape(_[a-z]+)+", name) for name in names)


def test_each_metric_is_documented() -> None:
    page = (ROOT / "docs" / "operating.md").read_text()
    rows = re.findall(
        r"^\| `(deltatape\S+)` \| `(deltatape\S+)` \| ([a-z -]+) \|", page, re.MULTILINE
    )
    assert rows == [(each.prometheus, each.name, each.kind.value) for each in INSTRUMENTS]


def test_findings_are_counted_by_code_and_severity() -> None:
    counter = FindingCounter()
    found = {"code": "T002", "severity": "error", "message": "x"}
    report = ExchangeReport(key=1, number=1, lines=(), findings=(found, found))
    counter.add(report)
    counter.add(report)
    assert counter.counts == {("T002", "error"): 4}


# OTLP.


@dataclass
class Collector:
    """A collector on loopback: what it has received; `status` is what it answers."""

    url: str
    status: int = 200
    received: SimpleQueue[ExportMetricsServiceRequest] = field(default_factory=SimpleQueue)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)

    def until(self, condition: Callable[[Series], bool]) -> ExportMetricsServiceRequest:
        """A push that meets a condition."""
        while True:
            request = self.received.get(timeout=LONG_S)
            if condition(numbers(request)):
                return request


@contextlib.contextmanager
def collector() -> Iterator[Collector]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got.headers.append({name.lower(): value for name, value in self.headers.items()})
            got.paths.append(self.path)
            got.received.put(ExportMetricsServiceRequest.FromString(body))
            answer = ExportMetricsServiceResponse().SerializeToString()
            self.send_response(got.status)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        got = Collector(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield got
        finally:
            server.shutdown()
            thread.join()


def numbers(request: ExportMetricsServiceRequest) -> Series:
    """The numbers in a push."""
    found: Series = {}
    for resource in request.resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                data = metric.sum if metric.HasField("sum") else metric.gauge
                for point in data.data_points:
                    labels = [each.value.string_value for each in point.attributes]
                    value = point.as_double if point.HasField("as_double") else point.as_int
                    found[(metric.name, *labels)] = value
    return found


def resource(request: ExportMetricsServiceRequest) -> dict[str, str]:
    (one,) = request.resource_metrics
    return {each.key: each.value.string_value for each in one.resource.attributes}


def test_metrics_are_pushed_as_opentelemetry_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "50")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=tapes")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")

    async def scenario(collected: Collector) -> ExportMetricsServiceRequest:
        async with (
            provider(broken) as port,
            scraping(tmp_path, port, "--otlp", collected.url) as recorder,
        ):
            client = await connect(recorder.running.port)
            await exchange(client)
            await exchange(client)
            request = await asyncio.to_thread(
                collected.until, lambda got: got.get(("deltatape.exchanges.flagged",)) == 1
            )
            code, told = await asyncio.to_thread(recorder.running.stop)
            assert code == 0
            assert f"  metrics  go to {collected.url}/v1/metrics\n" in told
            return request

    with collector() as collected:
        request = run(scenario(collected), LONG_S)
        got = numbers(request)
        assert got["deltatape.exchanges",] == 2
        assert got["deltatape.findings", "T003", "error"] == 1
        assert got["deltatape.transferred", "request"] == 2 * len(ASKED)
        kinds = {
            metric.name: (metric.WhichOneof("data"), metric.sum.is_monotonic, metric.unit)
            for each in request.resource_metrics[0].scope_metrics
            for metric in each.metrics
        }
        assert kinds == {
            each.name: (
                "gauge" if each.kind is Kind.GAUGE else "sum",
                each.kind is Kind.COUNTER,
                each.unit,
            )
            for each in INSTRUMENTS
        }
        about = resource(request)
        assert about["service.name"] == "deltatape"
        assert about["deployment.environment.name"] == "test"
        assert about["service.instance.id"]
        assert collected.headers[0]["x-team"] == "tapes"
        assert {*collected.paths} == {"/v1/metrics"}


def test_losses_are_counted_where_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "50")

    async def many(peer: Peer) -> None:
        await peer.request()
        await peer.send(SSE_HEAD)
        for _ in range(100):
            await peer.send(chunk(sse(choice({"content": "x" * 4000}), done=False)))
        await peer.send(b"0\r\n\r\n")

    async def scenario(collected: Collector) -> None:
        async with (
            provider(many) as port,
            scraping(tmp_path, port, "--otlp", collected.url) as recorder,
        ):
            client = await connect(recorder.running.port)
            await client.send(post(ASKED))
            await client.until(b"\r\n0\r\n\r\n")
            series = await recorder.until(
                lambda got: got["deltatape_lost_records_total",] > 0 and got[OPEN] == 0
            )
            assert series["deltatape_lost_bytes_total",] > 4000
            assert series["deltatape_transferred_bytes_total", "response"] > 400_000
            pushed = await asyncio.to_thread(
                collected.until, lambda got: got.get(("deltatape.lost.records",), 0) > 0
            )
            assert numbers(pushed)["deltatape.lost",] > 4000

    with small_disk(tmp_path / "tapes", 1 << 16), collector() as collected:
        run(scenario(collected), LONG_S)


def test_the_last_counts_are_pushed_at_the_end(tmp_path: Path) -> None:
    async def scenario(collected: Collector) -> None:
        async with (
            provider(broken) as port,
            scraping(tmp_path, port, "--otlp", collected.url) as recorder,
        ):
            await exchange(await connect(recorder.running.port))
            await asyncio.to_thread(recorder.running.stop)

    with collector() as collected:
        run(scenario(collected), LONG_S)
        (request,) = [collected.received.get_nowait() for _ in range(collected.received.qsize())]
        assert numbers(request)["deltatape.exchanges",] == 1


def test_a_collector_that_takes_nothing_is_told_once_and_when_it_does_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "5")
    told: list[str] = []

    async def scenario(collected: Collector) -> None:
        collected.status = 400  # for which a client does not try again
        push = OtlpPush(collected.url, lambda: SAMPLE, told.append)
        push.start()
        await eventually(lambda: len(collected.paths) > 3, "pushes")
        collected.status = 200
        await eventually(lambda: len(told) > 1, "the end of it")
        await push.stop()
        await push.stop()

    with collector() as collected:
        run(scenario(collected))
        where = f"{collected.url}/v1/metrics"
        assert told == [
            f"note: {where} takes no metrics; recording goes on",
            f"note: {where} takes metrics again",
        ]


@pytest.mark.parametrize(
    ("url", "variables", "expected"),
    [
        ("http://h:4318", {}, "http://h:4318/v1/metrics"),
        ("http://h:4318/", {}, "http://h:4318/v1/metrics"),
        ("https://h/otlp/v1/metrics", {}, "https://h/otlp/v1/metrics"),
        ("", {}, "http://localhost:4318/v1/metrics"),
        ("", {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c"}, "http://c/v1/metrics"),
        ("http://h", {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c"}, "http://h/v1/metrics"),
        ("", {"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://c/m"}, "http://c/m"),
    ],
)
def test_where_metrics_go(url: str, variables: dict[str, str], expected: str) -> None:
    assert collector_url(url, variables) == expected


@pytest.mark.parametrize(
    ("url", "variables"),
    [
        ("h:4318", {}),
        ("ftp://h", {}),
        ("http://", {}),
        ("http://[", {}),
        ("", {"OTEL_EXPORTER_OTLP_ENDPOINT": "grpc://c"}),
        ("http://h", {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}),
        ("http://h", {"OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "http/json"}),
    ],
)
def test_another_place_is_refused(url: str, variables: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=r"--otlp|OTEL_EXPORTER_OTLP_PROTOCOL"):
        collector_url(url, variables)


def test_an_interval_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "soon")
    with pytest.raises(UsageError, match="OTEL_METRIC_EXPORT_INTERVAL=soon"):
        OtlpPush("http://127.0.0.1:1", lambda: SAMPLE, print)


def test_a_start_is_told_in_seconds() -> None:
    assert started_s(SystemClock()) > 1_700_000_000


# Without the extra.


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """An environment in which what the extra installs cannot be imported."""
    for name in ("prometheus_client", "opentelemetry"):
        (tmp_path / "bare").mkdir(exist_ok=True)
        (tmp_path / "bare" / f"{name}.py").write_text(f"raise ImportError({name!r})\n")
    env = environment(tmp_path)
    return {**env, "PYTHONPATH": f"{tmp_path / 'bare'}:{env.get('PYTHONPATH', '')}"}


def test_without_the_extra_a_scrape_says_what_to_install(
    tmp_path: Path, bare: dict[str, str]
) -> None:
    ready = tmp_path / "ready.json"
    arguments = ("record", "--listen", "127.0.0.1:0", "--control", "127.0.0.1:0")
    more = ("--ready-file", str(ready))
    with background(*arguments, *more, cwd=tmp_path, env=bare) as running:
        running.wait_for("  health ")
        control = json.loads(ready.read_text())["control"]
        with pytest.raises(urllib.error.HTTPError) as refused:
            scraped(control)
        with urllib.request.urlopen(f"{control}/status", timeout=20) as status:  # noqa: S310 - on loopback
            assert json.load(status)["trouble"] is None
        code, _ = running.stop()
    assert refused.value.code == 501
    assert INSTALL in json.load(refused.value)["error"]
    assert code == 0


def test_without_the_extra_pushing_says_what_to_install(
    tmp_path: Path, bare: dict[str, str]
) -> None:
    result = deltatape("record", "--listen", "127.0.0.1:0", "--otlp", folder=tmp_path, env=bare)
    assert result.returncode == 2
    assert INSTALL in result.stderr.decode()
    assert list(tmp_path.glob(".deltatape/*.tape")) == []
