"""Reading back where the provider keeps the history: only the results of calls come back.

A request names the stored reply, or the conversation, that it goes on from. Nothing shows what the
application made of names and arguments; but which calls it knew shows in the results it brings, and
under which ids it knew them.
"""

from deltatape.model.asked import RepeatedCall
from deltatape.model.digest import Digest, Pair, ReadBack, SaidCall
from deltatape.model.finding import Confidence
from deltatape.rules.repeated import is_derived


def read_stored(reply: Digest, later: Digest) -> ReadBack | None:
    """What the results in `later` show of the calls of `reply`, which it goes on from.

    Returns:
        None where it brings no result: then the user may have interrupted. A call without one is
        lost, if the request goes on from this very reply; results of a conversation may have been
        stored otherwise.
    """
    answered = tuple(message.call_id for message in later.history if message.call_id)
    left, pairs = list(answered), []
    lost: list[SaidCall] = []
    for call in reply.calls:
        found = next((each for each in left if each in call.answers_to), None)
        if found is None:
            lost.append(call)
        else:
            left.remove(found)
            pairs.append(Pair(said=call, heard=_known_as(call, found)))
    for call in tuple(lost):
        found = next((each for each in left if is_derived(call, _known_as(call, each))), None)
        if found is not None:
            left.remove(found)
            lost.remove(call)
            pairs.append(Pair(said=call, heard=_known_as(call, found)))
    if not pairs:
        return None
    exact = reply.reply_id is not None and reply.reply_id == later.previous
    return ReadBack(
        reply=reply,
        later=later,
        confidence=Confidence.PROVEN if exact else Confidence.LIKELY,
        pairs=tuple(pairs),
        lost=tuple(lost) if exact else (),
        extra=(),
        answered=answered,
        heard=tuple(pair.heard for pair in pairs),
    )


def _known_as(call: SaidCall, call_id: str) -> RepeatedCall:
    """The call as far as its result shows it; the rest is as it was delivered."""
    return RepeatedCall(id=call_id, name=call.name, arguments=call.arguments)
