"""A verdict with a suspect: not only that the app did it, but which mistake in it did.

A suspect alone proves nothing: many mistakes make the same of a stream. It is named where the app
is to blame already, or where a parser's error asks for an explanation and the wire has none.
"""

from dataclasses import replace

from deltatape.model.finding import Blame, Confidence, Severity
from deltatape.model.story import Verdict
from deltatape.model.suspect import Suspect
from deltatape.rules.evidence import excerpt
from deltatape.why.symptoms import Matter
from deltatape.why.verdict import Case

_SHOWN = 80
_ENOUGH = 20
"""Characters by which a text is known again."""


def is_open_to_suspicion(case: Case, verdict: Verdict) -> bool:
    """Whether a client's mistake may explain it: the wire has no error of its own that decides."""
    if verdict.blame is Blame.APP:
        return True
    broken = any(each.severity is Severity.ERROR for each in case.findings if each.code[0] in "WST")
    return not broken


def with_suspects(verdict: Verdict, matter: Matter, suspects: tuple[Suspect, ...]) -> Verdict:
    """`verdict` with what the first of `suspects` explains; as it is where none is exact."""
    if not suspects or not suspects[0].exact:
        return verdict
    first = suspects[0]
    if verdict.blame is Blame.APP:
        would = "behaves" if verdict.confidence is not Confidence.POSSIBLE else "may behave"
        said = _quoted(verdict.summary + first.says, matter)
        like = f"The app {would} like {first.name}{_or_others(suspects)}: it {first.says}."
        return replace(verdict, summary=f"{verdict.summary}{said} {like}", fix=first.fix)
    if verdict.blame is None and matter.across:
        return _by_page(first)
    if verdict.blame is None and matter.symptom.errors:
        return _by_error(matter, first, verdict.code)
    return verdict


def _or_others(suspects: tuple[Suspect, ...]) -> str:
    """How many others would have done the same: then the first is a guess, if a good one."""
    others = sum(each.exact for each in suspects) - 1
    return f" (or one of {others} that do the same)" if others > 1 else ""


def _quoted(told: str, matter: Matter) -> str:
    """What the application says itself, if it is not told already."""
    errors = [excerpt(error, _SHOWN) for error in matter.symptom.errors]
    if not errors or any(error[:_ENOUGH] in told for error in errors):
        return ""
    return f" It says '{errors[0]}'."


def _by_page(suspect: Suspect) -> Verdict:
    """Of the provider's side, where the mistake shows on the application's own."""
    return Verdict(
        blame=Blame.APP,
        confidence=Confidence.LIKELY,
        summary=(
            "The wire was in order, and the app told its page of something else: the timeline has"
            f" both. It behaves like {suspect.name}: it {suspect.says}."
        ),
        fix=suspect.fix,
        code=None,
    )


def _by_error(matter: Matter, suspect: Suspect, code: str | None) -> Verdict:
    error = excerpt(matter.symptom.errors[0], _SHOWN)
    return Verdict(
        blame=Blame.APP,
        confidence=Confidence.LIKELY,
        summary=(
            f"The wire was in order, and the app says '{error}'. It behaves like {suspect.name}:"
            f" it {suspect.says}."
        ),
        fix=suspect.fix,
        code=code,
    )
