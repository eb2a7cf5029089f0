"""What findings are worth on a tape that is not whole, or that nobody took to its end.

Every rule reads an exchange as if the tape were whole. Where the recorder lost some of it, nobody
knows where: what a lost record may have caused is no finding. In one place for all rules, so that
none can forget to ask.
"""

from collections.abc import Sequence
from dataclasses import replace

from deltatape.model.exchange import Exchange
from deltatape.model.finding import Confidence, Finding, Severity
from deltatape.rules.loss import is_left, loss_of

_STAND = frozenset({"S005", "S009", "T024", "W003", "W005", "X001", "X002"})
"""Codes that what came is enough for, whatever is missing beside it."""
_CLOCKS = frozenset({"D005"})
"""Codes that need records beside those of the answer."""
_LOSS = "X002"
_CUT = "W006"
_STILL_COMING = frozenset({"T001", "T005", "T019"})
"""Codes about what never came, of an answer that nobody took to its end."""


def as_taped(findings: Sequence[Finding], exchange: Exchange) -> list[Finding]:
    """`findings` on `exchange` without those that its recorder, or who left, may have caused."""
    loss = loss_of(exchange)
    if loss is None:
        return _of_what_came(findings) if is_left(exchange) else [*findings]
    if not loss.answer:
        return [each for each in findings if each.code not in _CLOCKS]
    left = is_left(exchange)
    kept = [each for each in (_cautious(one, left=left) for one in findings) if each is not None]
    codes = {each.code for each in kept}
    left_out = dict.fromkeys(each.code for each in findings if each.code not in codes)
    return [_naming(each, [*left_out]) if each.code == _LOSS else each for each in kept]


def _cautious(finding: Finding, *, left: bool) -> Finding | None:
    """The finding as far as it stands although bytes are missing; None if it does not."""
    if finding.code in _STAND:
        return finding
    if finding.code != _CUT or left:
        return None
    # How the transport ended is known; whether anything was missing then is not.
    sure = Confidence.LIKELY if finding.confidence is Confidence.PROVEN else finding.confidence
    return replace(finding, confidence=sure, excluded=())


def _naming(loss: Finding, codes: Sequence[str]) -> Finding:
    """The finding on a loss, with the codes that are left out because of it."""
    if not codes:
        return loss
    are = "is" if len(codes) == 1 else "are"
    may = f"; {', '.join(codes)} {are} not reported: what is missing may be the cause"
    return replace(loss, message=loss.message + may)


def _of_what_came(findings: Sequence[Finding]) -> list[Finding]:
    """What never came, because somebody left, is nobody's fault."""
    return [
        replace(
            each,
            blame=None,
            confidence=Confidence.POSSIBLE,
            severity=Severity.INFO,
            excluded=(),
        )
        if each.code in _STILL_COMING
        else each
        for each in findings
    ]


def first_the_loss(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """In the order of a report: what the tape lacks, then the worst first."""
    return tuple(sorted(findings, key=lambda each: (each.code != _LOSS, each.severity.rank)))
