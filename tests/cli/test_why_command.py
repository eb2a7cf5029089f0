"""`deltatape why`, as somebody with an incident types it."""

import json
import re
import shlex
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from deltatape.model.exchange import EndReason
from deltatape.store.reader import open_tape
from deltatape.tape.encode import header_line
from deltatape.tape.tap import ExchangeTap
from faulty_apps import forgetful
from helpers.chat import FINISH, calls, choice, entry, sse
from helpers.console import called
from helpers.incidents import BROKEN, CUT, EMPTY, FIXED, recorded
from helpers.needed import skip_unless
from helpers.program import deltatape, environment
from helpers.tapes import HEADER, start, taped

EMPTY_CALL = sse(
    calls(entry(0, "c1", name="get", arguments="")), choice({}, "tool_calls"), done=True
)
WHOLE_CALL = sse(
    calls(entry(0, "c1", name="get", arguments="")),
    calls(entry(0, arguments='{"a":')),
    calls(entry(0, arguments="1}")),
    choice({}, "tool_calls"),
    done=True,
)
FINDING = {
    *("code", "name", "severity", "blame", "confidence", "message", "tape", "line"),
    *("exchange", "event", "span", "t_ns", "evidence", "hint", "against", "excluded"),
}


def explanation(*arguments: str | Path, folder: Path, stdin: bytes = b"") -> dict[str, object]:
    """The story as JSON."""
    result = called("why", *arguments, "--format", "json", folder=folder, stdin=stdin)
    assert (result.returncode, result.stderr) == (0, b"")
    told: dict[str, object] = json.loads(result.stdout)
    return told


def codes(told: dict[str, object]) -> list[str]:
    findings = told["findings"]
    assert isinstance(findings, list)
    return [finding["code"] for finding in findings]


def test_without_a_name_it_is_the_worst_exchange_of_the_latest_tape(tmp_path: Path) -> None:
    recorded(tmp_path, CUT, BROKEN)
    result = deltatape("why", folder=tmp_path)
    text = result.stdout.decode()
    assert (result.returncode, result.stderr) == (0, b"")
    assert text.startswith(".deltatape/itinerary-broken.tape#1")
    assert "VERDICT   app, proven  (C002)" in text
    assert "Keep a map from index to call" in text
    assert max(map(len, text.splitlines())) < 130


def test_a_tape_of_a_name_and_one_exchange_of_it(tmp_path: Path) -> None:
    recorded(tmp_path, BROKEN)
    second = called("why", ".deltatape/itinerary-broken.tape#2", folder=tmp_path)
    assert second.stdout.startswith(b".deltatape/itinerary-broken.tape#2")
    assert b"D002 silent-answer" in second.stdout
    assert called("why", "#2", folder=tmp_path).stdout == second.stdout


def test_a_clean_tape_has_a_story_without_findings(tmp_path: Path) -> None:
    told = explanation(FIXED, folder=tmp_path)
    assert told["findings"] == []
    verdict = told["verdict"]
    assert isinstance(verdict, dict)
    assert verdict["blame"] is None


def test_a_saved_body_is_reported(tmp_path: Path) -> None:
    (tmp_path / "answer.txt").write_bytes(EMPTY_CALL)
    told = explanation("answer.txt", folder=tmp_path)
    assert codes(told) == ["T001"]


@pytest.mark.parametrize("prefix", ["2026-11-21T20:36:01Z INFO [app] ", "web_1  | ", "< "])
def test_a_stream_pasted_from_a_log_is_reported(tmp_path: Path, prefix: str) -> None:
    pasted = "".join(f"{prefix}{line}\n" for line in EMPTY_CALL.decode().split("\n"))
    (tmp_path / "paste.log").write_text(pasted)
    assert codes(explanation("paste.log", folder=tmp_path)) == ["T001"]
    assert codes(explanation("-", folder=tmp_path, stdin=pasted.encode())) == ["T001"]


def test_standard_input_is_reported_and_what_was_mended_on_stderr(tmp_path: Path) -> None:
    pasted = b"INFO " + EMPTY_CALL.replace(b"\n", b"\nINFO ")
    result = deltatape("why", "-", folder=tmp_path, stdin=pasted)
    assert result.returncode == 0
    assert b"T001 empty-arguments" in result.stdout
    assert result.stderr.startswith(b"note: pasted")


def test_a_captured_case_is_reported(tmp_path: Path) -> None:
    (tmp_path / "body.raw").write_bytes(EMPTY_CALL)
    function = {"name": "get", "parameters": {"type": "object", "required": ["q"]}}
    body = {"model": "m", "messages": [], "tools": [{"type": "function", "function": function}]}
    request = {"method": "POST", "url": "http://h/v1/chat/completions", "body": body}
    (tmp_path / "request.json").write_text(json.dumps(request))
    told = explanation(tmp_path, folder=tmp_path)
    findings = told["findings"]
    assert isinstance(findings, list)
    assert [finding["severity"] for finding in findings] == ["error"]
    assert "requires q" in findings[0]["message"]


def test_the_json_form_has_the_keys_of_the_contract(tmp_path: Path) -> None:
    told = explanation(BROKEN, folder=tmp_path)
    assert set(told) == {
        *("version", "tape", "exchange", "verdict", "conclusion", "suspects", "clients", "axis"),
        *("timeline", "requested", "arrived", "findings", "attempts", "repetition"),
    }
    assert (told["version"], told["tape"], told["exchange"]) == (1, str(BROKEN), 1)
    assert names(told, "suspects")[0] == "single-current-call"
    verdict, timeline, findings = told["verdict"], told["timeline"], told["findings"]
    assert isinstance(verdict, dict)
    assert isinstance(timeline, list)
    assert isinstance(findings, list)
    assert set(verdict) == {
        *("blame", "confidence", "summary", "fix", "kind", "shown", "means", "code", "possible"),
    }
    assert (verdict["kind"], verdict["shown"]) == ("blamed", "app, proven")
    assert (verdict["blame"], verdict["confidence"]) == ("app", "proven")
    assert {key for entry in timeline for key in entry} == {
        *("t_ns", "exchange", "event", "what", "source", "codes")
    }
    assert {entry["source"] for entry in timeline} == {"wire", "app", "recorder"}
    assert all(set(finding) == FINDING for finding in findings)
    assert codes(told) == ["C002", "C002", "C009", "C009"]


def test_the_json_form_is_ascii_whatever_the_tape_says(tmp_path: Path) -> None:
    (tmp_path / "x.sse").write_bytes(sse(choice({"content": "é\x1b[31m\u202e"}, "stop")))
    result = called("why", "x.sse", "--format", "json", folder=tmp_path)
    assert result.stdout.isascii()
    assert b"\x1b" not in result.stdout


@pytest.mark.parametrize("code", ["T001", "C002", "D003", "W006", "X001", "t001", "d004"])
def test_a_code_is_explained(tmp_path: Path, code: str) -> None:
    result = called("why", code, folder=tmp_path)
    assert result.returncode == 0
    assert result.stdout.startswith(f"# {code.upper()} ".encode())
    assert b"## What it does" in result.stdout
    assert result.stdout.endswith(b"\n")


def test_a_file_that_is_called_like_a_code_in_small_letters_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "t001").write_bytes(EMPTY_CALL)
    assert codes(explanation("t001", folder=tmp_path)) == ["T001"]


def test_a_latest_tape_without_requests_gives_way_to_the_one_before(tmp_path: Path) -> None:
    for name in ("silent.tape", "later.tape"):
        (tmp_path / name).write_bytes(EMPTY.read_bytes().partition(b"\n")[0] + b"\n")
    recorded(tmp_path, CUT, BROKEN, tmp_path / "silent.tape", tmp_path / "later.tape")
    for command in ("why", "show"):
        result = called(command, folder=tmp_path)
        assert result.returncode == 0
        assert result.stderr.decode() == (
            "note: .deltatape/later.tape: it has no request; using"
            " .deltatape/itinerary-broken.tape\n"
        )


def test_when_no_tape_has_a_request_the_latest_is_named(tmp_path: Path) -> None:
    for name in ("silent.tape", "later.tape"):
        (tmp_path / name).write_bytes(EMPTY.read_bytes().partition(b"\n")[0] + b"\n")
    recorded(tmp_path, tmp_path / "silent.tape", tmp_path / "later.tape")
    result = called("why", folder=tmp_path)
    assert result.returncode == 2
    assert b".deltatape/later.tape: it has no request" in result.stderr


def test_the_log_of_a_tape_is_part_of_its_story(tmp_path: Path) -> None:
    lines = CUT.read_bytes().splitlines(keepends=True)
    t_ns = json.loads(lines[-1])[0]
    printed = f'[{t_ns},0,"log",{{"stream":"stderr","line":"Unexpected end of JSON input"}}]\n'
    (tmp_path / "x.tape").write_bytes(b"".join([*lines[:-1], printed.encode(), lines[-1]]))
    timeline = explanation("x.tape", folder=tmp_path)["timeline"]
    assert isinstance(timeline, list)
    assert [(each["source"], each["what"]) for each in timeline if each["source"] == "log"] == [
        ("log", "stderr: Unexpected end of JSON input")
    ]


@pytest.mark.parametrize("what", ["T003", "t003", "single-current-call"])
@pytest.mark.parametrize(
    "options",
    [
        *(("--html", "x.html"), ("--fix", "fx"), ("--format", "json"), ("--error", "foo")),
        *(("--suspects",), ("--full",), ("--short",)),
    ],
    ids=lambda options: options[0],
)
def test_an_option_about_an_exchange_is_refused_with_a_code(
    tmp_path: Path, what: str, options: tuple[str, ...]
) -> None:
    result = called("why", what, *options, folder=tmp_path)
    assert (result.returncode, result.stdout) == (2, b"")
    told = f"deltatape: {options[0]}: has no effect with a code or a suspect\n"
    assert result.stderr.decode() == told
    assert not (tmp_path / "x.html").exists()


def test_an_unknown_code_is_reported(tmp_path: Path) -> None:
    result = called("why", "T999", folder=tmp_path)
    assert (result.returncode, result.stdout) == (2, b"")
    assert b"T999: no such code; docs/findings.md lists them" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "no tape in .deltatape or recordings; make one with `deltatape record`"),
        (("#1",), "no tape in .deltatape or recordings"),
        (("missing.tape",), "missing.tape: No such file or directory"),
        (("broken.tape#7",), "broken.tape#7: no such exchange on the tape; it has 1 to 2"),
        (("silent.tape",), "silent.tape: it has no request"),
        (("--format", "xml"), "'xml' is not one of 'text', 'json'"),
    ],
)
def test_what_cannot_be_told_says_why(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    (tmp_path / "broken.tape").write_bytes(BROKEN.read_bytes())
    (tmp_path / "silent.tape").write_bytes(EMPTY.read_bytes().partition(b"\n")[0] + b"\n")
    result = called("why", *arguments, folder=tmp_path)
    assert (result.returncode, result.stdout) == (2, b"")
    assert message in result.stderr.decode()


def names(told: dict[str, object], key: str) -> list[str]:
    """The names of suspects or clients."""
    found = told[key]
    assert isinstance(found, list)
    return [each["name"] for each in found]


def test_an_error_of_the_app_leads_to_who_would_throw_it(tmp_path: Path) -> None:
    body = tmp_path / "body.sse"
    body.write_bytes(WHOLE_CALL)
    thrown = "Unexpected end of JSON input"
    told = explanation(body, "--error", thrown, folder=tmp_path)
    assert told["suspects"]
    verdict = told["verdict"]
    assert isinstance(verdict, dict)
    assert (verdict["blame"], verdict["confidence"]) == ("app", "likely")
    assert names(told, "suspects")[0] in verdict["summary"]


def test_every_known_client_is_tried_on_demand(tmp_path: Path) -> None:
    told = explanation(FIXED, "--suspects", folder=tmp_path)
    assert {"single-current-call", "finish-only-on-tool-calls"} <= set(names(told, "clients"))
    result = called("why", FIXED, "--suspects", folder=tmp_path)
    assert b"CLIENTS   " in result.stdout


def test_an_sdk_that_is_not_known_is_refused_before_anything_is_installed(tmp_path: Path) -> None:
    result = called("why", FIXED, "--with", "leftpad==1", folder=tmp_path)
    assert result.returncode == 2
    assert b"leftpad" in result.stderr
    assert b"openai" in result.stderr


def test_the_page_is_for_its_owner_and_the_story_is_told_all_the_same(tmp_path: Path) -> None:
    result = called("why", BROKEN, "--html", "story.html", folder=tmp_path)
    assert result.returncode == 0
    assert b"written: story.html" in result.stderr
    assert b"VERDICT" in result.stdout
    page = tmp_path / "story.html"
    assert page.read_text().startswith("<!doctype html>")
    assert page.stat().st_mode & 0o077 == 0


def embedded(page: Path) -> dict[str, Any]:
    """Return the documents in a report."""
    data = re.search(r'id="deltatape-data">(.*?)</script>', page.read_text(), re.DOTALL)
    assert data is not None
    found: dict[str, Any] = json.loads(data[1])
    return found


def test_a_report_has_the_documents_that_the_commands_print(tmp_path: Path) -> None:
    place = f"{BROKEN}#1"
    called("why", place, "--html", "why.html", folder=tmp_path)
    found = embedded(tmp_path / "why.html")
    assert found["ref"] == {"tape": str(BROKEN), "exchange": 1}
    for name, command in (
        ("why", ("why", place)),
        ("show", ("show", place)),
        ("steps", ("show", place, "--steps")),
    ):
        printed = called(*command, "--format", "json", folder=tmp_path).stdout
        assert found[name] == json.loads(printed)
    assert found["stream"] is None
    assert [row["exchange"] for row in found["exchanges"]["exchanges"]] == [1, 2]
    assert found["copies"]["command"] == f"deltatape why '{place}'\n"
    assert found["copies"]["curl"].startswith("curl ")


def test_a_report_on_an_app_s_page_has_the_provider_s_stream_too(tmp_path: Path) -> None:
    tape = BROKEN.parent / "3-app-events" / "broken.tape"
    called("why", f"{tape}#1", "--html", "why.html", folder=tmp_path)
    found = embedded(tmp_path / "why.html")
    assert found["show"]["exchange"]["exchange"] == 1
    assert found["stream"]["exchange"]["exchange"] == found["steps"]["stream"] == 2


def test_a_saved_stream_has_a_report_without_a_tape(tmp_path: Path) -> None:
    (tmp_path / "saved.txt").write_bytes(WHOLE_CALL)
    called("why", "saved.txt", "--html", "why.html", folder=tmp_path)
    found = embedded(tmp_path / "why.html")
    assert found["ref"] == {"tape": "saved.txt", "exchange": 1}
    assert found["why"]["axis"]["request_ns"] is None
    refused = called("why", "saved.txt", "--html", "why.html", "--redact", folder=tmp_path)
    assert refused.returncode == 2
    assert b"saved.txt is no tape; make one first: deltatape import" in refused.stderr


def test_a_report_holds_the_beginnings_of_what_is_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deltatape.cli.report._MAX_CHARACTERS", 20_000)
    said = f'{{"q": "{"x" * 30_000}"}}'

    def feed(tap: ExchangeTap) -> None:
        start(tap)
        tap.read(60, sse(calls(entry(0, "c1", name="get", arguments=said)), FINISH), None)
        tap.end(70, EndReason.COMPLETE, recorder={})

    (tmp_path / "x.tape").write_text(header_line(HEADER).decode() + taped(feed).text)
    called("why", "x.tape#1", "--html", "why.html", folder=tmp_path)
    (long,) = embedded(tmp_path / "why.html")["show"]["calls"]
    assert said.startswith(long["arguments"])
    assert long["cut"]["arguments"] == {"bytes": len(said)}
    assert len(json.dumps(embedded(tmp_path / "why.html")["show"])) < 20_000


HALVES = ("sk-nopen", "openopenope")
"""Neither looks like a key."""


def test_redacted_a_report_lacks_a_key_that_came_in_pieces(tmp_path: Path) -> None:
    first, second = HALVES

    def feed(tap: ExchangeTap) -> None:
        start(tap)
        opened = entry(0, "c1", name="get", arguments=f'{{"key": "{first}')
        tap.read(60, sse(calls(opened), calls(entry(0, arguments=f'{second}"}}')), FINISH), None)
        tap.end(70, EndReason.COMPLETE, recorder={})

    (tmp_path / "x.tape").write_text(header_line(HEADER).decode() + taped(feed).text)
    called("why", "x.tape#1", "--html", "open.html", folder=tmp_path)
    result = called("why", "x.tape#1", "--html", "shut.html", "--redact", folder=tmp_path)
    assert result.returncode == 0, result.stderr
    shown, hidden = (embedded(tmp_path / name) for name in ("open.html", "shut.html"))
    assert first in json.dumps(shown["show"]["events"])
    for half in HALVES:
        assert half not in json.dumps(hidden)
    assert hidden["ref"] == shown["ref"] == {"tape": "x.tape", "exchange": 1}
    assert hidden["show"]["calls"][0]["arguments"] == '{"key": "' + "*" * len(first + second) + '"}'
    assert hidden["why"]["verdict"] == shown["why"]["verdict"]
    assert [path.name for path in tmp_path.glob("*.tape")] == ["x.tape"]


def test_only_a_report_is_redacted(tmp_path: Path) -> None:
    refused = called("why", BROKEN, "--redact", folder=tmp_path)
    assert refused.returncode == 2
    assert b"--redact: of the file that --html writes; name one" in refused.stderr


def test_markdown_can_be_pasted_into_an_issue(tmp_path: Path) -> None:
    result = called("why", BROKEN, "--format", "md", folder=tmp_path)
    assert result.stdout.startswith(b"### Verdict: app, proven (C002)\n")


def test_a_suspect_is_explained_by_its_name(tmp_path: Path) -> None:
    result = called("why", "single-current-call", folder=tmp_path)
    assert result.returncode == 0
    assert b"single-current-call" in result.stdout
    assert b"What it does" in result.stdout
    (tmp_path / "single-current-call").write_bytes(WHOLE_CALL)
    assert b"VERDICT" in called("why", "single-current-call", folder=tmp_path).stdout


def test_a_page_never_replaces_a_tape(tmp_path: Path) -> None:
    tape = tmp_path / "x.tape"
    tape.write_bytes(BROKEN.read_bytes())
    result = called("why", tape, "--html", "x.tape", folder=tmp_path)
    assert result.returncode == 2
    assert tape.read_bytes() == BROKEN.read_bytes()


def test_in_short_it_is_five_paragraphs_for_people(tmp_path: Path) -> None:
    result = called("why", BROKEN, "--short", folder=tmp_path)
    assert result.returncode == 0
    lines = result.stdout.decode().splitlines()
    heads = [line.split()[0] for line in lines if not line.startswith(" ")]
    assert heads == ["VERDICT", "WHAT", "WHERE", "FIX", "NEXT"]
    assert max(map(len, lines)) <= 100
    refused = called("why", BROKEN, "--short", "--format", "json", folder=tmp_path)
    assert refused.returncode == 2
    assert b"--short is for people" in refused.stderr


def test_a_suspect_without_a_name_of_its_own_is_explained(tmp_path: Path) -> None:
    told = called("why", "key=one,emit=when-parses", folder=tmp_path).stdout.decode()
    assert "puts the fragments of all calls into one and uses a call as soon as" in told
    result = called("why", "key=nobody", folder=tmp_path)
    assert result.returncode == 2
    assert b"key=nobody: no such mistake; key=single" in result.stderr


def test_the_verdict_is_the_last_that_a_terminal_shows(tmp_path: Path) -> None:
    lines = called("why", BROKEN, folder=tmp_path).stdout.decode().splitlines()
    assert any(line.startswith("VERDICT   app, proven  (C002)") for line in lines[-12:])
    assert lines[-1].split()[:2] == ["deltatape", "why"]


APP = [sys.executable, forgetful.__file__]
CALL = sse(*(choice(delta) for delta in forgetful.CHUNKS), FINISH, done=True)
TEXT = sse(choice({"content": "It rains."}), choice({}, "stop"), done=True)


class _Provider(BaseHTTPRequestHandler):
    """Answers a first request with a call, one with a result with a text."""

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers["Content-Length"]))
        answer = TEXT if b'"role": "tool"' in asked else CALL
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def provider() -> Iterator[str]:
    """A provider that really answers: its URL."""
    server = HTTPServer(("127.0.0.1", 0), _Provider)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kit for the broken app, from a recording of it."""
    folder = tmp_path_factory.mktemp("kit")
    with provider() as url:
        done = deltatape("record", "--upstream", url, "--to", "tapes", "--", *APP, folder=folder)
    assert done.returncode == 0, done.stderr
    (tape,) = (folder / "tapes").glob("*.tape")
    told = called("why", tape, "--fix", "fix", folder=folder)
    assert told.returncode == 0, told.stderr
    assert b"written: fix/BRIEF.md" in told.stderr
    return folder / "fix"


def verdict(kit: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What the kit's test says of the app with these arguments."""
    (test,) = kit.glob("test_*.py")
    env = environment(kit.parent) | {"APP_COMMAND": shlex.join([*APP, *arguments])}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test.name],
        cwd=kit,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_tape_is_whole_small_and_readable_for_all(kit: Path) -> None:
    (tape,) = kit.glob("*.tape")
    assert stat.S_IMODE(tape.stat().st_mode) == 0o644
    assert len(open_tape(tape)) == 2
    assert [path.name for path in sorted(kit.iterdir()) if path.name.startswith(".")] == []


def test_the_test_fails_for_the_broken_app(kit: Path) -> None:
    done = verdict(kit)
    assert done.returncode == 1
    assert "MISTAKE C002 in request 2" in done.stdout
    assert "call 0 (get_weather, c1) of #1 was delivered with" in done.stdout


def test_the_test_passes_for_the_mended_app(kit: Path) -> None:
    done = verdict(kit, "mended")
    assert done.returncode == 0, done.stdout


def test_the_test_fails_for_an_app_that_gives_up(kit: Path) -> None:
    (test,) = kit.glob("test_*.py")
    env = environment(kit.parent) | {"APP_COMMAND": f"{sys.executable} -c pass"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test.name]
    done = subprocess.run(command, cwd=kit, env=env, capture_output=True, timeout=120, check=False)
    assert done.returncode == 1
    assert b"0 played, 0 missed, 2 unplayed" in done.stdout


@pytest.mark.slow
def test_the_javascript_test_fails_for_the_broken_app_alone(kit: Path, tmp_path: Path) -> None:
    vitest = Path(__file__).parents[1] / "clients" / "node_modules" / "vitest"
    skip_unless(vitest.exists(), "no Vitest; scripts/setup clients installs it")
    (tape,) = kit.glob("*.tape")
    node = tmp_path / "node.tape"
    text = tape.read_bytes()
    agent = b'["user-agent","node"],'
    node.write_bytes(text.replace(b'"headers":[[', b'"headers":[' + agent + b"["))
    assert called("why", node, "--fix", "fix", folder=tmp_path).returncode == 0
    folder = tmp_path / "fix"
    (folder / "node_modules").symlink_to(vitest.parent)
    codes = []
    for arguments in ([], ["mended"]):
        env = environment(tmp_path) | {
            "APP_COMMAND": shlex.join([*APP, *arguments]),
            "DELTATAPE": str(Path(sys.executable).with_name("deltatape")),
        }
        node_program = shutil.which("node") or "node"
        run = [node_program, str(vitest / "vitest.mjs"), "run", "--root", str(folder)]
        done = subprocess.run(run, env=env, capture_output=True, timeout=120, check=False)
        codes.append((done.returncode, b"MISTAKE C002" in done.stdout + done.stderr))
    assert codes == [(1, True), (0, False)]


def test_there_is_no_kit_where_the_app_is_not_to_blame(tmp_path: Path) -> None:
    recorded(tmp_path, CUT)
    done = called("why", "--fix", "fix", folder=tmp_path)
    assert done.returncode == 2
    assert b"the verdict on #1 is" in done.stderr
    assert not (tmp_path / "fix").exists()


def test_there_is_no_kit_without_a_tape(tmp_path: Path) -> None:
    body = tmp_path / "body.sse"
    body.write_bytes(CALL)
    thrown = "Unexpected end of JSON input"
    done = called("why", body, "--error", thrown, "--fix", "fix", folder=tmp_path)
    assert done.returncode == 2
    assert b"is no tape, so nobody knows the app's requests" in done.stderr


def test_nothing_is_overwritten_and_what_cannot_be_written_is_reported(tmp_path: Path) -> None:
    recorded(tmp_path, BROKEN)
    assert called("why", "--fix", "fix", folder=tmp_path).returncode == 0
    again = called("why", "--fix", "fix", folder=tmp_path)
    assert again.returncode == 2
    assert b"is there already; name another folder" in again.stderr
    (tmp_path / "file").write_text("")
    assert called("why", "--fix", "file", folder=tmp_path).returncode == 2


def test_there_is_no_kit_for_what_no_test_could_look_for(tmp_path: Path) -> None:
    recorded(tmp_path, FIXED)
    thrown = ("--error", "Unexpected end of JSON input", "--fix", "fix")
    done = called("why", *thrown, folder=tmp_path)
    assert done.returncode == 2
    assert b"not on a finding" in done.stderr
