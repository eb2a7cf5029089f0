"""Tapes to be spliced: any number of exchanges that interleave, ended in any way or not at all."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hypothesis import strategies as st

from deltatape.clock import rfc3339
from deltatape.model.exchange import EndReason, Exchange, Framing, Source
from deltatape.model.tape_summary import LogStream
from deltatape.tape import encode
from deltatape.tape.payload import ClientState
from deltatape.tape.tap import ExchangeTap, TapeTap
from helpers.tapes import HEADER, MASKER, Lines

BEGUN_NS = 1_795_293_361_000_000_000
_IDS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

Step = tuple[int, int, int]
"""Which exchange (0: the tape), what it does, after how many nanoseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A tape that is to be written."""

    name: str
    begun_ns: int
    steps: Sequence[Step]
    stop: str | None = "interrupted"
    source: Source = Source.GATEWAY
    torn: bytes = b""

    def content(self) -> bytes:
        """The bytes of the tape."""
        lines = Lines()
        self._feed(lines.put)
        ident = "".join(_IDS[ord(each) % 32] for each in f"{self.name:0>26}"[-26:])
        header = replace(HEADER, id=ident, recorded_at=rfc3339(self.begun_ns), source=self.source)
        return encode.header_line(header) + b"".join(lines.all) + self.torn

    def _feed(self, put: Callable[[int, bytes], None]) -> None:
        tape, taps, t_ns = TapeTap(put, MASKER), dict[int, ExchangeTap](), 0
        for which, what, later in self.steps:
            t_ns += later
            if which == 0:
                _of_tape(tape, what, t_ns)
            elif which not in taps:
                taps[which] = ExchangeTap(len(taps) + 1, put, MASKER)
                _begin(taps[which], t_ns, f"{self.name}-{which}")
            else:
                _of_exchange(taps[which], what, t_ns)
        if self.stop is not None:
            tape.stop(t_ns, self.stop, 3 if self.stop == "child-exit" else None)

    def write(self, folder: Path) -> Path:
        """The tape as a file."""
        path = folder / f"{self.name}.tape"
        path.write_bytes(self.content())
        return path


def _begin(tap: ExchangeTap, t_ns: int, name: str) -> None:
    ident = "".join(_IDS[ord(each) % 32] for each in f"{name:0>26}"[-26:])
    tap.request(
        t_ns,
        id=ident,
        method="POST",
        target=b"/v1/chat/completions",
        upstream="https://api.example.com",
        http="1.1",
        headers=((b"Host", b"api.example.com"),),
    )


def _of_tape(tape: TapeTap, what: int, t_ns: int) -> None:
    match what % 4:
        case 0:
            tape.client(t_ns, connection=1 + what % 3, state=ClientState.OPENED)
        case 1:
            tape.log(t_ns, LogStream.STDERR, b"it said \xff\n")
        case 2:
            tape.note(t_ns, "a remark \u202e")
        case _:
            tape.idle(t_ns)


def _of_exchange(tap: ExchangeTap, what: int, t_ns: int) -> None:
    match what % 6:
        case 0:
            tap.request_body(t_ns, b'{"a":"\xc3\xa9"}')
        case 1:
            tap.response(
                t_ns, status=200, reason=b"OK", http="1.1", framing=Framing.CHUNKED, headers=()
            )
        case 2:
            tap.read(t_ns, b"data: \xf0\x9f", (3,))
        case 3:
            tap.read(t_ns, b"x\n\n", (3,))
        case 4:
            tap.idle(t_ns)
        case _:
            tap.end(t_ns, EndReason.UPSTREAM_RESET, detail="reset")


@st.composite
def plans(draw: st.DrawFn, name: str) -> Plan:
    """Any tape."""
    steps = st.tuples(st.integers(0, 3), st.integers(0, 11), st.integers(0, 10**9))
    return Plan(
        name=name,
        begun_ns=BEGUN_NS + draw(st.integers(0, 5 * 10**9)),
        steps=draw(st.lists(steps, max_size=25)),
        stop=draw(st.sampled_from([None, "interrupted", "child-exit"])),
        torn=draw(st.sampled_from([b"", b'[7,1,"rea'])),
    )


def at(exchange: Exchange, wall_ns: int) -> Exchange:
    """`exchange` without what splicing may change: names, numbers, lines, the tape's own end.

    Times count from 1970; `wall_ns` is what they counted from.
    """

    def moved(t_ns: int) -> int:
        return t_ns + wall_ns

    request = exchange.request
    ended_ns = request.t_end_ns
    return replace(
        exchange,
        tape="",
        number=0,
        recorded_at="",
        watch=None,
        stopped_ns=None,
        request=replace(
            request,
            t_ns=moved(request.t_ns),
            t_end_ns=None if ended_ns is None else moved(ended_ns),
            line=None,
        ),
        response=exchange.response
        and replace(exchange.response, t_ns=moved(exchange.response.t_ns), line=None),
        reads=tuple(read._replace(t_ns=moved(read.t_ns), line=None) for read in exchange.reads),
        idle_ns=tuple(map(moved, exchange.idle_ns)),
        end=exchange.end and replace(exchange.end, t_ns=moved(exchange.end.t_ns), line=None),
    )
