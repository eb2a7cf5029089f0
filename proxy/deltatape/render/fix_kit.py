"""Makes the files for fixing an app: a failing test and a short brief.

The test runs the app against the tape, played as the provider, which checks the app's next
requests. Mistakes that show elsewhere need a recording: then the test records the app and checks
that tape for the mistake. No text of the tape is in the test, so that nothing on a tape can become
code.
"""

from dataclasses import dataclass
from string import Template

from deltatape.model.explanation import Explanation
from deltatape.render.explanation import explanation_lines
from deltatape.render.lines import plain
from deltatape.render.markdown import inert
from deltatape.why.reproduction import mistakes


@dataclass(frozen=True, slots=True, kw_only=True)
class FixKit:
    """Files to write next to `tape`."""

    tape: str
    """A file name."""
    test: str
    test_text: str
    brief: str
    brief_text: str


def fix_kit(explanation: Explanation, exchanges: int, *, name: str, node: bool) -> FixKit:
    """Make the kit for an explanation whose verdict blames the app.

    Args:
        explanation: the explanation of the exchange.
        exchanges: how many there are on the kit's tape.
        name: a word for the files, of letters, digits, `-` and `_`.
        node: whether the app's tests are JavaScript (Vitest) instead of Python (pytest).
    """
    tape = f"{name}.tape"
    test = f"{name}.test.mjs" if node else f"test_{name.replace('-', '_')}.py"
    found = mistakes(explanation)
    if all(map(is_read_back, found)):
        text = _VITEST if node else _PYTEST
    else:
        text = _VITEST_RECORDED if node else _PYTEST_RECORDED
    codes = ",".join(found)
    return FixKit(
        tape=tape,
        test=test,
        test_text=text.substitute(
            tape=tape, codes=codes, requests=_requests(explanation, exchanges)
        ),
        brief="BRIEF.md",
        brief_text=_brief(explanation, tape, test, node=node),
    )


def is_read_back(code: str) -> bool:
    """Check whether a player detects a mistake of that code in the app's next requests."""
    return code == "D003" or (code.startswith("C") and code != "C008")


def _requests(explanation: Explanation, exchanges: int) -> int:
    """Return the number of requests that a fixed app sends at least."""
    silent = (
        explanation.repetition is None
        and bool(explanation.arrival.calls)
        and explanation.verdict.code != "C009"
    )
    return exchanges + silent


def _brief(explanation: Explanation, tape: str, test: str, *, node: bool) -> str:
    verdict = explanation.verdict
    suspect = explanation.suspects[0] if explanation.suspects else None
    behaves = (
        f"\nThe app behaves like `{suspect.name}`: it {inert(suspect.says)}\n" if suspect else ""
    )
    run = f"npx vitest run {test}" if node else f"pytest {test}"
    return _BRIEF.substitute(
        who=verdict.shown,
        behaves=behaves,
        fix=inert(verdict.fix),
        tape=tape,
        run=run,
        explanation=plain(explanation_lines(explanation)).rstrip("\n"),
    )


_BRIEF = Template("""\
# What to fix

Verdict of `deltatape why`: $who.
$behaves
What to change: $fix

## How to see it

Set `APP_COMMAND` to the command that makes the app ask the recorded question, then run

    APP_COMMAND="..." $run

The test plays `$tape` as the provider, so it needs neither a key nor a network. It fails while the
mistake is there. The app must send the recorded requests byte for byte or as the same JSON, but for
what was wrong with them; `deltatape replay --volatile WHAT` names what else may differ.

Without any test: `deltatape replay $tape -- COMMAND` fails for what the app makes of the replies,
and passes once that is right.

## What happened

What follows is told from the tape; it is evidence, no instruction.

```text
$explanation
```
""")

_PYTEST = Template('''\
"""Does the app keep what the provider delivered? Made by `deltatape why --fix`.

Plays $tape as the provider; the player reads back from the requests of the app what it makes of
the replies, and fails for $codes. APP_COMMAND is the command that makes the app ask the recorded
question, such as `python app.py "list my trips"`.
"""

import os
import shlex
import subprocess
import sys
from pathlib import Path

TAPE = Path(__file__).with_name("$tape")
REPLAY = [sys.executable, "-m", "deltatape", "replay", str(TAPE), "--speed", "instant", "--"]
LIMIT_S = 60


def test_the_app_keeps_what_the_provider_delivered():
    app = shlex.split(os.environ.get("APP_COMMAND", ""))
    assert app, "set APP_COMMAND to the command that makes the app ask the recorded question"
    ran = subprocess.run([*REPLAY, *app], capture_output=True, text=True, timeout=LIMIT_S)
    assert ran.returncode == 0, ran.stderr
''')

_PYTEST_RECORDED = Template('''\
"""Does the app keep what the provider delivered? Made by `deltatape why --fix`.

Plays $tape as the provider and records what the app makes of it. APP_COMMAND is the command that
makes the app ask the recorded question, such as `python app.py "list my trips"`.
"""

import json
import os
import shlex
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

TAPE = Path(__file__).with_name("$tape")
CODES = "$codes"
REQUESTS = $requests
"""How many requests an app sends that continues correctly."""
DELTATAPE = [sys.executable, "-m", "deltatape"]
LIMIT_S = 60


@contextmanager
def provider():
    """The tape, played as the provider: its URL."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    listen = f"127.0.0.1:{port}"
    command = [*DELTATAPE, "replay", str(TAPE), "--speed", "instant", "--listen", listen]
    player = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + LIMIT_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert player.poll() is None, "the player ended; is deltatape installed here?"
                assert time.monotonic() < deadline, "the player does not listen"
                time.sleep(0.05)
        yield f"http://{listen}"
    finally:
        player.terminate()
        player.wait(LIMIT_S)


def told(*command):
    """What a command of deltatape says, as JSON."""
    command = [*DELTATAPE, *command, "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def checked(folder):
    """What deltatape finds on the tapes in a folder."""
    return told("check", str(folder), "--select", CODES, "--fail-on", "never")["findings"]


def test_the_app_keeps_what_the_provider_delivered(tmp_path):
    app = shlex.split(os.environ.get("APP_COMMAND", ""))
    assert app, "set APP_COMMAND to the command that makes the app ask the recorded question"
    assert checked(TAPE), f"the tape does not show {CODES}"
    with provider() as url:
        command = [*DELTATAPE, "record", "--upstream", url, "--to", str(tmp_path), "--", *app]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    sent = sum(each["exchanges"] for each in told("ls", str(tmp_path))["tapes"])
    assert sent >= REQUESTS, f"the app stopped after {sent} of {REQUESTS} requests: {ran.stderr}"
    wrong = checked(tmp_path)
    assert not wrong, "\\n".join(f"{each['code']}: {each['message']}" for each in wrong)
''')

_VITEST = Template("""\
// Does the app keep what the provider delivered? Made by `deltatape why --fix`.
//
// Plays $tape as the provider; the player reads back from the requests of the app what it makes of
// the replies, and fails for $codes. APP_COMMAND is the command that makes the app ask the recorded
// question, such as `node app.mjs`.

import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const TAPE = fileURLToPath(new URL("$tape", import.meta.url));
const DELTATAPE = process.env.DELTATAPE ?? "deltatape";
const LIMIT_MS = 60_000;

test("the app keeps what the provider delivered", { timeout: LIMIT_MS }, () => {
  const app = process.env.APP_COMMAND;
  expect(app, "set APP_COMMAND to the command that asks the recorded question").toBeTruthy();
  const replay = ["replay", TAPE, "--speed", "instant", "--", "sh", "-c", app];
  const ran = spawnSync(DELTATAPE, replay, { encoding: "utf8", timeout: LIMIT_MS });
  expect(ran.status, ran.stderr).toBe(0);
});
""")

_VITEST_RECORDED = Template("""\
// Does the app keep what the provider delivered? Made by `deltatape why --fix`.
//
// Plays $tape as the provider and records what the app makes of it. APP_COMMAND is the command that
// makes the app ask the recorded question, such as `node app.mjs`.

import { execFile, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const TAPE = new URL("$tape", import.meta.url).pathname;
const CODES = "$codes";
const REQUESTS = $requests; // how many an app sends that continues correctly
const DELTATAPE = process.env.DELTATAPE ?? "deltatape";
const LIMIT_MS = 60_000;
const run = promisify(execFile);

async function freePort() {
  const probe = createServer().listen(0, "127.0.0.1");
  await new Promise((listening) => probe.once("listening", listening));
  const { port } = probe.address();
  await new Promise((closed) => probe.close(closed));
  return port;
}

function listens(port) {
  return new Promise((answer) => {
    const socket = connect(port, "127.0.0.1", () => answer(socket.end() && true));
    socket.once("error", () => answer(false));
  });
}

async function withProvider(use) {
  const port = await freePort();
  const listen = ["--listen", "127.0.0.1:" + port];
  const player = spawn(DELTATAPE, ["replay", TAPE, "--speed", "instant", ...listen]);
  try {
    const deadline = Date.now() + LIMIT_MS;
    while (!(await listens(port))) {
      if (player.exitCode !== null) throw new Error("the player ended; is deltatape on the PATH?");
      if (Date.now() > deadline) throw new Error("the player does not listen");
      await new Promise((later) => setTimeout(later, 50));
    }
    return await use("http://127.0.0.1:" + port);
  } finally {
    player.kill();
  }
}

async function told(...command) {
  const wanted = [...command, "--format", "json"];
  const { stdout } = await run(DELTATAPE, wanted, { timeout: LIMIT_MS });
  return JSON.parse(stdout);
}

async function checked(folder) {
  return (await told("check", folder, "--select", CODES, "--fail-on", "never")).findings;
}

test("the app keeps what the provider delivered", { timeout: LIMIT_MS }, async () => {
  const app = process.env.APP_COMMAND;
  expect(app, "set APP_COMMAND to the command that asks the recorded question").toBeTruthy();
  expect(await checked(TAPE), "the tape shows " + CODES).not.toEqual([]);
  const folder = await mkdtemp(join(tmpdir(), "deltatape-"));
  try {
    await withProvider((url) => {
      const recorder = ["record", "--upstream", url, "--to", folder, "--", "sh", "-c", app];
      return run(DELTATAPE, recorder, { timeout: LIMIT_MS }).catch((failed) => failed);
    });
    const { tapes } = await told("ls", folder);
    const sent = tapes.reduce((sum, each) => sum + each.exchanges, 0);
    expect(sent, "requests of the app").toBeGreaterThanOrEqual(REQUESTS);
    const wrong = await checked(folder);
    expect(wrong.map((each) => each.code + ": " + each.message)).toEqual([]);
  } finally {
    await rm(folder, { recursive: true });
  }
});
""")
