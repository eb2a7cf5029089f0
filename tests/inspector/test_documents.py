"""The documents of an exchange, without their process."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from deltatape.inspector.documents import (
    LONGEST,
    MAX_RAW,
    MOST,
    Answer,
    Documents,
    TapePlace,
    cut,
)
from deltatape.model.rule_settings import DEFAULTS
from deltatape.store.reader import open_tape
from helpers.console import called
from helpers.incidents import BROKEN, EMPTY
from helpers.secret_tapes import exchange, tape
from helpers.shards import sharded
from helpers.tapes import write_tape


def asked(path: Path, what: str, number: int = 1, name: str = "", **more: Any) -> Answer:
    question = {"what": what, "tape": name or path.name, "path": str(path), "exchange": number}
    return Documents(DEFAULTS).answer({**question, **more})


def document(path: Path, what: str, number: int = 1, **more: Any) -> Any:
    answer = asked(path, what, number, **more)
    assert (answer.status, answer.type) == (200, "application/json"), answer.body
    return json.loads(answer.body)


def printed(folder: Path, *arguments: str) -> Any:
    return json.loads(called(*arguments, "--format", "json", folder=folder).stdout)


@pytest.mark.parametrize("what", ["why", "show", "steps"])
@pytest.mark.parametrize("number", [1, 2])
def test_a_document_is_what_the_command_prints(tmp_path: Path, what: str, number: int) -> None:
    shutil.copy(BROKEN, tmp_path / "x.tape")
    made = document(tmp_path / "x.tape", what, number)
    words = ("show", "--steps") if what == "steps" else (what,)
    told = printed(tmp_path, *words, f"x.tape#{number}")
    if what == "why":  # its command is run somewhere else
        command = told["conclusion"]["next"]["command"]
        told["conclusion"]["next"]["command"] = command.replace("x.tape", f"{tmp_path}/x.tape")
    assert made == told


def test_a_difference_is_what_the_command_prints(tmp_path: Path) -> None:
    for name, source in (("x.tape", BROKEN), ("y.tape", EMPTY)):
        shutil.copy(source, tmp_path / name)
    other: Any = {
        "other_tape": "y.tape",
        "other_path": str(tmp_path / "y.tape"),
        "other_exchange": 2,
    }
    made = document(tmp_path / "x.tape", "diff", **other)
    assert made == printed(tmp_path, "diff", "x.tape#1", "y.tape#2")


def test_tapes_have_the_names_of_the_list(tmp_path: Path) -> None:
    made = document(BROKEN, "why", name="folder/x.tape")
    assert made["tape"] == "folder/x.tape"
    assert {each["tape"] for each in made["findings"]} == {"folder/x.tape"}
    first, second = sharded(BROKEN, tmp_path)
    made = document(first, "why", name=f"a/{first.name}")
    places = {1: f"a/{first.name}", 2: f"a/{second.name}"}
    told = [place for each in made["findings"] for place in (each, each["against"]) if place]
    assert {each["exchange"] for each in told} == {1, 2}
    assert all(each["tape"] == places[each["exchange"]] for each in told)
    assert document(second, "show", 2, name=f"a/{second.name}")["exchange"]["exchange"] == 2


def test_a_shard_without_the_others_is_judged_alone(tmp_path: Path) -> None:
    first, second = sharded(BROKEN, tmp_path)
    second.unlink()
    assert "C002" not in [each["code"] for each in document(first, "why")["findings"]]
    assert document(first, "show")["exchange"]["codes"] == []


@pytest.mark.parametrize(
    ("more", "status", "start", "end"),
    [
        ({"offset": 0, "limit": 10**9}, 200, 0, None),
        ({"offset": 10, "limit": 20}, 206, 10, 30),
        ({"offset": 700, "limit": 10**9}, 206, 700, None),
        ({"offset": 10**9, "limit": 1}, 416, 0, 0),
        ({"offset": 0, "limit": 0}, 416, 0, 0),
    ],
)
@pytest.mark.parametrize("side", ["request", "response"])
def test_raw_bytes_come_by_ranges(
    side: str, more: Mapping[str, Any], status: int, start: int, end: int | None
) -> None:
    first = open_tape(EMPTY)[1]
    body = first.request.body if side == "request" else first.body
    answer = asked(EMPTY, "raw", side=side, **more)
    if side == "request" and start == 700:
        status, start, end = 416, 0, 0
    assert (answer.status, answer.body) == (status, body[start:end])
    assert answer.type == "application/octet-stream"
    assert answer.fields is not None
    size = len(body)
    last = min(size, end or size) - 1
    told = f"bytes */{size}" if status == 416 else f"bytes {start}-{last}/{size}"
    assert answer.fields["Content-Range"] == told


def test_an_empty_body_has_no_range(tmp_path: Path) -> None:
    place = Path(write_tape(tmp_path, tape(*exchange(request=[]))))
    answer = asked(place, "raw", side="request", offset=0, limit=9)
    assert (answer.status, answer.body) == (200, b"")
    assert answer.fields == {"Content-Range": "bytes */0"}


def test_no_answer_has_more_than_a_mebibyte_of_bytes(tmp_path: Path) -> None:
    place = Path(write_tape(tmp_path, tape(*exchange(request=[b"x" * MAX_RAW, b"yz"]))))
    answer = asked(place, "raw", side="request", offset=1, limit=10**9)
    assert (answer.status, len(answer.body)) == (206, MAX_RAW)
    assert answer.body.endswith(b"xy")


@pytest.mark.parametrize("what", ["show", "why", "steps", "raw", "copy"])
def test_what_is_not_there_is_said(what: str, tmp_path: Path) -> None:
    more: Any = {"side": "request", "offset": 0, "limit": 1, "as": "curl"}
    answer = asked(EMPTY, what, 9, name="a/x.tape", **more)
    assert answer.status == 404
    problem = json.loads(answer.body)["error"]
    assert problem == "a/x.tape#9: no such exchange on the tape; it has 1 to 2"
    answer = asked(tmp_path / "gone.tape", what, 1, name="gone.tape", **more)
    assert answer.status == 404
    assert str(tmp_path) not in answer.body.decode()


def test_of_a_damaged_tape_what_is_before_can_be_seen(tmp_path: Path) -> None:
    lines = BROKEN.read_bytes().splitlines(keepends=True)
    end = next(at for at, line in enumerate(lines, 1) if b',1,"end"' in line)
    place = tmp_path / "x.tape"
    place.write_bytes(b"".join([*lines[:end], b"[oops\n", *lines[end:]]))
    assert document(place, "why")["exchange"] == 1
    assert document(place, "show")["exchange"]["exchange"] == 1
    answer = asked(place, "why", 2)
    assert answer.status == 422
    assert json.loads(answer.body)["error"].startswith(f"x.tape: line {end + 1}: no JSON")


@pytest.mark.slow
def test_a_large_tape_is_read_around_the_exchange(tmp_path: Path) -> None:
    place = tmp_path / "x.tape"
    lines = BROKEN.read_bytes().splitlines(keepends=True)
    log = b'[1,0,"log",{"stream":"stdout","line":"%b"}]\n' % (b"x" * 1000)
    place.write_bytes(b"".join([*lines, *[log] * 17_000]))
    made = document(place, "why")
    assert [each["code"] for each in made["findings"]][:1] == ["C002"]
    assert document(place, "show")["exchange"]["codes"][:1] == ["C002"]


def test_long_texts_and_lists_are_cut_and_say_so() -> None:
    text, items = "\u00e9" * (LONGEST + 1), [*range(MOST + 1)]
    whole = {"a": text, "b": [text, "x"], "c": {"d": items, "e": "x" * LONGEST}, "f": None}
    made: Any = cut(whole)
    assert made["a"] == text[:-1]
    assert made["b"] == [text[:-1], "x"]
    assert made["cut"] == {"a": {"bytes": 2 * LONGEST + 2}, "b": {"bytes": 2 * LONGEST + 2}}
    assert made["c"] == {"d": items[:-1], "e": "x" * LONGEST, "cut": {"d": {"items": MOST + 1}}}
    assert cut(whole, full=True) == whole
    secret = "x" * (LONGEST - 9) + " sk-proj-" + "a1B2" * 12
    assert "a1B2" not in str(cut({"a": secret}, TapePlace("x", "x")))


def test_arguments_of_a_megabyte_are_cut_unless_all_is_asked_for(tmp_path: Path) -> None:
    part = {"index": 0, "id": "c", "function": {"name": "put", "arguments": "x" * 1_000_000}}
    chunk = json.dumps({"choices": [{"index": 0, "delta": {"tool_calls": [part]}}]})
    place = Path(write_tape(tmp_path, tape(*exchange(reads=[f"data: {chunk}\n\n".encode()]))))
    answer = asked(place, "show")
    assert len(answer.body) < 10 * LONGEST
    (call,) = json.loads(answer.body)["calls"]
    assert call["cut"]["arguments"] == {"bytes": 1_000_000}
    (call,) = document(place, "show", full=True)["calls"]
    assert len(call["arguments"]) == 1_000_000
    assert "cut" not in call
