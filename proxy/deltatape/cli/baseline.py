"""The file of accepted findings: read, compared with what is found, written."""

import os
from pathlib import Path

from deltatape.cli.terminal import say
from deltatape.diagnose.baseline import Accepted, accepted, baseline_text, read_baseline
from deltatape.diagnose.check_tape import Reported
from deltatape.errors import UsageError
from deltatape.render.ci_log import inert_remark
from deltatape.rules.words import count

_SHOWN = 5


class Baseline:
    """What a file accepts, and how much of that was found."""

    def __init__(self, path: Path) -> None:
        """Read it.

        Raises:
            UsageError: it cannot be read, or is none.
        """
        try:
            text = path.read_text("utf-8")
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise UsageError(
                f"--baseline {path}: {reason}; deltatape check --write-baseline makes one"
            ) from None
        self._path = path
        self._accepted = {each.fingerprint: each for each in read_baseline(str(path), text)}
        self._known = 0
        self._seen: set[str] = set()

    def is_new(self, reported: Reported) -> bool:
        """Whether a finding is not accepted; those that are get counted."""
        if reported.fingerprint not in self._accepted:
            return True
        self._known += 1
        self._seen.add(reported.fingerprint)
        return False

    def tell(self) -> None:
        """Say how many were known, and which accepted ones do not occur any more."""
        gone = [each for print_, each in self._accepted.items() if print_ not in self._seen]
        are = "is" if self._known == 1 else "are"
        say(f"note: {self._path}: {count(self._known, 'finding')} {are} accepted")
        if gone:
            say(f"note: {self._path}: {count(len(gone), 'accepted finding')} did not occur:")
        for each in gone[:_SHOWN]:
            say(inert_remark(f"  {each.code} {each.name}, {each.request}: {each.message}"))
        if len(gone) > _SHOWN:
            say(f"  and {len(gone) - _SHOWN} more; --write-baseline drops them")


class NewBaseline:
    """Findings that are about to be accepted."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._accepted: set[Accepted] = set()

    def add(self, reported: Reported) -> None:
        """Accept a finding."""
        self._accepted.update(accepted([reported]))

    def write(self) -> None:
        """Write the file whole, or not at all.

        Raises:
            UsageError: it cannot be written.
        """
        draft = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        try:
            draft.write_text(baseline_text(sorted(self._accepted)), "utf-8")
            draft.replace(self._path)
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise UsageError(f"--write-baseline {self._path}: {error.strerror}") from None
        say(f"note: {self._path}: {count(len(self._accepted), 'finding')} accepted from now on")
