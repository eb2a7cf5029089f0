"""What a command line may name: a tape, an exchange of it, a file, a folder, standard input."""

import errno
import json
import os
import shutil
import threading
from pathlib import Path

import pytest

from deltatape.cli import tapes
from deltatape.cli.tapes import exchanges_of, is_tape, material, named
from deltatape.errors import TapeFormatError, UsageError
from deltatape.importers import import_capture
from helpers.chat import FINISH, calls, choice, entry, sse
from helpers.console import called, on_terminal
from helpers.disk import unreadable
from helpers.incidents import BROKEN, CUT, FIXED, recorded

STREAM = sse(calls(entry(0, "c1", name="get", arguments="{}")), FINISH)


def test_a_tape_names_all_its_exchanges_in_the_order_of_their_numbers() -> None:
    assert [exchange.number for exchange in exchanges_of(str(BROKEN))] == [1, 2]
    assert [exchange.number for exchange in exchanges_of(f"{BROKEN}#2")] == [2]


def test_one_exchange_brings_its_conversation(tmp_path: Path) -> None:
    found = named(f"{BROKEN}#1")
    assert [exchange.number for exchange in found.exchanges] == [1, 2]
    assert found.number == 1
    assert named(str(BROKEN)).number is None
    assert tmp_path.exists()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("check", "in", "--fail-on", "never"), 2),
        (("fsck", "in"), 2),
        (("ls", "in"), 0),
        (("ls", "in", "--exchanges"), 2),
        (("ls", "in", "--trends"), 2),
        (("pack", "in"), 2),
        (("why", "in"), 0),
        (("export", "in", "--format", "har"), 2),
    ],
)
def test_a_folder_below_that_cannot_be_read_is_told_once(
    arguments: tuple[str, ...], code: int, tmp_path: Path
) -> None:
    (tmp_path / "in" / "sub").mkdir(parents=True)
    shutil.copy(CUT, tmp_path / "in")
    with unreadable(tmp_path / "in" / "sub"):
        done = called(*arguments, folder=tmp_path)
    assert done.returncode == code
    told = (done.stderr + done.stdout).decode()
    assert told.count("in/sub: Permission denied") == 1
    assert ("cut-mid-arguments" in told or "W006" in told) == (arguments[0] != "export")


@pytest.mark.parametrize("command", ["check", "fsck", "why"])
def test_a_folder_of_which_nothing_can_be_read_is_told_once(command: str, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    with unreadable(tmp_path / "sub"):
        done = called(command, "sub", folder=tmp_path)
    assert done.returncode == 2
    told = (done.stderr + done.stdout).decode()
    assert told.count("sub: Permission denied") == 1
    assert "there is no tape below" not in told


@pytest.mark.parametrize("command", ["check", "fsck"])
def test_a_folder_that_cannot_be_read_does_not_keep_back_others(
    command: str, tmp_path: Path
) -> None:
    (tmp_path / "sub").mkdir()
    with unreadable(tmp_path / "sub"):
        done = called(command, "sub", BROKEN, folder=tmp_path)
    assert done.returncode == 2
    told = (done.stderr + done.stdout).decode()
    assert "sub: Permission denied" in told
    assert ("C002" if command == "check" else f"{BROKEN}: clean") in told


def test_nothing_names_the_latest_tape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded(tmp_path, BROKEN, FIXED)
    monkeypatch.chdir(tmp_path)
    assert named("").exchanges[0].tape == ".deltatape/itinerary-fixed.tape"
    assert named("#2").number == 2
    assert [exchange.number for exchange in exchanges_of("#2")] == [2]


@pytest.mark.parametrize("text", ["#0", "#3", "missing.tape", "missing", "x/y.tape#1", "x" * 300])
def test_what_is_not_there_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    recorded(tmp_path, BROKEN)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError):
        named(text)
    with pytest.raises(UsageError):
        list(exchanges_of(text))


def test_without_any_tape_it_says_how_to_make_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="deltatape record"):
        named("")


def test_a_tape_is_known_by_its_name_or_by_how_it_begins(tmp_path: Path) -> None:
    shutil.copyfile(BROKEN, tmp_path / "renamed.log")
    (tmp_path / "body.sse").write_bytes(STREAM)
    (tmp_path / "empty.tape").write_bytes(b"")
    (tmp_path / "folder.tape").mkdir()
    assert is_tape(tmp_path / "renamed.log")
    assert is_tape(tmp_path / "empty.tape")
    assert is_tape(tmp_path / "missing")  # so that the reader says what is missing
    assert not is_tape(tmp_path / "body.sse")
    assert not is_tape(tmp_path / "folder.tape")
    assert len(named(str(tmp_path / "renamed.log")).exchanges) == 2
    with pytest.raises(TapeFormatError, match=r"empty\.tape"):
        named(str(tmp_path / "empty.tape"))


def test_a_file_with_a_number_sign_is_itself(tmp_path: Path) -> None:
    shutil.copyfile(BROKEN, tmp_path / "a#2.tape")
    shutil.copyfile(BROKEN, tmp_path / "a#2")
    assert len(list(exchanges_of(str(tmp_path / "a#2.tape")))) == 2
    assert named(str(tmp_path / "a#2")).number is None
    assert named(f"{tmp_path / 'a#2.tape'}#1").number == 1


def test_a_body_is_an_exchange(tmp_path: Path) -> None:
    path = tmp_path / "body.sse"
    path.write_bytes(STREAM)
    (exchange,) = named(str(path)).exchanges
    assert exchange.body == STREAM
    assert exchange.tape == str(path)


def test_a_folder_is_a_captured_case(tmp_path: Path) -> None:
    (tmp_path / "body.raw").write_bytes(STREAM)
    (tmp_path / "request.json").write_text('{"method": "POST", "url": "http://h/v1/x"}')
    (tmp_path / "notes.txt").write_text("not read")
    assert sorted(material(tmp_path).files) == ["body.raw", "request.json"]
    (exchange,) = named(str(tmp_path)).exchanges
    assert exchange.request.upstream == "http://h"


def test_a_folder_without_a_body_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"body\.raw"):
        named(str(tmp_path))


@pytest.mark.parametrize("command", ["why", "check", "fsck"])
def test_a_folder_that_may_not_be_read_is_named_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    (tmp_path / "closed").mkdir()
    exists = Path.exists

    def refused(path: Path) -> bool:
        if path.parent.name == "closed":  # no folder is closed to root
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return exists(path)

    monkeypatch.setattr(Path, "exists", refused)
    with unreadable(tmp_path / "closed"):
        result = called(command, "closed", folder=tmp_path)
    assert result.returncode == 2
    told = (result.stdout + result.stderr).decode()
    assert "closed: Permission denied" in told
    assert "body.raw" not in told


def test_a_folder_of_tapes_stands_for_the_latest_of_them(tmp_path: Path) -> None:
    for name, second in (("old", 1), ("new", 2)):
        path = tmp_path / "taped" / f"{name}.tape"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(BROKEN.read_bytes())
        os.utime(path, (second, second))
    result = called("why", "taped", "--short", folder=tmp_path)
    assert result.returncode == 0
    assert b"note: taped is a folder; this is its latest tape, taped/new.tape" in result.stderr
    assert b"taped/new.tape#1" in result.stdout


def test_files_beside_a_body_are_read(tmp_path: Path) -> None:
    for name in ("body", "request", "response"):
        (tmp_path / name).write_text(name)
    made = material(tmp_path / "body", tmp_path / "request", tmp_path / "response")
    assert (made.files, made.request, made.response) == ({"body": b"body"}, b"request", b"response")


def test_what_is_too_large_or_unreadable_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "body.sse"
    path.write_bytes(b"x" * 100)
    monkeypatch.setattr(tapes, "MAX_FILE_BYTES", 99)
    with pytest.raises(UsageError, match="more than 99 bytes"):
        material(path)
    with pytest.raises(UsageError, match="No such file"):
        material(tmp_path / "missing")
    result = called("why", "-", folder=tmp_path, stdin=b"x" * 100)
    assert result.returncode == 2
    assert b"standard input: more than 99 bytes" in result.stderr
    result = called("import", "/dev/zero", "-o", "x.tape", folder=tmp_path)
    assert (result.returncode, result.stderr) == (
        2,
        b"deltatape: /dev/zero: is a device; name a file\n",
    )


def test_a_pipe_is_read_like_a_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(b"data: 1\n\n",))
    writer.start()
    assert material(pipe).files == {"pipe": b"data: 1\n\n"}
    writer.join()


def test_standard_input_is_a_body(tmp_path: Path) -> None:
    result = called("why", "-", folder=tmp_path, stdin=sse(choice({"content": "hi"}, "stop")))
    assert result.returncode == 0
    assert b"2 characters of text" in result.stdout


@pytest.mark.parametrize("command", ["why", "check", "show"])
def test_nothing_is_no_input(tmp_path: Path, command: str) -> None:
    (tmp_path / "empty.txt").touch()
    for name, problem in (
        ("-", b"(stdin): nothing was read; "),
        ("empty.txt", b"empty.txt: empty; "),
    ):
        result = called(command, name, folder=tmp_path)
        assert result.returncode == 2
        said = b" ".join((result.stdout + result.stderr).split())
        assert problem + b"accepted are a folder with body.raw; an HTTP archive (HAR)" in said


def test_nothing_is_told_beside_what_is_checked(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").touch()
    result = called("check", "empty.txt", BROKEN, folder=tmp_path)
    assert result.returncode == 2
    assert b"empty.txt: empty; " in result.stdout + result.stderr
    assert str(BROKEN).encode() in result.stdout


def test_an_empty_body_within_an_import_is_an_answer(tmp_path: Path) -> None:
    (tmp_path / "body.raw").touch()
    asked = {"method": "POST", "url": "https://api.openai.com/v1/chat/completions"}
    answer = {"status": 204, "content": {"text": ""}}
    archive = {"log": {"entries": [{"request": asked, "response": answer}]}}
    (tmp_path / "x.har").write_text(json.dumps(archive))
    for path in (tmp_path, tmp_path / "x.har"):
        (found,) = named(str(path)).exchanges
        assert found.body == b""
    body, response = tmp_path / "body.raw", tmp_path / "response.json"
    response.write_text('{"status": 204}')
    assert import_capture(material(body, None, response)).exchanges[0].body == b""
    with pytest.raises(UsageError, match=r"body\.raw: empty"):
        material(body)


def test_a_terminal_is_told_that_it_is_read(tmp_path: Path) -> None:
    typed = b'data: {"choices":[]}\n\ndata: [DONE]\n\n\x04'
    result = on_terminal("why", "-", folder=tmp_path, stdin=typed)
    assert b"end it with Ctrl-D" in result.stdout
    assert result.returncode == 0


def test_a_torn_last_record_is_mentioned(tmp_path: Path) -> None:
    (tmp_path / "x.tape").write_bytes(CUT.read_bytes()[:-9])
    result = called("check", "x.tape", folder=tmp_path)
    assert b"note: x.tape: " in result.stderr
    assert b"left out a truncated last record" in result.stderr


def two_entries(folder: Path) -> None:
    """An archive x.har: the first response is not in it, the second has a call."""
    asked = {"method": "POST", "url": "https://api.openai.com/v1/chat/completions"}
    told = {"status": 200, "content": {"text": STREAM.decode()}}
    entries = [{"request": asked, "response": {"status": 200, "content": {}}}]
    entries.append({"request": asked, "response": told})
    (folder / "x.har").write_text(json.dumps({"log": {"entries": entries}}))


def test_an_exchange_of_a_capture_is_named_by_its_number(tmp_path: Path) -> None:
    two_entries(tmp_path)
    shown = called("show", "x.har#2", "--raw", folder=tmp_path)
    assert (shown.returncode, shown.stdout) == (0, STREAM)
    assert b"x.har#2" in called("why", "x.har#2", folder=tmp_path).stdout
    assert called("check", "x.har#2", folder=tmp_path).returncode == 0
    assert called("diff", "x.har#2", "x.har#2", folder=tmp_path).returncode == 0
    for command in ("show", "why", "check"):
        result = called(command, "x.har#3", folder=tmp_path)
        assert result.returncode == 2
        assert b"x.har#3: x.har has 2 exchanges" in result.stdout + result.stderr
    result = called("diff", "x.har", "x.har#2", folder=tmp_path)
    assert (result.returncode, b"x.har has 2 exchanges: add #N" in result.stderr) == (2, True)


def test_a_response_that_a_capture_lacks_is_told(tmp_path: Path) -> None:
    two_entries(tmp_path)
    result = called("check", "x.har", folder=tmp_path)
    assert b"note: x.har: no response of #1 is in the file" in result.stderr
