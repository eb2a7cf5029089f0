"""The command line as a whole: help, version, exit codes, what it costs."""

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest

import deltatape
from deltatape import cli
from deltatape.errors import UsageError
from helpers.console import called, on_terminal
from helpers.hostile import assert_harmless, bad
from helpers.incidents import FIXED
from helpers.program import deltatape as program


@pytest.mark.parametrize("arguments", [("--help",), ("-h",), ()])
def test_help_lists_every_command_in_the_order_of_use(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    result = called(*arguments, folder=tmp_path)
    text = (result.stdout or result.stderr).decode()
    assert result.returncode == (0 if arguments else 2)
    places = [text.index(f"\n  {name} ") for name in cli.COMMANDS]
    assert places == sorted(places)
    assert "DELTATAPE_<COMMAND>_<OPTION>" in text


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_has_help(tmp_path: Path, name: str) -> None:
    result = called(name, "--help", folder=tmp_path)
    assert (result.returncode, result.stderr) == (0, b"")
    assert result.stdout.startswith(f"Usage: deltatape {name} ".encode())


def test_the_version_is_that_of_the_package(tmp_path: Path) -> None:
    result = program("--version", folder=tmp_path)
    assert result.stdout == f"deltatape, version {deltatape.__version__}\n".encode()
    assert result.returncode == 0


def test_an_unknown_command_is_reported(tmp_path: Path) -> None:
    result = program("rewind", folder=tmp_path)
    assert (result.returncode, result.stdout) == (2, b"")
    assert b"No such command 'rewind'" in result.stderr
    assert b"Usage: deltatape" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "nearest"),
    [
        (("chek",), "check"),
        (("why", "sngle-current-call"), "single-current-call"),
        (("why", "stal"), "stall"),
        (("show", "good-on.tape"), "good-one.tape"),
        (("mutate", "good-one.tape", "--as", "indx-missing", "-o", "x"), "index-missing"),
        (("mutate", "good-one.tape", "--as", "rest", "-o", "x"), "reset"),
    ],
)
def test_a_typing_error_is_answered_with_the_nearest_name(
    tmp_path: Path, arguments: tuple[str, ...], nearest: str
) -> None:
    (tmp_path / "good-one.tape").write_bytes(FIXED.read_bytes())
    result = called(*arguments, folder=tmp_path)
    assert result.returncode == 2
    assert result.stderr.decode().endswith(f"Did you mean {nearest!r}?\n")


def test_the_choices_of_a_missing_option_are_listed_one_a_line(tmp_path: Path) -> None:
    result = called("export", FIXED, folder=tmp_path)
    assert result.returncode == 2
    assert b"Choose from:\n    har,\n    vcr,\n" in result.stderr


def test_nothing_is_suggested_where_nothing_is_near(tmp_path: Path) -> None:
    for arguments in (("zzz",), ("why", "zzzzzzz"), ("show", "zzz.tape"), ("show", "zzz/zzz.tape")):
        result = called(*arguments, folder=tmp_path)
        assert result.returncode == 2
        assert b"Did you mean" not in result.stderr


@pytest.mark.parametrize("command", ["ls", "open", "pack", "redact", "watch"])
def test_a_command_about_whole_tapes_takes_no_exchange(tmp_path: Path, command: str) -> None:
    (tmp_path / "x.tape").write_bytes(FIXED.read_bytes())
    result = called(command, "x.tape#1", folder=tmp_path)
    assert result.returncode == 2
    told = "x.tape#1: names one exchange, but a whole tape is needed; omit #N"
    assert result.stderr.decode() == f"deltatape: {told}\n"


LONG = "a" * 300
LONG_NAMES = {
    "why": ("why", LONG),
    "check": ("check", LONG),
    "write a baseline": ("check", "x.tape", "--write-baseline", LONG),
    "show": ("show", LONG),
    "ls": ("ls", LONG),
    "doctor": ("doctor", LONG),
    "html": ("why", "x.tape", "--html", LONG),
    "redact": ("redact", "x.tape", "-o", LONG),
    "splice": ("splice", "x.tape", "-o", LONG),
    "replay": ("replay", LONG),
}


@pytest.mark.parametrize("command", LONG_NAMES)
def test_a_name_that_is_too_long_for_the_system_is_an_error_of_one_line(
    tmp_path: Path, command: str
) -> None:
    (tmp_path / "x.tape").write_bytes(FIXED.read_bytes())
    result = called(*LONG_NAMES[command], folder=tmp_path)
    assert result.returncode == 2
    assert "File name too long" in result.stderr.decode().splitlines()[-1]
    assert b"Traceback" not in result.stderr


def test_an_error_of_the_system_about_no_file_keeps_its_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def failing(**_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(cli.deltatape, "main", failing)
    with pytest.raises(OSError, match="Input/output"):
        cli.main()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_can_complete_commands(tmp_path: Path, shell: str) -> None:
    result = program(
        folder=tmp_path,
        env={
            "_DELTATAPE_COMPLETE": f"{shell}_complete",
            "COMP_WORDS": "deltatape che",
            "COMP_CWORD": "1" if shell != "fish" else "che",
        },
    )
    assert b"check" in result.stdout


def test_a_wrong_call_does_not_act_on_the_terminal(tmp_path: Path) -> None:
    argument = bad("x").replace("\0", "")
    for arguments in ((argument,), ("why", f"--{argument}"), ("import", argument, "-o", "x")):
        result = on_terminal(*arguments, folder=tmp_path)
        assert result.returncode == 2
        assert_harmless(result.stdout)


@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        (0, 0),
        (1, 1),
        (125, 125),
        (None, 0),
        (UsageError("no"), 2),
        (click.UsageError("no"), 2),
        (click.exceptions.Exit(3), 3),
        (click.exceptions.Abort(), 130),
        (KeyboardInterrupt(), 130),
    ],
    ids=repr,
)
def test_every_outcome_has_its_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, outcome: object, code: int
) -> None:
    @click.command("ls")
    def command() -> object:
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    monkeypatch.setattr("deltatape.cli.ls_command.command", command)
    result = called("ls", folder=tmp_path)
    assert (result.returncode, result.stdout) == (code, b"")
    assert (b"no" in result.stderr) == (code == 2)


def test_an_error_of_ours_is_one_line(tmp_path: Path) -> None:
    result = program("check", "missing.tape", folder=tmp_path)
    assert result.stderr.count(b"\n") == 1
    assert result.stderr.startswith(b"deltatape: missing.tape: ")


@pytest.mark.parametrize(
    ("arguments", "unused"),
    [
        (("--help",), ("asyncio", "deltatape.cli.ls_command", "deltatape.gateway", "jsonschema")),
        (
            ("check", FIXED),
            ("asyncio", "deltatape.redact", "deltatape.suspects", "deltatape.text_calls.families"),
        ),
        (("why", FIXED), ("asyncio", "deltatape.redact", "deltatape.sdks")),
        (
            ("record", "--", "true"),
            ("deltatape.dialects", "deltatape.mitm.session", "deltatape.record.workers"),
        ),
        (
            ("replay", FIXED, "--", "true"),
            ("deltatape.mitm.session", "deltatape.mutate", "deltatape.rules", "deltatape.vary"),
        ),
    ],
)
def test_a_command_imports_nothing_that_it_does_not_use(
    tmp_path: Path, arguments: tuple[str | Path, ...], unused: tuple[str, ...]
) -> None:
    code = (
        "import sys; from deltatape.cli import main; main()\n"
        f"sys.exit(str([name for name in {unused} if name in sys.modules]))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=tmp_path, capture_output=True, check=False
    )
    assert result.stderr.splitlines()[-1] == b"[]"


def test_the_installed_program_is_the_same(tmp_path: Path) -> None:
    script = Path(sys.executable).parent / "deltatape"
    result = subprocess.run([script, "ls"], cwd=tmp_path, capture_output=True, check=False)
    assert (result.returncode, result.stdout) == (0, program("ls", folder=tmp_path).stdout)


def test_ctrl_c_in_a_command_that_reads_is_130_without_a_traceback(tmp_path: Path) -> None:
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "deltatape", "why", "-"],
        stdin=slave,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
    )
    try:
        assert process.stderr is not None
        assert b"reading standard input" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=300)
    finally:
        os.close(slave)
        os.close(master)
    assert (process.returncode, told.strip()) == (130, b"")
