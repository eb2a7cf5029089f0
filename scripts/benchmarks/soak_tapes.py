"""Takes the tapes of a long run as they end, reads them whole, and deletes them.

That is what somebody does who ships tapes elsewhere; it keeps the disk from filling. A tape is
moved before it is read, since a recorder with `--keep` may rename or delete one that has ended.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.soak_tally import Tallies, difference
from benchmarks.traffic import PLAN, Plan, decode_plan
from deltatape.errors import DeltatapeError
from deltatape.model.exchange import EndReason, Exchange, header
from deltatape.store.reader import open_tape
from deltatape.store.ring import is_finished

_LIMIT_S = 1800
_AT_ONCE = 100
"""How many tapes one `deltatape fsck` checks."""


class TakenTapes:
    """The tapes that have been taken from a folder.

    Attributes:
        tallies: of the exchanges on them.
        tapes: how many.
        size: of them, in bytes.
    """

    def __init__(self, folder: Path) -> None:
        self.tallies = Tallies()
        self.tapes = self.size = 0
        self._folder = folder
        self._taken = folder.parent / "taken"
        self._taken.mkdir()

    def take(self, until_ns: int) -> None:
        """Take the tapes that have ended, and were not written to since `until_ns`."""
        paths = list(self._moved(until_ns))
        for path in paths:
            self._read(path)
            self.tapes += 1
            self.size += path.stat().st_size
        for at in range(0, len(paths), _AT_ONCE):
            self._check(paths[at : at + _AT_ONCE])
        for path in paths:
            path.unlink()

    def _moved(self, until_ns: int) -> Iterator[Path]:
        for path in sorted(self._folder.glob("*.tape")):
            try:
                if path.stat().st_mtime_ns <= until_ns and is_finished(path):
                    yield path.rename(self._taken / path.name)
            except FileNotFoundError:  # renamed meanwhile; the next time
                continue

    def _read(self, path: Path) -> None:
        try:
            for exchange in open_tape(path):
                self._count(exchange)
        except DeltatapeError as error:
            self.tallies.fault(str(error))

    def _count(self, exchange: Exchange) -> None:
        name, end = f"{Path(exchange.tape).name}#{exchange.number}", exchange.end
        if end is None:
            self.tallies.fault(f"{name} has no ending")
            return
        if end.recorder:
            self.tallies.fault(f"{name} lacks records: {end.recorder}")
        content = exchange.body
        left = end.reason is EndReason.CLIENT_CLOSED
        differs = difference(_plan_of(exchange), content, whole=not left)
        if differs:
            self.tallies.fault(f"{name}: the body {differs}")
        self.tallies.add(end.reason, content)

    def _check(self, paths: list[Path]) -> None:
        try:
            result = subprocess.run(
                [sys.executable, "-m", "deltatape", "fsck", *paths],
                capture_output=True,
                text=True,
                timeout=_LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            self.tallies.fault(f"deltatape fsck took longer than {_LIMIT_S} s for a few tapes")
            return
        if result.returncode:
            self.tallies.fault(f"deltatape fsck: {(result.stdout + result.stderr).strip()[-600:]}")


def _plan_of(exchange: Exchange) -> Plan:
    return decode_plan(header(exchange.request.headers, PLAN.decode()) or b"")
