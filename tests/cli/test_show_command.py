"""`deltatape show`: what is on a tape, part by part."""

import json
import re
from pathlib import Path

import pytest

from deltatape.model.websocket import Side
from helpers.console import called, on_terminal
from helpers.incidents import BROKEN, CUT, EMPTY, FIXED, exchange, recorded
from helpers.program import deltatape
from helpers.websocket import socket_tape, text

ROOT = Path(__file__).resolve().parents[2]


STRIP = ["seconds", "phase", "reads", "events"]
"""The time axis in front of a part."""


def test_each_exchange_is_a_line(tmp_path: Path) -> None:
    result = deltatape("show", BROKEN, folder=tmp_path, env={"COLUMNS": ""})
    first, second = result.stdout.decode().splitlines()
    assert (result.returncode, result.stderr) == (0, b"")
    said = (
        r"#1 POST /v1/chat/completions 200 [0-9.]+ m?s: 2 calls \(get_itinerary, search_flights\), "
    )
    assert re.match(said, first)
    assert first.endswith("finish tool_calls; no findings")
    assert second.endswith("finish stop; error C002 arguments-changed-by-app and 4 more")
    assert called("show", f"{BROKEN}#2", folder=tmp_path).stdout.decode() == second + "\n"
    narrow = called("show", BROKEN, folder=tmp_path, env={"COLUMNS": "60"}).stdout.decode()
    assert [each[0] for each in narrow.splitlines()] == ["#", " ", " ", "#", " "]


def test_without_a_name_it_is_the_latest_tape(tmp_path: Path) -> None:
    recorded(tmp_path, BROKEN, CUT)
    assert called("show", folder=tmp_path).stdout.startswith(b"#1 POST")
    assert b"W006 stream-cut and 2 more" in called("show", folder=tmp_path).stdout
    assert called("show", "#1", folder=tmp_path).stdout == called("show", folder=tmp_path).stdout


def test_calls_are_a_table(tmp_path: Path) -> None:
    lines = called("show", BROKEN, "--calls", folder=tmp_path).stdout.decode().splitlines()
    assert lines[0].split() == ["exchange", "call", "id", "name", "status", "arguments"]
    assert lines[1].split()[:5] == ["#1", "0", "call_get_itinerary", "get_itinerary", "complete"]
    assert lines[1].endswith('{"trip_id": "LIS-2027"}')
    assert len(lines) == 3
    assert called("show", f"{BROKEN}#2", "--calls", folder=tmp_path).stdout == b"no calls\n"


def test_calls_as_json_have_the_keys_of_the_contract(tmp_path: Path) -> None:
    result = called("show", EMPTY, "--calls", "--format", "json", folder=tmp_path)
    told = json.loads(result.stdout)
    assert told["version"] == 1
    assert told["calls"] == [
        {
            "exchange": 1,
            "dialect": "openai-chat",
            "choice": 0,
            "index": 0,
            "wire_index": 0,
            "id": "call_get_itinerary",
            "name": "get_itinerary",
            "kind": "function",
            "arguments": "",
            "arguments_raw": "",
            "status": "empty_suspect",
            "repairs": [],
            "start_event": 1,
            "fragments": [],
        }
    ]
    assert called("show", EMPTY, "--format", "json", folder=tmp_path).stdout == result.stdout


def test_an_exchange_as_json_is_all_of_it(tmp_path: Path) -> None:
    one = f"{BROKEN}#1"
    told = json.loads(called("show", one, "--format", "json", folder=tmp_path).stdout)
    for part in ("--calls", "--events", "--reads"):
        shown = json.loads(called("show", one, part, "--format", "json", folder=tmp_path).stdout)
        assert shown.items() <= told.items()
    assert told["request"]["tools"][0]["name"] == "get_itinerary"
    assert told["axis"]["phases"][0]["name"] == "sending"
    stalled = ROOT / "recordings" / "rules" / "D003" / "fires.tape"
    told = json.loads(called("show", f"{stalled}#1", "--format", "json", folder=tmp_path).stdout)
    assert told["axis"]["dead_zones"][-1]["code"] == "D003"
    assert told["exchange"]["marks"] == ["unanswered"]


def test_events_have_time_and_place(tmp_path: Path) -> None:
    shown = called("show", CUT, "--events", folder=tmp_path).stdout.decode()
    strip, _, rest = shown.partition("\n\n")
    assert [each.split()[0] for each in strip.splitlines()] == STRIP
    lines = rest.splitlines()
    assert lines[0].startswith("seconds since the request, which came ")
    assert lines[1].split() == ["event", "seconds", "bytes", "what", "is", "new"]
    assert re.match(r" +0 +0\.[0-9]{3}  0-[0-9]+ +nothing new: \{", lines[2])
    assert re.match(r" +1 .*  call 0 opens: [a-z_]+ \(call_[a-z_]+\)$", lines[3])
    result = called("show", CUT, "--events", "--format", "json", folder=tmp_path)
    events = json.loads(result.stdout)["events"]
    assert [event["event"] for event in events] == list(range(len(lines) - 2))
    assert events[1]["new"].startswith("call 0 opens: ")
    body = exchange(CUT, 1).body
    for event in events:
        start, end = event["span"]
        assert event["data"].encode() in body[start:end]


def test_reads_are_those_of_the_socket(tmp_path: Path) -> None:
    shown = called("show", CUT, "--reads", folder=tmp_path).stdout.decode()
    strip, _, rest = shown.partition("\n\n")
    assert [each.split()[0] for each in strip.splitlines()] == STRIP
    lines = rest.splitlines()
    assert lines[1].split() == ["read", "seconds", "offset", "bytes", "data"]
    told = json.loads(called("show", CUT, "--reads", "--format", "json", folder=tmp_path).stdout)
    assert [read["data"].encode() for read in told["reads"]] == [
        read.data for read in exchange(CUT, 1).reads
    ]
    assert len(lines) == 2 + len(told["reads"])


def test_raw_is_the_body_byte_for_byte(tmp_path: Path) -> None:
    event = b'data: {"choices":[{"index":0,"delta":{"content":"hi"}}]}\n\n'
    body = event + b": " + bytes(range(256)) + b"\r\n\xff"
    (tmp_path / "body.bin").write_bytes(body)
    assert called("import", "body.bin", "-o", "x.tape", folder=tmp_path).returncode == 0
    assert deltatape("show", "x.tape", "--raw", folder=tmp_path).stdout == body
    assert (
        called("show", f"{BROKEN}#1", "--raw", folder=tmp_path).stdout == exchange(BROKEN, 1).body
    )


def test_raw_never_goes_to_a_terminal(tmp_path: Path) -> None:
    result = on_terminal("show", CUT, "--raw", folder=tmp_path)
    assert result.returncode == 2
    assert b"--raw on a terminal would let the taped bytes act on it" in result.stdout
    assert b"data:" not in result.stdout


@pytest.mark.parametrize("part", ["--events", "--reads", "--raw"])
def test_a_part_of_several_exchanges_needs_a_number(tmp_path: Path, part: str) -> None:
    result = called("show", FIXED, part, folder=tmp_path)
    assert (result.returncode, result.stdout) == (2, b"")
    assert f"{part} shows one exchange; {FIXED} has #1 to #2: add #N" in result.stderr.decode()
    assert called("show", f"{FIXED}#2", part, folder=tmp_path).returncode == 0


def test_a_tape_without_exchanges_has_no_parts(tmp_path: Path) -> None:
    (tmp_path / "silent.tape").write_bytes(CUT.read_bytes().partition(b"\n")[0] + b"\n")
    result = called("show", "silent.tape", "--reads", folder=tmp_path)
    assert result.returncode == 2
    assert b"silent.tape has none" in result.stderr
    result = called("show", "silent.tape", folder=tmp_path)
    assert (result.returncode, result.stdout) == (0, b"")
    assert b"note: silent.tape: it has no request; deltatape ls" in result.stderr


def printed(folder: Path) -> None:
    """A tape of an exchange and of two lines of a program."""
    lines = CUT.read_bytes().splitlines(keepends=True)
    t_ns = json.loads(lines[-1])[0]
    entries = [{"stream": "stdout", "line": "hello"}, {"stream": "stderr", "line": "\x1b[2J bad"}]
    log = [f"{json.dumps([t_ns, 0, 'log', entry])}\n".replace(", ", ",") for entry in entries]
    content = b"".join([*lines[:-1], *(each.encode() for each in log), lines[-1]])
    (folder / "x y.tape").write_bytes(content.replace(b'": ', b'":'))


def test_what_the_program_printed_is_counted_and_shown(tmp_path: Path) -> None:
    printed(tmp_path)
    lines = called("show", "x y.tape", folder=tmp_path).stdout.decode().splitlines()
    assert lines[-1] == "2 lines that the app printed: deltatape show 'x y.tape' --log"
    assert b"printed" not in called("show", "x y.tape#1", folder=tmp_path).stdout
    _, one, two = called("show", "x y.tape", "--log", folder=tmp_path).stdout.decode().splitlines()
    assert one.split()[1:] == ["stdout", "hello"]
    assert two.split()[1:] == ["stderr", r"\x1b[2J", "bad"]
    assert called("show", CUT, "--log", folder=tmp_path).stdout.startswith(b"no log")


def test_the_log_as_json_has_the_keys_of_the_contract(tmp_path: Path) -> None:
    printed(tmp_path)
    told = json.loads(
        called("show", "x y.tape", "--log", "--format", "json", folder=tmp_path).stdout
    )
    assert [(each["stream"], each["line"]) for each in told["log"]] == [
        ("stdout", "hello"),
        ("stderr", "\x1b[2J bad"),
    ]
    assert all(isinstance(each["t_ns"], int) for each in told["log"])
    assert set(told) == {"version", "log"}


def test_a_log_is_that_of_a_whole_tape(tmp_path: Path) -> None:
    result = called("show", f"{CUT}#1", "--log", folder=tmp_path)
    assert (result.returncode, result.stdout) == (2, b"")
    assert b"--log shows that of the whole tape; leave out #1" in result.stderr
    (tmp_path / "x.sse").write_bytes(b"data: [DONE]\n\n")
    assert called("show", "x.sse", "--log", folder=tmp_path).stdout.startswith(b"no log")


def test_one_part_at_a_time(tmp_path: Path) -> None:
    result = called("show", CUT, "--events", "--reads", folder=tmp_path)
    assert result.returncode == 2
    assert b"--events and --reads: one at a time" in result.stderr


def test_variables_stand_for_options(tmp_path: Path) -> None:
    calls = called("show", CUT, "--calls", folder=tmp_path).stdout
    variable = {"DELTATAPE_SHOW_CALLS": "1"}
    assert called("show", CUT, folder=tmp_path, env=variable).stdout == calls


def test_a_websocket_has_frames_and_no_body(tmp_path: Path) -> None:
    (tmp_path / "socket.tape").write_bytes(socket_tape([(Side.SERVER, text("hello"))]))
    refused = called("show", "socket.tape", "--raw", folder=tmp_path)
    assert refused.returncode == 2
    assert b"a WebSocket has no body; --reads shows the frames" in refused.stderr
    shown = called("show", "socket.tape", "--reads", folder=tmp_path).stdout
    assert b"server  text" in shown
    line = called("show", "socket.tape", folder=tmp_path).stdout
    assert b"WebSocket, 0 messages up and 1 down, not closed" in line


def test_steps_stand_beside_those_of_the_suspect(tmp_path: Path) -> None:
    result = called("show", f"{BROKEN}#1", "--steps", folder=tmp_path)
    assert b"appends a fragment of call 0 to call 1" in result.stdout
    told, why = (
        json.loads(called(*words, f"{BROKEN}#1", "--format", "json", folder=tmp_path).stdout)
        for words in (("show", "--steps"), ("why",))
    )
    assert [each["name"] for each in told["suspects"]] == [each["name"] for each in why["suspects"]]
    several = called("show", BROKEN, "--steps", folder=tmp_path)
    assert (several.returncode, b"--steps shows one exchange" in several.stderr) == (2, True)
