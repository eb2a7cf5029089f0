"""T022: a string of the arguments in which line breaks are escaped twice."""

import re
from collections.abc import Iterator
from typing import ClassVar

from deltatape.model.finding import Blame, Confidence, Finding, Severity
from deltatape.model.reply import CallStatus
from deltatape.rules._base import Claim, RuleContext, about_call, label
from deltatape.rules.evidence import excerpt
from deltatape.wire.json_value import parse

_ESCAPED = r"\\n"
"""What stands in JSON text for a backslash and `n` in the value."""
_BREAK = re.compile(r"\\n(?:  |\\n|\\t|\Z)")
"""In a value: such a break where a line ends, before an indented, an empty, or no line."""
_FEWEST = 2


class DoubleEscapedArguments:
    r"""A string of the arguments has a backslash and `n` where its lines should end.

    ## What it does
    Reports calls with a string that holds no line break, but twice or more a backslash and `n`,
    at least once before an indented or an empty line or at its end. A possibility, not a proof:
    text may be about escapes.

    ## Why is this bad
    The JSON is valid, no parser complains, and a file with one long line is written.

    ## Example
    ```
    {"path":"a.py","content":"def run():\\n    return 1\\n"}
    ```

    ## Fix
    The model escaped its text twice: ask again, or say in the tool's description that line breaks
    are written as such. In the client, never unescape blindly: a regular expression would break.

    ## References
    - https://github.com/openclaw/openclaw/issues/110823
    - https://www.rfc-editor.org/rfc/rfc8259#section-7
    """

    code: ClassVar[str] = "T022"
    name: ClassVar[str] = "double-escaped-arguments"
    severity: ClassVar[Severity] = Severity.WARNING

    def check(self, context: RuleContext) -> Iterator[Finding]:
        """See `Rule.check`."""
        for _, call in context.calls():
            if call.status is not CallStatus.COMPLETE or call.arguments.count(_ESCAPED) < _FEWEST:
                continue
            text = next(filter(_is_escaped, _strings(parse(call.arguments).value)), None)
            if text is None:
                continue
            claim = Claim(
                message=f"a string in the arguments of {label(call)} has a backslash and 'n' where"
                f" its lines should end: {excerpt(text, 60)}",
                hint="ask the model again; unescape nothing blindly",
                blame=Blame.MODEL,
                confidence=Confidence.POSSIBLE,
                evidence=text,
            )
            yield about_call(self, context, call, claim)


def _is_escaped(text: str) -> bool:
    twice = text.count("\\n") >= _FEWEST
    return twice and "\n" not in text and _BREAK.search(text) is not None


def _strings(value: object) -> Iterator[str]:
    """All strings in a JSON value."""
    left = [value]
    while left:
        match left.pop():
            case str(text):
                yield text
            case dict() as members:
                left += members.values()
            case list() as elements:
                left += elements
            case _:
                pass
