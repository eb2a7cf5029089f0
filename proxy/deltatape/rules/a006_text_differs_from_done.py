"""A006: an application's stream whose last event tells another text than its pieces."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Blame, Confidence, Excluded, Finding, Severity
from deltatape.model.reply import Channel, Reply
from deltatape.rules._app import sure
from deltatape.rules._base import Claim, RuleContext, finding
from deltatape.wire.json_value import join_pairs


class TextDiffersFromDone:
    """The text of the last event is not the text that was streamed.

    ## What it does
    Looks at the stream of the application's own endpoint (`record --app`, or a pasted one). Reports
    a `done` whose content is neither all of the text that came in pieces nor the text after the
    last call or result; space around it does not matter. An error if the content is empty although
    there was text, and the events are specified.

    ## Why is this bad
    Pages replace what they have shown by the content of `done`, and store it: the answer changes or
    vanishes when it is finished.

    ## Innocent explanations
    - `done` has another content by contract: a summary, a title, a word such as "ok", or nothing,
      since all events have the same fields.
    - The application formats, filters or translates the whole text before it is kept.

    ## Example
    ```
    data: {"type":"text","content":"It is 13 degrees."}
    data: {"type":"done","content":""}
    ```

    ## Fix
    In the application, collect the text where it is sent, across all requests to the provider, not
    in a variable that each of them begins anew.

    ## References
    - https://html.spec.whatwg.org/multipage/server-sent-events.html#authoring-notes
    """

    code: ClassVar[str] = "A006"
    name: ClassVar[str] = "text-differs-from-done"
    severity: ClassVar[Severity] = Severity.WARNING

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        reply = context.reply
        told, text = reply.recited, reply.text.strip()
        if not reply.from_app or told is None or told.strip() in {text, _tail(reply).strip()}:
            return
        last = context.event(reply.terminal_event)
        cut = bool(told.strip()) and (text.startswith(told.strip()) or text.endswith(told.strip()))
        yield finding(
            self,
            context,
            Claim(
                message=f"{len(reply.text)} characters of text came in pieces, the last event tells"
                f" {len(told)}: {_relation(text, told.strip())}",
                hint="collect the text where it is sent, across all requests to the provider",
                blame=Blame.UPSTREAM,
                confidence=sure(context, Confidence.LIKELY if cut else None),
                excluded=_EXCLUDED if cut else (),
                severity=None if told.strip() else Severity.ERROR,
                event=reply.terminal_event,
                place=last.place if last else None,
                evidence=told or (last.data if last else ""),
            ),
        )


_EXCLUDED = (
    Excluded("done has another content by contract", "it is a part of the text that was streamed"),
)


def _tail(reply: Reply) -> str:
    """The text after the last call or result."""
    events = [call.start_event for call in reply.tool_calls]
    last = max([*events, *(result.event for result in reply.results)], default=-1)
    pieces = (one for one in reply.choices[0].pieces if one.channel is Channel.TEXT)
    return join_pairs("".join(one.text for one in pieces if one.event > last))


def _relation(text: str, told: str) -> str:
    if not told:
        return "nothing is left"
    if text.startswith(told):
        return "it is the beginning of the pieces"
    if text.endswith(told):
        return "it is the end of the pieces"
    if told.startswith(text):
        return "it goes on where the pieces end"
    at = next(
        place for place, (one, other) in enumerate(zip(text, told, strict=False)) if one != other
    )
    return f"they differ from character {at} on"
