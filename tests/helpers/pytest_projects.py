"""Projects whose tests have tapes, run by pytest inside of this one."""

from pathlib import Path

import pytest

from deltatape.model.exchange import Exchange
from deltatape.tape.payload import Stop
from deltatape.tape.serialize import tape_lines
from helpers.chat import choice, sse
from helpers.taped import taped
from helpers.tapes import HEADER

APP = """
import contextlib, http.client, json, os
from urllib.parse import urlsplit

class StreamError(Exception):
    pass

def ask(*says, base=None):
    messages = [{"role": "user", "content": text} for text in says]
    body = json.dumps({"model": "m", "stream": True, "messages": messages})
    url = urlsplit(base or os.environ["OPENAI_BASE_URL"])
    head = {"Content-Type": "application/json", "Authorization": "Bearer sk-fake-000000"}
    text, done = "", False
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=5)
    with contextlib.closing(connection):
        connection.request("POST", url.path + "/chat/completions", body, head)
        with connection.getresponse() as answer:
            if answer.status != 200:
                raise StreamError(f"status {answer.status}")
            for line in answer:
                data = line.decode().strip().removeprefix("data:").strip()
                if data == "[DONE]":
                    done = True
                elif data.startswith("{"):
                    chunk = json.loads(data)
                    if "error" in chunk:
                        raise StreamError(chunk["error"])
                    for each in chunk["choices"]:
                        text += each["delta"].get("content") or ""
    if not done:
        raise StreamError("the stream ended without [DONE]")
    return text
"""
"""An application that reports every error."""

TESTS = "test_app.py"
QUIET = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest")
OWN = "recordings/test_app/test_it.tape"


def request(*says: str, **more: object) -> dict[str, object]:
    """What `ask` of the application sends."""
    messages = [{"role": "user", "content": text} for text in says]
    return {"model": "m", "stream": True, "messages": messages, **more}


def hello(*says: str, number: int = 1, text: str = "Hello there", **more: object) -> Exchange:
    """A question and a healthy answer to it."""
    first, second = (sse(choice({"content": part}), done=False) for part in (text[:6], text[6:]))
    end = sse(choice({}, "stop"))
    reads = ((10, first), (20, second), (30, end))
    return taped(reads, body=request(*(says or ("Hi",)), **more), number=number)


def write_tape(path: Path, *exchanges: Exchange) -> Path:
    """A tape of these exchanges."""
    path.parent.mkdir(parents=True, exist_ok=True)
    stop = Stop(reason="test", exit_code=None)
    path.write_bytes(b"".join(tape_lines(HEADER, exchanges, stop)))
    return path


def plugged(
    pytester: pytest.Pytester, tests: str, *arguments: str, **files: str
) -> pytest.RunResult:
    """Run `tests`, which may import `ask`, and other files beside them; by this pytest's plugin."""
    pytester.makepyfile(app=APP, **files)
    (pytester.path / TESTS).write_text(f"import pytest\nfrom app import *\n{tests}")
    pytester.syspathinsert()
    return pytester.runpytest_inprocess(*QUIET, *arguments)


def reports(result: pytest.RunResult) -> str:
    """Pytest's report of the tests, without the summary, which is longer if CI is set."""
    return result.stdout.str().partition(" short test summary info ")[0]
