"""The grammar of JSON numbers as a table, for `json_scan`.

Spec: RFC 8259 section 6: number = [ minus ] int [ frac ] [ exp ]. A number tells its end only by
what follows it, so "is it whole" is a property of the state, not an event.
"""

import enum
import re

_DIGITS = re.compile(r"[0-9]*")


class NumberState(enum.Enum):
    """How far a number got; the value says what must follow where it is not whole."""

    MINUS = "a digit after '-'"
    ZERO = "zero"
    INTEGER = "integer"
    POINT = "a digit after '.'"
    FRACTION = "fraction"
    E = "a digit or sign in the exponent"
    SIGN = "a digit in the exponent"
    EXPONENT = "exponent"


_S = NumberState
WHOLE_NUMBERS = frozenset({_S.ZERO, _S.INTEGER, _S.FRACTION, _S.EXPONENT})
"""States in which the characters so far are a number."""

_RUNS = frozenset({_S.INTEGER, _S.FRACTION, _S.EXPONENT})
_STEPS = {
    _S.MINUS: {"0": _S.ZERO, "1-9": _S.INTEGER},
    _S.ZERO: {".": _S.POINT, "e": _S.E},
    _S.INTEGER: {".": _S.POINT, "e": _S.E},
    _S.POINT: {"0": _S.FRACTION, "1-9": _S.FRACTION},
    _S.FRACTION: {"e": _S.E},
    _S.E: {"0": _S.EXPONENT, "1-9": _S.EXPONENT, "+-": _S.SIGN},
    _S.SIGN: {"0": _S.EXPONENT, "1-9": _S.EXPONENT},
    _S.EXPONENT: {},
}
_CLASSES = {
    "0": "0",
    **dict.fromkeys("123456789", "1-9"),
    **dict.fromkeys("+-", "+-"),
    **dict.fromkeys("eE", "e"),
    ".": ".",
}


def run_number(state: NumberState, text: str, at: int) -> tuple[NumberState, int]:
    """The state after the characters from `at` on that continue the number, and where they end."""
    while True:
        if state in _RUNS:
            digits = _DIGITS.match(text, at)
            at = digits.end() if digits else at
        step = _STEPS[state].get(_CLASSES.get(text[at : at + 1], ""))
        if step is None:
            return state, at
        state = step
        at += 1
