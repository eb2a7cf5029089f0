"""Reasoning that has to be returned with its calls, and was not."""

import base64
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from deltatape.model.digest import Digest, HistoryMessage, ReadBack
from deltatape.model.finding import Blame, Confidence, Excluded, Severity, weaker
from deltatape.model.reply import Thought
from deltatape.printable import count
from deltatape.rules._call_references import RequestSpans, against
from deltatape.rules.context import Claim
from deltatape.rules.rule import read_back_rule

_ASSISTANT = frozenset({"assistant", "model"})
_REFERENCE = "item_reference"
_BAD_REQUEST = 400
_WORDS = ("thinking", "thought", "signature", "reasoning")
"""A rejection of a request that lacks its reasoning has one of these."""
_OPTIONAL = ("gemini-1", "gemini-2")
"""Models that take calls without the signatures that they sent."""
_NUMBERED = re.compile(r"gemini-\d")
"""Gemini's models with a version; other names, such as `gemini-flash-latest`, hide it."""
_PLACEHOLDERS = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
"""The signatures that Google documents for calls without one."""


@read_back_rule("C013", "reasoning-lost-by-app", Severity.WARNING)
def reasoning_lost_by_app(read_back: ReadBack) -> Iterator[Claim]:
    """Report reasoning that has to be returned with its calls, and was not."""
    reply, later = read_back.reply, read_back.later
    if not reply.thoughts or not _must_return(reply, later):
        return
    turn = _repeating_messages(read_back)
    loss = _loss(reply, later, [each for message in turn for each in message.thoughts])
    if not turn or loss is None:
        return
    refused = _is_refused(later)
    # Gateways and the compatible endpoint put `models/` or `google/` in front.
    model = (reply.model or "").rpartition("/")[2]
    if model.startswith(_OPTIONAL) and not refused:
        return
    rejected = (
        "the provider rejected it (400)" if refused else "providers reject such a request (400)"
    )
    confidence = Confidence.PROVEN if refused else loss.confidence
    yield Claim(
        message=f"{loss.how}; {rejected}",
        hint="send the assistant's turn back unchanged, with reasoning and signatures",
        evidence=later.error or "" if refused else loss.evidence,
        severity=Severity.ERROR if refused else None,
        against=against(reply.calls[0], reply, RequestSpans(later).of(read_back.repeated_calls[0])),
        confidence=weaker(confidence, read_back.confidence),
        blame=Blame.APP,
        excluded=tuple(_excluded(later)),
    )


class _Loss(NamedTuple):
    """The reasoning of a reply that was not returned."""

    how: str
    confidence: Confidence
    evidence: str = ""


def _must_return(reply: Digest, later: Digest) -> bool:
    """Return whether the reply's reasoning must be returned: it thought and called a tool.

    False if the recorder lost a part of it.
    """
    if later.previous is not None or later.dialect != reply.dialect or later.model != reply.model:
        return False
    if later.thinking is False or (reply.thinking and later.thinking is None):
        return False
    if reply.lossy or not reply.whole or not later.results:
        return False
    return all(message.role != _REFERENCE for message in later.history)


def _repeating_messages(read_back: ReadBack) -> Sequence[HistoryMessage]:
    """Return the assistant's messages at the end of the history that repeat the reply."""
    history, calls = read_back.later.history, read_back.repeated_calls
    end = len(history)
    while end and history[end - 1].role not in _ASSISTANT:
        end -= 1
    start = end
    while start and history[start - 1].role in _ASSISTANT:
        start -= 1
    turn = history[start:end]
    repeated = [call for message in turn for call in message.calls]
    return turn if any(each is call for each in repeated for call in calls) else ()


def _loss(reply: Digest, later: Digest, thoughts: Sequence[Thought]) -> _Loss | None:
    """Return what is missing or changed; None if nothing is."""
    here = {_normal_signature(each.signature) for each in thoughts}
    if here & _BARE_PLACEHOLDERS:
        return None
    signed = [each for each in reply.thoughts if each.signature]
    if not signed:
        return _unsigned_loss(reply, later, thoughts)
    missing = [each for each in signed if _normal_signature(each.signature) not in here]
    if not missing:
        return _text_loss(reply, thoughts)
    delivered = {_normal_signature(each.signature) for each in signed}
    strange = [
        each
        for each in thoughts
        if each.signature and _normal_signature(each.signature) not in delivered
    ]
    if strange:
        return _changed(reply, missing[0].signature, strange[0].signature)
    of = f"{len(missing)} of {count(len(signed), 'signature')}"
    unsigned = any(not each.signature for each in thoughts)
    how = (
        f"the next request repeats the reasoning of #{reply.exchange} without {of}"
        if unsigned
        else (
            f"the next request repeats the calls of #{reply.exchange} without their"
            f" reasoning ({of} missing)"
        )
    )
    # These accept calls without their reasoning, with worse answers: the Responses API, Claude when
    # thinking is off, old Gemini models.
    optional = (
        later.dialect == "openai-responses"
        or (reply.signed_text is not None and later.thinking is None)
        or (later.dialect == "gemini" and not _NUMBERED.match(later.model or ""))
    )
    return _Loss(how, Confidence.POSSIBLE if optional else Confidence.LIKELY)


def _unsigned_loss(reply: Digest, later: Digest, thoughts: Sequence[Thought]) -> _Loss | None:
    """Return a loss of items with nothing but an id, by which the provider may know them."""
    here = {each.id for each in thoughts}
    missing = [each.id for each in reply.thoughts if each.id not in here]
    if not missing or later.store is False:
        return None
    how = (
        f"the next request repeats the calls of #{reply.exchange} without their reasoning"
        f" item {missing[0]!r}"
    )
    return _Loss(how, Confidence.POSSIBLE)


def _changed(reply: Digest, was: str, found: str) -> _Loss:
    cut = was.startswith(found) or was.endswith(found)
    how = "cut" if cut else "doubled" if found == 2 * was else "changed"
    sure = Confidence.LIKELY if how == "changed" else Confidence.PROVEN
    message = f"the next request repeats a signature of the reasoning of #{reply.exchange} {how}"
    return _Loss(message, sure, found)


def _text_loss(reply: Digest, thoughts: Sequence[Thought]) -> _Loss | None:
    """Describe the loss of text that the signatures protect; blanks at its ends do not count."""
    if reply.signed_text is None:
        return None
    was, found = reply.signed_text, "".join(each.text for each in thoughts)
    if "".join(was.split()) == "".join(found.split()):
        return None
    cut = bool(found) and (was.startswith(found) or was.endswith(found))
    how = "cut" if cut else "changed" if found else "empty"
    sure = Confidence.PROVEN if cut else Confidence.LIKELY
    message = (
        f"the next request repeats the text of the reasoning of #{reply.exchange} {how},"
        " with its signature"
    )
    return _Loss(message, sure, found)


def _normal_signature(signature: str) -> str:
    """Normalise a signature, so that variants of Base64 compare equal."""
    return signature.rstrip("=").replace("-", "+").replace("_", "/")


_BARE_PLACEHOLDERS = frozenset(
    _normal_signature(each)
    for text in _PLACEHOLDERS
    for each in (text, base64.b64encode(text.encode()).decode())
)


def _is_refused(later: Digest) -> bool:
    error = (later.error or "").lower()
    return later.status == _BAD_REQUEST and any(word in error for word in _WORDS)


def _excluded(later: Digest) -> Iterator[Excluded]:
    yield Excluded(
        "it is an older turn, which needs no reasoning",
        "the request ends with the results of its calls",
    )
    if later.thinking:
        yield Excluded("thinking was turned off", "the request turns it on")
    model = later.model or "the same"
    yield Excluded("another model takes over", f"both requests ask for {model}")
