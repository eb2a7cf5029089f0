"""The clients of a long run, a program: callers of different kinds, each asking again and again.

Strategy: `clients.Load` with a timetable. A caller asks, checks the answer byte by byte, pauses,
and asks again, on the same connection if that is still open. The kinds:

- streams are read to their end, some of them from an upstream with TLS;
- small requests have one JSON object as their answer;
- agents hold conversations on tapes of their own name, and send their whole history each time;
- some clients leave within a stream, and some streams are cut or reset by the provider.

Before all that, many tapes are opened by name. Prints a line of JSON then, and waits for a line;
prints one for each interval, and one at the end with what was had.
"""

import argparse
import gc
import heapq
import json
import random
import re
import sys
from dataclasses import asdict

from benchmarks.clients import Connection, Load, percentile_us
from benchmarks.soak_tally import ENDINGS, Tallies, difference
from benchmarks.traffic import MESSAGES, PATH, Cut, Plan, request
from deltatape.clock import SystemClock
from deltatape.model.exchange import EndReason

PLAIN, TLS = "plain", "tls"
"""The names of the upstreams."""
NAMES = 300
"""How many tapes are opened by name before all else: more than a recorder keeps open, so that it
does not open more and more of them in the run."""
REST_S = 300.0
"""How long answers may take after the end."""
_BEGIN_S = 4.0
"""Within this time all callers begin."""
_TURNS = 20
_STEP_S = 0.1
_NS = 1_000_000_000
_ID = re.compile(r'"id":"(call_[0-9]+)"')
_FRAGMENT = re.compile(r'"function":\{"arguments":("(?:[^"\\]|\\.)*")\}')

_now_ns = SystemClock.now_ns


class Caller:
    """One that asks for `plan` again and again.

    Attributes:
        pause_ns: between two requests.
        leaves_after: so many deltas, whereupon it closes the connection; 0: it stays.
    """

    def __init__(
        self, port: int, plan: Plan, *, pause_s: float, upstream: str = PLAIN, leaves_after: int = 0
    ) -> None:
        self.pause_ns = int(pause_s * _NS)
        self.leaves_after = leaves_after
        self.connection: SoakConnection | None = None
        self._plan = plan
        self._wire = request(
            port, plan.encode(), stream=bool(plan.deltas), path=f"/{upstream}{PATH}"
        )

    def ask(self) -> tuple[Plan, bytes]:
        """What to ask for next, and the request."""
        return self._plan, self._wire

    def answered(self, content: bytes) -> None:
        """Take note of a whole answer."""


class Opener(Caller):
    """Asks for one small answer on each of many named tapes, then no more."""

    def __init__(self, port: int, names: int) -> None:
        super().__init__(port, Plan(deltas=0), pause_s=0)
        self._port = port
        self._left = names

    def ask(self) -> tuple[Plan, bytes]:
        """See `Caller`."""
        self._left -= 1
        if not self._left:
            self.pause_ns = -1
        path = f"/s/name-{self._left}/{PLAIN}{PATH}"
        return self._plan, request(self._port, self._plan.encode(), stream=False, path=path)


class Agent(Caller):
    """Holds conversations, one after the other, each on a tape of its own name."""

    def __init__(self, port: int, number: int, *, pause_s: float) -> None:
        super().__init__(port, Plan(deltas=15, rate=50), pause_s=pause_s)
        self._port = port
        self._number = number
        self._conversation = self._turn = 0
        self._messages: list[dict[str, object]] = []

    def ask(self) -> tuple[Plan, bytes]:
        """See `Caller`."""
        if not self._turn:
            self._conversation += 1
            self._messages = list(MESSAGES)
        # The last answer has no call, so that none remains unanswered.
        plan = self._plan if self._turn < _TURNS else Plan(deltas=0)
        path = f"/s/agent-{self._number}-{self._conversation}/{PLAIN}{PATH}"
        return plan, request(
            self._port,
            plan.encode(),
            stream=bool(plan.deltas),
            path=path,
            messages=self._messages,
        )

    def answered(self, content: bytes) -> None:
        """See `Caller`."""
        text = content.decode()
        called = _ID.search(text)
        if called is None:
            self._turn = 0
            return
        arguments = "".join(map(json.loads, _FRAGMENT.findall(text)))
        function = {"name": "write_text", "arguments": arguments}
        call = {"id": called[1], "type": "function", "function": function}
        self._turn += 1
        result = f"Written as part {self._turn}. " + " ".join(
            f"line {line} of part {self._turn}" for line in range(50)
        )
        self._messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": called[1], "content": result},
        ]


class SoakConnection(Connection):
    """A connection of a caller."""

    def __init__(self, load: Load, caller: Caller) -> None:
        super().__init__(load)
        self.caller = caller
        self.body = bytearray()
        self.waits = False
        """Whether an answer is due."""

    def start(self) -> None:
        """See `Connection`."""
        self.plan, self.wire = self.caller.ask()
        self.body.clear()
        self.waits = True
        super().start()

    def on_body(self, body: bytes) -> None:
        """See httptools."""
        super().on_body(body)
        self.body += body


class SoakLoad(Load):
    """See the module."""

    def __init__(self, port: int, provider: int, every_s: float) -> None:
        super().__init__(port, provider, Plan(deltas=0), 0)
        self.tallies = Tallies()
        self._every_ns = int(every_s * _NS)
        self._due: list[tuple[int, int, Caller]] = []
        self._asked = 0

    def run_callers(self, callers: dict[Caller, float], seconds: float, *, tell: bool) -> None:
        """Let callers ask for so long, or until none of them asks again.

        Args:
            callers: each begins after so many seconds.
            seconds: for how long.
            tell: whether to print intervals.
        """
        now = _now_ns()
        for caller, after_s in callers.items():
            self._ask_at(now + int(after_s * _NS), caller)
        self._deadline = now + int(seconds * _NS)
        limit = self._deadline + int(REST_S * _NS)
        told = now + self._every_ns
        while ((now < self._deadline and self._due) or self._waiting()) and now < limit:
            while self._due and self._due[0][0] <= now:
                caller = heapq.heappop(self._due)[-1]
                if now < self._deadline:
                    self._ask(caller)
            self._look(self._patience_s(now))
            now = _now_ns()
            if tell and now >= told:
                told += self._every_ns
                self._tell_interval()
        for connection in self._waiting():
            self.tallies.fault(f"no end of an answer to {connection.plan}")

    def _patience_s(self, now: int) -> float:
        if not self._due:
            return _STEP_S
        return min(max(self._due[0][0] - now, 0) / _NS, _STEP_S)

    def _waiting(self) -> list[SoakConnection]:
        return [
            connection
            for connection in self._open.values()
            if isinstance(connection, SoakConnection) and connection.waits
        ]

    def _ask_at(self, due: int, caller: Caller) -> None:
        self._asked += 1
        heapq.heappush(self._due, (due, self._asked, caller))

    def _ask(self, caller: Caller) -> None:
        connection = caller.connection
        if connection is not None and self._open.get(connection.fd) is connection:
            self._start(connection)
            return
        caller.connection = SoakConnection(self, caller)
        self.connect(caller.connection)

    def _tell_interval(self) -> None:
        times = sorted(self.times)
        del self.times[:]
        p50, p99 = percentile_us(times, 0.5), percentile_us(times, 0.99)
        print(json.dumps({"delays": len(times), "p50_us": p50, "p99_us": p99}), flush=True)

    # How answers end.

    def _read(self, connection: Connection) -> None:
        super()._read(connection)
        assert isinstance(connection, SoakConnection)
        leaves_after = connection.caller.leaves_after
        if leaves_after and connection.waits and connection.seen >= leaves_after:
            self._had(connection, EndReason.CLIENT_CLOSED, whole=False)
            self._close(connection)

    def answered(self, connection: Connection, *, ok: bool, whole: bool, size: int) -> None:
        """See `Load`."""
        assert isinstance(connection, SoakConnection)
        if connection.plan.cut is not Cut.NONE:
            self.tallies.fault(f"a stream of {connection.plan} came to an end in order")
        elif not ok:
            self.tallies.fault(f"an answer with an error: {bytes(connection.body[:200])!r}")
        elif not whole:
            self.tallies.fault(f"an answer of {size} bytes lacks deltas or has them out of order")
        connection.caller.answered(bytes(connection.body))
        self._had(connection, EndReason.COMPLETE, whole=True)

    def lost(self, connection: Connection, problem: Exception | None) -> None:
        """See `Load`."""
        assert isinstance(connection, SoakConnection)
        if connection.waits:
            expected = {Cut.CLOSED: type(None), Cut.RESET: ConnectionResetError}
            if type(problem) is not expected.get(connection.plan.cut):
                how = f"failed: {problem!r}" if problem else "was closed"
                self.tallies.fault(f"a connection {how} while {connection.plan} was answered")
            self._had(connection, ENDINGS[connection.plan.cut], whole=True)
        self._close(connection)

    def _had(self, connection: SoakConnection, ending: EndReason, *, whole: bool) -> None:
        content, caller = bytes(connection.body), connection.caller
        differs = difference(connection.plan, content, whole=whole)
        if differs:
            self.tallies.fault(f"an answer at a client {differs}")
        self.tallies.add(ending, content)
        connection.waits = False
        if caller.pause_ns >= 0:
            self._ask_at(_now_ns() + caller.pause_ns, caller)


def callers(port: int, streams: int, within_s: float) -> dict[Caller, float]:
    """Every caller, and after how many seconds it begins."""
    phase = random.Random(0)  # noqa: S311 - nothing secret
    stream = Plan(deltas=80, rate=20)
    long = Plan(deltas=2000, rate=20)
    found: list[Caller] = []
    for number in range(streams):
        upstream = TLS if number % 5 == 0 else PLAIN
        found.append(Caller(port, stream, pause_s=0.1, upstream=upstream))
    few = max(streams // 10, 1)
    for number in range(few):
        found += [
            Caller(port, Plan(deltas=0), pause_s=0.1),
            Agent(port, number, pause_s=0.1),
            Caller(port, long, pause_s=0.5, leaves_after=5 + number % 40),
        ]
    for cut in (Cut.CLOSED, Cut.RESET):
        found.append(Caller(port, Plan(deltas=20, rate=20, cut=cut), pause_s=1))
    return {caller: phase.random() * within_s for caller in found}


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(prog="soak_clients")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--provider", type=int, required=True)
    parser.add_argument("--streams", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--every", type=float, required=True, help="seconds of an interval")
    options = parser.parse_args()
    load = SoakLoad(options.port, options.provider, options.every)
    every = callers(options.port, options.streams, min(_BEGIN_S, options.seconds / 10))
    gc.freeze()
    load.run_callers({Opener(options.port, NAMES): 0.0}, _BEGIN_S + REST_S, tell=False)
    print(json.dumps({"opened": NAMES}), flush=True)
    sys.stdin.readline()
    del load.times[:]
    load.run_callers(every, options.seconds, tell=True)
    print(json.dumps({"had": asdict(load.tallies)}), flush=True)


if __name__ == "__main__":
    main()
