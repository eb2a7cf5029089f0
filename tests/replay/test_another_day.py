"""A recorded agent, replayed a week later, in another folder, by another user."""

import asyncio
import json
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from deltatape.store.reader import open_tape
from helpers.program import deltatape
from helpers.upstream import SSE_HEAD, Peer, chunk, provider, run

AGENT = '''
"""An agent whose prompt and tool tell of the day, the folder, the user and the process."""

import datetime, json, os, sys, urllib.request, uuid

now = datetime.datetime.fromisoformat(os.environ["AGENT_NOW"])
session = uuid.uuid4()
home, folder, pid = os.environ["HOME"], os.getcwd(), os.getpid()


def status():
    return (
        f"PID: {pid}, started {now:%Y-%m-%dT%H:%M:%SZ} in {folder}\\n"
        f"log: {home}/.agent/logs/{session}.log\\n"
        f"-rw-r--r-- 1 user user 12 {now:%b %d %H:%M} notes.txt\\n"
        f"commit {session.hex[:7]}a1, listening on http://127.0.0.1:{20000 + pid % 10000}/"
    )


def ask(messages):
    body = {
        "model": "gpt-4o-2024-08-06",
        "stream": True,
        "prompt_cache_key": str(session),
        "messages": messages,
    }
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as response:
        lines = [line[6:] for line in response if line.startswith(b"data: {")]
    return [json.loads(line)["choices"][0]["delta"] for line in lines]


messages = [
    {
        "role": "system",
        "content": f"You are an agent.\\n<cwd>{folder}</cwd>\\nHome: {home}\\n"
        f"Today is {now:%A, %B %d, %Y}. Session {session}, pid {pid}.",
    },
    {"role": "user", "content": " ".join(sys.argv[1:])},
]
(delta,) = ask(messages)
call = delta["tool_calls"][0]
messages.append({"role": "assistant", "content": None, "tool_calls": [
    {"id": call["id"], "type": "function", "function": call["function"]}]})
messages.append({"role": "tool", "tool_call_id": call["id"], "content": status()})
(delta,) = ask(messages)
print(delta["content"])
'''

CALL = {"index": 0, "id": "call_Ab1", "type": "function", "function": {"name": "status"}}
CALL["function"] = {"name": "status", "arguments": "{}"}


def answer(delta: dict[str, object], finish: str) -> bytes:
    choice = {"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": finish}
    value = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return f"data: {json.dumps({**value, 'choices': [choice]})}\n\ndata: [DONE]\n\n".encode()


ANSWERS = (answer({"tool_calls": [CALL]}, "tool_calls"), answer({"content": "It runs."}, "stop"))


async def serve(peer: Peer) -> None:
    """Answer the first request of a conversation with a call, the second with a text."""
    _, body = await peer.request()
    is_first = len(json.loads(body)["messages"]) == 2
    await peer.send(SSE_HEAD)
    await peer.send(chunk(ANSWERS[0 if is_first else 1]) + b"0\r\n\r\n")


@dataclass
class Place:
    """Where, when and by whom the agent is run."""

    folder: Path
    home: Path
    now: str

    def run(self, *arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.home.mkdir(parents=True, exist_ok=True)
        agent = self.folder / "agent.py"
        agent.write_text(AGENT)
        env = {"AGENT_NOW": self.now, "HOME": str(self.home), "OPENAI_API_KEY": "fake"}
        command = (*arguments, "--", sys.executable, str(agent), "How is it?")
        return deltatape(*command, folder=self.folder, env=env)

    def replay(self, tape: Path, *options: str) -> subprocess.CompletedProcess[bytes]:
        return self.run("replay", "--speed", "instant", *options, tape)

    async def record(self) -> Path:
        """Record the agent; return the tape."""
        async with provider(serve) as port:
            upstream = f"openai=http://127.0.0.1:{port}"
            command = ("record", "--no-log", "--to", "tapes", "--upstream", upstream)
            done = await asyncio.to_thread(self.run, *command)
        assert done.returncode == 0, done.stderr
        (tape,) = (self.folder / "tapes").glob("*.tape")
        return tape


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> tuple[Place, Place, Place]:
    top = tmp_path_factory.mktemp("days")
    return (
        Place(top / "work" / "app", top / "home" / "ann", "2026-11-26T09:17:41"),
        Place(top / "ci", top / "users" / "bob", "2026-12-03T21:05:09"),
        Place(top / "deep" / "er" / "still", top / "h", "2027-01-09T00:00:59"),
    )


@pytest.fixture(scope="module")
def tapes(places: tuple[Place, Place, Place]) -> tuple[Path, Path]:
    first, second = (run(place.record()) for place in places[:2])
    return first, second


def test_presets_are_enough(places: tuple[Place, ...], tapes: tuple[Path, Path]) -> None:
    presets = ("date", "path", "uuid", "pid", "hash", "port")
    options = [word for preset in presets for word in ("--volatile", preset)]
    for place in places:
        done = place.replay(tapes[0], *options)
        assert (done.returncode, done.stdout) == (0, b"It runs.\n"), done.stderr
        assert b"2 played, 0 missed, 0 unplayed" in done.stderr


def test_misses_give_the_options_with_which_it_matches(
    places: tuple[Place, ...], tapes: tuple[Path, Path]
) -> None:
    later, options = places[2], list[str]()
    for _ in range(2):  # the second request comes once the first is answered
        done = later.replay(tapes[0], *options)
        assert done.returncode != 0
        (line,) = (one for one in done.stderr.decode().splitlines() if "to accept that: " in one)
        options += shlex.split(line.partition("to accept that: ")[2])
    done = later.replay(tapes[0], *options)
    assert (done.returncode, done.stdout) == (0, b"It runs.\n"), done.stderr


def test_what_two_recordings_tell_is_stored_and_used(
    places: tuple[Place, ...], tapes: tuple[Path, Path], tmp_path: Path
) -> None:
    tape = tmp_path / "x.tape"
    tape.write_bytes(tapes[0].read_bytes())
    learning = deltatape("learn", tape, tapes[1], folder=tmp_path)
    assert learning.returncode == 0, learning.stderr
    learned = learning.stdout.decode().split()
    assert set(learned) <= {"date", "path", "uuid", "pid", "hash", "port", "home"}
    assert f"stored with {tape}: ".encode() in learning.stderr
    assert open_tape(tape).volatile == tuple(learned)
    for place in places:
        done = place.replay(tape)
        assert (done.returncode, done.stdout) == (0, b"It runs.\n"), done.stderr
        stored = f"volatile, as stored with {tape}: {', '.join(learned)}\n"
        assert stored.encode() in done.stderr
