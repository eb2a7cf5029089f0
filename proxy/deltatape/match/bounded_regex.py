"""Regular expressions of users that cannot take for ever.

Python's `re` backtracks and has no timeout: `(a+)+b` on a long line of `a` never returns. So each
expression gets a bound for the number of ways in which it can be tried at one place of the text,
and is refused if that is too large; the work is then linear in the text.

Strategy: open repetitions (`*`, `+`, `{n,}`) get an end, the largest of `MOST_REPEATS` that is no
problem. With that, the number of ways is a product: of a sequence that of its parts, of
alternatives their sum, of a repetition the sum over how often.
"""

import re
import warnings

MOST_REPEATS = (256, 64, 20)
"""Where open repetitions end: one in an expression, each of two, each of three."""
MOST_WAYS = 10_000
"""In how many ways an expression may be tried at one place of the text."""
MOST_CHARACTERS = 500

_TOKEN = re.compile(
    r"""(?P<flags>\(\?[aims]+\))
      | (?P<open>\((?:(?!\?)|\?(?:[:=!]|<[=!])))
      | (?P<close>\))
      | (?P<repeat>[*+?]|\{(?=[0-9,])(?P<low>[0-9]{0,9})(?P<comma>,(?P<high>[0-9]{0,9}))?\})
        (?P<mode>[?+]?)
      | (?P<or>\|)
      | (?P<atom>\\[^1-9]|\[\^?\]?(?:\\.|[^\]\\])*+\]|[^\\()\[|])""",
    re.VERBOSE | re.DOTALL,
)
_GROUPS = "(...), (?:...), (?=...), (?!...), (?<=...), (?<!...) and flags (?i)"


class _Sequence:
    """What has been read of a group: ways of the alternatives before, and of this one."""

    def __init__(self) -> None:
        self._before = 0
        self._ways = 1
        self.last = 1
        """The ways of the last part, which a repetition may follow."""

    @property
    def ways(self) -> int:
        return self._before + self._ways * self.last

    def add(self, ways: int) -> None:
        self._ways *= self.last
        self.last = ways

    def begin_alternative(self) -> None:
        self._before, self._ways, self.last = self.ways, 1, 1


def compile_bounded(text: str) -> re.Pattern[str]:
    """Compile an expression whose work is linear in the text that it is used on.

    Raises:
        ValueError: it is none, or could take too long; the message says why, and what to write.
    """
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"longer than {MOST_CHARACTERS} characters")
    tried = (_bounded(text, most) for most in MOST_REPEATS)
    bounded = next((each for each, ways in tried if ways <= MOST_WAYS), None)
    try:
        with warnings.catch_warnings(action="ignore"):  # such as of a set in a set
            pattern = re.compile(text if bounded is None else bounded)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"no regular expression: {error}") from None
    if bounded is None:
        raise ValueError(
            "could take too long; use at most three of *, + and {n,}, none in a repeated group, and"
            " limits such as {1,9} for others"
        )
    if pattern.groups > 1:
        raise ValueError(
            "has several groups; the one whose text may differ is (...), others (?:...)"
        )
    if pattern.fullmatch(""):
        raise ValueError("fits empty text")
    return pattern


def _bounded(text: str, most: int) -> tuple[str, int]:
    """Return the expression with limits, `most` for open repetitions, and its number of ways."""
    parts: list[str] = []
    groups = [_Sequence()]
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise ValueError(f"{text[at : at + 3]} is not supported here; groups are {_GROUPS}")
        at = token.end()
        part = token[0]
        match token.lastgroup:
            case "open":
                groups.append(_Sequence())
            case "close" if len(groups) > 1:
                ways = groups.pop().ways
                groups[-1].add(ways)
            case "or":
                groups[-1].begin_alternative()
            case "atom":
                groups[-1].add(1)
            case "mode":  # the last group of a repetition
                low, high = _limits(token, most)
                part = f"{{{low},{high}}}{token['mode']}"
                groups[-1].last = _repeated(groups[-1].last, low, high)
            case _:  # flags, and a bracket too many, which `re` reports
                pass
        parts.append(part)
    return "".join(parts), groups[-1].ways


def _limits(token: re.Match[str], most: int) -> tuple[int, int]:
    """Return how often the part before may come."""
    if token["repeat"] in "*+?":
        low, high = {"*": (0, most), "+": (1, most), "?": (0, 1)}[token["repeat"]]
        return low, high
    low = int(token["low"] or 0)
    if token["comma"] is None:
        high = low
    else:
        high = int(token["high"]) if token["high"] else max(low, most)
    if high > MOST_REPEATS[0]:
        raise ValueError(f"repeats more than {MOST_REPEATS[0]} times")
    return low, high


def _repeated(ways: int, low: int, high: int) -> int:
    """Return the ways of a repetition; above `MOST_WAYS`, any larger number."""
    total, power = 0, 1
    for times in range(high + 1):
        if times >= low:
            total += power
        power = min(power * ways, MOST_WAYS + 1)
    return total
