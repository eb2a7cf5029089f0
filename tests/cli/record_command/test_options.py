"""`deltatape record`: what its options refuse, and the way through mitmproxy."""

from pathlib import Path

import pytest

from deltatape.store.reader import open_tape
from helpers.console import called
from helpers.mitm import NEWEST, installed, variables
from helpers.program import deltatape
from helpers.projects import put


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--no-log",), "--no-log: has no effect without a command after --"),
        (("--hosts", "x"), "--hosts: has no effect without a command after --"),
        (("--via", "mitm"), "--via mitm: needs a command after --"),
        (
            ("--via", "mitm", "--upstream", "http://127.0.0.1:1", "--", "true"),
            "--upstream: has no effect with --via mitm: mitmproxy sends a request where CMD does",
        ),
        (("--via", "mitm", "--hosts", "https://x/", "--", "true"), "invalid host pattern"),
        (
            ("--via", "mitm", "--listen", "0.0.0.0:1", "--", "true"),
            "other machines could use",
        ),
        (("--listen", "unix:x", "--", "true"), "no base URL can name a Unix socket"),
        (("--token", "a/b" * 9), "--token: at least 16 characters of printable ASCII"),
        (("--token", ""), "--token: at least 16 characters"),
        (("--token", "\u00e9" * 20), "--token: at least 16 characters"),
        (
            ("--app", "x=http://127.0.0.1:1"),
            "--app 'x=http://127.0.0.1:1': one URL is accepted, without a name",
        ),
        (
            ("--app", "foo"),
            "--app 'foo': invalid upstream; use http://HOST or https://HOST, such as",
        ),
        (("--app", ""), "--app '': invalid upstream"),
        (("--keep", "soon"), "--keep 'soon': invalid limit"),
        (("--control", "0.0.0.0:1", "--", "true"), "--control '0.0.0.0:1': only loopback"),
        (("--app-listen", "nowhere"), "--app-listen 'nowhere': invalid address"),
        (
            ("--workers", "2", "--", "true"),
            "--workers: what CMD prints and reaches is taped by one",
        ),
        (("--workers", "2", "--via", "mitm", "--", "true"), "--workers: has no effect with --via"),
        (("--workers", "2", "--listen", "unix:x"), "--workers: several processes cannot share a"),
        (("--workers", "0"), "--workers"),
        (("--ca", "none.pem", "--", "true"), "none.pem"),
        (("--client-key", "k.pem", "--", "true"), "a key without its certificate"),
    ],
)
def test_what_makes_no_sense_is_reported_and_leaves_no_tape(
    tmp_path: Path, arguments: tuple[str, ...], problem: str
) -> None:
    result = called("record", "--to", "tapes", *arguments, folder=tmp_path)
    assert result.returncode == 2
    assert problem in result.stderr.decode()
    assert not list(tmp_path.glob("tapes/*.tape"))


def test_an_agent_does_not_find_its_tape_among_the_files_of_its_folder(tmp_path: Path) -> None:
    work = tmp_path / "work"
    put(work, "claude", "#!/bin/sh\nls -A\n").chmod(0o755)
    env = {"XDG_STATE_HOME": str(tmp_path / "state"), "HOME": str(tmp_path)}
    result = deltatape("record", "--", "./claude", folder=work, env=env)
    assert (result.returncode, result.stdout) == (0, b"claude\n"), result.stderr.decode()
    (tape,) = (tmp_path / "state" / "deltatape" / "tapes").glob("work-*/*.tape")
    assert f"tape: {tape}" in result.stderr.decode()
    for command in (("ls",), ("show",)):
        listed = called(*command, folder=work, env=env)
        assert tape.name in listed.stdout.decode(), listed.stderr.decode()
    deltatape("record", "--", "sh", "-c", "true", folder=work, env=env)
    assert list(work.glob(".deltatape/*.tape"))
    deltatape("record", "--to", "mine", "--", "./claude", folder=work, env=env)
    assert list(work.glob("mine/*.tape"))


def test_upstreams_of_the_settings_file_count_and_options_win(tmp_path: Path) -> None:
    (tmp_path / "deltatape.yaml").write_text(
        "record: {listen: '127.0.0.1:0'}\n"
        "upstreams: {one: 'http://127.0.0.1:1', two: 'http://127.0.0.1:2'}\n"
    )
    given = ("record", "--upstream", "two=http://127.0.0.1:22", "--", "true")
    result = called(*given, folder=tmp_path)
    told = result.stderr.decode()
    assert result.returncode == 0, told
    assert "/one forwards to http://127.0.0.1:1\n" in told
    assert "/two forwards to http://127.0.0.1:22\n" in told
    assert called("record", "--upstream", "http://127.0.0.1:9", "--", "true", folder=tmp_path)


@pytest.mark.parametrize("version", NEWEST)
def test_a_command_is_led_through_a_mitmproxy_that_never_ran_here(
    tmp_path: Path, version: str
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    venv = installed(version)
    code = 'test -n "$HTTPS_PROXY" && test -f "$SSL_CERT_FILE" && echo led && exit 3'
    result = deltatape(
        *("record", "--via", "mitm", "--to", "tapes", "--fail-on", "error"),
        *("--", "sh", "-c", code),
        folder=tmp_path,
        env={**variables(tmp_path, venv), "HOME": str(home)},
    )
    assert result.returncode == 3, result.stderr.decode()
    assert result.stdout == b"led\n"
    (path,) = (tmp_path / "tapes").glob("*.tape")
    tape = open_tape(path)
    assert [entry.line for entry in tape.logs] == [b"led"]
    assert (tape.watch.stop, tape.watch.exit_code) == ("child-exit", 3)
