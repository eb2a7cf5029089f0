"""`deltatape replay --via mitm`: apps whose URL is in their code, with a real mitmproxy."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from deltatape.store.reader import open_tape
from helpers.console import called
from helpers.mitm import NEWEST, authority, installed, ran, variables
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

for url in sys.argv[2:]:
    print(json.dumps(ask(url, sys.argv[1])))
"""
CHAT = "https://api.openai.com/v1/chat/completions"
OWN = "https://llm.corp.invalid/v1/chat/completions"
"""A host that does not exist, so that a request which left this machine would fail."""
ANSWER = b'data: {"x":1}\n\n'


def replayed(
    folder: Path, version: str, tape: Path, *words: str, options: tuple[str, ...] = ()
) -> tuple[subprocess.CompletedProcess[bytes], list[list[object]]]:
    """What an app got for a text at each URL, and how the replay ended."""
    app = folder / "app.py"
    app.write_text(APP)
    env = {**variables(folder, installed(version)), "HOME": str(folder), "OPENAI_API_KEY": ""}
    env["PYTHONPATH"] = os.environ.get("PYTHONPATH", "")
    command = (sys.executable, str(app), *words)
    options = ("--via", "mitm", "--speed", "instant", *options)
    done = deltatape("replay", *options, tape, "--", *command, folder=folder, env=env)
    return done, [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("version", NEWEST)
def test_requests_to_providers_and_to_the_hosts_of_the_tape_are_played(
    tmp_path: Path, version: str
) -> None:
    body = {"model": "m", "text": "on 2026-11-26"}
    tape = write_tape(
        tmp_path / "x.tape",
        taped(((10, ANSWER[:5]), (20, ANSWER[5:])), body=body),
        taped(((10, ANSWER),), body=body, number=2, upstream="https://llm.corp.invalid"),
    )
    options = ("--volatile", "date")
    done, got = replayed(tmp_path, version, tape, "on 2026-12-03", CHAT, OWN, options=options)
    assert got == [[200, ANSWER.decode()]] * 2, done.stderr
    assert done.returncode == 0
    assert b"redirect the hosts of LLM providers llm.corp.invalid, by mitmproxy" in done.stderr
    assert b"2 played, 0 missed, 0 unplayed" in done.stderr
    assert not (tmp_path / ".deltatape").exists()


@pytest.mark.parametrize("version", NEWEST)
def test_what_is_not_on_the_tape_misses_and_never_leaves(tmp_path: Path, version: str) -> None:
    tape = write_tape(tmp_path / "x.tape", taped(((10, ANSWER),), body={"model": "m", "text": "a"}))
    done, got = replayed(tmp_path, version, tape, "b", CHAT, OWN, options=("--hosts", "*.invalid"))
    assert got == [[400, "not_on_tape"]] * 2, done.stderr
    assert done.returncode == 1
    assert b"0 played, 2 missed, 1 unplayed" in done.stderr


@pytest.mark.parametrize("version", NEWEST)
def test_what_is_not_on_the_tape_is_recorded_from_the_host_that_the_app_names(
    tmp_path: Path, version: str
) -> None:
    authorised = authority(tmp_path)
    app = tmp_path / "app.py"
    app.write_text(APP)
    env = {**variables(tmp_path, installed(version)), "HOME": str(tmp_path)}
    env |= {"OPENAI_API_KEY": "sk-fake-000000", "SSL_CERT_FILE": str(authorised.path)}
    env["PYTHONPATH"] = os.environ.get("PYTHONPATH", "")
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
                *("--via", "mitm", "--hosts", "localhost", "--", sys.executable, app, "hi", url),
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
    app = tmp_path / "app.py"
    app.write_text(APP)
    env = {**variables(tmp_path, installed(version)), "HOME": str(tmp_path), "OPENAI_API_KEY": ""}
    env["PYTHONPATH"] = os.environ.get("PYTHONPATH", "")
    done = deltatape(
        *("torture", tape, "--via", "mitm", "--only", "every-byte", "--only", "status-500"),
        *("--format", "json", "--", sys.executable, str(app), "a", CHAT),
        folder=tmp_path,
        env=env,
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
