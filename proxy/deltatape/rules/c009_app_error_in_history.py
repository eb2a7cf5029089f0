"""C009: the application's parser complains about a call that the wire delivered whole."""

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

from deltatape.model.finding import Blame, Confidence, Excluded, Finding, Severity
from deltatape.model.parser_error import Means
from deltatape.model.turn import Complaint, Turn
from deltatape.rules._complained import is_untrue, is_untrue_of_call
from deltatape.rules._conversation import TurnClaim, against, called_in, turn_finding
from deltatape.rules.evidence import excerpt
from deltatape.rules.repeated import relation
from deltatape.rules.settings import Settings


class AppErrorInHistory:
    """A tool result or a log line has a parser's error, and the wire had the call whole.

    ## What it does
    Reads the error texts of JSON parsers (Python, V8 and other browsers, Go, Jackson, Gson, Rust's
    serde, .NET) and of agent frameworks, in tool results and in what the application prints, and
    holds them against the call that they are about. What users say does not count, unless the reply
    before wrote its calls into text and the message is nothing but the error.

    It is proven, and an error, if the request also repeats the arguments with fragments lost,
    doubled or mixed; likely, and a warning, if the text speaks of a call or its arguments; else
    possible, and a remark, since the tool itself may have read something else. Where the wire's
    arguments were broken themselves, that is reported instead (T00x).

    ## Why is this bad
    The provider is not to blame, whatever the error looks like: the application lost or changed
    bytes that it had received, or cannot read what is valid.

    ## Innocent explanations
    - The tool read something else: a file, a page, the answer of a server, which may be empty, too.
    - An argument is itself meant to be JSON, and is none.
    - The arguments are valid JSON, and not what the tool wants.
    - The message is about another conversation's call with the same id.

    ## Example
    ```
    reply of #1:      get_itinerary {"id":"a1"}     in 2 fragments, whole
    request of #2:    {"role":"tool", "content":"Error: Unexpected end of JSON input"}
    ```

    ## Fix
    Append every fragment to the entry of its index, parse once when the call has ended, and take no
    argument bytes at all for `{}`. Take text calls only when their closing tag has come.

    ## References
    - https://developer.mozilla.org/en-US/docs/Web/JavaScript/Reference/Errors/JSON_bad_parse
    - https://docs.python.org/3/library/json.html
    - https://pkg.go.dev/encoding/json
    - https://github.com/openai/openai-agents-js/issues/664
    """

    code: ClassVar[str] = "C009"
    name: ClassVar[str] = "app-error-in-history"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, turn: Turn, settings: Settings) -> Iterator[Finding]:
        """See `TurnRule.check`."""
        del settings
        for complaint in turn.complaints:
            error = complaint.error
            if not is_untrue(error, [each.call for each in complaint.about]):
                continue
            confidence = _confidence(complaint)
            first = complaint.about[0]
            found = turn_finding(
                self,
                turn,
                TurnClaim(
                    message=_message(complaint),
                    hint=_HINTS[error.means],
                    blame=Blame.APP,
                    confidence=confidence,
                    severity=_SEVERITIES[confidence],
                    evidence=error.text,
                    against=against(first, turn.digest, complaint.repeated),
                    excluded=_excluded(complaint, confidence),
                ),
            )
            # A printed line is no line of the request.
            yield replace(found, line=None, t_ns=complaint.t_ns) if complaint.logged else found


_HINTS = {
    Means.NOTHING: "append every fragment, the first one too; take no argument bytes for {}",
    Means.CUT: "append every fragment to the entry of its index; parse once, when it is whole",
    Means.GLUED: "keep one entry per call, and hold back its closing tag; parse once, at the end",
    Means.SPOILT: "parse the arguments once, as they came, when the call is whole",
    Means.REFUSED: "give the tool the arguments as they came",
    Means.DROPPED: "keep id and name from the event that opens the call, by its index",
}
_SEVERITIES = {
    Confidence.PROVEN: Severity.ERROR,
    Confidence.LIKELY: Severity.WARNING,
    Confidence.POSSIBLE: Severity.INFO,
}


def _confidence(complaint: Complaint) -> Confidence:
    if _is_torn(complaint):
        return Confidence.PROVEN
    calls = [each.call for each in complaint.about]
    likely = is_untrue_of_call(complaint.error, calls, unread=bool(complaint.unread))
    return Confidence.LIKELY if likely and complaint.sure else Confidence.POSSIBLE


def _is_torn(complaint: Complaint) -> bool:
    """Whether the request repeats the call with its fragments lost, doubled or mixed."""
    first, repeated = complaint.about[0], complaint.repeated
    if repeated is None:
        return False
    return relation(first.call, repeated, first.reply.calls) is not None


def _excluded(complaint: Complaint, confidence: Confidence) -> tuple[Excluded, ...]:
    other = "the tool read something else"
    if confidence is Confidence.PROVEN:
        torn = "the request repeats the call with other arguments than were delivered"
        return (Excluded(other, torn),)
    if confidence is Confidence.LIKELY:
        says = "the error speaks of the call's arguments"
        return (Excluded(other, says if complaint.error.about_call else complaint.unread),)
    return ()


def _message(complaint: Complaint) -> str:
    first = complaint.about[0]
    more = len(complaint.about) - 1
    calls = called_in(first) + (f" and {more} more" if more else "")
    were = "were" if more else "was"
    said = excerpt(first.call.arguments, 80)
    told = "the app printed an error" if complaint.logged else "the app reports an error"
    text = excerpt(complaint.error.text, 100)
    return (
        f"{told} of {complaint.error.parser}, {text!r}, but {calls} {were} delivered"
        f" whole{f': {said!r}' if said else ', without arguments, which this tool allows'}"
        f"{_repeated(complaint)}"
    )


def _repeated(complaint: Complaint) -> str:
    if complaint.repeated is None:
        return ""
    return f"; the app made {excerpt(complaint.repeated.arguments, 80)!r} of it"
