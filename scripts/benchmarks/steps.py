"""What each step costs that the recorder does for a delta and for a small request.

Each step runs by itself, over and over, in this process. The rest of what the recorder costs is not
made of steps that can be run alone: system calls, the event loop, and what is called between.
"""

import hashlib
import shutil
import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.markdown import markdown
from benchmarks.measure_rebuild import cpu_s
from benchmarks.proxies import BARE, OURS, YARDSTICK
from benchmarks.run import Outcome
from benchmarks.scenarios import PROXY_CPU, SCENARIOS
from benchmarks.table import figure
from benchmarks.traffic import ANSWER, DELTA_BYTES, HEAD, Plan, delta, request
from deltatape.clock import SystemClock
from deltatape.http1.body import ChunkedBody
from deltatape.http1.head import find_head, parse_request, parse_response
from deltatape.model.exchange import EndReason
from deltatape.store.names import ulid
from deltatape.store.writer import TapeWriter
from deltatape.tape import encode
from deltatape.tape.mask import Masker
from deltatape.tape.tap import ExchangeTap

TIMES = 20_000
"""How often a step is done in a round."""
QUICK = 200
DELTA, REQUEST = "A delta", "A small request and its answer"
_PORT = 8000
_METHOD = "POST"
_UPSTREAM = "http://127.0.0.1:9000"
_KEY = bytes(32)

Step = Callable[[], object]
_WITHIN = (
    "search it for credentials",
    "write it as JSON",
    "extend its SHA-256",
    "parse that of a stream's answer",
    "mask and write its seven records as JSON",
)
"""Steps that another one contains, and one that a small request does not have."""
_FLOORS = (("paced-200", DELTA), ("paced-1000", DELTA), ("requests", REQUEST))
"""Scenarios whose CPU time per delta or per answer consists of such steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The CPU time of one step, in microseconds; `part` if it counts towards the load's."""

    load: str
    step: str
    us: float
    part: bool = True


def run_steps(rounds: int, times: int, log: Callable[[str], None]) -> Sequence[Cost]:
    """Measure all steps, the rounds one after the other."""
    folder = Path(tempfile.mkdtemp(prefix="deltatape-bench-"))
    try:
        writer = TapeWriter.create(folder, "steps", clock=SystemClock(), alarm=log)
        steps = [*_of_a_delta(writer), *_of_a_request(writer)]
        found: list[list[float]] = [[] for _ in steps]
        for _ in range(rounds):
            for (_, _, step), us in zip(steps, found, strict=True):
                us.append(_us(step, times, writer))
        writer.close()
    finally:
        shutil.rmtree(folder)
    return [
        Cost(load=load, step=name, us=statistics.median(us), part=name not in _WITHIN)
        for (load, name, _), us in zip(steps, found, strict=True)
    ]


def _us(step: Step, times: int, writer: TapeWriter) -> float:
    """The CPU time of all threads, until everything is written."""
    began = cpu_s()
    for _ in range(times):
        step()
    writer.flush()
    return (cpu_s() - began) / times * 1e6


def _of_a_delta(writer: TapeWriter) -> Sequence[tuple[str, str, Step]]:
    raw, body, digest = delta(0), ChunkedBody(), hashlib.sha256()
    data = body.feed(raw).data
    masker = Masker(_KEY)
    masker.see(((b"authorization", b"Bearer sk-fake-000000"),))
    line = encode.data_record(1, ',1,"read",', data)
    tap = ExchangeTap(1, lambda _, __: None, masker)
    return (
        (DELTA, "find the end of the chunk", lambda: body.feed(raw)),
        (DELTA, "search it for credentials", lambda: masker.seen.clean(data)),
        (DELTA, "write it as JSON", lambda: encode.data_record(1, ',1,"read",', data)),
        (DELTA, "extend its SHA-256", lambda: digest.update(data)),
        (DELTA, "the last three, as the tap does them", lambda: tap.read(1, data, (len(data),))),
        (DELTA, "tell the time", writer.now_ns),
        (DELTA, "hand it to the thread that writes, and write it", lambda: writer.put(1, line)),
    )


def _of_a_request(writer: TapeWriter) -> Sequence[tuple[str, str, Step]]:
    asked = request(_PORT, Plan(deltas=0).encode(), stream=False)
    asked_head, asked_body = asked[: find_head(asked)], asked[find_head(asked) :]
    answer_head, answer_body = ANSWER[: find_head(ANSWER)], ANSWER[find_head(ANSWER) :]
    clock, masker = SystemClock(), Masker(_KEY)
    head = parse_request(asked_head)
    answered = parse_response(answer_head, method=_METHOD)

    def exchange(put: Callable[[int, bytes], None]) -> None:
        tap = ExchangeTap(1, put, masker)
        tap.request(
            1,
            id="01",
            method=head.method,
            target=head.target,
            upstream=_UPSTREAM,
            http=head.http,
            headers=head.fields,
        )
        tap.request_body(1, asked_body)
        tap.request_end(1)
        tap.sent(1, connect_ns=0, tls_ns=0, reused=True)
        tap.response(
            1,
            status=answered.status,
            reason=answered.reason,
            http=answered.http,
            framing=answered.framing,
            headers=answered.fields,
        )
        tap.read(1, answer_body, None)
        tap.end(1, EndReason.COMPLETE)

    return (
        (
            REQUEST,
            "look up the head of the request, like one before",
            lambda: parse_request(asked_head),
        ),
        (
            REQUEST,
            "parse the head of the answer",
            lambda: parse_response(answer_head, method=_METHOD),
        ),
        (REQUEST, "parse that of a stream's answer", lambda: parse_response(HEAD, method=_METHOD)),
        (REQUEST, "make an id", lambda: ulid(clock)),
        (REQUEST, "mask and write its seven records as JSON", lambda: exchange(lambda _, __: None)),
        (REQUEST, "the same, and write them to the tape", lambda: exchange(writer.put)),
    )


_HEAD = f"""\
## Where the recorder's time goes

The steps that the recorder does for one delta of {DELTA_BYTES} bytes and for one small exchange,
each by itself in one process, in microseconds of CPU time. To pass bytes on costs what
*{BARE}* costs above: reads, writes, wakeups. Both together are the floor of this design. What
the recorder needs beyond it lies between the steps: calls from layer to layer, and two threads that
take turns with the interpreter.

"""
_FLOOR_HEAD = """
The floor beside what was measured, in microseconds of CPU time of the recorder's process:

"""


def steps_section(costs: Sequence[Cost], outcome: Outcome | None) -> str:
    """The costs as a Markdown table; then the floors, if the proxies were measured, too."""
    rows = [["load", "step", "µs"], ["---", "---", "---:"]]
    rows += [[cost.load, cost.step, f"{cost.us:.2f}"] for cost in costs]
    floors = list(_floors(costs, outcome)) if outcome is not None else []
    if not floors:
        return f"{_HEAD}{markdown(rows)}"
    head = ["load", BARE, "steps", "floor", f"x {YARDSTICK}", "measured", f"x {YARDSTICK}"]
    table = markdown([head, ["---", *["---:"] * 6], *floors])
    return f"{_HEAD}{markdown(rows)}{_FLOOR_HEAD}{table}"


def _floors(costs: Sequence[Cost], outcome: Outcome) -> Iterator[list[str]]:
    titles = {scenario.name: scenario.title for scenario in SCENARIOS}
    for name, load in _FLOORS:
        found = [figure(outcome, name, proxy, PROXY_CPU) for proxy in (BARE, YARDSTICK, OURS)]
        if None not in found:
            bare, nginx, ours = (each.median for each in found if each is not None)
            steps = sum(cost.us for cost in costs if cost.load == load and cost.part)
            us = [f"{each:.1f}" for each in (bare, steps, bare + steps, ours)]
            times = [f"{each / nginx:.2f}" for each in (bare + steps, ours)]
            yield [titles[name], *us[:3], times[0], us[3], times[1]]
