import gzip
import hashlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from deltatape.model.exchange import EndReason, Framing
from deltatape.store.reader import MAX_LINE, open_tape
from deltatape.tape import encode, mask
from deltatape.tape.decode import CODES, decode_header, decode_record
from deltatape.tape.payload import RemarkRecord, Stop
from deltatape.tape.tap import PIECE, ExchangeTap
from helpers.tapes import HEADER, start, taped, whole_tape, write_tape

ROOT = Path(__file__).parent.parent
README = (ROOT / "recordings" / "README.md").read_text()
SCHEMA = json.loads((ROOT / "recordings" / "tape.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
PROGRAM = ROOT / "scripts" / "check-recordings"

BLOCKS = re.findall(r"```json\n(.*?)```", README, re.DOTALL)
PROSE = re.sub(r"```.*?```", "", README, flags=re.DOTALL)
EXAMPLES = [line for block in BLOCKS for line in block.splitlines() if re.match(r"\[\d", line)]
RESERVED = {"frame", "masked", "log"}


def canonical(line: bytes) -> bytes:
    if line.startswith(b"{"):
        return encode.header_line(decode_header(line))
    record = decode_record(line)
    return encode.payload_record(record.t_ns, record.exchange, record.payload)


def named(section: str) -> set[str]:
    """The names in backticks of a part of the page."""
    return set(re.findall(r"`([^`]+)`", section))


# The specification.


def test_the_example_is_a_whole_tape(tmp_path: Path) -> None:
    tape = open_tape(write_tape(tmp_path, BLOCKS[0].encode()))
    first, second = tape[1], tape[2]
    assert (tape.stopped, tape.torn, len(tape)) == (True, 0, 2)
    assert first.body.decode() == 'data: {"text":"café"}\n\ndata: [DONE]\n\n'
    assert [read.boundaries for read in first.reads] == [(19,), (6,), (0, 5)]
    assert first.end is not None
    assert (first.end.bytes, first.end.sha256) == (
        len(first.body),
        hashlib.sha256(first.body).hexdigest(),
    )
    assert second.end is not None
    assert second.end.reason is EndReason.TIMEOUT


@pytest.mark.parametrize("line", EXAMPLES)
def test_every_example_line_is_valid_and_canonical(line: str) -> None:
    VALIDATOR.validate(json.loads(line))
    assert canonical(line.encode()) == line.encode() + b"\n"


def test_every_code_has_an_example_and_a_row() -> None:
    shown = {json.loads(line)[2] for line in EXAMPLES}
    rows = set(re.findall(r"^\| `([a-z-]+)` \| ", README.partition("## Codes")[2], re.MULTILINE))
    assert shown == set(CODES) | RESERVED
    assert set(CODES) | RESERVED <= rows


def test_every_code_has_a_schema() -> None:
    conditions = [rule["if"]["prefixItems"][2] for rule in SCHEMA["$defs"]["record"]["allOf"]]
    codes = [code for found in conditions for code in found.get("enum", [found.get("const")])]
    assert sorted(codes) == sorted(set(CODES) | RESERVED)


def test_the_page_names_what_is_masked() -> None:
    page = PROSE.partition("### Masked values")[2].partition("\n## ")[0]
    assert named(page) - {"upstream", "_", "-"} == (
        mask.HEADERS | mask.QUERY | mask.HARMLESS | mask.URL_HEADERS | set(mask.SUFFIXES)
    )


def test_the_page_names_every_ending_and_framing() -> None:
    assert {reason.value for reason in EndReason} <= named(PROSE)
    assert {framing.value for framing in Framing} <= named(PROSE)


def test_the_page_names_the_limits() -> None:
    assert f"{MAX_LINE:,} bytes" in README
    assert f"{PIECE:,} bytes" in README
    assert PIECE * len("\\u0000") + 1000 < MAX_LINE


def test_what_is_written_validates() -> None:
    for line in whole_tape().splitlines():
        VALIDATOR.validate(json.loads(line))


def _header(**fields: object) -> str:
    value = {"deltatape": 1, "id": "01JD3ZQ8T0000000000000TAPE", "source": "gateway"}
    instant = {"recorded_at": "2026-11-21T20:36:01.000000000Z"}
    return json.dumps({**value, **instant, **fields})


def _request(**fields: object) -> str:
    value = {"id": "01JD3ZQ8T0000000000000001A", "method": "GET", "target": "/"}
    rest = {"upstream": "https://host/base", "http": "1.1", "headers": []}
    return json.dumps([1, 1, "request", {**value, **rest, **fields}])


def _end(**recorder: object) -> str:
    value = {"reason": "complete", "bytes": 0, "sha256": "0" * 64, "recorder": recorder}
    return json.dumps([1, 1, "end", value])


def test_what_these_lines_are_made_of_validates() -> None:
    for line in (_header(), _request(), _end(lost_records=1, more={})):
        VALIDATOR.validate(json.loads(line))


@pytest.mark.parametrize(
    "line",
    [
        '{"deltatape":2,"id":"01KAKQ7Q6E4J9V6T1N3B5W8XZ0","recorded_at":"","source":"gateway"}',
        "[1,1]",
        '[-1,1,"idle",{}]',
        '[1,0,"read","x"]',
        '[1,1,"read",""]',
        '[1,1,"read",{"b64":"a"}]',
        '[1,1,"read",7]',
        '[1,1,"end",{"reason":"bored","bytes":0,"sha256":""}]',
        '[1,1,"stop",{"reason":"x"}]',
        '[1,1,"boundaries",[-1]]',
        '[1,1,"boundaries",[3,3]]',
        f'[1,1,"read","{"x" * (PIECE + 1)}"]',
        f'[1,0,"log",{{"stream":"stdout","line":"{"x" * 65_537}"}}]',
        '[1,1,"frame",{"side":"client","opcode":1,"fin":false,"at":1,"data":""}]',
        '[1,1,"read",{"b64":""}]',
        '[1,1,"informational",{"status":200,"reason":"","http":"1.1","headers":[]}]',
        '[1,1,"informational",{"status":103,"reason":"a\\rb","http":"1.1","headers":[]}]',
        '[1,1,"trailers",{"headers":[["a","b\\u0000c"]]}]',
        _request(target="/caf\u00e9"),
        _request(target=["/", "\u00e9"]),
        _request(target="/a\nb"),
        _request(upstream="https://user:pass@host"),
        _end(lost_records="some"),
        _header(recorded_at="2026-13-21T20:36:01.000000000Z"),
    ],
)
def test_what_is_wrong_does_not_validate(line: str) -> None:
    assert not VALIDATOR.is_valid(json.loads(line))


@pytest.mark.skipif(shutil.which("file") is None, reason="no file(1)")
def test_file_recognises_a_tape_by_the_lines_of_the_page(tmp_path: Path) -> None:
    (block,) = re.findall(r"```magic\n(.*?)```", README, re.DOTALL)
    (tmp_path / "magic").write_text(block)
    (tmp_path / "other").write_text('{"deltatapes":1}')
    write_tape(tmp_path, whole_tape())
    seen = [
        subprocess.check_output(
            ["file", "--brief", "-m", "magic", *options, name], cwd=tmp_path, text=True
        ).strip()
        for name in ("x.tape", "other")
        for options in ([], ["--mime-type"])
    ]
    assert seen[:2] == ["deltatape recording, version 1", "application/vnd.deltatape"]
    assert not any("deltatape" in each for each in seen[2:])


# The check of this folder.


def check(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, PROGRAM, folder], check=False, capture_output=True, text=True
    )


def tape_of(*lines: bytes) -> bytes:
    stop = encode.payload_record(999, 0, Stop(reason="test", exit_code=None))
    return encode.header_line(HEADER) + b"".join(lines) + stop


def exchange_of(feed: Callable[[ExchangeTap], None]) -> bytes:
    return tape_of(*taped(feed).all)


def test_the_recordings_of_this_repository_are_clean() -> None:
    done = subprocess.run([sys.executable, PROGRAM], check=False, capture_output=True, text=True)
    assert (done.stderr, done.returncode) == ("", 0)


def test_a_folder_without_tapes_and_one_with_a_good_tape_are_clean(tmp_path: Path) -> None:
    assert check(tmp_path).returncode == 0
    (tmp_path / "deep").mkdir()
    write_tape(tmp_path / "deep", whole_tape())
    done = check(tmp_path)
    assert (done.stderr, done.returncode) == ("", 0)


def split_secret(tap: ExchangeTap) -> None:
    start(tap, Framing.LENGTH)
    tap.read(60, b"data: sk-fakefake", None)
    tap.read(61, b"fakefakefake", None)


def coded_secret(tap: ExchangeTap) -> None:
    tap.response(
        50,
        status=200,
        reason=b"OK",
        http="1.1",
        framing=Framing.CLOSE,
        headers=((b"content-encoding", b"gzip"),),
    )
    tap.read(60, gzip.compress(b"data: gsk_" + b"fake" * 8), None)


def sent_secret(tap: ExchangeTap) -> None:
    tap.request_body(1, b"\xff Bearer " + b"fake" * 5)


def unmasked_head() -> bytes:
    head = taped(start).all[0]
    return head.replace(b'["Authorization",', b'["X-Api-Key","k"],["Authorization",')


def unmasked_target() -> bytes:
    head = taped(start).all[0]
    return re.sub(rb'"target":\[.*?\],"up', b'"target":"/v1?key=k","up', head)


NOTE = encode.payload_record(1, 1, RemarkRecord(text="x"))


WRONG = [
    (whole_tape()[:-5], "x.tape: the last line is torn"),
    (tape_of(NOTE).rpartition(b"[")[0], "x.tape: does not end with a stop record"),
    (tape_of(b"[1,1,]\n"), "x.tape:2: no JSON at character"),
    (b"hello\n", "x.tape:1: no tape"),
    (tape_of(NOTE.replace(b",1,", b", 1,")), "x.tape:2: not canonical at byte 3"),
    (tape_of(b'[1,1,"read",{"b64":"YQ=="}]\n'), "x.tape:2: not canonical at byte 12"),
    (tape_of(b'[1,0,"read","a"]\n'), "x.tape:2: not in the schema: $[1]: 0 is less than"),
    (tape_of(NOTE * 12_000), "bytes, at most 262144"),
    (exchange_of(split_secret), "x.tape#1: the response body holds a secret: "),
    (exchange_of(coded_secret), "x.tape#1: the response body holds a secret: "),
    (exchange_of(sent_secret), "x.tape:2: holds a secret: bearer token"),
    (exchange_of(sent_secret), "x.tape#1: the request body holds a secret: bearer"),
    (tape_of(unmasked_head()), "x.tape:2: holds a secret: an unmasked X-Api-Key"),
    (tape_of(unmasked_target()), "x.tape:2: holds a secret: an unmasked credential"),
]
"""What a recording must not be, and what is reported of it."""


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> list[list[str]]:
    """Check all of `WRONG` at once; return what is reported of each."""
    folder = tmp_path_factory.mktemp("wrong")
    folders = [folder / f"{number:02}" for number in range(len(WRONG))]
    for each, (content, _) in zip(folders, WRONG, strict=True):
        each.mkdir()
        write_tape(each, content)
    done = check(folder)
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    return [[line for line in lines if line.startswith(f"{each}/")] for each in folders]


@pytest.mark.parametrize("number", range(len(WRONG)), ids=[problem for _, problem in WRONG])
def test_what_a_recording_must_not_be_is_reported_with_file_and_line(
    reported: list[list[str]], number: int
) -> None:
    _, problem = WRONG[number]
    assert any(problem in line for line in reported[number])
