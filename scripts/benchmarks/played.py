"""Tapes for the player: the provider's small answer, and a stream of a steady rate."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.traffic import ANSWER, PATH, request
from deltatape.model.exchange import EndReason, Framing, Source
from deltatape.tape.encode import header_line
from deltatape.tape.mask import Masker
from deltatape.tape.record import Header
from deltatape.tape.tap import ExchangeTap, TapeTap

STREAM_PATH = "/v1/stream"
STREAM_BODY = b"{}"
HEAD_FIELDS = ((b"content-type", b"text/event-stream"), (b"transfer-encoding", b"chunked"))
PIECE = b'data: {"choices":[{"index":0,"delta":{"content":"%s"}}]}\n\n' % (b"x" * 80)
"""What each read brings, an HTTP chunk of its own."""

_HEAD, _, _SMALL = ANSWER.partition(b"\r\n\r\n")
_SMALL_FIELDS = tuple(
    (name, value) for name, _, value in (line.partition(b": ") for line in _HEAD.split(b"\r\n")[1:])
)
_SOON_NS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a tape holds for a request: `reads` are nanoseconds after the request, and bytes."""

    path: str
    body: bytes
    framing: Framing
    fields: tuple[tuple[bytes, bytes], ...]
    reads: Sequence[tuple[int, bytes]]


def small_answers() -> tuple[Answer, ...]:
    """The answers to the clients' small request, and to who looks whether anybody answers."""
    asked = request(0, b"", stream=False).partition(b"\r\n\r\n")[2]
    return tuple(
        Answer(
            path=PATH,
            body=body,
            framing=Framing.LENGTH,
            fields=_SMALL_FIELDS,
            reads=((_SOON_NS, _SMALL),),
        )
        for body in (asked, b"{}")
    )


def stream_answer(due_ns: Sequence[int]) -> Answer:
    """A stream whose reads are due at those times."""
    return Answer(
        path=STREAM_PATH,
        body=STREAM_BODY,
        framing=Framing.CHUNKED,
        fields=HEAD_FIELDS,
        reads=[(due, PIECE) for due in due_ns],
    )


def write_tape(path: Path, answers: Sequence[Answer]) -> Path:
    """A tape of those; its path."""
    lines: list[bytes] = []

    def put(_exchange: int, line: bytes) -> None:
        lines.append(line)

    header = Header(
        id="0" * 26, tool="", recorded_at="2026-01-01T00:00:00.000000000Z", source=Source.GATEWAY
    )
    last_ns = 0
    for number, answer in enumerate(answers, 1):
        last_ns = max(last_ns, _tape(ExchangeTap(number, put, Masker(bytes(32))), number, answer))
    TapeTap(put).stop(last_ns, "benchmark", None)
    path.write_bytes(header_line(header) + b"".join(lines))
    return path


def _tape(tap: ExchangeTap, number: int, answer: Answer) -> int:
    """Write one exchange; when it ends."""
    tap.request(
        0,
        id=f"{number:026}",
        method="POST",
        target=answer.path.encode(),
        upstream="http://127.0.0.1",
        http="1.1",
        headers=(),
    )
    tap.request_body(0, answer.body)
    tap.request_end(0)
    tap.response(
        _SOON_NS,
        status=200,
        reason=b"OK",
        http="1.1",
        framing=answer.framing,
        headers=answer.fields,
    )
    for t_ns, data in answer.reads:
        tap.read(t_ns, data, (len(data),) if answer.framing is Framing.CHUNKED else None)
    last_ns = answer.reads[-1][0]
    tap.end(last_ns, EndReason.COMPLETE, detail="", recorder={})
    tap.flush()
    return last_ns
