"""`deltatape redact`: copies of tapes without their secrets."""

import json
import shutil
from pathlib import Path

import pytest
import zstandard

from deltatape.match.request import MatchLevel, MatchQuery, RecordedMatch, RequestMatcher
from deltatape.store.reader import open_tape
from helpers.chat import FINISH, sse
from helpers.console import called
from helpers.incidents import BROKEN, CUT, EMPTY, FIXED, STALL, recorded
from helpers.secret_tapes import KEY, STARS, arguments, exchange, record, tape, words
from helpers.tapes import write_tape

NESTED = json.dumps(json.dumps({"c": KEY})).encode()
PEM = ["-----BEGIN PRIVATE KEY-----", "fakefake", "-----END PRIVATE KEY-----"]
EVERYWHERE = tape(
    record(1, 0, "note", {"text": f"for {KEY}"}),
    *(record(1, 0, "log", {"stream": "stderr", "line": line}) for line in PEM),
    *exchange(
        1,
        target=f"/v1/{KEY}?key=fakefake",
        asked=[["Authorization", f"Bearer {KEY}"], ["X-Debug", KEY]],
        answered=[["X-Echo", KEY]],
        request=[b'{"a":"sk-fakefake', b'fake0000","b":', NESTED, b"}"],
        reads=[
            sse(words("sk-fake"), words("fakefake0000"), done=False),
            sse(arguments('{"k":"sk-fakefake'), arguments('fake0000"}'), FINISH),
        ],
    ),
    record(99, 1, "future", {"x": [KEY]}),
)  # fmt: skip


def codes(path: Path) -> list[tuple[str, int]]:
    result = called("check", "--format", "json", path, folder=path.parent)
    return [(each["code"], each["exchange"]) for each in json.loads(result.stdout)["findings"]]


def test_secrets_are_gone_from_everywhere_and_the_copy_is_clean(tmp_path: Path) -> None:
    write_tape(tmp_path, EVERYWHERE)
    result = called("redact", "x.tape", "-o", "y.tape", folder=tmp_path)
    assert (result.returncode, result.stdout) == (0, b"y.tape\n")
    assert (
        b"x.tape: secrets overwritten: 9 x API key, 1 x private key, 2 x unmasked credential"
        in result.stderr
    )
    after = (tmp_path / "y.tape").read_bytes()
    assert not any(part in after for part in (b"sk-", b"fake0000", b"BEGIN", b"Bearer"))
    assert called("fsck", "y.tape", folder=tmp_path).returncode == 0
    assert (tmp_path / "x.tape").read_bytes() == EVERYWHERE
    before = open_tape(tmp_path / "x.tape")[1]
    exchange_after = open_tape(tmp_path / "y.tape")[1]
    assert [len(read.data) for read in exchange_after.reads] == [
        len(read.data) for read in before.reads
    ]
    assert exchange_after.id == before.id
    assert json.loads(exchange_after.request.body) == {"a": STARS, "b": json.dumps({"c": STARS})}


def test_redacting_what_is_redacted_changes_nothing(tmp_path: Path) -> None:
    write_tape(tmp_path, EVERYWHERE)
    for option in ([], ["--content"]):
        first = called("redact", "x.tape", *option, folder=tmp_path).stdout.decode().strip()
        second = called("redact", first, *option, folder=tmp_path).stdout.decode().strip()
        assert first != second
        assert (tmp_path / first).read_bytes() == (tmp_path / second).read_bytes()


def test_without_a_name_the_copy_stands_beside_the_original(tmp_path: Path) -> None:
    write_tape(tmp_path, EVERYWHERE)
    paths = [called("redact", "x.tape", folder=tmp_path).stdout for _ in range(2)]
    assert paths == [b"x-redacted.tape\n", b"x-redacted-2.tape\n"]


def test_a_copy_is_not_the_latest_tape(tmp_path: Path) -> None:
    old, new = recorded(tmp_path, CUT, BROKEN)
    for tape_ in (old, new):
        assert called("redact", tape_, folder=tmp_path).returncode == 0
    latest = called("why", folder=tmp_path).stdout
    assert latest.startswith(b".deltatape/itinerary-broken.tape#1")


def test_in_place_the_original_is_replaced_also_behind_a_link(tmp_path: Path) -> None:
    write_tape(tmp_path, EVERYWHERE)
    (tmp_path / "link.tape").symlink_to("x.tape")
    assert called("redact", "--in-place", "link.tape", folder=tmp_path).stdout == b"link.tape\n"
    assert (tmp_path / "link.tape").is_symlink()
    assert KEY.encode() not in (tmp_path / "x.tape").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.tape", "state", "x.tape"]


def test_several_tapes_go_into_a_folder(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    result = called("redact", CUT, FIXED, "-o", "out", folder=tmp_path)
    assert result.returncode == 0
    assert (tmp_path / "out" / CUT.name).read_bytes() == CUT.read_bytes()
    assert (tmp_path / "out" / FIXED.name).read_bytes() == FIXED.read_bytes()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["x.tape", "--in-place", "-o", "y"], b"use either -o or --in-place, not both"),
        (["x.tape", "x.tape", "-o", "y"], b"not a folder; 2 tapes"),
        (["x.tape#1"], b"names one exchange"),
        (["x.tape", "-o", "x.tape"], b": -o x.tape: is one of the tapes to be read; name another"),
        (["x.tape", "-o", "bad.tape"], b": -o bad.tape: already exists; a tape is never over"),
        (["x.tape", "-o", "no/y.tape"], b": -o no/y.tape: No such file or directory\n"),
        (["missing.tape"], b"missing.tape"),
        (["bad.tape"], b"bad.tape:2"),
        ([], b"Missing argument"),
    ],
)
def test_what_cannot_be_done_is_said_and_leaves_nothing(
    tmp_path: Path, arguments: list[str], told: bytes
) -> None:
    write_tape(tmp_path, EVERYWHERE)
    write_tape(tmp_path, tape(b"garbage\n"), "bad.tape")
    result = called("redact", *arguments, folder=tmp_path)
    assert (result.returncode, result.stdout) == (2, b"")
    assert told in result.stderr
    assert {path.name for path in tmp_path.iterdir()} <= {"x.tape", "bad.tape", "state"}


def test_coded_bodies_torn_records_and_masked_content_are_reported(tmp_path: Path) -> None:
    odd = exchange(1, reads=[b"x"], answered=[["Content-Encoding", "odd"]])
    write_tape(tmp_path, tape(*odd) + b"[1,2")
    said = called("redact", "--content", "x.tape", folder=tmp_path).stderr.decode()
    assert "x.tape: secrets overwritten: none; all content replaced by fillers" in said
    assert "the whole response body was overwritten" in said
    assert "the response body could not be searched: unknown coding 'odd'" in said
    assert "left out a truncated last record of 4 bytes" in said


OF_TEXTS = {"C009"}
"""Codes of findings that read what is masked: errors that an app tells in words."""


@pytest.mark.parametrize("incident", [BROKEN, CUT, EMPTY, FIXED, STALL])
def test_masked_content_leaves_the_findings_of_the_incidents(
    tmp_path: Path, incident: Path
) -> None:
    shutil.copyfile(incident, tmp_path / "x.tape")
    assert called("redact", "--content", "x.tape", "-o", "y.tape", folder=tmp_path).returncode == 0
    before = [each for each in codes(tmp_path / "x.tape") if each[0] not in OF_TEXTS]
    assert codes(tmp_path / "y.tape") == before
    after = (tmp_path / "y.tape").read_bytes()
    assert not any(word in after.lower() for word in (b"lisbon", b"porto", b"weather in"))
    assert called("fsck", "y.tape", folder=tmp_path).returncode == 0


def test_a_redacted_tape_with_compressed_requests_replays(tmp_path: Path) -> None:
    body = f'{{"model":"m","messages":[{{"role":"user","content":"{KEY}"}}]}}'.encode()
    coding = ["Content-Encoding", "zstd"]
    reads = [b'{"choices":[{"message":{"content":"Hi"}}]}']
    lines = exchange(request=[zstandard.compress(body)], asked=[coding], reads=reads)
    write_tape(tmp_path, tape(*lines))
    assert called("fsck", "x.tape", folder=tmp_path).returncode == 1
    assert called("redact", "x.tape", "-o", "y.tape", folder=tmp_path).returncode == 0
    assert called("fsck", "y.tape", folder=tmp_path).returncode == 0
    (before,), (after,) = (open_tape(tmp_path / name) for name in ("x.tape", "y.tape"))
    assert before.request.content == body
    assert after.request.content == body.replace(KEY.encode(), STARS.encode())
    asked = MatchQuery(method="POST", target=b"/v1/chat/completions", body=body)
    found = RequestMatcher([after]).match(asked)
    assert found == RecordedMatch(position=0, level=MatchLevel.MASKED)
