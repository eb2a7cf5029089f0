"""Tapes of several processes that recorded together are read as one, or each exchange alone."""

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from deltatape.cli.tapes import provider_exchanges
from deltatape.diagnose.check_tape import check_exchanges
from deltatape.errors import UsageError
from deltatape.model.finding import Finding
from deltatape.model.rule_settings import DEFAULTS
from deltatape.pytest_plugin.tape_paths import TapeLocation, every_at
from deltatape.store.reader import Tape, open_tape
from deltatape.store.shards import ShardedTape, open_recording, recording_of
from helpers.console import called
from helpers.incidents import BROKEN
from helpers.shards import sharded

RECORDINGS = Path(__file__).parents[2] / "recordings"
APPS = sorted((RECORDINGS / "apps").rglob("*.tape"))[::12]
PRUNED = RECORDINGS / "apps" / "ai-sdk-pruned.tape"
SILENT = RECORDINGS / "frameworks" / "llama-index" / "gemini-calls.tape"


def opened(path: Path) -> ShardedTape:
    tape = open_recording(path)
    assert isinstance(tape, ShardedTape)
    return tape


def facts(finding: Finding) -> tuple[object, ...]:
    against = finding.against and (finding.against.exchange, finding.against.span)
    return (
        finding.code,
        finding.severity,
        finding.message,
        finding.exchange,
        finding.t_ns,
        against,
    )


def findings(name: str, tape: Tape, *, alone: bool = False) -> Counter[tuple[object, ...]]:
    report = check_exchanges(name, tape.exchanges(), DEFAULTS, logs=tape.logs, alone=alone)
    return Counter(facts(each.finding) for each in report.reported)


@pytest.mark.parametrize("path", [*APPS, PRUNED, SILENT], ids=lambda path: path.stem)
def test_shards_have_the_findings_of_the_whole_tape(path: Path, tmp_path: Path) -> None:
    whole = findings("x", open_tape(path))
    for count in (2, 3):
        folder = tmp_path / str(count)
        folder.mkdir()
        for shard in sharded(path, folder, count):
            assert findings("x", opened(shard)) == whole


def test_one_shard_of_several_accuses_nobody_of_what_happened_between_requests(
    tmp_path: Path,
) -> None:
    for path in (PRUNED, SILENT):
        first, second = sharded(path, tmp_path)
        judged = findings("x", open_tape(first))
        second.unlink()
        tape = opened(first)
        assert tape.missing == (2,)
        alone = findings("x", tape, alone=True)
        assert judged - alone, "the half would accuse somebody"
        assert not alone


def test_an_exchange_is_explained_with_those_on_other_shards(tmp_path: Path) -> None:
    paths = sharded(PRUNED, tmp_path)
    for number in range(1, len(open_tape(PRUNED)) + 1):
        whole = json.loads(
            called("why", f"{PRUNED}#{number}", "--format", "json", folder=tmp_path).stdout
        )
        for path in paths:
            told = called("why", f"{path}#{number}", "--format", "json", folder=tmp_path)
            mine = json.loads(told.stdout)
            text = called("why", f"{path}#{number}", "--short", folder=tmp_path).stdout.decode()
            assert f"{paths[(number - 1) % 2].name}#{number}" in "".join(text.split())
            assert mine["verdict"] == whole["verdict"]
            assert [each["code"] for each in mine["findings"]] == [
                each["code"] for each in whole["findings"]
            ]
            for each in mine["findings"]:
                assert each["tape"] == str(paths[(each["exchange"] - 1) % 2])


def test_a_shard_alone_is_explained_exchange_by_exchange(tmp_path: Path) -> None:
    first, second = sharded(SILENT, tmp_path)
    first.unlink()
    told = called("why", second.name, folder=tmp_path)
    assert told.returncode == 0
    said = f"note: {second.name}: a shard of a recording by 2 workers; those of worker 1 are not in"
    assert said in told.stderr.decode()
    assert b"D003" not in told.stdout
    shown = called("show", second.name, folder=tmp_path)
    assert shown.returncode == 0
    assert b"D003" not in shown.stdout


def test_check_reads_shards_once_and_says_on_which_a_finding_is(tmp_path: Path) -> None:
    whole = json.loads(called("check", BROKEN, "--format", "json", folder=tmp_path).stdout)[
        "findings"
    ]
    paths = sharded(BROKEN, tmp_path)
    for names in (["."], [path.name for path in paths], [paths[1].name]):
        told = called("check", *names, "--format", "json", folder=tmp_path)
        found = json.loads(told.stdout)["findings"]
        assert [each["code"] for each in found] == [each["code"] for each in whole]
        for each in found:
            place = Path(each["tape"]).name
            assert place == paths[(each["exchange"] - 1) % 2].name
            lines = Path(tmp_path, place).read_bytes().splitlines()
            assert json.loads(lines[each["line"] - 1])[1] == each["exchange"]
        assert told.stderr.count(b"of the same recording") == 1
    paths[0].unlink()
    told = called("check", paths[1].name, folder=tmp_path)
    assert told.stderr.count(b"what the app did between requests is not judged") == 1


def test_shards_are_listed_as_one_recording(tmp_path: Path) -> None:
    paths = sharded(PRUNED, tmp_path)
    (row,) = json.loads(called("ls", ".", "--format", "json", folder=tmp_path).stdout)["tapes"]
    (whole,) = json.loads(called("ls", ".", "--format", "json", folder=copied(tmp_path)).stdout)[
        "tapes"
    ]
    assert row["exchanges"] == whole["exchanges"]
    assert row["worst"] == whole["worst"]
    assert row["bytes"] == sum(path.stat().st_size for path in paths)


def copied(folder: Path) -> Path:
    place = folder / "whole"
    place.mkdir()
    shutil.copyfile(PRUNED, place / "x.tape")
    return place


def test_any_shard_plays_the_recording(tmp_path: Path) -> None:
    paths = [str(path) for path in sharded(SILENT, tmp_path)]
    for names in (paths, paths[1:]):
        played = provider_exchanges(names)
        assert [each.number for each in played] == [1, 2, 3, 4]
        taped, _ = every_at([TapeLocation(path=Path(name)) for name in names])
        assert [each.number for each in taped] == [1, 2, 3, 4]


def test_tapes_that_requests_name_belong_together_by_their_name(tmp_path: Path) -> None:
    sharded(PRUNED, tmp_path)
    for name in ("a", "b"):
        place = tmp_path / f"{name}.tape"
        shutil.copyfile(PRUNED, place)
        sharded(place, tmp_path, name=name)
        place.unlink()
    # All have the ids of one recording's main tapes.
    for path in tmp_path.glob("[ab]-*.tape"):
        old = open_tape(path).header.id
        path.write_bytes(
            path.read_bytes().replace(
                old.encode(), f"{old[:-2]}{path.stem[0]}{old[-1]}".upper().encode(), 1
            )
        )
    tape = opened(tmp_path / "a-2.tape")
    assert [Path(each.path).name for each in tape.shards] == ["a-2.tape", "a-1.tape"]
    assert tape.missing == ()
    (tmp_path / "a-1.tape").unlink()
    tape = opened(tmp_path / "a-2.tape")
    assert tape.missing == ()
    assert "the only tape of its recording by that name" in tape.note
    (tmp_path / f"{PRUNED.stem}-1.tape").unlink()
    assert opened(tmp_path / "a-2.tape").missing == (1,)
    assert recording_of(tmp_path / "a-2.tape") != recording_of(tmp_path / "b-2.tape")


def test_a_copy_of_a_shard_is_no_other_shard(tmp_path: Path) -> None:
    first, second = sharded(PRUNED, tmp_path)
    shutil.copyfile(second, tmp_path / "again.tape")
    (tmp_path / "damaged.tape").write_bytes(b"no tape")
    (tmp_path / "link.tape").symlink_to(second)
    shutil.copyfile(PRUNED, tmp_path / "other.tape")
    tape = opened(first)
    assert len(tape.shards) == 2
    assert len(tape) == len(open_tape(PRUNED))
    assert recording_of(PRUNED) is None
    assert recording_of(tmp_path / "damaged.tape") is None


def test_an_exchange_that_no_shard_has_is_refused(tmp_path: Path) -> None:
    first, _ = sharded(SILENT, tmp_path)
    with pytest.raises(UsageError, match="#9: no such exchange in the recording; it has 1 to 4"):
        opened(first)[9]
    assert opened(first)[2].tape == str(first)


def test_clients_and_logs_of_all_shards_are_in_order(tmp_path: Path) -> None:
    first, _ = sharded(PRUNED, tmp_path)
    tape, whole = opened(first), open_tape(PRUNED)
    assert len({each.connection for each in tape.clients}) == 2 * len(
        {each.connection for each in whole.clients}
    )
    assert [each.t_ns for each in tape.clients] == sorted(each.t_ns for each in tape.clients)
    assert [each.line for each in tape.logs[::2]] == [each.line for each in whole.logs]


def test_a_shard_is_a_sound_tape_and_its_copy_remains_a_shard(tmp_path: Path) -> None:
    for path in sharded(PRUNED, tmp_path):
        assert called("fsck", path.name, folder=tmp_path).returncode == 0
        assert called("redact", path.name, folder=tmp_path).returncode == 0
    (copy,) = tmp_path.glob("*-1-redacted.tape")
    assert opened(copy).missing == ()


def test_spliced_shards_are_a_tape_without_others(tmp_path: Path) -> None:
    names = [path.name for path in sharded(PRUNED, tmp_path)]
    assert called("splice", *names, "-o", "x.tape", folder=tmp_path).returncode == 0
    tape = open_recording(tmp_path / "x.tape")
    assert tape.header.shard is None
    assert findings("x", tape) == findings("x", open_tape(PRUNED))
