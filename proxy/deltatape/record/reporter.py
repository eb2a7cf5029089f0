"""What a recorder tells who started it: a line per exchange, per finding, per trouble."""

from collections.abc import Callable

from deltatape.doctor.hardcoded import Hardcoded
from deltatape.gateway.analysis import Ended
from deltatape.gateway.routes import Refusal
from deltatape.gateway.tunnel import Passed
from deltatape.model.finding import Severity
from deltatape.render.live import finding_lines, live_lines
from deltatape.rules.words import count

Tell = Callable[[str], None]


class Reporter:
    """See `gateway.recorder.Observer`.

    Attributes:
        exchanges: how many have ended.
        with_findings: how many of them have a warning or an error.
        worst: the worst finding's severity.
        trouble: why something could not be taped; "" when everything was.
    """

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self.exchanges = 0
        self.with_findings = 0
        self.worst: Severity | None = None
        self.trouble = ""
        self.passed: dict[str, str] = {}
        """LLM hosts that were reached past the gateway, and whose they are."""
        self.on_findings: Callable[[Ended], None] = _nothing

    def exchange(self, ended: Ended) -> None:
        """See `Observer.exchange`."""
        self.exchanges += 1
        name = ended.tape.name or ""
        if ended.analysis is None:
            self._tell(f"{name}#{ended.number} ended; not analysed live: deltatape check says more")
            return
        for line in live_lines(ended.analysis, ended.findings, name):
            self._tell(line)
        if ended.findings:
            self.with_findings += ended.troubled
            self._remember(ended)

    def silence(self, ended: Ended) -> None:
        """See `Observer.silence`."""
        self._tell(f"{ended.tape.name or ''}#{ended.number} was never answered")
        for line in finding_lines(ended.findings):
            self._tell(line)
        self._remember(ended)

    def _remember(self, ended: Ended) -> None:
        severities = {finding.severity for finding in ended.findings} | {self.worst}
        self.worst = min(filter(None, severities), key=lambda each: each.rank, default=None)
        self.on_findings(ended)

    def refused(self, refusal: Refusal) -> None:
        """See `Observer.refused`."""
        self._tell(f"refused a request ({refusal.status} {refusal.code}): {refusal.message}")

    def alarm(self, problem: str) -> None:
        """See `Observer.alarm`."""
        self.trouble = problem
        self._tell(f"TAPING IN TROUBLE: {problem}")

    def bypassed(self, passed: Passed, places: tuple[Hardcoded, ...]) -> None:
        """The application has reached a provider past the gateway: nothing of that is taped."""
        where = ", ".join(f"{place.path}:{place.line}" for place in places[:3])
        see = f"; see {where}" if where else ""
        self._tell(f"NOT TAPED: your app went to {passed.host} past deltatape{see}")
        if passed.failure:
            self._tell(f"    and could not reach it: {passed.failure}")
        for place in places[:1]:
            if place.advice.new:
                self._tell(f"    instead of {place.advice.old}")
                self._tell(f"    write      {place.advice.new}")
            self._tell(f"    {place.advice.how}")
        if not places:
            self._tell("    deltatape doctor looks for the place; record --via mitm tapes it as is")

    def summarise(self, tape: str, lost: tuple[int, int]) -> None:
        """The last words of a run."""
        self._tell(f"{count(self.exchanges, 'exchange')} taped, {self.with_findings} with findings")
        if any(lost):
            self._tell(
                f"NOT ON THE TAPE: {lost[0]} records, {lost[1]} bytes;"
                " the streams themselves were not touched"
            )
        if self.passed:
            hosts = ", ".join(sorted(self.passed))
            self._tell(f"NOT TAPED: what went to {hosts} past deltatape")
        if tape:
            self._tell(f"tape: {tape}")
            self._tell(
                f"next: deltatape why {tape}" if self.exchanges else "next: deltatape doctor"
            )


def _nothing(ended: Ended) -> None:
    """Nobody wants to know."""
