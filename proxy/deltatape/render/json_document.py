"""JSON for programs, in ASCII, so that nothing in it can act on a terminal or in a CI system."""

import json

from deltatape.render.ci_log import inert_text

VERSION = 1
"""Of every document: keys are added to, never renamed."""


def document(**content: object) -> str:
    """An object with `"version": 1` and `content`, and a line feed."""
    return inert_json({"version": VERSION, **content}) + "\n"


def inert_json(value: object) -> str:
    """`value` as ASCII that acts neither on a terminal nor on a CI system that reads the log."""
    text = json.dumps(value, ensure_ascii=True, indent=1)
    return inert_text(text.replace("\x7f", "\\u007f"), r"#\u0023")
