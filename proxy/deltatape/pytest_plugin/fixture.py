"""The fixture `tape`: the provider of a test."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from deltatape.environment.variables import ON_DEMAND, SERVED
from deltatape.model.exchange import Exchange
from deltatape.player.play_options import PlayReport, UnusedFault


class FixtureServer(Protocol):
    """The player or recorder of a test."""

    @property
    def url(self) -> str:
        """The URL where it listens: `http://127.0.0.1:8378`."""

    @property
    def report(self) -> PlayReport:
        """Return the results of the requests so far."""

    def cut(self) -> None:
        """End all playing exchanges and accept no more."""


@dataclass(slots=True, kw_only=True, eq=False)
class TapeFixture:
    """The provider of one test.

    Attributes:
        path: the tape, or the first of several. A recorded tape exists after the test.
        mode: `replay`, `record` or `auto`.
        variation: the torture variation, such as `cut-in-text`; "" without torture.
    """

    path: Path
    mode: str
    variation: str = ""
    machine: FixtureServer = field(repr=False)
    variables: Mapping[str, str] = field(repr=False)
    broken: Exchange | None = field(default=None, repr=False)
    """The exchange whose stream torture breaks."""
    recordable: bool = field(default=True, repr=False)
    """Whether it is a single complete tape, so that it can be recorded again."""
    change: str = field(default="", repr=False)
    """The variation, as a sentence; "" without torture."""
    deadline_s: float = field(default=0.0, repr=False)
    unused_faults: Callable[[], Sequence[UnusedFault]] = field(default=tuple, repr=False)
    """Faults that did not occur."""
    forwarded: Callable[[], int] = field(default=int, repr=False)
    """How many requests went to the provider so far."""
    asks_later: bool = field(default=False, repr=False)
    """Whether a fixture may send requests after the test."""
    holds: bool = field(default=False, repr=False)
    """Whether the test passed and matched its tape."""
    failure: str = field(default="", repr=False)
    """The failure added by the plugin to a test that passed by itself."""
    kept: Path | None = field(default=None, repr=False)
    """The tape that was recorded."""
    ended: Path | None = field(default=None, repr=False)
    """The tape, if it ended before a test that avoided the app's mistake on it."""
    attempt: Path | None = field(default=None, repr=False)
    """The recording of a failed test."""

    @property
    def hostile(self) -> bool:
        """Whether torture breaks the stream, so that the application has to raise an error."""
        return self.broken is not None

    @property
    def report(self) -> PlayReport:
        """Return what was played, missed and not requested so far."""
        return self.machine.report

    def url(self, provider: str = "") -> str:
        """Return a base URL in the provider's SDKs' form: for openai it ends in `/v1`.

        Args:
            provider: `openai`, `anthropic`, or any other prefix; none: without any path.
        """
        if not provider:
            return self.machine.url
        names = {**ON_DEMAND, **SERVED}.get(provider, {})
        known = (self.variables[name] for name in names if name in self.variables)
        return next(known, f"{self.machine.url}/{provider}")
