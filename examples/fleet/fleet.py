"""A fleet of recorders on one machine, with real parts; run it with `run`.

Apps talk to a provider by way of nginx and three recorders. A shipper sends the tapes to a store
that speaks S3, a scan on a cluster of Dask makes a dataset of them, and that answers questions. In
the middle of the traffic, one recorder is replaced without a cut.
"""

# ruff: noqa: D103, INP001, PLW1510, S310, S603, T201, TID251 - a program in a folder
import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

from traffic import Apps, Provider, Server

HERE = Path(__file__).resolve().parent
RECORDERS = 3
APPS = 4
SOME = 16
"""Exchanges before and after a recorder is replaced."""
PATIENCE_S = 120.0
DELTATAPE = (sys.executable, "-m", "deltatape")
TAPES = "tapes"
STORE, DATASET = "s3://fleet/tapes", "s3://fleet/dataset"
QUESTIONS = ("findings", "worst", "lost-calls", "arguments")
STARTED = time.monotonic()


def tell(text: str) -> None:
    print(f"{time.monotonic() - STARTED:5.1f} s  {text}", flush=True)


def shown(text: str) -> None:
    for line in text.rstrip().splitlines():
        print(f"         {line}", flush=True)


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def until(happened: Callable[[], object], what: str) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + PATIENCE_S
    while not happened():
        if time.monotonic() > deadline:
            raise SystemExit(f"not within {PATIENCE_S:g} s: {what}")
        time.sleep(0.05)


def listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def metrics(port: int) -> dict[str, float]:
    """Return what a scrape of `/metrics` gives, summed up over labels."""
    url = f"http://127.0.0.1:{port}/metrics"
    with urllib.request.urlopen(url, timeout=20) as answer:
        text = answer.read().decode()
    found: dict[str, float] = {}
    for name, value in re.findall(r"^(\w+)(?:\{.*\})? (\S+)$", text, re.MULTILINE):
        found[name] = found.get(name, 0) + float(value)
    return found


class Programs:
    """The programs that run, each with a log; all are ended at the end."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: list[tuple[str, subprocess.Popen[bytes]]] = []
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")},
            "XDG_STATE_HOME": str(folder / "state"),
        }

    def start(self, name: str, *command: str) -> subprocess.Popen[bytes]:
        with (self._folder / "logs" / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                command, cwd=self._folder, env=self.environment, stdout=log, stderr=log
            )
        self._running.append((name, process))
        return process

    def run(self, *command: str) -> str:
        """Run a command to its end; return what it prints."""
        done = subprocess.run(
            command, cwd=self._folder, env=self.environment, capture_output=True, text=True
        )
        if done.returncode:
            raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
        return done.stdout

    def check(self) -> None:
        """Fail if a program has failed."""
        for name, process in self._running:
            if process.poll():
                log = (self._folder / "logs" / f"{name}.log").read_text()
                raise SystemExit(f"{name} ended with exit code {process.poll()}:\n{log[-2000:]}")

    def listening(self, name: str, port: int) -> None:
        def so() -> bool:
            self.check()
            return listens(port)

        until(so, f"{name} listens")

    def end(self) -> None:
        for _, process in reversed(self._running):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for _, process in self._running:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class Recorder:
    """A place in the fleet: its port, and the recorder that has it."""

    def __init__(self, programs: Programs, number: int, provider: int) -> None:
        self.port, self.control = free_port(), free_port()
        self._name = f"recorder-{number}"
        self._programs = programs
        self._starts = 0
        self._command = (
            *(*DELTATAPE, "record", "--replace", "--listen", f"127.0.0.1:{self.port}"),
            *("--control", f"127.0.0.1:{self.control}", "--to", f"{TAPES}/{self._name}"),
            *("--upstream", f"http://127.0.0.1:{provider}"),
        )
        self.process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        self._starts += 1
        return self._programs.start(f"{self._name}-{self._starts}", *self._command)

    def replace(self) -> subprocess.Popen[bytes]:
        """Start another recorder in its place; return the old one."""
        old, self.process = self.process, self._start()
        return old


@contextlib.contextmanager
def work_folder() -> Iterator[Path]:
    if len(sys.argv) > 1:
        yield Path(sys.argv[1]).absolute()
        return
    with tempfile.TemporaryDirectory(prefix="deltatape-fleet-") as name:
        yield Path(name)


@contextlib.contextmanager
def provider() -> Iterator[int]:
    with Server(("127.0.0.1", 0), Provider) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def start_store(programs: Programs) -> None:
    """Start moto's server: the protocol of S3, its objects in memory."""
    port = free_port()
    programs.environment |= {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": "fleet",
        "AWS_SECRET_ACCESS_KEY": "not-a-secret",
        "AWS_REGION": "us-east-1",
    }
    moto = (sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port))
    programs.start("store", *moto)
    programs.listening("the store", port)
    bucket = urllib.request.Request(f"http://127.0.0.1:{port}/fleet", method="PUT")
    urllib.request.urlopen(bucket, timeout=20).close()


def start_dask(programs: Programs) -> str:
    """Start a scheduler and two workers of Dask; return its address."""
    port = free_port()
    address = f"tcp://127.0.0.1:{port}"
    where = ("--host", "127.0.0.1", "--no-dashboard")
    programs.start(
        "dask-scheduler",
        *(sys.executable, "-m", "distributed.cli.dask_scheduler", *where, "--port", str(port)),
    )
    for each in ("dask-worker-1", "dask-worker-2"):
        programs.start(
            each,
            *(sys.executable, "-m", "distributed.cli.dask_worker", address, *where),
            *("--nthreads", "1", "--no-nanny", "--local-directory", each),
        )
    return address


def start_balancer(programs: Programs, folder: Path, recorders: list[Recorder]) -> int:
    port = free_port()
    servers = " ".join(f"server 127.0.0.1:{each.port};" for each in recorders)
    text = (HERE / "nginx.conf").read_text()
    text = text.replace("RECORDERS", servers).replace("PORT", str(port))
    (folder / "nginx.conf").write_text(text)
    nginx = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if nginx is None:
        raise SystemExit("needs nginx: apt-get install nginx-light")
    programs.start("nginx", nginx, "-p", f"{folder}/", "-e", "stderr", "-c", "nginx.conf")
    programs.listening("nginx", port)
    return port


def waiting(recorder: Recorder) -> float:
    """Return how many exchanges are yet to be analysed."""
    return metrics(recorder.control)["deltatape_analysis_waiting"]


def show_metrics(recorders: list[Recorder]) -> None:
    names = {
        "deltatape_streams_open": "open",
        "deltatape_exchanges_total": "exchanges",
        "deltatape_transferred_bytes_total": "bytes",
        "deltatape_findings_total": "findings",
        "deltatape_lost_records_total": "lost",
        "deltatape_analysis_lag_seconds": "lag",
    }
    for each in recorders:
        found = metrics(each.control)
        counts = ", ".join(f"{title} {found.get(name, 0):g}" for name, title in names.items())
        shown(f"/metrics of 127.0.0.1:{each.control}: {counts}")


def record(programs: Programs, folder: Path, shipper: int) -> Apps:
    """Have apps talk to a provider by way of the fleet; return them when all is recorded."""
    with provider() as upstream, contextlib.ExitStack() as stack:
        recorders = [Recorder(programs, number, upstream) for number in range(1, RECORDERS + 1)]
        for each in recorders:
            programs.listening("a recorder", each.port)
        balancer = start_balancer(programs, folder, recorders)
        tell(f"{RECORDERS} recorders listen, behind nginx at 127.0.0.1:{balancer}")
        apps = Apps(balancer, APPS)
        stack.callback(apps.stop)
        apps.start()
        tell(f"{APPS} apps hold conversations with the provider through nginx")
        until(lambda: apps.exchanges >= SOME, "some traffic")
        show_metrics(recorders)
        old = recorders[1].replace()
        tell(f"recorder 2 (pid {old.pid}) is replaced while streams go on ...")
        code = old.wait(PATIENCE_S)
        new = recorders[1]
        tell(f"... it has ended by itself, with exit code {code}; pid {new.process.pid} records")
        until(lambda: metrics(new.control)["deltatape_exchanges_total"] >= SOME, "more traffic")
        apps.stop()
        tell(
            f"the apps got {apps.whole} whole streams and {apps.cut} that the provider cut;"
            f" {len(apps.failed)} failed"
        )
        until(lambda: not sum(map(waiting, recorders)), "the analysis has caught up")
        show_metrics(recorders)
        for each in recorders:
            each.process.send_signal(signal.SIGTERM)
        for each in recorders:
            each.process.wait(PATIENCE_S)
        tell("the recorders have ended")
    tapes = len(list((folder / TAPES).rglob("*.tape")))
    until(lambda: metrics(shipper)["deltatape_ship_shipped_tapes_total"] == tapes, "all is shipped")
    found = metrics(shipper)
    sent = found["deltatape_ship_shipped_bytes_total"]
    tell(f"the shipper has stored {tapes} tapes, {sent:g} bytes; its backlog is empty")
    return apps


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that all programs are ended
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(work_folder())
        (folder / "logs").mkdir(parents=True)
        (folder / TAPES).mkdir()
        programs = Programs(folder)
        stack.callback(programs.end)
        start_store(programs)
        scheduler = start_dask(programs)
        shipper = free_port()
        ship = ("ship", TAPES, STORE, "--metrics", f"127.0.0.1:{shipper}")
        programs.start("shipper", *DELTATAPE, *ship)
        tell(f"a store that speaks S3, a shipper to {STORE} and Dask with 2 workers run")
        apps = record(programs, folder, shipper)
        programs.check()
        scan = ("scan", STORE, "--out", DATASET, "--engine", "dask", "--scheduler", scheduler)
        tell(f"deltatape {' '.join(scan)}")
        shown(programs.run(*DELTATAPE, *scan))
        for question in QUESTIONS:
            tell(f"deltatape ask {DATASET} {question}")
            shown(programs.run(*DELTATAPE, "ask", DATASET, question))
        count = ("ask", DATASET, "--format", "csv", "--sql", "SELECT count(*) FROM exchanges")
        exchanges = int(programs.run(*DELTATAPE, *count).split()[-1])
        for problem in apps.failed:
            tell(f"FAILED: {problem}")
        tell(f"{exchanges} exchanges are in the dataset, of {apps.exchanges} that apps had")
    tell("all programs have ended")
    return 0 if not apps.failed and exchanges == apps.exchanges else 1


if __name__ == "__main__":
    sys.exit(main())
