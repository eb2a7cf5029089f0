"""What a recorder and its analysing process send each other: one JSON object per line.

A tape has a number, its `key`, that the recorder chooses: a tape may be renamed while it is
recorded. Everything here is between two processes of one version.
"""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

from deltatape.model.app_names import AppNames
from deltatape.model.finding import Severity
from deltatape.model.rule_settings import Settings

M = TypeVar("M")


class MessageCodec(Generic[M]):
    """Writes dataclasses as lines of JSON, and reads them; `kind` names the class."""

    def __init__(self, *classes: type[Any]) -> None:
        self._classes: Mapping[str, type[M]] = {one.kind: one for one in classes}

    def encode(self, message: M) -> bytes:
        """Return the message as a line."""
        one: Any = message
        fields = {each.name: getattr(one, each.name) for each in dataclasses.fields(one)}
        return json.dumps({"kind": one.kind, **fields}).encode() + b"\n"

    def decode(self, line: bytes) -> M:
        """Return the message of a line."""
        fields = json.loads(line)
        return self._classes[fields.pop("kind")](**fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """To the process, first: the thresholds of the rules.

    Attributes:
        settings: the thresholds.
        sharded: whether the tapes of one name are shards, which are read as one tape.
    """

    kind: ClassVar = "begin"
    settings: Mapping[str, object]
    sharded: bool = False

    @staticmethod
    def of(settings: Settings, *, sharded: bool = False) -> "Begin":
        return Begin(settings=dataclasses.asdict(settings), sharded=sharded)

    def rules(self) -> Settings:
        """Return the thresholds; JSON has no tuples."""
        fields = {name: _tuples(value) for name, value in self.settings.items() if name != "app"}
        names = self.settings["app"]
        assert isinstance(names, Mapping)
        app = AppNames(**{name: _tuples(value) for name, value in names.items()})  # type: ignore[arg-type]
        return Settings(**fields, app=app)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """To a process that replaces another: closed tapes, whose conversations may continue.

    Attributes:
        tapes: their names, as in `Follow`, and paths; the oldest first.
    """

    kind: ClassVar = "recall"
    tapes: Sequence[tuple[str | None, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Follow:
    """To the process: a tape. `name`: what requests call it; None for the main tape."""

    kind: ClassVar = "follow"
    key: int
    path: str
    name: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """To the process: `ended` more exchanges on this tape have ended."""

    kind: ClassVar = "look"
    key: int
    ended: int = 1


LAG_NS = 300_000_000
"""How much later than its client a recorder may note the end of an exchange: the client's next
request may come to another recorder, and end before that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """To the process: all exchanges on shards that ended by then were named in a `Look`.

    They are judged `LAG_NS` later, in the order of their numbers.
    """

    kind: ClassVar = "settled"
    until_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Close:
    """To the process: nothing follows on this tape; see `TapeSummary` for the rest."""

    kind: ClassVar = "close"
    key: int
    until_ns: int
    reason: str
    exit_code: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeReport:
    """From the process: an exchange that has ended.

    Attributes:
        lines: for the user, the first about the exchange, one for each finding after it.
        findings: as `check --format json` has them.
        parsed: the payload of its `parsed` record.
        end_ns: when it ended, on the clock of the tape; None if unknown.
    """

    kind: ClassVar = "exchange"
    key: int
    number: int
    lines: Sequence[str]
    findings: Sequence[Mapping[str, object]]
    parsed: Mapping[str, object] | None = None
    end_ns: int | None = None

    @property
    def severities(self) -> set[Severity]:
        return {Severity(str(finding["severity"])) for finding in self.findings}


@dataclass(frozen=True, slots=True, kw_only=True)
class SilenceReport(ExchangeReport):
    """From the process: a reply whose calls were never answered on a tape that was closed."""

    kind: ClassVar = "silence"


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """From the process: everything about this tape has been reported."""

    kind: ClassVar = "closed"
    key: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """From the process: the tape cannot be followed; its exchanges are not analysed."""

    kind: ClassVar = "unreadable"
    key: int
    problem: str


Message: TypeAlias = (
    Begin
    | Recall
    | Follow
    | Look
    | Settled
    | Close
    | ExchangeReport
    | SilenceReport
    | Closed
    | Unreadable
)
_CODEC = MessageCodec[Message](
    *(Begin, Recall, Follow, Look, Settled, Close),
    *(ExchangeReport, SilenceReport, Closed, Unreadable),
)
encode, decode = _CODEC.encode, _CODEC.decode


def _tuples(value: object) -> object:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
