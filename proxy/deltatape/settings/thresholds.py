"""The section `rules`: thresholds by the names of `deltatape.model.rule_settings`.

Strategy: the fields of that dataclass are what is accepted. A field `stall_s` is `stall` here and
takes a duration with its unit; a count takes a whole number, a share a number from 0 to 1. Phrases
are added to the built-in ones.
"""

import dataclasses
import re
from collections.abc import Mapping

from deltatape.model.rule_settings import DEFAULTS, Settings
from deltatape.settings.file import MappingValue, Scalar, texts_of

_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(ms|s|m|h)", re.ASCII)
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_COUNT = re.compile(r"[1-9][0-9]{0,8}", re.ASCII)
_SHARE = re.compile(r"[01]|0?\.[0-9]{1,9}", re.ASCII)
_IN_SECONDS = "_s"

FIELDS: Mapping[str, str] = {
    field.name.removesuffix(_IN_SECONDS).replace("_", "-"): field.name
    for field in dataclasses.fields(Settings)
    if isinstance(getattr(DEFAULTS, field.name), int | float | tuple)
}
"""What can be set, by its name in the file: the field of `model.rule_settings.Settings`."""


def thresholds(entries: Mapping[str, MappingValue]) -> Settings:
    """Return the thresholds, changed by a file.

    Raises:
        UsageError: a name is unknown, or its value is invalid.
    """
    changes: dict[str, float | tuple[str, ...]] = {}
    for key, entry in entries.items():
        if key not in FIELDS:
            raise entry.key.unknown(key, FIELDS, "threshold of a rule")
        value = entry.value
        built_in = getattr(DEFAULTS, FIELDS[key])
        if isinstance(built_in, tuple):
            phrases = texts_of(value)
            if phrases is None:
                raise value.place.refuse(f"rules.{key}: a phrase or a list of phrases is accepted")
            changes[FIELDS[key]] = (*built_in, *phrases)
            continue
        text = value.text if isinstance(value, Scalar) and not value.absent else None
        number, accepted = _number(FIELDS[key], text or "")
        if number is None:
            seen = f"{text!a}: " if text is not None else ""
            raise value.place.refuse(f"rules.{key}: {seen}{accepted}")
        changes[FIELDS[key]] = number
    return dataclasses.replace(DEFAULTS, **changes)  # type: ignore[arg-type]


def _number(field: str, text: str) -> tuple[float | None, str]:
    """Parse a field's number; return the value or None, and what is accepted."""
    if field.endswith(_IN_SECONDS):
        match = _DURATION.fullmatch(text)
        value = float(match[1]) * _UNITS[match[2]] if match else None
        return value, "a duration with its unit is accepted, such as 500ms, 10s or 2m"
    if isinstance(getattr(DEFAULTS, field), int):
        return (
            int(text) if _COUNT.fullmatch(text) else None,
            "a whole number from 1 is accepted, such as 30",
        )
    return (
        float(text) if _SHARE.fullmatch(text) else None,
        "a number from 0 to 1 is accepted, such as 0.02",
    )
