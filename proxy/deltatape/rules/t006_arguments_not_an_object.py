"""T006: arguments that are JSON, but not a string that holds an object."""

from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Blame, Finding, Severity
from deltatape.model.reply import CallStatus
from deltatape.rules._base import Claim, RuleContext, about_call, label, reported

_WHAT = {
    CallStatus.NOT_OBJECT: "are JSON, but no object",
    CallStatus.DOUBLE_ENCODED: "are a JSON string that holds the object: encoded twice",
}


class ArgumentsNotAnObject:
    r"""The arguments are not one JSON object, in the form that their dialect has for it.

    ## What it does
    Reports arguments that are a bare value or a list, an object encoded twice, or an object where
    the dialect has a string of JSON (most have one; Gemini, Ollama and Bedrock's events have the
    object itself). What an application tells its page is A002's.

    ## Why is this bad
    Clients that join strings make `[object Object]` of an object. Of a twice encoded one they get a
    string where the tool expects its parameters.

    ## Example
    ```
    "arguments": "\"{\\\"city\\\": \\\"Rome\\\"}\""
    "arguments": {"city": "Rome"}
    ```

    ## Fix
    The server has to send one JSON object, encoded as the dialect says. In the client, accept an
    object as it is, and unpack a string once more only if that gives an object.

    ## References
    - https://github.com/can1357/oh-my-pi/issues/1779
    - https://github.com/ggml-org/llama.cpp/issues/20198
    - https://github.com/oracle/langchain-oracle/issues/70
    """

    code: ClassVar[str] = "T006"
    name: ClassVar[str] = "arguments-not-an-object"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        hint = "the server has to send a string with one JSON object in it"
        yield from reported(self, context, hint)
        known = {(seen.choice, seen.call) for seen in context.observed(self.code)}
        for choice, call in context.calls():
            what = _WHAT.get(call.status)
            told = (choice.index, call.index) in known or context.reply.from_app
            if what is None or told:
                continue
            yield about_call(
                self,
                context,
                call,
                Claim(
                    message=f"the arguments of {label(call)} {what}",
                    hint=hint,
                    blame=Blame.UPSTREAM,
                    confidence=context.seen,
                ),
            )
