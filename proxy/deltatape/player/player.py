"""The player: holds the tapes, matches requests, and counts played, missed and left-over ones."""

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Self

from deltatape.http1.access import check_origin
from deltatape.http1.head import ParsedRequestHead, error_answer
from deltatape.http1.listener import Address, Listener
from deltatape.http1.server import Handler, ServerConnection
from deltatape.http1.socket import UnreadBytes
from deltatape.match.endpoint import shown
from deltatape.match.request import MatchLevel, MatchQuery, NoMatch, RecordedMatch, RequestMatcher
from deltatape.model.exchange import Exchange, header
from deltatape.player.play import PlayHandler
from deltatape.player.play_options import (
    CorrectedRequest,
    MissedRequest,
    PlayedRequest,
    PlayOptions,
    PlayReport,
    RequestOutcome,
    StagedExchange,
)
from deltatape.player.response_bytes import Renditions
from deltatape.printable import count
from deltatape.secret_text import patterns
from deltatape.tape.mask import Masker
from deltatape.tape.seen_credentials import blanked, merged

if TYPE_CHECKING:
    from deltatape.run_check import Correction, RunCheck, RunMistake

END_OF_TAPE = "end_of_tape"
"""The error code for a correct request where the recorded one is wrong."""
NO_RETRY = ((b"x-should-retry", b"false"),)
"""Tells SDKs not to retry: the same request would miss again."""
MARGIN_BYTES = 16 * 1024 * 1024
"""A request may be longer than the longest on the tape by this much and still be compared."""
_MOST_TARGET = 4096
"""How much of a target the report keeps."""


class Player:
    """See `http1.server.ServerOwner` and `play.PlayContext`."""

    def __init__(
        self,
        exchanges: Sequence[Exchange],
        on_outcome: Callable[[RequestOutcome], None],
        playing: PlayOptions,
    ) -> None:
        """Args: on_outcome: called with each request that was answered or missed."""
        self.hold_s = playing.hold_s
        self.tempo = playing.tempo
        self.renditions = Renditions(playing.tempo)
        self.unread = UnreadBytes()
        self.longest = MARGIN_BYTES + max(
            (max(len(each.request.body), len(each.request.content)) for each in exchanges),
            default=0,
        )
        self._exchanges = tuple(exchanges)
        self.hide = hider(playing.secrets)
        """Overwrites secrets of a request in texts."""
        self._matcher = RequestMatcher(
            self._exchanges, playing.volatile, repeat=playing.repeat, hide=self.hide
        )
        self._on_outcome = on_outcome
        self._playing = playing
        self._check: RunCheck | None = None
        self._cached_report: tuple[object, PlayReport] | None = None
        """The last report, and the counts that it was made with."""
        self._stage = playing.stage
        self._bodies = playing.bodies
        self._requested: set[int] = set()
        self._outcomes: list[RequestOutcome] = []
        self._plays: set[PlayHandler] = set()
        self._drained = asyncio.Event()
        self.listener = Listener()

    async def start(self, address: Address) -> None:
        """Listen.

        Raises:
            UsageError: the address is not available.
        """
        await self.listener.open(address, lambda: ServerConnection(self))

    async def stop(self, *, grace_s: float = 0.0) -> None:
        """Stop listening, let open answers end for `grace_s`, then cut the rest."""
        self.listener.close()
        if self._plays and grace_s:
            self._drained.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._drained.wait(), grace_s)
        for play in tuple(self._plays):
            play.stop()
        self.unread.close()

    @property
    def report(self) -> PlayReport:
        """Return the requests so far, and the exchanges that were never requested."""
        state = (len(self._outcomes), len(self._plays))
        if self._cached_report is None or self._cached_report[0] != state or self._plays:
            self._cached_report = (state, self._report())
        return self._cached_report[1]

    def _report(self) -> PlayReport:
        check = self._run_check if self._outcomes else None
        behind = frozenset[int]() if check is None else check.left_behind
        left = [
            position
            for position, exchange in enumerate(self._exchanges)
            if position not in self._requested and _is_playable(exchange)
        ]
        return PlayReport(
            played=tuple(one for one in self._outcomes if isinstance(one, PlayedRequest)),
            missed=tuple(one for one in self._outcomes if isinstance(one, MissedRequest)),
            unplayed=tuple(self._exchanges[at] for at in left if at not in behind),
            ended=tuple(one for one in self._outcomes if isinstance(one, CorrectedRequest)),
            left_behind=tuple(self._exchanges[at] for at in left if at in behind),
            mistakes=() if check is None else tuple(map(self._masked_mistake, check.mistakes())),
            unseen=() if check is None else check.unseen(),
            accused=check is None or check.accuses,
        )

    def _masked_mistake(self, mistake: "RunMistake") -> "RunMistake":
        finding = mistake.finding
        return replace(mistake, finding=replace(finding, message=self.hide(finding.message)))

    @property
    def _run_check(self) -> "RunCheck | None":
        """Return the check of this run's requests; None if it is off."""
        how = self._playing.read_back
        if self._check is None and how is not None and not self._playing.repeat:
            from deltatape.run_check import RunCheck  # noqa: PLC0415 - loads all dialects

            self._check = RunCheck(
                self._exchanges,
                elsewhere=how.elsewhere,
                volatile=self._playing.volatile,
                settings=how.settings,
                ignored=how.ignored,
                logs=how.logs,
            )
        return self._check

    # What connections ask (`http1.server.ServerOwner`).

    def handler(self, connection: ServerConnection) -> Handler:
        return PlayHandler(self, connection, sockets=self)

    def opened(self, connection: ServerConnection) -> None:
        self.listener.opened(connection)

    def closed(self, connection: ServerConnection) -> None:
        self.listener.closed(connection)

    def refused_bytes(self, problem: str) -> bytes:
        message = f"not an HTTP/1 request: {problem}"
        self._add_outcome(
            MissedRequest(
                query=MatchQuery(method="?", target=b"", body=b""),
                miss=NoMatch(nearest=None, problem=message, differences=()),
                nearest=None,
                message=message,
            )
        )
        return error_answer(400, "bad_request", message)

    # What plays ask (`play.PlayContext`).

    def refused(self, head: ParsedRequestHead) -> bytes | None:
        """Refuse requests from other machines."""
        foreign = check_origin(head.fields, local=not self.listener.address.path)
        if foreign is None:
            return None
        query = MatchQuery(method=head.method, target=head.target, body=b"")
        miss = NoMatch(nearest=None, problem=foreign.message, differences=())
        self._add_outcome(
            MissedRequest(
                query=self._masked_query(query), miss=miss, nearest=None, message=foreign.message
            )
        )
        return error_answer(
            HTTPStatus.FORBIDDEN,
            foreign.code,
            foreign.message,
            fields=NO_RETRY,
            head_only=head.method == "HEAD",
        )

    def continues(self, head: ParsedRequestHead) -> bool:
        """Send 100 Continue as the provider did, if it was ever asked here."""
        waited = [
            exchange
            for position in self._matcher.positions_at(head.method, head.target)
            if header((exchange := self._exchanges[position]).request.headers, "expect") is not None
        ]
        return not waited or any(
            one.status == HTTPStatus.CONTINUE for each in waited for one in each.informational
        )

    def find(self, query: MatchQuery, play: PlayHandler | None = None) -> Exchange | NoMatch:
        found = self._matcher.match(query)
        if isinstance(found, RecordedMatch):
            return self._played(query, found, play)
        return self._corrected(query, found, play)

    def _corrected(
        self, query: MatchQuery, miss: NoMatch, play: PlayHandler | None
    ) -> Exchange | NoMatch:
        """Look for a correct request where the tape's is wrong."""
        check, here = self._run_check, self._matcher.positions_at(query.method, query.target)
        if check is None or not here:
            return miss
        now_s = asyncio.get_running_loop().time()
        found = check.corrected(query.body, now_s, here, self._matcher.spent)
        if found is not None and found.position is not None and not found.ended:
            match = RecordedMatch(position=found.position, level=MatchLevel.CORRECTED)
            return self._played(query, match, play, found)
        if found is not None and found.position is not None:
            self._requested.add(found.position)
            self._matcher.play(found.position, spent=True)
        near = miss.nearest if miss.nearest in here else here[0]
        check.enter(query.body, now_s, self._exchanges[near], correction=found)
        return miss if found is None else _EndOfTape.of(found, self._exchanges)

    def _played(
        self,
        query: MatchQuery,
        found: RecordedMatch,
        play: PlayHandler | None,
        correction: "Correction | None" = None,
    ) -> Exchange:
        recorded = self._exchanges[found.position]
        staged = StagedExchange(exchange=recorded)
        if self._stage is not None:
            staged = self._stage(found.position, recorded)
        self._requested.add(found.position)
        self._matcher.play(found.position, spent=staged.spent)
        if self._run_check is not None:
            self._run_check.enter(
                query.body,
                asyncio.get_running_loop().time(),
                recorded,
                played=staged.exchange,
                sending=None if play is None else play.progress,
                position=found.position,
                correction=correction,
            )
        self._add_outcome(
            PlayedRequest(
                query=self._reported_query(query, recorded.request.content),
                exchange=recorded,
                level=found.level,
                note=staged.note,
                codes=() if correction is None else correction.codes,
                alike=tuple(self._exchanges[at] for at in found.alike),
            )
        )
        return staged.exchange

    def _reported_query(self, query: MatchQuery, recorded: bytes | None = None) -> MatchQuery:
        """Return a request for the report; `recorded` is a body that is kept anyway."""
        body = query.body if self._bodies else b""
        if self._bodies and body == recorded:
            body = recorded
        return replace(query, target=query.target[:_MOST_TARGET], body=body)

    def _masked_query(self, query: MatchQuery) -> MatchQuery:
        """Return a request that was not answered for the report, with its credentials hidden."""
        target = shown(query.target, _MOST_TARGET, self.hide).encode()
        return self._reported_query(replace(query, target=target))

    def _add_outcome(self, outcome: RequestOutcome) -> None:
        self._outcomes.append(outcome)
        self._on_outcome(outcome)

    def matcher_of(self, exchanges: Sequence[Exchange]) -> RequestMatcher:
        return RequestMatcher(exchanges, self._playing.volatile, hide=self.hide)

    def missed(self, query: MatchQuery, miss: NoMatch) -> bytes:
        if isinstance(miss, _EndOfTape):
            ended = CorrectedRequest(
                query=self._masked_query(query), codes=miss.codes, message=miss.problem
            )
            self._add_outcome(ended)
            return error_answer(
                400,
                END_OF_TAPE,
                miss.problem,
                fields=NO_RETRY,
                head_only=query.method == "HEAD",
            )
        near = self._exchanges[miss.nearest] if miss.nearest is not None else None
        where = f" (nearest: {near.tape}#{near.number})" if near else ""
        message = f"not on the tape: {miss.problem}{where}"
        if miss.differences:
            first, others = miss.differences[0], len(miss.differences) - 1 + miss.more
            message += f"; {first.path}: recorded {first.recorded}, received {first.received}"
            message += f", and {count(others, 'other difference')}" if others else ""
        kept = self._masked_query(query)
        self._add_outcome(MissedRequest(query=kept, miss=miss, nearest=near, message=message))
        detail = {
            "nearest": f"{near.tape}#{near.number}" if near else None,
            "differences": [
                {"path": d.path, "recorded": d.recorded, "received": d.received}
                for d in miss.differences
            ],
            "volatile": miss.volatile,
            "suggested": miss.suggested,
        }
        return error_answer(
            400,
            "not_on_tape",
            message,
            detail=detail,
            fields=NO_RETRY,
            head_only=query.method == "HEAD",
        )

    def begun(self, play: PlayHandler) -> None:
        self._plays.add(play)

    def ended(self, play: PlayHandler) -> None:
        self._plays.discard(play)
        if not self._plays:
            self._drained.set()


@dataclass(frozen=True, slots=True, kw_only=True)
class _EndOfTape(NoMatch):
    """A request beyond the tape that is no mistake."""

    codes: tuple[str, ...]

    @classmethod
    def of(cls, correction: "Correction", exchanges: Sequence[Exchange]) -> Self:
        """Return the message about a correct request where the tape is wrong."""
        codes = correction.codes
        problem = "the tape has no response for this request: the recorded app made a mistake"
        if codes:
            problem += f" ({', '.join(codes)})"
        problem += " that this request corrects"
        if correction.position is not None:
            refused = exchanges[correction.position]
            problem += (
                f"; {refused.tape}#{refused.number} is the provider's error for the wrong one"
            )
        return cls(nearest=correction.position, problem=problem, differences=(), codes=codes)


def _is_playable(exchange: Exchange) -> bool:
    """Return whether its request was complete; a partial one ends only when its client leaves."""
    return exchange.request.t_end_ns is not None or not exchange.timed


# Keeps credentials out of messages about requests: on a terminal, in a report, in a response.
#
# No recorder has masked a request that misses, and developers paste such messages elsewhere. Hidden
# is what looks like a provider's key (`redact.patterns`), and every known credential
# (`tape.seen_credentials`).


def hider(secrets: Iterable[bytes]) -> Callable[[str], str]:
    """Return a function that overwrites each byte of a credential in a text by an asterisk.

    Args:
        secrets: known ones, whatever they look like.
    """
    masker = Masker(b"")  # the text gets asterisks, no hashes, so no key is needed
    for secret in secrets:
        masker.learn(secret)

    def hide(text: str) -> str:
        data = text.encode(errors="surrogatepass")
        likely = ((one.start, one.end, "") for one in patterns.find(data.decode("latin-1")))
        spans = merged((*likely, *masker.seen.spans(data)))
        return blanked(data, spans).decode(errors="replace") if spans else text

    return hide
