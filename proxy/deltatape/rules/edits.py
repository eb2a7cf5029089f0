"""Edits that correct programs make to a call's arguments on purpose.

Frameworks validate arguments, people review them, and histories are shortened before the next
request. Such edits change delivered values, and nobody is to blame. Edits explain a change only if
they explain every difference:

- the tool's own schema: a default filled in or left out, an unset parameter written as null or
  left out, an unknown field dropped, a value converted to the requested type, a word of an
  enumeration in its own spelling;
- numbers: a double has 53 bits, so JavaScript keeps 15 to 17 digits of a longer one;
- spelling: white space, Unicode normalisation, case, the order of a list, the notation of a date,
  characters outside ASCII removed everywhere;
- names: members renamed, as from `user_id` to `userId`, or moved, with all values kept;
- truncation: a long value with a mark in place of its rest;
- announced: a following result or message has the new value, or says that it was changed.
"""

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from deltatape.rules.pattern_set import PatternSet
from deltatape.rules.repeated import ABSENT, MAX_DIFFERENCES, Difference
from deltatape.wire.json_value import canonical, parse

_EMPTY: tuple[object, ...] = (None, "", [], {}, False)
_ELIDED = re.compile(
    r"\.\.\.|\u2026|\b(?:truncated?|omitted|elided|elision|snip(?:ped)?|redacted|removed|cleared"
    r"|compacted|shortened|trimmed|too long|placeholder|\d+ (?:more )?(?:character|char|byte|token"
    r"|line)s?)\b",
    re.IGNORECASE,
)
_CHANGED = re.compile(
    r"\b(?:edit(?:ed|s)?|chang(?:ed|es|ing)|modif(?:ied|ies)|correct(?:ed|ion)|adjust(?:ed|s)?"
    r"|overr(?:idden|ode|ides?)|replaced|amended|revised|updated|normali[sz]ed|instead|clamped)\b",
    re.IGNORECASE,
)
_WORD_BREAKS = re.compile(r"[\s_\-./:]+")
_DIGITS = re.compile(r"\d+")
_SHORTEST_VALUE = 2
"""Shorter values are not searched for in later messages: they occur everywhere. In characters."""


class Following:
    """The texts of results and messages that follow calls, searched for all of their changes."""

    def __init__(self, texts: Iterable[str], changes: Iterable[Difference]) -> None:
        self._texts = tuple(texts)
        self._changes = tuple(changes)
        self._known: dict[tuple[str, str], bool] = {}

    def announces(self, change: Difference) -> str | None:
        """Return where the request says the new value, or that something was changed."""
        value, before = _new_value(change), _spelled(change.delivered)
        found = self._known.get((value, before))
        if found is None:
            found = any(before not in text for text in self._with_value.get(value, ()))
            self._known[value, before] = found
        if found:
            return "what follows has the new value"
        return "what follows says that it was changed" if self._says_so else None

    @cached_property
    def _until(self) -> Sequence[str]:
        """The texts up to the one that says that something was changed."""
        said = (place for place, text in enumerate(self._texts) if _CHANGED.search(text))
        return self._texts[: next(said, len(self._texts))]

    @property
    def _says_so(self) -> bool:
        return len(self._until) < len(self._texts)

    @cached_property
    def _with_value(self) -> Mapping[str, Sequence[str]]:
        """By new value, the texts that have it."""
        values = map(_new_value, self._changes)
        wanted = PatternSet(value for value in values if len(value) >= _SHORTEST_VALUE)
        found: dict[str, list[str]] = {}
        for text in self._until:
            for value in wanted.within(text):
                found.setdefault(value, []).append(text)
        return found


def _new_value(change: Difference) -> str:
    return "" if change.repeated is ABSENT else _spelled(change.repeated)


def _spelled(value: object) -> str:
    """Return a value as a text may mention it."""
    return value if isinstance(value, str) else str(_canonical_of(value))


def explain(
    found: Sequence[Difference],
    schema: Mapping[str, object] | None,
    following: Following,
) -> str | None:
    """Return the edits that explain all differences, as a clause; None if some are left.

    The clause has the path of the first place of each edit.

    Args:
        found: all differences of one call, >= 1.
        schema: the JSON Schema of the tool, if it is known.
        following: the texts that follow the call in the request, made with these differences.
    """
    if len(found) >= MAX_DIFFERENCES:
        return None
    if _is_renamed(found):
        return f"members were renamed or moved ({found[0].path})"
    kinds: dict[str, str] = {}
    for each in found:
        kind = _edit(each, _property(schema, each.keys), schema) or following.announces(each)
        if kind is None:
            return None
        kinds.setdefault(kind, each.path)
    return "; ".join(f"{kind} ({path})" for kind, path in kinds.items())


def _is_renamed(found: Sequence[Difference]) -> bool:
    """Return whether all values are still there under other names."""
    gone = [each.delivered for each in found if each.repeated is ABSENT]
    come = [each.repeated for each in found if each.delivered is ABSENT]
    if not gone or not come:
        return False
    before = (each.delivered for each in found if each.delivered is not ABSENT)
    after = (each.repeated for each in found if each.repeated is not ABSENT)
    return sorted(_scalars(before)) == sorted(_scalars(after))


def _scalars(values: Iterable[object]) -> Iterator[str]:
    pending = list(values)
    while pending:
        one = pending.pop()
        if isinstance(one, Mapping):
            pending += one.values()
        elif isinstance(one, list):
            pending += one
        else:
            yield json.dumps(one)


def _edit(
    found: Difference, spec: Mapping[str, object], schema: Mapping[str, object] | None
) -> str | None:
    """Return a change that programs make to such a value by themselves."""
    one, other = found.delivered, found.repeated
    if one is ABSENT:
        if "default" in spec and _same(other, spec["default"]):
            return "a default of the schema was filled in"
        if spec and any(_same(other, each) for each in _EMPTY):
            return "an unset parameter was written out"
        return "a note about omitted content was added" if _is_elided(other) else None
    if other is ABSENT:
        if one is None or any(_same(one, each) for each in _EMPTY):
            return "an empty value was left out"
        if "default" in spec and _same(one, spec["default"]):
            return "a default of the schema was left out"
        if schema is not None and not spec and _is_described(schema, found.keys[:-1]):
            return "a field that the schema does not know was dropped"
        return None
    if one is None and "default" in spec and _same(other, spec["default"]):
        return "a default of the schema was filled in"
    return _converted(one, other) or _respelled(one, other)


def _converted(one: object, other: object) -> str | None:
    if _is_number(one) and _is_number(other):
        rounded = float(str(one)) == float(str(other))
        return "digits beyond double precision were lost" if rounded else None
    if isinstance(one, str) and isinstance(other, str):
        return None
    if _is_word(one, other) or _is_word(other, one):
        return "a value was converted to another type"
    if other == [one] or one == [other]:
        return "a value was put into a list, or taken out of one"
    for text, value in ((one, other), (other, one)):
        if isinstance(text, str) and canonical(text) == _canonical_of(value):
            return "a value was converted between JSON and its text"
    return None


def _respelled(one: object, other: object) -> str | None:
    if _is_elided(other) and not _is_elided(one) and len(str(other)) < len(str(one)):
        return "a long value was shortened"
    if isinstance(one, list) and isinstance(other, list):
        return "a list was sorted or deduplicated" if _same_set(one, other) else None
    if not (isinstance(one, str) and isinstance(other, str)):
        return None
    if _plain(one) == _plain(other):
        return "a text was normalised"
    if other in (one.encode("ascii", "ignore").decode(), _without_symbols(one)):
        return "characters outside ASCII, or symbols, were removed"
    digits = sorted(_DIGITS.findall(one))
    if len(digits) > 1 and digits == sorted(_DIGITS.findall(other)):
        return "a date or number was written in another notation"
    return None


def _property(
    schema: Mapping[str, object] | None, keys: Sequence[str | int]
) -> Mapping[str, object]:
    """Return the schema of the value at `keys`; {} if there is no plain one."""
    found: object = schema
    for key in keys:
        inner = _members(found, "properties").get(key) if isinstance(key, str) else None
        found = _members(found, "items") if isinstance(key, int) else inner
    return found if isinstance(found, Mapping) else {}


def _is_described(schema: Mapping[str, object], keys: Sequence[str | int]) -> bool:
    """Return whether the object at `keys` has a list of known members."""
    return bool(_members(_property(schema, keys) if keys else schema, "properties"))


def _members(schema: object, name: str) -> Mapping[str, object]:
    found = schema.get(name) if isinstance(schema, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _same(one: object, other: object) -> bool:
    return type(one) is type(other) and one == other


def _same_set(one: list[object], other: list[object]) -> bool:
    return {str(_canonical_of(each)) for each in one} == {
        str(_canonical_of(each)) for each in other
    }


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_word(text: object, value: object) -> bool:
    """Return whether `text` writes `value`, a number, a boolean or null."""
    if not isinstance(text, str) or isinstance(value, str | list | dict):
        return False
    bare = text.strip().lower()
    if value is None:
        return bare in ("", "null", "none", "undefined")
    if isinstance(value, bool):
        return bare in (("true", "yes", "1", "on") if value else ("false", "no", "0", "off"))
    try:
        return float(bare) == float(str(value))
    except ValueError:
        return False


def _canonical_of(value: object) -> str | None:
    """Return the canonical JSON of a value that came from JSON; None for ABSENT."""
    return None if value is ABSENT else json.dumps(value, sort_keys=True, separators=(",", ":"))


def _is_elided(value: object) -> bool:
    """Return whether a value, or a string in it, says that something was left out."""
    pending, steps = [value], 0
    while pending and steps < MAX_DIFFERENCES:
        steps += 1
        one = pending.pop()
        if isinstance(one, str) and _ELIDED.search(one):
            return True
        if isinstance(one, Mapping):
            pending += [*one.values(), *one]
        elif isinstance(one, list):
            pending += one[:MAX_DIFFERENCES]
    return False


def _plain(text: str) -> str:
    """Normalise compatibility characters, white space and case."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return _WORD_BREAKS.sub("", folded)


def _without_symbols(text: str) -> str:
    return "".join(each for each in text if unicodedata.category(each) not in {"So", "Sk", "Cs"})


def breaks_schema(schema: Mapping[str, object] | None, arguments: str) -> bool | None:
    """Return whether a member that `schema` requires is missing; None if it requires none."""
    required = schema.get("required") if schema else None
    if not isinstance(required, list) or not required:
        return None
    value = parse(arguments.strip() or "{}").value
    return not isinstance(value, Mapping) or any(key not in value for key in required)
