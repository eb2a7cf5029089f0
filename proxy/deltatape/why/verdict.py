"""Chooses the finding that decides a verdict, and writes the verdict.

What the recorder lost of the exchange is stated first, whatever follows.

1. An error on the wire decides: nobody can be blamed for what it did with a broken reply. Of
   several errors the one nearest to the cause decides, in the order of `CAUSES`. But a refusal of
   the request, or an answer without content, follows from what the request itself had wrong; and
   what is missing after a limit was reached follows from the limit.
2. Else a difference between what was delivered and what the application repeats decides.
3. Else a watched silence after calls decides, or, before it, what was odd about the reply.
4. Else a warning on the wire decides, the same way.
5. Else what the recorder lost, or a client that left, is all there is to say.
6. Else a later request that goes on without the reply leaves open what the application did.
7. Else nothing is wrong as far as the tape goes, or it says what to tape next.

Possible findings and remarks decide nothing: the former are shown below the verdict, and the first
remark that accuses no application is noted at its end. For a finding without blame the verdict is
that nobody is at fault if the cause is certain (`NOBODYS_FAULT`), else that the fault is not
provable.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from deltatape.model.digest import ReadBack
from deltatape.model.explanation import Verdict, VerdictKind
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.model.reply import Reply
from deltatape.printable import count, excerpt
from deltatape.rules.endings import NOBODYS_FAULT

CAUSES = (
    "S005",  # upstream reports itself what went wrong
    "W009",  # nothing after it can be read
    "W010",
    "W005",  # there is no stream to check
    "W006",  # the cut explains what is missing at the end
    "D001",  # a silence that nothing ended
    "D004",
    "S009",  # the provider cut it
    "S007",  # a lost event explains everything that lacks its content
    "T027",  # a repeated delta breaks the arguments
    "S010",  # clients that had stopped miss the late call
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
    "T018",  # a call in the text explains a reply without calls
    "S003",
    "S002",
    "D002",
)
"""Codes from cause to consequence; the others come after them, in the order of reports."""
LOSS = "X002"
"""The code that says what the tape lacks: told before anything else, but the cause of nothing."""
_SHOWN = 160
_INTERNAL = frozenset({"X001", LOSS})
_OF_LIMIT = frozenset({"D002", "S013", "T001", "T002", "T003", "T019"})
"""Codes of what is missing or broken because a limit was reached before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictEvidence:
    """All findings around an exchange."""

    findings: tuple[Finding, ...]
    """The exchange's own."""
    about_reply: tuple[Finding, ...] = ()
    """Findings about the reply, from a later request or a silence."""
    about_request: tuple[Finding, ...] = ()
    """Findings about earlier replies, from the exchange's own request."""
    continued_by: int | None = None
    """A later request that continues the same history, but without the calls of the reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case(VerdictEvidence):
    """The input of a verdict."""

    reply: Reply
    read_back: ReadBack | None
    """The later request that repeats the reply; None if none does."""


def decides(finding: Finding) -> bool:
    """Check whether a verdict may rest on a finding: not a remark, and more than possible."""
    return finding.severity is not Severity.INFO and not is_possible(finding)


def is_possible(finding: Finding) -> bool:
    """Return whether a finding blames a side without excluding innocent explanations."""
    return finding.blame is not None and finding.confidence is Confidence.POSSIBLE


def is_leaving(finding: Finding) -> bool:
    """Check whether a finding is the remark that the client left, as users do with stop."""
    remark = finding.severity is Severity.INFO and finding.blame is None
    return remark and finding.code == "W006"


def judge(case: Case) -> Verdict:
    """Return the verdict on an exchange; losses of the tape come first."""
    verdict = _verdict_on(case)
    every = (*case.about_reply, *case.about_request, *case.findings)
    if verdict.kind is VerdictKind.HEALTHY:
        verdict = doubted(verdict, case.about_reply)
    verdict = replace(verdict, possible=tuple(each for each in every if is_possible(each)))
    lost = next((each for each in case.findings if each.code == LOSS), None)
    if lost is None or verdict.code == LOSS:
        return verdict
    lacks = as_sentence(lost.message)
    return replace(verdict, summary=f"{lacks}. {as_sentence(verdict.summary)}")


def as_sentence(text: str) -> str:
    """Capitalise the first letter."""
    return f"{text[:1].upper()}{text[1:]}"


def _verdict_on(case: Case) -> Verdict:
    verdict = _by_findings(case)
    if verdict is not None:
        return verdict
    if case.continued_by is not None:
        calls = count(len(case.reply.tool_calls), "call")
        return _undecided(
            f"{calls} arrived complete, but request #{case.continued_by} continues the same history"
            " without this reply. An app that lost it looks just like one that dropped it on"
            " purpose, or like a user who interrupted it.",
            "tape what the app prints, too (deltatape record -- CMD); look at what it does with a"
            " reply that has calls: a filter, an early return",
        )
    verdict = _by_nothing(case.reply, case.read_back, case.about_reply)
    for each in (*case.about_request, *case.findings):
        remark = each.severity is Severity.INFO and not is_possible(each)
        if remark and each.blame is not Blame.APP and each.code not in _INTERNAL:
            return replace(verdict, summary=f"{verdict.summary} Noted: {each.message}.")
    return verdict


def deciding(case: VerdictEvidence) -> Finding | None:
    """Return the finding that a verdict names; the gravest if it names none."""
    found = (*case.about_reply, *case.about_request, *case.findings)
    ranked = sorted(found, key=lambda finding: finding.severity.rank)
    verdict = _by_findings(case)
    named = (each for each in ranked if verdict and each.code == verdict.code)
    return next(named, ranked[0] if ranked else None)


def evidence_of(findings: Iterable[Finding]) -> VerdictEvidence:
    """Group `findings` with a place in one exchange, as `check` reports them."""
    found = tuple(findings)
    silences = tuple(each for each in found if each.code == "D003")
    about_request = tuple(each for each in found if each.code[0] == "C")
    return VerdictEvidence(
        findings=tuple(each for each in found if each not in (*silences, *about_request)),
        about_reply=silences,
        about_request=about_request,
    )


def _by_findings(case: VerdictEvidence) -> Verdict | None:
    """Return the verdict if a finding decides."""
    own = [each for each in case.findings if each.code not in _INTERNAL]
    errors = [each for each in own if each.severity is Severity.ERROR]
    about_reply = [each for each in case.about_reply if decides(each)]
    silences = [each for each in about_reply if each.code == "D003"]
    of_reply = [each for each in about_reply if each.code != "D003"]
    of_request = [each for each in case.about_request if decides(each)]
    if errors:
        first = _cause(errors, own)
        mistakes = [each for each in of_request if each.blame is Blame.APP]
        refused = first.code == "S005" and first.blame in (Blame.APP, None)
        if mistakes and (refused or first.code == "D002"):
            # A wrong request causes the refusal, or the answer without content.
            how = "was refused" if first.code == "S005" else "got no answer"
            return _by_conversation(mistakes, f" This request {how}: {first.message}.")
        return _by_wire(first, _before(first, own) + _aftermath(of_reply, silences))
    if about_app := of_reply or of_request:
        return _by_conversation(about_app, "")
    warnings = [each for each in own if decides(each)]
    odd = [each for each in warnings if each.code[0] in "ST"]
    if silences:
        if odd:
            return _by_wire(_nearest(odd), f" What followed: {silences[0].message}.")
        return _verdict(silences[0], f"The stream was correct: {silences[0].message}.")
    if case.continued_by is not None and odd:
        return _by_wire(_nearest(odd), f" Request #{case.continued_by} goes on without this reply.")
    if case.continued_by is None and warnings:
        return _by_wire(_nearest(warnings), "")
    remarks = [each for each in case.findings if each.code == LOSS or is_leaving(each)]
    remarks.sort(key=lambda each: each.code != LOSS)
    if not remarks:
        return None
    stop = " The stream was correct until then, and a user who presses stop looks the same."
    return _by_wire(remarks[0], stop if is_leaving(remarks[0]) else "")


def _nearest(findings: Iterable[Finding]) -> Finding:
    return min(findings, key=_cause_rank)


def _cause(errors: Sequence[Finding], own: Sequence[Finding]) -> Finding:
    """Return the first cause among errors.

    If the stream ended in a silence, the end: it is surer. If content is missing because a limit
    was reached, the limit.
    """
    first = _nearest(errors)
    ends = [each for each in errors if each.code == "S001" and first.code == "D001"]
    if ends and ends[0].blame is not None:
        return ends[0]
    limits = [each for each in own if each.code in NOBODYS_FAULT and first.code in _OF_LIMIT]
    return limits[0] if limits else first


def _cause_rank(finding: Finding) -> tuple[int, int]:
    """Rank a finding by its nearness to the cause, nearest first.

    A client that left in the middle of a silence left because of it.
    """
    place = CAUSES.index(finding.code) if finding.code in CAUSES else len(CAUSES)
    if finding.code == "W006" and finding.blame is Blame.APP:
        return CAUSES.index("D001"), 1
    return place, 0


def _before(finding: Finding, own: Sequence[Finding]) -> str:
    """Mention the silence before a cut."""
    stalls = [each for each in own if each.code == "D001" and finding.code in ("W006", "S001")]
    return f" Before that: {stalls[-1].message}." if stalls else ""


def _aftermath(of_reply: Sequence[Finding], silences: Sequence[Finding]) -> str:
    """Say what the app did with a broken reply."""
    blamed = [each for each in of_reply if each.blame is Blame.APP]
    if blamed:
        return f" The app did not handle it: {blamed[0].message}."
    return f" What followed: {silences[0].message}." if silences else ""


def _by_wire(finding: Finding, also: str) -> Verdict:
    """Return the verdict that rests on a finding in the stream; `also` follows its message."""
    return _verdict(finding, f"{finding.message.removesuffix('.')}.{also}")


def _verdict(finding: Finding, summary: str) -> Verdict:
    """Turn `finding` into a verdict."""
    nobody = finding.code in NOBODYS_FAULT or is_leaving(finding)
    named = finding.blame is not None and not nobody
    kind = VerdictKind.BLAMED if named else VerdictKind.UNPROVABLE
    return Verdict(
        kind=VerdictKind.NOBODY if nobody else kind,
        blame=finding.blame if named else None,
        confidence=finding.confidence if named else None,
        summary=summary,
        fix=finding.hint,
        code=finding.code,
    )


def _by_conversation(findings: Sequence[Finding], then: str) -> Verdict:
    """Return the verdict that a request's findings support, if one blames the app."""
    first = min(findings, key=_graveness)
    others = Counter(each.code for each in findings if each is not first)
    named = (f"{n} more {code}" if code == first.code else code for code, n in others.items())
    also = f" Also found: {', '.join(named)}." if others else ""
    summary = f"{first.message}.{also}{then}"
    if first.blame is Blame.APP:
        summary = f"The stream was correct; the mistake is in the app: {summary}"
    return _verdict(first, summary)


def _graveness(finding: Finding) -> tuple[int, bool, bool]:
    """Rank a finding; a returned result shows that the call was not lost, only its message."""
    return finding.severity.rank, finding.blame is None, finding.code != "C004"


def _by_nothing(
    reply: Reply, read_back: ReadBack | None, about_reply: Iterable[Finding]
) -> Verdict:
    changes = _changes(about_reply)
    calls = count(len(reply.tool_calls), "call") if reply.tool_calls else "the answer"
    them = "them" if len(reply.tool_calls) > 1 else "it"
    refusal = reply.choices[0].refusal
    made = f"goes on from {them}" if changes else "repeats what was delivered"
    if read_back:
        repeats = f"request #{read_back.later.exchange} {made}"
        if read_back.later.exchange == read_back.reply.exchange:
            calls = count(sum(len(choice.tool_calls) for choice in reply.choices), "call")
            made = "go on from them" if changes else "repeat what was delivered"
            repeats = f"later requests on the same WebSocket {made}"
        return Verdict(
            kind=VerdictKind.HEALTHY,
            summary=f"No defect found: {calls} arrived complete, and {repeats}.{changes}",
            fix="none; if a problem remains, look at the other exchanges",
        )
    if reply.tool_calls:
        return _undecided(
            f"{calls} arrived complete, but no later request on the tape repeats {them}, so the"
            f" tape does not show what the app made of {them}.",
            "tape the app's next request, too: deltatape record -- CMD tapes the whole run and what"
            " the app prints; if the app takes the call as its output (structured output), no"
            " request follows, and nothing is wrong",
        )
    if refusal:
        return Verdict(
            kind=VerdictKind.NOBODY,
            summary=f"The model refused to answer: '{excerpt(refusal, _SHOWN)}'.",
            fix="rephrase the request, or show the refusal to the user: it arrived complete",
        )
    if reply.text:
        return Verdict(
            kind=VerdictKind.HEALTHY,
            summary=f"No defect found: {len(reply.text)} characters of text arrived"
            " complete. The tape does not show what the app displayed.",
            fix="none; if the app displays less than this text, it loses the text internally",
        )
    return _undecided(
        "No finding, and no reply of a dialect that deltatape reads.",
        "tape an exchange with an LLM provider",
    )


def doubted(verdict: Verdict, about_app: Iterable[Finding]) -> Verdict:
    """Return healthy, or not provable where the app may have done wrong."""
    doubts = (each for each in about_app if each.code in _OF_REPLIES and is_possible(each))
    doubt = next(doubts, None)
    if doubt is None:
        return verdict
    return _undecided(f"{doubt.message}.", doubt.hint)


def _changes(about_app: Iterable[Finding]) -> str:
    """Describe legitimate changes by the app; "" if it repeats replies as delivered."""
    found = [
        each
        for each in about_app
        if each.code in _OF_REPLIES and each.severity is Severity.INFO and each.blame is None
    ]
    if not found:
        return ""
    more = f", and {count(len(found) - 1, 'more change')}" if len(found) > 1 else ""
    return f" The app changed something, which is no defect: {found[0].message}{more}."


_OF_REPLIES = frozenset({"C001", "C002", "C003", "C012"})
"""Codes about what an application made of a reply."""
_TWO = 2


def nothing_wrong(
    replies: int, repeated: int, notes: Sequence[str] = (), about_app: Iterable[Finding] = ()
) -> Verdict:
    """Return the verdict on a tape without problems.

    Args:
        replies: how many arrived.
        repeated: how many of them a later request repeats.
        notes: attempts that failed and were answered later.
        about_app: findings about the app's repetition of the replies.
    """
    changes = _changes(about_app)
    how = "" if changes else " just as delivered"
    several = "Both" if replies == _TWO else f"All {replies}"
    all_of = "The reply" if replies == 1 else f"{several} replies"
    also = f" Later requests repeat {repeated} of them{how}.{changes}" if repeated else ""
    noted = f" Failed attempts were answered later ({'; '.join(notes)})." if notes else ""
    return Verdict(
        kind=VerdictKind.HEALTHY,
        summary=f"{all_of} arrived complete.{also} No request followed the last one, so the tape"
        f" does not show what the app did with it.{noted}",
        fix="none; if users see a problem, it is inside the app",
    )


def going_on() -> Verdict:
    """Return the verdict on an open exchange without problems so far."""
    return _undecided(
        "Still in progress; no defect so far.",
        "run why again later: a silence shows as a growing time since the last event",
    )


def of_endpoint() -> Verdict:
    """Return the verdict on an exchange with the app's endpoint without findings."""
    return _undecided(
        "No transport defect in the app's own answer; its content is up to the app.",
        "compare it with what the provider delivered meanwhile: the timeline names that exchange",
    )


def _undecided(summary: str, fix: str) -> Verdict:
    return Verdict(kind=VerdictKind.UNPROVABLE, summary=summary, fix=fix)
