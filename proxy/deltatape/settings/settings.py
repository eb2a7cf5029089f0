"""The content of a settings file: command sections, upstreams, thresholds, names.

Section names and upstreams are checked when the file is loaded; the options of a section when its
command runs, since only that command is imported; thresholds and event names when rules run.
"""

import contextlib
import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from deltatape.errors import UsageError
from deltatape.model.app_names import CONTRACT, AppNames
from deltatape.settings.file import (
    FilePosition,
    MappingNode,
    MappingValue,
    Scalar,
    find,
    texts_of,
)

if TYPE_CHECKING:
    from deltatape.model.rule_settings import Settings

UPSTREAMS = "upstreams"
RULES = "rules"


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsFile:
    """A settings file.

    Attributes:
        path: the file.
        sections: what is set for each command that has a section.
        upstreams: URLs by name.
    """

    path: Path
    sections: Mapping[str, Mapping[str, MappingValue]]
    upstreams: Mapping[str, str]
    places: Mapping[str, FilePosition]
    """The position of each upstream in the file, by its name."""
    thresholds: Mapping[str, MappingValue]
    app_events: Mapping[str, MappingValue]

    def rules(self) -> "Settings":
        """Return the thresholds and event names for the rules.

        Raises:
            UsageError: a threshold or event name is unknown, or a value is invalid.
        """
        from deltatape.settings.thresholds import thresholds  # noqa: PLC0415 - loads all rules

        names = app_names(self.app_events)
        return dataclasses.replace(thresholds(self.thresholds), app=names)

    @contextlib.contextmanager
    def at_upstream(self, name: str) -> Iterator[None]:
        """Add this upstream's place to errors."""
        try:
            yield
        except UsageError as error:
            raise self.places[name].refuse(str(error)) from None


def load(
    start: Path, environment: Mapping[str, str], commands: Iterable[str]
) -> SettingsFile | None:
    """Load the settings for a command started in `start`; None if there is no file.

    Args:
        start: an absolute path.
        environment: see `file`.
        commands: the names of all commands; each may have a section.

    Raises:
        UsageError: the file cannot be read, or has an unknown key.
    """
    path = find(start, environment)
    if path is None:
        return None
    name = str(path.relative_to(start) if path.is_relative_to(start) else path)
    return read(path, name, commands)


def read(path: Path, name: str, commands: Iterable[str]) -> SettingsFile:
    """Read a settings file, called `name` in messages; see `load`."""
    from deltatape.settings.document import MAX_BYTES, parse  # noqa: PLC0415 - loads a YAML reader

    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{name}: {error.strerror}; a settings file can be read") from None
    document = parse(data, name)
    if isinstance(document, Scalar) and document.absent:
        return SettingsFile(
            path=path, sections={}, upstreams={}, places={}, thresholds={}, app_events={}
        )
    if not isinstance(document, MappingNode):
        raise document.place.refuse("a settings file is a mapping, such as `record: {keep: 2h}`")
    commands = tuple(commands)
    sections = {
        key: _section(key, entry, (*commands, UPSTREAMS, RULES, SECTION))
        for key, entry in document.entries.items()
    }
    upstreams = sections.pop(UPSTREAMS, {})
    return SettingsFile(
        path=path,
        thresholds=sections.pop(RULES, {}),
        app_events=sections.pop(SECTION, {}),
        sections=sections,
        upstreams={key: _url(key, entry) for key, entry in upstreams.items()},
        places={key: entry.key for key, entry in upstreams.items()},
    )


def _section(key: str, entry: MappingValue, known: Iterable[str]) -> Mapping[str, MappingValue]:
    """Return the entries of a top-level key."""
    if key not in known:
        raise entry.key.unknown(key, known, "section")
    value = entry.value
    if isinstance(value, Scalar) and value.absent:
        return {}
    if not isinstance(value, MappingNode):
        raise value.place.refuse(f"{key}: a mapping is accepted, one `name: value` per line")
    return value.entries


def _url(name: str, entry: MappingValue) -> str:
    value = entry.value
    if not isinstance(value, Scalar) or value.absent:
        raise value.place.refuse(f"{UPSTREAMS}.{name}: one URL is accepted")
    return value.text


# The section `app-events`: what the application calls the events of its own endpoint.
#
# Strategy: the fields of `AppNames` are what is accepted, `tool_call` written as `tool-call`. What
# a file says goes before the built-in names and leaves them in force, so that one file serves an
# application that has two endpoints.

SECTION = "app-events"
FIELDS: Mapping[str, str] = {
    field.name.replace("_", "-"): field.name for field in dataclasses.fields(AppNames)
}
"""What can be set, by its name in the file: the field of `AppNames`."""


def app_names(entries: Mapping[str, MappingValue]) -> AppNames:
    """Return the event names, those of a file first.

    Raises:
        UsageError: a name is unknown, or its value is neither a word nor a list of words.
    """
    changes: dict[str, tuple[str, ...]] = {}
    for key, entry in entries.items():
        if key not in FIELDS:
            raise entry.key.unknown(key, FIELDS, "name of an application's events")
        own = texts_of(entry.value)
        if own is None:
            raise entry.value.place.refuse(
                f"{SECTION}.{key}: a word or a list of words is accepted"
            )
        built_in: tuple[str, ...] = getattr(CONTRACT, FIELDS[key])
        changes[FIELDS[key]] = tuple(dict.fromkeys((*own, *built_in)))
    return dataclasses.replace(CONTRACT, **changes)
