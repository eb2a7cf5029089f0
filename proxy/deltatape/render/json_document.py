"""JSON for programs: ASCII, inert on terminals and in CI logs."""

import json
from collections.abc import Mapping

from deltatape.render.ci_log import inert_text

VERSION = 1
"""Of every document: keys are added to, never renamed."""
_ENCODER = json.JSONEncoder(ensure_ascii=True)


def document(**content: object) -> str:
    """Return an object with `"version": 1` and `content`, and a line feed."""
    return inert_json({"version": VERSION, **content}) + "\n"


def inert_json(value: object) -> str:
    """Return `value` as ASCII JSON that is inert on terminals and in CI logs."""
    return _inert(json.dumps(value, ensure_ascii=True, indent=1))


def inert_members(value: Mapping[str, object], margin: str) -> str:
    """Return `value` like `inert_json`, one member per line, indented by `margin`.

    Its keys are plain words. For what is not indented, the encoder is written in C: it takes a
    fifth of the time.
    """
    members = f",\n{margin} ".join(
        f'"{key}": {_ENCODER.encode(member)}' for key, member in value.items()
    )
    return _inert(f"{margin}{{\n{margin} {members}\n{margin}}}")


def _inert(text: str) -> str:
    return inert_text(text.replace("\x7f", "\\u007f"), r"#\u0023")
