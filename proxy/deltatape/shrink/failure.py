"""Define when a failure is the same: how the command ended, and the error that it named.

Strategy: a command fails with an exit code, a signal, or a timeout. That alone would let a search
drift to another mistake, since most end with exit code 1. So the line of the output that names an
error counts, too, apart from numbers, quoted texts and memory addresses, which depend on the tape.
Quoted names in errors about names count: `KeyError: 'id'` and `KeyError: 'name'` are different
mistakes.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

_ERROR = re.compile(
    r"(?:[\w.$]+\.)?[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Timeout)\b.*"
    r"|panic: .*|fatal error: .*|thread '.*' panicked.*",
)
"""Python, JavaScript, Java, Go, Rust; also behind what test runners put in front."""
_ADDRESS = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\]):[0-9]+")
_VARIABLE = re.compile(
    r"0x[0-9a-fA-F]+|\d+(?:\.\d+)*|'[^']*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`|\{.*\}|\[.*\]|\.\.\.|…"
    r"|\*{8,}",  # a masked credential
)
_NAMING = re.compile(
    r"(?:[\w.$]+\.)?(?:Key|Attribute|Name|Type|Reference|UnboundLocal|Import|ModuleNotFound)Error\b"
)
_NAME = re.compile(r"(['\"`])[A-Za-z_$][\w$.-]*\1")
_WIDEST = 2000
"""How much of a line to compare, in characters: outputs can be anything."""
_LONGEST = 300
_LEAST = 4
"""How many characters make a text distinctive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """How a command ended, and what it printed."""

    exit_code: int | None
    """None: a signal ended it, or it does not count."""
    signal: str = ""
    timed_out: bool = False
    output: str = ""

    @property
    def failed(self) -> bool:
        """Return whether the command failed."""
        return self.timed_out or self.exit_code != 0

    @property
    def how(self) -> str:
        """Describe it in words; "" where it does not count."""
        if self.timed_out:
            return "still running at the deadline"
        if self.signal:
            return f"ended by {self.signal}"
        return "" if self.exit_code is None else f"exit code {self.exit_code}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetFailure:
    """The failure that is searched for."""

    ending: CommandResult
    shown: str
    """The output line that identifies it; "" if only the ending counts."""
    pattern: str
    """The same as a regular expression, for all that is not of the tape."""
    loose: str | None = None
    """Another one, for which the names that `shown` quotes do not count."""

    @property
    def loosened(self) -> "TargetFailure":
        """Return the same failure with any quoted names."""
        return self if self.loose is None else replace(self, pattern=self.loose, loose=None)

    def is_in(self, ending: CommandResult) -> bool:
        """Return whether a command ended with this failure."""
        first = self.ending
        how = (first.exit_code, first.signal, first.timed_out)
        if (ending.exit_code, ending.signal, ending.timed_out) != how:
            return False
        return re.search(self.pattern, ending.output) is not None

    @property
    def description(self) -> str:
        """Describe it in words."""
        how = self.ending.how
        return ", ".join(part for part in (how, self.shown) if part)

    @property
    def literal(self) -> str:
        """Return the longest part of `shown` that is independent of the tape; "" if too short."""
        named = self.loose is not None
        parts = [part.strip() for part in _parts(self.shown, names=named)]
        longest = max(parts, key=len, default="")
        return longest if len(longest) >= _LEAST else ""


def failure_of(ending: CommandResult, error: str | None = None) -> TargetFailure | None:
    """Return the failure that a command ended with; None if it succeeded.

    Args:
        ending: how it ended.
        error: a text that its output has when it fails, as the user says.
    """
    if error is not None:
        if error not in ending.output:
            return None
        return TargetFailure(ending=ending, shown=error, pattern=_escaped(error))
    if not ending.failed:
        return None
    shown = "" if ending.timed_out else named_error(ending.output)
    pattern, loose = pattern_of(shown), pattern_of(shown, names=False)
    return TargetFailure(ending=ending, shown=shown, pattern=pattern, loose=loose)


def readable(*outputs: bytes) -> str:
    """Return outputs as one text, with long lines cut."""
    lines = (line for each in outputs for line in each.decode("utf-8", "replace").splitlines())
    return "\n".join(line[:_WIDEST] for line in lines)


def named_error(output: str) -> str:
    """Return the last line of an output that names an error, from the name on; "" if none does."""
    for line in reversed(output.splitlines()):
        found = _ERROR.search(line)
        if found is not None:
            return found[0][:_LONGEST].strip()
    return ""


def pattern_of(line: str, *, names: bool = True) -> str:
    """Return a regular expression for `line` that ignores what depends on the tape.

    Args:
        line: names an error.
        names: whether a quoted name counts where the error is about one.
    """
    return ".*?".join(map(_escaped, _parts(line, names=names)))


def _parts(line: str, *, names: bool) -> Iterator[str]:
    """Yield what is between the places that depend on the tape."""
    line = _ADDRESS.sub("0", line)
    names = names and _NAMING.match(line) is not None
    at = 0
    for found in _VARIABLE.finditer(line):
        if not (names and _NAME.fullmatch(found[0])):
            yield line[at : found.start()]
            at = found.end()
    yield line[at:]


def _escaped(text: str) -> str:
    return re.escape(text).replace("\\ ", " ")
