"""C013: reasoning that had to come back with its calls, and did not."""

import base64
import re
from collections.abc import Iterator, Sequence
from typing import ClassVar, NamedTuple

from deltatape.model.digest import Digest, Heard, ReadBack
from deltatape.model.finding import Blame, Confidence, Excluded, Finding, Severity
from deltatape.model.thought import Thought
from deltatape.rules._conversation import AppClaim, app_finding
from deltatape.rules.words import count

_ASSISTANT = frozenset({"assistant", "model"})
_REFERENCE = "item_reference"
_BAD_REQUEST = 400
_WORDS = ("thinking", "thought", "signature", "reasoning")
"""One of them stands in each refusal of a request that lacks its reasoning."""
_OPTIONAL = ("gemini-1", "gemini-2")
"""Models that take calls without the signatures that they sent."""
_NUMBERED = re.compile(r"gemini-\d")
"""Of other names of Gemini's, such as `gemini-flash-latest`, nobody can tell the version."""
_PLACEHOLDERS = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
"""What Google documents as a signature for calls that have none."""


class ReasoningLostByApp:
    """A request repeats the calls of a reply without the reasoning that belongs to them.

    ## What it does
    Compares the signed reasoning of a reply with tool calls with the request that brings their
    results: Anthropic's `thinking` and `redacted_thinking` blocks (also in Bedrock's Converse),
    `reasoning` items of the Responses API, and the `thoughtSignature` of Gemini's calls. Reports
    what is missing, has lost its signature, or was changed. An error only if the provider refused
    the request for it.

    ## Why is this bad
    Providers keep no reasoning between requests. They check that it comes back unchanged as long
    as tools are in use, and reject the next request with status 400. Where they do not, the model
    has to think anew, and calls the same tool again.

    ## Innocent explanations
    - Thinking was turned off since, or another model takes over: not told.
    - It is an older turn, whose reasoning providers strip themselves: only the turn whose results
      the request ends with is looked at.
    - The history was summarised, so that the calls are gone, too: not told.
    - The provider keeps the history (`previous_response_id`, `item_reference`), or the app told it
      to keep nothing and has no encrypted reasoning to send: not told.
    - `reasoning_content` of Chat Completions need not be sent back: not looked at.
    - The calls carry a documented placeholder, or the model is a Gemini before version 3: not told;
      possible only where its name does not tell the version.
    - Where the model decides whether to think (`adaptive`), blocks may be left out: possible only.
    - The Responses API takes calls without their reasoning, only less well: possible only, unless
      it refused the request.

    ## Example
    ```
    reply of #1:  thinking, signature "EqQB...", and the call get_weather
    #2 history:   the call get_weather and its result, no thinking
    HTTP 400: Expected `thinking` or `redacted_thinking`, but found `tool_use`
    ```

    ## Fix
    Keep the assistant's turn as it came, thinking blocks, reasoning items and signatures included,
    and send all of it back in front of the results.

    ## References
    - https://docs.claude.com/en/docs/build-with-claude/extended-thinking#preserving-thinking-blocks
    - https://platform.openai.com/docs/guides/reasoning#keeping-reasoning-items-in-context
    - https://ai.google.dev/gemini-api/docs/thought-signatures
    - https://github.com/Yeachan-Heo/gajae-code/issues/4247
    - https://github.com/alibaba/open-code-review/issues/812
    - https://github.com/nanbingxyz/5ire/issues/405
    """

    code: ClassVar[str] = "C013"
    name: ClassVar[str] = "reasoning-lost-by-app"
    severity: ClassVar[Severity] = Severity.WARNING

    def check(self, read_back: ReadBack) -> Iterator[Finding]:
        """See `ConversationRule.check`."""
        reply, later = read_back.reply, read_back.later
        if not reply.thoughts or not _must_return(reply, later):
            return
        turn = _turn(read_back)
        loss = _loss(reply, later, [each for message in turn for each in message.thoughts])
        if not turn or loss is None:
            return
        refused = _is_refused(later)
        # Gateways and the compatible endpoint put `models/` or `google/` in front.
        model = (reply.model or "").rpartition("/")[2]
        if model.startswith(_OPTIONAL) and not refused:
            return
        told = "it was refused (400)" if refused else "providers reject such a request (400)"
        confidence = Confidence.PROVEN if refused else loss.confidence
        yield app_finding(
            self,
            read_back,
            AppClaim(
                message=f"{loss.how}: {told}",
                hint="send the assistant's turn back as it came, reasoning and signatures included",
                evidence=later.error or "" if refused else loss.evidence,
                severity=Severity.ERROR if refused else self.severity,
                said=reply.calls[0],
                heard=read_back.heard[0],
                confidence=max(confidence, read_back.confidence, key=lambda each: each.rank),
                blame=Blame.APP,
                excluded=tuple(_excluded(later)),
            ),
        )


class _Loss(NamedTuple):
    """What became of the reasoning of a reply."""

    how: str
    confidence: Confidence
    evidence: str = ""


def _must_return(reply: Digest, later: Digest) -> bool:
    """Whether the request has to bring the reasoning of the reply: a tool is in use, and thinking.

    What the recorder lost is nobody's fault.
    """
    if later.previous is not None or later.dialect != reply.dialect or later.model != reply.model:
        return False
    if later.thinking is False or (reply.thinking and later.thinking is None):
        return False
    if reply.lossy or not reply.whole or not later.results:
        return False
    return all(message.role != _REFERENCE for message in later.history)


def _turn(read_back: ReadBack) -> Sequence[Heard]:
    """The assistant's messages that repeat the reply, if they are the last of the history."""
    history, calls = read_back.later.history, read_back.heard
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
    """What is missing or other than it was; None if nothing is."""
    here = {_bare(each.signature) for each in thoughts}
    if here & _BARE_PLACEHOLDERS:
        return None
    signed = [each for each in reply.thoughts if each.signature]
    if not signed:
        return _unsigned_loss(reply, later, thoughts)
    missing = [each for each in signed if _bare(each.signature) not in here]
    if not missing:
        return _text_loss(reply, thoughts)
    delivered = {_bare(each.signature) for each in signed}
    strange = [
        each for each in thoughts if each.signature and _bare(each.signature) not in delivered
    ]
    if strange:
        return _changed(reply, missing[0].signature, strange[0].signature)
    of = f"{len(missing)} of {count(len(signed), 'signature')}"
    unsigned = any(not each.signature for each in thoughts)
    how = (
        f"the reasoning of #{reply.exchange} comes back without {of}"
        if unsigned
        else f"the calls of #{reply.exchange} come back without their reasoning ({of} missing)"
    )
    # Responses take calls without reasoning, only less well; so does Claude without thinking.
    optional = (
        later.dialect == "openai-responses"
        or (reply.signed_text is not None and later.thinking is None)
        or (later.dialect == "gemini" and not _NUMBERED.match(later.model or ""))
    )
    return _Loss(how, Confidence.POSSIBLE if optional else Confidence.LIKELY)


def _unsigned_loss(reply: Digest, later: Digest, thoughts: Sequence[Thought]) -> _Loss | None:
    """Items that have nothing but an id, by which the provider knows them if it kept them."""
    here = {each.id for each in thoughts}
    missing = [each.id for each in reply.thoughts if each.id not in here]
    if not missing or later.store is False:
        return None
    how = f"the calls of #{reply.exchange} come back without their reasoning item {missing[0]!r}"
    return _Loss(how, Confidence.POSSIBLE)


def _changed(reply: Digest, was: str, found: str) -> _Loss:
    cut = was.startswith(found) or was.endswith(found)
    how = "cut" if cut else "doubled" if found == 2 * was else "changed"
    sure = Confidence.LIKELY if how == "changed" else Confidence.PROVEN
    told = f"a signature of the reasoning of #{reply.exchange} comes back {how}"
    return _Loss(told, sure, found)


def _text_loss(reply: Digest, thoughts: Sequence[Thought]) -> _Loss | None:
    """The text that the signatures vouch for; blanks at its ends do not count."""
    if reply.signed_text is None:
        return None
    was, found = reply.signed_text, "".join(each.text for each in thoughts)
    if "".join(was.split()) == "".join(found.split()):
        return None
    cut = bool(found) and (was.startswith(found) or was.endswith(found))
    how = "cut" if cut else "changed" if found else "empty"
    sure = Confidence.PROVEN if cut else Confidence.LIKELY
    told = f"the text of the reasoning of #{reply.exchange} comes back {how} under its signature"
    return _Loss(told, sure, found)


def _bare(signature: str) -> str:
    """A signature without what encoders of Base64 write differently."""
    return signature.rstrip("=").replace("-", "+").replace("_", "/")


_BARE_PLACEHOLDERS = frozenset(
    _bare(each)
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
