"""Check a whole tape in one pass, in memory that does not grow with the number of its exchanges.

What is kept of an exchange is its digest, since later requests of its conversation may show what
became of it, and its findings. Of a tape with more than `4 * NEAR` exchanges, the digests of the
latest are held: an exchange is compared with at least `NEAR` before it and `NEAR` after it, and the
last `2 * NEAR` are watched for calls that nothing answers.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from deltatape.conversation import check_conversation
from deltatape.conversation.attempts import attempts_of
from deltatape.diagnose.check import check_analysis
from deltatape.diagnose.client_aborts import explained, is_departure
from deltatape.diagnose.digest import digests_of, in_order
from deltatape.diagnose.rebuild import Analysis, analyse_all, batches, body_bytes
from deltatape.diagnose.wire_excerpt import WireExcerpt, excerpt_of
from deltatape.dialects import UNKNOWN
from deltatape.model.attempts import Attempt
from deltatape.model.digest import Digest, digest_at
from deltatape.model.exchange import Exchange
from deltatape.model.finding import Finding, Severity
from deltatape.model.rule_settings import Settings
from deltatape.model.tape_summary import LogEntry

NEAR = 1024
"""An exchange is compared at least with this many before it and this many after it; on tapes with
fewer than four times as many, with all."""
REFUSAL = "S005"
"""The rule about errors in place of an answer: an info if a later attempt is answered."""


class ReportedFinding(NamedTuple):
    """A finding with its context for reports."""

    finding: Finding
    fingerprint: str
    """The same for the same defect on a later recording."""
    path: str
    """Where the request went, without its query."""
    excerpt: WireExcerpt | None
    """None: it has no place on the wire, or the report does not show the wire."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TapeReport:
    """The findings on a tape or a checked file, and what was checked."""

    name: str
    """As the user named it, without `#N`."""
    exchanges: tuple[int, ...] = ()
    """The numbers of the exchanges in the report, ascending."""
    reported: tuple[ReportedFinding, ...] = ()
    """The findings of each exchange in the order of their numbers, then those of conversations."""
    notes: tuple[str, ...] = ()
    """Lines to print with the findings."""
    problem: str = ""
    """Why it could not be read; then it has no findings."""
    shards: frozenset[str] = frozenset()
    """The paths of the tapes that were read as this one, if those are several."""

    def tape_of(self, reported: ReportedFinding) -> str:
        """Return the tape or file that a finding is on."""
        return reported.finding.tape if reported.finding.tape in self.shards else self.name

    def only(self, keep: Callable[[ReportedFinding], bool]) -> "TapeReport":
        """Return the report with the findings that `keep` accepts."""
        return replace(self, reported=tuple(each for each in self.reported if keep(each)))

    def noted(self, note: str) -> "TapeReport":
        """Return the report with one more note."""
        return replace(self, notes=(*self.notes, note))


def check_exchanges(
    name: str,
    exchanges: Iterable[Exchange],
    settings: Settings,
    only: int | None = None,
    logs: Iterable[LogEntry] = (),
    *,
    excerpts: bool = True,
    near: int = NEAR,
    alone: bool = False,
) -> TapeReport:
    """Check the exchanges of a tape.

    Args:
        name: the name of the tape.
        exchanges: all of them, in the order in which they ended or began; few are held.
        settings: the settings of the rules.
        only: the number of the one exchange that is reported on; None: all.
        logs: what the application printed, in order; looked at after the exchanges, if at all.
        excerpts: whether the report shows the wire.
        near: see `NEAR`.
        alone: whether to check each for itself, since others of the conversations are missing.
    """
    check = _TapeCheck(settings, only, logs, near, alone=alone)
    for batch in batches(exchanges, body_bytes):
        check.add_all(analyse_all(batch, settings.app), excerpts=excerpts)
    return check.report(name)


class ComparedExchanges(NamedTuple):
    """Exchanges of a tape that are compared with each other."""

    held: Mapping[int, tuple[Digest, ...]]
    """By number."""
    digests: Sequence[Digest]
    """All of them, in the order of their requests."""
    told: frozenset[int]
    """The numbers of those that are not reported on: they were, or will be, in others."""
    goes_on: bool
    """Whether further exchanges follow."""

    @property
    def fresh(self) -> list[int]:
        """The numbers of those that are reported on, ascending."""
        return sorted(self.held.keys() - self.told)


class ExchangeWindow:
    """The digests of the latest exchanges of a tape, to be compared with each other.

    Args:
        near: see `NEAR`.
    """

    def __init__(self, near: int = NEAR) -> None:
        self._near = near
        self.held: dict[int, tuple[Digest, ...]] = {}
        """By number."""
        self._told: frozenset[int] = frozenset()
        """Numbers of held exchanges that were compared with later ones."""

    def add(self, number: int, digests: tuple[Digest, ...]) -> ComparedExchanges | None:
        """Add an exchange; once there are enough, return what to compare, and drop the oldest."""
        self.held[number] = digests
        if len(self.held) < 4 * self._near:
            return None
        ordered = sorted(self.held)
        found = self._compared(ordered, followed=self._near)
        kept = ordered[-2 * self._near :]
        self.held = {each: self.held[each] for each in kept}
        self._told = frozenset(kept[: -self._near])
        return found

    def rest(self) -> ComparedExchanges:
        """Return the remaining comparisons at the end of the tape."""
        return self._compared(sorted(self.held), followed=0)

    def _compared(self, ordered: Sequence[int], followed: int) -> ComparedExchanges:
        """Return all that are held; the last `followed` have too few after them to report on."""
        return ComparedExchanges(
            held=self.held,
            digests=in_order(self.held[number] for number in ordered),
            told=self._told.union(ordered[len(ordered) - followed :]),
            goes_on=bool(followed),
        )


class _TapeCheck:
    """A tape whose exchanges come one by one."""

    def __init__(
        self,
        settings: Settings,
        only: int | None,
        logs: Iterable[LogEntry],
        near: int,
        *,
        alone: bool,
    ) -> None:
        self._settings = settings
        self._alone = alone
        self._only = only
        self._logs = logs
        self._window = ExchangeWindow(near)
        self._numbers: list[int] = []
        self._found: dict[int, tuple[ReportedFinding, ...]] = {}
        """The findings of exchanges that have any."""
        self._about_app: list[ReportedFinding] = []
        self._readable = False

    def add_all(self, analyses: Sequence[Analysis], *, excerpts: bool) -> None:
        """Check exchanges, and compare the held ones once there are enough."""
        # Not each in turn: see `analyse_all`.
        digests = [digests_of(analysis, self._settings) for analysis in analyses]
        for analysis, own in zip(analyses, digests, strict=True):
            self._add(analysis, own, excerpts=excerpts)

    def _add(self, analysis: Analysis, digests: tuple[Digest, ...], *, excerpts: bool) -> None:
        number = analysis.exchange.number
        self._readable |= analysis.reply.dialect != UNKNOWN
        if self._only in (None, number):
            self._numbers.append(number)
            found = _of_exchange(analysis, digests[0], self._settings, excerpts=excerpts)
            if found:
                self._found[number] = found
        compared = self._window.add(number, digests)
        if compared is not None:
            self._compare(compared)

    def report(self, name: str) -> TapeReport:
        """Return the report on the tape `name`, which has no more exchanges."""
        self._compare(self._window.rest())
        notes: tuple[str, ...] = ()
        if not self._window.held:
            notes = (f"{name}: no request was recorded",)
        elif not self._readable:
            notes = (f"{name}: the tape has no readable answer of an LLM provider",)
        own = (each for number in sorted(self._found) for each in self._found[number])
        return TapeReport(
            name=name,
            exchanges=tuple(sorted(set(self._numbers))),
            reported=(*own, *self._about_app),
            notes=notes,
        )

    def _compare(self, compared: ComparedExchanges) -> None:
        """Compare exchanges with each other, and report on those that have not been reported on."""
        if self._alone:
            return
        fresh = {
            number: [each.finding for each in self._found[number]]
            for number in compared.fresh
            if number in self._found
        }
        if may_need_logs(compared.digests, fresh.values()):
            self._logs = tuple(self._logs)  # they may be read again
        for number, changed in excused(fresh, compared.digests, self._logs).items():
            self._found[number] = tuple(
                each._replace(finding=finding)
                for each, finding in zip(self._found[number], changed, strict=True)
            )
        asked: dict[tuple[int, int | None], str] = {}
        for finding in check_conversation(
            compared.digests,
            self._settings,
            self._logs,
            told=compared.told,
            goes_on=compared.goes_on,
        ):
            number = finding.exchange
            if self._only in (None, number):
                digest = digest_at(compared.held[number], number, finding.line)
                request = number, digest.line
                if request not in asked:
                    asked[request] = request_identity(digest)
                identity = fingerprint(finding, asked[request])
                self._about_app.append(ReportedFinding(finding, identity, digest.path, None))


def may_need_logs(digests: Iterable[Digest], findings: Iterable[Sequence[Finding]]) -> bool:
    """Return whether the application's output matters; getting it may mean reading a whole tape."""
    return any(digest.calls or digest.text_calls for digest in digests) or any(
        is_departure(each) for own in findings for each in own
    )


def excused(
    found: Mapping[int, Sequence[Finding]], digests: Sequence[Digest], logs: Iterable[LogEntry]
) -> dict[int, tuple[Finding, ...]]:
    """Return findings of exchanges that failed, changed by what the application did then.

    Args:
        found: the findings of some exchanges, by number.
        digests: the digests of those and others, in the order of their requests.
        logs: what the application printed; looked at if `may_need_logs`.
    """
    changed: dict[int, tuple[Finding, ...]] = {}
    for row in attempts_of(digests):
        for each in row.tries[:-1] if row.answered else ():
            if each.exchange in found:
                answered = row.tries[-1].exchange
                own = changed.get(each.exchange, found[each.exchange])
                changed[each.exchange] = _as_retried(own, each, answered)
    for number, findings in found.items():
        own = changed.get(number, findings)
        if any(map(is_departure, own)):
            logs = tuple(logs)
            changed[number] = tuple(
                [explained(each, digests, logs) if is_departure(each) else each for each in own]
            )
    return changed


def answered_later(message: str, answered: str) -> str:
    """Return the message about a refusal, where the request was sent again and `answered`."""
    return f"{message}; the request was sent again and answered in {answered}"


def _as_retried(findings: Sequence[Finding], failed: Attempt, answered: int) -> tuple[Finding, ...]:
    """Turn errors of a failed attempt that was retried and `answered` into infos."""
    return tuple(
        replace(
            each,
            severity=Severity.INFO,
            message=answered_later(each.message, f"#{answered}"),
        )
        if each.code == REFUSAL and _is_within(each, failed)
        else each
        for each in findings
    )


def _is_within(finding: Finding, attempt: Attempt) -> bool:
    """Return whether a finding on the exchange is on this attempt: a WebSocket may have several."""
    if attempt.line is None or finding.line is None or attempt.end_line is None:
        return True
    return attempt.line <= finding.line <= attempt.end_line


def _of_exchange(
    analysis: Analysis, digest: Digest, settings: Settings, *, excerpts: bool
) -> tuple[ReportedFinding, ...]:
    defects = check_analysis(analysis, settings)
    identity = request_identity(digest) if defects else ""
    return tuple(
        ReportedFinding(
            finding=each,
            fingerprint=fingerprint(each, identity),
            path=digest.path,
            excerpt=excerpt_of(each, analysis) if excerpts else None,
        )
        for each in defects
    )


# What makes two findings the same one, on tapes of different runs.
#
# A fingerprint survives that a test is recorded again: it takes the code, what was asked (the path,
# the last words of the user, whether tools have answered), and the message without what differs
# from run to run: numbers, identifiers with digits, quoted text. The names of calls stay. It does
# not take: the tape, the exchange's number, lines, times.

_QUOTED = re.compile(r"'[^']*'")
_NUMBERED = re.compile(r"[\w.:+-]*\d[\w.:+-]*")
_SIZE = 16


def fingerprint(finding: Finding, asked: str) -> str:
    """Return what identifies `finding`, as 16 hex digits.

    Args:
        finding: a finding on an exchange or its conversation.
        asked: the `request_identity` of that exchange.
    """
    return _hash(finding.code, asked, shape(finding.message))


def request_identity(digest: Digest) -> str:
    """Hash a request to 16 hex digits: a repeated request has the same."""
    users = (each for each in reversed(digest.history) if each.role == "user" and not each.call_id)
    last = next((each.text for each in users), "")
    return _hash(digest.path, last, "after tools" if digest.results else "")


def shape(message: str) -> str:
    """Return `message` without what differs from run to run.

    >>> shape("call 0 (get_weather): the id changes from 'call_a1' to 'call_b2' after 1.5 s")
    "call # (get_weather): the id changes from '...' to '...' after # s"
    """
    return _NUMBERED.sub("#", _QUOTED.sub("'...'", message))


def _hash(*parts: str) -> str:
    text = "\0".join(parts)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_SIZE]
