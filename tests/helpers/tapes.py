"""Small tapes as lines, and a clock that stands still."""

from collections.abc import Callable, Iterable
from pathlib import Path

from deltatape.model.exchange import EndReason, Framing, Source
from deltatape.tape import encode
from deltatape.tape.mask import Masker
from deltatape.tape.payload import ClientState
from deltatape.tape.record import Header
from deltatape.tape.tap import ExchangeTap, TapeTap

MASKER = Masker(b"k" * 32)

HEADER = Header(
    id="01JD3ZQ8T0000000000000TAPE",
    tool="deltatape 0.1.0",
    recorded_at="2026-11-21T20:36:01.000000000Z",
    source=Source.GATEWAY,
)


class StillClock:
    """A clock that moves only when told to; `steps` are added at each look, one after another."""

    def __init__(self, steps: Iterable[int] = ()) -> None:
        self.ns = 5_000_000_000
        self._steps = iter(steps)

    def now_ns(self) -> int:
        self.ns += next(self._steps, 0)
        return self.ns

    def wall_ns(self) -> int:
        return 1_795_293_361_000_000_000


class Lines:
    """What taps wrote."""

    def __init__(self) -> None:
        self.all: list[bytes] = []

    def put(self, exchange: int, line: bytes) -> None:
        assert line.endswith(b"\n")
        assert line.count(b"\n") == 1
        assert line.split(b",")[1] == b"%d" % exchange
        self.all.append(line)

    @property
    def text(self) -> str:
        return b"".join(self.all).decode()


def taped(feed: Callable[[ExchangeTap], None]) -> Lines:
    """The lines of an exchange number 1 that `feed` tells of, by a recorder that saw no other."""
    lines = Lines()
    tap = ExchangeTap(1, lines.put, Masker(b"k" * 32))
    feed(tap)
    tap.flush()
    return lines


def start(
    tap: ExchangeTap,
    framing: Framing = Framing.CHUNKED,
    body: bytes = b'{"a":1}',
    t_ns: int = 0,
) -> None:
    """A request that comes at `t_ns`, and the head of its response."""
    tap.request(
        t_ns,
        id="01JD3ZQ8T0000000000000001A",
        method="POST",
        target=b"/v1/chat/completions?key=fake-key",
        upstream="https://api.example.com",
        http="1.1",
        headers=((b"Host", b"api.example.com"), (b"Authorization", b"Bearer fake")),
    )
    tap.request_body(t_ns + 10, body)
    tap.request_end(t_ns + 20)
    tap.sent(t_ns + 30, connect_ns=5, tls_ns=6, reused=False)
    tap.informational(
        t_ns + 40, status=103, reason=b"Early Hints", http="1.1", headers=((b"Link", b"<a>"),)
    )
    tap.response(
        t_ns + 50,
        status=200,
        reason=b"OK",
        http="1.1",
        framing=framing,
        headers=((b"content-type", b"text/event-stream"),),
    )


def every_record(put: Callable[[int, bytes], None]) -> None:
    """Feeds two exchanges, one of them unfinished, that use every code taps write."""
    tape, first, second = TapeTap(put), ExchangeTap(1, put, MASKER), ExchangeTap(2, put, MASKER)
    tape.client(0, connection=1, state=ClientState.OPENED)
    tape.note(0, "a remark \u202e about the tape")
    start(first)
    start(second, Framing.LENGTH, b"\x00\xff")
    first.read(60, b"data: 1\n\n", (9,))
    first.read(70, b"data: 2\n\ndata", (9,))
    second.read(75, "é\u2028".encode(), None)
    first.read(80, b": 3\n\n\xff", (0, 6))
    first.trailers(90, ((b"X-Sum", b"1"), (b"X-Api-Key", b"fake")))
    first.delivered(100, 22)
    first.idle(110)
    first.note(120, "a remark")
    first.end(
        130, EndReason.UPSTREAM_RESET, detail="connection reset", recorder={"lost_records": 1}
    )
    second.idle(140)
    tape.client(150, connection=1, state=ClientState.CLOSED)


def whole_tape() -> bytes:
    """A tape with every code that is written today, and a normal end."""
    lines = Lines()
    every_record(lines.put)
    TapeTap(lines.put).stop(160, "child-exit", 0)
    return encode.header_line(HEADER) + b"".join(lines.all)


def write_tape(folder: Path, content: bytes, name: str = "x.tape") -> str:
    """A file with `content`, as the path that a user would name."""
    path = folder / name
    path.write_bytes(content)
    return str(path)
