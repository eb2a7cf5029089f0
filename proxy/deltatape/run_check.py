"""Compare what an app sends in a replay run with what it sent when the tape was recorded.

The tape of a broken app holds its wrong requests. A test that required the same requests would pass
with the mistake and fail once it is fixed. So the requests of the run are read back like those of a
tape: each request is compared with the replies that were delivered before it.

- A run fails for findings of the read-back that blame the app as proven or likely. A possible
  finding gets the confidence of the same finding on the tape, which may have more evidence, such as
  the app's log.
- A request that is not on the tape is *corrected* if it continues a conversation of the run,
  repeats all calls of the reply as delivered, and the tape blames the app for the request that
  continued from that reply. Whatever the mistake did not touch must be equal: the other members of
  the body, the messages of system and user as far as the request has them, and the results of calls
  that the recorded app repeated correctly. It may be shorter than the recorded one: an app that
  lost its calls asked its user again, one that has them sends their results.
- From there on the conversation differs from the tape, whose answers are for wrong requests. They
  are still played in order. From then on only the mistake that the tape shows at the same place
  counts against the app, since these answers do not fit its requests. Unused answers do not count.
- Where the tape has no answer left, or only one that refuses the wrong request, it has *ended*.

Strategy: analysis starts only when a request is not on the tape, or when a report is requested.
Volatile fields are removed from requests first. Masks (`match.volatile`) apply only where a request
is compared with a recorded one: within the run, calls and results are compared as they are.

Invariant: without a finding on the tape that blames the app, no request counts as corrected.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol, TypeAlias

from deltatape.conversation import check_conversation, findings_of, read_backs
from deltatape.diagnose.check import check
from deltatape.diagnose.digest import digest_analysis
from deltatape.diagnose.rebuild import analyse
from deltatape.match.body import NOT_JSON, agree, blanked, json_value
from deltatape.match.volatile import VolatileRules
from deltatape.model.digest import Digest, ReadBack
from deltatape.model.exchange import End, EndReason, Exchange
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.model.request_summary import Message, RequestSummary
from deltatape.model.rule_settings import DEFAULTS, Settings
from deltatape.model.tape_summary import LogEntry
from deltatape.rules.repeated import first_difference

_ASSISTANT = frozenset({"assistant", "model"})
_HISTORY = frozenset({"messages", "input", "contents", "chat_history", "message", "tool_results"})
"""The members of a body that hold the conversation, in all dialects."""
_OF_TIME = ("D", "C008")
"""Codes of silences and retries, which depend on the speed of the run and on its faults."""
_SILENCE = "D"
_OF_RESULTS = frozenset({"C015", "C017"})
"""Codes of mistakes in results themselves, which a fixed app sends differently."""
_DOUBT = "may have been dropped on purpose"
"""A part of C001's message if there may be an innocent reason."""
_MOST_MISSED = 100
"""How many requests without an answer to keep: more show nothing new."""
_NS = 1_000_000_000


def blames_app(finding: Finding) -> bool:
    """Check whether a finding makes a run fail."""
    return (
        finding.blame is Blame.APP
        and finding.severity is not Severity.INFO
        and finding.confidence is not Confidence.POSSIBLE
    )


class Sending(Protocol):
    """The progress of sending an answer. Times are seconds on the run's clock."""

    @property
    def reads_s(self) -> Sequence[float]:
        """Return when each sent read was sent."""

    @property
    def ended_s(self) -> float | None:
        """Return when sending ended; None if more may come."""


@dataclass(slots=True, kw_only=True, eq=False)
class RunRequest:
    """A request of the run, and its answer.

    Attributes:
        number: the number of the request in the run, from 1.
        recorded: the exchange of the tape that answers it, is most similar, or has its path.
        played: the answer; None: an error of the player.
        sending: how far `played` was sent.
        position: the position of `recorded`, if it is the answer; None: the tape has none.
        corrected: whether it, or one that it follows, is accepted without being on the tape.
        ended: whether the tape has no answer for it because a mistake was not repeated.
    """

    number: int
    body: bytes
    came_s: float
    recorded: Exchange
    played: Exchange | None = None
    sending: Sending | None = None
    position: int | None = None
    corrected: bool = False
    ended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """A request that is not on the tape, but correct where the recorded one is wrong.

    Attributes:
        position: the position of the recorded request; None: the tape has none.
        codes: the codes of the mistakes in the recorded request.
        ended: whether the tape has no answer for it.
    """

    position: int | None
    codes: tuple[str, ...]
    ended: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMistake:
    """A mistake of the app in the run.

    Attributes:
        finding: its exchange numbers are those of requests in the run.
        request: the number of the request that shows it, or whose reply was not answered.
        recorded: the exchange of the tape that answers this request, or is most similar.
        silent: whether no request followed a reply so far.
        fails: whether the run fails for it; else it is only reported.
    """

    finding: Finding
    request: int
    recorded: Exchange
    silent: bool = False
    fails: bool = True


@dataclass(frozen=True, slots=True)
class _Recorded:
    """A request of the tape."""

    digest: Digest
    request: RequestSummary
    rest: object
    """Its body without the conversation."""


_Place: TypeAlias = tuple[int, str, str]
"""The position of a reply, the code of a mistake, and the arguments of the call it is about."""


@dataclass(slots=True)
class _Tape:
    """Facts about the tapes."""

    requests: list[_Recorded] = field(default_factory=list)
    """The recorded requests by position."""
    links: Sequence[ReadBack] = ()
    codes: Mapping[int, frozenset[str]] = field(default_factory=dict)
    """Codes of the app's mistakes, by position of the request that shows them."""
    silences: Mapping[int, Finding] = field(default_factory=dict)
    """By the position of a reply without a following request."""
    known: Mapping["_Place", Finding] = field(default_factory=dict)
    """Findings that blame the app, by the delivered call."""


class RunCheck:
    """The requests of one run. Not thread-safe."""

    def __init__(
        self,
        exchanges: Sequence[Exchange],
        *,
        elsewhere: Iterable[Exchange] = (),
        volatile: Sequence[str] = (),
        settings: Settings = DEFAULTS,
        ignored: Sequence[str] = (),
        logs: Mapping[str, Sequence[LogEntry]] | None = None,
    ) -> None:
        """Start a run without requests.

        Args:
            exchanges: recorded with the provider; `position` is their index.
            elsewhere: recorded at the app's own endpoint.
            volatile: what may differ; see `VolatileRules`.
            settings: the settings of the rules.
            ignored: codes to ignore, or their beginnings.
            logs: what the app printed while it was recorded, by tape, in order.

        Raises:
            UsageError: `volatile` is invalid.
        """
        self._exchanges = tuple(exchanges)
        self._elsewhere = tuple(elsewhere)
        self._volatile = VolatileRules(volatile)
        self._settings = settings
        self._ignored = tuple(ignored)
        self._logs = dict(logs or {})
        self._requests: list[RunRequest] = []
        self._missed = 0
        self._digests: dict[int, Digest] = {}
        """The requests whose answer has ended, by number."""

    def enter(
        self,
        body: bytes,
        came_s: float,
        recorded: Exchange,
        *,
        played: Exchange | None = None,
        sending: Sending | None = None,
        position: int | None = None,
        correction: Correction | None = None,
    ) -> None:
        """Record a request; see `RunRequest`. Of missed requests only the first are kept."""
        if played is None and correction is None:
            self._missed += 1
            if self._missed > _MOST_MISSED:
                return
        request = RunRequest(
            number=len(self._requests) + 1,
            body=recorded.request.content if body == recorded.request.content else body,
            came_s=came_s,
            recorded=recorded,
            played=played,
            sending=sending,
            position=position,
            corrected=correction is not None,
            ended=correction is not None and correction.ended,
        )
        self._requests.append(request)

    def corrected(
        self, body: bytes, came_s: float, here: Sequence[int], spent: frozenset[int]
    ) -> Correction | None:
        """Return how a request that is not on the tape corrects the recorded one, if it does.

        Args:
            body: the body of the request.
            came_s: when it arrived.
            here: positions of the recorded requests to the same place, >= 1.
            spent: positions of those that were played.
        """
        if not self._requests or self._missed > _MOST_MISSED or not self.accuses:
            return None
        request = RunRequest(
            number=len(self._requests) + 1,
            body=body,
            came_s=came_s,
            recorded=self._exchanges[here[0]],
        )
        digest = self._digest(request)
        parent = self._parent(digest)
        if parent is None:
            return None
        if parent.ended:
            return Correction(position=None, codes=(), ended=True)
        if parent.position is None:
            return None
        asked = self._asked(_with_body(self._exchanges[here[0]], body))
        rest = self._rest(body)
        findings = self._findings((*self._run_digests(), digest))
        codes = {each.code for each in findings if each.exchange == request.number}
        repeats_all = self._repeats_all(parent, digest)
        successors = [at for at in self._successors(parent.position) if at in here]
        for at in successors:
            if at in spent:
                continue
            wrong = self._tape.codes.get(at, frozenset())
            if not (wrong and repeats_all and not codes) and not parent.corrected:
                continue
            if self._differs_only_there(parent.position, at, asked, rest):
                if codes & wrong:
                    return None
                ended = self._tape.requests[at].digest.refused
                return Correction(position=at, codes=tuple(sorted(wrong)), ended=ended)
        if parent.corrected:
            is_right = codes.isdisjoint(self._codes_of(parent.position))
            known = [parent.position, *successors]
        else:
            is_right = repeats_all and not codes and self._ends_blamed(parent.position)
            known = [parent.position]
        if is_right and any(self._may_end_here(at, asked, rest) for at in known):
            return Correction(position=None, codes=self._codes_of(parent.position), ended=True)
        return None

    @property
    def left_behind(self) -> frozenset[int]:
        """Return positions that need not be played: a mistake before them was not repeated."""
        found: set[int] = set()
        for request in self._requests:
            if request.corrected:
                parent = self._parent(self._digest(request), before=request.number)
                if parent is not None and parent.position is not None:
                    found.update(self._successors(parent.position))
        return frozenset(found)

    def mistakes(self) -> tuple[RunMistake, ...]:
        """Return the app's mistakes so far, in the order of their requests."""
        digests = self._run_digests()
        found = [self._mistake(each) for each in self._findings(digests)]
        found += self._silences(digests)
        return tuple(sorted(found, key=lambda each: each.request))

    def unseen(self) -> tuple[Finding, ...]:
        """Return the recorded mistakes at the app's own endpoint, which no player sees."""
        return self._of_endpoint

    # The run.

    def _mistake(self, finding: Finding) -> RunMistake:
        request = self._requests[finding.exchange - 1]
        fails = True
        if request.corrected:
            wrong = frozenset[str]()
            if request.position is not None:
                wrong = self._tape.codes.get(request.position, wrong)
            fails = finding.code in wrong
        return RunMistake(
            finding=finding, request=request.number, recorded=request.recorded, fails=fails
        )

    def _silences(self, digests: Sequence[Digest]) -> Iterator[RunMistake]:
        """Yield replies with calls that no request followed, as on the tape."""
        if not any(self._is_played(request) for request in self._requests):
            return
        silences = self._tape.silences
        waiting = [one for one in self._requests if one.position in silences]
        if not waiting:
            return
        continued = {
            parent.number
            for digest in digests
            if (parent := self._parent(digest, before=digest.exchange)) is not None
        }
        for request in waiting:
            if request.number not in continued and self._is_played(request):
                assert request.position is not None
                yield RunMistake(
                    finding=silences[request.position],
                    request=request.number,
                    recorded=request.recorded,
                    silent=True,
                )

    @staticmethod
    def _is_played(request: RunRequest) -> bool:
        sending = request.sending
        return (
            sending is not None
            and request.played is not None
            and sending.ended_s is not None
            and len(sending.reads_s) == len(request.played.reads)
        )

    def _findings(self, digests: Sequence[Digest]) -> list[Finding]:
        return [
            each
            for each in map(self._as_on_tape, check_conversation(digests, self._settings))
            if blames_app(each)
            and not each.code.startswith(_OF_TIME)
            and not self._is_ignored(each)
        ]

    def _as_on_tape(self, finding: Finding) -> Finding:
        """Give a possible finding the confidence of the same mistake on the tape."""
        if finding.confidence is not Confidence.POSSIBLE or finding.against is None:
            return finding
        position = self._requests[finding.against.exchange - 1].position
        known = None if position is None else self._tape.known.get(_place(position, finding))
        if known is None:
            return finding
        excluded = (
            replace(each, because=f"on the tape, {each.because}") for each in known.excluded
        )
        says, _, doubt = finding.message.rpartition("; ")
        return replace(
            finding,
            message=says if _DOUBT in doubt else finding.message,
            confidence=known.confidence,
            severity=known.severity,
            blame=known.blame,
            excluded=tuple(excluded),
        )

    def _is_ignored(self, finding: Finding) -> bool:
        return bool(self._ignored) and finding.code.startswith(self._ignored)

    def _run_digests(self) -> list[Digest]:
        return [self._digest(request) for request in self._requests]

    def _digest(self, request: RunRequest) -> Digest:
        known = self._digests.get(request.number)
        if known is not None:
            return known
        exchange = _of_run(request, self._reduced(request.body))
        digest = digest_analysis(analyse(exchange, self._settings.app), self._settings)
        is_over = request.sending is None or request.sending.ended_s is not None
        if is_over and request.number <= len(self._requests):
            self._digests[request.number] = digest
        return digest

    def _parent(self, digest: Digest, before: int | None = None) -> RunRequest | None:
        """Return the request that a later request continues from."""
        earlier = self._requests[: None if before is None else before - 1]
        known = [self._digest(each) for each in earlier]
        best: tuple[int, RunRequest] | None = None
        for request, other in zip(earlier, known, strict=True):
            if _continues(other, digest) and (best is None or len(other.history) >= best[0]):
                best = (len(other.history), request)
        if best is not None:
            return best[1]
        links = [link for link in read_backs((*known, digest)) if link.later is digest]
        return self._requests[links[-1].reply.exchange - 1] if links else None

    def _repeats_all(self, parent: RunRequest, digest: Digest) -> bool:
        """Check whether a request repeats its parent's reply with all calls."""
        known = self._run_digests()
        reply = known[parent.number - 1]
        links = [
            link
            for link in read_backs((*known, digest))
            if link.later is digest and link.reply is reply and not link.extra
        ]
        if any(each.blame is not None for link in links for each in findings_of(link)):
            return False
        pairs = [pair for link in links for pair in link.pairs]
        return bool(links) and all(any(p.delivered is call for p in pairs) for call in reply.calls)

    # The tapes.

    @cached_property
    def _tape(self) -> _Tape:
        tape = _Tape()
        for exchange in self._exchanges:
            request = exchange.request
            blank = blanked(request.content, request.content_masked)
            analysis = analyse(
                _with_body(exchange, self._reduced(request.content)), self._settings.app
            )
            tape.requests.append(
                _Recorded(
                    digest_analysis(analysis, self._settings),
                    self._asked(_with_body(exchange, self._reduced(blank))),
                    self._rest(blank),
                )
            )
        digests = [each.digest for each in tape.requests]
        tapes = dict.fromkeys(each.tape for each in digests)
        by_tape = {name: place for place, name in enumerate(tapes)}
        in_order = sorted(digests, key=lambda each: (by_tape[each.tape], each.exchange))
        tape.links = read_backs(in_order)
        positions = {(each.tape, each.exchange): at for at, each in enumerate(digests)}
        wrong = [
            (positions[each.tape, each.exchange], each)
            for each in self._with_logs(in_order)
            if blames_app(each) and not self._is_ignored(each)
        ]
        tape.known = {
            _place(positions[each.tape, each.against.exchange], each): each
            for _, each in wrong
            if each.against is not None and each.against.tape == each.tape
        }
        codes: dict[int, set[str]] = {}
        for at, each in wrong:
            if not each.code.startswith(_OF_TIME):
                codes.setdefault(at, set()).add(each.code)
        tape.codes = {at: frozenset(each) for at, each in codes.items()}
        tape.silences = {at: each for at, each in wrong if each.code.startswith(_SILENCE)}
        return tape

    def _with_logs(self, digests: Sequence[Digest]) -> Iterator[Finding]:
        """Yield the findings of requests, as sure as the app's log makes them.

        Findings about the log itself are left out: a run does not record the app's output.
        """
        with_logs = {
            _identity(each): each
            for tape, logs in self._logs.items()
            for each in check_conversation(
                [one for one in digests if one.tape == tape], self._settings, logs
            )
            if blames_app(each)
        }
        for each in check_conversation(digests, self._settings):
            yield with_logs.get(_identity(each), each)

    @cached_property
    def _of_endpoint(self) -> tuple[Finding, ...]:
        every = (check(exchange, self._settings) for exchange in self._elsewhere)
        return tuple(
            each
            for found in every
            for each in found
            if blames_app(each) and not self._is_ignored(each)
        )

    @property
    def accuses(self) -> bool:
        """Check whether the tape blames the app for anything that a run can show."""
        tape = self._tape
        return bool(tape.codes or tape.silences or self._of_endpoint)

    def _codes_of(self, position: int) -> tuple[str, ...]:
        """Return the codes for which the tape blames the app after a reply."""
        silence = self._tape.silences.get(position)
        codes = {silence.code} if silence else set()
        for at in self._successors(position):
            codes |= self._tape.codes.get(at, frozenset())
        return tuple(sorted(codes or {each.code for each in self._of_endpoint}))

    def _ends_blamed(self, position: int) -> bool:
        """Check whether the tape ends after a reply with calls, for which it blames the app."""
        reply = self._tape.requests[position].digest
        if not (reply.calls or reply.text_calls) or self._successors(position):
            return False
        return position in self._tape.silences or bool(self._of_endpoint)

    def _successors(self, position: int) -> list[int]:
        """Return the positions of requests that continue from one, in order."""
        digest = self._tape.requests[position].digest
        linked = {id(link.later) for link in self._tape.links if link.reply is digest}
        return [
            at
            for at, each in enumerate(self._tape.requests)
            if each.digest.tape == digest.tape
            and each.digest.exchange > digest.exchange
            and (id(each.digest) in linked or _continues(digest, each.digest))
        ]

    # A request and a recorded one.

    def _differs_only_there(
        self, reply: int, recorded: int, asked: RequestSummary, rest: object
    ) -> bool:
        """Check whether everything that the mistake did not touch is equal.

        Args:
            reply: position of the exchange that both requests continue.
            recorded: position of the recorded request.
            asked: the request of the run.
            rest: its body without the conversation.
        """
        one = self._tape.requests[recorded]
        if not agree(one.rest, rest) or not self._begins_alike(one, asked):
            return False
        was = {message.call_id: message for message in one.request.history if message.call_id}
        free = self._wrong_ids(reply, one.digest)
        if self._tape.codes.get(recorded, frozenset()) & _OF_RESULTS:
            free |= frozenset(was)
        return all(
            message.call_id not in was
            or message.call_id in free
            or self._is_same(was[message.call_id], message)
            or _is_parser_error(one, was[message.call_id])
            for message in asked.history
            if message.call_id
        )

    def _wrong_ids(self, reply: int, later: Digest) -> frozenset[str]:
        """Return ids of calls that the recorded app did not repeat as delivered.

        Including those of earlier replies: a mistake is repeated in all later requests.
        """
        replies = [each.digest for each in self._tape.requests[: reply + 1]]
        repeated_correctly = {
            each
            for link in self._tape.links
            if link.later.exchange <= later.exchange and link.later.tape == later.tape
            for pair in link.pairs
            if first_difference(pair.delivered, pair.repetition) is None
            for each in pair.delivered.answers_to
        }
        return (
            frozenset(
                each for digest in replies for call in digest.calls for each in call.answers_to
            )
            - repeated_correctly
        )

    def _may_end_here(self, recorded: int, asked: RequestSummary, rest: object) -> bool:
        """Check whether a request asks for nothing beyond the recorded conversation."""
        one = self._tape.requests[recorded]
        return agree(one.rest, rest) and self._begins_alike(one, asked)

    def _begins_alike(self, recorded: _Recorded, asked: RequestSummary) -> bool:
        """Check whether system and user messages equal the recorded ones, or their beginning.

        The results of calls in text are among them. A result that was an error of the app's parser
        on the tape may be anything in the run.
        """
        then, now = list(_plain(recorded.request)), list(_plain(asked))
        return len(now) <= len(then) and all(
            self._is_same(one, other) or _is_parser_error(recorded, one)
            for one, other in zip(then, now, strict=False)
        )

    def _is_same(self, recorded: Message, received: Message) -> bool:
        if recorded.digest == received.digest:
            return True
        mask = self._volatile.masked_text
        return bool(recorded.text) and (
            recorded.role == received.role
            and (
                agree(recorded.text, received.text)
                or agree(mask(recorded.text), mask(received.text))
            )
        )

    def _asked(self, exchange: Exchange) -> RequestSummary:
        return analyse(exchange, self._settings.app).request

    def _reduced(self, body: bytes) -> bytes:
        """Return a body without volatile fields."""
        value = json_value(body) if self._volatile else NOT_JSON
        if value is NOT_JSON:
            return body
        return json.dumps(self._volatile.reduced(value, marks=False)).encode()

    def _rest(self, body: bytes) -> object:
        value = json_value(body)
        if not isinstance(value, dict):
            return value
        rest = {key: each for key, each in value.items() if key not in _HISTORY}
        return self._volatile.reduced(rest)


def _identity(finding: Finding) -> tuple[object, ...]:
    """Return what identifies a finding, without its confidence."""
    against = finding.against
    return (
        finding.tape,
        finding.exchange,
        finding.code,
        against and (against.exchange, against.span),
    )


def _place(reply: int, finding: Finding) -> _Place:
    assert finding.against is not None
    return reply, finding.code, finding.against.evidence


def _continues(earlier: Digest, later: Digest) -> bool:
    """Check whether a request continues an earlier one's history, or names its reply."""
    if earlier.reply_id is not None and later.previous == earlier.reply_id:
        return True
    length = len(earlier.history)
    return 0 < length < len(later.history) and later.prefixes[length] == earlier.prefixes[-1]


def _plain(asked: RequestSummary) -> Iterator[Message]:
    """Yield messages that are neither the model's nor results."""
    return (each for each in asked.history if each.role not in _ASSISTANT and not each.call_id)


def _is_parser_error(recorded: _Recorded, message: Message) -> bool:
    """Check whether a message is an error of the app's parser."""
    return any(
        repeated.error is not None and repeated.content == message.text[: len(repeated.content)]
        for repeated in recorded.digest.history
        if repeated.content
    )


def _with_body(exchange: Exchange, body: bytes) -> Exchange:
    return replace(exchange, request=exchange.request.with_content(body))


def _of_run(request: RunRequest, body: bytes) -> Exchange:
    """Return a request of the run and its answer as an exchange.

    One that got an error of the player has no response yet.
    """
    came_ns = round(request.came_s * _NS)
    recorded = request.recorded
    asked = replace(recorded.request.with_content(body), t_ns=came_ns, t_end_ns=came_ns, line=None)
    bare = Exchange(
        tape="this run",
        number=request.number,
        id=f"run-{request.number}",
        source=recorded.source,
        recorded_at=recorded.recorded_at,
        request=asked,
        open=True,
    )
    played, sending = request.played, request.sending
    if played is None or sending is None:
        return bare
    reads = tuple(
        read._replace(t_ns=round(sent_s * _NS), line=None)
        for read, sent_s in zip(played.reads, sending.reads_s, strict=False)
    )
    return replace(
        bare,
        response=played.response and replace(played.response, t_ns=came_ns, line=None),
        reads=reads,
        trailers=played.trailers,
        end=_ended(played, sending, whole=len(reads) == len(played.reads)),
        open=sending.ended_s is None,
    )


def _ended(played: Exchange, sending: Sending, *, whole: bool) -> End | None:
    if sending.ended_s is None or played.end is None:
        return None
    reason = played.end.reason if whole else EndReason.CLIENT_CLOSED
    return replace(played.end, t_ns=round(sending.ended_s * _NS), reason=reason, line=None)
