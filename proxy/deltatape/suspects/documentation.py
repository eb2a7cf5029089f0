"""The documentation of presets, for `deltatape why PRESET` and docs/suspects.md."""

import re
import textwrap

from deltatape.errors import UsageError
from deltatape.model.suspect import ClientMistake
from deltatape.suspects.client import Preset, mistakes_of
from deltatape.suspects.mistakes import MISTAKES
from deltatape.suspects.presets import GROUPS, PRESETS

_HEAD = """\
# Suspects

Client algorithms with known mistakes, listed from the presets by `scripts/suspects-docs`.
`deltatape why` runs each over the delivered stream. One that makes exactly the calls that the
application repeated, or throws the error that it logged, is the suspect. `deltatape why NAME`
prints what it does, an example, the fix and references.

Each suspect is the same client with a mistake on one or more axes (the last table). Where no preset
fits, other combinations of up to three mistakes are tried: `key=one,emit=when-parses`.
"""

_TABLE = "| name | what it does | mistakes |\n|---|---|---|\n"
_AXES_TABLE = "| axis | value | what it does | fix |\n|---|---|---|---|\n"

_WIDTH = 96
"""The longest line of prose, in characters."""
_COMPOSED = re.compile(r"[a-z]+=[\w+-]+(,[a-z]+=[\w+-]+)*", re.IGNORECASE)
"""Mistakes by axis and value, where no preset has them."""


def find(name: str) -> Preset | None:
    """Find a preset by name, in any case."""
    name = name.strip().lower()
    return next((preset for preset in PRESETS if preset.name == name), None)


def suspect_page(name: str) -> str | None:
    """Return the documentation of a suspect; None if `name` is not one.

    Args:
        name: the name of a preset, or its mistakes as `why` names them: `key=one,emit=when-parses`.

    Raises:
        UsageError: it names mistakes, and one of them does not exist.
    """
    preset = find(name)
    if preset is not None:
        axes = f"On the axes of all clients: {_points(preset)}.\n"
        return f"# {preset.name}\n\n{_sections(preset)}\n\n{axes}"
    return _explain_mistakes(name.strip().lower()) if _COMPOSED.fullmatch(name.strip()) else None


def _explain_mistakes(name: str) -> str:
    named = [_mistake(one) for one in name.split(",")]
    does = " and ".join(one.says for one in named)
    parts = [f"# {name}\n\nA client that {does}.\n"]
    parts += [f"## {one.axis}={one.value}\n\nIt {one.says}.\n\nFix: {one.fix}.\n" for one in named]
    alike = [
        preset
        for preset in PRESETS
        if any({*mistakes_of(client)} == {*named} for client in preset.clients)
    ]
    if alike:
        names = ", ".join(f"`{preset.name}`" for preset in alike)
        parts.append(f"The same as {names}.\n")
    return "\n".join(parts)


def _mistake(name: str) -> ClientMistake:
    axis, _, value = name.partition("=")
    known = [choice.mistake for choice in MISTAKES.values() if choice.mistake.axis == axis]
    found = next((one for one in known if one.value.lower() == value), None)
    if found is None:
        values = ", ".join(f"{axis}={one.value}" for one in known)
        raise UsageError(f"{name}: no such mistake; {values or f'there is no axis {axis!r}'}")
    return found


def preset_fix(preset: Preset) -> str:
    """Return the fix in one or two sentences of plain text."""
    return " ".join(preset.fix.replace("`", "").split())


def page() -> str:
    """Return docs/suspects.md."""
    parts = [_HEAD]
    for title, presets in GROUPS.items():
        rows = (f"| {one.name} | {one.summary} | {_points(one)} |\n" for one in presets)
        parts.append(f"## {title}\n\n{_TABLE}{''.join(rows)}")
    axes = (choice.mistake for choice in MISTAKES.values())
    rows = (f"| {one.axis} | {one.value} | {one.says} | {one.fix} |\n" for one in axes)
    return "\n".join([*parts, f"## The axes\n\n{_AXES_TABLE}{''.join(rows)}"])


def _sections(preset: Preset) -> str:
    sections = {
        "What it does": _filled(preset.does),
        "Example": f"```\n{textwrap.dedent(preset.example).strip()}\n```",
        "Fix": _filled(preset.fix),
        "References": "\n".join(f"- {one}" for one in preset.references),
    }
    parts = [f"## {heading}\n{body}" for heading, body in sections.items()]
    return "\n\n".join([preset.summary, *parts])


def _filled(text: str) -> str:
    words = " ".join(text.split())
    return textwrap.fill(words, _WIDTH, break_long_words=False, break_on_hyphens=False)


def _points(preset: Preset) -> str:
    """Return the mistakes of a preset, the most usual first."""
    named = (
        ",".join(f"{one.axis}={one.value}" for one in mistakes_of(each)) for each in preset.clients
    )
    return " or ".join(f"`{one}`" for one in named)
