"""`deltatape diff`: exchanges event by event."""

import json
import shutil
from pathlib import Path

import pytest

from deltatape.compare import VOLATILE, CallDamage, ChangeKind, SpacingDifference
from helpers.chat import FINISH, choice, sse
from helpers.console import called, on_terminal
from helpers.mutated import RECORDINGS
from helpers.secret_tapes import exchange, tape
from helpers.tapes import write_tape

WORDS = [choice({"content": text}) for text in ("I ", "am ", "here")]


def made(folder: Path) -> None:
    whole, cut = sse(*WORDS, FINISH), sse(*WORDS[:2], FINISH)
    two = tape(*exchange(1, reads=[whole]), *exchange(2, reads=[cut]))
    write_tape(folder, two)
    (folder / "body.txt").write_bytes(whole)


def test_equal_exchanges_end_with_0_and_others_with_1(tmp_path: Path) -> None:
    made(tmp_path)
    same = called("diff", "x.tape#1", "x.tape#1", folder=tmp_path)
    assert (same.returncode, same.stdout.splitlines()[2]) == (0, b"equal")
    other = called("diff", "x.tape#1", "x.tape#2", folder=tmp_path)
    assert other.returncode == 1
    assert b"-     2        dropped: text: 'here'\n" in other.stdout
    assert other.stderr == b""


def test_files_and_standard_input_are_exchanges_too(tmp_path: Path) -> None:
    made(tmp_path)
    result = called("diff", "x.tape#1", "body.txt", folder=tmp_path)
    assert (result.returncode, result.stdout.splitlines()[2]) == (0, b"equal")
    typed = called("diff", "-", "x.tape#1", folder=tmp_path, stdin=sse(*WORDS, FINISH))
    assert (typed.returncode, typed.stdout.splitlines()[2]) == (0, b"equal")


def test_a_tape_with_one_exchange_needs_no_number(tmp_path: Path) -> None:
    for name in ("openai-chat", "gemini"):
        shutil.copy(RECORDINGS / f"{name}.tape", tmp_path)
    result = called("diff", "openai-chat.tape", "gemini.tape", folder=tmp_path)
    assert result.returncode == 0
    assert result.stdout.decode().splitlines()[0].startswith("--- openai-chat.tape  openai-chat")


def test_what_names_no_single_exchange_is_refused(tmp_path: Path) -> None:
    made(tmp_path)
    write_tape(tmp_path, tape(), "empty.tape")
    for named, said in (
        (["x.tape#1"], b"x.tape#1: name a second exchange to compare with"),
        (["x.tape#1", "x.tape"], b"x.tape: has 2 exchanges; name one exchange, such as x.tape#1"),
        (["x.tape#1", "empty.tape"], b"empty.tape: has no exchange"),
        (["x.tape#1", "x.tape#9"], b"no such exchange"),
        (["x.tape#1", "missing.tape"], b"missing.tape: No such file"),
    ):
        result = called("diff", *named, folder=tmp_path)
        assert (result.returncode, result.stdout) == (2, b"")
        assert said in result.stderr


def test_of_several_the_first_hop_that_damaged_a_call_is_named(tmp_path: Path) -> None:
    shutil.copy(RECORDINGS / "openai-responses.tape", tmp_path / "up.tape")
    shutil.copy(RECORDINGS / "openai-chat.tape", tmp_path / "gateway.tape")
    whole = (tmp_path / "gateway.tape").read_bytes()
    changed = whole.replace(b'\\"arguments\\":\\"Gent\\"', b'\\"arguments\\":\\"Genf\\"')
    assert changed != whole
    (tmp_path / "app.tape").write_bytes(changed)
    result = called("diff", "up.tape#1", "gateway.tape#1", "app.tape#1", folder=tmp_path)
    assert result.returncode == 1
    assert result.stdout.decode().startswith(
        "first hop that damaged a call: gateway.tape#1 -> app.tape#1: call 0 get_weather"
    )
    found = json.loads(
        called("diff", "up.tape#1", "gateway.tape#1", "--format", "json", folder=tmp_path).stdout
    )
    assert (found["version"], found["damaged"], found["equal"]) == (1, None, True)


@pytest.mark.parametrize(
    ("options", "code"),
    [([], 0), (["--all-fields"], 1), (["--all-fields", "--volatile", "id"], 0)],
)
def test_fields_that_are_new_in_every_answer_are_compared_when_asked_for(
    tmp_path: Path, options: list[str], code: int
) -> None:
    for name in "ab":
        (tmp_path / name).write_bytes(sse({"id": name, "choices": []}, FINISH))
    assert called("diff", "a", "b", *options, folder=tmp_path).returncode == code


def test_more_fields_may_differ_also_by_settings(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_bytes(sse({**FINISH, "provider": name}))
    assert called("diff", "a", "b", folder=tmp_path).returncode == 1
    assert called("diff", "a", "b", "--volatile", "provider", folder=tmp_path).returncode == 0
    (tmp_path / "deltatape.yaml").write_text("diff:\n  volatile: [provider]\n")
    assert called("diff", "a", "b", folder=tmp_path).returncode == 0


def test_a_path_that_is_none_is_refused(tmp_path: Path) -> None:
    made(tmp_path)
    result = called("diff", "x.tape#1", "x.tape#1", "--volatile", "a..b", folder=tmp_path)
    assert (result.returncode, b"--volatile 'a..b': invalid path" in result.stderr) == (2, True)


def test_the_page_lists_every_field_that_may_differ() -> None:
    page = (RECORDINGS.parents[1] / "docs" / "diff.md").read_text()
    assert all(f"`{path}`" in page for path in VOLATILE)
    assert all(f"`{kind}`" in page for kind in ChangeKind)
    assert all(f"`{damage}`" in page for damage in CallDamage)
    assert all(f"`{spacing}`" in page for spacing in SpacingDifference)


def test_colours_are_for_terminals_only(tmp_path: Path) -> None:
    made(tmp_path)
    pipe = called("diff", "x.tape#1", "x.tape#2", folder=tmp_path)
    terminal = on_terminal("diff", "x.tape#1", "x.tape#2", folder=tmp_path)
    assert b"\x1b" not in pipe.stdout
    assert b"\x1b[31m" in terminal.stdout
    assert terminal.returncode == 1
