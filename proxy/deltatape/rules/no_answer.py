"""Answers without content, and calls that were never answered."""

import itertools
import re
from collections.abc import Iterator

from deltatape.model.digest import Unanswered
from deltatape.model.finding import Blame, Confidence, Excluded, Severity
from deltatape.model.reply import CallKind, Choice
from deltatape.model.rule_settings import Settings
from deltatape.model.tape_summary import CHILD_EXIT, TapeSummary
from deltatape.printable import count, excerpt
from deltatape.rules._call_references import first_names
from deltatape.rules.app_exception import crashed
from deltatape.rules.context import NS, Claim, RuleContext
from deltatape.rules.finish import FinishMeaning, finish_of
from deltatape.rules.rule import (
    SeenSilence,
    exchange_rule,
    silence_rule,
)
from deltatape.wire.json_value import parse

_DRAWS = "image_generation"
"""The tool of a provider whose result is itself an answer."""
_NO_ANSWERS = frozenset({"load", "unload", "cancelled", "canceled", "CANCELLED"})
"""Why replies end that owe no answer: a model is loaded or forgotten, the response cancelled."""
_ANSWERING = frozenset({"assistant", "model"})
"""Roles of the model."""
_FORMS = (
    "response_format",
    "format",
    "grammar",
    "guided_json",
    "guided_regex",
    "guided_choice",
    "guided_grammar",
    "structured_outputs",
    "response_schema",
    "responseSchema",
    "responseJsonSchema",
    "output_format",
)
"""Members of requests that prescribe the form of the answer."""
_PLACES = ("text", "output_config", "generationConfig", "generation_config", "extra_body")
"""The objects of a request that may have such a member."""
_PLAIN = (None, "text", "", "auto")
_SILENCE = re.compile(
    r"\b(?:say|answer|reply|respond|return|output|write)(?: with)? (?:nothing|an empty)\b"
    r"|\b(?:do not|don't) (?:answer|reply|respond|say)\b|\bno (?:answer|reply|response)\b"
    r"|\bempty (?:string|answer|reply|response|message)\b|\b(?:stay|remain|be) silent\b",
    re.IGNORECASE,
)
"""How a request says that nothing may be the answer."""


@exchange_rule("D002", "silent-answer", Severity.ERROR, at_end=True)
def silent_answer(context: RuleContext) -> Iterator[Claim]:
    """Report an answer without text and without a call."""
    reply, events = context.reply, context.stream.events
    if not context.successful or not reply.terminated or reply.error is not None or not events:
        return
    if context.exchange.cut or not all(_is_silent(choice) for choice in reply.choices):
        return
    word = reply.choices[0].finish_reason_raw
    if word is None and not reply.from_app:
        return  # nothing says that this was an answer
    if reply.results:
        return  # an app's endpoint may stream only the result of an earlier call
    if _prescribes_form(context):
        return
    thought = sum(len(choice.reasoning) for choice in reply.choices)
    only = f", only {thought} characters of reasoning" if thought else ""
    asked_for, complete = _may_say_nothing(context), _counts_as_complete(context)
    severity = Severity.ERROR
    if asked_for:
        severity = Severity.INFO
    elif complete or any(map(_is_expected, reply.choices)):
        severity = Severity.WARNING
    yield Claim(
        message=f"the answer has no text and no call{only}"
        f" ({f'finish reason {word!r}, ' if word else ''}{count(len(events), 'event')})"
        f"{asked_for and f': {asked_for}'}{_COMPLETE if complete and not asked_for else ''}",
        hint=_GO_ON if complete else _ASK_AGAIN,
        blame=Blame.UPSTREAM if severity is Severity.ERROR else None,
        confidence=Confidence.LIKELY,
        severity=severity,
        at=events[-1],
        evidence=events[-1].data,
    )


_ASK_AGAIN = "in the client, treat an empty answer as an error: ask again or inform the user"
_COMPLETE = (
    ": after a tool's result the model may count its turn as complete, as Anthropic documents"
)
_GO_ON = (
    "put no text beside tool results; after an empty answer, add a user message that asks the model"
    " to go on"
)


def _counts_as_complete(context: RuleContext) -> bool:
    """Return whether a Claude model ended its turn after a tool's result without a word.

    Source: https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons, "Empty
    responses with end_turn".
    """
    history = context.request.history
    since = itertools.takewhile(lambda message: message.role not in _ANSWERING, reversed(history))
    resulted = any(message.call_id is not None for message in since)
    return resulted and all(each.finish_reason_raw == "end_turn" for each in context.reply.choices)


def _may_say_nothing(context: RuleContext) -> str:
    """Return why an empty answer may have been requested; "" if it is not."""
    request = context.request
    last = request.history[-1] if request.history else None
    if any(choice.finish_reason_raw == "stop_sequence" for choice in context.reply.choices):
        return "a stop sequence of the request came first"
    if last is not None and last.role in _ANSWERING and not last.calls:
        return "the request ends with the beginning of the answer, and the model adds nothing"
    if any(_SILENCE.search(message.text) for message in request.history):
        return "the request says when to answer with nothing"
    if last is not None and last.call_id is not None and request.tool_choice == "none":
        return "it follows a tool's result, and the request forbids calls"
    return ""


def _prescribes_form(context: RuleContext) -> bool:
    """Return whether the request prescribes the answer's form: a schema, a grammar, choices."""
    body = parse(context.exchange.request.content.decode("utf-8", "replace")).value
    if not isinstance(body, dict):
        return False
    inner = [body, *(body[key] for key in _PLACES if isinstance(body.get(key), dict))]
    return any(_is_form(each.get(name)) for each in inner for name in _FORMS)


def _is_form(value: object) -> bool:
    """Return whether this asks for more than plain text."""
    kind = value.get("type", value) if isinstance(value, dict) else value
    return not isinstance(kind, str | None) or kind not in _PLAIN


def _is_silent(choice: Choice) -> bool:
    """Return whether there is nothing to show or run."""
    content = choice.text.strip() or choice.refusal or choice.tool_calls
    drawn = any(
        call.name == _DRAWS or call.kind is CallKind.BUILT_IN for call in choice.server_calls
    )
    if content or drawn or choice.media or choice.finish_reason_raw in _NO_ANSWERS:
        return False
    return finish_of(choice) not in {FinishMeaning.TOOLS, FinishMeaning.PAUSE}


def _is_expected(choice: Choice) -> bool:
    """Return whether a limit or filter cut the answer, or the provider ran its own tools."""
    return finish_of(choice) in {FinishMeaning.LENGTH, FinishMeaning.FILTER} or bool(
        choice.server_calls
    )


@silence_rule("D003", "unanswered-tool-call", Severity.WARNING)
def unanswered_tool_call(seen: SeenSilence) -> Iterator[Claim]:
    """Report delivered calls that are followed by silence."""
    silence, settings = seen
    reply = silence.reply
    watch, end_ns = reply.watch, reply.end_ns
    if watch is None or end_ns is None:
        return
    watched_s = (silence.until_ns - end_ns) / NS
    if watched_s < settings.unanswered_s and not crashed(watch):
        return
    confidence = _unanswered_confidence(silence, end_ns, settings)
    long = watched_s >= settings.unanswered_error_s and confidence is Confidence.LIKELY
    long |= bool(silence.thrown)
    yield Claim(
        severity=Severity.ERROR if long else Severity.WARNING,
        blame=Blame.APP,
        confidence=confidence,
        message=_unanswered_message(silence, watch, watched_s) + _meaning(silence, confidence),
        hint=_unanswered_hint(silence, confidence),
        evidence=reply.calls[0].arguments or "(no arguments)",
        excluded=(
            Excluded(
                _IS_OUTPUT, f"it printed {excerpt(silence.thrown, 100)!r} and ended with an error"
            ),
        )
        if silence.thrown
        else (),
    )


_IS_OUTPUT = "the app uses calls as its output, or waits for a person"
_HINT = (
    "check how the app handles a reply with calls: a filter on id or name, a finish reason"
    " that it waits for, a swallowed exception, a tool that never returns"
)
_HABIT = (
    "the app answers no calls on this tape: if it uses calls as its output, ignore this"
    " finding; otherwise "
) + _HINT
_OUTPUT = "if the app takes this call as its output, ignore this finding; otherwise " + _HINT
_CRASH = (
    "the app exited with an error before it could answer; the traceback on the tape shows"
    " where: if that is where it parses the arguments, it did not parse what was delivered"
)


def _unanswered_hint(silence: Unanswered, confidence: Confidence) -> str:
    if silence.thrown:
        return _CRASH
    if silence.others:
        return _HABIT
    return _HINT if confidence is Confidence.LIKELY else _OUTPUT


def _unanswered_confidence(silence: Unanswered, end_ns: int, settings: Settings) -> Confidence:
    """Grade a missing answer: likely if the application lived on, and was to answer the calls.

    That it answers such calls elsewhere shows that, or an error about these. A call may end the
    run: that a service lives on and answers others' calls says nothing then.
    """
    if silence.thrown:
        return Confidence.LIKELY
    alive_s = (silence.alive_ns - end_ns) / NS if silence.alive_ns is not None else 0.0
    lived = alive_s >= settings.unanswered_s and not silence.others
    meant = silence.answers_tools or bool(silence.complaint)
    return Confidence.LIKELY if lived and meant else Confidence.POSSIBLE


def _meaning(silence: Unanswered, confidence: Confidence) -> str:
    """Return what shows that the application was to answer, as a clause."""
    if silence.thrown or confidence is not Confidence.LIKELY:
        return ""
    if silence.complaint:
        return f"; it printed {silence.complaint!r}"
    return "; elsewhere on the tape it answers calls of the same tool"


def _unanswered_message(silence: Unanswered, watch: TapeSummary, watched_s: float) -> str:
    calls = silence.reply.calls
    names = first_names([call.name or call.id or f"call {call.index}" for call in calls])
    were = "was" if len(calls) == 1 else "were"
    replies = f"{silence.others} later {'reply' if silence.others == 1 else 'replies'}"
    others = f"; the same is true of {replies}" if silence.others else ""
    came = f"{count(len(calls), 'call')} ({names}) {were} delivered complete, and"
    if silence.thrown:
        thrown = excerpt(silence.thrown, 160)
        return (
            f"{came} then, without a further request, the app printed {thrown!r} and exited with"
            f" {watch.exit_code}"
        )
    if crashed(watch):
        ended = f"the app exited with {watch.exit_code}, {watched_s:.1f} s later"
        return f"{came} no request followed before {ended}{others}"
    silent = f"no request followed within {watched_s:.1f} s"
    return f"{came} {silent}; {_end_of_recording(watch)}{others}"


def _end_of_recording(watch: TapeSummary) -> str:
    """Return what ended the recording."""
    if watch.stop is None:
        return "the recording is still going on" if watch.recording else "then the tape ends"
    if watch.stop == CHILD_EXIT and watch.exit_code is not None:
        return f"then the app exited with {watch.exit_code}"
    return f"then the recorder stopped ({excerpt(watch.stop, 60)})"
