import stat
from dataclasses import replace
from pathlib import Path

import pytest

from deltatape.errors import UsageError
from deltatape.http1.head import ParsedRequestHead
from deltatape.tape.mask import Masker
from deltatape.trials.shrink_memory import (
    AppCredentials,
    AskedBody,
    CandidateResult,
    SearchCache,
    content_of,
)
from helpers.taped import taped

BODY = AskedBody(data=b"\x00x", masked=((0, 1, "ab"),))
ANSWER = CandidateResult(same=True, asked={2: BODY}, unplayed=frozenset({3}))


def test_answers_come_back_in_another_process(tmp_path: Path) -> None:
    path = tmp_path / "shrink" / "x.jsonl"
    memory = SearchCache(path)
    assert memory.found == 0
    memory.put("one", ANSWER)
    memory.put("two", CandidateResult(same=False))
    again = SearchCache(path)
    assert again.found == 2
    assert again.get("one") == ANSWER
    assert again.get("two") == CandidateResult(same=False)
    assert again.get("three") is None
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    again.forget()
    assert again.get("one") is None
    assert not path.exists()
    again.forget()


def test_lines_that_are_no_answers_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    SearchCache(path).put("one", ANSWER)
    with path.open("a") as file:
        file.write('[]\n{"tape": "a", "asked": 1, "unplayed": 2}\n{"tape": "b", "sa')
    assert SearchCache(path).found == 1
    path.write_bytes(b"\xff")
    assert SearchCache(path).found == 0


def test_a_file_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "shrink").write_text("a file")
    with pytest.raises(UsageError, match="are kept there"):
        SearchCache(tmp_path / "shrink" / "x.jsonl").put("one", ANSWER)


def test_all_that_is_played_or_asked_counts_for_the_content() -> None:
    one = taped()
    contents = {
        content_of([one]),
        content_of([]),
        content_of([one, one]),
        content_of([taped([(10, b"data: 2\n\n")])]),
        content_of([replace(one, request=replace(one.request, body=b"other"))]),
    }
    assert len(contents) == 5
    assert content_of([one]) == content_of([replace(one, tape="other.tape")])


def test_only_the_owner_can_read_the_cache_like_the_folder_of_tapes(tmp_path: Path) -> None:
    folder = tmp_path / ".deltatape"
    SearchCache(folder / "shrink" / "x.jsonl").put("one", ANSWER)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (folder, folder / "shrink")] == [
        0o700
    ] * 2
    assert (folder / ".gitignore").read_text() == "*\n"


KEY = b"mine"
FAKE = "fake-000000-secret"


def secrets(folder: Path, **environ: str) -> AppCredentials:
    return AppCredentials(KEY, environ, folder)


def test_credentials_of_the_environment_and_its_files_are_masked(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("OTHER_API_KEY=fake-other-key-1\n")
    known = secrets(tmp_path, MY_API_KEY=FAKE)
    assert known.text(f"no {FAKE}, no fake-other-key-1") == f"no {'*' * 18}, no {'*' * 16}"
    digest = Masker(KEY).value(FAKE.encode()).hash
    asked = known.body(f"key {FAKE}.".encode())
    assert asked == AskedBody(data=b"key " + b"*" * 18 + b".", masked=((4, 22, digest),))
    assert known.body(b"none") == AskedBody(data=b"none")


def test_the_placeholder_is_masked_as_a_key_would_be(tmp_path: Path) -> None:
    assert secrets(tmp_path).text("sk-replay-000000") == "*" * 16


def test_credentials_of_a_head_are_masked_from_then_on(tmp_path: Path) -> None:
    known = secrets(tmp_path)
    assert known.text(FAKE) == FAKE
    known.add_head(
        ParsedRequestHead(
            method="POST",
            target=b"/v1/messages",
            http="1.1",
            fields=((b"Authorization", f"Bearer {FAKE}".encode()),),
            length=0,
            keep_alive=True,
            pattern=b"",
        )
    )
    assert known.text(FAKE) == "*" * 18


def test_what_was_masked_when_it_was_recorded_is_masked_again(tmp_path: Path) -> None:
    digest = Masker(KEY).value(FAKE.encode()).hash
    body = b'{"a": "k", "token": "%b"}' % (b"*" * 18)
    start = body.index(b"*")
    spans = ((start, start + 18, digest),)
    recorded = replace(taped(body=body).request, masked=spans)
    known = secrets(tmp_path)
    known.found(recorded, b'{"token": "something else, shorter"}')
    assert known.text(FAKE) == FAKE
    known.found(recorded, b'{"token": "no", "b": 1, "token": "%b"}' % FAKE.encode())
    assert known.text(FAKE) == "*" * 18


def test_a_recorded_request_in_clear_is_masked_too(tmp_path: Path) -> None:
    known = secrets(tmp_path, MY_API_KEY=FAKE)
    plain = taped(body=b"no secret").request
    assert known.asked(plain) is plain
    request = replace(plain, body=f"**** {FAKE}".encode(), masked=((0, 4, "0"),))
    done = known.asked(request)
    assert done.body == b"**** " + b"*" * 18
    assert [span[:2] for span in done.masked] == [(0, 4), (5, 23)]
