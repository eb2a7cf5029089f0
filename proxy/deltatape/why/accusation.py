"""A verdict with a suspect: not only that the app did it, but which mistake in it did.

A suspect alone proves nothing: many mistakes make the same of a stream. It is named where it
explains content: arguments, names or ids that differ from what was delivered, or a parser's error
that the wire does not account for. A client that makes no call of a stream fits every call that was
dropped, also one that was dropped on purpose. Hence it is named for calls that are missing, and
nothing else, only where the app is to blame for that already, and then as one way to lose them.
"""

from collections.abc import Sequence
from dataclasses import replace

from deltatape.model.finding import Blame, Confidence, Severity
from deltatape.model.reply import ToolCall
from deltatape.model.story import Verdict, VerdictKind
from deltatape.model.suspect import Suspect
from deltatape.rules.evidence import excerpt
from deltatape.why.symptoms import Matter
from deltatape.why.verdict import LOSS, Case
from deltatape.wire.json_value import canonical

_SHOWN = 80
_ENOUGH = 20
"""Characters by which a text is known again."""


def is_open_to_suspicion(case: Case, verdict: Verdict) -> bool:
    """Whether a client's mistake may explain it: the wire has no error of its own that decides.

    Of an exchange that is not whole on the tape nobody knows what the client had to read.
    """
    if any(each.code == LOSS for each in case.findings):
        return False
    if verdict.blame is Blame.APP:
        return True
    broken = any(each.severity is Severity.ERROR for each in case.findings if each.code[0] in "WST")
    return not broken


def worth_naming(
    verdict: Verdict, matter: Matter, suspects: Sequence[Suspect]
) -> tuple[Suspect, ...]:
    """Those of `suspects` that explain something which is held against the app."""
    if is_drop(matter):
        exact = tuple(replace(each, drop=True) for each in suspects if each.exact)
        return exact if verdict.blame is Blame.APP and not matter.one_off else ()
    blamed = verdict.blame is Blame.APP
    supported = blamed or matter.across or bool(matter.symptom.errors)
    return tuple(each for each in suspects if supported and (each.exact or blamed))


def is_drop(matter: Matter) -> bool:
    """Whether calls are missing and nothing else is known: what is left is as delivered."""
    heard, delivered = matter.symptom.calls, matter.analysis.reply.tool_calls
    if heard is None or matter.symptom.errors or len(heard) >= len(delivered):
        return False
    rest = [_key(call) for call in delivered]
    for call in heard:
        key = (call.id, call.name, canonical(call.arguments) or call.arguments)
        if key not in rest:
            return False
        rest.remove(key)
    return True


def _key(call: ToolCall) -> tuple[str | None, str | None, str]:
    return call.id, call.name, canonical(call.arguments) or call.arguments


def with_suspects(verdict: Verdict, matter: Matter, suspects: Sequence[Suspect]) -> Verdict:
    """`verdict` with what the first of `suspects` explains; as it is where none is exact."""
    if not suspects or not suspects[0].exact:
        return verdict
    first = suspects[0]
    if verdict.blame is Blame.APP and first.drop:
        does, mend = first.says.partition(";")[0], first.fix.rstrip(".")
        like = f"{first.name}{_or_others(suspects)} would lose it the same way: it {first.says}."
        fix = f"look whether the app {does}. If so: {mend}. If not: {verdict.fix}"
        return replace(verdict, summary=f"{verdict.summary} A client like {like}", fix=fix)
    if verdict.blame is Blame.APP:
        said = _quoted(verdict.summary + first.says, matter)
        like = f"The app behaves like {first.name}{_or_others(suspects)}: it {first.says}."
        return replace(verdict, summary=f"{verdict.summary}{said} {like}", fix=first.fix)
    if verdict.blame is None and matter.across:
        return _by_page(first)
    if verdict.blame is None and matter.symptom.errors:
        return _by_error(matter, first, verdict.code)
    return verdict


def _or_others(suspects: Sequence[Suspect]) -> str:
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
        kind=VerdictKind.BLAMED,
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
        kind=VerdictKind.BLAMED,
        blame=Blame.APP,
        confidence=Confidence.LIKELY,
        summary=(
            f"The wire was in order, and the app says '{error}'. It behaves like {suspect.name}:"
            f" it {suspect.says}."
        ),
        fix=suspect.fix,
        code=code,
    )
