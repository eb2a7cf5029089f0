import pytest

from deltatape.rules._patterns import is_risky


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+b",
        "(a|a)*b",
        "a+b+c",
        "^a+b+c+",
        "a{30}b{1,90}",
        "^a{2,}b{3,}c{4,}",
        "a?a?a?a?a?a?a?aaaaaaa",
        "(?=a)b",
        "(a|b)(a|b)(a|b)",
        "a" * 300,
        "(",
        "\\p{L}",
        "a{99999999999999999999}",
        "^" + "a{0,20}" * 15 + "b",
        "^" + "a{,90}" * 2 + "b",
        "a{,}b{,}",
        "a{2000}",
        "a{0,100}",
    ],
)
def test_patterns_that_may_backtrack_or_are_unknown_are_risky(pattern: str) -> None:
    assert is_risky(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "^[a-z0-9_]+$",
        r"^\d{4}-\d{2}-\d{2}$",
        "^(red|green|blue)$",
        "^[^@]+@[^@]+$",
        "a?b",
        "a{30}b{1,40}",
        "^.{1,64}$",
        "^[a-z]{2}(-[A-Z]{2})?$",
        "^#[0-9a-fA-F]{6}$",
        r"\(\)+",
    ],
)
def test_ordinary_patterns_are_not(pattern: str) -> None:
    assert not is_risky(pattern)
