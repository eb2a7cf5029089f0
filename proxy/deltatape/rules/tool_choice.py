"""Calls that violate the request's tool choice."""

from collections.abc import Iterator

from deltatape.model.finding import Blame, Confidence, Excluded, Severity
from deltatape.model.reply import Choice
from deltatape.model.turn import Turn
from deltatape.printable import excerpt
from deltatape.rules._call_references import tools_of
from deltatape.rules.context import Claim, RuleContext, about_call, label
from deltatape.rules.endings import ended_well
from deltatape.rules.rule import (
    Subject,
    exchange_rule,
    turn_rule,
)

_NONE = "none"
_OPEN = frozenset({None, "auto", _NONE, "required", "any", "validated"})
"""Words that are not the name of a tool."""


@exchange_rule(
    "T024", "call-against-choice", Severity.ERROR, survives_loss=True, about=Subject.CALLS
)
def call_against_choice(context: RuleContext) -> Iterator[Claim]:
    """Report a call that the request forbids."""
    choice = context.request.tool_choice
    if choice != _NONE and (choice in _OPEN or context.request.tool(choice) is None):
        return
    for _, call in context.calls():
        if choice == _NONE or call.name not in (None, choice):
            yield about_call(context, call, _forbidden(label(call), choice or ""))


def _forbidden(call: str, choice: str) -> Claim:
    return Claim(
        message=f"{call} was made although the request's tool choice is {excerpt(choice, 60)!r}",
        hint=(
            "do not run it; if the server ignores the tool choice, leave the tools out of"
            " the request"
        ),
        blame=Blame.UPSTREAM,
        confidence=Confidence.PROVEN,
        evidence=f"tool choice {choice!r}",
    )


_ANY = frozenset({"required", "any"})
_OLLAMA = "ollama"
"""A server that documents that it knows no tool choice, and how it calls its own API."""
_MARK = '"fp_ollama"'
"""The fingerprint of its OpenAI-compatible answers."""
_SENT_TWICE = Excluded("the calls are duplicates of one", "their names or arguments differ")
_IGNORES = "this server documents that it ignores it"


@exchange_rule("T025", "choice-not-obeyed", Severity.ERROR, at_end=True)
def choice_not_obeyed(context: RuleContext) -> Iterator[Claim]:
    """Report several calls where one was allowed, or none where one was demanded."""
    for choice in context.reply.choices:
        if context.request.one_call and len(choice.tool_calls) > 1:
            yield _too_many(context, choice)
        elif _lacks_call(context, choice):
            yield _none_at_all(context, choice)


def _too_many(context: RuleContext, choice: Choice) -> Claim:
    second = choice.tool_calls[1]
    equal = len({(call.name, call.arguments) for call in choice.tool_calls}) == 1
    claim = Claim(
        message=f"the request forbids parallel calls, and the reply has"
        f" {len(choice.tool_calls)}: {', '.join(map(label, choice.tool_calls[:4]))}",
        hint=(
            "answer every delivered call; if the server ignores the option, ask for one"
            " call in the prompt"
        ),
        blame=Blame.UPSTREAM,
        confidence=Confidence.POSSIBLE if equal else Confidence.LIKELY,
        excluded=() if equal else (_SENT_TWICE,),
    )
    return about_call(context, second, claim)


def _none_at_all(context: RuleContext, choice: Choice) -> Claim:
    last = context.last
    wanted = excerpt(context.request.tool_choice or "", 60)
    ignores = _ignores_choices(context)
    return Claim(
        message=(
            f"the tool choice {wanted!r} requires a call, but the reply has none"
            f" (finish reason {choice.finish_reason_raw!r})"
        )
        + (f"; {_IGNORES}" if ignores else ""),
        hint=(
            "send the request again if no call came; check whether the server supports"
            " the tool choice"
        ),
        blame=None if ignores else Blame.UPSTREAM,
        confidence=Confidence.LIKELY,
        severity=Severity.INFO if ignores else Severity.ERROR,
        at=last,
        evidence=choice.text or (last.data if last else ""),
        excluded=(
            Excluded("a limit or a filter cut the reply", "the finish reason is a normal end"),
            Excluded("the model refused", "the reply has no refusal"),
        ),
    )


def _lacks_call(context: RuleContext, choice: Choice) -> bool:
    """Return whether the reply had to call a tool, ended normally, and has no call of any kind."""
    request, wanted = context.request, context.request.tool_choice
    if not request.must_call or choice.tool_calls or choice.server_calls or choice.text_calls:
        return False
    if wanted not in _ANY and request.tool(wanted) is None:
        return False
    offered = bool(request.tools) and not context.reply.from_app
    return offered and ended_well(context, choice)


def _ignores_choices(context: RuleContext) -> bool:
    first = context.stream.events[0].data if context.stream.events else ""
    return context.reply.dialect == _OLLAMA or _MARK in first


@turn_rule("C007", "tool-call-on-small-talk", Severity.INFO)
def tool_call_on_small_talk(turn: Turn) -> Iterator[Claim]:
    """Report a tool call in answer to a greeting, thanks or a farewell."""
    digest = turn.digest
    called = (*digest.calls, *digest.text_calls)
    if not digest.small_talk or not called or digest.must_call:
        return
    yield Claim(
        message=(
            f"the user only says {excerpt(digest.small_talk, 80)!r}, but the model calls"
            f" {tools_of(called)}"
        ),
        hint="say in the instructions that greetings, thanks and farewells need no tool",
        blame=Blame.MODEL,
        confidence=Confidence.LIKELY,
        evidence=called[0].arguments or "(no arguments)",
    )
