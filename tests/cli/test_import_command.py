"""`deltatape import`: tapes from bodies, pasted text and captured cases."""

import http.client
import json
import os
import shutil
import stat
from pathlib import Path

import pytest

from deltatape.demo.demo import LIMIT_S
from deltatape.model.exchange import MaskedCredential, Source, header
from deltatape.store.reader import open_tape
from helpers.chat import FINISH, calls, choice, entry, sse
from helpers.console import called
from helpers.incidents import CUT
from helpers.program import deltatape, program
from helpers.sealing import sealed_copy

STREAM = sse(
    choice({"content": "São Paulo"}), calls(entry(0, "c1", name="get", arguments="{}")), FINISH
)
ASKED = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "hi"}]}


def captured(folder: Path) -> Path:
    """A captured case in the layout of body.raw, request.json and response.json."""
    case = folder / "case"
    case.mkdir()
    (case / "body.raw").write_bytes(STREAM)
    request = {
        "method": "POST",
        "url": "https://api.example.com/v1/chat/completions?key=fake-key",
        "headers": {"Authorization": "Bearer fake-token", "X-A": "1"},
        "body": ASKED,
    }
    response = {"status": 200, "headers": {"content-type": "text/event-stream"}}
    (case / "request.json").write_text(json.dumps(request))
    (case / "response.json").write_text(json.dumps(response))
    return case


def test_a_raw_body_becomes_a_tape_that_says_only_what_is_known(tmp_path: Path) -> None:
    (tmp_path / "answer.sse").write_bytes(STREAM)
    result = deltatape("import", "answer.sse", "-o", "x.tape", folder=tmp_path)
    told = result.stderr.decode()
    assert (result.returncode, result.stdout) == (0, b"")
    assert told.endswith("tape: x.tape\nnext: deltatape why x.tape\n")
    tape = open_tape(tmp_path / "x.tape")
    (exchange,) = tape
    assert tape.header.source is Source.IMPORT
    assert tape.stopped
    assert exchange.body == STREAM
    assert (exchange.end, exchange.timed) == (None, False)
    assert [f"note: {note.text}\n" in told for note in exchange.notes] == [True]


def test_pasted_text_becomes_its_stream(tmp_path: Path) -> None:
    pasted = b"".join(b"web_1  | " + line + b"\n" for line in STREAM.split(b"\n"))
    (tmp_path / "paste.log").write_bytes(pasted)
    assert called("import", "paste.log", "-o", "x.tape", folder=tmp_path).returncode == 0
    told = called("show", "x.tape", "--format", "json", folder=tmp_path)
    assert [call["name"] for call in json.loads(told.stdout)["calls"]] == ["get"]


def test_a_captured_case_becomes_a_tape_without_its_credentials(tmp_path: Path) -> None:
    captured(tmp_path)
    result = called("import", "case", "-o", "x.tape", folder=tmp_path)
    assert result.returncode == 0
    (exchange,) = open_tape(tmp_path / "x.tape")
    assert exchange.request.upstream == "https://api.example.com"
    assert json.loads(exchange.request.body) == ASKED
    assert header(exchange.request.headers, "x-a") == b"1"
    assert isinstance(exchange.request.target[1], MaskedCredential)
    assert b"fake" not in (tmp_path / "x.tape").read_bytes()


def test_request_and_response_can_be_given_beside_a_body(tmp_path: Path) -> None:
    case = captured(tmp_path)
    (tmp_path / "answer").write_bytes(b'{"error": {"message": "slow down"}}')
    (tmp_path / "response").write_text('{"status": 429, "headers": [["Retry-After", "7"]]}')
    result = called(
        *("import", "answer", "--request", case / "request.json", "--response", "response"),
        *("-o", "x.tape"),
        folder=tmp_path,
    )
    assert result.returncode == 0, result.stderr
    (exchange,) = open_tape(tmp_path / "x.tape")
    assert json.loads(exchange.request.body) == ASKED
    assert exchange.response is not None
    assert exchange.response.status == 429
    assert header(exchange.response.headers, "retry-after") == b"7"


def test_a_tape_is_no_capture(tmp_path: Path) -> None:
    sealed_copy(CUT, tmp_path)
    shutil.copy(CUT, tmp_path / "log.txt")
    for path in (tmp_path / "log.txt", *tmp_path.glob("*.zst")):
        result = called("import", path, "-o", "x.tape", folder=tmp_path)
        assert result.returncode == 2
        assert result.stderr.decode() == (
            f"deltatape: {path}: is a tape already; deltatape cut and deltatape splice make tapes"
            " of tapes\n"
        )
    assert not (tmp_path / "x.tape").exists()
    result = called("why", "-", folder=tmp_path, stdin=CUT.read_bytes())
    assert result.returncode == 2
    assert result.stderr == b"deltatape: (stdin): is a tape; name its file instead\n"


def test_what_is_named_like_a_tape_can_be_an_answer(tmp_path: Path) -> None:
    (tmp_path / "answer.tape").write_bytes(STREAM)
    assert called("import", "answer.tape", "-o", "x.tape", folder=tmp_path).returncode == 0


def test_a_tape_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "answer").write_bytes(STREAM)
    (tmp_path / "x.tape").write_bytes(b"precious")
    result = called("import", "answer", "-o", "x.tape", folder=tmp_path)
    assert result.returncode == 2
    assert b"-o x.tape: already exists; a tape is never overwritten" in result.stderr
    assert (tmp_path / "x.tape").read_bytes() == b"precious"


def test_a_tape_is_for_its_owner_alone(tmp_path: Path) -> None:
    (tmp_path / "answer").write_bytes(STREAM)
    before = os.umask(0)
    try:
        called("import", "answer", "--output", "x.tape", folder=tmp_path)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "x.tape").stat().st_mode) == 0o600


def test_an_imported_tape_plays(tmp_path: Path) -> None:
    captured(tmp_path)
    called("import", "case", "-o", "x.tape", folder=tmp_path)
    with program("replay", "--listen", "127.0.0.1:0", "x.tape", folder=tmp_path) as player:
        connection = http.client.HTTPConnection("127.0.0.1", player.port, timeout=LIMIT_S)
        target = "/v1/chat/completions?key=another-key"
        connection.request("POST", target, json.dumps(ASKED), {"Content-Type": "application/json"})
        response = connection.getresponse()
        assert (response.status, response.read()) == (200, STREAM)
        connection.close()
        code, told = player.stop()
    assert (code, "1 played, 0 missed, 0 unplayed" in told) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("answer",), "Missing option '-o'"),
        (("missing", "-o", "x.tape"), "'missing' does not exist"),
        (("answer", "-o", "no/such/x.tape"), "-o no/such/x.tape: No such file or directory"),
        (("answer", "-o", "."), "is a directory"),
        (
            ("answer", "-o", "x.tape", "--response", "answer"),
            "deltatape: answer: the response must be a JSON object",
        ),
        (
            ("answer", "-o", "x.tape", "--response", "st.json"),
            "deltatape: st.json: \"status\" is 'x'; use 100 to 999",
        ),
        (
            ("answer", "-o", "x.tape", "--request", "empty"),
            "deltatape: empty: the request must be a JSON object",
        ),
        (("answer", "-o", "x.tape", "--request", "."), "Invalid value for '--request'"),
        (("answer", "-o", "x.tape", "--request", "missing"), "'missing' does not exist"),
        ((".", "-o", "x.tape"), "a folder with body.raw"),
    ],
)
def test_wrong_usage_is_reported_and_writes_no_tape(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    (tmp_path / "answer").write_bytes(STREAM)
    (tmp_path / "st.json").write_text('{"status": "x"}')
    (tmp_path / "empty").touch()
    result = called("import", *arguments, folder=tmp_path)
    assert result.returncode == 2
    assert message in result.stderr.decode()
    assert not (tmp_path / "x.tape").exists()


REFUSED = {
    "program": b"\x7fELF\x02\x01\x01\0",
    "page.html": b"<!doctype html><title>502 Bad Gateway</title>",
    "image.png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    "empty.har": b"",
    "torn.har": b'{"log": {"version": "1.2", "entries": [{"request": {"meth',
    "package.json": b'{"name": "app", "version": "1.0.0"}',
    "notes.txt": b"Dear diary,\n",
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("command", ["import", "check", "why", "show"])
def test_what_is_no_capture_is_refused(tmp_path: Path, name: str, command: str) -> None:
    (tmp_path / name).write_bytes(REFUSED[name])
    output = ("-o", "x.tape") if command == "import" else ()
    result = called(command, name, *output, folder=tmp_path)
    assert result.returncode == 2
    assert f"deltatape: {name}: " in result.stderr.decode()
    assert b"no findings" not in result.stdout
    assert not (tmp_path / "x.tape").exists()


def test_every_exchange_of_an_archive_is_on_the_tape(tmp_path: Path) -> None:
    asked = {"method": "POST", "url": "https://api.openai.com/v1/chat/completions"}
    picture = {"request": {"method": "GET", "url": "https://example.com/a.png"}}
    picture["response"] = {"status": 200, "content": {"mimeType": "image/png", "text": "x"}}  # type: ignore[dict-item]
    told = {"status": 200, "content": {"text": STREAM.decode(), "mimeType": "text/event-stream"}}
    entries = [picture, {"request": asked, "response": told}, {"request": asked, "response": told}]
    (tmp_path / "x.har").write_text(json.dumps({"log": {"entries": entries}}))
    result = called("import", "x.har", "-o", "x.tape", folder=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stderr.decode().splitlines() == [
        "read as a HAR: 2 exchanges",
        "note: #1: HAR: entry 2 of 3",
        "note: #1: left out what is no traffic of an LLM: 1 image/png",
        "note: #2: HAR: entry 3 of 3",
        "tape: x.tape",
        "next: deltatape why x.tape",
    ]
    exchanges = list(open_tape(tmp_path / "x.tape"))
    assert [each.number for each in exchanges] == [1, 2]
    assert len({each.id for each in exchanges}) == 2
    assert [each.body for each in exchanges] == [STREAM, STREAM]
    assert called("fsck", "x.tape", folder=tmp_path).returncode == 0


def test_an_environment_variable_sets_the_output(tmp_path: Path) -> None:
    (tmp_path / "answer").write_bytes(STREAM)
    variable = {"DELTATAPE_IMPORT_OUTPUT": "v.tape"}
    assert called("import", "answer", folder=tmp_path, env=variable).returncode == 0
    assert len(open_tape(tmp_path / "v.tape")) == 1
