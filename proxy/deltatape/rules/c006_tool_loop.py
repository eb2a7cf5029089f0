"""C006: the same call again and again, or calls without end."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.digest import SaidCall
from deltatape.model.finding import Against, Confidence, Finding, Severity
from deltatape.model.turn import Again, Turn
from deltatape.rules._conversation import TurnClaim, names, turn_finding
from deltatape.rules.evidence import excerpt
from deltatape.rules.settings import Settings


class ToolLoop:
    """A conversation goes round in tool calls.

    ## What it does
    Counts, since the user last spoke, how often the model made the same call, the same tool with
    the same arguments, and how many replies in a row called tools without a word to the user. Tells
    it at 3 of the first and 10 of the second, and each time that the number has doubled. What the
    user says along with tool results is no new question.

    It is a fact, not yet a fault: a tool that is polled is called again, too.

    ## Why is this bad
    The user waits, and every turn costs the whole history once more. Some models go on as long as
    they are offered tools. If each result was brought without the call that it answers (C004), the
    model cannot know that it has called.

    ## Innocent explanations
    - A tool is polled until something is ready.
    - An agent works for a long time without a word to the user.

    ## Example
    ```
    reply of #1:      list_directory {"path":"."}
    reply of #2:      list_directory {"path": "."}
    reply of #3:      list_directory {"path":"."}
    ```

    ## Fix
    Limit the number of turns, and end with a request that offers no tools or forbids them
    (`tool_choice` `none`). Answer a repeated call with a note that its result is already there.

    ## References
    - https://platform.openai.com/docs/guides/function-calling
    - https://docs.langchain.com/oss/python/langgraph/errors/GRAPH_RECURSION_LIMIT
    - https://github.com/ollama/ollama/issues/8287
    """

    code: ClassVar[str] = "C006"
    name: ClassVar[str] = "tool-loop"
    severity: ClassVar[Severity] = Severity.INFO

    def check(self, turn: Turn, settings: Settings) -> Iterator[Finding]:
        """See `TurnRule.check`."""
        for again in turn.again:
            if _is_worth_telling(again.times, settings.loop_calls):
                yield self._finding(turn, _same(again), again.call, _first(turn, again))
        if _is_worth_telling(turn.silent_calls, settings.loop_turns):
            told = (
                f"{turn.silent_calls} replies in a row called tools and said nothing to the user;"
                f" this one calls {_all(turn)}"
            )
            yield self._finding(turn, told, turn.digest.calls[0], None)

    def _finding(self, turn: Turn, message: str, call: SaidCall, first: Against | None) -> Finding:
        return turn_finding(
            self,
            turn,
            TurnClaim(
                message=message,
                hint="limit the number of turns; make the last request without tools",
                blame=None,
                confidence=Confidence.PROVEN,
                severity=self.severity,
                evidence=call.arguments or "(no argument bytes)",
                against=first,
            ),
        )


def _is_worth_telling(times: int, limit: int) -> bool:
    """At the limit, and whenever that has doubled."""
    share, rest = divmod(times, limit)
    return rest == 0 and share > 0 and share & (share - 1) == 0


def _same(again: Again) -> str:
    call = again.call
    first = f" (first in #{again.first})" if again.first is not None else ""
    return (
        f"{excerpt(call.name or f'call {call.index}', 60)} is called with the same arguments"
        f" {again.times} times since the user last spoke{first}"
    )


def _first(turn: Turn, again: Again) -> Against | None:
    if again.first is None:
        return None
    return Against(
        tape=turn.digest.tape,
        exchange=again.first,
        line=None,
        span=None,
        asked=None,
        evidence="",
    )


def _all(turn: Turn) -> str:
    calls = turn.digest.calls
    more = f" and {len(calls) - 3} more" if len(calls) > 3 else ""  # noqa: PLR2004 - as below
    return (names(*(call.name for call in calls[:3])) or "a tool without a name") + more
