"""`torture --oracle CMD`: a command of the user's that judges a run.

CMD goes through the shell. On its standard input is a JSON document with the outcome of the run and
that of the tapes as they are; exit code 0 says that the run is as it should be, any other that it
is not, and the last line that it prints says why. It has as long as a run may take. By 126 and 127
the shell says that there is no such command, or none that can be run: that judges nothing.
"""

import asyncio
import contextlib
import os
import signal
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from deltatape.child.child import CANNOT_RUN, NOT_FOUND
from deltatape.errors import DeltatapeError, UsageError
from deltatape.model.torture import Verdict
from deltatape.player.playing import Report
from deltatape.render.json_document import document
from deltatape.rules.evidence import excerpt
from deltatape.trials.torture_judge import Judged
from deltatape.trials.trial import Outcome

_SHOWN = 120
_MOST = 1 << 16
"""Bytes of what it prints that are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Oracle:
    """The command, for `sh -c`, and what it needs."""

    command: str
    environ: Mapping[str, str]
    folder: Path
    limit_s: float

    async def judged(
        self, outcome: Outcome, standard: Outcome, *, variation: str, harmless: bool
    ) -> Judged:
        """What the command says of `outcome`.

        Args:
            outcome: of the run in question.
            standard: of the tapes as they are.
            variation: what was played; "" for the tapes as they are.
            harmless: whether it should make no difference.

        Raises:
            UsageError: the command cannot be run.
            DeltatapeError: it does not come to an end.
        """
        told = document(
            variation=variation,
            harmless=harmless,
            outcome=_outcome(outcome),
            recorded=_outcome(standard),
        )
        code, said = await self._ask(told)
        if code == 0:
            return Judged(Verdict.SAME if harmless else Verdict.TOLD, "the oracle agrees")
        last = said.strip().splitlines()[-1:] or [f"exit code {code}"]
        why = excerpt(last[0], _SHOWN)
        if code in (CANNOT_RUN, NOT_FOUND):
            raise UsageError(f"--oracle {self.command!r}: cannot be run: {why}")
        return Judged(Verdict.REFUSED, f"the oracle: {why}")

    async def _ask(self, told: str) -> tuple[int, str]:
        """The exit code of the command and what it prints; by files, which nobody can hold open."""
        with tempfile.TemporaryFile() as document, tempfile.TemporaryFile() as printed:
            document.write(told.encode())
            document.seek(0)
            process = await asyncio.create_subprocess_exec(
                *("/bin/sh", "-c", self.command),
                stdin=document,
                stdout=printed,
                stderr=asyncio.subprocess.STDOUT,
                env=dict(self.environ),
                cwd=self.folder,
                start_new_session=True,
            )
            try:
                code = await asyncio.wait_for(process.wait(), self.limit_s)
            except TimeoutError:
                raise DeltatapeError(
                    f"--oracle {self.command!r}: no answer after {self.limit_s:g} s"
                ) from None
            finally:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)  # and what it has left running
                await process.wait()
            printed.seek(0)
            return code, printed.read(_MOST).decode("utf-8", "replace")


def _outcome(outcome: Outcome) -> dict[str, object]:
    """A run as JSON."""
    return {
        "exit_code": outcome.exit_code,
        "signal": outcome.signal,
        "timed_out": outcome.timed_out,
        "seconds": round(outcome.seconds, 3),
        "stdout": outcome.stdout.decode("utf-8", "replace"),
        "stderr": outcome.stderr.decode("utf-8", "replace"),
        "report": _report(outcome.report),
    }


def _report(report: Report) -> dict[str, object]:
    played = (one.exchange for one in report.played)
    return {
        "played": [f"{one.tape}#{one.number}" for one in played],
        "missed": [one.message for one in report.missed],
        "unplayed": [f"{one.tape}#{one.number}" for one in report.unplayed],
    }
