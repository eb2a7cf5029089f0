"""The section `app-events`: what the application calls the events of its own endpoint.

Strategy: the fields of `AppNames` are what is accepted, `tool_call` written as `tool-call`. What a
file says goes before the built-in names and leaves them in force, so that one file serves an
application that has two endpoints.
"""

import dataclasses
from collections.abc import Mapping

from deltatape.model.app_names import CONTRACT, AppNames
from deltatape.settings.values import Entry, Items, Scalar, Value

SECTION = "app-events"
FIELDS: Mapping[str, str] = {
    field.name.replace("_", "-"): field.name for field in dataclasses.fields(AppNames)
}
"""What can be set, by its name in the file: the field of `AppNames`."""


def app_names(entries: Mapping[str, Entry]) -> AppNames:
    """The names with those of a file before them.

    Raises:
        UsageError: one of that name is not known, or its value is no word and no list of words.
    """
    changes: dict[str, tuple[str, ...]] = {}
    for key, entry in entries.items():
        if key not in FIELDS:
            raise entry.key.unknown(key, FIELDS, "name of an application's events")
        own = _words(key, entry.value)
        built_in: tuple[str, ...] = getattr(CONTRACT, FIELDS[key])
        changes[FIELDS[key]] = tuple(dict.fromkeys((*own, *built_in)))
    return dataclasses.replace(CONTRACT, **changes)


def _words(key: str, value: Value) -> tuple[str, ...]:
    each = value.items if isinstance(value, Items) else (value,)
    words = [one.text for one in each if isinstance(one, Scalar) and not one.absent]
    if len(words) < len(each):
        raise value.place.refuse(f"{SECTION}.{key}: a word or a list of words is accepted")
    return tuple(words)
