"""Shipping: to a folder, and to a server that speaks the protocol of S3."""

import random
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from deltatape.clock import SystemClock
from deltatape.errors import StoreRefusedError, StoreUnreachableError, UsageError
from deltatape.objects.store import PART_BYTES, ObjectRanges
from deltatape.objects.urls import open_store
from deltatape.ship.shipper import Bandwidth, ShipOptions, Shipper, key_of
from deltatape.ship.state import ShipState, finished, serve_metrics
from deltatape.store.packing import seal, unpack
from deltatape.store.reader import open_tape
from deltatape.store.ring import is_finished
from deltatape.store.sealed import open_sealed
from deltatape.store.writer import TapeWriter
from helpers.object_store import (
    DAY,
    URL,
    Relay,
    S3Server,
    got,
    put_tape,
    relay,
    tape,
    use,
)
from helpers.program import program
from helpers.tapes import HEADER, StillClock

LARGE = 2 * PART_BYTES + 1000
"""A tape of three parts."""


@pytest.fixture
def between(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Relay]:
    """A relay through which the store is reached."""
    with relay(s3.port) as running:
        use(running.port, monkeypatch)
        yield running


@pytest.fixture(params=["s3", "file"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store of each kind, empty."""
    if request.param == "s3":
        request.getfixturevalue("s3")
        return URL
    return (tmp_path / "a store").as_uri()


@pytest.fixture
def tapes(tmp_path: Path) -> Path:
    folder = tmp_path / "tapes"
    folder.mkdir()
    return folder


class Waits:
    """A request to end that nobody makes; waiting is over at once."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.at: dict[int, Callable[[], object]] = {}
        """What happens at the nth wait, from 1."""
        self.ended = False

    def is_set(self) -> bool:
        return self.ended

    def wait(self, timeout: float) -> bool:
        self.seconds.append(timeout)
        self.at.get(len(self.seconds), lambda: None)()
        return self.ended

    def end(self) -> None:
        self.ended = True


@dataclass
class Run:
    """A shipper, and what it said."""

    url: str
    folder: Path
    seal: bool = False
    delete: bool = False
    bandwidth: int | None = None
    patience_s: float | None = None
    waits: Waits = field(default_factory=Waits)
    said: list[str] = field(default_factory=list)
    state: ShipState = field(default_factory=ShipState)

    def ship(self, *, once: bool = True) -> "Run":
        options = ShipOptions(
            folder=self.folder,
            gateway="host-1",
            seal=self.seal,
            delete=self.delete,
            bandwidth=self.bandwidth,
            patience_s=self.patience_s,
        )
        Shipper(
            open_store(self.url, makes=True),
            options,
            clock=SystemClock(),
            stop=self.waits,
            tell=self.said.append,
            alarm=self.said.append,
            state=self.state,
        ).run(once=once)
        return self


def stored(url: str) -> dict[str, bytes]:
    """What a store has, by key; of sealed tapes the lines."""
    store = open_store(url)
    found = {}
    for each in store.list():
        if each.key.endswith(".zst"):
            with open_sealed(each.key, ObjectRanges(store, each.key)).open() as lines:
                found[each.key] = lines.read()
        else:
            found[each.key] = b"".join(store.blocks(each))
    return found


def place(number: str) -> str:
    return f"{DAY}/gateway=host-1/{number}.tape"


def test_finished_tapes_go_under_day_gateway_and_id(url: str, tapes: Path) -> None:
    (tapes / "below").mkdir()
    one, small = put_tape(tapes, "one")
    two, large = put_tape(tapes / "below", "two", LARGE)
    run = Run(url, tapes).ship()
    assert stored(url) == {place(one): small, place(two): large}
    assert {path.name for path in tapes.rglob("*.tape")} == {"one.tape", "two.tape"}
    assert (run.state.shipped, run.state.shipped_bytes) == (2, len(small) + len(large))
    assert (run.state.backlog, run.state.refused) == ((), {})


def test_what_is_there_is_not_sent_again(url: str, tapes: Path) -> None:
    put_tape(tapes, "one", LARGE)
    Run(url, tapes).ship()
    run = Run(url, tapes).ship()
    assert run.state.shipped == 0
    assert [line.partition(":")[0] for line in run.said] == ["in the store already"]


def test_a_local_copy_goes_once_the_store_has_the_same(url: str, tapes: Path) -> None:
    one, content = put_tape(tapes, "one", LARGE)
    run = Run(url, tapes, delete=True).ship()
    assert stored(url) == {place(one): content}
    assert list(tapes.iterdir()) == []
    assert run.state.deleted == 1


def test_a_copy_of_a_shipped_tape_is_deleted_without_sending_it(url: str, tapes: Path) -> None:
    one, content = put_tape(tapes, "one")
    Run(url, tapes).ship()
    (tapes / "copy.tape").write_bytes(content)
    run = Run(url, tapes, delete=True).ship()
    assert list(tapes.iterdir()) == []
    assert (run.state.shipped, run.state.deleted) == (0, 2)
    assert stored(url) == {place(one): content}


@pytest.mark.parametrize("delete", [False, True])
def test_another_object_of_that_name_is_kept_and_so_is_the_tape(
    url: str,
    tapes: Path,
    delete: bool,  # noqa: FBT001 - a parameter
) -> None:
    one, content = put_tape(tapes, "one")
    other = content.replace(b"data", b"DATA").replace(b"x.ex", b"y.ex")[:-5] + b"x" * 5
    assert other != content
    key = place(one)
    open_store(url, makes=True).put(key, [other], size=len(other), sha256="0" * 64)
    run = Run(url, tapes, delete=delete).ship()
    assert stored(url) == {key: other}
    assert (tapes / "one.tape").read_bytes() == content
    assert list(run.state.refused.values()) == [
        f"the store has another tape of its id, {url}/{key}"
    ]


def test_files_in_a_folder_are_synced_and_what_a_killed_writer_left_goes(
    tmp_path: Path, tapes: Path
) -> None:
    one, _ = put_tape(tapes, "one")
    folder = tmp_path / "store" / DAY / "gateway=host-1"
    folder.mkdir(parents=True)
    (folder / f"{one}.tape#1").write_bytes(b"half of it")
    Run((tmp_path / "store").as_uri(), tapes).ship()
    assert [path.name for path in folder.iterdir()] == [f"{one}.tape"]


def test_a_tape_that_is_being_written_is_left_until_it_has_ended(url: str, tapes: Path) -> None:
    writer = TapeWriter.create(tapes, "live", clock=StillClock(), alarm=print)
    writer.put(0, b'[1,0,"note",{"text":"so far"}]\n')
    writer.flush()
    run = Run(url, tapes, delete=True).ship()
    assert (run.state.recording, run.state.shipped) == (1, 0)
    writer.put(0, b'[2,0,"note",{"text":"and the rest"}]\n')
    writer.close()
    Run(url, tapes, delete=True).ship()
    (content,) = stored(url).values()
    assert content.endswith(b'and the rest"}]\n')


def test_a_tape_that_a_recorder_is_about_to_begin_is_left(tapes: Path, tmp_path: Path) -> None:
    (tapes / "empty.tape").touch()
    run = Run(tmp_path.as_uri() + "/store", tapes, delete=True).ship()
    assert run.state.recording == 1
    assert run.said == []


def test_no_ring_takes_a_tape_that_is_being_shipped_and_readers_see_it_ended(tapes: Path) -> None:
    put_tape(tapes, "one.ring")
    path = tapes / "one.ring.tape"
    with finished(path) as file:
        assert file is not None
        assert not is_finished(path)
        assert not open_tape(path).recording
    assert is_finished(path)


def test_a_tape_cut_short_by_a_crash_is_shipped_as_it_is(url: str, tapes: Path) -> None:
    one, content = tape(stop=False)
    (tapes / "torn.tape").write_bytes(content[:-7])
    Run(url, tapes).ship()
    assert stored(url) == {place(one): content[:-7]}


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda content: content.replace(b'"end"', b'"e\nnd"'), r"line \d+: "),
        (lambda content: b"not a tape\n" + content, r"line 1: no tape"),
        (lambda content: content.replace(b'"id":"0', b'"id":"../0', 1), "is no ULID"),
        (lambda content: content.replace(b"2026-11-21", b"2026-13-21", 1), "none in RFC 3339"),
    ],
)
def test_a_damaged_tape_is_told_once_and_left(
    tmp_path: Path, tapes: Path, damage: Callable[[bytes], bytes], reason: str
) -> None:
    _, content = tape()
    (tapes / "a.tape").write_bytes(damage(content))
    whole, good = put_tape(tapes, "b")
    run = Run((tmp_path / "store").as_uri(), tapes, delete=True)
    run.waits.at = {2: run.waits.end}  # after a second look
    run.ship(once=False)
    assert stored(run.url) == {place(whole): good}
    assert (tapes / "a.tape").read_bytes() == damage(content)
    told = [line for line in run.said if line.startswith("left:")]
    assert len(told) == 1
    assert re.search(reason, told[0])


def test_what_comes_later_is_shipped_while_it_follows(tmp_path: Path, tapes: Path) -> None:
    run = Run((tmp_path / "store").as_uri(), tapes)
    run.waits.at = {1: lambda: put_tape(tapes, "late"), 2: run.waits.end}
    run.ship(once=False)
    assert run.state.shipped == 1


def test_a_store_that_is_cut_off_in_an_upload_gets_the_whole_when_it_is_back(
    between: Relay, tapes: Path
) -> None:
    one, content = put_tape(tapes, "one", LARGE)
    run = Run(URL, tapes, delete=True)
    between.after(PART_BYTES + 1000, between.cut)
    run.waits.at = {3: between.restore}
    run.ship()
    assert stored(URL) == {place(one): content}
    assert list(tapes.iterdir()) == []
    assert [line.partition(";")[1] for line in run.said] == [";", "", ";"]
    assert "1 tape to ship, trying again" in run.said[0]
    assert run.said[1] == f"{URL}: answers again"
    assert run.waits.seconds == [1.0, 2.0, 4.0]
    assert run.state.failures == 3
    assert run.state.reachable


def test_a_store_that_does_not_come_back_ends_a_shipper_with_patience(
    between: Relay, tapes: Path
) -> None:
    put_tape(tapes, "one")
    between.cut()
    with pytest.raises(StoreUnreachableError, match="Connection refused"):
        Run(URL, tapes, patience_s=0).ship()
    assert (tapes / "one.tape").exists()


def test_a_tape_that_the_store_never_takes_does_not_keep_back_the_others(
    between: Relay, tapes: Path
) -> None:
    bad, _ = put_tape(tapes, "a", LARGE)
    good, _ = put_tape(tapes, "b")
    run = Run(URL, tapes)
    between.after(PART_BYTES, between.cut)
    run.waits.at = {1: between.restore}
    run.ship()
    shipped = [line for line in run.said if line.startswith("shipped")]
    assert [good in shipped[0], bad in shipped[1]] == [True, True]


def test_stopped_in_an_upload_it_leaves_nothing_unfinished(s3: S3Server, tapes: Path) -> None:
    put_tape(tapes, "one", LARGE)
    run = Run(URL, tapes, delete=True, bandwidth=1)
    run.waits.at = {30: run.waits.end}  # in the second part
    run.ship()
    assert stored(URL) == {}
    assert s3.unfinished_uploads() == 0
    assert (tapes / "one.tape").exists()


@pytest.mark.slow
def test_killed_at_any_instant_it_loses_nothing_and_doubles_nothing(
    between: Relay, tapes: Path
) -> None:
    every = dict(put_tape(tapes, f"t{n}", LARGE if n == 1 else 2000 * n) for n in range(4))
    chance = random.Random(20)
    kills = 0
    for _ in range(10):
        options = ["--once", "--delete-shipped", "--gateway", "host-1"]
        most = chance.choice([6_000, 12_000, LARGE + 20_000])
        options += ["--no-seal"] * (most > LARGE or chance.randrange(2))
        sent = chance.randrange(most)
        with program("ship", str(tapes), URL, *options, folder=tapes.parent) as running:
            between.after(sent, running.process.kill)
            kills += running.process.wait(120) < 0
        local = {path.read_bytes() for path in tapes.glob("*.tape")}
        remote = [(key.split("/")[-1].split(".")[0], lines) for key, lines in stored(URL).items()]
        assert len({number for number, _ in remote}) == len(remote)
        assert dict(remote).items() <= every.items()
        assert local | {lines for _, lines in remote} == {*every.values()}
        if not local:  # from the beginning
            for key in stored(URL):
                open_store(URL).remove(key)
            for name, content in enumerate(every.values()):
                (tapes / f"again{name}.tape").write_bytes(content)
    Run(URL, tapes, delete=True).ship()
    assert sorted(stored(URL).values()) == sorted(every.values())
    assert list(tapes.iterdir()) == []
    assert kills > 3


def test_metrics_tell_backlog_and_lag_while_the_store_is_away(between: Relay, tapes: Path) -> None:
    _, content = put_tape(tapes, "one")
    state = ShipState()
    port = serve_metrics(state, SystemClock(), "127.0.0.1", 0)

    def metrics() -> dict[str, float]:
        lines = got(f"http://127.0.0.1:{port}/metrics").decode().splitlines()
        pairs = (line.split() for line in lines if not line.startswith("#"))
        return {name.removeprefix("deltatape_ship_"): float(value) for name, value in pairs}

    between.cut()
    run = Run(URL, tapes, state=state)
    away: dict[str, float] = {}
    run.waits.at = {1: lambda: away.update(metrics()), 2: between.restore}
    run.ship()
    assert away["backlog_tapes"] == 1
    assert away["backlog_bytes"] == len(content)
    assert away["lag_seconds"] > 0
    assert away["store_reachable"] == 0
    assert away["failures_total"] == 1
    after = metrics()
    assert after["backlog_tapes"] == after["lag_seconds"] == 0
    assert after["store_reachable"] == after["shipped_tapes_total"] == 1
    assert after["shipped_bytes_total"] == len(content)
    with pytest.raises(UsageError, match="Address already in use"):
        serve_metrics(state, SystemClock(), "127.0.0.1", port)


def test_bandwidth_is_spread_over_time() -> None:
    clock, waits = StillClock(), Waits()
    limit = Bandwidth(1000, clock, waits)
    for size in (500, 250, 1000):
        limit.take(size)
    assert waits.seconds == [0.5, 0.75]  # the clock stands still: each waits for all before it
    clock.ns += 10_000_000_000
    limit.take(100)
    assert len(waits.seconds) == 2


def test_a_limit_of_bandwidth_holds_for_what_is_sent_and_read_back(
    tmp_path: Path, tapes: Path
) -> None:
    _, content = put_tape(tapes, "one", 3 << 20)
    run = Run((tmp_path / "store").as_uri(), tapes, delete=True, bandwidth=1 << 40)
    run.ship()
    slow = Run((tmp_path / "other").as_uri(), tapes, delete=True, bandwidth=1 << 20)
    (tapes / "one.tape").write_bytes(content)
    slow.ship()
    assert sum(slow.waits.seconds) > sum(run.waits.seconds)
    assert slow.waits.seconds


def test_ranges_of_an_object_are_read_as_they_are_asked_for(url: str) -> None:
    store = open_store(url, makes=True)
    store.put("a/b/c", [b"0123456789"], size=10, sha256="0" * 64)
    ranges = ObjectRanges(store, "a/b/c")
    assert ranges.size() == 10
    assert ranges.read(2, 3) == b"234"
    assert ranges.read(8, 100) == b"89"
    assert ranges.read(4, 0) == b""
    with pytest.raises(UsageError, match="no such object"):
        ObjectRanges(store, "a/b/d").size()
    with pytest.raises(UsageError, match="no such object"):
        ObjectRanges(store, "a/b/d").read(0, 1)


def test_a_tape_is_sealed_on_the_way_and_its_lines_are_compared(url: str, tapes: Path) -> None:
    one, content = put_tape(tapes, "one", 100_000)
    run = Run(url, tapes, seal=True).ship()
    assert stored(url) == {f"{place(one)}.zst": content}
    assert run.state.shipped_bytes < len(content) // 4
    again = Run(url, tapes, seal=True, delete=True).ship()
    assert (again.state.shipped, again.state.deleted) == (0, 1)
    assert list(tapes.iterdir()) == []


def test_what_it_sealed_has_no_name_while_it_is_sent(
    url: str, tapes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    for name in ("one", "two"):
        put_tape(tapes, name)
    run = Run(url, tapes, seal=True, bandwidth=1)
    named: list[Path] = []
    run.waits.at = {1: lambda: named.extend(temporary.iterdir())}  # until it may send the second
    assert run.ship().state.shipped == 2
    assert (run.waits.seconds != [], named) == (True, [])


@pytest.mark.parametrize("sealed_first", [False, True])
def test_a_tape_is_stored_in_one_form_only(
    url: str,
    tapes: Path,
    sealed_first: bool,  # noqa: FBT001 - a parameter
) -> None:
    one, content = put_tape(tapes, "one")
    Run(url, tapes, seal=sealed_first).ship()
    for delete in (False, True):
        run = Run(url, tapes, seal=not sealed_first, delete=delete).ship()
        assert run.state.refused == {}
    assert stored(url) == {place(one) + ".zst" * sealed_first: content}


@pytest.mark.parametrize("seals", [False, True])
def test_what_is_sealed_already_is_sent_as_it_is(
    url: str,
    tapes: Path,
    seals: bool,  # noqa: FBT001 - a parameter
) -> None:
    one, content = put_tape(tapes, "one")
    seal(tapes / "one.tape").remove_journal()
    Run(url, tapes, seal=seals).ship()
    Run(url, tapes, seal=seals).ship()
    assert stored(url) == {f"{place(one)}.zst": content}
    unpack(tapes / "one.tape.zst").remove_sealed()
    Run(url, tapes, seal=seals, delete=True).ship()
    assert list(tapes.iterdir()) == []


def test_a_damaged_sealed_object_is_no_reason_to_delete_the_tape(url: str, tapes: Path) -> None:
    one, _ = put_tape(tapes, "one")
    Run(url, tapes, seal=True).ship()
    store, key = open_store(url), f"{place(one)}.zst"
    (found,) = store.list()
    content = bytearray(b"".join(store.blocks(found)))
    content[len(content) // 2] ^= 1
    store.put(key, [bytes(content)], size=found.size, sha256="0" * 64)
    run = Run(url, tapes, seal=True, delete=True).ship()
    assert (tapes / "one.tape").exists()
    assert len(run.state.refused) == 1


def test_a_damaged_sealed_tape_is_left(tapes: Path, tmp_path: Path) -> None:
    put_tape(tapes, "one")
    seal(tapes / "one.tape").remove_journal()
    path = tapes / "one.tape.zst"
    content = bytearray(path.read_bytes())
    content[300] ^= 1
    path.write_bytes(content)
    run = Run((tmp_path / "store").as_uri(), tapes, delete=True).ship()
    assert path.read_bytes() == content
    assert "damaged" in next(iter(run.state.refused.values()))


def test_keys_that_nobody_gave_out_are_refused_with_the_variables_to_set(
    s3: S3Server, tapes: Path
) -> None:
    s3.check_keys()
    with pytest.raises(StoreRefusedError, match=r"refused: .*AWS_ACCESS_KEY_ID and"):
        Run(URL, tapes).ship()


def test_keys_that_are_refused_later_are_told_and_tried_again(s3: S3Server, tapes: Path) -> None:
    put_tape(tapes, "one")
    run = Run(URL, tapes)

    def accept() -> None:
        s3.request("POST", "/moto-api/reset-auth", b"Infinity")
        put_tape(tapes, "two")

    def refuse() -> None:
        s3.check_keys()
        put_tape(tapes, "three")

    run.waits.at = {1: refuse, 3: accept, 4: run.waits.end}
    run.ship(once=False)
    assert run.state.shipped == 3
    assert sum("trying again" in line for line in run.said) == 1


@pytest.mark.usefixtures("s3")
def test_a_bucket_that_does_not_exist_is_named(tapes: Path) -> None:
    with pytest.raises(UsageError, match=r"^s3://nobody/x: there is no such bucket$"):
        Run("s3://nobody/x", tapes).ship()


def test_without_credentials_the_message_says_what_to_set(
    monkeypatch: pytest.MonkeyPatch, tapes: Path
) -> None:
    use(9, monkeypatch)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(StoreRefusedError, match=r"no credentials; .* AWS_ACCESS_KEY_ID"):
        Run(URL, tapes, patience_s=0).ship()


def test_the_key_of_a_tape_is_made_of_its_header() -> None:
    header = replace(HEADER, id="01JD3ZQ8T0000000000000TAPE")
    assert key_of(header, "a.b") == "dt=2026-11-21/gateway=a.b/01JD3ZQ8T0000000000000TAPE"


def test_two_shippers_at_once_store_every_tape_once(url: str, tapes: Path) -> None:
    every = dict(put_tape(tapes, f"t{number}", 100_000) for number in range(8))
    runs = [Run(url, tapes, delete=True) for _ in range(2)]
    threads = [threading.Thread(target=run.ship) for run in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stored(url) == {place(number): content for number, content in every.items()}
    assert list(tapes.iterdir()) == []
    assert [run.state.refused for run in runs] == [{}, {}]
