"""`deltatape torture` as a user calls it."""

import json
import re
import shlex
import socket
import sys
from pathlib import Path

import pytest

from deltatape.trials.torture_plan import CaseFiler
from deltatape.vary.variation import VARIATIONS
from helpers.console import called, on_terminal
from helpers.reports import valid_junit
from helpers.tortured import answers, app
from helpers.upstream import free_port


def tape(folder: Path) -> str:
    CaseFiler(tapes=(), options=(), command=(), folder=folder).keep("x", answers())
    return "x.tape"


def tortured(folder: Path, *arguments: str, how: tuple[str, ...] = ()) -> tuple[int, str, str]:
    """The exit code, stdout, stderr."""
    done = called(
        *("torture", f"{tape(folder)}#1", "--deadline", "9s", *arguments, "--"),
        *app(folder, "once", *how),
        folder=folder,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_a_careful_command_passes(tmp_path: Path) -> None:
    options = ("--only", "crlf", "--only", "cut-in-text", "--seeds", "1")
    code, out, err = tortured(
        tmp_path, *options, "--ignore", "[[x]"
    )  # Python warns of a set in a set
    assert code == 0
    assert out.startswith("                       #1\nharmless  crlf         ok\n")
    assert "\n2 variations passed; 4 runs in " in out
    assert err == "1 exchange, 2 variations\n"


def test_a_failure_is_reported_at_once_and_its_command_line_shows_it_again(tmp_path: Path) -> None:
    junit, kept = tmp_path / "torture.xml", tmp_path / "kept"
    options = ("--only", "cut-in-text", "--junit", str(junit), "--keep", str(kept))
    code, out, err = tortured(tmp_path, *options, "--ignore", "x y", how=("deaf",))
    assert code == 1
    assert "FAILED cut-in-text #1 (seed 1): exit code 0 and no error message: " in err
    assert valid_junit(junit.read_bytes())[0].get("failures") == "1"
    assert [path.name for path in kept.iterdir()] == ["cut-in-text-1-1.tape"]
    (again,) = re.findall(r"^  deltatape (torture .*)$", out, re.MULTILINE)
    words = shlex.split(again)
    assert words[2:12] == [
        *("--only", "cut-in-text", "--exchange", "1", "--seed", "1", "--seeds", "1"),
        *("--deadline", "9s"),
    ]
    assert words[12:14] == ["--ignore", "x y"]
    shown = called(*words, folder=tmp_path)
    assert shown.returncode == 1
    assert b"FAILED cut-in-text #1 (seed 1)\n  swallowed: " in shown.stdout


def test_programs_get_json(tmp_path: Path) -> None:
    code, out, _ = tortured(tmp_path, "--only", "crlf", "--format", "json", how=("by-read",))
    told = json.loads(out)
    assert (code, told["passes"]) == (1, False)
    assert [cell["verdict"] for cell in told["cells"]] == ["differs"]


def test_tapes_that_fail_as_they_are_are_reported_as_such(tmp_path: Path) -> None:
    code, out, _ = tortured(tmp_path, "--only", "crlf", how=("again",))
    assert code == 1
    assert out.startswith("FAILED with the unchanged tapes\n  request differs at $.number: ")


def test_an_oracle_and_a_word_about_errors_are_the_users(tmp_path: Path) -> None:
    code, out, _ = tortured(
        tmp_path, "--only", "crlf", "--oracle", "echo never; false", "--jobs", "1"
    )
    assert code == 1
    assert "rejected by the oracle: never" in out
    options = ("--only", "status-500", "--visible", "^[.]{3}$")
    code, _, _ = tortured(tmp_path, *options, how=("deaf",))
    assert code == 0


def test_it_lists_the_variations(tmp_path: Path) -> None:
    done = called("torture", "--list", folder=tmp_path)
    assert done.returncode == 0
    names = re.findall(rb"^  (\S+)  ", done.stdout, re.MULTILINE)
    assert [name.decode() for name in names] == [one.name for one in VARIATIONS]
    done = called("torture", "--list", "--only", "hostile", folder=tmp_path)
    assert not done.stdout.startswith(b"harmless")
    spared = {"DELTATAPE_TORTURE_LIST": "1", "DELTATAPE_TORTURE_EXCEPT": "hostile crlf"}
    done = called("torture", folder=tmp_path, env=spared)
    names = re.findall(rb"^  (\S+)  ", done.stdout, re.MULTILINE)
    left = [one.name for one in VARIATIONS if one.harmless and one.name != "crlf"]
    assert [name.decode() for name in names] == left


def test_what_a_client_cannot_take_is_left_out_by_the_settings(tmp_path: Path) -> None:
    (tmp_path / "deltatape.yaml").write_text("torture:\n  except: [early-hints, crlf]\n")
    done = called("torture", "--list", "--only", "harmless", folder=tmp_path)
    assert b"  early-hints " not in done.stdout
    assert b"  crlf " not in done.stdout
    assert b"  every-byte " in done.stdout
    done = called("torture", "--list", "--only", "crlf", folder=tmp_path)
    assert done.returncode == 2
    assert b"--except early-hints, crlf: excludes every selected variation" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("x.tape",), "a tape and a command are required: torture TAPE... -- CMD"),
        (("--", "true"), "a tape and a command are required: torture TAPE... -- CMD"),
        (
            ("x.tape", "--only", "crfl", "--", "true"),
            "--only 'crfl': unknown variation; use harmless, ",
        ),
        (("x.tape", "--except", "crfl", "--", "true"), "--except 'crfl': unknown variation; "),
        (("x.tape#1", "--junit", "none/j.xml", "--", "true"), "--junit: none is no folder"),
        (("x.tape#1", "--junit", "x.tape", "--", "true"), "is there already, and no report"),
        (("x.tape#1", "--keep", "x.tape/in", "--", "true"), "--keep: x.tape is no folder"),
        (("x.tape", "--ignore", "(", "--", "true"), "--ignore '(': invalid regular expression: "),
        (
            ("x.tape", "--ignore", "a{99999999999}", "--", "true"),
            "--ignore 'a{99999999999}': invalid regular expression: the repetition number",
        ),
        (
            ("x.tape", "--exchange", "7", "--", "true"),
            "--exchange '7': no exchange matches; the tapes have ",
        ),
        (("x.tape", "x.tape", "--exchange", "1", "--", "true"), "'1': more than one exchange"),
        (("absent.tape", "--", "true"), "absent.tape"),
        (("x.tape", "--listen", "0.0.0.0:1", "--", "true"), "use a loopback address"),
        (("x.tape", "--listen", "unix:x", "--", "true"), "no base URL can name a Unix socket"),
        (("x.tape", "--hosts", "x", "--", "true"), "--hosts: has no effect without --via mitm"),
        (("x.tape", "--via", "mitm", "--hosts", "a/b", "--", "true"), "invalid host pattern"),
        (
            ("x.tape", "--via", "mitm", "--jobs", "2", "--", "true"),
            "--jobs 2: with --via mitm, runs come one after the other",
        ),
        (
            ("x.tape", "--listen", "127.0.0.1:1", "--jobs", "2", "--", "true"),
            "--jobs 2: with --listen, runs come one after the other",
        ),
    ],
)
def test_wrong_usage_is_reported(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    tape(tmp_path)
    done = called("torture", *arguments, folder=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr.decode()


def test_a_command_without_a_base_url_finds_the_player_at_a_fixed_address(tmp_path: Path) -> None:
    port = free_port()
    program = app(tmp_path, "once", "deaf")
    fixed = ("env", f"OPENAI_BASE_URL=http://127.0.0.1:{port}/v1", *program)
    listen = ("--listen", f"127.0.0.1:{port}")
    names = ("crlf", "no-space", "every-byte", "cut-in-text")
    only = tuple(word for name in names for word in ("--only", name))
    done = called(
        *("torture", f"{tape(tmp_path)}#1", "--deadline", "9s", *listen, *only, "--seeds", "1"),
        *("--", *fixed),
        folder=tmp_path,
    )
    assert done.returncode == 1, done.stderr.decode()
    assert b"1 of 4 variations failed" in done.stdout
    (again,) = re.findall(r"^  deltatape (torture .*)$", done.stdout.decode(), re.MULTILINE)
    assert f" --listen 127.0.0.1:{port} " in again


def test_without_mitmproxy_it_is_told_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    env = {"PATH": str(tmp_path)}
    arguments = ("torture", tape(tmp_path), "--via", "mitm", "--", "true")
    done = called(*arguments, folder=tmp_path, env=env)
    assert done.returncode == 2
    assert b"\ndeltatape: mitmproxy is not installed: pip install" in done.stderr


def test_a_port_that_is_taken_is_reported_before_anything_runs(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        done = called("torture", tape(tmp_path), "--listen", listen, "--", "true", folder=tmp_path)
    assert done.returncode == 2
    assert f"cannot listen on {listen}" in done.stderr.decode()


def test_a_command_that_cannot_be_run_has_the_exit_code_of_env(tmp_path: Path) -> None:
    done = called("torture", tape(tmp_path), "--", "absent-program", folder=tmp_path)
    assert done.returncode == 127
    assert b"absent-program" in done.stderr


def test_an_app_side_tape_has_nothing_to_play(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parent.parent.parent
    tape = root / "recordings" / "incidents" / "3-app-events" / "fixed.tape"
    done = called("torture", f"{tape}#1", "--", "true", folder=tmp_path)
    assert done.returncode == 2
    assert b"no provider response to play" in done.stderr


def test_on_a_terminal_a_bar_shows_how_far_it_is(tmp_path: Path) -> None:
    done = on_terminal(
        *(
            "torture",
            f"{tape(tmp_path)}#1",
            "--only",
            "crlf",
            "--only",
            "cut-in-text",
            "--seeds",
            "1",
        ),
        *("--deadline", "9s", "--", *app(tmp_path, "once", "deaf")),
        folder=tmp_path,
    )
    shown = done.stdout.decode()
    assert done.returncode == 1
    assert "variations" in shown
    assert "\x1b[1;31mFAIL" in shown


def test_a_run_without_trials_does_not_pass(tmp_path: Path) -> None:
    junit = tmp_path / "torture.xml"
    code, out, _ = tortured(tmp_path, "--only", "cut-in-arguments", "--junit", str(junit))
    assert code == 1
    assert out.startswith("no variation was run: none of the selected variations applies to #1\n")
    assert "no variation was run" in junit.read_text()


def test_an_oracle_that_is_not_there_is_not_a_failure_of_the_commands(tmp_path: Path) -> None:
    code, out, err = tortured(tmp_path, "--only", "crlf", "--oracle", "absent")
    assert (code, out) == (2, "")
    assert "--oracle 'absent' cannot be run: " in err
