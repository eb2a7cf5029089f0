from collections.abc import Iterator

from deltatape.model.finding import Finding
from deltatape.rules import INTERNAL_ERROR
from deltatape.rules.guard import guarded, guarded_each
from deltatape.rules.t001_empty_arguments import EmptyArguments


def failed(error: Exception) -> Finding:
    return INTERNAL_ERROR.report(EmptyArguments(), "", 1, error)


def test_what_came_before_the_error_is_kept_and_the_error_reported_after_it() -> None:
    first = failed(ValueError("first"))

    def findings() -> Iterator[Finding]:
        yield first
        raise KeyError("second")

    found = guarded(findings, failed)
    assert found[0] is first
    assert "KeyError" in found[1].message


def test_a_rule_that_fails_does_not_silence_the_next() -> None:
    first, last = failed(ValueError("first")), failed(ValueError("last"))

    def findings(rule: str) -> Iterator[Finding]:
        yield {"a": first, "b": last}[rule]
        if rule == "a":
            raise OSError("no luck")

    found = guarded_each("ab", findings, lambda _, error: failed(error))
    assert (found[0], found[2]) == (first, last)
    assert "OSError" in found[1].message


def test_without_an_error_nothing_is_added() -> None:
    assert guarded(lambda: iter(()), failed) == ()
