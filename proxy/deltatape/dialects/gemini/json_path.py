"""The paths of streamed arguments: JSONPath queries for one value, as steps from the root.

Source: RFC 9535, section 2.3 (name and index selectors, shorthand names). Only what names exactly
one value is taken; a path without `$` is, as clients do, seen from the root.
"""

import json
import re
from typing import TypeAlias

from deltatape.wire.json_value import join_pairs

STEPS_LIMIT = 100
"""Steps of a path that is still followed; arguments are never nested that deeply."""

Step: TypeAlias = str | int
"""The name of a member, or the index of an element."""

_STEP = re.compile(
    r"""\.(?P<name>[^.\[\]]++)
      | \[\ *+(?P<index>0|[1-9][0-9]{0,8})\ *+\]
      | \[\ *+'(?P<single>[^'\\]*+(?:\\.[^'\\]*+)*+)'\ *+\]
      | \[\ *+"(?P<double>[^"\\]*+(?:\\.[^"\\]*+)*+)"\ *+\]""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPED_QUOTE = re.compile(r"\\'|\"|\\.", re.DOTALL)
_REQUOTED = {"\\'": "'", '"': '\\"'}


def parse_path(text: str) -> tuple[Step, ...] | None:
    """The steps of the path `text`, at least one; None if it does not name one value."""
    if not text.startswith("$"):
        text = f"${text}" if text.startswith("[") else f"$.{text}"
    steps: list[Step] = []
    at = 1
    while at < len(text):
        found = _STEP.match(text, at)
        step = _step(found) if found else None
        if found is None or step is None or len(steps) == STEPS_LIMIT:
            return None
        steps.append(step)
        at = found.end()
    return tuple(steps) or None


def _step(found: re.Match[str]) -> Step | None:
    quoted = found["double"]
    if found["single"] is not None:
        quoted = _ESCAPED_QUOTE.sub(lambda one: _REQUOTED.get(one[0], one[0]), found["single"])
    if quoted is not None:
        try:
            return join_pairs(str(json.loads(f'"{quoted}"')))
        except ValueError:
            return None
    return found["name"] if found["index"] is None else int(found["index"])
