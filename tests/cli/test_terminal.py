"""What reaches a terminal: styles of ours, and nothing that a tape holds; what pipes get: plain."""

import io
import os
import pty
import re
import subprocess
import sys
import termios
import threading
from pathlib import Path

import pytest

from deltatape.cli import terminal
from deltatape.render.lines import BOLD, StyledText, line
from helpers.console import called, on_terminal
from helpers.hostile import FILE_NAME, assert_harmless, bad, hostile_tape
from helpers.incidents import BROKEN, CUT, EMPTY, FIXED, recorded
from helpers.program import deltatape, environment

STYLE = re.compile(rb"\x1b\[[0-9;]*m")

COMMANDS = {
    "why": ("why", FILE_NAME),
    "why #2": ("why", f"{FILE_NAME}#2"),
    "why json": ("why", FILE_NAME, "--format", "json"),
    "check": ("check", FILE_NAME),
    "check json": ("check", FILE_NAME, "--format", "json"),
    "show": ("show", FILE_NAME),
    "show calls": ("show", FILE_NAME, "--calls"),
    "show events": ("show", f"{FILE_NAME}#1", "--events"),
    "show reads": ("show", f"{FILE_NAME}#2", "--reads"),
    "show steps": ("show", f"{FILE_NAME}#1", "--steps"),
    "show steps json": ("show", f"{FILE_NAME}#1", "--steps", "--format", "json"),
    "show json": ("show", FILE_NAME, "--format", "json"),
    "ls": ("ls", "."),
    "ls json": ("ls", ".", "--format", "json"),
    "no such exchange": ("show", f"{FILE_NAME}#9"),
    "several exchanges": ("show", FILE_NAME, "--events"),
    "no such tape": ("replay", f"{FILE_NAME}{FILE_NAME}"),
    "a wrong call": ("check", FILE_NAME, "--format", FILE_NAME),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_no_text_of_a_tape_acts_on_the_terminal(tmp_path: Path, name: str) -> None:
    hostile_tape(tmp_path)
    shown = on_terminal(*COMMANDS[name], folder=tmp_path).stdout
    assert re.search(rb"\\x1b|\\u001b|\\u202e", shown)  # it is shown, not dropped
    assert_harmless(shown)


def test_a_damaged_tape_does_not_act_on_the_terminal(tmp_path: Path) -> None:
    path = hostile_tape(tmp_path)
    path.write_bytes(
        path.read_bytes() + bad("no record").encode("utf-8").replace(b"\n", b"") + b"\n[]\n"
    )
    for command in ("why", "check", "show", "replay"):
        result = on_terminal(command, path.name, folder=tmp_path)
        assert result.returncode == 2
        assert b"INJECTED" in result.stdout
        assert_harmless(result.stdout)


def test_text_that_is_typed_in_does_not_act_on_the_terminal(tmp_path: Path) -> None:
    delta = '{"choices":[{"index":0,"delta":{"content":"hi"}}]}'
    hostile = bad("x").replace("\0", "")  # a log with NUL is refused as binary
    pasted = f"INFO app: {hostile}\nINFO data: {delta}\nINFO \nINFO data: [DONE]\n"
    path = tmp_path / f"{FILE_NAME}.log"
    path.write_bytes(b"HTTP/1.1 200 \x1b[7m\r\nX-A: \x1b[7m\r\n\r\n" + pasted.encode())
    for arguments in (("why", path.name), ("import", path.name, "-o", f"{FILE_NAME}.tape")):
        result = on_terminal(*arguments, folder=tmp_path)
        assert result.returncode == 0, result.stdout
        assert_harmless(result.stdout)
    piped = called("why", "-", folder=tmp_path, stdin=pasted.encode())
    assert b"note: " in piped.stderr
    assert_harmless(piped.stdout + piped.stderr)


def test_a_terminal_gets_styles_and_a_pipe_gets_the_same_text_without(tmp_path: Path) -> None:
    recorded(tmp_path, BROKEN)
    for arguments in (("why",), ("check", ".deltatape/itinerary-broken.tape"), ("ls",)):
        styled = on_terminal(*arguments, folder=tmp_path).stdout
        piped = deltatape(*arguments, folder=tmp_path).stdout
        assert STYLE.search(styled)
        assert b"\x1b" not in piped
        if arguments != ("ls",):  # ages differ
            assert STYLE.sub(b"", styled).replace(b"\r\n", b"\n") == piped


def test_no_color_is_obeyed(tmp_path: Path) -> None:
    recorded(tmp_path, BROKEN)
    shown = on_terminal("why", folder=tmp_path, env={"NO_COLOR": "1"}).stdout
    assert b"VERDICT" in shown
    assert b"\x1b" not in shown


@pytest.mark.parametrize("arguments", [("show", "--events"), ("show", "--raw"), ("check",)])
def test_a_reader_that_leaves_early_is_not_a_failure(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    (tape,) = recorded(tmp_path, BROKEN)
    read, write = os.pipe()
    os.close(read)
    try:
        result = subprocess.run(
            [sys.executable, "-m", "deltatape", arguments[0], f"{tape}#1", *arguments[1:]],
            stdout=write,
            stderr=subprocess.PIPE,
            env={k: v for k, v in environment(tmp_path).items() if k != "PYTHONUNBUFFERED"},
            timeout=300,
            check=False,
        )
    finally:
        os.close(write)
    assert result.stderr == b""
    assert result.returncode == 0


def test_findings_count_though_nobody_reads_them_to_the_end(tmp_path: Path) -> None:
    (tape,) = recorded(tmp_path, BROKEN)
    command = f"{sys.executable} -m deltatape check {tape} | true; exit ${{PIPESTATUS[0]}}"
    result = subprocess.run(["bash", "-c", command], capture_output=True, timeout=300, check=False)
    assert (result.returncode, result.stdout, result.stderr) == (1, b"", b"")


def test_characters_outside_of_the_encoding_are_escaped(tmp_path: Path) -> None:
    body = tmp_path / "x.sse"
    body.write_text('data: {"choices":[{"index":0,"delta":{"content":"€"}}]}\n\n')
    assert called("import", body, "-o", "x.tape", folder=tmp_path).returncode == 0
    result = deltatape(
        "show", "x.tape", "--events", folder=tmp_path, env={"PYTHONIOENCODING": "ascii"}
    )
    assert (result.returncode, result.stderr) == (0, b"")
    assert b"\\u20ac" in result.stdout


def test_a_closed_terminal_does_not_stop_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    os.close(read)
    with io.TextIOWrapper(io.FileIO(write, "w"), write_through=True) as gone:
        monkeypatch.setattr(sys, "stderr", gone)
        terminal.say("nobody hears this")
        monkeypatch.undo()


def test_a_line_on_stderr_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    told = io.StringIO()
    monkeypatch.setattr(sys, "stderr", told)
    terminal.say("a\nb\x1b[31m é")
    assert told.getvalue() == "a\\nb\\x1b[31m é\n"


@pytest.mark.parametrize("colour", [True, False])
def test_messages_are_wrapped_between_words_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, *, colour: bool
) -> None:
    reader, writer = pty.openpty()
    with os.fdopen(writer, "w") as tty, os.fdopen(reader, "rb", buffering=0) as shown:
        monkeypatch.setattr(sys, "stderr", tty)
        monkeypatch.delenv("COLUMNS", raising=False)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("NO_COLOR", "" if colour else "1")
        termios.tcsetwinsize(writer, (24, 70))
        terminal.say(f"    error C002 name: {'words ' * 20}")
        raw = shown.read(4096)
    assert bool(STYLE.search(raw)) is colour
    lines = STYLE.sub(b"", raw).decode().splitlines()
    assert lines[0].startswith("    error C002 name: words words")
    assert all(each.startswith("        words") for each in lines[1:])
    assert all(len(each) <= 70 and each.endswith("words") for each in lines)


def test_lines_are_plain_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    told = io.StringIO()
    monkeypatch.setattr(sys, "stdout", told)
    terminal.show([line(StyledText("bold", BOLD), " plain [red]x[/red]")])
    assert told.getvalue() == "bold plain [red]x[/red]\n"


def test_no_lines_are_nothing_also_on_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "silent.tape").write_bytes(CUT.read_bytes().partition(b"\n")[0] + b"\n")
    result = on_terminal("show", "silent.tape", folder=tmp_path)
    assert result.returncode == 0
    assert STYLE.sub(b"", result.stdout) == (
        b"note: silent.tape: it has no request; deltatape ls lists the other tapes\r\n"
    )
    terminal.show([])


@pytest.mark.parametrize("columns", [60, 80, 100, 140])
@pytest.mark.parametrize(
    "arguments",
    [
        *[
            ("why",),
            ("why", "D003"),
            ("check",),
            ("show",),
            ("show", "--calls"),
            ("ls",),
            ("fsck", ""),
        ],
        *[("show", "#1", "--events"), ("show", "#1", "--reads")],
    ],
    ids=" ".join,
)
def test_no_line_is_wider_than_the_terminal(
    tmp_path: Path, columns: int, arguments: tuple[str, ...]
) -> None:
    recorded(tmp_path, CUT, BROKEN)
    env = {"COLUMNS": str(columns), "NO_COLOR": "1"}
    shown = on_terminal(*arguments, folder=tmp_path, env=env).stdout.decode()
    wide = [each for each in shown.splitlines() if len(each) > columns and "://" not in each]
    assert wide == []
    assert shown


@pytest.mark.parametrize(
    ("columns", "width"), [("", 100), ("0", 100), ("x", 100), ("1", 60), ("80", 80), ("999", 140)]
)
def test_a_page_has_the_columns_of_the_terminal_within_reason(
    monkeypatch: pytest.MonkeyPatch, columns: str, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr(sys, "__stdout__", io.StringIO())
    assert terminal.width() == width
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert terminal.list_width() == (width if columns else 10_000)


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "arguments", [("check", CUT), ("watch", CUT), ("--help",), ("ls", "--help"), ("--version",)]
)
@pytest.mark.parametrize(
    ("redirected", "reason"),
    [(">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")],
)
def test_results_that_cannot_be_written_are_a_failure_and_no_findings(
    tmp_path: Path,
    redirected: str,
    reason: str,
    arguments: tuple[str | Path, ...],
    unbuffered: str,
) -> None:
    result = redirecting(redirected, *arguments, folder=tmp_path, PYTHONUNBUFFERED=unbuffered)
    assert result.returncode == 2
    last = result.stderr.splitlines()[-1]
    assert last == f"deltatape: standard output: {reason}"
    assert len(result.stderr.splitlines()) == 1 + ("watch" in arguments)


def redirecting(
    redirected: str, *arguments: str | Path, folder: Path, **env: str
) -> subprocess.CompletedProcess[str]:
    """Run a command with the shell's redirections."""
    words = [sys.executable, "-m", "deltatape", *map(str, arguments)]
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {redirected}', "sh", *words],
        cwd=folder,
        env={**environment(folder), **env},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("arguments", [("why", "-"), ("check", "-"), ("open", CUT, "--until-eof")])
def test_a_closed_standard_input_is_told(tmp_path: Path, arguments: tuple[str | Path, ...]) -> None:
    result = redirecting("<&-", *arguments, folder=tmp_path)
    assert result.returncode == 2
    assert result.stderr == "deltatape: standard input: Bad file descriptor\n"


def test_without_anywhere_to_say_it_the_exit_code_tells(tmp_path: Path) -> None:
    result = redirecting("2>&-", "check", CUT, folder=tmp_path)
    assert (result.returncode, "W006" in result.stdout) == (1, True)
    assert redirecting("<&- >&- 2>&-", "check", "none.tape", folder=tmp_path).returncode == 2


def test_what_is_said_aside_comes_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    with terminal.aside():
        for number in range(5):
            terminal.say(f"line {number}")
    assert capsys.readouterr().err.splitlines() == [f"line {number}" for number in range(5)]


def test_a_stuck_terminal_holds_nobody_up_and_its_lines_are_counted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "_MAX_WAITING", 1)
    gate = threading.Event()
    write = terminal._write_lines
    monkeypatch.setattr(terminal, "_write_lines", lambda lines: (gate.wait(20), write(lines)))
    voice = terminal.TerminalWriter()
    for number in range(50):
        voice.put(f"line {number}")
    gate.set()
    voice.close()
    assert "lines left out: the terminal was blocked" in capsys.readouterr().err


def test_on_a_terminal_a_bar_shows_how_far_it_is_and_results_stay_whole(tmp_path: Path) -> None:
    shown = on_terminal("check", CUT, EMPTY, FIXED, folder=tmp_path).stdout.decode()
    assert "tapes" in shown
    assert "0/3" in shown
    for part in ("W006", "T001", "5 errors"):
        assert part in shown


def test_elsewhere_and_for_a_single_tape_there_is_none(tmp_path: Path) -> None:
    assert b"tapes" not in called("check", CUT, EMPTY, folder=tmp_path).stderr
    alone = on_terminal("check", FIXED, folder=tmp_path)
    assert b"tapes" not in alone.stdout
    assert_harmless(alone.stdout)


def test_without_a_terminal_nothing_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    with terminal.Bar("tapes", 2) as bar:
        bar.step()
        with bar.aside():
            pass
        bar.step()
    assert capsys.readouterr() == ("", "")
