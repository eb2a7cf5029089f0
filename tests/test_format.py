"""The tape format for others: recordings/conformance, and that nothing is missing there."""

import json
import re
from pathlib import Path

import jsonschema
import pytest

from deltatape.errors import TapeFormatError
from deltatape.model.exchange import EndReason, Framing, Source
from deltatape.store.reader import open_tape
from deltatape.tape.decode import CODES, decode_header, decode_record
from deltatape.tape.encode import header_line, payload_record
from helpers.console import called
from helpers.format_reading import reading
from helpers.format_tapes import FormatTape, format_tapes

RECORDINGS = Path(__file__).parent.parent / "recordings"
FOLDER = RECORDINGS / "conformance"
SCHEMA = json.loads((RECORDINGS / "tape.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
TAPES = format_tapes()
RULES = SCHEMA["$defs"]["record"]["allOf"]

each_tape = pytest.mark.parametrize(("name", "tape"), TAPES.items(), ids=TAPES)


def canonical(number: int, line: bytes) -> bytes:
    """A line as deltatape writes it; 1 is the header."""
    if number == 1:
        return header_line(decode_header(line))
    record = decode_record(line)
    return payload_record(record.t_ns, record.exchange, record.payload)


@each_tape
def test_deltatape_reads_what_is_expected(name: str, tape: FormatTape) -> None:
    path = FOLDER / f"{name}.tape"
    assert path.read_bytes() == tape.content
    expected = json.loads((FOLDER / f"{name}.json").read_text())
    assert reading(path) == expected
    assert {key: expected[key] for key in ("refused", "reported")} == tape.verdict


@each_tape
def test_a_refused_line_is_named_whoever_reads(name: str, tape: FormatTape) -> None:
    path = FOLDER / f"{name}.tape"
    if not tape.refused:
        opened = open_tape(path)
        assert len(opened) == len([*opened])
        assert {exchange.number for exchange in opened} == opened.numbers()
        return
    with pytest.raises(TapeFormatError) as caught:
        [*open_tape(path).records()]
    assert max(caught.value.line, 1) == tape.refused


@each_tape
def test_what_is_right_is_valid_and_canonical(name: str, tape: FormatTape) -> None:
    wrong = [
        number
        for number, line in enumerate(tape.content.splitlines(keepends=True), 1)
        if line.endswith(b"\n") and not right(number, line)
    ]
    assert tape.canonical == (wrong == []), (name, wrong)


def right(number: int, line: bytes) -> bool:
    """Whether a line is as writers write it."""
    try:
        return VALIDATOR.is_valid(json.loads(line)) and canonical(number, line) == line
    except ValueError:
        return False


def test_every_code_has_a_tape_of_its_own() -> None:
    of_schema = {
        code
        for rule in RULES
        for kind in [rule["if"]["prefixItems"][2]]
        for code in kind.get("enum", [kind.get("const")])
    }
    assert of_schema == set(CODES)
    for code in of_schema:
        assert f'"{code}",'.encode() in TAPES[f"code-{code}"].content, code


def test_every_framing_ending_and_source_has_a_tape_of_its_own() -> None:
    response = next(rule for rule in RULES if rule["if"]["prefixItems"][2] == {"const": "response"})
    framings = response["then"]["prefixItems"][3]["properties"]["framing"]["enum"]
    endings = SCHEMA["$defs"]["end"]["properties"]["reason"]["enum"]
    sources = SCHEMA["$defs"]["header"]["properties"]["source"]["enum"]
    assert (set(framings), set(endings)) == (set(Framing), set(EndReason))
    assert set(sources) == set(Source)
    for framing in framings:
        assert f'"framing":"{framing}"'.encode() in TAPES[f"framing-{framing}"].content
    for reason in endings:
        assert f'"reason":"{reason}"'.encode() in TAPES[f"end-{reason}"].content
    for source in set(sources) - {"gateway"}:
        assert f'"source":"{source}"'.encode() in TAPES[f"header-{source}"].content


def test_every_key_of_a_frame_and_of_a_header_is_on_a_tape() -> None:
    rule = next(rule for rule in RULES if rule["if"]["prefixItems"][2] == {"const": "frame"})
    for key in rule["then"]["prefixItems"][3]["properties"]:
        assert f'"{key}":'.encode() in TAPES["code-frame"].content, key
    headers = b"".join(tape.content.partition(b"\n")[0] for tape in TAPES.values())
    for key in SCHEMA["$defs"]["header"]["properties"]:
        assert f'"{key}":'.encode() in headers, key


def test_every_verdict_of_the_page_has_a_tape() -> None:
    page = (RECORDINGS / "README.md").read_text().partition("## Verdicts")[2].partition("\n## ")[0]
    verdicts = re.findall(
        r"^\| .* \| (refuse the tape|refuse the line|report|ignore)\b", page, re.MULTILINE
    )
    found = {
        "refuse the tape": [tape for tape in TAPES.values() if tape.refused == 1],
        "refuse the line": [tape for tape in TAPES.values() if tape.refused > 1],
        "report": [tape for tape in TAPES.values() if tape.reported],
        "ignore": [tape for tape in TAPES.values() if not tape.canonical and not tape.refused],
    }
    assert set(verdicts) == set(found)
    for verdict, tapes in found.items():
        assert len(tapes) >= verdicts.count(verdict), verdict


def test_of_the_recordings_fsck_tells_of_the_damaged_ones_alone(tmp_path: Path) -> None:
    """Of all tapes here, and of some of the others."""
    others = [each for each in sorted(RECORDINGS.rglob("*.tape")) if each.parent != FOLDER]
    told = called("fsck", FOLDER, *others[::7], folder=tmp_path)
    assert told.returncode == 2  # some cannot be read
    shown = told.stdout.decode()
    found = re.findall(rf"^{RECORDINGS}/(\S+)\.tape(?::\d+)?: (?!clean)", shown, re.MULTILINE)
    damaged = {f"conformance/{name}" for name, tape in TAPES.items() if any(tape.verdict.values())}
    coded = "conformance/code-masked"  # a secret under a content-coding, as it says itself
    assert set(found) == {*damaged, coded}
    assert "code-masked.tape: 1 problem" in shown
    assert "recordings/conformance/report-time.tape: 1 problem" in shown
