"""Conversations on several tapes, joined on engines: scans find what one tape of all would show."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from deltatape.ask.dataset import Dataset
from deltatape.cli.parallel_check import check_one
from deltatape.clock import SystemClock
from deltatape.errors import DeltatapeError
from deltatape.model.rule_settings import DEFAULTS
from deltatape.scan import join as join_module
from deltatape.scan.engine import LocalEngine, Lost, dask_engine
from deltatape.scan.join import join
from deltatape.scan.scan import ScanSummary, scan
from deltatape.scan.schema import JOINED, rules_key
from deltatape.store.reader import open_tape
from deltatape.store.rule_set import rule_set
from deltatape.store.splice import SpliceSource, splice
from helpers.chat import sse
from helpers.exchanges import CALL_REPLY, TEXT_REPLY, USER, asks, assistant, result, user
from helpers.recording import recording
from helpers.shards import sharded
from helpers.upstream import Peer, ok_response, post, provider, run

RECORDINGS = Path(__file__).resolve().parents[2] / "recordings"
LOST_CALL = RECORDINGS / "rules" / "C001" / "fires.tape"
RULES = rules_key(rule_set())
HERE = LocalEngine(1)
LOST = assistant(text="Hello")
"""An assistant's message without the call of its reply."""
MORE = user("And tomorrow?")
OTHERS = frozenset({"C014", "C021", "C023", "C024", "C025", "C026"})
"""What relates conversations that begin differently, or that a tool server shows."""

Found = Counter[tuple[str, str]]
"""Codes and fingerprints of findings."""


def _cut(tape: Path, folder: Path) -> Path:
    """Cut a tape into one for each recorder: exchanges go to one and the other in turn."""
    folder.mkdir(parents=True)
    numbers = [each.number for each in open_tape(str(tape)).exchanges()]
    for part in range(2):
        own = frozenset(numbers[part::2])
        source = SpliceSource(tape=open_tape(str(tape)), numbers=own)
        splice([source], folder / f"{tape.stem}-{part}.tape", SystemClock())
    return folder


def _scanned(tapes: Path, out: Path, engine: LocalEngine = HERE) -> ScanSummary:
    return scan(str(tapes), str(out), engine, DEFAULTS)


def _found(out: Path) -> Found:
    with Dataset(out) as opened:
        rows = opened.ask("SELECT code, fingerprint FROM findings").rows
        return Counter((str(code), str(fingerprint)) for code, fingerprint in rows)


def _checked(tape: Path) -> Found:
    report = check_one(str(tape), DEFAULTS)
    return Counter((each.finding.code, each.fingerprint) for each in report.reported)


def test_a_call_lost_between_two_recorders_is_found_once(tmp_path: Path) -> None:
    out = tmp_path / "out"
    summary = _scanned(_cut(LOST_CALL, tmp_path / "tapes"), out)
    assert summary.across == 1
    with Dataset(out) as opened:
        (row,) = opened.ask("SELECT code, across, message FROM findings").rows
    assert row[:2] == ("C001", True)
    assert " of " in str(row[2])


CASES = [
    path
    for path in sorted((RECORDINGS / "rules").glob("C*/fires.tape"))
    if path.parent.name not in OTHERS
]


@pytest.mark.parametrize("tape", CASES, ids=lambda path: path.parent.name)
def test_two_tapes_show_what_one_showed(tmp_path: Path, tape: Path) -> None:
    _scanned(_cut(tape, tmp_path / "tapes"), tmp_path / "out")
    assert _found(tmp_path / "out") == _checked(tape)


def test_a_reply_that_the_provider_keeps_is_joined_with_the_request_that_goes_on(
    tmp_path: Path,
) -> None:
    """The request has only what is new, but it answers no call: so that has been lost."""
    tape = RECORDINGS / "rules" / "C013" / "silent-kept-by-the-provider.tape"
    numbers = [each.number for each in open_tape(str(tape)).exchanges()]
    folder = _cut(tape, tmp_path / "tapes")
    _scanned(folder, tmp_path / "out")
    assert len(numbers) > 1
    assert _found(tmp_path / "out") == _checked(tape)


SILENT = RECORDINGS / "rules" / "D003" / "fires.tape"


def _answer() -> bytes:
    """A tape on which the call of SILENT is answered, a minute later."""
    text = SILENT.read_bytes()
    asked = json.dumps(
        [
            {"role": "user", "content": "What is the weather in Gent?"},
            assistant(("call_fake0", "get_weather", '{"city":"Gent"}')),
            result("call_fake0", "rain"),
        ]
    )
    messages = re.compile(rb'messages\\":\[.*?\]')
    later = text.replace(b"01KAWT5C8000000000FA013606", b"01KAWT5C8000000000FA01360X")
    later = later.replace(b"T05:30:00", b"T05:31:00").replace(b"FE136061", b"FE136062")
    return messages.sub(lambda _: b'messages\\":' + json.dumps(asked)[1:-1].encode(), later)


def _silences(out: Path) -> list[str]:
    with Dataset(out) as opened:
        asked = "SELECT source FROM findings JOIN tapes USING (tape) WHERE code = 'D003'"
        return sorted(Path(str(row[0])).name for row in opened.ask(asked).rows)


def test_a_silence_is_withdrawn_if_another_tape_goes_on(tmp_path: Path) -> None:
    folder, out = tmp_path / "tapes", tmp_path / "out"
    folder.mkdir()
    (folder / "a.tape").write_bytes(SILENT.read_bytes())
    _scanned(folder, out)
    assert _silences(out) == ["a.tape"]
    (folder / "b.tape").write_bytes(_answer())
    assert _scanned(folder, out).withdrawn
    assert _silences(out) == ["b.tape"]


def test_an_error_is_none_if_another_tape_shows_the_answer(tmp_path: Path) -> None:
    tape = RECORDINGS / "apps" / "retry-after-429.tape"
    _scanned(_cut(tape, tmp_path / "tapes"), tmp_path / "out")
    assert _found(tmp_path / "out") == _checked(tape)
    with Dataset(tmp_path / "out") as opened:
        asked = "SELECT severity, message FROM findings WHERE code = 'S005' AND across"
        rows = list(opened.ask(asked).rows)
    assert rows
    for severity, message in rows:
        assert severity == "info"
        assert "the request was sent again and answered in #" in str(message)


def test_a_conversation_of_several_processes_is_found(tmp_path: Path) -> None:
    """By itself, the tape of a process is not compared, since other tapes may have the rest."""
    (tmp_path / "tapes").mkdir()
    sharded(LOST_CALL, tmp_path / "tapes", where=lambda _: 1)
    assert _scanned(tmp_path / "tapes", tmp_path / "out").across == 1
    assert _found(tmp_path / "out") == _checked(LOST_CALL)


def test_digests_are_dealt_out_to_any_number_of_partitions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(join_module, "_PARTITION_BYTES", 64)
    monkeypatch.setattr(join_module, "_STEP_FILES", 1)
    for name in ("C001", "C002", "C006"):
        folder = _cut(RECORDINGS / "rules" / name / "fires.tape", tmp_path / name)
        for path in folder.iterdir():
            (tmp_path / "tapes").mkdir(exist_ok=True)
            path.rename(tmp_path / "tapes" / f"{name}-{path.name}")
    many = _scanned(tmp_path / "tapes", tmp_path / "many").across
    monkeypatch.undo()
    assert many == _scanned(tmp_path / "tapes", tmp_path / "one").across
    assert _found(tmp_path / "many") == _found(tmp_path / "one")


def _across(out: Path) -> int:
    """How many rows the files of the join have."""
    files = sorted((out / "findings").rglob(f"{JOINED}-*"))
    return sum(pq.ParquetFile(path).metadata.num_rows for path in files)


def test_what_a_join_wrote_is_replaced_by_the_next(tmp_path: Path) -> None:
    folder, out = _cut(LOST_CALL, tmp_path / "tapes"), tmp_path / "out"
    _scanned(folder, out)
    assert _across(out) == 1
    assert join(str(out), HERE, "again", RULES, DEFAULTS).findings == 1
    assert _across(out) == 1
    digests = sorted((out / "digests").rglob("*.parquet"))
    digests[0].unlink()
    assert join(str(out), HERE, "again", RULES, DEFAULTS).findings == 0
    assert _across(out) == 0


def test_tapes_are_joined_once_until_there_are_more(tmp_path: Path) -> None:
    folder, out = _cut(LOST_CALL, tmp_path / "tapes"), tmp_path / "out"
    assert _scanned(folder, out).across == 1
    assert _scanned(folder, out).across == 0
    assert _across(out) == 1


def test_a_join_that_was_killed_is_done_by_the_next_scan(tmp_path: Path) -> None:
    folder, out = _cut(LOST_CALL, tmp_path / "tapes"), tmp_path / "out"
    _scanned(folder, out)
    for path in (out / "findings").rglob(f"{JOINED}-*"):
        path.unlink()
    assert _scanned(folder, out).across == 1


def test_tapes_of_other_rules_are_not_joined(tmp_path: Path) -> None:
    out = tmp_path / "out"
    _scanned(_cut(LOST_CALL, tmp_path / "tapes"), out)
    assert join(str(out), HERE, "again", "0" * 12, DEFAULTS).findings == 0


def test_nothing_is_left_of_the_way(tmp_path: Path) -> None:
    out = tmp_path / "out"
    _scanned(_cut(LOST_CALL, tmp_path / "tapes"), out)
    assert not (out / ".drafts").exists()


class _Losing:
    """An engine whose workers die."""

    def map(self, function: object, items: Iterable[str]) -> Iterator[tuple[str, Lost]]:
        del function
        for item in items:
            yield item, Lost("the workers died")


def test_a_lost_step_ends_the_join_and_leaves_what_was_there(tmp_path: Path) -> None:
    out = tmp_path / "out"
    _scanned(_cut(LOST_CALL, tmp_path / "tapes"), out)
    with pytest.raises(DeltatapeError, match="cannot be joined: the workers died"):
        join(str(out), _Losing(), "again", RULES, DEFAULTS)  # type: ignore[arg-type]
    assert _across(out) == 1


def test_workers_of_a_cluster_join_as_one_process_does(tmp_path: Path) -> None:
    folder = _cut(LOST_CALL, tmp_path / "tapes")
    with dask_engine(None, 2) as cluster:
        assert scan(str(folder), str(tmp_path / "out"), cluster, DEFAULTS).across == 1
    assert _found(tmp_path / "out") == _checked(LOST_CALL)


def test_processes_join_as_one_does(tmp_path: Path) -> None:
    folder = _cut(LOST_CALL, tmp_path / "tapes")
    assert scan(str(folder), str(tmp_path / "out"), LocalEngine(2), DEFAULTS).across == 1
    assert _found(tmp_path / "out") == _checked(LOST_CALL)


async def _reply(peer: Peer) -> None:
    """Answer a first request with a call, and one that goes on with a text."""
    while True:
        _, body = await peer.request()
        goes_on = len(json.loads(body)["messages"]) > 1
        stream = sse(*(TEXT_REPLY if goes_on else CALL_REPLY))
        await peer.send(ok_response(stream, b"Content-Type: text/event-stream"))


async def _recorded(folder: Path, upstream: int, *requests: dict[str, object]) -> None:
    """Record requests with a recorder that then stops, as before a restart."""
    async with recording(folder, upstream) as recorder:
        for request in requests:
            client = await recorder.client()
            await client.send(post(json.dumps(request).encode(), extra="Connection: close\r\n"))
            await client.rest()


def test_a_call_lost_over_a_restart_of_the_recorder_is_found_once(tmp_path: Path) -> None:
    asked = [asks(USER), asks(USER, LOST, MORE), asks(USER, LOST, MORE, LOST, user("Thanks"))]

    async def scenario() -> None:
        async with provider(_reply) as port:
            await _recorded(tmp_path / "two", port, *asked[:1])
            await _recorded(tmp_path / "two", port, *asked[1:])
            await _recorded(tmp_path / "one", port, *asked)

    run(scenario())
    (whole,) = (tmp_path / "one").glob("*.tape")
    summary = _scanned(tmp_path / "two", tmp_path / "out")
    assert (summary.tapes, summary.across) == (2, 1)
    assert _found(tmp_path / "out") == _checked(whole)
    assert ("C001", 1) in [(code, number) for (code, _), number in _checked(whole).items()]
    assert _scanned(tmp_path / "one", tmp_path / "whole").across == 0
    assert _found(tmp_path / "whole") == _found(tmp_path / "out")
