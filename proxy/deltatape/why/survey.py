"""A whole tape at a glance: the findings of each exchange, and the worst one."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from deltatape.conversation import (
    findings_of,
    findings_of_silence,
    findings_of_turn,
    goes_on_without,
    read_backs,
    turns,
    unanswered,
)
from deltatape.conversation.attempts import attempts_of, row_of, settled
from deltatape.diagnose.check import check_analysis
from deltatape.diagnose.client_aborts import explained, is_departure
from deltatape.diagnose.digest import digests_of, in_order
from deltatape.diagnose.rebuild import analyse
from deltatape.errors import UsageError
from deltatape.model.attempts import Attempts
from deltatape.model.digest import Digest, ReadBack
from deltatape.model.exchange import Exchange, Tap
from deltatape.model.finding import Finding, Severity
from deltatape.model.rule_settings import Settings
from deltatape.model.tape_summary import LogEntry
from deltatape.why.verdict import VerdictEvidence, decides, is_leaving

_OF_REQUESTS = frozenset({"C006", "C008", "C011", "C018", "C020"})
"""Codes about a series of requests: the reply before the first one is not at fault."""

_LOOKED_AT = 3
"""How many other replies a suspect is checked against."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeSurvey:
    """The exchanges of a tape without their bytes, in the order of their requests."""

    digests: tuple[Digest, ...]
    findings: tuple[tuple[Finding, ...], ...]
    """Per digest; if an exchange has several, all its findings are at the first."""
    read_backs: tuple[ReadBack, ...]
    silences: tuple[Finding, ...]
    """About replies that no later request answers."""
    of_turns: tuple[Finding, ...]
    """About conversations, at the request that shows the defect."""
    attempts: tuple[Attempts, ...] = ()
    """Requests that were asked again after they had failed."""

    def row(self, number: int) -> Attempts | None:
        """Return the attempts that this exchange belongs to."""
        return row_of(self.attempts, number)

    def read_back(self, number: int) -> ReadBack | None:
        """Return how a later request repeats this reply; the worst of several."""
        links = [each for each in self.read_backs if each.reply.exchange == number]
        return min(links, key=lambda link: _lowest_rank(findings_of(link)), default=None)

    def about_reply(self, number: int) -> tuple[Finding, ...]:
        """Return findings about what the app did with this exchange's reply."""
        link = self.read_back(number)
        if link:
            found = findings_of(link)
            within = (each for each in self.read_backs if _is_within(each, number))
            found += tuple(one for each in within if each is not link for one in findings_of(each))
        else:
            found = tuple(each for each in self.silences if each.exchange == number)
        return (*found, *(each for each in self.of_turns if reply_of(each) == number))

    def about_request(self, number: int) -> tuple[Finding, ...]:
        """Return findings about this exchange's request."""
        links = (
            each
            for each in self.read_backs
            if each.later.exchange == number and not _is_within(each, number)
        )
        found = (finding for link in links for finding in findings_of(link))
        return (*found, *(each for each in self.of_turns if each.exchange == number))

    def continued_by(self, number: int) -> int | None:
        """Return the later request that continues without this exchange's calls."""
        place = self._place(number)
        reply = self.digests[place]
        if not reply.calls or not reply.whole or reply.forced or self.read_back(number):
            return None
        after = (each for each in self.digests[place + 1 :] if each.tap is Tap.PROVIDER)
        later = goes_on_without(reply, after)
        return later.exchange if later else None

    def evidence(self, number: int) -> VerdictEvidence:
        """Return all findings around an exchange."""
        return VerdictEvidence(
            findings=self.own(number),
            about_reply=self.about_reply(number),
            about_request=self.about_request(number),
            continued_by=self.continued_by(number),
        )

    def own(self, number: int) -> tuple[Finding, ...]:
        """Return the findings on this exchange alone."""
        return self.findings[self._place(number)]

    def count(self) -> int:
        """Return the number of findings."""
        return sum(map(len, self.findings)) + len(self._between())

    @property
    def between(self) -> tuple[Finding, ...]:
        """Findings between exchanges: what requests and silences show about replies."""
        return tuple(finding for finding, _ in self._between())

    @property
    def is_clean(self) -> bool:
        """Whether no finding decides a verdict, except on attempts that were answered later."""
        answered_later = settled(self.attempts)
        pairs = self._with_findings()
        found = [
            each for digest, own in pairs if digest.exchange not in answered_later for each in own
        ]
        found += (each for each, _ in self._between())
        return not any(decides(each) or is_leaving(each) for each in found)

    def _with_findings(self) -> Iterator[tuple[Digest, tuple[Finding, ...]]]:
        return zip(self.digests, self.findings, strict=True)

    def repeated_unchanged(self, number: int) -> tuple[int, ...]:
        """Return some other exchanges whose calls are repeated as delivered."""
        found = (
            link.reply.exchange
            for link in self.read_backs
            if len(link.pairs) > 1
            and not link.lost
            and link.reply.exchange != number
            and link.reply.tap is Tap.PROVIDER
            and all(pair.delivered.arguments == pair.repetition.arguments for pair in link.pairs)
        )
        return tuple(islice(found, _LOOKED_AT))

    def elsewhere(self, number: int) -> tuple[Finding, ...]:
        """Return findings on other exchanges that concern neither this reply nor this request."""
        pairs = self._with_findings()
        found = [each for digest, own in pairs if digest.exchange != number for each in own]
        found += (
            about for about, reply in self._between() if number not in (about.exchange, reply)
        )
        return tuple(sorted(found, key=lambda finding: finding.exchange))

    @property
    def is_whole(self) -> bool:
        """Whether the recorder lost nothing and saw the end of each exchange."""
        return not any(each.lossy for each in self.digests)

    @property
    def replies(self) -> int:
        """The number of providers' replies, without failed attempts."""
        return sum(bool(each.calls or each.text) for each in self._from_providers())

    @property
    def is_answered(self) -> bool:
        """Whether a later request repeats every reply with calls."""
        repeated = {id(each.reply) for each in self.read_backs}
        calling = (each for each in self._from_providers() if each.calls)
        return self.replies > 0 and all(id(each) in repeated for each in calling)

    def _from_providers(self) -> Iterator[Digest]:
        answered_later = settled(self.attempts)
        found = (each for each in self.digests if each.tap is Tap.PROVIDER)
        return (each for each in found if each.exchange not in answered_later)

    def worst(self) -> int:
        """Return the first exchange with the gravest finding.

        Without findings: the last one with a reply. Findings on attempts that were answered later
        do not count, and possible ones count as remarks.
        """
        about: dict[int, list[Finding]] = {}
        for finding, reply in self._between():
            about.setdefault(finding.exchange if reply is None else reply, []).append(finding)
        answered_later = settled(self.attempts)
        gravity = [
            _lowest_rank(
                (
                    *(own if digest.exchange not in answered_later else ()),
                    *about.get(digest.exchange, ()),
                )
            )
            for digest, own in self._with_findings()
        ]
        gravest = min(gravity)
        pairs = zip(self.digests, gravity, strict=True)
        equals = [digest for digest, each in pairs if each == gravest]
        if gravest < len(Severity):
            first = equals[0]
            if first.tap is Tap.APP:
                # The provider's side of the same failure is nearer to its cause.
                providers = (each for each in equals if each.tap is Tap.PROVIDER)
                first = next((each for each in providers if _overlap(first, each)), first)
            return first.exchange
        replies = [digest for digest in equals if digest.calls or digest.text]
        return (replies or equals)[-1].exchange

    def _between(self) -> tuple[tuple[Finding, int | None], ...]:
        """Yield findings between exchanges, each with the exchange whose reply it is about."""
        repeated = [
            (finding, link.reply.exchange)
            for link in self.read_backs
            for finding in findings_of(link)
        ]
        silent = [(finding, finding.exchange) for finding in self.silences]
        return (*repeated, *silent, *((each, reply_of(each)) for each in self.of_turns))

    def _place(self, number: int) -> int:
        for place, digest in enumerate(self.digests):
            if digest.exchange == number:
                return place
        raise UsageError(f"#{number}: no such exchange; there are {len(self.digests)}")


def _is_within(link: ReadBack, number: int) -> bool:
    """Return whether reply and request are both of this exchange: a WebSocket."""
    return link.reply.exchange == number == link.later.exchange


def _overlap(one: Digest, other: Digest) -> bool:
    """Check whether two exchanges overlap in time."""
    times = (one.t_ns, one.end_ns, other.t_ns, other.end_ns)
    if any(each is None for each in times):
        return False
    start, end, other_start, other_end = (each or 0 for each in times)
    return other_start <= end and start <= other_end


def reply_of(finding: Finding) -> int | None:
    """Return the exchange whose reply a finding about a turn is compared with, if it is another."""
    place = finding.against
    if place is None or place.exchange == finding.exchange or finding.code in _OF_REQUESTS:
        return None
    return place.exchange


def survey(
    exchanges: Sequence[Exchange], settings: Settings, logs: Iterable[LogEntry] = ()
) -> ExchangeSurvey:
    """Survey `exchanges`, which are in the order of their requests.

    Args:
        exchanges: the exchanges of one tape.
        settings: the thresholds.
        logs: what the application printed, in order.

    Raises:
        UsageError: there are none.
    """
    if not exchanges:
        raise UsageError("there is no exchange on the tape")
    groups, findings = [], []
    for exchange in exchanges:
        analysis = analyse(exchange, settings.app)
        groups.append(digests_of(analysis, settings))
        findings.append(check_analysis(analysis, settings))
    logs, digests = tuple(logs), in_order(groups)
    with_reasons = [
        tuple([explained(one, digests, logs) if is_departure(one) else one for one in own])
        for own in findings
    ]
    return survey_of(groups, with_reasons, settings, logs)


def survey_of(
    groups: Sequence[Sequence[Digest]],
    findings: Sequence[tuple[Finding, ...]],
    settings: Settings,
    logs: Iterable[LogEntry] = (),
) -> ExchangeSurvey:
    """Survey exchanges whose digests (`digests_of`) and findings are known."""
    digests = in_order(groups)
    firsts = [own[0] for own in groups]
    of_first = {id(each): found for each, found in zip(firsts, findings, strict=True)}
    links, logs = read_backs(digests), tuple(logs)
    every = turns(digests, links, logs, settings)
    of_app = [link for link in links if link.later.tap is Tap.APP]
    return ExchangeSurvey(
        digests=tuple(digests),
        findings=tuple([of_first.get(id(each), ()) for each in digests]),
        # Taken from the turns, which add what the application printed in between.
        read_backs=(*(link for turn in every for link in turn.read_backs), *of_app),
        silences=tuple(
            finding
            for silence in unanswered(digests, links, logs, settings)
            for finding in findings_of_silence(silence, settings)
        ),
        of_turns=tuple(finding for turn in every for finding in findings_of_turn(turn, settings)),
        attempts=attempts_of(digests),
    )


def _lowest_rank(findings: Iterable[Finding]) -> int:
    """Return the lowest rank of `findings`; one that cannot decide a verdict ranks as an info."""
    ranks = [each.severity.rank if decides(each) else Severity.INFO.rank for each in findings]
    return min(ranks, default=len(Severity))
