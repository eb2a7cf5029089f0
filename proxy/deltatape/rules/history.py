"""Histories: messages that are changed, foreign, doubled or missing; dropped tools and prompts."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from deltatape.model.digest import Digest, HistoryMessage
from deltatape.model.finding import Blame, Confidence, Excluded, Severity
from deltatape.model.turn import Continuation, MisplacedMessage, TextDamage, Turn
from deltatape.printable import excerpt
from deltatape.rules._call_references import (
    against,
    against_reply,
    call_label,
    first_names,
    hands_over,
    names,
)
from deltatape.rules.context import Claim
from deltatape.rules.repeated import is_distinctive
from deltatape.rules.rule import turn_rule

_HINTS = {
    TextDamage.LOST: (
        "append every fragment, also one in the first event, in the last"
        " event, or in an event with other data"
    ),
    TextDamage.DOUBLED: (
        "append each fragment once and in one place only: either the"
        " deltas or the complete text that follows them"
    ),
    TextDamage.ORDER: (
        "append fragments in the order in which they arrive; do not handle them concurrently"
    ),
    TextDamage.ENCODING: "decode the response as UTF-8 with one incremental decoder for the whole"
    " stream",
    TextDamage.TRIMMED: "append fragments unchanged; if you trim, trim only the complete text",
}


@turn_rule("C012", "text-changed-by-app", Severity.ERROR)
def text_changed_by_app(turn: Turn) -> Iterator[Claim]:
    """Report a text that the application repeats differently from how it was delivered."""
    found = turn.continues
    if found is None or found.change is None or found.changed is None:
        return
    change, reply = found.change, found.changed
    confidence, excluded = change.confidence, change.excluded
    if confidence is Confidence.POSSIBLE and found.times > 1:
        confidence = Confidence.LIKELY
        because = f"{found.times} replies lost different words at the same place"
        excluded = (*excluded, Excluded("the app cut this text on purpose", because))
    if confidence is Confidence.PROVEN and len(found.replies) > 1:
        confidence = Confidence.LIKELY
    messages = turn.digest.history[found.start : found.end]
    yield Claim(
        message=f"the app repeats the text of #{reply.exchange} {change.clause}",
        hint=_HINTS[change.damage],
        blame=Blame.APP,
        confidence=confidence,
        evidence=next(each.content for each in messages if each.text),
        against=against_reply(reply),
        excluded=excluded,
    )


@turn_rule("C014", "foreign-message", Severity.ERROR)
def foreign_message(turn: Turn) -> Iterator[Claim]:
    """Report a reply or a tool result of another conversation in the history."""
    for foreign in turn.foreign:
        message = turn.digest.history[foreign.place]
        donor, sure = foreign.donor, _is_displaced(foreign, message)
        yield Claim(
            message=_foreign_claim(foreign),
            hint="keep the state of each conversation separate: no shared variable or client",
            blame=Blame.APP,
            confidence=Confidence.LIKELY if sure else Confidence.POSSIBLE,
            severity=None if sure else Severity.WARNING,
            evidence=message.content,
            excluded=(
                Excluded(
                    "agents that work together pass their answers on",
                    "both have the same instructions and tools, and no message of"
                    f" #{donor.exchange} is in this history",
                ),
                Excluded(
                    "the history was summarised",
                    "before this message, it is the history of a reply on the tape",
                ),
            )
            if sure
            else (),
            against=against_reply(donor),
        )


def _is_displaced(foreign: MisplacedMessage, message: HistoryMessage) -> bool:
    """Return whether the message shows that it is another's.

    It has an id of the other conversation, it stands in place of the conversation's own reply, or
    the other one has that in return. Two calls may have equal results, and an app may ask elsewhere
    for the reply that it shows here.
    """
    if foreign.exchanged:
        return True
    if foreign.own is not None:
        return foreign.call is None
    return foreign.call is not None or any(is_distinctive(each.id or "") for each in message.calls)


def _foreign_claim(foreign: MisplacedMessage) -> str:
    donor = foreign.donor
    if foreign.call is not None:
        call = call_label(foreign.call, donor)
        what = f"the result of {call}"
        instead = f", at a call of #{foreign.own.exchange}" if foreign.own else ""
    else:
        what = f"the reply of #{donor.exchange}"
        instead = f" instead of the reply of #{foreign.own.exchange}" if foreign.own else ""
    other = f"; that conversation has the reply of #{foreign.own.exchange}" if foreign.own else ""
    return (
        f"the request contains {what} from another"
        f" conversation{instead}{other if foreign.exchanged else ''}"
    )


_USER = "user"
_WORDS = 3
_CHARACTERS = 12
"""Users do send shorter messages twice: `ok`, `yes`, `continue`."""
_LOOKED_AT = 100
"""How many messages of a history are checked once one appears twice."""
_NOTE = re.compile(r"error|invalid|failed|again|retry|did not|must ", re.IGNORECASE)
"""User messages that a library writes when it asks the model to correct its answer."""
_NO_CHANCE = 2
"""If this many different messages all appear twice, no user typed them."""


@turn_rule("C019", "user-message-repeated", Severity.WARNING)
def user_message_repeated(turn: Turn) -> Iterator[Claim]:
    """Report a user message that appears twice in a history."""
    history, news = turn.digest.history, turn.news
    for place in range(max(news, 1), len(history)):
        if not _is_specific(history[place]):
            continue
        if _is_same_message(history[place - 1], history[place]):
            yield from _doubled_claims(turn, place)
            return
        if place == len(history) - 1 and _repeats_answered_question(history, place, news):
            yield _repeated_message(
                turn,
                place,
                "the user's message appears again after its answer, and no new one follows",
                None,
            )


def _doubled_claims(turn: Turn, place: int) -> Iterator[Claim]:
    history = turn.digest.history
    first = place - 1 < turn.news
    found = turn.continues
    if first and (found is None or not any(each.whole for each in found.replies)):
        return  # a retry: the first answer never came
    doubled = _all_doubled(history)
    message = "the user's message appears twice in a row"
    if doubled >= _NO_CHANCE:
        because = f"each of the user's last {doubled} messages appears twice in a row"
        excluded = Excluded("the user sent the message twice", because)
        yield _repeated_message(
            turn, place, f"{message}, as each of {doubled} does", Blame.APP, excluded
        )
    else:
        yield _repeated_message(turn, place, message, None if first else Blame.APP)


def _repeated_message(
    turn: Turn, place: int, what: str, blame: Blame | None, *excluded: Excluded
) -> Claim:
    text = turn.digest.history[place].content
    fact = blame is None
    unsure = Confidence.PROVEN if fact else Confidence.POSSIBLE
    return Claim(
        message=f"{what}: {excerpt(text, 80)!r}",
        hint="append the user's message in one place only",
        blame=blame,
        confidence=Confidence.LIKELY if excluded else unsure,
        severity=Severity.INFO if fact else None,
        evidence=text,
        excluded=excluded,
    )


def _is_specific(message: HistoryMessage) -> bool:
    """Return whether it is a user message too specific to be sent twice on purpose."""
    text = message.content.strip()
    if message.role != _USER or message.call_id is not None or len(text) < _CHARACTERS:
        return False
    if _NOTE.search(text):
        return False
    return len(text.split()) >= _WORDS or not text.isascii()


def _is_same_message(one: HistoryMessage, other: HistoryMessage) -> bool:
    same = one.role == other.role and one.text == other.text and bool(one.text)
    return same and one.call_id is None and one.content == other.content


def _repeats_answered_question(history: Sequence[HistoryMessage], place: int, news: int) -> bool:
    """Return whether the message is the user's last one before, which was answered in text."""
    if place - 2 < 0 or place - 1 < news:
        return False
    answer, before = history[place - 1], history[place - 2]
    return bool(answer.text) and not answer.calls and _is_same_message(before, history[place])


def _all_doubled(history: Sequence[HistoryMessage]) -> int:
    """Return how many of the user's last messages are doubled; 0 if a long one is not.

    Messages that differ in anything but their text do not count: they may have different pictures.
    """
    users = [each for each in history[-_LOOKED_AT:] if _is_specific(each)]
    found: set[str] = {
        one.text
        for one, other in pairwise(users)
        if one.text == other.text and one.digest == other.digest
    }
    alone = [each for each in users if each.text not in found]
    return 0 if alone else len(found)


_STEPS = 2
"""One answer may have been interrupted."""


@turn_rule("C020", "answers-not-kept", Severity.WARNING)
def answers_not_kept(turn: Turn) -> Iterator[Claim]:
    """Report histories that keep the user's messages but not the assistant's answers."""
    found = turn.continues
    if found is None or found.unkept != _STEPS:
        return
    reply = found.reply
    yield Claim(
        message=(
            f"the request has {len(turn.digest.history)} user messages but no answer:"
            f" the answer of #{reply.exchange} and the one before it were delivered"
            " completely"
        ),
        hint="append each answer to the history as an assistant message",
        blame=Blame.APP,
        confidence=Confidence.POSSIBLE,
        evidence=turn.digest.history[-1].content,
        against=against_reply(reply),
    )


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
    """Report a conversation that continues without its system prompt."""
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
            f" but offers only {first_names(digest.tools)}{more}"
        ),
        hint="keep sending all tools; use tool_choice to forbid calls",
        blame=Blame.APP,
        confidence=Confidence.LIKELY if refused else Confidence.POSSIBLE,
        severity=Severity.ERROR if refused else severity,
        evidence=digest.error or "",
        against=against(gone[0], reply),
    )


def _is_another_agent(reply: Digest, digest: Digest) -> bool:
    """Return whether another agent continues, or the app searches for tools."""
    if set(reply.tools).isdisjoint(digest.tools) and reply.system != digest.system:
        return True
    if any(_SEARCH in each and "tool" in each for each in (*reply.tools, *digest.tools)):
        return True
    return hands_over(reply)
