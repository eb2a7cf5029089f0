"""Turns a tape into rows of the tables of `schema`.

It reads the tape once, in bounded memory, as `check` does, with the same findings. Rows of
exchanges and findings come when nothing that follows can change them. A row is a tuple of the
values of its table's columns; times are microseconds since 1970.
"""

import hashlib
import re
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from deltatape.diagnose.check_tape import NEAR, fingerprint, request_identity
from deltatape.diagnose.rebuild import Analysis, batches, body_bytes
from deltatape.model.digest import Digest
from deltatape.model.exchange import Exchange, header, wall_time
from deltatape.model.exchange_row import ExchangeRow
from deltatape.model.finding import Severity
from deltatape.model.reply import CallKind, CallStatus, ToolCall
from deltatape.model.rule_settings import DEFAULTS, Settings
from deltatape.model.tape_summary import LogEntry
from deltatape.printable import excerpt
from deltatape.rules.loss import is_lossy
from deltatape.rules.stalls import STALL, DeadZone
from deltatape.scan.digest_codec import DigestEncoder, root_of
from deltatape.scan.schema import CALLS, DIGESTS, EXCHANGES, FINDINGS, Table
from deltatape.secret_text.search import without_secrets
from deltatape.why.exchange_index import (
    CheckedExchange,
    CountedFinding,
    ExchangeIndexer,
    check_all,
)
from deltatape.why.overview import app_of

Row: TypeAlias = tuple[object, ...]
TapeRows: TypeAlias = dict[str, list[Row]]
"""Rows by the names of their tables."""

_BATCH_ROWS = 4096
_BATCH_BYTES = 4 << 20
"""Rows are handed on when there are more than this, or more bytes of digests than this."""
_SCHEMA = "T008"
_CALL = re.compile(r"\bcall (\d{1,9})(?: \(([^()]*)\))?(?: of #(\d+))?")
"""How messages name a call: `call 0 (get_weather)`, `call 0 (get_weather, c1) of #1`."""
_CHECKED_KINDS = frozenset({CallKind.FUNCTION, CallKind.LEGACY})
_MOST_OF_TRACE = 100
_MOST_OF_NAME = 60
_US_NS = 1000


def tape_rows(
    exchanges: Iterable[Exchange],
    key: str,
    rules: str,
    settings: Settings = DEFAULTS,
    logs: Iterable[LogEntry] = (),
    *,
    alone: bool = False,
    near: int = NEAR,
) -> Iterator[TapeRows]:
    """Yield the rows of a tape for all tables but `tapes`, in batches.

    Args:
        exchanges: all exchanges of the tape, in the order in which they ended.
        key: names the tape in the dataset.
        rules: the version of the rules.
        settings: the thresholds.
        logs: the application's output, in order; read after the exchanges, if at all.
        alone: see `check_tape.check_exchanges`.
        near: see `check_tape.NEAR`.
    """
    made = _RowMaker(key, rules, alone=alone)
    indexer = ExchangeIndexer(settings, logs=logs, near=near, alone=alone, found=made.find)
    for batch in batches(exchanges, body_bytes):
        for checked in check_all(batch, settings):
            made.add(checked)
            made.show(indexer.add_checked(checked), indexer.held)
        if made.is_full:
            yield made.take()
    made.show(indexer.end(), ())
    yield made.take()


class ReportedSilence(NamedTuple):
    """A silence that a finding reports."""

    code: str
    """The code of the finding."""
    event: int | None
    """The event after which it began, numbered as the finding numbers it."""
    phase: str
    silent_ns: int


class _Sent(NamedTuple):
    """The columns of an exchange's row that an `ExchangeRow` lacks."""

    id: str
    at_us: int | None
    request_bytes: int
    response_bytes: int
    client_name: str | None
    client_version: str | None
    traceparent: str | None


class _RowMaker:
    """Collects the rows of a tape that are final, until they are taken."""

    def __init__(self, key: str, rules: str, *, alone: bool) -> None:
        self._alone = alone
        self._key = key
        self._rules = rules
        self._made: TapeRows = {}
        self._bytes = 0
        self._digests = DigestEncoder()
        self._sent: dict[int, _Sent] = {}
        self._shown: dict[int, ExchangeRow] = {}
        self._silences: dict[int, list[ReportedSilence]] = {}
        """The silences of the exchanges whose rows may still change."""

    @property
    def is_full(self) -> bool:
        """Whether it is time to take the rows."""
        return self._bytes > _BATCH_BYTES or sum(map(len, self._made.values())) > _BATCH_ROWS

    def take(self) -> TapeRows:
        """Return the rows collected so far, and forget them."""
        made, self._made, self._bytes = self._made, {}, 0
        return made

    def _put(self, table: Table, *values: object) -> None:
        self._made.setdefault(table.name, []).append((self._key, *values, self._rules))

    def add(self, checked: CheckedExchange) -> None:
        """Make the rows that need nothing but this exchange."""
        analysis, exchange = checked.analysis, checked.analysis.exchange
        number = exchange.number
        self._sent[number] = _sent(exchange)
        if checked.zones:
            self._silences[number] = [_reported(turn, zone) for turn, zone in checked.zones]
        choice = 0
        for turn in analysis.turns or (analysis,):
            for each in turn.reply.choices:
                for call in each.every_call:
                    self._add_call(checked, turn, choice, call)
                choice += 1
        for place, digest in enumerate(checked.digests):
            self._add_digest(exchange, place, digest)

    def _add_call(
        self, checked: CheckedExchange, turn: Analysis, choice: int, call: ToolCall
    ) -> None:
        arguments = call.arguments.encode("utf-8", "surrogatepass")
        self._put(
            CALLS,
            turn.exchange.number,
            choice,
            call.kind.value,
            call.index,
            _shown(call.id),
            _shown(call.name),
            call.status.value,
            list(call.repairs),
            len(call.fragments),
            len(arguments),
            hashlib.sha256(arguments).hexdigest(),
            _fits_schema(checked, turn, call),
        )

    def _add_digest(self, exchange: Exchange, turn: int, digest: Digest) -> None:
        if root_of(digest) is None:
            return  # there is nothing to compare
        root, data = self._digests.encode(digest)
        began = began_us(exchange.recorded_at)
        self._bytes += len(data)
        self._put(
            DIGESTS,
            digest.exchange,
            turn,
            _wall_us(exchange.recorded_at, digest.t_ns),
            root,
            digest.reply_id,
            digest.previous,
            len(digest.history),
            len(digest.calls),
            len(digest.results),
            None if began is None else began * _US_NS,
            self._alone,
            data,
        )

    def find(self, counted: CountedFinding) -> None:
        """Make the row of a finding."""
        finding = counted.finding
        known = self._silences.get(finding.exchange, ())
        place = finding.code, finding.event
        silence = next((each for each in known if (each.code, each.event) == place), None)
        row = finding_row(self._key, self._rules, counted, silence)
        self._made.setdefault(FINDINGS.name, []).append(row)

    def show(self, rows: Iterable[ExchangeRow], held: Container[int]) -> None:
        """Note new and changed rows; make those of exchanges that can no longer change.

        Args:
            rows: the new and the changed rows.
            held: the exchanges whose rows may still change.
        """
        before = len(self._shown)
        self._shown.update((row.exchange, row) for row in rows)
        if len(self._shown) == before and held:
            return
        for number in sorted(each for each in self._shown if each not in held):
            self._silences.pop(number, None)
            row, sent = self._shown.pop(number), self._sent.pop(number)
            self._put(EXCHANGES, *_exchange_values(row, sent))


def _exchange_values(row: ExchangeRow, sent: _Sent) -> Row:
    tokens, worst = row.tokens, row.worst
    return (
        row.exchange,
        sent.id,
        sent.at_us,
        row.t_ns,
        _shown(row.provider),
        _shown(row.model),
        row.dialect,
        _shown(row.method),
        _shown(row.target),
        row.status,
        row.duration_ns,
        row.first_event_ns,
        tokens.input if tokens else None,
        tokens.output if tokens else None,
        sent.request_bytes,
        sent.response_bytes,
        row.calls,
        _shown(row.finish),
        row.ending.value if row.ending else None,
        row.findings,
        list(row.codes),
        worst.code if worst else None,
        worst.severity.value if worst else None,
        worst.blame.value if worst and worst.blame else None,
        worst.confidence.value if worst else None,
        row.dead_zones,
        row.dead_ns,
        row.thread,
        row.before,
        [mark.value for mark in row.marks],
        sent.client_name,
        sent.client_version,
        sent.traceparent,
    )


def finding_row(
    key: str,
    rules: str,
    counted: CountedFinding,
    silence: ReportedSilence | None = None,
    *,
    across: bool = False,
) -> Row:
    """Return the row of a finding.

    Args:
        key: names the tape that it is on.
        rules: the version of the rules.
        counted: the finding.
        silence: the silence that it reports, if it reports one.
        across: whether it takes several tapes to see it.
    """
    finding = counted.finding
    return (
        key,
        finding.exchange,
        counted.about,
        _call_in(finding.message, counted.about, counted.replies),
        finding.code,
        finding.name,
        finding.severity.value,
        finding.blame.value if finding.blame else None,
        finding.confidence.value,
        without_secrets(finding.message),
        finding.line,
        finding.event,
        finding.t_ns,
        silence.phase if silence else None,
        silence.silent_ns if silence else None,
        across,
        False,
        fingerprint(counted.original, request_identity(counted.request)),
        rules,
    )


def _call_in(message: str, about: int, replies: Sequence[Digest]) -> int | None:
    """Return the index of the first call of the reply that a message names, or None."""
    calls = {call.index: call for reply in replies for call in reply.calls}
    for index, named, of in _CALL.findall(message) if calls else ():
        call = calls.get(int(index))
        if call is not None and of in ("", str(about)):
            name = excerpt(call.name, _MOST_OF_NAME) if call.name else ""
            if not named or named.startswith(name):
                return call.index
    return None


def _fits_schema(checked: CheckedExchange, turn: Analysis, call: ToolCall) -> bool | None:
    """Return whether a call fits its tool's schema; None if not all of it was checked."""
    tool = turn.request.tool(call.name)
    if call.status is not CallStatus.COMPLETE or tool is None or tool.parameters is None:
        return None
    if call.kind not in _CHECKED_KINDS or is_lossy(checked.analysis.exchange):
        return None
    event = call.fragments[-1].event if call.fragments else call.start_event
    place = turn.numbers[event] if turn.numbers else event
    named = f"call {call.index} "
    found = [each for each in checked.findings if each.code == _SCHEMA]
    for each in found:
        if each.event == place and named in each.message:
            return None if each.severity is Severity.INFO else False
    partly = any(each.severity is Severity.INFO for each in found)
    return None if partly else True


def _sent(exchange: Exchange) -> _Sent:
    request = exchange.request
    name, version = _client(header(request.headers, "user-agent") or b"")
    trace = header(request.headers, "traceparent")
    return _Sent(
        id=exchange.id,
        at_us=_wall_us(exchange.recorded_at, request.t_ns) if exchange.timed else None,
        request_bytes=len(request.body),
        response_bytes=exchange.body_size,
        client_name=name,
        client_version=version,
        traceparent=_shown(trace.decode("latin-1")[:_MOST_OF_TRACE]) if trace else None,
    )


@lru_cache(maxsize=256)
def _client(user_agent: bytes) -> tuple[str | None, str | None]:
    """Split a `User-Agent` into name and version, as `OpenAI/Python` and `3.54.0`."""
    app = without_secrets(app_of(user_agent))
    name, mark, version = app.rpartition(" " if " " in app else "/")
    return (name, version) if mark else (app or None, None)


def _reported(turn: Analysis, zone: DeadZone) -> ReportedSilence:
    silence, code = zone
    event = None
    # What comes after a tool's result is reported at the request.
    if silence.after is not None and code == STALL:
        event = silence.after.number
        event = turn.numbers[event] if turn.numbers else event
    length_ns = silence.end_ns - silence.start_ns
    return ReportedSilence(code or "", event, silence.phase, length_ns)


def _shown(text: str | None) -> str | None:
    return None if text is None else without_secrets(text)


def _wall_us(recorded_at: str, t_ns: int | None) -> int | None:
    """Convert a time of a tape to microseconds since 1970; None if unknown."""
    began = began_us(recorded_at)
    return None if began is None or t_ns is None else began + t_ns // _US_NS


@lru_cache(maxsize=64)
def began_us(recorded_at: str) -> int | None:
    """Return when a tape began, in microseconds since 1970; None if that is not a valid time.

    Args:
        recorded_at: the time in its header.
    """
    at = wall_time(recorded_at, 0)
    return None if at is None else int(at.timestamp()) * 1_000_000 + at.microsecond
