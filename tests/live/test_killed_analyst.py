"""A recorder under load whose analysing process is killed at moments drawn from a seed.

Moments are counts: of reads that clients have received, or of exchanges that were reported.
"""

import asyncio
import json
import os
import random
import re
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from deltatape.demo.demo import Background
from deltatape.live.client import MAX_STARTS
from deltatape.printable import count as counted
from deltatape.store.reader import open_tape
from helpers.chat import FINISH, calls, choice, entry, sse
from helpers.program import deltatape, program
from helpers.upstream import SSE_HEAD, Peer, chunk, connect, post, provider, run

LIMIT_S = 240.0
AT_ONCE = 6
BACKLOG = 10
"""How many exchanges may wait for their reports before the next stream begins."""
TEXT = choice({"role": "assistant", "content": "Hello"})
STOP = choice({}, "stop")
STREAMS: tuple[tuple[bytes, set[str]], ...] = (
    (sse(TEXT, choice({"content": " there"}), STOP), set()),
    (sse(calls(entry(0, "c1", name="get", arguments='{"a":')), FINISH), {"T003"}),
    (sse(TEXT, TEXT, TEXT, STOP), set()),
    (sse(TEXT, "{oops", STOP), {"W004"}),
)
"""Bodies, and the codes of their defects."""
FIRST_LINE = re.compile(r"#(\d+) POST ")
LEFT_LINE = re.compile(r"#(\d+) ended; not analysed yet: run `deltatape check`")
FINDING_LINE = re.compile(r"    (?:error|warning|info) ([A-Z]\d+) ")
DEATH = re.compile(r"the analysis of exchanges .*exit code -9; recording goes on, (.*)")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds processes in /proc"),
]

Findings = list[tuple[int, str]]


@dataclass
class Said:
    """What a recorder has printed so far."""

    analysed: list[int] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    findings: Findings = field(default_factory=list)
    deaths: list[str] = field(default_factory=list)
    """What it does about each of them."""

    @classmethod
    def of(cls, lines: list[str]) -> "Said":
        said, number = cls(), 0
        for line in lines:
            if found := FIRST_LINE.match(line):
                number = int(found[1])
                said.analysed.append(number)
            elif found := LEFT_LINE.match(line):
                said.left.append(int(found[1]))
            elif found := FINDING_LINE.match(line):
                said.findings.append((number, found[1]))
            elif found := DEATH.search(line):
                said.deaths.append(found[1])
        return said


def analyst_of(running: Background) -> int | None:
    """The process that a recorder without a command has started, if it runs."""
    pid = running.process.pid
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(children[0]) if children else None


class Killer:
    """Kills the analyst when as many events have come as the seed says.

    Args:
        running: the recorder.
        gaps: how many events to let pass before each kill.
        count: returns how many events there were.
    """

    def __init__(
        self, running: Background, gaps: Iterator[int], count: Callable[[Said], int]
    ) -> None:
        self._running = running
        self._gaps = gaps
        self._count = count
        self._kills = 0
        self._next: int | None = None

    def look(self) -> None:
        """Kill it if it is time, and if the death before has been noticed."""
        said = Said.of(self._running.lines)
        if len(said.deaths) < self._kills:
            return
        if self._next is None:
            self._next = self._count(said) + next(self._gaps)
        if self._count(said) < self._next:
            return
        pid = analyst_of(self._running)
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
            self._kills += 1
            self._next = None


def dechunked(data: bytes) -> bytes:
    """The content of a chunked body."""
    body = b""
    while True:
        size, _, data = data.partition(b"\r\n")
        length = int(size, 16)
        if not length:
            return body
        body, data = body + data[:length], data[length + 2 :]


async def serve(peer: Peer) -> None:
    """Stream, event by event, what the request has the number of."""
    _, body = await peer.request()
    number = int(json.loads(body)["messages"][0]["content"])
    await peer.send(SSE_HEAD)
    for event in STREAMS[number % len(STREAMS)][0].splitlines(keepends=True):
        await peer.send(chunk(event))
        await asyncio.sleep(0)
    await peer.send(b"0\r\n\r\n")


@dataclass
class Load:
    """Streams through a recorder, several at once.

    Attributes:
        reads: how many reads the clients have received.
        bodies: what each stream delivered, by its number in the request.
    """

    running: Background
    reads: int = 0
    bodies: dict[int, bytes] = field(default_factory=dict)

    async def stream(self, number: int, look: Callable[[], None]) -> None:
        message = {"role": "user", "content": str(number)}
        body = json.dumps({"model": "m", "stream": True, "messages": [message]}).encode()
        peer = await connect(self.running.port)
        await peer.send(post(body))
        await peer.until(b"\r\n\r\n")
        got = b""
        while not got.endswith(b"\r\n0\r\n\r\n"):
            data = await peer.reader.read(65536)
            assert data, "the recorder cut a stream"
            got += data
            self.reads += 1
            look()
        peer.close()
        self.bodies[number] = dechunked(got)

    async def run(self, streams: int, look: Callable[[], None]) -> None:
        """Run `streams` streams; wait until all of them are reported or left to check."""
        numbers = iter(range(streams))
        started = 0

        def accounted() -> int:
            said = Said.of(self.running.lines)
            return len(said.analysed) + len(said.left)

        async def accounts(least: int) -> None:
            while accounted() < least:
                look()
                await asyncio.sleep(0.01)

        async def worker() -> None:
            nonlocal started
            for number in numbers:
                started += 1
                await accounts(started - BACKLOG)
                await self.stream(number, look)

        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(worker())
        await accounts(streams)


def recorded(
    folder: Path, streams: int, gaps: Iterator[int], count: Callable[[Said, Load], int]
) -> Said:
    """Record under load while the analyst is killed; check all but the fate of the analyst."""

    async def scenario() -> tuple[int, Load, list[str]]:
        async with provider(serve) as port:
            options = ("--upstream", f"http://127.0.0.1:{port}", "--fail-on", "error")
            address = ("--listen", "127.0.0.1:0", "--to", "tapes")
            with program("record", *address, *options, folder=folder) as running:
                await asyncio.to_thread(lambda: running.wait_for("set +OPENAI"))
                load = Load(running)
                killer = Killer(running, gaps, lambda said: count(said, load))
                await load.run(streams, killer.look)
                code, _ = await asyncio.to_thread(running.stop)
                return code, load, running.lines

    code, load, lines = run(scenario(), LIMIT_S)
    said = Said.of(lines)
    assert load.bodies == {n: STREAMS[n % len(STREAMS)][0] for n in range(streams)}

    (path,) = (folder / "tapes").glob("*.tape")
    known = assert_every_line_is_taped(path, streams)
    checked = json.loads(deltatape("check", "--format", "json", path, folder=folder).stdout)
    # What was never answered concerns a whole conversation: only the latest are watched for it.
    found = [(each["exchange"], each["code"]) for each in checked["findings"]]
    assert sorted(each for each in found if each[1] != "D003") == sorted(known)

    # Each exchange is reported once, or left once to check.
    assert Counter([*said.analysed, *said.left]) == Counter(range(1, streams + 1))
    reported = sorted(each for each in known if each[0] in said.analysed)
    assert sorted(each for each in said.findings if each[1] != "D003") == reported
    assert max(Counter(said.findings).values(), default=1) == 1
    assert code == (1 if reported else 125 if said.left else 0)
    left = [line.strip() for line in lines if line.startswith("NOT ANALYSED: ")]
    tape = f"tapes/{path.name}"
    exchanges = counted(len(said.left), "exchange")
    advice = f"NOT ANALYSED: {exchanges} of {streams}; run `deltatape check {tape}`"
    assert left == ([advice] if said.left else [])
    return said


def assert_every_line_is_taped(path: Path, streams: int) -> Findings:
    """Compare a tape with what was sent; return the findings that it must have."""
    tape = open_tape(path)
    assert tape.stopped
    known: Findings = []
    numbers = []
    for exchange in tape:
        number = int(json.loads(exchange.request.body)["messages"][0]["content"])
        body, codes = STREAMS[number % len(STREAMS)]
        assert exchange.body == body
        numbers.append(number)
        known += [(exchange.number, code) for code in codes]
    assert sorted(numbers) == list(range(streams))
    return known


@pytest.mark.parametrize("seed", [1])
def test_an_analyst_that_catches_up_may_be_killed_any_number_of_times(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    gaps = iter(lambda: BACKLOG + AT_ONCE + chance.randrange(8), None)
    said = recorded(tmp_path, 120, gaps, lambda said, _: len(said.analysed))
    assert said.left == []
    assert len(said.deaths) > MAX_STARTS
    assert set(said.deaths) == {"starting it again"}


@pytest.mark.parametrize("seed", [1, 2])
def test_kills_at_any_moment_lose_nothing_or_say_what_is_left(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    gaps = iter(lambda: chance.randrange(1, 20), None)  # every stream has at least one read
    said = recorded(tmp_path, 40, gaps, lambda _, load: load.reads)
    assert said.deaths
    assert bool(said.left) == (said.deaths[-1] == "deltatape check does it")


def test_an_analyst_that_is_always_killed_leaves_everything_to_check(tmp_path: Path) -> None:
    said = recorded(tmp_path, 40, iter(lambda: 0, None), lambda _, load: load.reads)
    assert said.deaths == [*["starting it again"] * (MAX_STARTS - 1), "deltatape check does it"]
    assert len(said.left) + len(said.analysed) == 40
