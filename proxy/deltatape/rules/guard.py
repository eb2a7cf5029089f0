"""The one place where any exception is caught: a rule that fails must not silence the others."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from deltatape.model.finding import Finding

R = TypeVar("R")


def guarded(
    findings: Callable[[], Iterator[Finding]], failed: Callable[[Exception], Finding]
) -> tuple[Finding, ...]:
    """All of `findings()`, or as many as came before it raised, and `failed(error)` after them."""
    found: list[Finding] = []
    try:
        found.extend(findings())
    except Exception as error:  # noqa: BLE001 - the guard of the rules
        found.append(failed(error))
    return tuple(found)


def guarded_each(
    rules: Iterable[R],
    findings: Callable[[R], Iterator[Finding]],
    failed: Callable[[R, Exception], Finding],
) -> list[Finding]:
    """The same for many rules at once, in their order."""
    found: list[Finding] = []
    for rule in rules:
        try:
            found.extend(findings(rule))
        except Exception as error:  # noqa: BLE001 - the guard of the rules
            found.append(failed(rule, error))
    return found
