"""The presets' docstrings as documentation: for `deltatape why PRESET` and for docs/suspects.md."""

import inspect

from deltatape.suspects.client import MISTAKES, mistakes_of
from deltatape.suspects.presets import GROUPS, PRESETS, Preset

_HEAD = """\
# Suspects

Client algorithms with known mistakes, made from the presets themselves by `scripts/suspects-docs`.
`deltatape why` runs them over what the wire delivered: one that makes exactly the calls that the
application repeated, or throws the error that it logged, names the line to fix.
`deltatape why NAME` prints a section of this page.

All of them are one client with other values on some axes (the last section). Where no preset fits,
the other points of that space are searched, up to three mistakes at once.
"""


def find(name: str) -> Preset | None:
    """The preset of this name, in any case."""
    wanted = name.strip().lower()
    return next((preset for preset in PRESETS if preset.name == wanted), None)


def explain(name: str) -> str | None:
    """What the preset of this name does, as Markdown; None if there is none."""
    preset = find(name)
    return None if preset is None else f"# {preset.name}\n\n{_text(preset)}\n\n{_axes(preset)}"


def preset_fix(preset: Preset) -> str:
    """What to change, one or two sentences in plain text."""
    section = _text(preset).partition("## Fix")[2].partition("\n## ")[0]
    return " ".join(section.replace("`", "").split())


def page() -> str:
    """docs/suspects.md."""
    by_name = {preset.name: preset for preset in PRESETS}
    table = ["| name | mistakes | what it does |\n|---|---|---|\n"]
    sections = []
    for title, names in GROUPS.items():
        sections.append(f"## {title}\n")
        for name in names:
            preset = by_name[name]
            table.append(_row(preset))
            body = _text(preset).replace("\n## ", "\n#### ")
            sections.append(f"### {name}\n\n{body}\n")
    return "\n".join([_HEAD, "".join(table), *sections, _space()])


def _text(preset: Preset) -> str:
    return inspect.getdoc(preset) or ""


def _points(preset: Preset) -> str:
    """The points of a preset, the most usual first."""
    named = (
        ",".join(f"{one.axis}={one.value}" for one in mistakes_of(each)) for each in preset.clients
    )
    return " or ".join(f"`{one}`" for one in named)


def _axes(preset: Preset) -> str:
    return f"On the axes of all clients: {_points(preset)}.\n"


def _row(preset: Preset) -> str:
    summary = _text(preset).partition("\n")[0]
    return f"| [{preset.name}](#{preset.name}) | {_points(preset)} | {summary} |\n"


def _space() -> str:
    lines = ["## The axes\n\n| axis | value | what it does | fix |\n|---|---|---|---|\n"]
    for choice in MISTAKES.values():
        one = choice.mistake
        lines.append(f"| {one.axis} | {one.value} | {one.says} | {one.fix} |\n")
    return "".join(lines)
