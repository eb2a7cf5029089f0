"""Records for one test, and keeps the tape of a test that passes.

Strategy: the recording goes to its own folder in `.deltatape/`. If the test passes, a copy is
redacted and searched for secrets as by `deltatape keep`, and moved into place atomically. So the
tape beside a test is never incomplete, never has a secret, and never comes from a failed test; that
recording stays in `.deltatape/`, for `deltatape why`.
"""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from deltatape.clock import SystemClock
from deltatape.errors import UsageError
from deltatape.gateway.outbound import outbound_from
from deltatape.gateway.routes import parse_upstream
from deltatape.model.exchange import Exchange
from deltatape.player.play_options import RequestOutcome
from deltatape.pytest_plugin.fixture import TapeFixture
from deltatape.pytest_plugin.marker_options import MARKER, MarkerOptions, options_of
from deltatape.pytest_plugin.replaying import as_recorded, environment
from deltatape.pytest_plugin.tape_paths import exchanges_at, shown
from deltatape.redact.audit import ProblemKind
from deltatape.replay.auto import AutoPlayer, ProviderRoutes
from deltatape.replay.playback import Playback
from deltatape.store.audit import audit
from deltatape.store.mask_key import mask_key
from deltatape.store.names import DEFAULT_FOLDER, prepare_folder
from deltatape.store.reader import open_tape
from deltatape.store.rewrite import SHARED, draft
from deltatape.tape.mask import Masker

AUTO, RECORD = "auto", "record"
NO_REQUEST = (
    "no request came; the base URL is read from the environment, or taken from the fixture,"
    " tape.url(...)"
)


@contextlib.contextmanager
def recording(item: pytest.Item, options: MarkerOptions, mode: str) -> Iterator[TapeFixture]:
    """Yield the fixture of a test that asks the provider.

    Args:
        item: the test.
        options: the options of its marker.
        mode: `record` for everything, `auto` for what is not on its tape.

    Raises:
        DeltatapeError: recording fails, or the tape cannot be kept.
    """
    tape = _single_tape(item, options, mode)
    work = _Work(tape)
    exchanges = work.begin_with(options) if mode == AUTO and tape.exists() else ()
    playing = as_recorded(options.marked)
    player = AutoPlayer(work.tape, exchanges, playing, _ignore, work.routes(options))
    with Playback(exchanges, playing, machine=player) as playback:
        variables = player.environment(playback.url)
        with environment(variables):
            fixture = TapeFixture(
                path=tape,
                mode=mode,
                machine=playback,
                variables=variables,
                forwarded=lambda: player.forwarded,
            )
            yield fixture
        playback.cut()
    made = player.recorded
    if made.kept and fixture.holds and not made.left_out:
        work.keep()
        fixture.kept = tape
    elif made.kept:
        fixture.attempt = work.tape
    if fixture.attempt is None:
        work.forget()
    nothing = NO_REQUEST if mode == RECORD and not made.kept else ""
    why = "; ".join(f"{one.request.path}: {reason}" for one, reason in made.left_out) or nothing
    if fixture.holds and why:
        raise UsageError(f"{shown(tape)}: not made: {why}")


def _single_tape(item: pytest.Item, options: MarkerOptions, mode: str) -> Path:
    """Return the one tape to record.

    Raises:
        UsageError: there are several, or one that belongs to several tests.
    """
    if len(options.places) > 1 or options.places[0].exchange is not None:
        raise UsageError(
            f"@pytest.mark.tape({', '.join(map(repr, options.marked.tapes))}): --tape-mode {mode}"
            " records one tape, whole; a test of several tapes, or of one exchange, is replayed"
        )
    tape = options.places[0].path
    if mode == RECORD and options.marked.tapes:
        for other in item.session.items:
            if other is not item and tape in _named(other):
                raise UsageError(
                    f"{shown(tape)}: is the tape of {other.nodeid}, too, and each of them would"
                    " record it anew; name one of them on the command line"
                )
    return tape


def _named(item: pytest.Item) -> frozenset[Path]:
    """Return the tapes that a readable marker names."""
    marker = item.get_closest_marker(MARKER)
    if marker is None or not marker.args:
        return frozenset()
    try:
        return frozenset(place.path for place in options_of(item, item.name).places)
    except UsageError:
        return frozenset()


class _Work:
    """The temporary place of a recording."""

    def __init__(self, target: Path) -> None:
        """Raise `UsageError` if it cannot be written."""
        home = Path.cwd() / DEFAULT_FOLDER
        self._target = target
        self._key = mask_key(os.environ, _ignore)
        self._before = _stamp(target)
        try:
            prepare_folder(home)
            folder = tempfile.mkdtemp(prefix=f"{target.stem}-", dir=home)
        except OSError as error:
            raise UsageError(
                f"{home}: {error.strerror}; recordings are made there, so it has to be writable"
            ) from None
        self.tape = Path(folder) / target.name

    def begin_with(self, options: MarkerOptions) -> tuple[Exchange, ...]:
        """Copy the tape so far, to add to it."""
        exchanges = exchanges_at(options.places)
        shutil.copyfile(self._target, self.tape)
        return exchanges

    def routes(self, options: MarkerOptions) -> ProviderRoutes:
        """Return the routes to providers.

        Raises:
            UsageError: an upstream or a variable for a proxy cannot be used.
        """
        return ProviderRoutes(
            upstreams=tuple(map(parse_upstream, options.marked.upstreams)),
            outbound=outbound_from(os.environ),
            environment=dict(os.environ),
            folder=Path.cwd(),
            mask_key=self._key,
            clock=SystemClock(),
            say=_ignore,
        )

    def keep(self) -> None:
        """Move the tape to its place.

        Raises:
            UsageError: it cannot be moved, or a secret is left on it; the message has its path.
        """
        try:
            self._put()
        except OSError as error:
            raise UsageError(f"{self._target}: {error.strerror}; {self._left()}") from None
        except UsageError as error:
            raise UsageError(f"{error}; {self._left()}") from None

    def _put(self) -> None:
        target = self._target.resolve()  # a link to a tape stays one
        target.parent.mkdir(parents=True, exist_ok=True)
        masker = Masker(self._key)
        done = draft(open_tape(self.tape), target.parent, masker, content=False, mode=SHARED)
        try:
            refuse_secrets(done.path, self._target)
            if _stamp(target) != self._before:
                raise UsageError(f"{shown(self._target)}: was changed by somebody else meanwhile")
            done.path.replace(target)
        finally:
            done.discard()

    def _left(self) -> str:
        return f"what was recorded is in {shown(self.tape)}"

    def forget(self) -> None:
        """Remove temporary files."""
        shutil.rmtree(self.tape.parent, ignore_errors=True)


def refuse_secrets(path: Path, target: Path) -> None:
    """Check that the tape at `path` can be committed as `target` without secrets.

    Raises:
        UsageError: there is a secret on it.
    """
    secrets = [one for one in audit(path).problems if one.kind is ProblemKind.SECRET]
    if secrets:
        raise UsageError(
            f"{shown(target)}: not made; after redaction there is still a secret on it, in line"
            f" {secrets[0].line}: {secrets[0].message}"
        )


def _stamp(path: Path) -> tuple[int, int] | None:
    """Return values that differ after a file was changed; None if there is no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def _ignore(what: RequestOutcome | str) -> None:
    """Ignore the event: the report covers it."""
