"""Run the server of `deltatape open` and a browser, for the scripts that look at its page."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
PATIENCE_S = 600
"""For a machine whose cores are busy: the readers of tapes run at low priority."""


@contextlib.contextmanager
def served(tapes: Path, state: Path) -> Iterator[str]:
    """Serve the page on a folder; yield its URL once all tapes are in its index.

    Args:
        tapes: shown on the page as it is given here, relative to the repository or absolute.
        state: where the index is kept.
    """
    with subprocess.Popen(
        (sys.executable, "-m", "deltatape", "open", str(tapes), "--until-eof"),
        cwd=ROOT,
        env={**os.environ, "XDG_STATE_HOME": str(state)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        try:
            wait_for_index(url)
            yield url
        finally:
            process.stdin.close()


def wait_for_index(url: str) -> None:
    """Wait until the server has read all tapes: it tells when it has read more."""
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=PATIENCE_S)
    with contextlib.closing(connection):
        token = parts.query.removeprefix("token=")
        connection.request("GET", "/api/live", headers={"Authorization": f"Bearer {token}"})
        for line in connection.getresponse():
            if line.startswith(b"data:"):
                state = json.loads(line.removeprefix(b"data:"))["indexed"]
                if 0 < state["of"] == state["done"]:
                    return
    raise SystemExit("the server ended before it had read the tapes")


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """Run the browser of the system, without a window."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    if program is None:
        raise SystemExit("no Chromium: scripts/setup browser installs it")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()
