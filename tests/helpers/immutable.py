"""Files and folders that cannot be changed for a while, not even by root."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def immutable(path: Path) -> Iterator[None]:
    """`path` cannot be changed, renamed or deleted meanwhile, a folder's names neither."""
    if os.geteuid() != 0:
        if not path.is_dir():
            pytest.skip("only root can lock a single file")
        path.chmod(0o500)
        try:
            yield
        finally:
            path.chmod(0o700)
        return
    done = subprocess.run(["chattr", "+i", path], check=False, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"no immutable files here: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["chattr", "-i", path], check=True)
