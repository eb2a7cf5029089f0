"""Findings out of the anomalies that framing noticed."""

from collections.abc import Iterator

from deltatape.model.finding import Blame, Finding
from deltatape.model.stream import AnomalyKind, Format, Stream
from deltatape.rules._base import Claim, Documented, RuleContext, finding

STREAMS = frozenset({Format.SSE, Format.NDJSON, Format.JSON_ARRAY, Format.EVENTSTREAM})
"""Formats of bodies that arrive event by event."""


def is_torn(stream: Stream) -> bool:
    """Whether the body ends inside an event. Binary messages leave nothing pending."""
    return stream.pending is not None or (
        stream.format is Format.EVENTSTREAM
        and any(each.kind is AnomalyKind.UNTERMINATED_EVENT for each in stream.anomalies)
    )


def is_undecoded(stream: Stream) -> bool:
    """Whether there is more behind the body's coding than was decoded: what is missing may be."""
    return any(
        each.kind in {AnomalyKind.BAD_CONTENT_CODING, AnomalyKind.TOO_LARGE}
        for each in stream.anomalies
    )


def anomalies(
    rule: Documented, context: RuleContext, kind: AnomalyKind, what: str, hint: str
) -> Iterator[Finding]:
    """One finding for all anomalies of `kind`, placed at the first: a defect repeats itself."""
    found = [each for each in context.stream.anomalies if each.kind is kind]
    if not found:
        return
    first = found[0]
    start, end = first.place.span
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    yield finding(
        rule,
        context,
        Claim(
            message=f"{what}: {first.detail}{more}",
            hint=hint,
            blame=Blame.UPSTREAM,
            confidence=context.seen,
            event=first.event,
            place=first.place,
            evidence=context.stream.body[start:end].decode("utf-8", "backslashreplace"),
        ),
    )
