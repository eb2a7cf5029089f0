"""Analyses exchanges one by one, each with those before it in its conversations."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from deltatape.conversation import (
    findings_of_silence,
    read_backs,
    turns,
    unanswered,
    whole_turn,
)
from deltatape.diagnose.check import check_analysis
from deltatape.diagnose.digest import digest_analysis
from deltatape.diagnose.rebuild import Analysis, analyse
from deltatape.model.digest import Digest
from deltatape.model.exchange import Exchange
from deltatape.model.finding import Finding
from deltatape.model.rule_settings import DEFAULTS, Settings
from deltatape.model.tape_summary import TapeSummary

MAX_REMEMBERED = 64
"""How many exchanges back a request may repeat and still be compared while recording."""
MAX_NAMES = 512
"""For how many names of tapes exchanges are remembered; then the longest idle one is dropped, since
each request may choose a new name."""


@dataclass(frozen=True, slots=True)
class LiveResult:
    """An ended exchange, and its findings: first those about earlier replies, the causes."""

    analysis: Analysis
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class _PastExchange:
    """An analysed exchange, kept for later ones."""

    order: tuple[int, int]
    """Its tape and its number there: the order of requests."""
    digest: Digest


def related(digests: Sequence[Digest], latest: Digest) -> Sequence[Digest]:
    """Return those of `digests` about which the request of `latest`, one of them, can say anything.

    A history of user messages alone repeats no reply and has no result, so it concerns only
    requests that begin with the same message: most requests are the first of a conversation.
    """
    first = latest.previous is None and all(
        message.role == "user" and message.call_id is None for message in latest.history
    )
    if not first:
        return digests
    return [each for each in digests if each.prefixes[:2] == latest.prefixes[:2]]


class LiveAnalyzer:
    """Finds defects in exchanges as they end."""

    def __init__(self, rules: Settings = DEFAULTS) -> None:
        self._rules = rules
        # By the name of tapes: what follows a rotation belongs to the same conversations.
        self._past: dict[str | None, deque[_PastExchange]] = {}

    def analyse(self, name: str | None, key: int, exchange: Exchange) -> LiveResult:
        """Analyse an exchange that has ended.

        Args:
            name: what requests call its tape; None for the main tape.
            key: of the tape; later tapes of a name have greater ones.
            exchange: the exchange.
        """
        analysis = analyse(exchange, self._rules.app)
        latest = _PastExchange((key, exchange.number), digest_analysis(analysis, self._rules))
        about_app = self._in_conversation(name, latest)
        return LiveResult(analysis, (*about_app, *check_analysis(analysis, self._rules)))

    def _in_conversation(self, name: str | None, latest: _PastExchange) -> Iterator[Finding]:
        """Yield what the latest request shows about the app's handling of replies and history."""
        past = self._past.pop(name, None)
        if past is None:
            past = deque(maxlen=MAX_REMEMBERED)
            if len(self._past) >= MAX_NAMES:
                del self._past[next(iter(self._past))]
        self._past[name] = past  # the latest stands last
        past.append(latest)
        in_order = related(
            [each.digest for each in sorted(past, key=attrgetter("order"))], latest.digest
        )
        # Silences and what was printed are left out: they are reported of a tape that ends.
        for turn in turns(in_order, read_backs(in_order), settings=self._rules):
            if turn.digest is latest.digest:
                yield from whole_turn(turn, self._rules)

    def silences(self, name: str | None, key: int, watch: TapeSummary) -> tuple[Finding, ...]:
        """Return the findings on unanswered replies of a tape that ends now."""
        past = sorted(self._past.get(name, ()), key=attrgetter("order"))
        digests = [replace(each.digest, watch=watch) for each in past if each.order[0] == key]
        silent = unanswered(digests, read_backs(digests))
        return tuple(
            finding for each in silent for finding in findings_of_silence(each, self._rules)
        )
