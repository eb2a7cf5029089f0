"""A small application that fails on some answers, for tests of commands that run applications."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from deltatape.model.exchange import Exchange
from deltatape.trials.shrink_trials import TrialSetup
from deltatape.trials.torture_judge import Oracle
from helpers.chat import choice, sse
from helpers.taped import taped

MARK = "~~"

_APP = """
import json, os, socket, sys, time
from urllib.parse import urlsplit

def ask(value):
    url = urlsplit(os.environ["OPENAI_BASE_URL"])
    body = json.dumps(value).encode()
    head = f"POST {url.path}/chat/completions HTTP/1.1\\r\\n"
    head += "Host: localhost\\r\\nConnection: close\\r\\n"
    with socket.create_connection((url.hostname, url.port)) as sock:
        sock.sendall(head.encode() + b"Content-Length: %d\\r\\n\\r\\n" % len(body) + body)
        got = b""
        while piece := sock.recv(65536):
            got += piece
    return got.partition(b"\\r\\n\\r\\n")[2]

how = sys.argv[1]
if how == "silent":
    sys.exit("no question")
if how == "other":
    ask({"other": 1})
    sys.exit(1)
reply = ask({"number": 1})
if how == "twice":
    reply = ask({"number": 2, "said": reply.count(b"data:")})
if how == "key":
    reply = ask({"number": 2, "said": reply.count(b"data:"), "key": os.environ["OPENAI_API_KEY"]})
    raise KeyError(os.environ["OPENAI_API_KEY"])
if how == "missing" and b"not_on_tape" not in ask({"number": 9}):
    sys.exit(0)
if how == "dated":
    whole = reply.count(b"data:") == 3
    reply = ask({"number": 2, "date": 3 if whole else time.time_ns()})
if how == "flaky":
    with open("count", "a") as file:
        file.write("x")
    if len(open("count").read()) % 2:
        sys.exit(0)
if how == "seldom":
    with open("count", "a") as file:
        file.write("x")
    if len(open("count").read()) == 4:
        sys.exit(0)
if how == "fickle":
    with open("count", "a") as file:
        file.write("x")
    if len(open("count").read()) > 1:
        raise TypeError("now this")
if how == "code":
    print("no luck")
    sys.exit(127)
if b"~~" in reply:
    if how == "hang":
        open("hanging", "w").close()
        time.sleep(60)
    if how == "says":
        print("wrong: 17")
        sys.exit(0)
    raise KeyError(len(reply))
print("fine")
"""


def app(folder: Path, how: str) -> list[str]:
    """The command that runs it in `folder`.

    `once` fails with a KeyError if the answer has a mark, `twice` asks again with what depends on
    the first answer, `dated` with what is never the same
    unless the first answer has three events, `missing` with what must not be on the
    tape for it to fail, `key` with its key in the body and in its error;
    `code` ends with 127 each time; `says`, `hang`, `flaky`, `seldom`, `fickle`,
    `silent` and `other` are as they are called.
    """
    path = folder / "app.py"
    if not path.exists():
        path.write_text(_APP)
    return [sys.executable, "-S", "-E", "app.py", how]


def words(*marked: int, of: int, number: int = 1, ms: int = 1, **asked: object) -> Exchange:
    """An answer of `of` words, some of them marked, a word every few milliseconds."""
    frames = [
        sse(choice({"content": f"word{at}{MARK if at in marked else ''} "}), done=False)
        for at in range(of)
    ]
    return taped(
        [(ms * (at + 1), frame) for at, frame in enumerate(frames)],
        number=number,
        body={"number": number, **asked},
    )


def setting(
    folder: Path,
    how: str,
    *,
    deadline_s: float = 120.0,
    error: str | None = None,
    oracle: str | None = None,
    volatile: Sequence[str] = (),
) -> TrialSetup:
    """How the application is run in `folder`."""
    judge = None
    if oracle is not None:
        judge = Oracle(command=oracle, environ=os.environ, folder=folder, limit_s=deadline_s)
    return TrialSetup(
        command=app(folder, how),
        environ=os.environ,
        folder=folder,
        deadline_s=deadline_s,
        volatile=tuple(volatile),
        error=error,
        oracle=judge,
    )
