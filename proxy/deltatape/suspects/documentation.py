"""The presets' docstrings as documentation: for `deltatape why PRESET` and for docs/suspects.md."""

import inspect
import re
from collections.abc import Sequence

from deltatape.errors import UsageError
from deltatape.model.suspect import Mistake
from deltatape.suspects.client import MISTAKES, Client, mistakes_of
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


_COMPOSED = re.compile(r"[a-z]+=[\w+-]+(,[a-z]+=[\w+-]+)*", re.IGNORECASE)
"""How a point is named that is no preset."""


def find(name: str) -> Preset | None:
    """The preset of this name, in any case."""
    wanted = name.strip().lower()
    return next((preset for preset in PRESETS if preset.name == wanted), None)


def explain(name: str) -> str | None:
    """What a suspect does, as Markdown; None if `name` is none.

    Args:
        name: of a preset, or its mistakes as `why` names them: `key=one,emit=when-parses`.

    Raises:
        UsageError: it names mistakes, and one of them does not exist.
    """
    preset = find(name)
    if preset is not None:
        return f"# {preset.name}\n\n{_text(preset)}\n\n{_axes(preset)}"
    return _explain_mistakes(name.strip().lower()) if _COMPOSED.fullmatch(name.strip()) else None


def _explain_mistakes(name: str) -> str:
    named = [_mistake(one) for one in name.split(",")]
    does = " and ".join(one.says for one in named)
    parts = [f"# {name}\n\nA client that {does}.\n"]
    parts += [f"## {one.axis}={one.value}\n\nIt {one.says}.\n\nFix: {one.fix}.\n" for one in named]
    alike = [preset for preset in PRESETS if any(_is_same(each, named) for each in preset.clients)]
    if alike:
        names = ", ".join(f"`{preset.name}`" for preset in alike)
        parts.append(f"The same as {names}.\n")
    return "\n".join(parts)


def _mistake(name: str) -> Mistake:
    axis, _, value = name.partition("=")
    known = [choice.mistake for choice in MISTAKES.values() if choice.mistake.axis == axis]
    found = next((one for one in known if one.value.lower() == value), None)
    if found is None:
        values = ", ".join(f"{axis}={one.value}" for one in known)
        raise UsageError(f"{name}: no such mistake; {values or f'there is no axis {axis!r}'}")
    return found


def _is_same(client: Client, named: Sequence[Mistake]) -> bool:
    return frozenset(mistakes_of(client)) == frozenset(named)


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
