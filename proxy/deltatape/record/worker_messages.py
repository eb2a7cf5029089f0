"""The messages between a session and its workers: one JSON object per line.

A worker gives each of its tapes a number, the `key`, since a tape can be renamed while it is
recorded. All processes have the same version. Standard library only: mitmproxy's addon, which also
records in another process, uses some of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from deltatape.gateway.routes import Routes
from deltatape.live.messages import MessageCodec
from deltatape.store.writer import ShardOrigin

if TYPE_CHECKING:
    from deltatape.record.recording import RecordOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """To a worker, first, and pickled: what it records.

    Attributes:
        options: with the ports that are shared.
        routes: where it forwards.
        environment: the environment of the session.
        folder: the working directory.
        mask_key: see `Masker`.
        origin: the origin of its tapes.
        numbers: the descriptor of a pipe that gives the next number of an exchange, in 8 bytes.
        sockets: the descriptors on which it listens, by the address of the option.
    """

    options: "RecordOptions"
    routes: Routes
    environment: Mapping[str, str]
    folder: str
    mask_key: bytes
    origin: ShardOrigin
    numbers: int
    sockets: Mapping[str, Sequence[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """From a worker: it accepts connections. `tape`: the path of its main tape."""

    kind: ClassVar = "listening"
    tape: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """From a worker, last: it cannot start."""

    kind: ClassVar = "failed"
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Taped:
    """From a worker: a tape, or its new path. `name`: what requests call it."""

    kind: ClassVar = "taped"
    key: int
    path: str
    name: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """From a worker: exchanges have ended."""

    kind: ClassVar = "ended"
    key: int
    numbers: Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Closing:
    """From a worker: a tape ends now; see `TapeSummary`."""

    kind: ClassVar = "closing"
    key: int
    until_ns: int
    reason: str
    exit_code: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """From a worker: see `Refusal`."""

    kind: ClassVar = "refused"
    status: int
    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """From a worker: a line for the user. `how`: the name of a method of `RecordingObserver`."""

    kind: ClassVar = "said"
    text: str
    how: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Taping:
    """From a worker: whether everything can be taped now; see `RecorderObserver.taping`."""

    kind: ClassVar = "taping"
    works: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """From a worker: its `RecordingCounts`, and that it has told of all that ended by then.

    `until_ns` counts from the same instant as the times on tapes.
    """

    kind: ClassVar = "counted"
    until_ns: int
    counts: Sequence[object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drained:
    """From a worker that was to stop: its streams have ended, and its tapes wait to be analysed."""

    kind: ClassVar = "drained"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """From a worker: it has done what a `Pin` asked for."""

    kind: ClassVar = "pinned"
    ticket: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """To a worker: what was parsed of an exchange."""

    kind: ClassVar = "parsed"
    key: int
    number: int
    parsed: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """To a worker: keep what was taped around that time."""

    kind: ClassVar = "pin"
    ticket: int
    wall_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """To a worker: say now what has ended."""

    kind: ClassVar = "report"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """To a worker: end the recording. The end of messages means that its tapes are analysed."""

    kind: ClassVar = "stop"
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """To a worker: accept no more connections, and cut streams that last longer than this."""

    kind: ClassVar = "drain"
    timeout_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionsClosed:
    """From a worker that was to drain: no connection is open any more."""

    kind: ClassVar = "connections-closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hurry:
    """To a worker: wait for nothing."""

    kind: ClassVar = "hurry"


RecordingNews: TypeAlias = (
    Taped | Ended | Closing | Refused | Said | Taping | Counted | Drained | Pinned
)
FromWorker: TypeAlias = Listening | Failed | ConnectionsClosed | RecordingNews
ToWorker: TypeAlias = Parsed | Pin | Report | Drain | Stop | Hurry
_CODEC = MessageCodec[FromWorker | ToWorker](
    *(Listening, Failed, Taped, Ended, Closing, Refused, Said, Taping, Counted, Drained, Pinned),
    *(ConnectionsClosed, Parsed, Pin, Report, Drain, Stop, Hurry),
)
encode, decode = _CODEC.encode, _CODEC.decode
