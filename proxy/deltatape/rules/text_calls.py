"""Tool calls in the text of an answer, where no client runs them."""

import re
from collections.abc import Iterator, Sequence

from deltatape.model.finding import Blame, Confidence, Severity
from deltatape.model.reply import Channel, Choice, TextCall, ToolCall
from deltatape.model.request_summary import Message, RequestSummary
from deltatape.rules.context import Claim, RuleContext, about_call, label
from deltatape.rules.finish import FinishMeaning, finish_of
from deltatape.rules.rule import Subject, exchange_rule
from deltatape.wire.json_value import canonical, parse

_GENERIC = "tool"
_TAG = re.compile(r"[^\s{>\]]{0,60}+[>\]]?")
_SHORTEST_TAG = 5
_SPECIAL = re.compile(r"<[^<>\s]{1,60}>|\[[A-Z_/]{1,40}\]")
"""White space and separators that models write between and after their calls."""
_USER = "user"
_ABOUT_CALLS = re.compile(
    r"\b(?:tool|function|raw|your) calls?\b|\b(?:not|don't) call\b|\byou call\b|\bcall syntax\b",
    re.IGNORECASE,
)
_OWN = frozenset({"assistant", "model", "tool"})
"""Roles of what the model wrote itself, or tools gave it."""


def is_asked_for(request: RequestSummary, written: TextCall) -> bool:
    """Return whether such calls are the application's own protocol.

    So it is if the request declares no tools, and the notation is the generic one or its opening
    tag is in the messages: the prompt asks for it.
    """
    if request.tools:
        return False
    return written.family == _GENERIC or _is_mentioned(request.history, written)


def is_in_prompt(request: RequestSummary, written: TextCall) -> bool:
    """Return whether the request's text for the model contains the opening tag of such a call."""
    prompts = [message for message in request.history if message.role not in _OWN]
    return _is_mentioned(prompts, written)


def _is_question(request: RequestSummary) -> bool:
    """Return whether the user's last message speaks of calls, to see one perhaps."""
    asked = next((each for each in reversed(request.history) if each.role == _USER), None)
    return asked is not None and _ABOUT_CALLS.search(asked.text) is not None


def _is_mentioned(messages: Sequence[Message], written: TextCall) -> bool:
    """Return whether one of `messages` contains the opening tag of such a call."""
    tag = _TAG.match(written.call.arguments_raw)
    opening = tag[0] if tag else ""
    return len(opening) >= _SHORTEST_TAG and any(opening in message.text for message in messages)


def last_followed(choice: Choice) -> int:
    """Return the end of the last call that more text follows; -1 if there is none.

    Only words count, not other calls and special tokens: a model that calls ends its turn with its
    calls.
    """
    after = len(choice.text)
    for written in reversed(choice.text_calls):
        if written.channel is Channel.TEXT:
            if _has_words(choice.text[written.end : after]):
                return written.end
            after = written.start
    return -1


def _has_words(text: str) -> bool:
    return re.search(r"\w", _SPECIAL.sub("", text)) is not None


def in_answer(context: RuleContext) -> Iterator[TextCall]:
    """Yield the closed calls in the text of the answer, which an application would parse."""
    for choice in context.reply.choices:
        for written in choice.text_calls:
            if written.closed and written.channel is Channel.TEXT:
                yield written


def name_and_arguments(call: ToolCall) -> tuple[str | None, str]:
    """Return what a call in text has in common with a tool call that repeats it.

    Arguments are normalised; missing ones count as an empty object.
    """
    return call.name, canonical(call.arguments or "{}") or call.arguments


def where(written: TextCall) -> str:
    """Name the call in a message: `call 0 (get_weather) in the text (hermes)`."""
    channel = "reasoning" if written.channel is Channel.REASONING else "text"
    return f"{label(written.call)} in the {channel} ({written.family})"


@exchange_rule("T018", "tool-call-in-text", Severity.ERROR, at_end=True, about=Subject.CALLS)
def tool_call_in_text(context: RuleContext) -> Iterator[Claim]:
    """Report a tool call in the text, where no client runs it."""
    for choice in context.reply.choices:
        if not choice.text_calls:
            continue
        structured = {name_and_arguments(call) for call in choice.tool_calls}
        followed = last_followed(choice)
        for written in choice.text_calls:
            if written.closed and not is_asked_for(context.request, written):
                sent = name_and_arguments(written.call) in structured
                claim = _closed(context, written, sent=sent, followed=written.end <= followed)
                yield about_call(context, written.call, claim)


def _closed(context: RuleContext, written: TextCall, *, sent: bool, followed: bool) -> Claim:
    """Judge a closed call.

    Args:
        context: the exchange.
        written: the call.
        sent: whether the reply has it as a tool call, too.
        followed: whether the text goes on after it.
    """
    if written.channel is Channel.REASONING:
        return Claim(
            message=f"{where(written)}: the model is only thinking about a call",
            hint="do not execute it",
            blame=None,
            confidence=Confidence.POSSIBLE,
            severity=Severity.INFO,
        )
    if sent:
        return Claim(
            message=f"{where(written)} was also sent as a tool call",
            hint="run the call once; do not show the markup",
            blame=Blame.UPSTREAM,
            confidence=Confidence.LIKELY,
            severity=Severity.WARNING,
        )
    if context.request.tool(written.call.name) is None:
        none = "although the request offers no tools"
        known = "is none of the request's tools" if context.request.tools else f"came {none}"
        return Claim(
            message=f"{where(written)} {known}; the reply has no such tool call",
            hint="offer the tools in the request, or find the prompt that asks for such calls",
            blame=Blame.MODEL if context.request.tools else None,
            confidence=Confidence.POSSIBLE,
            severity=Severity.WARNING,
        )
    if followed or is_in_prompt(context.request, written) or _is_question(context.request):
        return Claim(
            message=(
                f"{where(written)} names an offered tool, but may only be an example:"
                " more text follows it, or the request mentions the notation or such calls"
            ),
            hint=(
                "nothing to do if the answer explains calls; otherwise configure the"
                " server's tool parser"
            ),
            blame=None,
            confidence=Confidence.POSSIBLE,
            severity=Severity.INFO,
        )
    return Claim(
        message=(
            f"{where(written)} names an offered tool, and the reply has no such tool"
            " call: the server's tool parser missed it"
        ),
        hint=(
            "configure the server's tool parser for this notation, and use the model's"
            " chat template"
        ),
        blame=Blame.UPSTREAM,
        confidence=Confidence.LIKELY,
    )


@exchange_rule(
    "T019",
    "unclosed-text-tool-call",
    Severity.ERROR,
    at_end=True,
    about_missing=True,
    about=Subject.CALLS,
)
def unclosed_text_tool_call(context: RuleContext) -> Iterator[Claim]:
    """Report a tool call in the text that is not closed."""
    for choice in context.reply.choices:
        for written in choice.text_calls:
            if not written.closed:
                claim = _unclosed(context, choice, written)
                yield about_call(context, written.call, claim)


def _unclosed(context: RuleContext, choice: Choice, written: TextCall) -> Claim:
    call = written.call
    whole = call.name is not None and parse(call.arguments).error is None
    missing = (
        "its arguments are complete, but the closing tag is missing" if whole else "it is cut off"
    )
    why, blame, confidence = _what_ended(context, choice)
    severity = Severity.WARNING if whole else Severity.ERROR
    if written.channel is Channel.REASONING:
        severity = Severity.INFO
    if context.request.tools and is_in_prompt(context.request, written):
        severity, blame = Severity.INFO, None
        why = f"{why}; the request mentions the notation, so this may only be an example"
    return Claim(
        message=f"{where(written)} is not closed: {missing}; {why}",
        hint="do not run it; when the stream ends, treat an open call as an error",
        blame=blame,
        confidence=confidence,
        severity=severity,
    )


def _what_ended(context: RuleContext, choice: Choice) -> tuple[str, Blame | None, Confidence]:
    """Return what ended the text, the side at fault, and how certain that is."""
    reason = choice.finish_reason_raw
    if finish_of(choice) in {FinishMeaning.LENGTH, FinishMeaning.FILTER}:
        return f"the provider cut the reply (finish reason {reason!r})", None, Confidence.PROVEN
    if reason is not None:
        return "the reply nevertheless ended normally", Blame.UPSTREAM, Confidence.LIKELY
    if context.exchange.cut:
        return "the connection broke", None, Confidence.LIKELY
    return "the stream ended without a finish reason", None, Confidence.LIKELY
