"""Tools and system prompts that a later request lacks."""

from collections.abc import Iterator

from deltatape.model.digest import Digest
from deltatape.model.finding import Blame, Confidence, Excluded, Severity
from deltatape.model.turn import Continuation, DeliveredCallRef, Turn
from deltatape.printable import excerpt
from deltatape.rules._call_references import against, hands_over, names
from deltatape.rules.context import Claim
from deltatape.rules.rule import turn_rule


@turn_rule("C011", "tools-removed-from-history", Severity.INFO)
def tools_removed_from_history(turn: Turn) -> Iterator[Claim]:
    """Report calls in a history whose request offers no tools any more."""
    if not turn.lacks_tools:
        return
    digest = turn.digest
    about_tools = digest.refused and "tool" in (digest.error or "").lower()
    refused = f"; the provider rejected it ({digest.status})" if about_tools else ""
    yield Claim(
        message=(
            "the history has tool calls or results, but the request offers no tools"
            f" (#{turn.offered} did){refused}"
        ),
        hint="keep sending the tools; use tool_choice none to forbid calls",
        blame=Blame.APP,
        confidence=Confidence.LIKELY if about_tools else Confidence.POSSIBLE,
        severity=Severity.ERROR if about_tools else None,
        evidence=excerpt(digest.error or ""),
    )


@turn_rule("C021", "system-prompt-lost", Severity.WARNING)
def system_prompt_lost(turn: Turn) -> Iterator[Claim]:
    """Report a conversation that goes on without its system prompt."""
    found, digest = turn.continues, turn.digest
    if found is None and turn.shortened is not None:
        yield from _of_shortened(turn, turn.shortened)
    if found is None or digest.instructed or not all(each.instructed for each in found.replies):
        return
    reply = found.reply
    if not reply.instructions if found.stored else found.start == found.end:
        return
    excluded = tuple(_same_agent_and_job(found, digest, reply))
    back = f", and #{found.followed} has it again" if found.restored else ""
    kept = (
        "; the provider does not carry instructions over from a stored response"
        if found.stored
        else ""
    )
    yield Claim(
        message=(
            f"the request continues #{reply.exchange}, but without its system prompt{back}{kept}"
        ),
        hint="send the system prompt with each request",
        blame=Blame.APP,
        confidence=Confidence.LIKELY if excluded else Confidence.POSSIBLE,
        evidence=digest.history[-1].content,
        excluded=excluded,
    )


def _of_shortened(turn: Turn, reply: Digest) -> Iterator[Claim]:
    """Exclude a shortened history, which loses its first messages and the system prompt."""
    digest = turn.digest
    same = digest.tools == reply.tools and digest.model == reply.model
    if digest.instructed or not reply.instructed or not same or hands_over(reply):
        return
    yield Claim(
        message=(
            f"the request continues #{reply.exchange} with a shortened history, and"
            " without its system prompt"
        ),
        hint="when you shorten a history, keep the system prompt",
        blame=Blame.APP,
        confidence=Confidence.POSSIBLE,
        evidence=digest.history[-1].content,
    )


def _same_agent_and_job(found: Continuation, digest: Digest, reply: Digest) -> Iterator[Excluded]:
    """Exclude another agent and another job; yield nothing unless both are excluded."""
    if found.stored or digest.tools != reply.tools or digest.model != reply.model:
        return
    if hands_over(reply):
        return
    same = (
        f"model and tools are those of #{reply.exchange}, and no call hands the conversation over"
    )
    if found.followed is not None:
        yield Excluded("another agent took over", same)
        yield Excluded("it is a different task", f"#{found.followed} continues from its answer")
    elif digest.tools and digest.results:
        yield Excluded("another agent took over", same)
        yield Excluded("it is a different task", "it adds only the results of the calls")


_SEARCH = "search"


@turn_rule("C022", "called-tool-withdrawn", Severity.WARNING)
def called_tool_withdrawn(turn: Turn) -> Iterator[Claim]:
    """Report a request with a tool's result that no longer offers the tool."""
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
    more = f"; the provider rejected it ({digest.status})" if refused else ""
    if wanted:
        more += "; the model calls it again anyway"
    listed = names(*sorted({call.name or "" for call in gone}))
    kept = not set(reply.tools).isdisjoint(digest.tools) and reply.system == digest.system
    severity = None if wanted or kept else Severity.INFO
    yield Claim(
        message=(
            f"the request has a result of {listed}, which #{reply.exchange} offered,"
            f" but offers only {_offered(digest)}{more}"
        ),
        hint="keep sending all tools; use tool_choice to forbid calls",
        blame=Blame.APP,
        confidence=Confidence.LIKELY if refused else Confidence.POSSIBLE,
        severity=Severity.ERROR if refused else severity,
        evidence=digest.error or "",
        against=against(DeliveredCallRef(call=gone[0], reply=reply), digest),
    )


def _is_another_agent(reply: Digest, digest: Digest) -> bool:
    """Return whether another agent goes on, or the app searches for tools."""
    if set(reply.tools).isdisjoint(digest.tools) and reply.system != digest.system:
        return True
    if any(_SEARCH in each and "tool" in each for each in (*reply.tools, *digest.tools)):
        return True
    return hands_over(reply)


def _offered(digest: Digest) -> str:
    more = f" and {len(digest.tools) - 3} more" if len(digest.tools) > 3 else ""  # noqa: PLR2004
    return excerpt(names(*digest.tools[:3]), 100) + more
