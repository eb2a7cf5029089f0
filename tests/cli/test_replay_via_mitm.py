"""`deltatape replay --via mitm`: apps whose URL is in their code, with a real mitmproxy."""

import json
import os
import re
import sys
from pathlib import Path

import pytest

from deltatape.store.reader import open_tape
from helpers.console import called
from helpers.mitm import NEWEST, authority, installed, ran, variables, write_ca
from helpers.program import deltatape
from helpers.pytest_projects import write_tape
from helpers.taped import taped
from helpers.upstream import SSE_HEAD, Peer, chunk, provider, run

APP = """
import json, os, sys, urllib.error, urllib.request

def ask(url, text):
    headers = {"Content-Type": "application/json", "X-Key": os.environ.get("OPENAI_API_KEY", "")}
    body = json.dumps({"model": "m", "text": text}).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())["error"]["code"]

for text, url in zip(sys.argv[1::2], sys.argv[2::2]):
    print(json.dumps(ask(url, text)))
"""
CHAT = "https://api.openai.com/v1/chat/completions"
OWN = "https://llm.corp.invalid/v1/chat/completions"
OTHER = "https://llm.other.invalid/v1/chat/completions"
"""Hosts that do not exist, so that a request which left this machine would fail."""
ANSWER = b'data: {"x":1}\n\n'


@pytest.mark.parametrize("version", NEWEST)
def test_requests_to_providers_to_hosts_of_the_tape_and_to_named_ones_are_played_and_never_leave(
    tmp_path: Path, version: str
) -> None:
    body = {"model": "m", "text": "on 2026-11-26"}
    write_tape(
        tmp_path / "x.tape",
        taped(((10, ANSWER[:5]), (20, ANSWER[5:])), body=body),
        taped(((10, ANSWER),), body=body, number=2, upstream="https://llm.corp.invalid"),
    )
    text = "on 2026-12-03"
    asked = (*(text, CHAT), *(text, OWN), *("not on the tape", CHAT), *("not on the tape", OTHER))
    done = deltatape(
        *("replay", "--via", "mitm", "--speed", "instant", "--volatile", "date"),
        *("--hosts", "*.other.invalid", "x.tape", "--", *app(tmp_path), *asked),
        folder=tmp_path,
        env=behind_mitmproxy(tmp_path, version),
    )
    played, missed = [200, ANSWER.decode()], [400, "not_on_tape"]
    got = [json.loads(line) for line in done.stdout.splitlines()]
    assert got == [played, played, missed, missed], done.stderr
    assert done.returncode == 1
    (redirected,) = re.findall(rb"redirect the hosts of LLM providers (.+), by mitm", done.stderr)
    assert {*redirected.split()} == {b"llm.corp.invalid", b"*.other.invalid"}
    assert b"2 played, 2 missed, 0 unplayed" in done.stderr
    assert not (tmp_path / ".deltatape").exists()


def app(folder: Path) -> tuple[str, str]:
    """The command that asks; its arguments are texts and URLs."""
    path = folder / "app.py"
    path.write_text(APP)
    return sys.executable, str(path)


def behind_mitmproxy(folder: Path, version: str) -> dict[str, str]:
    """Variables of a command that starts mitmproxy."""
    write_ca(folder / ".mitmproxy")
    env = {**variables(folder, installed(version)), "HOME": str(folder), "OPENAI_API_KEY": ""}
    return {**env, "PYTHONPATH": os.environ.get("PYTHONPATH", "")}


@pytest.mark.parametrize("version", NEWEST)
def test_what_is_not_on_the_tape_is_recorded_from_the_host_that_the_app_names(
    tmp_path: Path, version: str
) -> None:
    authorised = authority(tmp_path)
    env = behind_mitmproxy(tmp_path, version)
    env |= {"OPENAI_API_KEY": "sk-fake-000000", "SSL_CERT_FILE": str(authorised.path)}
    heads: list[bytes] = []

    async def stream(peer: Peer) -> None:
        while True:
            head, _ = await peer.request()
            heads.append(head)
            await peer.send(SSE_HEAD + chunk(ANSWER) + b"0\r\n\r\n")

    async def scenario() -> tuple[int, str, str]:
        async with provider(stream, tls=authorised.context) as port:
            url = f"https://localhost:{port}/v1/chat/completions"
            return await ran(
                *(sys.executable, "-m", "deltatape", "replay", "new.tape", "--mode", "auto"),
                *("--via", "mitm", "--hosts", "localhost", "--", *app(tmp_path), "hi", url),
                env=env,
                cwd=tmp_path,
            )

    code, out, err = run(scenario(), limit_s=90)
    assert (code, json.loads(out)) == (0, [200, ANSWER.decode()]), err
    (exchange,) = open_tape(tmp_path / "new.tape")
    assert exchange.request.upstream.startswith("https://localhost:")
    assert exchange.request.target_bytes == b"/v1/chat/completions"
    (head,) = heads
    assert b"x-deltatape" not in head.lower()
    # Played from now on: nobody answers there any more.
    code, out, err = run(scenario(), limit_s=90)
    assert (code, json.loads(out)) == (0, [200, ANSWER.decode()]), err
    assert len(heads) == 1


@pytest.mark.parametrize("version", NEWEST)
def test_variations_are_played_to_an_app_that_names_its_host(tmp_path: Path, version: str) -> None:
    tape = write_tape(tmp_path / "x.tape", taped(((10, ANSWER),), body={"model": "m", "text": "a"}))
    done = deltatape(
        *("torture", tape, "--via", "mitm", "--only", "every-byte", "--only", "status-500"),
        *("--format", "json", "--", *app(tmp_path), "a", CHAT),
        folder=tmp_path,
        env=behind_mitmproxy(tmp_path, version),
    )
    told = json.loads(done.stdout)
    assert told["problem"] == "", done.stderr
    verdicts = {cell["variation"]: cell["verdict"] for cell in told["cells"]}
    assert verdicts["every-byte"] == "same"
    assert verdicts["status-500"] not in ("same", "no-place")  # it has reached the app
    assert b"redirect the hosts of LLM providers, by mitmproxy" in done.stderr


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--via", "mitm"), b"a command"),
        (("--hosts", "x", "--", "true"), b"--hosts: has no effect without --via mitm"),
        (("--via", "mitm", "--no-tunnel", "--", "true"), b"--no-tunnel: has no effect with --via"),
        (
            ("--via", "mitm", "--mode", "auto", "--upstream", "http://127.0.0.1:1", "--", "true"),
            b"--upstream: has no effect with --via mitm: a request is led by the host that CMD",
        ),
        (("--via", "mitm", "--hosts", "a/b", "--", "true"), b"invalid host pattern"),
    ],
)
def test_options_that_do_nothing_are_refused(
    options: tuple[str, ...], problem: bytes, tmp_path: Path
) -> None:
    write_tape(tmp_path / "x.tape", taped())
    done = called("replay", "x.tape", *options, folder=tmp_path)
    assert done.returncode in (2, 125)
    assert problem in done.stderr
