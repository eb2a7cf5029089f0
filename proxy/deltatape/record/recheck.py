"""Send taped requests to a live provider again, and tape today's answers.

Strategy: start a recorder in front of the provider, so that today's answers are taped by the same
code and with the same precautions: no key is sent to another provider, no credential is on the new
tape. Requests are sent one after the other, because of the provider's rate limits.
"""

import asyncio
import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from deltatape.clock import Clock
from deltatape.compare.recheck import Recheck, compare_today
from deltatape.diagnose.rebuild import analyse
from deltatape.dialects import UNKNOWN, traits_of
from deltatape.environment.application import without_overlap
from deltatape.errors import UsageError
from deltatape.gateway.dial import Connector
from deltatape.gateway.gateway import Gateway, stop_recording
from deltatape.gateway.outbound import OutboundSettings
from deltatape.gateway.recorder import Recorder
from deltatape.gateway.routes import Refusal, Routes, Upstream
from deltatape.gateway.tapes import TapeBook
from deltatape.http1.head import end_to_end, field, write_request
from deltatape.http1.listener import Address
from deltatape.model.exchange import EndReason, Exchange, MaskedCredential, Request, Tap
from deltatape.model.reply import Reply
from deltatape.model.rule_settings import Settings
from deltatape.printable import count
from deltatape.providers import KEY_FIELDS, PROVIDERS, Provider, provider_of_host
from deltatape.store.reader import open_tape
from deltatape.store.rewrite import PRIVATE
from deltatape.store.tape_file import WriterThread
from deltatape.store.writer import TapeWriter
from deltatape.tape.mask import Masker
from deltatape.urls import split_url

_BLOCK = 1 << 16


# A recorded request as bytes that can be sent once more.
#
# A tape has no credentials. Those that stood in the request are put in again from the environment,
# under the names that the provider's SDKs read, as the application would. What else was masked
# (cookies, tokens of others) is left out and reported. So is what may be used once only:
# idempotency keys, signatures over a time.
#
# Source: the variables that the providers' SDKs document.

_SETTINGS = {
    name: variables for each in PROVIDERS.values() for name, variables in each.settings.items()
}
"""By header field, the variables that hold its value."""
_ONCE = frozenset(
    {
        b"connection",
        b"content-length",
        b"expect",
        b"host",
        b"idempotency-key",
        b"transfer-encoding",
        b"x-amz-content-sha256",
        b"x-amz-date",
        b"x-idempotency-key",
    }
)
_QUERY_KEY = (b"?key=", b"&key=")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecheckRequest:
    """A request to send."""

    data: bytes
    """Head and body; the connection ends after it."""
    left_out: tuple[str, ...]
    """Header fields that were masked and are not sent."""


def why_not(exchange: Exchange, upstream: Upstream, reply: Reply) -> str:
    """Return why `upstream` must not receive the request of `exchange`; "" if it may."""
    if exchange.tap is Tap.APP or reply.from_app:
        return "it was taken in front of the application"
    if reply.dialect == UNKNOWN:
        return "it is no request to a model that can be read"
    today = provider_of_host(upstream.origin.host)
    recorded = _recorded_provider(exchange.request)
    if today and recorded and today != recorded:
        return f"it went to {recorded}, and {upstream.origin.host} is {today}"
    return ""


def request_again(
    exchange: Exchange, upstream: Upstream, environment: Mapping[str, str], dialect: str
) -> RecheckRequest:
    """Return the request of `exchange` for a gateway in front of `upstream`.

    Args:
        exchange: recorded.
        upstream: where it is to be sent.
        environment: the environment of the application, with what its `.env` files add.
        dialect: the dialect of the exchange.

    Raises:
        UsageError: it is incomplete, or a credential is missing.
    """
    request = exchange.request
    _check_complete(exchange)
    # Whose key is needed: the hosts tell, else the dialect.
    by_host = provider_of_host(upstream.origin.host) or _recorded_provider(request)
    provider = by_host or traits_of(dialect).provider
    keys = _Keys(PROVIDERS.get(provider), environment)
    target = without_overlap(upstream.path, _target(request, keys))
    left_out = [name for name, value in _fields(request, keys) if value is None]
    fields = [(name, value) for name, value in _fields(request, keys) if value is not None]
    fields += [(b"Host", b"127.0.0.1"), (b"Connection", b"close")]
    if request.body:
        fields.append((b"Content-Length", b"%d" % len(request.body)))
    head = write_request(request.method, target.encode("latin-1"), tuple(fields))
    return RecheckRequest(
        data=head + request.body,
        left_out=tuple(name.decode("latin-1") for name in left_out),
    )


def _check_complete(exchange: Exchange) -> None:
    request = exchange.request
    fields = tuple((name, value) for name, value in request.headers if isinstance(value, bytes))
    length = field(fields, b"content-length") or b"%d" % len(request.body)
    untaped = any("left out on demand" in note.text for note in exchange.notes)
    if not request.method or request.t_end_ns is None or untaped:
        raise UsageError("its request is not complete on the tape")
    if length != b"%d" % len(request.body):
        taped, sent = len(request.body), length.decode("latin-1")
        raise UsageError(f"its request is not complete on the tape: {taped} of {sent} bytes")


def _recorded_provider(request: Request) -> str | None:
    return provider_of_host(split_url(request.upstream).hostname or "")


@dataclass(frozen=True, slots=True)
class _Keys:
    """The credentials of one provider."""

    provider: Provider | None
    environment: Mapping[str, str]

    def of(self, name: str, variables: tuple[str, ...]) -> str:
        """Return the credential for the field or parameter `name`.

        Raises:
            UsageError: none of `variables` is set.
        """
        found = self.first(variables)
        if found is None:
            needs = " or ".join(variables)
            known = f"set {needs}" if variables else "no variable is known that holds it"
            raise UsageError(f"{name} is masked on the tape, as it has to be; {known}")
        return found

    def first(self, variables: tuple[str, ...]) -> str | None:
        """Return the first of `variables` that is set."""
        return next((self.environment[v] for v in variables if self.environment.get(v)), None)

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that can hold the key."""
        return self.provider.keys if self.provider else ()

    @property
    def tokens(self) -> tuple[str, ...]:
        """The variables that can hold the `Authorization` credential."""
        return (self.provider.tokens if self.provider else ()) or self.variables


def _target(request: Request, keys: _Keys) -> str:
    parts: list[bytes] = []
    for part in request.target:
        if isinstance(part, bytes):
            parts.append(part)
        elif parts and parts[-1].endswith(_QUERY_KEY):
            parts.append(keys.of("?key=", keys.variables).encode("latin-1", "replace"))
        else:
            raise UsageError("a part of its path is masked that no variable holds")
    return b"".join(parts).decode("latin-1")


def _fields(request: Request, keys: _Keys) -> Iterator[tuple[bytes, bytes | None]]:
    """Yield the header fields to send; None: masked, and no value available."""
    sent = ((name, value if isinstance(value, bytes) else b"") for name, value in request.headers)
    kept = {name for name, _ in end_to_end(tuple(sent))}
    for name, value in request.headers:
        if name not in kept or name.lower() in _ONCE:
            continue
        yield name, _credential(name, keys) if isinstance(value, MaskedCredential) else value


def _credential(name: bytes, keys: _Keys) -> bytes | None:
    lower, shown = name.lower(), name.decode("latin-1")
    value: str | None
    if lower == b"authorization":
        value = f"Bearer {keys.of(shown, keys.tokens)}"
    elif lower in KEY_FIELDS:
        value = keys.of(shown, keys.variables)
    else:
        value = keys.first(_SETTINGS.get(lower, ()))
    return None if value is None else value.encode("latin-1", "replace")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecheckOptions:
    """How to ask again.

    Attributes:
        upstream: who is asked.
        environment: where credentials are looked up.
        secrets: what must not be on the new tape.
        outbound: how the provider is reached.
        mask_key: the key of the hashes of masked data.
        clock: the clock of the new tape.
        deadline_s: how long one answer may take.
        output: the new tape; None: it is not kept.
        rules: the thresholds for findings.
    """

    upstream: Upstream
    environment: Mapping[str, str]
    secrets: Sequence[bytes]
    outbound: OutboundSettings
    mask_key: bytes
    clock: Clock
    deadline_s: float
    output: Path | None
    rules: Settings


def ask_again(
    exchanges: Sequence[Exchange], asking: RecheckOptions, tell: Callable[[str], None]
) -> tuple[Recheck, ...]:
    """Return today's result for each of `exchanges`.

    Args:
        exchanges: recorded ones.
        asking: the options.
        tell: gets a line before each request.

    Raises:
        UsageError: the new tape cannot be written.
    """
    with _folder(asking.output) as folder:
        asker = _Asker(asking, folder, tell)
        try:
            answers = asyncio.run(asker.ask(exchanges))
        except BaseException:
            # Ctrl-C above all: what was answered is paid for.
            asker.save()
            raise
        found = tuple(_rechecked(each, asker.taped, asking.rules) for each in answers)
        if asking.output is not None and asker.taped:
            _keep(asker.path, asking.output)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """The state right after a request."""

    recorded: Exchange
    number: int | None = None
    """The number of the exchange on the new tape."""
    passed_over: str = ""
    problem: str = ""
    left_out: tuple[str, ...] = ()


@dataclass(slots=True)
class _Observer:
    """Receives the recorder's events."""

    tell: Callable[[str], None]
    last_refusal: str = ""

    def refused(self, refusal: Refusal) -> None:
        # What follows is advice for applications.
        self.last_refusal = refusal.message.partition(". ")[0]

    def alarm(self, problem: str) -> None:
        self.tell(problem)

    def taping(self, *, works: bool) -> None:
        pass


class _Asker:
    """One run."""

    def __init__(self, asking: RecheckOptions, folder: Path, tell: Callable[[str], None]) -> None:
        self._asking = asking
        self._folder = folder
        self._tell = tell
        self._observer = _Observer(tell)
        self.path = folder / "today.tape"
        self.taped: Mapping[int, Exchange] = {}
        """The answers of today, by their number."""

    async def ask(self, exchanges: Sequence[Exchange]) -> Sequence[_Answer]:
        """Send all requests, then read the new tape."""
        asking = self._asking
        masker = Masker(asking.mask_key)
        for secret in asking.secrets:
            masker.learn(secret)

        def create(name: str | None, thread: WriterThread) -> TapeWriter:
            stem, clock = name or self.path.stem, asking.clock
            return TapeWriter.create(
                self._folder, stem, clock=clock, alarm=self._tell, thread=thread
            )

        recorder = Recorder(TapeBook(create, masker), masker, asking.clock, self._observer)
        dialler = Connector(asking.outbound, asking.clock)
        gateway = Gateway(recorder, Routes((asking.upstream,)), dialler.dial)
        recorder.start()
        await gateway.start(Address("127.0.0.1", 0))
        port = gateway.listener.port
        try:
            answers = [await self._ask(each, recorder, port) for each in exchanges]
        finally:
            await stop_recording(recorder, (gateway,), "asked", grace_s=0)
        self.taped = {each.number: each for each in open_tape(self.path)}
        return answers

    def save(self) -> None:
        """Save the tape of an interrupted run, and print where it is, or that it is lost."""
        if not self.path.exists():
            return
        complete = sum(not _is_cut(each) for each in open_tape(self.path))
        answers, output = count(complete, "whole answer"), self._asking.output
        if output is None:
            self._tell(f"stopped; {answers} not kept: -o TAPE keeps them")
            return
        _keep(self.path, output)
        self._tell(f"stopped; {answers} of today kept: {output}")

    async def _ask(self, recorded: Exchange, recorder: Recorder, port: int) -> _Answer:
        asking = self._asking
        reply = analyse(recorded, asking.rules.app).reply
        passed_over = why_not(recorded, asking.upstream, reply)
        if passed_over:
            return _Answer(recorded=recorded, passed_over=passed_over)
        try:
            again = request_again(recorded, asking.upstream, asking.environment, reply.dialect)
        except UsageError as error:
            return _Answer(recorded=recorded, problem=f"not asked: {error}")
        self._tell(f"asking {asking.upstream.origin.url} for {recorded.tape}#{recorded.number}")
        before = recorder.counts.exchanges
        problem = await self._exchange(again, port)
        if recorder.counts.exchanges == before:
            why = self._observer.last_refusal or problem
            return _Answer(recorded=recorded, problem=f"not asked: {why}")
        return _Answer(
            recorded=recorded,
            number=recorder.counts.exchanges,
            problem=problem,
            left_out=again.left_out,
        )

    async def _exchange(self, again: RecheckRequest, port: int) -> str:
        """Send and read to the end; return the error, if any."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            async with asyncio.timeout(self._asking.deadline_s):
                writer.write(again.data)
                while await reader.read(_BLOCK):
                    pass
        except TimeoutError:
            return f"no complete answer within {self._asking.deadline_s:g} s"
        except ConnectionError:
            pass  # how the provider ended it is on the tape
        finally:
            writer.transport.abort()
        return ""


def _rechecked(answer: _Answer, taped: Mapping[int, Exchange], rules: Settings) -> Recheck:
    today = taped.get(answer.number or 0)
    compared = None
    problem = answer.problem
    if today is not None and not problem:
        problem = _unanswered(today)
    if today is not None and not problem:
        recorded, new = (analyse(each, rules.app) for each in (answer.recorded, today))
        compared = compare_today(recorded, new, rules)
    return Recheck(
        recorded=answer.recorded,
        today=compared,
        passed_over=answer.passed_over,
        problem=problem,
        left_out=answer.left_out,
    )


def _is_cut(today: Exchange) -> bool:
    """Check whether the end of the run cut the answer."""
    return today.end is None or today.end.reason in {EndReason.STOPPED, EndReason.CLIENT_CLOSED}


def _unanswered(today: Exchange) -> str:
    """Return why there is nothing to compare; "" if there is."""
    if today.response is not None or today.end is None:
        return ""
    return today.end.detail or f"no answer ({today.end.reason})"


@contextlib.contextmanager
def _folder(output: Path | None) -> Iterator[Path]:
    """Yield a private folder in the file system of `output`."""
    if output is not None and os.path.lexists(output):
        raise UsageError(f"-o {output}: exists already; a tape is never overwritten")
    try:
        folder = tempfile.TemporaryDirectory(
            prefix=".deltatape-", dir=None if output is None else output.parent
        )
    except OSError as error:
        raise UsageError(f"-o {output}: {error.strerror or error}") from None
    with folder:
        yield Path(folder.name)


def _keep(path: Path, output: Path) -> None:
    try:
        os.close(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE))
        path.replace(output)
    except OSError as error:
        raise UsageError(f"-o {output}: {error.strerror or error}") from None
