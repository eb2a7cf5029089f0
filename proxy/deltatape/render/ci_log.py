"""Makes text inert for CI logs: text of a tape must not be a CI command.

GitHub's runner takes `::command::` at the start of a line, blanks aside, and, as Azure's, `##[...]`
and `##vso[...]` anywhere in it; TeamCity takes `##teamcity[...]`. Both output streams are read.

Source: https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands,
https://github.com/actions/runner, `ActionCommand.cs`;
https://learn.microsoft.com/en-us/azure/devops/pipelines/scripts/logging-commands
"""

import re

from deltatape.render.lines import Line, StyledText

_ANYWHERE = re.compile(r"##(?=[A-Za-z]*\[)")
_ESCAPED = r"#\x23"
_AT_START = re.compile(r"\s*::")


def inert_line(line: Line) -> Line:
    r"""`line` with the first character of a command as an escape: `\x3a:error::`, `#\x23[group]`.

    What is no command keeps its styles.
    """
    text = "".join(segment.text for segment in line)
    inert = inert_text(text, _ESCAPED)
    if _AT_START.match(inert):
        inert = inert.replace("::", r"\x3a:", 1)
    return line if inert == text else (StyledText(inert),)


def inert_remark(text: str) -> str:
    """Return our own `text` as an inert line next to a report."""
    return inert_text(text, _ESCAPED)


def inert_text(text: str, instead: str) -> str:
    """Return `text` without commands that CI systems find anywhere in a line.

    Args:
        text: the text of a document whose own syntax never says `##[`.
        instead: how that document writes `##` otherwise.
    """
    return _ANYWHERE.sub(lambda _: instead, text)
