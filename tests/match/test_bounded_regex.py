import re

import pytest

from deltatape.match.bounded_regex import compile_bounded


@pytest.mark.parametrize(
    ("text", "fitting"),
    [
        (r"\d+-\d+", "12-345"),
        (r"session-\w+", "session-a1"),
        (r"(?i)run (?:of )?\S{3,}", "RUN of abc"),
        (r"[]a-c]{2}", "]a"),
        (r"(?:\d{1,3}\.){3}\d{1,3}", "10.0.0.1"),
        (r"a|bc?|(?:d|e){1,4}x", "dedex"),
        (r"(?<=x)y|(?<!x)z(?=a)?(?!b)", "z"),
        (r"a{,2}b{x}{2}", "aab{x}}"),
        (r"x*?y++", "xy"),
        (r"[[a]+", "[a["),
    ],
)
def test_usual_expressions_are_taken_as_they_are(text: str, fitting: str) -> None:
    assert re.compile(compile_bounded(text)).fullmatch(fitting)


def test_an_open_repetition_ends_after_some_hundred() -> None:
    for text, most in (
        ("a+", 256),
        ("a*b|a+", 256),
        ("a{2,}", 256),
        ("a+b?a+", 128),
        ("a+a+a+", 60),
    ):
        found = compile_bounded(text).search("a" * 1000)
        assert found is not None
        assert len(found[0]) == most
    assert compile_bounded("a{200,256}").fullmatch("a" * 256)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("(a+)+b", "too long"),
        ("(a|a)*b", "too long"),
        ("(?:a?){40}", "too long"),
        (".*w.*x.*y.*", "too long"),
        ("((((a{1,2}){99}){99}){99}){99}", "too long"),
        (r"(a)\1", "not supported here; groups are"),
        ("(?P<n>a)", "not supported here"),
        ("(?x) a", "not supported here"),
        ("[a", "not supported here"),
        ("a\\", "not supported here"),
        ("a{300}", "repeats more than 256 times"),
        ("a{3,300}", "repeats more than 256 times"),
        ("(a", "no regular expression"),
        ("a)", "no regular expression"),
        ("*a", "no regular expression"),
        ("a{3,2}", "no regular expression"),
        ("(a)(b)", "several groups"),
        ("a*", "fits empty text"),
        ("a" * 501, "longer than 500"),
    ],
)
def test_what_could_take_too_long_or_is_none_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        compile_bounded(text)


def test_the_worst_expression_that_is_taken_ends() -> None:
    assert compile_bounded(r"(?:\w+\w+x)").search("a" * 3000) is None
