"""One run of `deltatape record`, assembled from its parts.

Data flow: a `Recording` in this process, or `Workers` in others, writes tapes; the
`LiveAnalysis` reads them and reports; the `Reporter` prints. Around that: the
application, the tunnel that sees traffic past the gateway, the hook for findings, the health
listener.
"""

import asyncio
import contextlib
import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from deltatape.child.child import run_child
from deltatape.child.output import Tee
from deltatape.child.ready import ReadyFile
from deltatape.child.signals import Signals
from deltatape.environment.application import EnvironmentPlan, plan
from deltatape.environment.clients import started_clients, telemetry_hosts
from deltatape.environment.dotenv import read_dotenv
from deltatape.errors import UsageError
from deltatape.gateway.routes import Refusal, Routes, parse_upstream
from deltatape.gateway.tunnel import Tunnel, TunnelledConnection
from deltatape.http1.listener import Address, AddressInUseError
from deltatape.live.client import LiveAnalysis, LiveTape
from deltatape.live.messages import ExchangeReport, SilenceReport
from deltatape.model.finding import Severity
from deltatape.model.tape_summary import CHILD_EXIT, REPLACED
from deltatape.printable import count
from deltatape.record.bypass import BypassSearch, tunnel_variables
from deltatape.record.control import Control, Scraped
from deltatape.record.handover import Predecessor, Successors, find_predecessor, place_of
from deltatape.record.metrics import (
    FindingCounter,
    OtlpPush,
    Sample,
    exposition,
    load_prometheus,
    started_s,
)
from deltatape.record.on_finding import OnFinding
from deltatape.record.page import Page
from deltatape.record.recording import (
    NOT_BOUND,
    Listening,
    Recording,
    RecordingPart,
    RecordOptions,
    RunEnvironment,
)
from deltatape.record.reporter import NO_TRAFFIC_S, Beginning, Reporter, introduce, no_traffic
from deltatape.record.sealer import Sealer
from deltatape.record.tool_server_session import ToolServerListener
from deltatape.tape.credentials import basic

TOOL_SERVERS_S = 1.0
"""How long MCP servers may take to end after the application."""
_SEVERAL = 2
"""From this number of tapes to check on, the folder is named instead."""
WITHOUT_WORKERS = "failed"
"""Why a run ends that has no worker left."""
NOBODY_RECORDS = 125
"""The exit code of a run in which something could not be taped."""


class Session:
    """One run of the recorder."""

    def __init__(self, options: RecordOptions, around: RunEnvironment, reporter: Reporter) -> None:
        self._options = options
        self._around = around
        self._reporter = reporter
        self._tell = around.tell
        self._analysis: LiveAnalysis[Any] = LiveAnalysis(
            options.rules, self, sharded=options.workers > 1
        )
        self._own: Recording | None = None
        """What this process records itself: nothing where others do."""
        self._recording = self._make_recording()
        self._dotenv = read_dotenv(around.folder, around.environment)
        self._started = started_clients(options.command, around.folder, around.environment)
        self._base = ""
        self._control = ""
        self._control_server: Control | None = None
        self._predecessor: Predecessor | None = None
        self._successors: Successors | None = None
        self._unchecked: set[LiveTape] = set()  # some of those with exchanges not analysed
        self._bypasses = BypassSearch(around.folder, reporter.bypassed)
        self._hook: OnFinding | None = None
        self._tool_servers: ToolServerListener | None = None
        self._page: Page | None = None
        self._pushed_to = ""
        self._findings = FindingCounter()
        self._started_s = started_s(around.clock)

    def _make_recording(self) -> RecordingPart:
        options, around = self._options, self._around
        if options.workers > 1:
            from deltatape.record.workers import Workers  # noqa: PLC0415 - takes long; rare

            return Workers(options, around, self, self._analysis)
        self._own = Recording(options, around, self, self._analysis)
        return self._own

    @property
    def tape(self) -> str:
        """The path of the latest main tape, or of one of several; "" if there is none."""
        return next(iter(self._recording.tapes), "")

    async def run(self) -> int | None:
        """Run; return the command's exit code, None without a command, `NOBODY_RECORDS`.

        Raises:
            UsageError: an address or anything else that was requested is not available.
        """
        try:
            async with contextlib.AsyncExitStack() as services:
                return await self._run(services)
        except UsageError:
            self._recording.discard()
            raise

    async def _run(self, services: contextlib.AsyncExitStack) -> int | None:
        services.push_async_callback(self._analysis.stop)
        services.push_async_callback(self._recording.close)
        routes = self._routes()
        if self._options.replace:
            self._predecessor = find_predecessor(self._place)
            if self._predecessor is not None:
                services.callback(self._predecessor.close)
        try:
            await self._recording.start(routes, self._inherited)
        except AddressInUseError as error:
            if self._options.replace and error.address == self._options.listen:
                raise self._not_replaceable() from None
            raise
        self._base = self._url_of(self._recording.addresses[0])
        await self._serve(services)
        if self._own is not None:
            own = self._own
            self._tool_servers = ToolServerListener(own.recorder, own.masker, self._options.to)
            services.push_async_callback(self._tool_servers.stop, 0.0)
            await self._tool_servers.start()
        command = self._options.command
        self._introduce(routes)
        if self._options.replace:
            await self._take_place(services)
        reminder = asyncio.get_running_loop().call_later(NO_TRAFFIC_S, self._remind)
        services.callback(reminder.cancel)
        code = await self._run_command(services) if command else None
        reason = CHILD_EXIT if command else await self._wait()
        await self._stop(reason, code)
        if self._page is not None and command:
            await self._page.stay()
        return NOBODY_RECORDS if reason == WITHOUT_WORKERS else code

    def _not_replaceable(self) -> UsageError:
        return UsageError(
            f"--replace: {self._options.listen} is in use, but by no recorder that you started"
            " with --replace and the same --listen; stop it first, or choose another port"
        )

    @property
    def _inherited(self) -> Listening:
        return self._predecessor.sockets if self._predecessor is not None else NOT_BOUND

    @property
    def _place(self) -> Path:
        return place_of(self._options.listen, self._around.environment)

    async def _take_place(self, services: contextlib.AsyncExitStack) -> None:
        """Have the recorder drain that listened here before, and wait for the next one."""
        old = self._predecessor
        if old is not None:
            active = await old.drain()
            old.close()
            self._tell(
                f"  replaced the recorder with pid {old.pid}; {count(active, 'stream')} may go on"
                " there"
            )
        self._successors = Successors(self._place, self._listening)
        services.callback(self._successors.close)
        self._successors.start()

    def _listening(self) -> Listening:
        """Return copies of all sockets on which this run listens."""
        listening = dict(self._recording.listening())
        if self._control_server is not None:
            listening[str(self._options.control)] = [self._control_server.sockets]
        return listening

    def _plan(self, base: str) -> EnvironmentPlan:
        """Return the environment that leads an application here; the user's URLs are kept."""
        environment, upstreams = self._around.environment, self._options.upstreams
        return plan(base, environment, self._dotenv, upstreams, started=self._started)

    def _introduce(self, routes: Routes) -> None:
        options, planned = self._options, self._plan(self._base)
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
            self._tell(f"  app      {self._url_of(self._recording.addresses[-1])} -> {app}")
        if options.workers > 1:
            names = ", ".join(Path(path).name for path in self._recording.tapes)
            self._tell(f"  workers  {options.workers} processes share the port; tapes: {names}")
        self._introduce_control()
        for line in (*planned.notes, *planned.client_notes):
            self._tell(f"  note     {line}")

    def _introduce_control(self) -> None:
        if self._control:
            self._tell(f"  health   {self._control}/health")
        if self._pushed_to:
            self._tell(f"  metrics  go to {self._pushed_to}")

    # Listening.

    def _routes(self) -> Routes:
        """Return the user's routes, from options and from the application's variables."""
        found = self._plan("http://127.0.0.1").upstreams
        return Routes((*self._options.upstreams, *map(parse_upstream, found)))

    def _url_of(self, address: Address) -> str:
        """Return the URL to use, with the token if needed."""
        return address.url + ("" if address.loopback else f"/t/{self._options.token}")

    # What else runs.

    async def _serve(self, services: contextlib.AsyncExitStack) -> None:
        options = self._options
        if options.on_finding is not None:
            environment = self._around.environment
            self._hook = OnFinding(options.on_finding, self._tell, environment=environment)
            services.push_async_callback(self._hook.stop)
            # Before the hook, which it feeds.
            services.push_async_callback(self._recording.close)
        if options.control is not None:
            load_prometheus()  # it takes long, and no stream waits yet
            server = self._control_server = Control(self._status, self._scraped)
            services.push_async_callback(server.stop)
            self._control = await server.start(
                options.control.host,
                options.control.port,
                tuple(itertools.chain.from_iterable(self._inherited.get(str(options.control), ()))),
            )
        if options.otlp is not None:
            push = OtlpPush(options.otlp, self._sample, self._tell)
            services.push_async_callback(push.stop)
            push.start()
            self._pushed_to = push.url
        if options.page:
            self._page = Page(options.to, self._tell)
            services.push_async_callback(self._page.stop)
            self._page.start()
        if options.seal:
            sealer = Sealer(options.to, options.rules, self.remark)
            services.push_async_callback(sealer.stop)
            sealer.start()
        if options.ready_file is not None:
            document = {"url": self._base, "control": self._control or None, "tape": self.tape}
            old = self._predecessor
            ready = ReadyFile(options.ready_file, of=old.pid if old is not None else None)
            services.callback(ready.remove)
            ready.write(document)

    # What the analysis reports (`live.client.LiveObserver`).

    def analysed(self, tape: LiveTape, number: int, report: ExchangeReport | None) -> None:
        if report is not None and report.parsed is not None:
            self._recording.parsed(tape, number, report.parsed)
        self._reporter.exchange(tape.name or "", number, report)
        if report is not None:
            self._found(tape, report)
        elif len(self._unchecked) < _SEVERAL:
            self._unchecked.add(tape)

    def silent(self, tape: LiveTape, report: SilenceReport) -> None:
        self._reporter.silence(report)
        self._found(tape, report)

    def analysis_failed(self, problem: str) -> None:
        self.remark(problem)

    # What the recording says (`recording.RecordingObserver`).

    def refused(self, refusal: Refusal) -> None:
        self._reporter.refused(refusal)

    def alarm(self, problem: str) -> None:
        self._reporter.alarm(problem)

    def lasting_alarm(self, problem: str) -> None:
        self._reporter.lasting_alarm(problem)

    def taping(self, *, works: bool) -> None:
        self._reporter.taping(works=works)

    def remark(self, text: str) -> None:
        self._tell(f"note: {text}")

    def _found(self, tape: LiveTape, report: ExchangeReport) -> None:
        """Handle findings: count them, keep the recording around them, and run the command."""
        self._findings.add(report)
        hook, keep = self._hook, self._options.keep
        if hook is None and keep is None:
            return

        def run_hook() -> None:
            if hook is not None:
                hook.run(tape.path, report.number, report.findings)

        if keep is not None and report.severities - {Severity.INFO}:
            # This may give the tape another name.
            self._recording.finding(tape, report.end_ns, run_hook)
        else:
            run_hook()

    def _status(self) -> Mapping[str, object]:
        counts, reporter = self._recording.counts(), self._reporter
        return {
            "trouble": reporter.present or None,
            "since": reporter.since or None,
            "past_trouble": reporter.past._asdict() if reporter.past else None,
            # Without the token: whoever is on this machine may ask here.
            "url": self._recording.addresses[0].url,
            "folder": str(self._around.folder / self._options.to),
            "tapes": list(counts.tapes),
            "exchanges": counts.exchanges,
            "active": counts.active,
            "with_findings": self._reporter.with_findings,
            "refused": counts.refused,
            "lost_records": counts.lost_records,
            "lost_bytes": counts.lost_bytes,
        }

    def _sample(self) -> Sample:
        reporter = self._reporter
        return Sample(
            counts=self._recording.counts(),
            lag=self._analysis.lag(),
            findings=self._findings.counts,
            exchanges_with_findings=reporter.with_findings,
            unanalysed=reporter.unanalysed,
            trouble=bool(reporter.present),
            started_s=self._started_s,
        )

    def _scraped(self, accept: str) -> Scraped:
        return exposition(self._sample(), accept)

    def _remind(self) -> None:
        counts = self._recording.counts()
        if not counts.exchanges and not counts.refused:
            child = self._options.command[0] if self._options.command else None
            self._tell(no_traffic(self._base, clients=counts.clients, child=child))

    # The application.

    async def _run_command(self, services: contextlib.AsyncExitStack) -> int:
        environment = {**self._around.environment, **await self._lead(services)}
        if self._tool_servers is not None:
            environment |= self._tool_servers.variables
        tee, ended = self._log()
        code = await run_child(
            self._options.command,
            environment,
            tee=tee if self._options.log else None,
            tell=self._reporter.problem,
            screen=self._around.screen,
        )
        ended()
        return code

    async def _lead(self, services: contextlib.AsyncExitStack) -> Mapping[str, str]:
        """Return the variables that lead the command here; `services` end with it."""
        own = self._own
        assert own is not None  # workers run no command
        variables = self._plan(self._base).variables
        if not self._options.tunnel:
            return variables
        tunnel = Tunnel(own.dialler, self._bypassed)
        await tunnel.start(gateway_ports=[each.port for each in own.addresses if each.port])
        services.push_async_callback(tunnel.stop)
        if tunnel.token:
            for secret in basic(tunnel.user.encode(), tunnel.token.encode()):
                own.masker.learn(secret)
        return {**variables, **tunnel_variables(tunnel)}

    def _log(self) -> tuple[Tee, Callable[[], None]]:
        """Return what tapes the command's output, and what tapes its end."""
        assert self._own is not None
        return self._own.book.log, self._own.book.log_end

    def _bypassed(self, connection: TunnelledConnection) -> None:
        own = self._own
        assert own is not None  # workers have no tunnel
        known = (each.client for each in self._started.invocations)
        if self._bypasses.add(connection, telemetry_hosts(known, own.user_agents)):
            how = "was not reached" if connection.failure else "was reached"
            own.book.note(f"{connection.host}:{connection.port} {how} past deltatape: not taped")

    # The end.

    async def _wait(self) -> str:
        loop = asyncio.get_running_loop()
        asked = loop.create_task(Signals(self._recording.hurry).wait())
        failed = loop.create_task(self._recording.failed())
        ends = [asked, failed]
        if self._successors is not None:
            replaced = loop.create_task(self._successors.wait())
            await asyncio.wait((*ends, replaced), return_when=asyncio.FIRST_COMPLETED)
            replaced.cancel()
            if replaced.done():
                drained = loop.create_task(self._drain(self._successors, replaced.result()))
                ends[1:] = [drained]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for each in (failed, ends[-1]):
            each.cancel()
        if not asked.done():
            asked.cancel()
            return WITHOUT_WORKERS if ends[-1] is failed else REPLACED
        reason = asked.result()
        active = self._recording.counts().active
        if active:
            self._tell(
                f"stopping: {count(active, 'stream')} may go on for"
                f" {self._options.grace_s:g} s; Ctrl-C again cuts"
            )
        return reason

    async def _drain(self, successors: Successors, pid: int) -> None:
        """Let streams end while another recorder accepts new ones on the same sockets."""
        timeout_s = self._options.drain_timeout_s
        draining = asyncio.get_running_loop().create_task(self._recording.drain(timeout_s))
        try:
            if self._control_server is not None:
                await self._control_server.stop()
            active = self._recording.counts().active
            self._tell(
                f"replaced by the recorder with pid {pid}:"
                f" {count(active, 'stream')} may go on for {timeout_s:g} s; Ctrl-C ends them sooner"
            )
            successors.answer(active)
            await draining
        finally:
            draining.cancel()

    async def _stop(self, reason: str, code: int | None) -> None:
        if self._options.command:
            Signals(self._recording.hurry)  # the application's end is no reason to lose the tape's
        if self._tool_servers is not None:
            await self._tool_servers.stop(TOOL_SERVERS_S if self._options.command else 0.0)
        await self._recording.stop(reason, code)
        await self._bypasses.wait()
        self._summarise()

    def _summarise(self) -> None:
        counts = self._recording.counts()
        lost = (counts.lost_records, counts.lost_bytes)
        self._reporter.summarise(
            self.tape,
            lost,
            self._bypasses.hosts,
            self._to_check(),
            tuple(self._bypasses.others),
            self._bypasses.telemetry,
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
