"""T026: a new call with the id of an earlier one."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Blame, Confidence, Excluded, Finding, Severity
from deltatape.model.turn import Delivered, Turn
from deltatape.rules._conversation import TurnClaim, against, called_in, turn_finding
from deltatape.rules.settings import Settings


class IdReused:
    """A reply gives a new call the id that another call of the conversation has.

    ## What it does
    Reports the first reply of a conversation that calls a tool under an id that a call in the
    request's own history has already, once for each id. Servers that number the calls of each
    answer from 0 are the usual case: `call_0`, `functions.get_weather:0`.

    ## Why is this bad
    A result names its call by the id. With two calls of one id, clients mix up results, take the
    new call for one that they have run, drop it or its result, or abort. The next request may then
    be refused, since a result seems to have no call.

    ## Innocent explanations
    - The app made up the ids in its history, or wrote them into an example: nobody is blamed unless
      the wire delivered the earlier call under this id, too.
    - The request was sent again: a reply to the same history is no second call.

    ## Example
    ```
    reply of #1:      get_weather, id "call_0"
    #2                history: get_weather, id "call_0", and its result
    reply of #2:      get_time, id "call_0"
    ```

    ## Fix
    The server should make ids that are unique in the conversation. In the client, give calls ids of
    its own as they arrive, and use these in the history.

    ## References
    - https://github.com/open-webui/open-webui/issues/28305
    - https://github.com/NousResearch/hermes-agent/pull/88324
    - https://github.com/livekit/agents/issues/3329
    """

    code: ClassVar[str] = "T026"
    name: ClassVar[str] = "id-reused"
    severity: ClassVar[Severity] = Severity.WARNING

    def check(self, turn: Turn, settings: Settings) -> Iterator[Finding]:
        """See `TurnRule.check`."""
        del settings
        reused = sorted(turn.reused, key=lambda each: each.earlier is None)
        if not reused:
            return
        first = reused[0]
        new = called_in(Delivered(call=first.call, reply=turn.digest))
        more = f" (and {len(reused) - 1} more ids)" if len(reused) > 1 else ""
        if first.earlier is None:
            yield turn_finding(
                self,
                turn,
                TurnClaim(
                    message=f"{new} has the id of a call in the history, which no reply on the tape"
                    f" delivered{more}",
                    hint="give the calls in the history ids that no server makes",
                    blame=None,
                    confidence=Confidence.POSSIBLE,
                    severity=Severity.INFO,
                    evidence=first.call.id or "",
                ),
            )
            return
        old = called_in(first.earlier)
        yield turn_finding(
            self,
            turn,
            TurnClaim(
                message=f"{new} has the id of {old}{more}: a result under this id may be taken for"
                " that of the other call",
                hint="in the client, give calls ids of its own as they arrive",
                blame=Blame.UPSTREAM,
                confidence=Confidence.LIKELY,
                severity=self.severity,
                evidence=first.call.id or "",
                against=against(first.earlier, turn.digest),
                excluded=(
                    Excluded(
                        "the app made up the ids in its history",
                        f"the wire delivered the id in #{first.earlier.reply.exchange} and again in"
                        f" #{turn.digest.exchange}",
                    ),
                ),
            ),
        )
