"""The analysing process: follows tapes, and reports each exchange after its end.

It reads a tape when the recorder says that an exchange has ended, and a little later if the end is
not on the disk yet. Memory holds the exchanges that are open, and digests of the last ones.

What has ended by then, on all tapes, is analysed step by step together: the steps for one small
exchange after the other take twice as long, since each needs other code and data in the
processor's caches.
"""

import contextlib
import gc
import os
import select
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from deltatape.diagnose.parsed_record import parsed_as
from deltatape.diagnose.rebuild import TOGETHER, batches, body_bytes
from deltatape.errors import DeltatapeError
from deltatape.live.analyzer import LiveAnalyzer, LiveResult
from deltatape.live.messages import (
    LAG_NS,
    Begin,
    Close,
    Closed,
    ExchangeReport,
    Follow,
    Look,
    Message,
    Recall,
    Settled,
    SilenceReport,
    Unreadable,
    decode,
    encode,
)
from deltatape.model.exchange import Exchange
from deltatape.model.rule_settings import DEFAULTS, Settings
from deltatape.model.tape_summary import TapeSummary
from deltatape.render.json_document import finding_object
from deltatape.render.summary import finding_lines, live_lines
from deltatape.store.names import RING
from deltatape.store.reader import open_tape
from deltatape.store.tail import TapeTail
from deltatape.tape.assemble import Assembler

LATE_S = 0.05
"""How often to look for ends that are announced and not on the disk yet."""
MAX_LATE_S = 2.0
"""How long a closed tape may lack them: a full disk loses lines."""
RECALLED_BYTES = 64 << 20
"""How much of closed tapes is read again after a start: what has ended waits for that."""
_BLOCK = 1 << 16
_AT_ONCE = TOGETHER
"""How many reports may wait for others: each of them wakes the recorder."""
_PATIENCE = round(MAX_LATE_S / LATE_S)
_MAX_HELD = 4096
"""The most exchanges that wait for exchanges of other shards."""
_SELDOM = (20_000, 20, 100)
"""Thresholds of Python's garbage collector: exchanges leave no cycles behind."""
_NICENESS = 10
"""Where there are few cores, streams come first."""


@dataclass(slots=True, eq=False)
class _FollowedTape:
    key: int
    name: str | None
    tail: TapeTail
    assembler: Assembler | None = None
    announced: int = 0
    """Exchanges that have ended, as the recorder says, and were not read yet."""
    mentioned: bool = False
    """Whether the recorder has sent a message about it since it was read."""
    close: Close | None = None
    looks_left: int = field(default=round(MAX_LATE_S / LATE_S))
    problem: str = ""
    """Why it cannot be read on."""

    @property
    def late(self) -> bool:
        """Whether an announced end is not on it yet."""
        return self.announced > 0 or self.close is not None


class Analyst:
    """Follows tapes, and reports what is on them.

    Args:
        report: takes a message for the recorder.
        rules: the thresholds.
    """

    def __init__(self, report: Callable[[Message], None], rules: Settings = DEFAULTS) -> None:
        self._report = report
        self._analyzer = LiveAnalyzer(rules)
        self._sharded = False
        self._settled_ns = 0
        """All exchanges on shards that ended by then are announced."""
        self._held: list[tuple[_FollowedTape, Exchange]] = []
        """Exchanges on shards that wait for those before them, which may be on others."""
        self._patience = _PATIENCE
        self._tapes: dict[int, _FollowedTape] = {}

    def handle(self, message: Message) -> None:
        """Handle a message of the recorder; what it announces is reported by `look`."""
        match message:
            case Begin():
                self._analyzer = LiveAnalyzer(message.rules(), sharded=message.sharded)
                self._sharded = message.sharded
            case Recall(tapes=tapes):
                self._recall(tapes)
            case Follow(key=key, path=path, name=name):
                try:
                    self._tapes[key] = _FollowedTape(key, name, TapeTail(path))
                except DeltatapeError as error:
                    self._report(Unreadable(key=key, problem=str(error)))
            case Look(key=key, ended=ended) if key in self._tapes:
                self._tapes[key].announced += ended
                self._tapes[key].mentioned = True
            case Settled(until_ns=until_ns):
                self._settled_ns = until_ns
            case Close(key=key) if key in self._tapes:
                self._tapes[key].close = message
            case _:
                pass

    def _recall(self, tapes: Sequence[tuple[str | None, str]]) -> None:
        """Read the latest exchanges of closed tapes that still exist."""
        left = RECALLED_BYTES
        parts: list[tuple[str | None, Path, int]] = []
        for name, path in reversed(tapes):
            place = Path(path)
            pinned = place.with_name(place.name.replace(RING, ""))
            sealed = (each.with_name(f"{each.name}.zst") for each in (place, pinned))
            for each in (place, pinned, *sealed) if left else ():
                with contextlib.suppress(OSError, DeltatapeError):
                    size = min(open_tape(each).size, left)
                    parts.append((name, each, size))
                    left -= size
                    break
        for name, place, size in reversed(parts):  # the oldest first
            with contextlib.suppress(DeltatapeError):  # deleted meanwhile, or damaged
                for exchange in open_tape(place).latest(size):
                    self._analyzer.remember(name, exchange)

    @property
    def late(self) -> bool:
        """Whether an announced end is not on its tape yet."""
        return any(tape.late for tape in self._tapes.values())

    def look_again(self) -> None:
        """Look for ends that are announced and were not on the disk `LATE_S` ago."""
        if self._held and self._are_awaited():
            self._patience -= 1
        for tape in self._tapes.values():
            tape.looks_left -= tape.close is not None
        self.look()

    def look(self) -> None:
        """Report the announced exchanges that are on the disk."""
        tapes = [tape for tape in self._tapes.values() if tape.mentioned or tape.late]
        ended: Iterable[tuple[_FollowedTape, Exchange]] = (
            (tape, exchange) for tape in tapes for exchange in _ended(tape)
        )
        if self._sharded:
            ended = self._settled(ended)
        for batch in batches(ended, lambda each: body_bytes(each[1])):
            self._analyse(batch)
        for tape in tapes:
            if tape.problem:
                self._drop(tape)
                self._report(Unreadable(key=tape.key, problem=tape.problem))
            elif tape.close is not None and (not self._is_open(tape) or tape.looks_left <= 0):
                self._close(tape, tape.close)

    def _is_open(self, tape: _FollowedTape) -> bool:
        """Return whether exchanges are still to come that may answer calls of a tape."""
        if self._sharded:
            return self._are_awaited() or any(held is tape for held, _ in self._held)
        return tape.announced > 0

    def _are_awaited(self) -> bool:
        return any(tape.announced > 0 for tape in self._tapes.values())

    def _settled(
        self, ended: Iterable[tuple[_FollowedTape, Exchange]]
    ) -> list[tuple[_FollowedTape, Exchange]]:
        """Hold exchanges on shards until those before them are there; return these, in order."""
        self._held += ended
        if self._patience <= 0:  # a full disk has lost them
            self._patience = _PATIENCE
            for tape in self._tapes.values():
                tape.announced = min(tape.announced, 0)
        until_ns = -1 if self._are_awaited() else self._settled_ns - LAG_NS
        every = len(self._held) > _MAX_HELD
        due = [
            exchange.number
            for _, exchange in self._held
            if every or (exchange.end is not None and exchange.end.t_ns <= until_ns)
        ]
        if not due:
            return []
        held = sorted(self._held, key=lambda each: each[1].number)
        self._held = [each for each in held if each[1].number > max(due)]
        return held[: len(held) - len(self._held)]

    def _analyse(self, batch: Sequence[tuple[_FollowedTape, Exchange]]) -> None:
        named = [(tape.name, exchange) for tape, exchange in batch]
        results = self._analyzer.analyse_all(named)
        reports = [_report(tape, each) for (tape, _), each in zip(batch, results, strict=True)]
        for report in reports:
            self._report(report)

    def _close(self, tape: _FollowedTape, close: Close) -> None:
        watch = TapeSummary(until_ns=close.until_ns, stop=close.reason, exit_code=close.exit_code)
        findings = self._analyzer.silences(tape.name, tape.tail.path, watch)
        for number in sorted({finding.exchange for finding in findings}):
            about = [finding for finding in findings if finding.exchange == number]
            first = f"{tape.name or ''}#{number} was never answered"
            self._report(
                SilenceReport(
                    key=tape.key,
                    number=number,
                    lines=[first, *finding_lines(about)],
                    findings=[finding_object(each) for each in about],
                )
            )
        self._drop(tape)
        self._report(Closed(key=tape.key))

    def stop(self) -> None:
        """Close all tapes, without a report."""
        for tape in tuple(self._tapes.values()):
            self._drop(tape)

    def _drop(self, tape: _FollowedTape) -> None:
        tape.tail.close()
        del self._tapes[tape.key]


def _ended(tape: _FollowedTape) -> Iterator[Exchange]:
    """Yield each exchange whose end has come onto the tape."""
    tape.mentioned = False
    try:
        records = tape.tail.read()
        if tape.assembler is None:
            first = next(records, None)
            if tape.tail.header is None or first is None:
                return
            tape.assembler = Assembler(tape=tape.tail.path, header=tape.tail.header)
            records = chain((first,), records)
        for exchange in tape.assembler.feed(records):
            tape.announced -= 1
            yield exchange
    except DeltatapeError as error:
        tape.problem = str(error)


def _report(tape: _FollowedTape, result: LiveResult) -> ExchangeReport:
    assert tape.tail.header is not None
    exchange = result.analysis.exchange
    parsed = parsed_as(result.analysis, tape.tail.header.tool).to_json()
    return ExchangeReport(
        key=tape.key,
        number=exchange.number,
        lines=live_lines(result.analysis, result.findings, tape.name or ""),
        findings=[finding_object(each) for each in result.findings],
        parsed=parsed if isinstance(parsed, dict) else None,
        end_ns=exchange.end.t_ns if exchange.end is not None else None,
    )


def main() -> None:
    """Serve the recorder on standard input and output until its end."""
    os.nice(_NICENESS)
    gc.freeze()
    gc.set_threshold(*_SELDOM)
    gc.enable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the recorder decides when it is over
    out = os.dup(1)
    os.dup2(2, 1)  # nothing else may print among the messages

    waiting: list[bytes] = []

    def report(message: Message) -> None:
        waiting.append(encode(message))
        if len(waiting) >= _AT_ONCE:
            send()

    def send() -> None:
        data = memoryview(b"".join(waiting))
        waiting.clear()
        while data:
            data = data[os.write(out, data) :]

    serve(Analyst(report), 0, send)


def serve(analyst: Analyst, source: int, send: Callable[[], None]) -> None:
    """Handle the messages from a descriptor until its end; `send` what was reported."""
    rest = b""
    while True:
        if not select.select([source], [], [], LATE_S if analyst.late else None)[0]:
            analyst.look_again()
            send()
            continue
        data = os.read(source, _BLOCK)
        if not data:
            analyst.stop()
            return
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            analyst.handle(decode(line))
        analyst.look()
        send()
