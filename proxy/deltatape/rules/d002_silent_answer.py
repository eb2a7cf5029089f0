"""D002: an answer without text and without a call."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.model.reply import CallKind, Choice
from deltatape.rules._base import Claim, RuleContext, finding
from deltatape.rules.finish import Finish, finish_of
from deltatape.rules.words import count

_DRAWS = "image_generation"
"""The tool of a provider whose result is itself an answer."""
_NO_ANSWERS = frozenset({"load", "unload"})
"""Why replies end to requests that ask for no answer: a model is to be loaded, or forgotten."""


class SilentAnswer:
    """The answer ended in good order and says nothing.

    ## What it does
    Reports replies that ended as they should and have no text, no image or other medium, no
    refusal, no call and no error. It says whether there was reasoning that the user never sees.

    ## Why is this bad
    The application shows nothing, and nothing is wrong with the stream: it looks like a defect of
    the application. Often it is the second answer, the one after a tool's result.

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
        thought = sum(len(choice.reasoning) for choice in reply.choices)
        only = f", only {thought} characters of reasoning" if thought else ""
        expected = any(map(_is_expected, reply.choices))
        yield finding(
            self,
            context,
            Claim(
                message=f"the answer has no text and no call{only}"
                f" ({f'finish reason {word!r}, ' if word else ''}{count(len(events), 'event')})",
                hint="in the client, treat an empty answer as an error: ask again or tell the user",
                blame=Blame.UPSTREAM,
                confidence=context.seen if not thought else Confidence.LIKELY,
                severity=Severity.WARNING if expected else Severity.ERROR,
                event=events[-1].number,
                place=events[-1].place,
                evidence=events[-1].data,
            ),
        )


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
