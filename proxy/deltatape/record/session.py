"""One run of `deltatape record`, assembled from its parts.

Data flow: a `Gateway` takes a client's request and sends it upstream over a `Connector`; the
`Recorder` writes request and response to a tape of the `TapeBook` and has them analysed; the
`Reporter` prints. Around that: the application, the tunnel that sees traffic past the gateway, the
ring, the hook for findings, the health listener.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from deltatape.child.child import run_child
from deltatape.child.ready import ReadyFile
from deltatape.child.signals import Signals
from deltatape.clock import Clock, file_stamp
from deltatape.environment.application import EnvironmentPlan, plan
from deltatape.environment.dotenv import DotenvFile, read_dotenv
from deltatape.environment.known_secrets import known_secrets
from deltatape.errors import UsageError
from deltatape.gateway.dial import Connector
from deltatape.gateway.gateway import Gateway, TapPolicy, stop_recording
from deltatape.gateway.outbound import OutboundSettings
from deltatape.gateway.recorder import Recorder, RecorderOptions
from deltatape.gateway.routes import Routes, Upstream, parse_upstream
from deltatape.gateway.tapes import OpenTape, TapeBook
from deltatape.gateway.tunnel import Tunnel, TunnelledConnection
from deltatape.http1.listener import Address
from deltatape.live.client import LiveAnalysis
from deltatape.live.messages import ExchangeReport, SilenceReport
from deltatape.model.exchange import Tap
from deltatape.model.finding import Severity
from deltatape.model.rule_settings import Settings
from deltatape.model.tape_summary import CHILD_EXIT
from deltatape.printable import count
from deltatape.record.bypass import BypassSearch, tunnel_variables
from deltatape.record.control import Control
from deltatape.record.on_finding import OnFinding
from deltatape.record.reporter import NO_TRAFFIC_S, Beginning, Reporter, Tell, introduce, no_traffic
from deltatape.store.ring import RetentionPolicy, SegmentRing
from deltatape.store.tape_file import WriterThread
from deltatape.store.writer import TapeWriter
from deltatape.tape.credentials import basic
from deltatape.tape.mask import Masker

# What `deltatape record` was asked to do, as values.


_SEVERAL = 2
"""With so many tapes to check, the folder is named instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordOptions:
    """All settings of a run.

    Attributes:
        listen: where the gateway listens.
        upstreams: the user's own.
        to: the folder for tapes.
        app: the application's own endpoint, to be tapped at `app_listen`.
        token: opens the gateway where others than this machine can reach it.
        check_keys: refuse a key of one provider that is about to go to another.
        outbound: how upstreams are reached.
        grace_s: how long streams may go on at the end.
        durable: sync the tape after each exchange.
        bodies: tape the bodies of requests.
        keep: the budget of the ring of segments; None keeps everything.
        on_finding: a command for exchanges with findings.
        ready_file: written when the gateway listens.
        control: the address for health and status.
        command: the application to run; empty to wait for a signal.
        log: tee what it prints onto the tape.
        tunnel: watch what it reaches past the gateway.
        rules: the thresholds for findings.
    """

    listen: Address
    upstreams: tuple[Upstream, ...]
    to: Path
    app: Upstream | None
    app_listen: Address
    token: str | None
    check_keys: bool
    outbound: OutboundSettings
    grace_s: float
    durable: bool
    bodies: bool
    keep: RetentionPolicy | None
    on_finding: str | None
    ready_file: Path | None
    control: Address | None
    command: tuple[str, ...]
    log: bool
    tunnel: bool
    rules: Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnvironment:
    """The process environment of a run."""

    environment: Mapping[str, str]
    folder: Path
    """The working directory."""
    clock: Clock
    mask_key: bytes
    tell: Tell


class Session:
    """One run of the recorder."""

    def __init__(self, options: RecordOptions, around: RunEnvironment, reporter: Reporter) -> None:
        self._options = options
        self._around = around
        self._reporter = reporter
        self._tell = around.tell
        self._dotenv: tuple[DotenvFile, ...] = read_dotenv(around.folder, around.environment)
        self._masker = Masker(around.mask_key)
        self._ring = (
            SegmentRing(
                options.to, options.keep, around.clock, reporter.lasting_alarm, self._remark
            )
            if options.keep
            else None
        )
        self._book = TapeBook(self._create, self._masker)
        self._analysis = LiveAnalysis(options.rules, self)
        self._recorder = Recorder(
            self._book,
            self._masker,
            around.clock,
            reporter,
            RecorderOptions(durable=options.durable, bodies=options.bodies),
            self._analysis,
        )
        self._dialler = Connector(options.outbound, around.clock)
        self._taps: list[Gateway] = []
        self._base = ""
        self._control = ""
        self._unchecked: set[OpenTape] = set()  # some of those with exchanges not analysed
        self._bypasses = BypassSearch(around.folder, reporter.bypassed)
        self._flight: RingRecording | None = None
        self._hook: OnFinding | None = None
        # What is known before any request must be on no tape.
        for secret in known_secrets(around.environment, self._dotenv):
            self._masker.learn(secret)
        if options.token is not None:
            self._masker.learn(options.token.encode())

    def _create(self, name: str | None, thread: WriterThread) -> TapeWriter:
        stem = name or file_stamp(self._around.clock.wall_ns())
        return TapeWriter.create(
            self._options.to,
            self._ring.stem(stem) if self._ring else stem,
            clock=self._around.clock,
            alarm=self._reporter.alarm,
            thread=thread,
        )

    @property
    def tape(self) -> str:
        """The path of the latest main tape; "" if there is none."""
        return self._book.current.path

    async def run(self) -> int | None:
        """Run; return the command's exit code, None without a command.

        Raises:
            UsageError: an address or anything else that was requested is not available.
        """
        try:
            async with contextlib.AsyncExitStack() as services:
                return await self._run(services)
        except UsageError:
            for tap in self._taps:
                tap.close()
            self._discard()
            raise

    def _discard(self) -> None:
        """Delete an empty tape if listening failed: it would be the latest one."""
        if not self._recorder.counts.clients:
            self._book.stop("failed", None)
            for tape in self._book.all():
                if tape.writer.path is not None:
                    tape.writer.path.unlink(missing_ok=True)

    async def _run(self, services: contextlib.AsyncExitStack) -> int | None:
        self._recorder.start()
        services.push_async_callback(self._analysis.stop)
        routes = self._routes()
        await self._listen(routes)
        await self._serve(services)
        command = self._options.command
        planned = self._plan(self._base)
        self._introduce(routes, planned)
        reminder = asyncio.get_running_loop().call_later(NO_TRAFFIC_S, self._remind)
        services.callback(reminder.cancel)
        code = await self._run_command(services, planned.variables) if command else None
        reason = CHILD_EXIT if command else await self._wait()
        await self._stop(reason, code)
        return code

    def _plan(self, base: str) -> EnvironmentPlan:
        """Return the environment that leads an application here; the user's URLs are kept."""
        environment, upstreams = self._around.environment, self._options.upstreams
        return plan(base, environment, self._dotenv, upstreams)

    def _introduce(self, routes: Routes, planned: EnvironmentPlan) -> None:
        options = self._options
        beginning = Beginning(
            base=self._base,
            tape=self.tape,
            routes=routes,
            variables=planned.variables,
            alone=not options.command,
            guarded=not options.listen.loopback,
        )
        for line in introduce(beginning):
            self._tell(line)
        if options.app is not None:
            app = f"{options.app.origin.url}{options.app.path}"
            self._tell(f"  app      {self._url_of(self._taps[-1])} -> {app}")
        if self._control:
            self._tell(f"  health   {self._control}/health")
        for line in planned.notes:
            self._tell(f"  note     {line}")

    # Listening.

    def _routes(self) -> Routes:
        """Return the user's routes, from options and from the application's variables."""
        found = self._plan("http://127.0.0.1").upstreams
        return Routes((*self._options.upstreams, *map(parse_upstream, found)))

    async def _listen(self, routes: Routes) -> None:
        options = self._options
        policy = TapPolicy(token=options.token, check_keys=options.check_keys)
        gateway = Gateway(self._recorder, routes, self._dialler.dial, policy)
        await gateway.start(options.listen)
        self._taps.append(gateway)
        self._base = self._url_of(gateway)
        if options.app is not None:
            await self._listen_for_app(gateway)

    def _url_of(self, tap: Gateway) -> str:
        """Return the URL to use, with the token if needed."""
        guarded = not tap.listener.address.loopback
        return tap.listener.url + (f"/t/{self._options.token}" if guarded else "")

    async def _listen_for_app(self, gateway: Gateway) -> None:
        app = self._options.app
        assert app is not None
        policy = TapPolicy(token=self._options.token, check_keys=False, side=Tap.APP)
        tap = Gateway(self._recorder, Routes((app,)), self._dialler.dial, policy)
        await tap.start(self._options.app_listen)
        self._taps.append(tap)
        tap.refuse_loops(gateway.listener.address)
        gateway.refuse_loops(tap.listener.address)

    # What else runs.

    async def _serve(self, services: contextlib.AsyncExitStack) -> None:
        options = self._options
        if self._ring is not None:
            self._flight = RingRecording(self._ring, self._book)
            self._flight.start()
        if options.on_finding is not None:
            environment = self._around.environment
            self._hook = OnFinding(options.on_finding, self._tell, environment=environment)
            services.push_async_callback(self._hook.stop)
        if self._flight is not None:
            services.push_async_callback(self._flight.stop)  # before the hook, which it feeds
        if options.control is not None:
            server = Control(self._status)
            services.push_async_callback(server.stop)
            self._control = await server.start(options.control.host, options.control.port)
        if options.ready_file is not None:
            document = {"url": self._base, "control": self._control or None, "tape": self.tape}
            ready = ReadyFile(options.ready_file)
            services.callback(ready.remove)
            ready.write(document)

    # What the analysis reports (`live.client.LiveObserver`).

    def analysed(self, tape: OpenTape, number: int, report: ExchangeReport | None) -> None:
        if report is not None and report.parsed is not None:
            self._book.parsed(tape, number, report.parsed)
        self._reporter.exchange(tape.name or "", number, report)
        if report is not None:
            self._found(tape, report)
        elif len(self._unchecked) < _SEVERAL:
            self._unchecked.add(tape)

    def silent(self, tape: OpenTape, report: SilenceReport) -> None:
        self._reporter.silence(report)
        self._found(tape, report)

    def analysis_failed(self, problem: str) -> None:
        self._remark(problem)

    def _remark(self, text: str) -> None:
        self._tell(f"note: {text}")

    def _found(self, tape: OpenTape, report: ExchangeReport) -> None:
        """Handle findings: keep the recording around them, and run the command."""
        hook, flight = self._hook, self._flight
        if hook is None and flight is None:
            return

        def run_hook() -> None:
            if hook is not None:
                hook.run(tape.path, report.number, report.findings)

        if flight is not None and report.severities - {Severity.INFO}:
            # By the wall clock, since the report is later; this may give the tape another name.
            ago_ns = tape.writer.now_ns() - report.end_ns if report.end_ns is not None else 0
            flight.finding(self._around.clock.wall_ns() - ago_ns, run_hook)
        else:
            run_hook()

    def _status(self) -> Mapping[str, object]:
        records, size = self._book.losses()
        reporter = self._reporter
        return {
            "trouble": reporter.present or None,
            "since": reporter.since or None,
            "past_trouble": reporter.past._asdict() if reporter.past else None,
            # Without the token: whoever is on this machine may ask here.
            "url": self._taps[0].listener.url,
            "tapes": [tape.path for tape in self._book.all()],
            "exchanges": self._recorder.counts.exchanges,
            "active": len(self._recorder.active),
            "with_findings": self._reporter.with_findings,
            "refused": self._recorder.counts.refused,
            "lost_records": records,
            "lost_bytes": size,
        }

    def _remind(self) -> None:
        counts = self._recorder.counts
        if not counts.exchanges and not counts.refused:
            child = self._options.command[0] if self._options.command else None
            self._tell(no_traffic(self._base, clients=counts.clients, child=child))

    # The application.

    async def _run_command(
        self, services: contextlib.AsyncExitStack, variables: Mapping[str, str]
    ) -> int:
        options = self._options
        environment = {**self._around.environment, **variables}
        if options.tunnel:
            tunnel = Tunnel(self._dialler, self._bypassed)
            await tunnel.start(own_ports=[tap.listener.port for tap in self._taps])
            services.push_async_callback(tunnel.stop)
            for secret in basic(tunnel.user.encode(), tunnel.token.encode()):
                self._masker.learn(secret)
            environment |= tunnel_variables(tunnel)
        code = await run_child(
            options.command,
            environment,
            tee=self._book.log if options.log else None,
            tell=self._tell,
        )
        self._book.log_end()
        return code

    def _bypassed(self, connection: TunnelledConnection) -> None:
        if self._bypasses.add(connection):
            how = "was not reached" if connection.failure else "was reached"
            self._book.note(f"{connection.host}:{connection.port} {how} past deltatape: not taped")

    # The end.

    async def _wait(self) -> str:
        reason = await Signals(self._recorder.hurry).wait()
        active = len(self._recorder.active)
        if active:
            self._tell(
                f"stopping: {count(active, 'stream')} may go on for"
                f" {self._options.grace_s:g} s; Ctrl-C again cuts"
            )
        return reason

    async def _stop(self, reason: str, code: int | None) -> None:
        if self._options.command:
            Signals(self._recorder.hurry)  # the application's end is no reason to lose the tape's
        await stop_recording(
            self._recorder, self._taps, reason, code, grace_s=self._options.grace_s
        )
        await self._bypasses.wait()
        self._reporter.summarise(
            self.tape, self._book.losses(), self._bypasses.hosts, self._to_check()
        )

    def _to_check(self) -> str:
        """Return what `deltatape check` has to be run on since not all was analysed here."""
        if not self.incomplete:
            return ""
        paths = [tape.path for tape in self._unchecked if tape.path]
        return paths[0] if len(paths) == 1 else str(self._options.to)

    @property
    def incomplete(self) -> bool:
        """Whether the analysis was given up before all that was taped was judged."""
        reporter = self._reporter
        silences_unknown = self._analysis.silences_unknown and reporter.exchanges > 0
        return reporter.unanalysed > 0 or silences_unknown


# The flight recorder at work: rotates the tapes of a run, pins what matters, sweeps the rest.

LOOK_S = 0.2
"""How often to look whether a tape is due."""
PINNING_S = 10.0
PATIENCE_S = 60.0
"""How long to go on with the old tape where no new one could be made."""


class RingRecording:
    """Keeps `book` within the budget of `ring`."""

    def __init__(self, ring: SegmentRing, book: TapeBook) -> None:
        self._ring = ring
        self._book = book
        self._looking: asyncio.Task[None] | None = None
        self._written = 0  # bytes of open tapes at the last sweep
        self._pinning: set[asyncio.Future[tuple[Path, ...]]] = set()
        book.on_closed = self._closed

    def start(self) -> None:
        """Start; needs a running loop."""
        self._sweep()
        self._looking = asyncio.get_running_loop().create_task(self._look())

    async def stop(self) -> None:
        """Stop rotating, and wait for running pins."""
        if self._looking is not None:
            self._looking.cancel()
        if self._pinning:
            await asyncio.wait(self._pinning, timeout=PINNING_S)

    def finding(self, wall_ns: int, then: Callable[[], None]) -> None:
        """Keep what was taped around an exchange with findings.

        Runs in a thread, since there may be many segments; `then` is called after they are renamed.
        """
        writers = [tape.writer for tape in self._book.all()]
        pinning = asyncio.get_running_loop().run_in_executor(
            self._book.pool, self._ring.finding, wall_ns, writers
        )
        self._pinning.add(pinning)
        pinning.add_done_callback(lambda done: self._pinned(done, then))

    def _pinned(self, done: "asyncio.Future[tuple[Path, ...]]", then: Callable[[], None]) -> None:
        self._pinning.discard(done)
        if not done.cancelled():
            then()

    async def _look(self) -> None:
        while True:
            due = [
                tape
                for tape in self._book.written()
                if self._ring.segment_due(tape.writer.size, tape.writer.now_ns())
            ]
            rotated = [await self._book.rotate(tape) for tape in due]
            if self._ring.segment_due(self._written_bytes() - self._written, 0):
                self._sweep()
            await asyncio.sleep(LOOK_S if all(rotated) else PATIENCE_S)

    def _closed(self, tape: OpenTape) -> None:  # noqa: ARG002 - which one does not matter
        self._sweep()

    def _sweep(self) -> None:
        """Delete old files in a thread: unlinking gigabytes takes time."""
        self._written = self._written_bytes()
        running = [tape.writer.path for tape in self._book.all() if tape.writer.path is not None]
        asyncio.get_running_loop().run_in_executor(self._book.pool, self._ring.sweep, running)

    def _written_bytes(self) -> int:
        return sum(tape.writer.size for tape in self._book.all())
