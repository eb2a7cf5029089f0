"""Play a tape, and record what is not on it from the provider: `--mode auto`.

Strategy: a request is read completely to find out whether it is on the tape. If so, the player
answers it; if not, it goes through a gateway, as in `record`, and is taped separately. At the end
the new recordings are added to the tape (`StagingTape`).

A request with the placeholder key of `environment` is never forwarded: the provider would refuse
it, and the refusal would be taped.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from pathlib import Path

from deltatape.clock import Clock
from deltatape.environment.application import plan
from deltatape.environment.clients import started_clients
from deltatape.environment.dotenv import read_dotenv
from deltatape.environment.known_secrets import known_secrets
from deltatape.errors import UsageError
from deltatape.gateway.dial import Connector
from deltatape.gateway.gateway import ExchangeForwarder, Gateway, TapPolicy, stop_recording
from deltatape.gateway.outbound import OutboundSettings
from deltatape.gateway.recorder import Recorder
from deltatape.gateway.routes import Refusal, Routes, Upstream, parse_upstream
from deltatape.gateway.tapes import TapeBook
from deltatape.http1.head import (
    Fields,
    ParsedRequestHead,
    error_answer,
    expects_continue,
    write_response,
)
from deltatape.http1.listener import Address, Listener
from deltatape.http1.server import Handler, ServerConnection
from deltatape.match.endpoint import shown
from deltatape.match.request import MatchQuery, NoMatch
from deltatape.model.exchange import EndReason, Exchange, Source
from deltatape.player.play import PlayHandler, joined, query_of
from deltatape.player.play_options import MissedRequest, PlayOptions, PlayReport, RequestOutcome
from deltatape.player.player import NO_RETRY, Player
from deltatape.replay.environment import PLACEHOLDER, placeholders
from deltatape.store.names import SUFFIX
from deltatape.store.reader import open_tape
from deltatape.store.splice import SpliceSource, splice
from deltatape.store.tape_file import WriterThread
from deltatape.store.writer import TapeWriter
from deltatape.tape.mask import Masker

REASON = "replayed"
"""Why the recording ended, for its tape."""
_SHORTLY_NS = 1_000_000_000
"""When a connection ends may be known before why."""
_CONTINUE = write_response(100, b"Continue", ())
_NO_KEY = (
    "not on the tape, and there is no API key to send it to the provider; set the provider's"
    " variable, such as OPENAI_API_KEY"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderRoutes:
    """How to reach providers and how to tape them.

    Attributes:
        upstreams: the user's own.
        outbound: the way out of this machine.
        environment: the application's: variables that point elsewhere become upstreams.
        folder: where the application runs; its `.env` files count as the environment does.
        command: what starts it, if that is known.
        led: whether mitmproxy redirects requests to a host here, so that no base URL is set; None
            with base URLs.
        mask_key: for the hashes of credentials.
        clock: for times on the tape.
        say: gets lines for the user.
    """

    upstreams: tuple[Upstream, ...]
    outbound: OutboundSettings
    environment: Mapping[str, str]
    folder: Path
    mask_key: bytes
    clock: Clock
    say: Callable[[str], None]
    command: tuple[str, ...] = ()
    led: Callable[[str], bool] | None = None


class AutoPlayer:
    """See `playback.ReplayServer`, `http1.server.ServerOwner`, `recorder.RecorderObserver`."""

    def __init__(
        self,
        tape: Path,
        exchanges: Sequence[Exchange],
        playing: PlayOptions,
        tell: Callable[[RequestOutcome], None],
        ways: ProviderRoutes,
    ) -> None:
        """Create a player; call `start` to listen.

        Args:
            tape: where recordings are added; need not exist.
            exchanges: what is on it.
            playing: how they are played.
            tell: called when a request was matched, or could not be answered.
            ways: how requests reach providers.

        Raises:
            UsageError: nothing can be recorded onto the tape.
        """
        self.listener = Listener()
        self.recorded = RecordingResult()
        """The result of recording; set after the stop."""
        self.forwarded = 0
        """How many requests went to the provider so far."""
        self._staging = StagingTape(tape)
        self._dotenv = read_dotenv(ways.folder, ways.environment)
        self._secrets = known_secrets(ways.environment, self._dotenv)
        self._player = Player(exchanges, tell, replace(playing, secrets=self._secrets))
        self._exchanges = tuple(exchanges)
        self._tell = tell
        self._ways = ways
        self._missed: list[MissedRequest] = []
        self._forwarding: ParsedRequestHead | None = None
        """The last request that went to the gateway, which refuses it at once or never."""
        self._folder: Path | None = None
        self._recorder: Recorder | None = None
        self._gateway: Gateway | None = None
        self._cut_ns: dict[str, int] = {}

    # A `playback.ReplayServer`.

    async def start(self, address: Address) -> None:
        """Listen.

        Raises:
            UsageError: the address is not available or is an upstream's, or no file can be written.
        """
        await self.listener.open(address, lambda: ServerConnection(self))
        try:
            self._open_gateway()
        except UsageError:
            await self.stop()
            raise

    def _open_gateway(self) -> None:
        """Create what records: a gateway that takes its clients from our listener."""
        ways = self._ways
        masker = Masker(ways.mask_key)
        for secret in self._secrets:
            masker.learn(secret)
        planned = plan(self.listener.url, ways.environment, self._dotenv, ways.upstreams)
        routes = Routes((*ways.upstreams, *map(parse_upstream, planned.upstreams)))
        for left in self._staging.leftovers():
            ways.say(
                f"note: {left}: recordings of a killed run that are not on the tape yet;"
                f" deltatape splice {left}/*.tape -o NEW.tape keeps them, rm -r {left} deletes them"
            )
        folder = self._folder = self._staging.make()

        def create(name: str | None, thread: WriterThread) -> TapeWriter:
            stem, clock = name or "new", ways.clock
            return TapeWriter.create(folder, stem, clock=clock, alarm=self.alarm, thread=thread)

        self._recorder = Recorder(TapeBook(create, masker), masker, ways.clock, self)
        self._recorder.start()
        dial = Connector(ways.outbound, ways.clock).dial
        self._gateway = Gateway(self._recorder, routes, dial, TapPolicy(led=ways.led))
        self._gateway.listener.address = self.listener.address
        self._player.listener.address = self.listener.address
        self._gateway.refuse_loops(self.listener.address)

    async def stop(self, *, grace_s: float = 0.0) -> None:
        """Stop listening, let open answers end for `grace_s`, then finish the tape.

        Raises:
            UsageError: recordings could not be added to the tape; the message has their path.
        """
        self.listener.close()
        await self._player.stop(grace_s=grace_s)
        recorder, self._recorder = self._recorder, None
        if recorder is None:
            return
        taps = () if self._gateway is None else (self._gateway,)
        await stop_recording(recorder, taps, REASON, grace_s=grace_s)
        if self._folder is not None:
            self.recorded = self._staging.splice(self._folder, self._ways.clock, self._cut_ns)
        for exchange in self.recorded.kept:
            status = exchange.response.status if exchange.response else 0
            where = f"{exchange.tape}#{exchange.number}"
            request = exchange.request
            self._ways.say(f"recorded {where} {request.method} {request.path} ({status})")
        for exchange, why in self.recorded.left_out:
            request = exchange.request
            self._miss(request.method, request.target_bytes, f"not added to the tape: {why}")

    def ending(self) -> None:
        """Note that the application is being ended, which cuts its answers from now on."""
        if self._recorder is not None and not self._cut_ns:
            self._cut_ns = {
                Path(tape.path).name: tape.writer.now_ns() - _SHORTLY_NS
                for tape in self._recorder.book.written()
            }

    @property
    def report(self) -> PlayReport:
        """Return the requests so far; of those sent to the provider only failed ones."""
        report = self._player.report
        return replace(report, missed=(*report.missed, *self._missed))

    def environment(self, url: str) -> Mapping[str, str]:
        """Return the complete environment of an application, when this listens at `url`."""
        ways = self._ways
        added = placeholders(self._exchanges, ways.environment, self._dotenv)
        if ways.led is not None:
            return {**ways.environment, **added}
        started = started_clients(ways.command, ways.folder, ways.environment)
        planned = plan(url, ways.environment, self._dotenv, ways.upstreams, started=started)
        return {**ways.environment, **planned.variables, **added}

    # Implements `http1.server.ServerOwner`, which connections call.

    def handler(self, connection: ServerConnection) -> Handler:
        return AutoHandler(self, connection)

    def opened(self, connection: ServerConnection) -> None:
        self.listener.opened(connection)
        if self._gateway is not None:
            self._gateway.opened(connection)

    def closed(self, connection: ServerConnection) -> None:
        self.listener.closed(connection)
        if self._gateway is not None:
            self._gateway.closed(connection)

    def refused_bytes(self, problem: str) -> bytes:
        return self._player.refused_bytes(problem)

    # What requests ask.

    @property
    def longest(self) -> int:
        return self._player.longest

    def refused_answer(self, head: ParsedRequestHead) -> bytes | None:
        return self._player.refused(head)

    def choose(
        self, head: ParsedRequestHead, body: bytes, client: ServerConnection
    ) -> Handler | bytes:
        """Return the handler or the answer; bodies longer than `longest` are truncated."""
        assert self._gateway is not None
        found = self._player.find(query_of(head, body))
        if isinstance(found, Exchange):
            return PlayHandler(self._player, client, found)
        if _brings_placeholder(head):
            self._miss(head.method, head.target, _NO_KEY)
            return error_answer(403, "no_key", _NO_KEY, fields=NO_RETRY)
        target = shown(head.target, hide=self._player.hide)
        self._ways.say(f"forwarding to the provider: {head.method} {target}: {_reason(found)}")
        self.forwarded += 1
        self._forwarding = head
        return ExchangeForwarder(self._gateway, client)

    def _miss(self, method: str, target: bytes, problem: str) -> None:
        miss = NoMatch(nearest=None, problem=problem, differences=())
        hide = self._player.hide
        problem = hide(problem)
        query = MatchQuery(method=method, target=shown(target, hide=hide).encode(), body=b"")
        missed = MissedRequest(query=query, miss=miss, nearest=None, message=problem)
        self._missed.append(missed)
        self._tell(missed)

    # What the recorder tells (`gateway.recorder.RecorderObserver`).

    def refused(self, refusal: Refusal) -> None:
        assert self._forwarding is not None
        self._miss(self._forwarding.method, self._forwarding.target, refusal.message)

    def alarm(self, problem: str) -> None:
        self._ways.say(f"TAPING IN TROUBLE: {problem}")

    def taping(self, *, works: bool) -> None:
        pass


def _brings_placeholder(head: ParsedRequestHead) -> bool:
    key = PLACEHOLDER.encode()
    return key in head.target or any(key in value for _, value in head.fields)


def _reason(miss: NoMatch) -> str:
    if miss.nearest is None:
        return "the tape has no request yet"
    if not miss.differences:
        return miss.problem
    first = miss.differences[0]
    return f"{miss.problem}; {first.path}: recorded {first.recorded}, received {first.received}"


class AutoHandler:
    """Collects a request until it is known who answers it; see `http1.server.Handler`.

    That is when it is complete, or longer than any on the tape: then it is forwarded as it comes. A
    client that waits for `100 Continue` gets it from here, so that `Expect` is not on the tape.
    """

    def __init__(self, player: AutoPlayer, client: ServerConnection) -> None:
        self._player = player
        self._client = client
        self._head: ParsedRequestHead | None = None
        self._body: bytes | bytearray = b""
        self._answerer: Handler | None = None

    def on_request(self, head: ParsedRequestHead) -> None:
        refusal = self._player.refused_answer(head)
        if refusal is not None:
            self._end(refusal)
            return
        if expects_continue(head):
            self._client.write(_CONTINUE)
        fields = tuple(pair for pair in head.fields if pair[0].lower() != b"expect")
        self._head = replace(head, fields=fields)

    def on_body(self, data: bytes) -> None:
        if self._answerer is not None:
            self._answerer.on_body(data)
            return
        self._body = joined(self._body, data)
        if len(self._body) > self._player.longest:
            self._choose()

    def on_request_end(self, trailers: Fields) -> None:
        answerer = self._answerer or self._choose()
        if answerer is not None:
            answerer.on_request_end(trailers)

    def _choose(self) -> Handler | None:
        """Choose a handler and pass on what has arrived; None if the request is answered."""
        assert self._head is not None
        body, self._body = bytes(self._body), b""
        chosen = self._player.choose(self._head, body, self._client)
        if isinstance(chosen, bytes):
            self._end(chosen)
            return None
        self._answerer = chosen
        chosen.on_request(self._head)
        if body:
            chosen.on_body(body)
        return chosen

    def _end(self, answer: bytes) -> None:
        self._client.write(answer)
        self._client.finish(keep_alive=False)

    def on_writable(self, *, writable: bool) -> None:
        if self._answerer is not None:
            self._answerer.on_writable(writable=writable)

    def on_client_lost(self, *, was_reset: bool) -> None:
        if self._answerer is not None:
            self._answerer.on_client_lost(was_reset=was_reset)


_NEW = ".new"
_TRIES, _PAUSE_S = 500, 0.02
_KEY_REFUSED = frozenset(
    {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.PROXY_AUTHENTICATION_REQUIRED}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingResult:
    """The result of adding recordings to a tape.

    Attributes:
        kept: the exchanges, as they are on the tape now.
        left_out: the exchanges that are not on it, each with the reason.
    """

    kept: tuple[Exchange, ...] = ()
    left_out: tuple[tuple[Exchange, str], ...] = ()


class StagingTape:
    """Adds what was recorded while a tape was played to that tape, all of it or nothing.

    Strategy: record into a hidden folder beside the tape, splice both into another hidden file, and
    rename that to the tape. After any failure or kill the tape is unchanged and the recordings are
    in the folder. Runs that end on one tape at the same time take turns.

    Requests that would make a test fail for ever are not added: those that the provider never
    answered, that were cut by the end of the run, or whose key was refused.
    """

    def __init__(self, tape: Path) -> None:
        """Check whether the tape can be extended.

        Args:
            tape: need not exist yet; a link means its file.

        Raises:
            UsageError: it cannot.
            TapeFormatError: it is damaged.
        """
        self._tape = tape = Path(os.path.realpath(tape)) if tape.is_symlink() else tape
        self._lock: int | None = None
        if tape.exists():
            found = open_tape(tape)
            if found.recording:
                raise UsageError(f"{tape}: still being recorded; stop its recorder first")
            if found.header.source is Source.IMPORT:
                raise UsageError(
                    f"{tape}: an imported tape has no times and no endings, so nothing can be added"
                    " to it; name a recorded tape or a new one"
                )

    def make(self) -> Path:
        """Create a new folder for it, private to its owner.

        Raises:
            UsageError: it cannot be created.
        """
        parent = self._tape.parent
        try:
            parent.mkdir(parents=True, exist_ok=True)
            folder = tempfile.mkdtemp(prefix=f".{self._tape.stem}.", suffix=_NEW, dir=parent)
            self._lock = _locked(folder)
            return Path(folder)
        except OSError as error:
            raise UsageError(
                f"{parent}: {error.strerror or error}; --mode auto needs a writable folder for the"
                " tape; --mode replay records nothing"
            ) from None

    def leftovers(self) -> tuple[Path, ...]:
        """Return folders that killed runs left with recordings; remove empty ones."""
        prefix = f".{self._tape.stem}."
        found: list[Path] = []
        for folder in sorted(self._tape.parent.glob(f".*{_NEW}")):
            if (
                not folder.name.startswith(prefix)
                or not folder.is_dir()
                or not _is_abandoned(folder)
            ):
                continue
            if any(folder.glob(f"*{SUFFIX}")):
                found.append(folder)
            else:
                shutil.rmtree(folder, ignore_errors=True)
        return tuple(found)

    def splice(
        self, folder: Path, clock: Clock, cut_ns: Mapping[str, int] | None = None
    ) -> RecordingResult:
        """Add the recordings in `folder` to the tape, and remove the folder.

        Args:
            folder: as `make` made it.
            clock: for the spliced tape.
            cut_ns: for tapes in `folder`, by name: when the application was ended, if it was.

        Raises:
            UsageError: it failed; the message names the folder, which is kept.
        """
        sources: list[SpliceSource] = []
        ids: set[str] = set()
        left_out: list[tuple[Exchange, str]] = []
        for path in sorted(folder.glob(f"*{SUFFIX}")):
            tape, until = open_tape(path), (cut_ns or {}).get(path.name)
            bad = [(each, why) for each in tape.exchanges() if (why := _problem(each, until))]
            bad_numbers = {each.number for each, _ in bad}
            good = [each for each in tape.exchanges() if each.number not in bad_numbers]
            left_out += bad
            ids |= {exchange.id for exchange in good}
            if good:
                numbers = frozenset(exchange.number for exchange in good) if bad else None
                sources.append(SpliceSource(tape=tape, numbers=numbers))
        kept: list[Exchange] = []
        try:
            with _folder_lock(self._tape.parent):
                if sources:
                    self._put(sources, folder, clock)
                    kept += (each for each in open_tape(self._tape).exchanges() if each.id in ids)
        except UsageError as error:
            raise UsageError(f"{error}; what was recorded is in {folder}") from None
        finally:
            if self._lock is not None:
                os.close(self._lock)
                self._lock = None
        shutil.rmtree(folder, ignore_errors=True)
        kept.sort(key=lambda exchange: exchange.number)
        return RecordingResult(kept=tuple(kept), left_out=tuple(left_out))

    def _put(self, sources: list[SpliceSource], folder: Path, clock: Clock) -> None:
        tape = self._tape
        if not tape.exists():
            splice(sources, tape, clock)
            return
        output = folder / f"{tape.name}.spliced"
        splice([SpliceSource(tape=open_tape(tape)), *sources], output, clock)
        try:
            output.chmod(tape.stat().st_mode & 0o777)
            os.utime(output)  # it is the latest tape now
            output.replace(tape)
        except OSError as error:
            raise UsageError(f"{tape}: {error.strerror or error}") from None


@contextlib.contextmanager
def _folder_lock(folder: Path) -> Iterator[None]:
    """Lock the tapes in `folder` against others that add to them, if its file system has locks.

    A lock that is held for longer belongs to no run of ours, but perhaps to its parent, such as
    flock(1): then continue, and let `splice` detect changes of the tape.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        for _ in range(_TRIES):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                threading.Event().wait(_PAUSE_S)
                continue
            except OSError:
                pass
            break
        yield
    finally:
        os.close(descriptor)


def _locked(folder: str | Path) -> int:
    """Return a descriptor that locks a folder for as long as this process lives.

    Raises:
        OSError: another process has the lock.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _is_abandoned(folder: Path) -> bool:
    """Return whether the process that created a folder is gone."""
    with contextlib.suppress(OSError):
        os.close(_locked(folder))
        return True
    return False


def _problem(exchange: Exchange, cut_ns: int | None) -> str:
    """Return why an exchange must not be added to a tape; "" if it may."""
    end, response = exchange.end, exchange.response
    if end is None or end.reason is EndReason.STOPPED:
        return "it was still in progress when the run ended"
    if end.reason is EndReason.CLIENT_CLOSED and cut_ns is not None and end.t_ns >= cut_ns:
        return "the application was stopped before it was complete"
    if response is None:
        return end.detail or "the provider did not answer"
    if end.recorder:
        return "it could not be recorded completely"
    if response.status in _KEY_REFUSED:
        return f"the provider rejected the API key (status {response.status})"
    return ""
