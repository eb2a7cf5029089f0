"""Processes that do items of a command, as they end."""

import subprocess
import sys
from pathlib import Path

from helpers.program import environment

INTERRUPTED = """
import contextlib, os, signal, sys
from pathlib import Path
from deltatape.cli.workers import _leaving_nothing, _prepare


@contextlib.contextmanager
def draft():
    path = Path(sys.argv[1])
    path.write_bytes(b"")
    try:
        yield
    finally:
        path.unlink()


def pack(item):
    entered = draft()
    entered.__enter__()  # a signal may come after this, and before `with` knows of it
    os.kill(os.getpid(), signal.SIGINT)


_prepare()
_leaving_nothing(pack, 1)
"""


def test_an_interrupted_worker_removes_files_also_between_two_steps(tmp_path: Path) -> None:
    draft = tmp_path / "draft"
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, str(draft)],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (1, "")
    assert not draft.exists()
