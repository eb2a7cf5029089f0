"""C014: a reply or a tool result of one conversation in the history of another."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Against, Blame, Confidence, Excluded, Finding, Severity
from deltatape.model.turn import Delivered, Foreign, Turn
from deltatape.rules._conversation import TurnClaim, called_in, turn_finding
from deltatape.rules.evidence import excerpt
from deltatape.rules.settings import Settings


class ForeignMessage:
    """A request carries a reply or a result that belongs to another conversation.

    ## What it does
    Looks for each new assistant message among the replies to other conversations, and for each new
    tool result among their calls: by an id that is nobody else's, or by a content that no other
    reply has. Tells it only if both conversations have the same instructions and tools, no user
    message in common, and the history was one of its own before.

    ## Why is this bad
    One user reads what another one asked for. The model goes on from words that it never said.

    ## Innocent explanations
    - Agents that work together hand each other's answers on: their instructions or tools differ, or
      one quotes the other's question.
    - The history was summarised, and goes on from an older conversation of the same user.
    - Two conversations got the same short answer.

    ## Example
    ```
    reply of #1 (user A):     "Your order 4711 has been shipped."
    reply of #2 (user B):     "Your invoice is attached."
    request of #3 (user B):   {"role":"assistant","content":"Your order 4711 has been shipped."}
    ```

    ## Fix
    Keep the state of a conversation in the conversation: no variable of a module, no attribute of a
    shared client, no callback that finds "the current one". Key what comes back by request.

    ## References
    - https://platform.openai.com/docs/guides/conversation-state
    - https://docs.python.org/3/library/contextvars.html
    """

    code: ClassVar[str] = "C014"
    name: ClassVar[str] = "foreign-message"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, turn: Turn, settings: Settings) -> Iterator[Finding]:
        """See `TurnRule.check`."""
        del settings
        for foreign in turn.foreign:
            message = turn.digest.history[foreign.place]
            donor = foreign.donor
            yield turn_finding(
                self,
                turn,
                TurnClaim(
                    message=_message(foreign),
                    hint="keep the state of each conversation apart: no shared variable or client",
                    blame=Blame.APP,
                    confidence=Confidence.LIKELY,
                    severity=self.severity,
                    evidence=message.content,
                    excluded=_excluded(foreign),
                    against=Against(
                        tape=donor.tape,
                        exchange=donor.exchange,
                        line=donor.end_line,
                        span=None,
                        asked=None,
                        evidence=excerpt(donor.content),
                    ),
                ),
            )


def _message(foreign: Foreign) -> str:
    donor = foreign.donor
    if foreign.call is not None:
        call = called_in(Delivered(call=foreign.call, reply=donor))
        what = f"the result of {call}"
        instead = f", at a call of #{foreign.own.exchange}" if foreign.own else ""
    else:
        what = f"the reply of #{donor.exchange}"
        instead = f" instead of that of #{foreign.own.exchange}" if foreign.own else ""
    other = f"; that conversation has the reply of #{foreign.own.exchange}" if foreign.own else ""
    return (
        f"the request carries {what}, which is another conversation's{instead}"
        f"{other if foreign.exchanged else ''}"
    )


def _excluded(foreign: Foreign) -> tuple[Excluded, ...]:
    return (
        Excluded(
            "agents that work together hand their answers on",
            "both have the same instructions and tools, and no message of"
            f" #{foreign.donor.exchange} stands in this history",
        ),
        Excluded(
            "the history was summarised",
            "before this message it is the history of a reply on the tape",
        ),
    )
