"""JSON for programs, in ASCII, so that nothing in it can act on a terminal or in a CI system."""

import json
from collections.abc import Mapping

from deltatape.render.ci_log import inert_text

VERSION = 1
"""Of every document: keys are added to, never renamed."""
_ENCODER = json.JSONEncoder(ensure_ascii=True)


def document(**content: object) -> str:
    """An object with `"version": 1` and `content`, and a line feed."""
    return inert_json({"version": VERSION, **content}) + "\n"


def inert_json(value: object) -> str:
    """`value` as ASCII that acts neither on a terminal nor on a CI system that reads the log."""
    return _inert(json.dumps(value, ensure_ascii=True, indent=1))


def inert_members(value: Mapping[str, object], margin: str) -> str:
    """As `inert_json`, a member of the object in a line, behind `margin`.

    Its keys are plain words. For what is not indented, the encoder is written in C: it takes a
    fifth of the time.
    """
    members = f",\n{margin} ".join(
        f'"{key}": {_ENCODER.encode(member)}' for key, member in value.items()
    )
    return _inert(f"{margin}{{\n{margin} {members}\n{margin}}}")


def _inert(text: str) -> str:
    return inert_text(text.replace("\x7f", "\\u007f"), r"#\u0023")
