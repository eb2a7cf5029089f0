"""C016: a call that was cut off, and run all the same."""

import re
from collections.abc import Iterator, Sequence
from typing import ClassVar

from deltatape.model.asked import RepeatedCall
from deltatape.model.digest import Digest, Heard, SaidCall
from deltatape.model.finding import Blame, Confidence, Excluded, Finding, Severity
from deltatape.model.reply import CallStatus
from deltatape.model.turn import Continuation, Delivered, Turn
from deltatape.rules._conversation import TurnClaim, against, called_in, turn_finding
from deltatape.rules.evidence import excerpt
from deltatape.rules.settings import Settings
from deltatape.wire.json_value import parse

_ERROR = re.compile(
    r"error|exception|fail|invalid|incomplete|incorrect|malformed|truncat|cut ?off|broke"
    r"|interrupt|cancel|abort|denied|reject|refus|missing|required|unable|could ?n[o']t|can ?not"
    r"|can't|did ?n[o']t|was ?n[o']t|not |no result|never|retry|again|unknown|unexpected|limit"
    r"|too long|parse|traceback|skipp|stopped|fehler|erreur|\u9519\u8bef|\u5931\u8d25"
    r"|\u30a8\u30e9\u30fc",
    re.IGNORECASE,
)
"""Words of a result that tells that nothing was run: better too many than too few."""


class BrokenCallExecuted:
    """A call whose arguments never came to their end was completed by guess, and run.

    ## What it does
    Looks at replies that broke off, or ended by the token limit, in the middle of a call, or lack
    its end, and at the next request of the conversation: it has that call with whole arguments,
    which nobody delivered, and a result that tells of no error.

    ## Why is this bad
    What is missing of the arguments may be the part that matters: a path, a condition, a limit. A
    tool that deletes or sends does so with arguments that the model never chose, and the model
    reads in the history that it did.

    ## Innocent explanations
    - The call was answered with an error, an interruption or a refusal: that is right.
    - Another reply to the same request, a second attempt, brought the whole call.
    - A person completed the arguments, or the application asked for them again elsewhere.

    ## Example
    ```
    #1, finish_reason length:  write_file {"path":"notes.txt","text":"Dear Ann, plea
    next request:              write_file {"path":"notes.txt","text":"Dear Ann, plea"}
                               result: saved
    ```

    ## Fix
    Run a call only if its arguments parse as they are and the reply came to its regular end. Else
    ask again, with a higher token limit, or answer the call with an error. Do not repair partial
    JSON for anything but display.

    ## References
    - https://platform.openai.com/docs/guides/structured-outputs
    - https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/implement-tool-use
    """

    code: ClassVar[str] = "C016"
    name: ClassVar[str] = "broken-call-executed"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, turn: Turn, settings: Settings) -> Iterator[Finding]:
        """See `TurnRule.check`."""
        del settings
        found = turn.continues
        if found is None or found.stored:
            return
        history = turn.digest.history
        repeated = [call for each in history[found.start : found.end] for call in each.calls]
        results = {each.call_id: each for each in history[found.end :] if each.call_id}
        for reply, call in _broken(found):
            again = _named(call, repeated)
            result = next((results[each] for each in call.answers_to if each in results), None)
            if again is None or result is None or not _was_run(again, result):
                continue
            if not _is_completed(call, again) or _came_otherwise(again, found, reply):
                continue
            yield self._finding(turn, Delivered(call=call, reply=reply), again, result)

    def _finding(
        self, turn: Turn, delivered: Delivered, again: RepeatedCall, result: Heard
    ) -> Finding:
        reply = delivered.reply
        ended = "stopped" if reply.whole else "broke off"
        if reply.limited:
            ended = "reached the reply's limit"
        shown = excerpt(again.arguments, 80)
        return turn_finding(
            self,
            turn,
            TurnClaim(
                message=f"{called_in(delivered)} {ended} in the middle of its arguments; the app"
                f" completed them to {shown} and ran the call",
                hint="answer a call that was cut with an error, or ask again with a higher limit;"
                " never run repaired JSON",
                blame=Blame.APP,
                confidence=Confidence.LIKELY,
                severity=self.severity,
                evidence=again.arguments,
                against=against(delivered, turn.digest, again),
                excluded=(
                    Excluded(
                        "the app answered the call with an error",
                        f"its result is {excerpt(result.content, 60)!r}",
                    ),
                    Excluded(
                        "another attempt brought the whole call",
                        "no other reply to the same request on the tape has it, and its id is that"
                        " of the call that was cut",
                    ),
                ),
            ),
        )


def _broken(found: Continuation) -> Iterator[tuple[Digest, SaidCall]]:
    """The calls that did not come to their end, with their replies."""
    for reply in found.replies:
        if reply.lossy:
            continue
        for call in reply.calls:
            empty = call.status is CallStatus.EMPTY_SUSPECT and call is reply.calls[-1]
            if call.status is CallStatus.TRUNCATED or (empty and _stopped(reply)):
                yield reply, call


def _stopped(reply: Digest) -> bool:
    return reply.limited or reply.failed


def _named(call: SaidCall, repeated: Sequence[RepeatedCall]) -> RepeatedCall | None:
    """What the request makes of `call`: the one call with its id and its name."""
    same = [each for each in repeated if each.id in call.ids and each.name == call.name]
    return same[0] if len(same) == 1 else None


def _was_run(again: RepeatedCall, result: Heard) -> bool:
    """Whether the arguments can be run, and the result does not say that they were not."""
    whole = parse(again.arguments.strip() or "{}").error is None
    return whole and not _ERROR.search(result.content)


def _is_completed(call: SaidCall, again: RepeatedCall) -> bool:
    """Whether the arguments are more than what was delivered, or nothing in its place."""
    return again.arguments.strip() != call.arguments.strip() or not call.arguments.strip()


def _came_otherwise(again: RepeatedCall, found: Continuation, but: Digest) -> bool:
    """Whether another reply to the same request has just this call."""
    others = (call for each in found.replies if each is not but for call in each.calls)
    return any(each.name == again.name and again.id in each.ids for each in others)
