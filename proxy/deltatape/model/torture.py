"""The results of running a command with varied tapes."""

import enum
from dataclasses import dataclass


class RunVerdict(enum.StrEnum):
    """The result of one run."""

    SAME = "same"
    """The outcome equals that of the unchanged tape."""
    REPORTED = "told"
    """The stream was broken, and the command said so."""
    DIFFERS = "differs"
    """The stream was complete, and the outcome is another one."""
    SWALLOWED = "swallowed"
    """The stream was broken, the outcome differs, and no error is reported."""
    HANGS = "hangs"
    """No end within the deadline."""
    DIES = "dies"
    """A signal ended it that deltatape did not send."""
    REFUSED = "refused"
    """The user's oracle rejected the run."""
    NO_PLACE = "no-place"
    """The variation has no place in this exchange: nothing was run."""

    @property
    def passes(self) -> bool:
        return self in {RunVerdict.SAME, RunVerdict.REPORTED, RunVerdict.NO_PLACE}


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixRow:
    """A variation that was tried: a row of the matrix."""

    name: str
    harmless: bool
    summary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixCell:
    """The verdict on the command with one variation of one exchange."""

    variation: str
    harmless: bool
    exchange: str
    """Its column: `#2`, or `x.tape#2` if there are several tapes; `all` for all at once."""
    verdict: RunVerdict
    why: str = ""
    """The reason in a few words; "" for `no-place`, and for `same` without a retry."""
    seed: int | None = None
    """The first seed with which it failed; None without failure, or if nothing is random."""
    seconds: float = 0.0
    """The duration of the run that gave the verdict."""
    runs: int = 0
    reproduce: str = ""
    """The command line that runs this cell alone; "" for one that passed."""
    kept: str = ""
    """The tape written for it; "" for none."""
    printed: str = ""
    """The end of what the command printed; "" for one that passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TortureResult:
    """The result of all runs."""

    command: tuple[str, ...]
    tapes: tuple[str, ...]
    columns: tuple[str, ...]
    """The exchanges that the command requested."""
    idle: tuple[str, ...]
    """The exchanges that it did not request, which could not be varied."""
    rows: tuple[MatrixRow, ...]
    cells: tuple[MatrixCell, ...]
    """In the order of rows and columns."""
    problem: str = ""
    """Why nothing was tried: the problem with the unchanged tapes."""
    printed: str = ""
    """The end of what the command printed then."""
    runs: int = 0
    seconds: float = 0.0

    @property
    def failed(self) -> tuple[MatrixCell, ...]:
        """The cells whose runs failed."""
        return tuple(cell for cell in self.cells if not cell.verdict.passes)

    @property
    def passes(self) -> bool:
        """Whether every run passed."""
        return not self.problem and not self.failed
