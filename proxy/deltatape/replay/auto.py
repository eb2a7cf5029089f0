"""Plays a tape, and asks the provider for what is not on it: `--mode auto`.

Strategy: a request is collected, since only then it is known whether it is on
the tape. One that is gets its answer from the player; any other goes through a gateway, as under
`record`, and is taped beside. At the end what was taped goes onto the tape (`onto`).

A request that brings the placeholder key of `environment` is never forwarded: the provider
would refuse it, and that would be what is taped.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from deltatape import __version__
from deltatape.clock import Clock
from deltatape.environment.application import plan
from deltatape.environment.dotenv import read_dotenv
from deltatape.environment.known_secrets import known_secrets
from deltatape.errors import UsageError
from deltatape.gateway.analysis import Ended
from deltatape.gateway.dial import Dialler
from deltatape.gateway.forward import Forward
from deltatape.gateway.gateway import Gateway
from deltatape.gateway.outbound import Outbound
from deltatape.gateway.recorder import Recorder
from deltatape.gateway.routes import Refusal, Routes, Upstream, parse_upstream
from deltatape.gateway.tapes import TapeBook
from deltatape.http1.answer import error_answer
from deltatape.http1.head import Fields, RequestHead, waits_to_continue, write_response
from deltatape.http1.listener import Address, Listener
from deltatape.http1.server import Handler, ServerConnection
from deltatape.match.place import shown
from deltatape.match.request import Asking, Miss
from deltatape.model.exchange import Exchange, Source
from deltatape.player.play import Play, joined
from deltatape.player.player import Player
from deltatape.player.playing import Missed, Playing, Report, Told
from deltatape.replay.environment import PLACEHOLDER, placeholders
from deltatape.replay.onto import Beside, Recorded
from deltatape.store.writer import TapeWriter
from deltatape.tape.mask import Masker

REASON = "replayed"
"""Why the recording ended, for its tape."""
_SHORTLY_NS = 1_000_000_000
"""When a connection ends may be known before why."""
_NO_RETRY = ((b"x-should-retry", b"false"),)
_NO_KEY = (
    "not on the tape, and there is no key to ask the provider with: set its variable, such as"
    " OPENAI_API_KEY"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """How providers are reached, and how what they say is taped.

    Attributes:
        upstreams: the user's own.
        outbound: the way out of this machine.
        environment: the application's: variables that point elsewhere become upstreams.
        folder: where the application runs; its `.env` files count as the environment does.
        mask_key: for the hashes of credentials.
        clock: for times on the tape.
        say: gets lines for the user.
    """

    upstreams: tuple[Upstream, ...]
    outbound: Outbound
    environment: Mapping[str, str]
    folder: Path
    mask_key: bytes
    clock: Clock
    say: Callable[[str], None]


class AutoPlayer:
    """A `playback.Machine`; see `http1.server.Owner` and `gateway.recorder.Observer`."""

    def __init__(
        self,
        tape: Path,
        exchanges: Sequence[Exchange],
        playing: Playing,
        tell: Callable[[Told], None],
        ways: Ways,
    ) -> None:
        """A player that does not listen yet.

        Args:
            tape: what is recorded goes there; need not exist.
            exchanges: what is on it.
            playing: how they are played.
            tell: called when a request was matched, or got no answer at all.
            ways: for the rest.

        Raises:
            UsageError: nothing can be recorded onto the tape.
        """
        self.listener = Listener()
        self.recorded = Recorded()
        """What became of the recordings; once it was stopped."""
        self.forwarded = 0
        """How many requests went to the provider so far."""
        self._beside = Beside(tape)
        self._dotenv = read_dotenv(ways.folder, ways.environment)
        self._secrets = known_secrets(ways.environment, self._dotenv)
        self._player = Player(exchanges, tell, replace(playing, secrets=self._secrets))
        self._exchanges = tuple(exchanges)
        self._tell = tell
        self._ways = ways
        self._missed: list[Missed] = []
        self._asking = Asking(method="", target=b"", body=b"")
        self._folder: Path | None = None
        self._recorder: Recorder | None = None
        self._gateway: Gateway | None = None
        self._cut_ns: dict[str, int] = {}

    # A `playback.Machine`.

    async def start(self, address: Address) -> None:
        """Listen.

        Raises:
            UsageError: the address cannot be had, an upstream is it, or nothing can be written.
        """
        await self.listener.open(address, lambda: ServerConnection(self))
        try:
            self._set_up()
        except UsageError:
            await self.stop()
            raise

    def _set_up(self) -> None:
        ways = self._ways
        masker = Masker(ways.mask_key)
        for secret in self._secrets:
            masker.learn(secret)
        planned = plan(self.listener.url, ways.environment, self._dotenv, ways.upstreams)
        routes = Routes((*ways.upstreams, *map(parse_upstream, planned.upstreams)))
        for left in self._beside.leftovers():
            ways.say(
                f"note: {left}: recorded by a run that was killed, and on no tape:"
                f" deltatape splice {left}/*.tape -o NEW.tape makes one of it, rm -r ends it"
            )
        self._folder = self._beside.make()
        self._recorder = Recorder(TapeBook(self._create, masker), masker, ways.clock, self)
        self._recorder.start()
        self._gateway = Gateway(self._recorder, routes, Dialler(ways.outbound, ways.clock).dial)
        # It is this listener that its clients come through.
        self._gateway.listener.address = self.listener.address
        self._player.listener.address = self.listener.address
        self._gateway.refuse_loops(self.listener.address)

    def _create(self, name: str | None) -> TapeWriter:
        assert self._folder is not None
        return TapeWriter.create(
            self._folder,
            name or "new",
            clock=self._ways.clock,
            tool=f"deltatape {__version__}",
            source=Source.GATEWAY,
            alarm=self.alarm,
        )

    async def stop(self, *, grace_s: float = 0.0) -> None:
        """Accept nothing more, let what is under way end for `grace_s`, finish the tape.

        Raises:
            UsageError: what was recorded could not be put onto the tape; the message says where
                it is.
        """
        self.listener.close()
        await self._player.stop(grace_s=grace_s)
        recorder, self._recorder = self._recorder, None
        if recorder is None:
            return
        taps = () if self._gateway is None else (self._gateway,)
        await recorder.stop(taps, REASON, None, grace_s=grace_s)
        if self._folder is not None:
            self.recorded = self._beside.take(self._folder, self._ways.clock, self._cut_ns)
            self._conclude()

    def ending(self) -> None:
        """The application is being ended: answers that it leaves from now on are cut by that."""
        if self._recorder is not None and not self._cut_ns:
            self._cut_ns = {
                Path(tape.path).name: tape.writer.now_ns() - _SHORTLY_NS
                for tape in self._recorder.book.written()
            }

    def _conclude(self) -> None:
        for exchange in self.recorded.kept:
            status = exchange.response.status if exchange.response else 0
            where = f"{exchange.tape}#{exchange.number}"
            request = exchange.request
            self._ways.say(f"recorded {where} {request.method} {request.path} ({status})")
        for exchange, why in self.recorded.left_out:
            request = exchange.request
            asking = Asking(method=request.method, target=request.target_bytes, body=b"")
            self._miss(asking, f"not put onto the tape: {why}")

    @property
    def report(self) -> Report:
        """What became of the requests so far; of those that went to the provider what failed."""
        report = self._player.report
        return replace(report, missed=(*report.missed, *self._missed))

    def environment(self, url: str) -> Mapping[str, str]:
        """The complete environment of an application, when this listens at `url`."""
        ways = self._ways
        planned = plan(url, ways.environment, self._dotenv, ways.upstreams)
        added = placeholders(self._exchanges, ways.environment, self._dotenv)
        return {**ways.environment, **planned.variables, **added}

    # What connections ask (`http1.server.Owner`).

    def handler(self, connection: ServerConnection) -> Handler:
        """See `Owner.handler`."""
        return Collect(self, connection)

    def opened(self, connection: ServerConnection) -> None:
        """See `Owner.opened`."""
        self.listener.opened(connection)
        if self._gateway is not None:
            self._gateway.opened(connection)

    def closed(self, connection: ServerConnection) -> None:
        """See `Owner.closed`."""
        self.listener.closed(connection)
        if self._gateway is not None:
            self._gateway.closed(connection)

    def refused_bytes(self, problem: str) -> bytes:
        """See `Owner.refused_bytes`."""
        return self._player.refused_bytes(problem)

    # What requests ask.

    @property
    def longest(self) -> int:
        """See `Chooser.longest`."""
        return self._player.longest

    def refused_answer(self, head: RequestHead) -> bytes | None:
        """See `Chooser.refused_answer`."""
        return self._player.refused(head)

    def choose(self, head: RequestHead, body: bytes, client: ServerConnection) -> Handler | bytes:
        """See `Chooser.choose`."""
        assert self._gateway is not None
        asking = Asking(method=head.method, target=head.target, body=body)
        found = self._player.find(asking)
        asking = replace(asking, body=b"")  # the report does without
        if isinstance(found, Exchange):
            return Play(_Found(self._player, found), client)
        if _brings_placeholder(head):
            self._miss(asking, _NO_KEY)
            return error_answer(403, "no_key", _NO_KEY, fields=_NO_RETRY)
        self._asking = asking
        target = shown(head.target, hide=self._player.hide)
        self._ways.say(f"asking the provider: {head.method} {target}: {_why(found)}")
        self.forwarded += 1
        return Forward(self._gateway, client)

    def _miss(self, asking: Asking, problem: str) -> None:
        miss = Miss(nearest=None, problem=problem, differences=())
        hide = self._player.hide
        problem = hide(problem)
        asking = replace(asking, target=shown(asking.target, hide=hide).encode())
        missed = Missed(asking=asking, miss=miss, nearest=None, message=problem)
        self._missed.append(missed)
        self._tell(missed)

    # What the recorder tells (`gateway.recorder.Observer`).

    def exchange(self, ended: Ended) -> None:
        """See `Observer.exchange`: told at the end, by its number on the tape."""

    def silence(self, ended: Ended) -> None:
        """See `Observer.silence`: of no interest, the tape goes on with the next run."""

    def refused(self, refusal: Refusal) -> None:
        """See `Observer.refused`."""
        self._miss(self._asking, refusal.message)

    def alarm(self, problem: str) -> None:
        """See `Observer.alarm`."""
        self._ways.say(f"TAPING IN TROUBLE: {problem}")


class _Found:
    """A `play.Shelf` for a request whose exchange is known already."""

    def __init__(self, player: Player, exchange: Exchange) -> None:
        self.hold_s = player.hold_s
        self.renditions = player.renditions
        self.unread = player.unread
        self.longest = player.longest
        self.refused = player.refused
        self.begun = player.begun
        self.ended = player.ended
        self.missed = player.missed
        self.continues = player.continues
        self._exchange = exchange

    def find(self, asking: Asking, play: Play) -> Exchange | Miss:  # noqa: ARG002 - asked before
        """See `Shelf.find`."""
        return self._exchange


def _brings_placeholder(head: RequestHead) -> bool:
    key = PLACEHOLDER.encode()
    return key in head.target or any(key in value for _, value in head.fields)


def _why(miss: Miss) -> str:
    if miss.nearest is None:
        return "nothing is recorded yet"
    if not miss.differences:
        return miss.problem
    first = miss.differences[0]
    return f"{miss.problem}; {first.path}: recorded {first.recorded}, received {first.received}"


# Collects a request until it is known who answers it.
#
# That is when it is whole, or when it is longer than any on the tape: then it goes on as it comes.
# A client that waits for `100 Continue` gets it from here, so that its field `Expect` is not on the
# tape of what is recorded.

_CONTINUE = write_response(100, b"Continue", ())


class Chooser(Protocol):
    """Knows who answers."""

    @property
    def longest(self) -> int:
        """Of the bodies that have to be whole, in bytes."""

    def refused_answer(self, head: RequestHead) -> bytes | None:
        """The answer to a request that must not be served; None: it may."""

    def choose(self, head: RequestHead, body: bytes, client: ServerConnection) -> Handler | bytes:
        """Who answers a request, or the answer; a body of more than `longest` is its beginning."""


class Collect:
    """One request; see `http1.server.Handler`."""

    def __init__(self, owner: Chooser, client: ServerConnection) -> None:
        self._owner = owner
        self._client = client
        self._head: RequestHead | None = None
        self._body: bytes | bytearray = b""
        self._answerer: Handler | None = None

    def on_request(self, head: RequestHead) -> None:
        """See `Handler.on_request`."""
        refusal = self._owner.refused_answer(head)
        if refusal is not None:
            self._end(refusal)
            return
        if waits_to_continue(head):
            self._client.write(_CONTINUE)
        fields = tuple(pair for pair in head.fields if pair[0].lower() != b"expect")
        self._head = replace(head, fields=fields)

    def on_body(self, data: bytes) -> None:
        """See `Handler.on_body`."""
        if self._answerer is not None:
            self._answerer.on_body(data)
            return
        self._body = joined(self._body, data)
        if len(self._body) > self._owner.longest:
            self._choose()

    def on_request_end(self, trailers: Fields) -> None:
        """See `Handler.on_request_end`."""
        answerer = self._answerer or self._choose()
        if answerer is not None:
            answerer.on_request_end(trailers)

    def _choose(self) -> Handler | None:
        """Hand on what has come; None: it has been answered."""
        assert self._head is not None
        body, self._body = bytes(self._body), b""
        chosen = self._owner.choose(self._head, body, self._client)
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
        """See `Handler.on_writable`."""
        if self._answerer is not None:
            self._answerer.on_writable(writable=writable)

    def on_client_lost(self, *, was_reset: bool) -> None:
        """See `Handler.on_client_lost`."""
        if self._answerer is not None:
            self._answerer.on_client_lost(was_reset=was_reset)
