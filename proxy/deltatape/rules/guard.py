"""The one place where any exception is caught: a rule that fails must not silence the others."""

from collections.abc import Callable, Iterator

from deltatape.model.finding import Finding


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
