"""How a failed cell of torture can be had again: its command line, and its tape."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from deltatape import __version__
from deltatape.clock import SystemClock, rfc3339
from deltatape.errors import UsageError
from deltatape.model.exchange import Exchange, Source
from deltatape.store.ids import ulid
from deltatape.store.names import SUFFIX
from deltatape.store.rewrite import PRIVATE, write_new
from deltatape.tape.payload import Stop
from deltatape.tape.record import Header
from deltatape.tape.written import tape_lines
from deltatape.trials.torture_plan import ALL


@dataclass(frozen=True, slots=True, kw_only=True)
class Filing:
    """See `torture_rig.Filing`.

    Attributes:
        tapes: as the user named them.
        options: of the command line, those that a single cell needs, too.
        command: what is run.
        folder: where tapes are written; None: nowhere.
    """

    tapes: tuple[str, ...]
    options: tuple[str, ...]
    command: tuple[str, ...]
    folder: Path | None = None

    def line(self, variation: str, exchange: str, seed: int | None) -> str:
        """See `torture_rig.Filing.line`."""
        words = ["deltatape", "torture", *self.tapes, "--only", variation]
        if exchange != ALL:
            words += ["--exchange", exchange.removeprefix("#")]
        if seed is not None:
            words += ["--seed", str(seed), "--seeds", "1"]
        return shlex.join([*words, *self.options, "--", *self.command])

    def keep(self, name: str, exchanges: Sequence[Exchange]) -> str:
        """See `torture_rig.Filing.keep`.

        A tape of that name is replaced: a second run is about the same failures.

        Raises:
            UsageError: it cannot be written.
        """
        if self.folder is None:
            return ""
        path = self.folder / f"{name}{SUFFIX}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            write_new(path, PRIVATE, tape_lines(_header(exchanges), exchanges, _STOP))
        except OSError as error:
            raise UsageError(f"--keep {path}: {error.strerror or error}") from error
        return str(path)


_STOP = Stop(reason="varied", exit_code=None)


def _header(exchanges: Sequence[Exchange]) -> Header:
    clock = SystemClock()
    first = exchanges[0]
    # What was imported has no ending, and what varied it may have given it one.
    ended = any(exchange.end is not None for exchange in exchanges)
    return Header(
        id=ulid(clock),
        tool=f"deltatape {__version__}",
        recorded_at=first.recorded_at or rfc3339(clock.wall_ns()),
        source=Source.GATEWAY if ended else first.source,
    )
