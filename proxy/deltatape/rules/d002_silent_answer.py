"""D002: an answer without text and without a call."""

import re
from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.model.reply import CallKind, Choice
from deltatape.rules._base import Claim, RuleContext, finding
from deltatape.rules.finish import Finish, finish_of
from deltatape.rules.words import count
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
"""Objects of requests in which they stand."""
_PLAIN = (None, "text", "", "auto")


_SILENCE = re.compile(
    r"\b(?:say|answer|reply|respond|return|output|write)(?: with)? (?:nothing|an empty)\b"
    r"|\b(?:do not|don't) (?:answer|reply|respond|say)\b|\bno (?:answer|reply|response)\b"
    r"|\bempty (?:string|answer|reply|response|message)\b|\b(?:stay|remain|be) silent\b",
    re.IGNORECASE,
)
"""How a request says that nothing may be the answer."""


class SilentAnswer:
    """The answer ended in good order and says nothing.

    ## What it does
    Reports replies that ended as they should and have no text, no image or other medium, no
    refusal, no call and no error. It says whether there was reasoning that the user never sees. A
    remark where nothing may be what was asked for: calls are forbidden after a tool's result, the
    request ends with a beginning of the answer, or a stop sequence came first. Silent for a
    response that was cancelled, and where the request prescribes the form of the answer: what is
    not of that form is another matter.

    ## Why is this bad
    The application shows nothing, and nothing is wrong with the stream: it looks like a defect of
    the application. Often it is the second answer, the one after a tool's result.

    ## Innocent explanations
    - The response was cancelled.
    - The grammar, the choices or the schema of the request allow an answer without characters.
    - The model has nothing to add to a beginning that it was given, or after a tool's result.
    - A limit, a filter or a stop sequence ended it: nobody's fault.

    ## Example
    ```
    data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}
    data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}
    data: [DONE]
    ```

    ## Fix
    In the client, treat an empty answer as an error: ask again, or tell the user. With reasoning
    and nothing else, the limit of output tokens is often used up by the reasoning.

    ## References
    - https://platform.openai.com/docs/guides/reasoning
    - https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons
    - https://github.com/open-webui/open-webui/issues/27800
    """

    code: ClassVar[str] = "D002"
    name: ClassVar[str] = "silent-answer"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        reply, events = context.reply, context.stream.events
        if not context.successful or not reply.terminated or reply.error is not None or not events:
            return
        if context.exchange.cut or not all(_is_silent(choice) for choice in reply.choices):
            return
        word = reply.choices[0].finish_reason_raw
        if word is None and not reply.from_app:
            return  # nothing says that this was an answer
        if reply.results:
            return  # an app's own endpoint may tell of nothing but a tool that ran on
        if _prescribes_form(context):
            return
        thought = sum(len(choice.reasoning) for choice in reply.choices)
        only = f", only {thought} characters of reasoning" if thought else ""
        expected = any(map(_is_expected, reply.choices))
        asked_for = _may_say_nothing(context)
        yield finding(
            self,
            context,
            Claim(
                message=f"the answer has no text and no call{only}"
                f" ({f'finish reason {word!r}, ' if word else ''}{count(len(events), 'event')})"
                f"{asked_for and f': {asked_for}'}",
                hint="in the client, treat an empty answer as an error: ask again or tell the user",
                blame=None if expected or asked_for else Blame.UPSTREAM,
                confidence=Confidence.LIKELY,
                severity=_severity(expected=expected, asked_for=bool(asked_for)),
                event=events[-1].number,
                place=events[-1].place,
                evidence=events[-1].data,
            ),
        )


def _severity(*, expected: bool, asked_for: bool) -> Severity:
    if asked_for:
        return Severity.INFO
    return Severity.WARNING if expected else Severity.ERROR


def _may_say_nothing(context: RuleContext) -> str:
    """Why nothing may be what was asked for; "" if it is not."""
    asked = context.asked
    last = asked.history[-1] if asked.history else None
    if any(choice.finish_reason_raw == "stop_sequence" for choice in context.reply.choices):
        return "a stop sequence of the request came first"
    if last is not None and last.role in _ANSWERING and not last.calls:
        return "the request ends with a beginning of the answer, and the model adds nothing"
    if any(_SILENCE.search(message.text) for message in asked.history):
        return "the request says when to say nothing"
    if last is not None and last.call_id is not None and asked.tool_choice == "none":
        return "it follows a tool's result, and the request forbids calls"
    return ""


def _prescribes_form(context: RuleContext) -> bool:
    """Whether the request prescribes the form of the answer: a schema, a grammar, choices."""
    body = parse(context.exchange.request.body.decode("utf-8", "replace")).value
    if not isinstance(body, dict):
        return False
    inner = [body, *(body[key] for key in _PLACES if isinstance(body.get(key), dict))]
    return any(_is_form(each.get(name)) for each in inner for name in _FORMS)


def _is_form(value: object) -> bool:
    """Whether this is more than a wish for plain text."""
    kind = value.get("type", value) if isinstance(value, dict) else value
    return not isinstance(kind, str | None) or kind not in _PLAIN


def _is_silent(choice: Choice) -> bool:
    """Nothing to show or run."""
    said = choice.text.strip() or choice.refusal or choice.tool_calls
    drawn = any(
        call.name == _DRAWS or call.kind is CallKind.BUILT_IN for call in choice.server_calls
    )
    if said or drawn or choice.media or choice.finish_reason_raw in _NO_ANSWERS:
        return False
    return finish_of(choice) not in {Finish.TOOLS, Finish.PAUSE}


def _is_expected(choice: Choice) -> bool:
    """Whether a limit or a filter cut it, or the provider ran tools of its own."""
    return finish_of(choice) in {Finish.LENGTH, Finish.FILTER} or bool(choice.server_calls)
