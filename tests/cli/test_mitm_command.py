"""`deltatape mitm` as its user meets it."""

import asyncio
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from deltatape.cli.mitm_command import command
from deltatape.errors import UsageError
from deltatape.mitm.mitmdump import ADDON
from helpers.corporate_network import EVENTS, stream
from helpers.mitm import NEWEST, authority, confdir, installed, variables
from helpers.upstream import connect, post, provider, run

PROGRAM = """
import sys
from deltatape.cli.mitm_command import command
sys.exit(command.main(sys.argv[1:], standalone_mode=False))
"""


def refused(*arguments: str) -> str:
    with pytest.raises(UsageError) as told:
        command.main(list(arguments), standalone_mode=False)
    return str(told.value)


def test_the_addon_s_path_is_all_that_is_printed() -> None:
    found = CliRunner().invoke(command, ["--addon-path"], standalone_mode=False)
    assert found.stdout == f"{ADDON}\n"
    assert found.return_value == 0
    assert ADDON.is_file()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--hosts", "https://x.com"), "invalid host pattern"),
        (("--listen", "8377"), "invalid address"),
        (("--listen", "unix:/tmp/x"), "mitmproxy listens on HOST:PORT only"),
        (("--listen", "0.0.0.0:8377"), "--proxyauth USER:PASSWORD"),
        (("--upstream", "https://api.openai.com/v1"), "a plain origin is accepted"),
        (("--upstream", "x=https://api.openai.com"), "a plain origin is accepted"),
        (("--upstream", "ftp://api.openai.com"), "invalid upstream"),
        (("--ca", __file__), "no certificates"),
        (("--client-key", __file__), "a key without its certificate"),
    ],
)
def test_what_cannot_be_is_reported_before_anything_starts(
    arguments: tuple[str, ...], told: str
) -> None:
    assert told in refused(*arguments)


def test_without_mitmproxy_it_is_told_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert "pip install 'deltatape[mitm]'" in refused("--to", str(tmp_path / "tapes"))
    assert not (tmp_path / "tapes").exists()


@pytest.mark.parametrize("version", NEWEST)
def test_it_runs_until_ctrl_c_and_writes_the_bundle_that_it_names(
    tmp_path: Path, version: str
) -> None:
    code, said = _run(tmp_path, version, signals=(signal.SIGINT,))
    assert code == 0
    assert "is recording by mitmproxy" in said
    assert "0 exchanges taped" in said
    assert len(list((tmp_path / "tapes").glob("*.tape"))) == 1
    (bundle,) = re.findall(r" SSL_CERT_FILE=(\S+)", said)
    ca = (tmp_path / "conf" / "mitmproxy-ca-cert.pem").read_text().strip()
    assert ca in Path(bundle).read_text()


@pytest.mark.parametrize("version", NEWEST)
def test_one_upstream_is_believed_that_ca_vouches_for(tmp_path: Path, version: str) -> None:
    upstream = authority(tmp_path)
    env = variables(tmp_path, installed(version))

    async def scenario() -> tuple[bytes, str]:
        async with provider(stream, tls=upstream.context) as port:
            given = ["--listen", "127.0.0.1:0", "--to", "tapes", "--ca", str(upstream.path)]
            given += ["--upstream", f"https://localhost:{port}", "--", *confdir(tmp_path)]
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", PROGRAM, *given),
                env=env,
                cwd=tmp_path,
                stderr=asyncio.subprocess.PIPE,
            )
            assert process.stderr is not None
            said = await process.stderr.readuntil(b"  set ")
            peer = await connect(int(said.split(b" forwards to ")[0].rpartition(b":")[2]))
            await peer.send(post())
            answer = await peer.until(b"0\r\n\r\n")
            process.send_signal(signal.SIGINT)
            rest = (await process.communicate())[1]
            return answer, (said + rest).decode()

    answer, said = run(scenario(), limit_s=90)
    assert b" 200 OK" in answer
    assert EVENTS[0] in answer
    assert "1 exchange taped" in said


def test_others_may_use_it_who_can_log_in(tmp_path: Path) -> None:
    arguments = ("--listen", "0.0.0.0:0")
    login = ("--proxyauth", "user:fake")
    code, said = _run(tmp_path, "11", *arguments, more=login, signals=(signal.SIGINT,))
    assert code == 0
    assert "HTTPS_PROXY=http://0.0.0.0:" in said


def _run(
    folder: Path,
    version: str,
    *arguments: str,
    more: tuple[str, ...] = (),
    signals: tuple[signal.Signals, ...],
) -> tuple[int, str]:
    """`deltatape mitm ARGUMENTS -- MORE` until a signal; its exit code and what it said."""
    given = ["--listen", "127.0.0.1:0", "--to", str(folder / "tapes"), *arguments]
    given += ["--", *confdir(folder), *more]
    env = variables(folder, installed(version))
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *given],
        env=env,
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        said = ""
        while signals and "SSL_CERT_FILE=" not in said and (line := process.stderr.readline()):
            said += line
        for number in signals:
            process.send_signal(number)
        rest = process.communicate(timeout=300)[1]
    return process.returncode, said + rest
