"""A disk that stalls: a file system of its own, which can be frozen as for a snapshot."""

import contextlib
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

_SIZE = 16 << 20
_LIMIT_S = 15.0
"""After this a frozen disk thaws in any case: who writes to it cannot even be killed."""


class Disk:
    """A mounted file system."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Every write to it waits meanwhile."""
        watchdog = threading.Timer(_LIMIT_S, self._thaw)
        watchdog.start()
        try:
            subprocess.run(["fsfreeze", "--freeze", self.folder], check=True, timeout=_LIMIT_S)
            yield
        finally:
            self._thaw()
            watchdog.cancel()

    def _thaw(self) -> None:
        subprocess.run(["fsfreeze", "--unfreeze", self.folder], check=False, capture_output=True)


@contextlib.contextmanager
def freezable_disk(folder: Path) -> Iterator[Disk]:
    """A disk mounted on `folder`; skips the test where that needs more than this machine gives."""
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    if not all(map(shutil.which, ("mkfs.ext4", "mount", "fsfreeze"))):
        pytest.skip("needs mkfs.ext4, mount and fsfreeze")
    image = folder.with_suffix(".img")
    with image.open("wb") as file:
        file.truncate(_SIZE)
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-o", "loop", image, folder], check=False, capture_output=True, text=True
    )
    if done.returncode != 0:
        pytest.skip(f"no loop mounts here: {done.stderr.strip()}")
    try:
        yield Disk(folder)
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
        image.unlink()
