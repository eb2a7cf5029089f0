"""What may differ between a request and the recorded one: whole fields, and parts of texts.

Prompts have dates, working folders, process ids and the like in the middle of their text. A *mask*
names such parts: a preset (`date`, `path`, ...) or a regular expression. Before two bodies are
compared, each part that a mask fits is replaced by a mark, so that the rest still counts.

    recorded  "Today is 2026-11-26. You work in /home/ann/app."
    received  "Today is 2026-12-03. You work in /tmp/ci-7."
    both      "Today is <date>. You work in <path>."

As options: `metadata.session` leaves out a field, `date` masks in every text, `/run-[0-9]+/` too,
`messages[0].content:date` masks in one field. A field called `date` is `$.date`.

A mask without a path does not look into the top-level `model`: `gpt-4o-2024-08-06` has no date.
"""

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from deltatape.errors import UsageError
from deltatape.match.bounded_regex import compile_bounded
from deltatape.regex import OR_NONE
from deltatape.wire.json_path import Holder, Step, Wildcard, drop, parse_path, select

# Each preset masks the last of its groups that took part, else all that it fits. They are applied
# in this order: a path may have a date in it, and the groups of a UUID look like other numbers.

_NAME = r"""[^\s/\\"'`<>|:;,()\[\]{}*?!$&]{1,255}"""
"""A part of a path; of what shells and prose put around paths it takes nothing."""
_ROOT = r"(?:(?<![\w.~/<\\\ufdd1])|(?<=\\[nrt])|(?<=file://))"
"""Where an absolute path begins: not within a relative one, a URL or a tag. In JSON within a text,
it may follow an escape."""
_DRIVE = r"(?<![A-Za-z0-9])[A-Za-z]:"
_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?"
    r"|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\.?"
)
_WEEKDAY = r"(?:(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?,? )?"
_CLOCK = r"\d{1,2}:\d\d(?::\d\d(?:[.,]\d{1,9})?)?"
_ZONE = r"(?: ?(?:Z|[A-Z]{2,4}|[+-]\d\d:?\d\d)(?![A-Za-z]))?"
_HEX = r"(?=[0-9a-f]{0,127}[0-9])(?=[0-9]{0,127}[a-f])[0-9a-f]{7,128}"

PRESETS = {
    "path": re.compile(
        rf"{_ROOT}(?:/{_NAME}){{1,64}}/?|{_DRIVE}(?:(?:\\{{1,4}}|/){_NAME}){{1,64}}", re.ASCII
    ),
    "home": re.compile(
        rf"{_ROOT}(?:(?:/home|/Users|/var/home|/export/home)/{_NAME}|/root(?![\w.-]))"
        rf"|{_DRIVE}(?:\\{{1,4}}|/)Users(?:\\{{1,4}}|/){_NAME}",
        re.ASCII,
    ),
    "uuid": re.compile(
        r"(?<![0-9A-Za-z])[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?![0-9A-Za-z])"
    ),
    "date": re.compile(
        rf"(?<!\d)\d{{4}}-\d\d-\d\d(?:(?:T|,? ){_CLOCK}{_ZONE})?(?!\d)"
        r"|(?<!\d)\d{4}/\d\d?/\d\d?(?!\d)|(?<![\d.])\d\d?[/.]\d\d?[/.]\d{4}(?!\d)"
        rf"|\b{_WEEKDAY}{_MONTH} {{1,2}}\d\d?(?:st|nd|rd|th)?"
        rf"(?:,? {{1,2}}(?:{_CLOCK}{_ZONE} )?\d{{4}}| {{1,2}}{_CLOCK})(?!\d)"
        rf"|\b{_WEEKDAY}(?<!\d)\d\d?(?:st|nd|rd|th)?[ -]{_MONTH},?[ -]\d{{4}}(?: {_CLOCK}{_ZONE})?"
        rf"|(?<![\d:.])\d\d?:\d\d:\d\d(?:[.,]\d{{1,9}})?(?: ?[AaPp][Mm]\b)?(?![\d:])"
        rf"|(?<![\d:.])\d\d?:\d\d ?[AaPp][Mm]\b"
        r"|(?<!\d)20\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?:[T_-]?\d{6}Z?)?(?!\d)"
        r"|(?<![\d.])1[5-9]\d{8}(?:\d{3}|\.\d{1,9})?(?!\d)",
        re.ASCII,
    ),
    "port": re.compile(
        r"(?:localhost|(?<!\d)\d{1,3}(?:\.\d{1,3}){3}|\[[0-9a-fA-F:.]{2,45}\]"
        r"|://[^\s/:\"'<>\\]{1,253}):(\d{2,5})(?!\d)"
        r"|(?<![A-Za-z])[Pp](?:ort|ORT)s?\\?[\"']?[ :=#]{1,3}(\d{2,5})(?!\d)",
        re.ASCII,
    ),
    "pid": re.compile(
        r"(?<![A-Za-z])(?i:(?:pids?|[pt]?gid|ppid|sid)\b\\?[\"']?\W{1,4}?)"
        r"(\d{1,10}(?:, ?\d{1,10}){0,99})(?!\d)"
        r"|(?<![A-Za-z])(?i:process(?: group)?(?: id)?:? )(\d{2,10})(?!\d)"
        r"|/proc/(\d{1,10})(?!\d)|(?<!\w)\[\d{1,4}\] (\d{2,10})(?!\d)",
        re.ASCII,
    ),
    "hash": re.compile(rf"(?<![0-9A-Za-z])(?:{_HEX}|{_HEX.replace('a-f', 'A-F')})(?![0-9A-Za-z])"),
}
"""The masks that have names."""

_LISTED = ", ".join(sorted(PRESETS))
MARKS = ("\ufdd1", "\ufdd2")
"""Around the name of a mask, in place of what it fits: noncharacters, which no text has."""
_MARK, _MARK_END = MARKS
_MARKED = re.compile(f"{_MARK}([^{_MARK_END}]*){_MARK_END}")
_OWN = "masked"
_IN_FIELD = re.compile(
    r"""(?P<path>(?:[^:'"\[/]|\[(?:'[^']+'|"[^"]+"|[^\]'"]+)\]"""
    rf"""{OR_NONE}){{1,1000}}+):(?P<mask>.*)""",
    re.DOTALL,
)
_MODEL = "model"
_REMEMBERED = 4096
"""How many texts are cached with their masked form: requests repeat their history."""


@dataclass(frozen=True, slots=True)
class _Mask:
    """Replaces parts of texts."""

    name: str
    """The preset, or `_OWN`."""
    pattern: re.Pattern[str]

    def mask(self, text: str) -> str:
        return self.pattern.sub(self._marked, text)

    def _marked(self, match: re.Match[str]) -> str:
        start, end = match.span(match.lastindex or 0)
        if start == end:
            return match[0]
        text, at = match[0], match.start()
        return f"{text[: start - at]}{_MARK}{self.name}{_MARK_END}{text[end - at :]}"


class VolatileRules:
    """The fields and parts of texts that may differ; False if there are none.

    Attributes:
        texts: the options, each once.
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        """Parse options.

        Raises:
            UsageError: one is none.
        """
        self.texts = tuple(dict.fromkeys(texts))
        self._fields: list[tuple[Step, ...]] = []
        everywhere: list[_Mask] = []
        scoped: dict[tuple[Step, ...], list[_Mask]] = {}
        for text in self.texts:
            path, mask = _parsed(text)
            if mask is None:
                self._fields.append(path)
            else:
                (scoped.setdefault(path, []) if path else everywhere).append(mask)
        self._everywhere = _masking(everywhere) if everywhere else None
        self._scoped = [(path, _masking(masks)) for path, masks in scoped.items()]

    def __bool__(self) -> bool:
        return bool(self.texts)

    @property
    def masks(self) -> bool:
        """Return whether parts of texts may differ."""
        return self._everywhere is not None or bool(self._scoped)

    def reduced(self, value: object, *, marks: bool = True) -> object:
        """Return a JSON value without the fields and with marks for what is masked.

        Its objects and arrays are changed in place.

        Args:
            value: see `body.json_value`.
            marks: False: leave out the fields only.
        """
        for path in self._fields:
            drop(value, path)
        if not marks:
            return value
        for path, mask in self._scoped:
            for holder, step in list(select(value, path)):
                _replace(holder, step, functools.partial(_masked, mask=mask))
        if self._everywhere is None:
            return value
        model = value.get(_MODEL) if isinstance(value, dict) else None
        value = _masked(value, self._everywhere)
        if isinstance(value, dict) and isinstance(model, str):
            value[_MODEL] = model
        return value

    def masked_text(self, text: str) -> str:
        """Return a text of a request with everything masked replaced by marks."""
        return text if self._everywhere is None else self._everywhere(text)


def readable(text: str) -> str:
    """Return a text with `<date>` for each mark."""
    return _MARKED.sub(r"<\1>", text) if _MARK in text else text


def _parsed(text: str) -> tuple[tuple[Step, ...], _Mask | None]:
    """Return the path, empty for none, and the mask of an option.

    Raises:
        UsageError: it has neither.
    """
    if text in PRESETS or text.startswith("/"):
        return (), _mask(text, text)
    found = _IN_FIELD.fullmatch(text)
    try:
        if found is None:
            return parse_path(text), None
        path = parse_path(found["path"])
    except UsageError:
        raise UsageError(
            f"--volatile {text!r}: not a path; use a field such as metadata.session, messages.*.id,"
            f" messages[0].id or $..cache_control, a mask ({_LISTED} or /REGEX/), or a mask in a"
            " field such as messages[*].content:date"
        ) from None
    return path, _mask(text, found["mask"])


def _mask(option: str, text: str) -> _Mask:
    if text in PRESETS:
        return _Mask(text, PRESETS[text])
    if text.startswith("/"):
        if not text.endswith("/") or len(text) == 1:
            raise UsageError(
                f"--volatile {option!r}: a regular expression ends with /, as /x[0-9]+/"
            )
        try:
            return _Mask(_OWN, compile_bounded(text[1:-1]))
        except ValueError as error:
            raise UsageError(f"--volatile {option!r}: {error}") from None
    name = re.split(r"[.\]]", option)[-1]
    raise UsageError(
        f"--volatile {option!r}: {text!r} is no mask; use {_LISTED} or /REGEX/; a field with a"
        f" colon in its name is written ['{name}']"
    )


def _masking(masks: Sequence[_Mask]) -> Callable[[str], str]:
    """Return a function that applies own expressions, as given, then presets, in their order."""
    order = [_OWN, *PRESETS]
    in_order = sorted(masks, key=lambda mask: order.index(mask.name))

    @functools.lru_cache(_REMEMBERED)
    def mask_all(text: str) -> str:
        return functools.reduce(lambda masked, mask: mask.mask(masked), in_order, text)

    return mask_all


def _masked(value: object, mask: Callable[[str], str]) -> object:
    """Return a value with all texts masked that are in it, in place."""
    if isinstance(value, str):
        return mask(value)
    for holder, step in select(value, (Wildcard.DEEP, Wildcard.ANY)):
        _replace(holder, step, lambda old: mask(old) if isinstance(old, str) else old)
    return value


def _replace(holder: Holder, step: str | int, new: Callable[[object], object]) -> None:
    if isinstance(holder, dict):
        holder[str(step)] = new(holder[str(step)])
    else:
        holder[int(step)] = new(holder[int(step)])
