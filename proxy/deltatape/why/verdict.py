"""Which finding decides, and what to say if none does.

1. An error on the wire decides: nobody can be blamed for what it did with a broken reply. Of
   several errors the one nearest to the cause decides, in the order of `CAUSES`. But a refusal of
   the request, or an answer without content, follows from what the request itself had wrong.
2. Else a difference between what was delivered and what the application repeats decides: the
   application changed it, the wire was in order.
3. Else a watched silence after calls decides, or, before it, what was odd about the reply.
4. Else a later request that goes on without the reply points at the application, no more.
5. Else a warning on the wire decides, the same way.
6. Else nothing is wrong as far as the tape goes, and it says what to tape next.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from deltatape.model.digest import ReadBack
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.model.reply import Reply
from deltatape.model.story import Verdict
from deltatape.rules.words import count

CAUSES = (
    "S005",  # upstream says itself what went wrong
    "W009",  # nothing behind it can be read
    "W010",
    "W005",  # there is no stream to look at
    "W006",  # what is missing at the end is missing because of the cut
    "D001",  # a silence that nothing ended
    "D004",
    "S009",  # the provider cut it
    "S007",  # what did not come is missing everywhere
    "S001",
    "W004",
    "W001",
    "T012",  # a broken identity spoils arguments, not the other way round
    "T011",
    "T017",
    "T014",
    "T013",
    "T021",
    "T009",
    "T010",
    "T004",
    "T005",
    "T015",
    "T003",
    "T019",
    "T001",
    "T002",
    "T016",
    "T006",
    "T007",
    "T008",
    "T018",  # a call that was written is none that was made
    "S003",
    "S002",
    "D002",
)
"""Codes from cause to consequence; the others come after them, in the order of reports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grounds:
    """What is found around an exchange."""

    findings: tuple[Finding, ...]
    """The exchange's own."""
    about_reply: tuple[Finding, ...] = ()
    """What a later request, or a silence, shows that the application made of the reply."""
    about_request: tuple[Finding, ...] = ()
    """What the exchange's own request shows that it made of earlier replies."""
    gone_on: int | None = None
    """A later request that goes on from the same history, but without the calls of the reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case(Grounds):
    """All that a verdict is made from."""

    reply: Reply
    read_back: ReadBack | None
    """What a later request repeats of the reply, None if none does."""


def judge(case: Case) -> Verdict:
    """The verdict on an exchange."""
    verdict = _by_findings(case)
    if verdict is not None:
        return verdict
    if case.gone_on is not None:
        return _by_absence(case.reply, case.gone_on)
    return _by_nothing(case.reply, case.read_back)


def deciding(case: Grounds) -> Finding | None:
    """The finding that a verdict names; the gravest if it names none, None without any."""
    found = (*case.about_reply, *case.about_request, *case.findings)
    ranked = sorted(found, key=lambda finding: finding.severity.rank)
    verdict = _by_findings(case)
    named = (each for each in ranked if verdict and each.code == verdict.code)
    return next(named, ranked[0] if ranked else None)


def grounds_of(findings: Iterable[Finding]) -> Grounds:
    """The grounds from all `findings` whose place is in one exchange, as `check` reports them."""
    found = tuple(findings)
    silences = tuple(each for each in found if each.code == "D003")
    about_request = tuple(each for each in found if each.code[0] == "C")
    return Grounds(
        findings=tuple(each for each in found if each not in (*silences, *about_request)),
        about_reply=silences,
        about_request=about_request,
    )


def _by_findings(case: Grounds) -> Verdict | None:
    """The verdict if a finding decides."""
    own = [each for each in case.findings if each.code != "X001"]
    errors = [each for each in own if each.severity is Severity.ERROR]
    silences = [each for each in case.about_reply if each.code == "D003"]
    of_reply = [each for each in _grave(case.about_reply) if each.code != "D003"]
    of_request = _grave(case.about_request)
    about_app = of_reply or of_request
    if errors:
        first = _ended(min(errors, key=_nearness), errors)
        if of_request and _follows(first):
            how = "was refused" if first.code == "S005" else "got no answer"
            return _by_app(of_request, f" This request {how}: {first.message}.")
        return _by_wire(first, _before(first, own) + _after([*of_reply, *silences]))
    if about_app:
        return _by_app(about_app, "")
    if silences:
        return _by_silence(silences[0], own)
    warnings = [each for each in own if each.severity is Severity.WARNING]
    if warnings and case.gone_on is None:
        return _by_wire(min(warnings, key=_nearness), "")
    infos = [each for each in case.about_request if each.severity is Severity.INFO]
    facts = [each for each in infos if each.blame is not Blame.APP]  # that would accuse somebody
    return _by_wire(facts[0], "") if facts and case.gone_on is None else None


def _ended(first: Finding, errors: Sequence[Finding]) -> Finding:
    """Of a silence in which the stream ended, that end: it is the surer of the two."""
    ends = [each for each in errors if each.code == "S001" and first.code == "D001"]
    sure = ends and ends[0].blame is not None
    return ends[0] if sure else first


def _grave(findings: Iterable[Finding]) -> list[Finding]:
    """Those that say that something is wrong: facts about a conversation accuse nobody."""
    return [each for each in findings if each.severity is not Severity.INFO]


def _follows(finding: Finding) -> bool:
    """Whether a request that is wrong itself brings this about."""
    return finding.code == "D002" or (finding.code == "S005" and finding.blame is Blame.APP)


def _nearness(finding: Finding) -> tuple[int, int]:
    """How near to the cause, the nearest first.

    A client that left in the middle of a silence left because of it.
    """
    place = CAUSES.index(finding.code) if finding.code in CAUSES else len(CAUSES)
    if finding.code == "W006" and finding.blame is Blame.APP:
        return CAUSES.index("D001"), 1
    return place, 0


def _before(finding: Finding, own: Sequence[Finding]) -> str:
    """A silence before a cut belongs to its story."""
    stalls = [each for each in own if each.code == "D001" and finding.code in ("W006", "S001")]
    return f" Before that: {stalls[-1].message}." if stalls else ""


def _after(about_app: Sequence[Finding]) -> str:
    return f" The app did not cope with it: {about_app[0].message}." if about_app else ""


def _by_wire(finding: Finding, also: str) -> Verdict:
    return Verdict(
        blame=finding.blame,
        confidence=finding.confidence if finding.blame else None,
        summary=f"{finding.message}.{also}",
        fix=finding.hint,
        code=finding.code,
    )


def _by_app(findings: Sequence[Finding], then: str) -> Verdict:
    first = min(findings, key=_graveness)
    others = dict.fromkeys(each.code for each in findings if each is not first)
    also = f" (also {', '.join(others)})" if others else ""
    return Verdict(
        blame=first.blame,
        confidence=first.confidence,
        summary=f"The wire was in order; the app was not: {first.message}{also}.{then}",
        fix=first.hint,
        code=first.code,
    )


def _graveness(finding: Finding) -> tuple[int, bool]:
    """A result that is sent back shows that the call was not lost, but its message was."""
    return finding.severity.rank, finding.code != "C004"


def _by_silence(silence: Finding, own: Sequence[Finding]) -> Verdict:
    """Something odd about the reply itself is nearer to the cause than what it led to."""
    odd = [each for each in own if each.severity is Severity.WARNING and each.code[0] in "ST"]
    if odd:
        return _by_wire(min(odd, key=_nearness), f" What followed: {silence.message}.")
    return Verdict(
        blame=silence.blame,
        confidence=silence.confidence,
        summary=f"The wire was in order: {silence.message}.",
        fix=silence.hint,
        code=silence.code,
    )


def _by_absence(reply: Reply, number: int) -> Verdict:
    calls = count(len(reply.tool_calls), "call")
    return Verdict(
        blame=Blame.APP,
        confidence=Confidence.POSSIBLE,
        summary=f"{calls} arrived whole, but request #{number} goes on from the same history"
        " without this reply: the app dropped it, unless the user interrupted it.",
        fix="look at what the app does with a reply that has calls: a filter, an early return",
        code=None,
    )


def _by_nothing(reply: Reply, read_back: ReadBack | None) -> Verdict:
    calls = count(len(reply.tool_calls), "call")
    if read_back:
        return _undecided(
            f"Nothing is wrong here: {calls} arrived whole, and request"
            f" #{read_back.later.exchange} repeats what was delivered.",
            "nothing to fix here; if something is wrong nevertheless, look at the other exchanges",
        )
    if reply.tool_calls:
        return _undecided(
            f"Not provable from this tape, because {calls} arrived whole and no later"
            " request on the tape repeats them: what the app made of them is not to be seen.",
            "tape the app's next request, too: let the recorder run until the app has gone on",
        )
    if reply.text:
        return _undecided(
            f"Nothing is wrong on the wire: {len(reply.text)} characters of text arrived whole."
            " What the app showed of them is not provable from this tape.",
            "nothing to fix on the wire; should the app show less than this text, look behind its"
            " socket",
        )
    return _undecided(
        "No finding, and no reply of a dialect that deltatape reads.",
        "tape an exchange with an LLM provider",
    )


_TWO = 2


def nothing_wrong(replies: int, repeated: int) -> Verdict:
    """The verdict on a tape without any finding.

    Args:
        replies: how many arrived.
        repeated: how many of them a later request repeats.
    """
    several = "Both" if replies == _TWO else f"All {replies}"
    all_of = "The reply" if replies == 1 else f"{several} replies"
    also = f" Later requests repeat {repeated} of them just as delivered." if repeated else ""
    return Verdict(
        blame=None,
        confidence=None,
        summary=f"{all_of} arrived whole.{also} No request came after the last one: what the app"
        " made of that is not on the tape.",
        fix="none; should users see something else, it happens in the app behind these bytes",
        code=None,
        healthy=True,
    )


def going_on() -> Verdict:
    """The verdict on an exchange that has no end yet and nothing wrong so far."""
    return _undecided(
        "Still going on: so far nothing is wrong with what arrived.",
        "ask again: a silence shows as a longer and longer time since the last event",
    )


def of_endpoint() -> Verdict:
    """The verdict on an exchange with the application's own endpoint that has no findings."""
    return _undecided(
        "Nothing is wrong with the transport of the app's own answer; what it has to say is the"
        " app's business.",
        "compare it with what the provider delivered meanwhile: the timeline names that exchange",
    )


def _undecided(summary: str, fix: str) -> Verdict:
    return Verdict(blame=None, confidence=None, summary=summary, fix=fix, code=None)
