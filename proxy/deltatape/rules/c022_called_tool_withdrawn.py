"""C022: the request with a tool's result does not offer that tool any more."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.digest import Digest
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.model.turn import Delivered, Turn
from deltatape.rules._conversation import TurnClaim, against, hands_over, names, turn_finding
from deltatape.rules.evidence import excerpt
from deltatape.rules.settings import Settings

_SEARCH = "search"


class CalledToolWithdrawn:
    """The model called a tool, and the request that brings the result offers others, not that one.

    ## What it does
    Compares the tools of a request that brings results with those of the request whose reply made
    the calls. A warning where other tools are still there under the same system prompt, or the
    model calls the tool that is gone; else a remark, and an error if the provider refused the
    request for its tools. There are good reasons, so that it is no more than possible. Requests
    that offer no tools at all are told by C011.

    ## Why is this bad
    The model cannot correct a call that failed, nor call again for the rest. It may call the tool
    all the same, from what it sees in the history. Some providers refuse calls of tools that the
    request does not define, and a change of the tools costs the cache of the prompt.

    ## Innocent explanations
    - The conversation was handed to another agent, with tools and instructions of its own.
    - The tool may be called once only, or not at this stage of a workflow.
    - Tools are chosen anew for each request: a search for tools, deferred tools.
    - Only the tool for the final answer is left.

    ## Example
    ```
    #1    tools: get_weather, get_time         reply: get_weather {"city":"Gent"}
    #2    tools: get_time                      result of get_weather
    ```

    ## Fix
    Keep sending all tools, in the same order. To keep the model from calling one again, forbid
    calls (`tool_choice`), or name the allowed ones (`allowed_tools`).

    ## References
    - https://platform.openai.com/docs/guides/function-calling
    - https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching
    """

    code: ClassVar[str] = "C022"
    name: ClassVar[str] = "called-tool-withdrawn"
    severity: ClassVar[Severity] = Severity.WARNING

    def check(self, turn: Turn, settings: Settings) -> Iterator[Finding]:
        """See `TurnRule.check`."""
        del settings
        found, digest = turn.continues, turn.digest
        if found is None or not digest.tools or digest.tools_elsewhere:
            return
        reply = found.reply
        repeated = digest.history[found.start : found.end]
        named = {call.name for message in repeated for call in message.calls}
        gone = [
            call
            for call in reply.calls
            if call.name in reply.tools
            and call.name not in digest.tools
            and (found.stored or call.name in named)
            and not set(call.answers_to).isdisjoint(digest.results)
        ]
        if not gone or _is_another_agent(reply, digest):
            return
        wanted = {call.name for call in digest.calls} & {call.name for call in gone}
        refused = digest.refused and "tool" in (digest.error or "").lower()
        more = f"; it was refused ({digest.status})" if refused else ""
        if wanted:
            more += "; the model calls it again all the same"
        listed = names(*sorted({call.name or "" for call in gone}))
        kept = not set(reply.tools).isdisjoint(digest.tools) and reply.system == digest.system
        severity = self.severity if wanted or kept else Severity.INFO
        yield turn_finding(
            self,
            turn,
            TurnClaim(
                message=f"the request brings a result of {listed}, which #{reply.exchange} offered,"
                f" and offers only {_offered(digest)}{more}",
                hint="keep sending all tools; forbid calls with tool_choice",
                blame=Blame.APP,
                confidence=Confidence.LIKELY if refused else Confidence.POSSIBLE,
                severity=Severity.ERROR if refused else severity,
                evidence=digest.error or "",
                against=against(Delivered(call=gone[0], reply=reply), digest),
            ),
        )


def _is_another_agent(reply: Digest, digest: Digest) -> bool:
    """Whether another agent goes on, or tools are searched for."""
    if set(reply.tools).isdisjoint(digest.tools) and reply.system != digest.system:
        return True
    if any(_SEARCH in each and "tool" in each for each in (*reply.tools, *digest.tools)):
        return True
    return hands_over(reply)


def _offered(digest: Digest) -> str:
    more = f" and {len(digest.tools) - 3} more" if len(digest.tools) > 3 else ""  # noqa: PLR2004
    return excerpt(names(*digest.tools[:3]), 100) + more
