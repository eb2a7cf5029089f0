"""Analyses exchanges as they end, each with those before it in its conversations."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter

from deltatape.conversation import (
    ConversationHistory,
    findings_of_silence,
    read_backs,
    unanswered,
)
from deltatape.diagnose.check import check_analysis
from deltatape.diagnose.digest import digests_of, in_order
from deltatape.diagnose.rebuild import Analysis, analyse, analyse_all
from deltatape.model.digest import Digest
from deltatape.model.exchange import Exchange
from deltatape.model.finding import Finding
from deltatape.model.rule_settings import DEFAULTS, Settings
from deltatape.model.tape_summary import TapeSummary

_JOINED = ""
"""The tape of all exchanges on shards: rules ask whether two are on the same one."""
MAX_IN_ALL = 4096
"""For how many exchanges of all names memory is kept; then the names that were idle for longest are
dropped, since each request may choose a new one."""


@dataclass(frozen=True, slots=True)
class LiveResult:
    """An ended exchange, and its findings: first those about earlier replies, the causes."""

    analysis: Analysis
    findings: tuple[Finding, ...]


class LiveAnalyzer:
    """Finds defects in exchanges as they end."""

    def __init__(self, rules: Settings = DEFAULTS, *, sharded: bool = False) -> None:
        """Args: sharded: whether the tapes of one name are shards, which are read as one tape."""
        self._rules = rules
        self._places: dict[int, str] | None = {} if sharded else None
        """The tapes of the latest exchanges, which are numbered together."""
        # By the name of tapes: what follows a rotation belongs to the same conversations.
        self._histories: dict[str | None, ConversationHistory] = {}
        self._remembered = 0

    def analyse(self, name: str | None, exchange: Exchange) -> LiveResult:
        """Analyse an exchange that has ended.

        Args:
            name: what requests call its tape; None for the main tape.
            exchange: the exchange.
        """
        return self.analyse_all([(name, exchange)])[0]

    def analyse_all(self, ended: Sequence[tuple[str | None, Exchange]]) -> list[LiveResult]:
        """Analyse exchanges in the order in which they ended, each with the name of its tape.

        Faster than one after the other, and the same; see `rebuild.analyse_all`.
        """
        exchanges = [self._joined(exchange) for _, exchange in ended]
        analyses = analyse_all(exchanges, self._rules.app)
        digests = [digests_of(analysis, self._rules) for analysis in analyses]
        named = [(name, each) for (name, _), each in zip(ended, digests, strict=True)]
        about_app = [self._add(name, each) for name, each in named]
        defects = [check_analysis(analysis, self._rules) for analysis in analyses]
        return [
            LiveResult(analysis, self._placed((*earlier, *own)))
            for analysis, earlier, own in zip(analyses, about_app, defects, strict=True)
        ]

    def remember(self, name: str | None, exchange: Exchange) -> None:
        """Take an exchange that was analysed before, for conversations that continue."""
        analysis = analyse(self._joined(exchange), self._rules.app)
        self._add(name, digests_of(analysis, self._rules))

    def _joined(self, exchange: Exchange) -> Exchange:
        """Return an exchange as rules see it: those on shards are all on one tape."""
        places = self._places
        if places is None:
            return exchange
        places[exchange.number] = exchange.tape
        if len(places) > 2 * MAX_IN_ALL:
            del places[next(iter(places))]
        return replace(exchange, tape=_JOINED)

    def _placed(self, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
        """Return findings with the tapes that they are on."""
        places = self._places
        if places is None or not findings:
            return findings
        return tuple(
            replace(
                each,
                tape=places.get(each.exchange, _JOINED),
                against=each.against
                and replace(each.against, tape=places.get(each.against.exchange, _JOINED)),
            )
            for each in findings
        )

    def _add(self, name: str | None, digests: Sequence[Digest]) -> tuple[Finding, ...]:
        history = self._history(name)
        before = len(history)
        about_app = [finding for digest in digests for finding in history.add(digest)]
        self._remembered += len(history) - before
        return tuple(about_app)

    def _history(self, name: str | None) -> ConversationHistory:
        """Return the exchanges of a name, and mark it as the most recently used one."""
        history = self._histories.pop(name, None)
        if history is None:
            history = ConversationHistory(self._rules)
        while self._histories and self._remembered >= MAX_IN_ALL:
            self._remembered -= len(self._histories.pop(next(iter(self._histories))))
        self._histories[name] = history
        return history

    def silences(self, name: str | None, tape: str, watch: TapeSummary) -> tuple[Finding, ...]:
        """Return the findings on unanswered replies of a tape that ends now."""
        history = self._histories.get(name)
        past = history.digests if history is not None else ()
        places = self._places
        if places is None:
            digests = [replace(digest, watch=watch) for digest in past if digest.tape == tape]
        else:  # those on other shards may be the answers
            digests = [
                replace(digest, watch=watch if places.get(digest.exchange) == tape else None)
                for digest in past
            ]
        digests.sort(key=attrgetter("exchange"))
        digests = in_order([list(own) for _, own in groupby(digests, attrgetter("exchange"))])
        silent = unanswered(digests, read_backs(digests))
        found = (each for one in silent for each in findings_of_silence(one, self._rules))
        return self._placed(tuple(found))
