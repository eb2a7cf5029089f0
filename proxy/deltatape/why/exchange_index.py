"""Turns the exchanges of a tape into rows of a list, one after the other.

A row says what is wrong with its exchange and its place in its conversation. Later exchanges
show more of that: which calls were lost, which were never answered. So a row may come again, with
what has become known; the last one counts. In the end all rows say what `check` says of the tape.

Memory does not grow with the tape, but for numbers: the rows, findings and digests of the latest
exchanges are held, as in `check_tape`.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain, islice
from typing import NamedTuple

from deltatape.conversation import (
    ConversationHistory,
    findings_of,
    findings_of_silence,
    findings_of_turn,
    read_backs,
    turns,
    unanswered,
)
from deltatape.conversation.attempts import had_ended
from deltatape.diagnose.check import check_analysis, context_of
from deltatape.diagnose.check_tape import (
    NEAR,
    ComparedExchanges,
    ExchangeWindow,
    excused,
    may_need_logs,
)
from deltatape.diagnose.digest import digests_of
from deltatape.diagnose.rebuild import Analysis, analyse, analyse_all, batches, body_bytes
from deltatape.model.digest import Digest, digest_at
from deltatape.model.exchange import Exchange, wall_time
from deltatape.model.exchange_row import ExchangeRow, Mark, ShownFinding, WorstFinding
from deltatape.model.finding import Finding
from deltatape.model.reply import Reply
from deltatape.model.rule_settings import DEFAULTS, Settings
from deltatape.model.tape_summary import LogEntry, TapeSummary
from deltatape.model.token_usage import tokens_in
from deltatape.model.turn import Turn
from deltatape.printable import excerpt
from deltatape.providers import provider_of_host
from deltatape.rules.stalls import AFTER_RESULT, STALL, DeadZone, dead_zones
from deltatape.secret_text.search import without_secrets
from deltatape.urls import split_url
from deltatape.why.survey import reply_of
from deltatape.why.verdict import VerdictEvidence, deciding

_MARKS = {
    "C001": Mark.LOST_CALL,
    "C006": Mark.LOOP,
    "C010": Mark.LOOP,
    "D003": Mark.UNANSWERED,
}
"""What findings say about the exchange that they count for."""
_ORPHAN = "C004"
"""What a finding says about the request that it is on; it counts for the reply with the call."""
_SILENCE = "D003"
_DEAD_ZONES = frozenset({STALL, AFTER_RESULT})
_MOST_CALLED = 3
_MOST_SHOWN = 5
_MOST_OF_CALL = 80
_MOST = 300
"""How much of a target, of a model's name or of a finish reason a row holds, in characters."""


@dataclass(slots=True)
class _Entry:
    """What is known of an exchange whose row may change."""

    row: ExchangeRow
    """Without findings and without its conversation."""
    own: tuple[Finding, ...]
    """The findings on the exchange alone."""
    original: tuple[Finding, ...]
    """The same as they were before anything was known of what followed."""
    about: list[Finding] = field(default_factory=list)
    """Findings of the conversation that count for it."""
    about_others: list[tuple[Finding, int]] = field(default_factory=list)
    """Findings that its request shows, and the exchanges for whose replies they count."""
    marks: list[Mark] = field(default_factory=list)
    """What its own request shows it to be."""
    before: int | None = None
    thread: int = 0
    shown: ExchangeRow | None = None
    """The row that was returned last."""

    def current(self) -> ExchangeRow:
        """Return the row with all that is known so far."""
        if not (self.own or self.about or self.about_others or self.marks or self.before):
            return self.row
        found = (*self.own, *self.about)
        evidence = VerdictEvidence(
            findings=self.own,
            about_reply=tuple(self.about),
            about_request=tuple([each for each, _ in self.about_others]),
        )
        worst = deciding(evidence) if found else None
        marks = {*self.marks, *(_MARKS[each.code] for each in self.about if each.code in _MARKS)}
        return replace(
            self.row,
            findings=len(found),
            codes=tuple(dict.fromkeys([each.code for each in found])),
            worst=_named(worst) if worst else None,
            shows=_shown(self.about_others) if self.about_others else (),
            thread=self.thread,
            before=self.before,
            marks=tuple([mark for mark in Mark if mark in marks]) if marks else (),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedExchange:
    """An exchange, and what it says by itself."""

    analysis: Analysis
    digests: tuple[Digest, ...]
    findings: tuple[Finding, ...]
    zones: tuple[tuple[Analysis, DeadZone], ...]
    """The dead zones that its findings report, each with the response that it is in."""


class CountedFinding(NamedTuple):
    """A finding, and what it counts for."""

    finding: Finding
    about: int
    """The exchange."""
    request: Digest
    """The request that it is on."""
    replies: tuple[Digest, ...]
    """The replies of the exchange that it counts for."""
    original: Finding
    """The finding without what followed, which its fingerprint does not take."""


def check_all(
    exchanges: Sequence[Exchange], settings: Settings = DEFAULTS
) -> Iterator[CheckedExchange]:
    """Yield what exchanges say by themselves: faster than one after the other."""
    analyses = analyse_all(exchanges, settings.app)
    digests = [digests_of(analysis, settings) for analysis in analyses]
    for analysis, own in zip(analyses, digests, strict=True):
        yield _checked(analysis, own, settings)


def _checked(
    analysis: Analysis, digests: tuple[Digest, ...], settings: Settings
) -> CheckedExchange:
    findings = check_analysis(analysis, settings)
    zones: tuple[tuple[Analysis, DeadZone], ...] = ()
    reported = {each.code for each in findings}
    if reported & _DEAD_ZONES:
        zones = tuple(
            (turn, each)
            for turn in analysis.turns or (analysis,)
            for each in dead_zones(context_of(turn, settings), reported)
            if each.code
        )
    return CheckedExchange(analysis=analysis, digests=digests, findings=findings, zones=zones)


class ExchangeIndexer:
    """Makes the rows of one tape, or of several that are read as one.

    Args:
        settings: the thresholds.
        live: whether each row is to come at once and to change when more is known, as where a tape
            is watched while it grows. Otherwise rows come once what follows them is known, at the
            latest at the end; that takes less time.
        logs: what the application printed, in order, as far as known; read only if it matters.
        near: see `check_tape.NEAR`.
        alone: whether to judge each for itself, since others of the conversations are missing.
        found: takes every finding of `check` once, when it is certain; not where `live`.
    """

    def __init__(
        self,
        settings: Settings = DEFAULTS,
        *,
        live: bool = False,
        logs: Iterable[LogEntry] = (),
        near: int = NEAR,
        alone: bool = False,
        found: Callable[[CountedFinding], object] | None = None,
    ) -> None:
        self._settings = settings
        self._logs = logs
        self._found = found
        self._alone = alone
        self._entries: dict[int, _Entry] = {}
        """Entries of the exchanges that `_window` holds, by number."""
        self._window = ExchangeWindow(near)
        self._held: Mapping[int, tuple[Digest, ...]] = {}
        """The digests of those that were compared last."""
        self._history = ConversationHistory(settings) if live and not alone else None

    def add(self, exchange: Exchange) -> list[ExchangeRow]:
        """Add an exchange that has ended; return new rows, and rows that change by it."""
        return self.add_all((exchange,))

    def add_all(self, exchanges: Sequence[Exchange]) -> list[ExchangeRow]:
        """Add exchanges in the order in which they ended: faster than one after the other."""
        found: list[ExchangeRow] = []
        for each in check_all(exchanges, self._settings):
            found += self.add_checked(each)
        return found

    def add_checked(self, checked: CheckedExchange) -> list[ExchangeRow]:
        """Add an exchange that is checked already; see `add`."""
        entry, digests = _entry(checked), checked.digests
        number = entry.row.exchange
        if self._alone:
            self._tell(entry, digests)
            return [entry.current()]
        self._entries[number] = entry
        found = []
        if self._history is not None:
            shown = (self._history.turn(digest) for digest in digests)
            touched = chain(*[self._take(turn) for turn in shown if turn is not None])
            found = _changed([entry, *touched])
        compared = self._window.add(number, digests)
        if compared is not None:
            found += self._compare(compared)
            self._entries = {each: self._entries[each] for each in self._window.held}
        return found

    @property
    def held(self) -> Container[int]:
        """The exchanges whose rows may still change."""
        return self._entries

    def running(self, exchange: Exchange) -> ExchangeRow:
        """Return the row of an exchange in progress; nothing is added."""
        analysis = analyse(exchange, self._settings.app)
        return _entry(_checked(analysis, (), self._settings)).current()

    def end(
        self, logs: Iterable[LogEntry] | None = None, watch: TapeSummary | None = None
    ) -> list[ExchangeRow]:
        """Return the rows that come or change because the tape has no more exchanges.

        Args:
            logs: what the application printed, if that was not known before.
            watch: how long the tape was watched, if its exchanges do not know.
        """
        self._logs = self._logs if logs is None else logs
        rest = self._window.rest()
        return self._compare(rest if watch is None else _watched(rest, watch))

    def _compare(self, compared: ComparedExchanges) -> list[ExchangeRow]:
        """Return the rows that change by comparing the latest exchanges with each other."""
        digests, self._held = compared.digests, compared.held
        own = {number: self._entries[number].own for number in compared.fresh}
        logs: tuple[LogEntry, ...] = ()
        if may_need_logs(digests, own.values()):
            self._logs = logs = tuple(self._logs)
        for number, findings in excused(own, digests, logs).items():
            self._entries[number].own = findings
        for number in own if self._found else ():
            self._tell(self._entries[number], compared.held[number])
        for number, entry in self._entries.items():
            # What is compared again: all that these requests show, also about earlier replies.
            entry.about = [
                each for each in entry.about if each.exchange not in own and each.code != _SILENCE
            ]
            if number in own:
                entry.marks, entry.about_others = [], []
                entry.before, entry.thread = None, number
        repeated = read_backs(digests)
        for turn in turns(digests, repeated, logs, self._settings):
            if turn.digest.exchange in own:
                self._take(turn)
        if not compared.goes_on:
            for silence in unanswered(digests, repeated, logs, self._settings):
                for finding in findings_of_silence(silence, self._settings):
                    self._about(finding, finding.exchange)
        known = [self._entries[number] for number in sorted(compared.held)]
        return _changed([each for each in known if each.shown or each.row.exchange in own])

    def _tell(self, entry: _Entry, digests: tuple[Digest, ...]) -> None:
        """Hand on the findings on an exchange alone, as later exchanges have changed them."""
        if self._found is not None:
            number = entry.row.exchange
            for each, original in zip(entry.own, entry.original, strict=True):
                self._found(CountedFinding(each, number, digests[0], digests, original))

    def _take(self, turn: Turn) -> list[_Entry]:
        """Note what a turn shows; return the exchanges that findings count for."""
        number = turn.digest.exchange
        entry = self._entries[number]
        before = _before(turn)
        if before in self._entries and before != number and entry.before is None:
            entry.before, entry.thread = before, self._entries[before].thread
        if turn.attempts:
            entry.marks.append(Mark.RETRY)
        found = [
            self._about(finding, each.reply.exchange)
            for each in turn.read_backs
            for finding in findings_of(each)
        ]
        for finding in findings_of_turn(turn, self._settings):
            if finding.code == _ORPHAN:
                entry.marks.append(Mark.ORPHAN_RESULT)
            found.append(self._about(finding, reply_of(finding) or number))
        return found

    def _about(self, finding: Finding, number: int) -> _Entry:
        """Count a finding of the conversation for an exchange, if that is held; return which."""
        shows = self._entries[finding.exchange]
        entry = self._entries.get(number, shows)
        entry.about.append(finding)
        if entry is not shows:
            shows.about_others.append((finding, number))
        if self._found is not None:
            about = entry.row.exchange
            request = digest_at(self._held[finding.exchange], finding.exchange, finding.line)
            self._found(CountedFinding(finding, about, request, self._held[about], finding))
        return entry


def _entry(checked: CheckedExchange) -> _Entry:
    row = _row_of(checked.analysis)
    if checked.zones:
        silences = [zone.silence for _, zone in checked.zones]
        silent = sum([each.end_ns - each.start_ns for each in silences])
        row = replace(row, dead_zones=len(silences), dead_ns=silent)
    own = checked.findings
    return _Entry(row=row, own=own, original=own, thread=row.exchange)


def index_rows(
    exchanges: Iterable[Exchange],
    settings: Settings = DEFAULTS,
    logs: Iterable[LogEntry] = (),
    *,
    alone: bool = False,
) -> Iterator[ExchangeRow]:
    """Yield the rows of a whole tape; of several for one exchange, the last one counts.

    Args: see `check_tape.check_exchanges`.
    """
    indexer = ExchangeIndexer(settings, logs=logs, alone=alone)
    for batch in batches(exchanges, body_bytes):
        yield from indexer.add_all(batch)
    yield from indexer.end()


def _changed(entries: Iterable[_Entry]) -> list[ExchangeRow]:
    """Return the rows that differ from what was returned before, each once."""
    found = []
    for entry in entries:
        row = entry.current()
        if row != entry.shown:
            entry.shown = row
            found.append(row)
    return found


def _named(finding: Finding) -> WorstFinding:
    return WorstFinding(
        code=finding.code,
        name=finding.name,
        severity=finding.severity,
        blame=finding.blame,
        confidence=finding.confidence,
    )


def _shown(about_others: Iterable[tuple[Finding, int]]) -> tuple[ShownFinding, ...]:
    """Return the gravest findings about the replies of others, one for each code and reply."""
    known: dict[tuple[str, int], Finding] = {}
    for each, reply in about_others:
        known.setdefault((each.code, reply), each)
    ranked = sorted(known.items(), key=lambda item: item[1].severity.rank)
    return tuple(
        [
            ShownFinding(finding=_named(each), exchange=reply)
            for (_, reply), each in ranked[:_MOST_SHOWN]
        ]
    )


def _before(turn: Turn) -> int | None:
    """Return the exchange that a request repeats or continues; None if unknown."""
    digest = turn.digest
    failed = [each for each in turn.attempts if had_ended(each, digest)]
    if failed:
        return failed[-1].exchange
    if turn.read_backs:
        return max(turn.read_backs, key=lambda each: each.end).reply.exchange
    if turn.continues is not None:
        return turn.continues.reply.exchange
    return turn.before.exchange if turn.before is not None else None


def _watched(compared: ComparedExchanges, watch: TapeSummary) -> ComparedExchanges:
    """Return what is compared, on a tape that was watched so long."""
    return compared._replace(
        digests=[
            each if each.watch is not None else replace(each, watch=watch)
            for each in compared.digests
        ]
    )


def _row_of(analysis: Analysis) -> ExchangeRow:
    """Return what an exchange says by itself."""
    exchange, reply, events = analysis.exchange, analysis.reply, analysis.stream.events
    request, end, timed = exchange.request, exchange.end, exchange.timed
    began_ns = request.t_ns
    model, finish = analysis.request.model or reply.model, reply.finish_reason_raw
    return ExchangeRow(
        tape=exchange.tape,
        exchange=exchange.number,
        at=_instant(exchange.recorded_at, began_ns) if timed else None,
        t_ns=began_ns if timed else None,
        provider=_provider(request.upstream),
        model=_short(model) if model else None,
        dialect=reply.dialect,
        method=request.method,
        target=_short(request.target_bytes.decode("utf-8", "replace")),
        status=exchange.response.status if exchange.response else None,
        duration_ns=end.t_ns - began_ns if end and timed else None,
        first_event_ns=events[0].t_ns - began_ns if events and timed else None,
        tokens=tokens_in(reply.usage),
        calls=sum([len(choice.tool_calls) for choice in reply.choices]),
        called=tuple(_called(reply)),
        finish=_short(finish) if finish else None,
        ending=end.reason if end else None,
        open=exchange.open,
        findings=0,
        codes=(),
        worst=None,
        dead_zones=0,
        dead_ns=0,
        thread=exchange.number,
        before=None,
        marks=(),
    )


def _called(reply: Reply) -> Iterator[str]:
    calls = (call for choice in reply.choices for call in choice.tool_calls)
    for call in islice(calls, _MOST_CALLED):
        yield excerpt(f"{call.name or '(no name)'} {call.arguments}".rstrip(), _MOST_OF_CALL)


def _short(text: str) -> str:
    if len(text) <= _MOST:
        return text
    # A secret that the cut would make unrecognisable is seen whole.
    return without_secrets(text[: 2 * _MOST])[:_MOST]


def _instant(recorded_at: str, t_ns: int) -> str | None:
    """Return a time as RFC 3339, in milliseconds; None where the tape's header has no time."""
    at = wall_time(recorded_at, t_ns)
    return f"{at.isoformat(timespec='milliseconds')[:-6]}Z" if at is not None else None


@lru_cache(maxsize=256)
def _provider(upstream: str) -> str | None:
    host = split_url(upstream).hostname
    return host and (provider_of_host(host) or host)
