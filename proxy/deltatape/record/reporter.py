"""The lines that a recorder prints: per exchange, finding and problem."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from deltatape import __version__
from deltatape.clock import Clock, SystemClock, rfc3339
from deltatape.gateway.routes import Refusal, Routes
from deltatape.gateway.tunnel import TunnelledConnection
from deltatape.live.messages import ExchangeReport, SilenceReport
from deltatape.model.finding import Severity
from deltatape.printable import count
from deltatape.providers import COMMON, PROVIDERS, UPSTREAMS
from deltatape.record.bypass import Places, replacement_lines, with_places

Tell = Callable[[str], None]
_SHOWN_HOSTS = 8
"""A program that goes to more is a browser."""


class PastTrouble(NamedTuple):
    """A trouble with taping that is over; times in RFC 3339."""

    problem: str
    since: str
    until: str


class Reporter:
    """Prints a run's events.

    Attributes:
        exchanges: how many have ended.
        with_findings: how many of them have a warning or an error.
        with_info: how many of the others have a finding of severity `info`.
        unanalysed: how many of them were not analysed, so that their findings are unknown.
        worst: the worst finding's severity.
        trouble: why something could not be taped; "" when everything was.
        present: why something cannot be taped now; "" if everything can.
        since: when that began, in RFC 3339; "" where nothing has changed since the start.
        past: the last trouble that is over.
    """

    def __init__(
        self, tell: Tell, clock: Clock | None = None, *, problem: Tell | None = None
    ) -> None:
        """Args: tell: gets each line. problem: gets those about problems instead."""
        self._tell = tell
        self.problem = problem or tell
        self._clock = clock or SystemClock()
        self._lasting = ""
        self.exchanges = 0
        self.with_findings = 0
        self.with_info = 0
        self.unanalysed = 0
        self.worst: Severity | None = None
        self.trouble = ""
        self.present = ""
        self.since = ""
        self.past: PastTrouble | None = None

    def exchange(self, name: str, number: int, report: ExchangeReport | None) -> None:
        """Print an exchange that has ended, on the tape called `name`; None: not analysed."""
        self.exchanges += 1
        if report is None:
            self.unanalysed += 1
            self._tell(f"{name}#{number} ended; not analysed yet: run `deltatape check`")
            return
        if report.severities - {Severity.INFO}:
            self.with_findings += 1
        elif report.findings:
            self.with_info += 1
        self._print(report)

    def silence(self, report: SilenceReport) -> None:
        self._print(report)

    def _print(self, report: ExchangeReport) -> None:
        for line in report.lines:
            self._tell(line)
        if report.findings:
            severities = report.severities | {self.worst}
            self.worst = min(filter(None, severities), key=lambda each: each.rank, default=None)

    def refused(self, refusal: Refusal) -> None:
        self.problem(f"refused a request ({refusal.status} {refusal.code}): {refusal.message}")

    def alarm(self, problem: str) -> None:
        """Report a problem with taping; `taping` tells when it is over."""
        self.trouble = problem
        if not self.present:
            self.since = rfc3339(self._clock.wall_ns())
        self.present = problem
        self.problem(f"TAPING IN TROUBLE: {problem}")

    def lasting_alarm(self, problem: str) -> None:
        """Report a problem that lasts to the end of the run."""
        self._lasting = problem
        self.alarm(problem)

    def taping(self, *, works: bool) -> None:
        problem, now = self.present, rfc3339(self._clock.wall_ns())
        if works and problem and not self._lasting:
            self.past = PastTrouble(problem, self.since, now)
            self.present, self.since = "", now
            self.problem(
                f"taping works again; it was in trouble since {self.past.since}: {problem}"
            )
        elif not works and not problem:
            self.present, self.since = self.trouble or "the disk is too slow", now

    def bypassed(self, connection: TunnelledConnection, places: Places) -> None:
        """Report that the application reached a provider past the gateway, untaped."""
        problem = f"NOT TAPED: your app went to {connection.host} past deltatape"
        self.problem(with_places(problem, places))
        if connection.failure:
            self.problem(f"    and could not reach it: {connection.failure}")
        for line in replacement_lines(places):
            self.problem(line)
        if places:
            self.problem(f"    {places[0].advice.how}")
        else:
            self.problem(
                "    deltatape doctor looks for the place; record --via mitm tapes it as is"
            )

    def summarise(
        self,
        tape: str,
        lost: tuple[int, int],
        bypassed: Iterable[str],
        unchecked: str = "",
        others: Sequence[str] = (),
        telemetry: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Print the summary of a run.

        Args:
            tape: its path.
            lost: how many records and bytes it lacks.
            bypassed: the LLM hosts that were reached past the gateway.
            unchecked: the tape or folder that `deltatape check` has to analyse; "" if all was.
            others: other hosts that were reached, in case that one of them serves an LLM.
            telemetry: LLM hosts that got telemetry past the gateway, and who sent it; if nothing
                was taped, it may have been more than telemetry.
        """
        info = f", {self.with_info} with info only" if self.with_info else ""
        total = count(self.exchanges, "exchange")
        self._tell(f"{total} taped, {self.with_findings} with findings{info}")
        if any(lost):
            self.problem(
                f"NOT ON THE TAPE: {count(lost[0], 'record')}, {count(lost[1], 'byte')};"
                " the streams themselves were not touched"
            )
        missed = {*bypassed} if self.exchanges else {*bypassed, *telemetry}
        if hosts := ", ".join(sorted(missed)):
            self.problem(f"NOT TAPED: what went to {hosts} past deltatape")
        for host in sorted(telemetry.keys() - missed):
            self._tell(f"telemetry of {telemetry[host]} went to {host}; it is not taped")
        if others and not self.exchanges:
            more = f" and {len(others) - _SHOWN_HOSTS} more" if len(others) > _SHOWN_HOSTS else ""
            self._tell(
                f"instead, the app went to {', '.join(others[:_SHOWN_HOSTS])}{more}; if an LLM"
                " answers there: deltatape record --via mitm --hosts HOST -- CMD"
            )
        if unchecked:
            what = (
                f"{count(self.unanalysed, 'exchange')} of {self.exchanges}"
                if self.unanalysed
                else "whether every tool call was answered"
            )
            self.problem(f"NOT ANALYSED: {what}; run `deltatape check {unchecked}`")
        if tape:
            self._tell(f"tape: {tape}")
            self._tell(
                f"next: deltatape why {tape}" if self.exchanges else "next: deltatape doctor"
            )


# What a recorder says when it starts: where it tapes, where it forwards, what to set.

NO_TRAFFIC_S = 20.0
_SHOWN = tuple(next(iter(PROVIDERS[name].base_urls)) for name in COMMON)


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """The facts for the first lines.

    Attributes:
        base: the gateway's URL, with the token where one is needed.
        tape: the tape's path; "" when there is none.
        routes: where it forwards.
        variables: what an app has to have set; see `environment.plan`.
        alone: whether the user has to point an app here: no command is run.
        guarded: whether other machines can reach the gateway.
    """

    base: str
    tape: str
    routes: Routes
    variables: Mapping[str, str]
    alone: bool
    guarded: bool = False


def introduce(beginning: Beginning) -> Iterator[str]:
    """Yield the first lines."""
    alone, base = beginning.alone, beginning.base
    yield f"deltatape {__version__} is recording" + ("; Ctrl-C ends the tape" if alone else "")
    yield f"  tape     {beginning.tape or 'none: see above'}"
    yield from _where_to(beginning)
    if alone and base.startswith("http+unix:"):
        yield "  set      your HTTP client's Unix socket, and a base URL of http://localhost"
    elif alone:
        named = [name for name in _SHOWN if name in beginning.variables]
        for at, name in enumerate(named):
            yield f"  {'' if at else 'set':<8} {name}={beginning.variables[name]}"
    if beginning.guarded:
        yield "  reach    from other machines by the name of this one, with the same token"


def _where_to(beginning: Beginning) -> Iterator[str]:
    base, routes = beginning.base, beginning.routes
    if routes.single is not None:
        upstream = routes.single
        yield f"  url      {base} forwards to {upstream.origin.url}{upstream.path}"
        return
    names = f": {' '.join(routes.named)}" if beginning.alone else ""
    yield f"  url      {base}/NAME forwards to the provider NAME{names}"
    for name, upstream in routes.named.items():
        if UPSTREAMS.get(name) != upstream.origin.url + upstream.path:
            yield f"           {base}/{name} forwards to {upstream.origin.url}{upstream.path}"


def no_traffic(base: str, *, clients: int, child: str | None) -> str:
    """Return a hint for when no traffic comes.

    Args:
        base: the gateway's URL.
        clients: how many connections there were, none with a request.
        child: the command that runs, if any.
    """
    if clients:
        return "a client connected but sent no request: is it speaking HTTPS to this HTTP port?"
    waited = f"no traffic for {NO_TRAFFIC_S:.0f} s"
    if child is not None:
        return (
            f"{waited}: {child} has not called a provider through {base}; it may not have come to"
            " it yet, or it does not read the base URL from its environment: deltatape doctor looks"
            " for that"
        )
    return (
        f"{waited}: does the app read the base URL that you set, in the process that calls the"
        f" provider? A container reaches {base} only on the host's network; deltatape doctor looks"
        f" for more; try: curl {base}"
    )
