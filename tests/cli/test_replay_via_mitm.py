"""`deltatape replay --via mitm`: apps whose URL is in their code, with a real mitmproxy."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.mitm import NEWEST, installed, variables
from helpers.program import deltatape
from helpers.pytest_projects import write_tape
from helpers.taped import taped

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


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--via", "mitm"), b"a command"),
        (("--hosts", "x", "--", "true"), b"--hosts: has no effect without --via mitm"),
        (("--via", "mitm", "--no-tunnel", "--", "true"), b"--no-tunnel: has no effect with --via"),
        (("--via", "mitm", "--mode", "auto", "--", "true"), b"--via: has no effect with --mode"),
        (("--via", "mitm", "--hosts", "a/b", "--", "true"), b"invalid host pattern"),
    ],
)
def test_options_that_do_nothing_are_refused(
    options: tuple[str, ...], problem: bytes, tmp_path: Path
) -> None:
    write_tape(tmp_path / "x.tape", taped())
    done = deltatape("replay", "x.tape", *options, folder=tmp_path)
    assert done.returncode in (2, 125)
    assert problem in done.stderr
