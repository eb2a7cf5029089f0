"""A whole tape at a glance: what is found on each exchange, and which of them is the worst."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from deltatape.conversation import (
    findings_of,
    findings_of_silence,
    goes_on_without,
    read_backs,
    unanswered,
)
from deltatape.diagnose.check import check_analysis
from deltatape.diagnose.digest import digest_analysis
from deltatape.diagnose.rebuild import analyse
from deltatape.errors import UsageError
from deltatape.model.digest import Digest, ReadBack
from deltatape.model.exchange import Exchange, Tap
from deltatape.model.finding import Finding, Severity
from deltatape.rules.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """The exchanges of a tape without their bytes, in the order of their requests."""

    digests: tuple[Digest, ...]
    findings: tuple[tuple[Finding, ...], ...]
    """For each exchange its own."""
    read_backs: tuple[ReadBack, ...]
    silences: tuple[Finding, ...]
    """About replies that no later request answers."""

    def read_back(self, number: int) -> ReadBack | None:
        """What a later request repeats of this exchange's reply; the worst of several."""
        links = [each for each in self.read_backs if each.reply.exchange == number]
        return min(links, key=lambda link: _gravity(findings_of(link)), default=None)

    def about_reply(self, number: int) -> tuple[Finding, ...]:
        """What the application made of the reply of this exchange, or that it did nothing."""
        link = self.read_back(number)
        if link:
            return findings_of(link)
        return tuple(each for each in self.silences if each.exchange == number)

    def about_request(self, number: int) -> tuple[Finding, ...]:
        """What the request of this exchange shows about earlier replies."""
        links = [each for each in self.read_backs if each.later.exchange == number]
        return tuple(finding for link in links for finding in findings_of(link))

    def gone_on(self, number: int) -> int | None:
        """The later request that goes on without the calls of this exchange, if there is one."""
        place = self._place(number)
        reply = self.digests[place]
        if not reply.calls or not reply.whole or reply.forced or self.read_back(number):
            return None
        after = (each for each in self.digests[place + 1 :] if each.tap is Tap.PROVIDER)
        later = goes_on_without(reply, after)
        return later.exchange if later else None

    def own(self, number: int) -> tuple[Finding, ...]:
        """The findings on this exchange alone."""
        return self.findings[self._place(number)]

    def count(self) -> int:
        """How many findings there are."""
        told = [*self.findings, self.silences, *(findings_of(link) for link in self.read_backs)]
        return sum(map(len, told))

    def elsewhere(self, number: int) -> tuple[Finding, ...]:
        """What is found on the other exchanges, and is not about this one's reply or request."""
        found: list[Finding] = []
        for digest, own in zip(self.digests, self.findings, strict=True):
            if digest.exchange != number:
                found += own
        for link in self.read_backs:
            if number not in (link.reply.exchange, link.later.exchange):
                found += findings_of(link)
        found += (each for each in self.silences if each.exchange != number)
        return tuple(sorted(found, key=lambda finding: finding.exchange))

    def worst(self) -> int:
        """The first exchange with the gravest finding, those about its reply included.

        Without findings the last one with a reply.
        """
        about_reply: dict[int, list[Finding]] = {}
        for link in self.read_backs:
            about_reply.setdefault(link.reply.exchange, []).extend(findings_of(link))
        for silence in self.silences:
            about_reply.setdefault(silence.exchange, []).append(silence)
        gravity = [
            _gravity((*own, *about_reply.get(digest.exchange, ())))
            for digest, own in zip(self.digests, self.findings, strict=True)
        ]
        gravest = min(gravity)
        pairs = zip(self.digests, gravity, strict=True)
        equals = [digest for digest, each in pairs if each == gravest]
        if gravest <= Severity.WARNING.rank:
            return equals[0].exchange
        replies = [digest for digest in equals if digest.calls or digest.text]
        return (replies or equals)[-1].exchange

    def _place(self, number: int) -> int:
        for place, digest in enumerate(self.digests):
            if digest.exchange == number:
                return place
        raise UsageError(f"#{number}: no such exchange; there are {len(self.digests)}")


def survey(exchanges: Sequence[Exchange], settings: Settings) -> Survey:
    """Looks at all `exchanges`, which are in the order of their requests.

    Raises:
        UsageError: there are none.
    """
    if not exchanges:
        raise UsageError("there is no exchange on the tape")
    digests, findings = [], []
    for exchange in exchanges:
        analysis = analyse(exchange, settings.app)
        digests.append(digest_analysis(analysis))
        findings.append(check_analysis(analysis, settings))
    return survey_of(digests, findings, settings)


def survey_of(
    digests: Sequence[Digest], findings: Sequence[tuple[Finding, ...]], settings: Settings
) -> Survey:
    """The survey of exchanges of which the digests and their own findings are known."""
    links = read_backs(digests)
    return Survey(
        digests=tuple(digests),
        findings=tuple(findings),
        read_backs=links,
        silences=tuple(
            finding
            for silence in unanswered(digests, links)
            for finding in findings_of_silence(silence, settings)
        ),
    )


def _gravity(findings: Iterable[Finding]) -> int:
    return min((finding.severity.rank for finding in findings), default=len(Severity))
