"""Asks a live provider once more what a tape has the answers to, and tapes what it says today.

Strategy: a recorder of our own on a port of loopback, in front of the provider. So the answers of
today come in the same form as the recorded ones, by the same code, with the same care: a key that
belongs to somebody else is not sent, no credential is on the new tape.

One request after the other: a provider's limits are those of the user.
"""

import asyncio
import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from deltatape import __version__
from deltatape.clock import Clock
from deltatape.compare.today import Asked, compare_today
from deltatape.diagnose.rebuild import analyse
from deltatape.errors import UsageError
from deltatape.gateway.analysis import Ended
from deltatape.gateway.dial import Dialler
from deltatape.gateway.gateway import Gateway
from deltatape.gateway.outbound import Outbound
from deltatape.gateway.recorder import Recorder
from deltatape.gateway.routes import Refusal, Routes, Upstream
from deltatape.gateway.tapes import TapeBook
from deltatape.http1.listener import Address
from deltatape.model.exchange import EndReason, Exchange, Source
from deltatape.record.request_again import Again, request_again, why_not
from deltatape.rules.settings import Settings
from deltatape.rules.words import count
from deltatape.store.reader import open_tape
from deltatape.store.rewrite import PRIVATE
from deltatape.store.writer import TapeWriter
from deltatape.tape.mask import Masker

_BLOCK = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """How to ask.

    Attributes:
        upstream: who is asked.
        environment: where credentials are looked up.
        secrets: what must not be on the new tape.
        outbound: how the provider is reached.
        mask_key: for the hashes of what is masked.
        clock: of the new tape.
        deadline_s: how long one answer may take.
        output: the new tape; None: it is not kept.
        rules: the thresholds for findings.
    """

    upstream: Upstream
    environment: Mapping[str, str]
    secrets: Sequence[bytes]
    outbound: Outbound
    mask_key: bytes
    clock: Clock
    deadline_s: float
    output: Path | None
    rules: Settings


def ask_again(
    exchanges: Sequence[Exchange], asking: Asking, tell: Callable[[str], None]
) -> tuple[Asked, ...]:
    """What became of each of `exchanges` today.

    Args:
        exchanges: recorded ones.
        asking: whom and how.
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
        found = tuple(_asked(each, asker.taped, asking.rules) for each in answers)
        if asking.output is not None and asker.taped:
            _keep(asker.path, asking.output)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """What is known right after a request was sent, or was not."""

    recorded: Exchange
    number: int | None = None
    """Of the exchange on the new tape."""
    passed_over: str = ""
    problem: str = ""
    left_out: tuple[str, ...] = ()


@dataclass(slots=True)
class _Observer:
    """See `recorder.Observer`."""

    tell: Callable[[str], None]
    refused_last: str = field(default="", init=False)

    def exchange(self, ended: Ended) -> None:
        """See `Observer.exchange`."""

    def silence(self, ended: Ended) -> None:
        """See `Observer.silence`."""

    def refused(self, refusal: Refusal) -> None:
        """See `Observer.refused`."""
        # What follows is advice for applications.
        self.refused_last = refusal.message.partition(". ")[0]

    def alarm(self, problem: str) -> None:
        """See `Observer.alarm`."""
        self.tell(problem)


class _Asker:
    """One run."""

    def __init__(self, asking: Asking, folder: Path, tell: Callable[[str], None]) -> None:
        self._asking = asking
        self._folder = folder
        self._tell = tell
        self._observer = _Observer(tell)
        self.path = folder / "today.tape"
        self.taped: Mapping[int, Exchange] = {}
        """The answers of today, by their number."""

    async def ask(self, exchanges: Sequence[Exchange]) -> Sequence[_Answer]:
        """Ask all of them, then read the new tape."""
        asking = self._asking
        masker = Masker(asking.mask_key)
        for secret in asking.secrets:
            masker.learn(secret)
        recorder = Recorder(TapeBook(self._create, masker), masker, asking.clock, self._observer)
        dialler = Dialler(asking.outbound, asking.clock)
        gateway = Gateway(recorder, Routes((asking.upstream,)), dialler.dial)
        recorder.start()
        await gateway.start(Address("127.0.0.1", 0))
        port = gateway.listener.port
        try:
            answers = [await self._ask(each, recorder, port) for each in exchanges]
        finally:
            await recorder.stop((gateway,), "asked", None, grace_s=0)
        self.taped = {each.number: each for each in open_tape(self.path)}
        return answers

    def save(self) -> None:
        """Keep what there is of a run that came to no end, and tell where, or that it is lost."""
        if not self.path.exists():
            return
        whole = sum(not _is_cut(each) for each in open_tape(self.path))
        answers, output = count(whole, "whole answer"), self._asking.output
        if output is None:
            self._tell(f"stopped; {answers} not kept: -o TAPE keeps them")
            return
        _keep(self.path, output)
        self._tell(f"stopped; {answers} of today kept: {output}")

    def _create(self, name: str | None) -> TapeWriter:
        return TapeWriter.create(
            self._folder,
            name or self.path.stem,
            clock=self._asking.clock,
            tool=f"deltatape {__version__}",
            source=Source.GATEWAY,
            alarm=self._observer.alarm,
        )

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
            said = self._observer.refused_last
            return _Answer(recorded=recorded, problem=f"not asked: {said or problem}")
        return _Answer(
            recorded=recorded,
            number=recorder.counts.exchanges,
            problem=problem,
            left_out=again.left_out,
        )

    async def _exchange(self, again: Again, port: int) -> str:
        """Send and read to the end; what went wrong, if anything."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            async with asyncio.timeout(self._asking.deadline_s):
                writer.write(again.data)
                while await reader.read(_BLOCK):
                    pass
        except TimeoutError:
            return f"no whole answer within {self._asking.deadline_s:g} s"
        except ConnectionError:
            pass  # how the provider ended it is on the tape
        finally:
            writer.transport.abort()
        return ""


def _asked(answer: _Answer, taped: Mapping[int, Exchange], rules: Settings) -> Asked:
    today = taped.get(answer.number or 0)
    compared = None
    problem = answer.problem
    if today is not None and not problem:
        problem = _unanswered(today)
    if today is not None and not problem:
        recorded, new = (analyse(each, rules.app) for each in (answer.recorded, today))
        compared = compare_today(recorded, new, rules)
    return Asked(
        recorded=answer.recorded,
        today=compared,
        passed_over=answer.passed_over,
        problem=problem,
        left_out=answer.left_out,
    )


def _is_cut(today: Exchange) -> bool:
    """Whether the end of the run was its own."""
    return today.end is None or today.end.reason in {EndReason.STOPPED, EndReason.CLIENT_CLOSED}


def _unanswered(today: Exchange) -> str:
    """Why there is nothing that could be compared; "" when there is."""
    if today.response is not None or today.end is None:
        return ""
    return today.end.detail or f"no answer ({today.end.reason})"


@contextlib.contextmanager
def _folder(output: Path | None) -> Iterator[Path]:
    """A private folder, in the file system of `output`."""
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
