"""X001: a rule failed."""

import traceback
from typing import ClassVar

from deltatape.model.finding import Confidence, Finding, Severity
from deltatape.rules._base import Documented
from deltatape.rules.evidence import excerpt


class InternalError:
    """A rule of deltatape failed on this exchange.

    ## What it does
    Stands in for a rule that raised an exception. The other rules have run.

    ## Why is this bad
    This rule has said nothing about the exchange, and silence must not look like health. It is a
    defect of deltatape.

    ## Example
    ```
    X001 internal-error: the rule T008 failed: IndexError: list index out of range
    ```

    ## Fix
    Report it with the tape, if you may share what it holds. Until then, `--ignore` the rule it
    names.

    ## References
    - https://docs.python.org/3/library/traceback.html
    """

    code: ClassVar[str] = "X001"
    name: ClassVar[str] = "internal-error"
    severity: ClassVar[Severity] = Severity.ERROR

    def report(self, rule: Documented, tape: str, exchange: int, error: Exception) -> Finding:
        """The finding for `rule` having raised `error`; the innermost frames are the evidence."""
        frames = traceback.extract_tb(error.__traceback__)[-3:]
        where = " < ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(frames))
        return Finding(
            code=self.code,
            name=self.name,
            severity=self.severity,
            blame=None,
            confidence=Confidence.PROVEN,
            message=excerpt(f"the rule {rule.code} failed: {type(error).__name__}: {error}"),
            hint="a defect of deltatape: report it with the tape, if you may share what it holds",
            tape=tape,
            line=None,
            exchange=exchange,
            event=None,
            span=None,
            t_ns=None,
            evidence=excerpt(where),
        )
