"""`deltatape fsck`: damage, contradictions, secrets that are left, and what is not as it was."""

import asyncio
import gzip
import json
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from deltatape.store.reader import open_tape
from helpers.console import called
from helpers.incidents import BROKEN, CUT, FIXED
from helpers.program import program
from helpers.readings import BODY, parsed_exchange
from helpers.secret_tapes import KEY, exchange, tape
from helpers.tapes import write_tape
from helpers.upstream import SSE_HEAD, Peer, chunk, free_port, provider, run


def test_the_recorded_incidents_are_clean(tmp_path: Path) -> None:
    result = called("fsck", BROKEN, CUT, FIXED, folder=tmp_path)
    assert result.returncode == 0
    assert result.stdout.decode().splitlines() == [
        f"{path}: clean" for path in (BROKEN, CUT, FIXED)
    ]


@pytest.mark.parametrize(
    "data", [KEY.encode(), gzip.compress(KEY.encode(), mtime=0)], ids=["plain", "gzip"]
)
def test_a_secret_fails_with_its_place_and_is_not_shown(tmp_path: Path, data: bytes) -> None:
    coding = [["Content-Encoding", "gzip"]] if data != KEY.encode() else []
    write_tape(tmp_path, tape(*exchange(reads=[data], answered=coding)))
    result = called("fsck", "x.tape", folder=tmp_path)
    assert result.returncode == 1
    assert b"line 6, #1, bytes 0 to 19: response body" in result.stdout
    assert "contains what looks like an API key" in " ".join(result.stdout.decode().split())
    assert KEY.encode() not in result.stdout + result.stderr


def test_a_body_that_was_changed_fails(tmp_path: Path) -> None:
    write_tape(tmp_path, tape(*exchange(reads=[b"abc"])).replace(b'"abc"', b'"abd"'))
    result = called("fsck", "x.tape", folder=tmp_path)
    assert result.returncode == 1
    assert b"line 7, #1: `end.sha256` does not match the reads" in result.stdout


def test_a_crash_is_reported_and_no_failure(tmp_path: Path) -> None:
    write_tape(tmp_path, tape(*exchange())[:-40])
    result = called("fsck", "x.tape", folder=tmp_path)
    assert result.returncode == 0
    assert b"x.tape: clean" in result.stdout
    assert b"note: no `stop`" in result.stdout


def test_what_cannot_be_read_is_reported_beside_the_others(tmp_path: Path) -> None:
    write_tape(tmp_path, b"garbage\n", "bad.tape")
    for command in ("fsck", "check"):
        result = called(command, "x" * 300, folder=tmp_path)
        assert result.returncode == 2
        assert b"File name too long" in result.stdout + result.stderr
    result = called("fsck", "bad.tape", FIXED, "missing.tape", folder=tmp_path)
    assert result.returncode == 2
    bad, fixed, missing = result.stdout.decode().splitlines()
    assert bad.startswith("bad.tape:1: no tape")
    assert fixed.endswith("clean")
    assert missing.startswith("missing.tape: No such file")


def test_an_exchange_that_is_not_there_is_reported(tmp_path: Path) -> None:
    write_tape(tmp_path, tape(*exchange(), *exchange(2)))
    assert called("fsck", "x.tape#2", folder=tmp_path).returncode == 0
    result = called("fsck", "x.tape#9", FIXED, "x.tape#0", folder=tmp_path)
    assert result.returncode == 2
    missing, fixed, zero = result.stdout.decode().splitlines()
    assert missing == "x.tape#9: no such exchange on the tape; it has 1 to 2"
    assert fixed.endswith("clean")
    assert zero == "x.tape#0: exchanges are counted from 1"


def test_damage_is_reported_before_an_exchange_that_may_have_been_there(tmp_path: Path) -> None:
    write_tape(tmp_path, tape(*exchange(), b"garbage\n"))
    result = called("fsck", "x.tape#9", folder=tmp_path)
    assert result.returncode == 1
    assert b"line 8: " in result.stdout


def test_of_a_folder_every_tape_below_is_checked(tmp_path: Path) -> None:
    (tmp_path / "recordings" / "deep").mkdir(parents=True)
    (tmp_path / "none").mkdir()
    write_tape(tmp_path / "recordings" / "deep", tape(*exchange()), "a.tape")
    write_tape(tmp_path / "recordings", tape(*exchange()), "b.tape")
    result = called("fsck", "recordings", folder=tmp_path)
    assert result.returncode == 0
    assert result.stdout.decode().splitlines() == [
        "recordings/b.tape: clean",
        "recordings/deep/a.tape: clean",
    ]
    result = called("fsck", "none", "recordings", folder=tmp_path)
    assert result.returncode == 2
    assert b"there is no tape below" in result.stdout
    assert b"recordings/b.tape: clean" in result.stdout
    result = called("fsck", "recordings", "--against", "http://x", "-o", "y.tape", folder=tmp_path)
    assert b"one tape is accepted with it, not 2" in result.stderr


def test_the_json_form_holds_places_and_kinds(tmp_path: Path) -> None:
    write_tape(tmp_path, tape(*exchange(reads=[b"x ", KEY.encode()])))
    result = called("fsck", "--format", "json", "x.tape", folder=tmp_path)
    assert result.returncode == 1
    (found,) = json.loads(result.stdout)["tapes"]
    assert found["path"] == "x.tape"
    (problem,) = found["problems"]
    assert (problem["kind"], problem["line"], problem["span"]) == ("secret", 7, [2, 21])
    assert called("fsck", folder=tmp_path).returncode == 2


def test_a_tape_that_is_read_in_another_way_fails(tmp_path: Path) -> None:
    write_tape(tmp_path, tape(*parsed_exchange(1), *parsed_exchange(2, events=9)))
    result = called("fsck", "x.tape", folder=tmp_path)
    assert result.returncode == 1
    said = b"line 15, #2: is not read as when deltatape 0.0.1 taped it: events 9, now 4"
    assert said in result.stdout


def test_a_provider_is_asked_for_what_is_on_the_tape(tmp_path: Path) -> None:
    write_tape(tmp_path, tape(*exchange(reads=[BODY], framing="chunked")))

    async def answer(peer: Peer) -> None:
        await peer.request()
        await peer.send(SSE_HEAD + chunk(BODY.replace(b'"get"', b'"put"')) + chunk(b""))

    async def scenario(*options: str) -> subprocess.CompletedProcess[bytes]:
        async with provider(answer) as port:
            url = f"http://127.0.0.1:{port}/v1"
            return await asyncio.to_thread(
                lambda: called("fsck", "x.tape#1", "--against", url, *options, folder=tmp_path)
            )

    result = run(scenario("-o", "today.tape"))
    assert result.returncode == 0, result.stdout
    assert b"#1 POST /v1/chat/completions: as on the tape" in result.stdout
    assert b"note: calls: get; today put" in result.stdout
    assert b"today's 1 answer: today.tape" in result.stderr
    assert called("fsck", "today.tape", folder=tmp_path).returncode == 0
    (found,) = json.loads(run(scenario("--format", "json")).stdout)["tapes"]
    assert found["against"]["exchanges"][0]["same"] is True
    away = called("fsck", "x.tape", "--against", f"http://127.0.0.1:{free_port()}", folder=tmp_path)
    assert away.returncode == 2
    assert b"no connection" in away.stdout


def test_a_difference_fails(tmp_path: Path) -> None:
    write_tape(tmp_path, tape(*exchange(reads=[BODY], framing="chunked")))

    async def refuse(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")

    async def scenario() -> subprocess.CompletedProcess[bytes]:
        async with provider(refuse) as port:
            url = f"http://127.0.0.1:{port}"
            return await asyncio.to_thread(
                lambda: called("fsck", "x.tape", "--against", url, folder=tmp_path)
            )

    result = run(scenario())
    assert result.returncode == 1
    assert b"status: 200, today 401" in result.stdout


def test_wrong_options_are_refused_before_anything_is_sent(tmp_path: Path) -> None:
    write_tape(tmp_path, tape(*exchange()))
    for arguments, why in (
        (["--against", "ftp://x"], b"--against 'ftp://x': invalid upstream"),
        (["--against", "a=http://x"], b"one URL is accepted, without a name"),
        (
            ["--against", "http://h?key=fake"],
            b"--against 'http://h?...': a query or fragment cannot",
        ),
        (["-o", "y.tape"], b"-o: has no effect without --against"),
        (["--deadline", "1s"], b"--deadline: has no effect without --against"),
        (["x.tape", "--against", "http://x", "-o", "y.tape"], b"one tape is accepted with it"),
    ):
        result = called("fsck", "x.tape", *arguments, folder=tmp_path)
        assert result.returncode == 2
        assert why in result.stderr
        assert b"fake" not in result.stderr


def test_a_tape_of_which_nothing_can_be_asked_is_not_a_success(tmp_path: Path) -> None:
    write_tape(tmp_path, tape())
    write_tape(tmp_path, b"garbage\n", "bad.tape")
    asked = ("--against", "http://127.0.0.1:9")
    assert called("fsck", "x.tape", *asked, folder=tmp_path).returncode == 2
    (tmp_path / "none").mkdir()
    result = called("fsck", "none", *asked, folder=tmp_path)
    assert result.returncode == 2
    assert b"there is no tape below" in result.stdout
    result = called("fsck", "bad.tape", *asked, folder=tmp_path)
    assert result.returncode == 2
    assert b"bad.tape:1: no tape" in result.stdout


def test_a_tape_that_breaks_off_is_not_asked_for(tmp_path: Path) -> None:
    write_tape(tmp_path, tape(*exchange(), b"garbage\n"))
    result = called("fsck", "x.tape", "--against", "http://127.0.0.1:9", folder=tmp_path)
    assert result.returncode == 2
    assert b"x.tape: cannot be asked again: x.tape:8: no JSON" in result.stderr


@pytest.mark.parametrize("is_kept", [True, False])
def test_answers_that_came_before_ctrl_c_are_reported_and_kept(
    tmp_path: Path, *, is_kept: bool
) -> None:
    ask = exchange(reads=[BODY], framing="chunked")
    write_tape(tmp_path, tape(*ask, *exchange(2, reads=[BODY], framing="chunked")))
    asked: list[Peer] = []
    is_waiting = threading.Event()

    async def answer(peer: Peer) -> None:
        await peer.request()
        asked.append(peer)
        if len(asked) > 1:
            is_waiting.set()
            await asyncio.sleep(300)
        await peer.send(SSE_HEAD + chunk(BODY) + chunk(b""))

    def ask_and_stop(port: int) -> tuple[int, str]:
        options = ("-o", "today.tape") if is_kept else ()
        url = f"http://127.0.0.1:{port}"
        with program("fsck", "x.tape", "--against", url, *options, folder=tmp_path) as running:
            assert is_waiting.wait(200), running.lines
            return running.stop(signal.SIGINT)

    async def scenario() -> tuple[int, str]:
        async with provider(answer) as port:
            return await asyncio.to_thread(ask_and_stop, port)

    code, said = run(scenario(), limit_s=300)
    assert code == 130
    if is_kept:
        assert "stopped; 1 whole answer of today kept: today.tape" in said
        first, second = open_tape(tmp_path / "today.tape").exchanges()
        assert first.body == BODY
        assert second.response is None
    else:
        assert "stopped; 1 whole answer not kept: -o TAPE keeps them" in said
    assert sorted(path.name for path in tmp_path.glob("*.tape")) == ["today.tape"] * is_kept + [
        "x.tape"
    ]
