"""Disks that refuse: full, read-only, with limits on files, with locked files and folders."""

import contextlib
import errno
import os
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """No file may grow beyond `size` bytes (EFBIG; Python ignores SIGXFSZ)."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextlib.contextmanager
def small_disk(folder: Path, size: int) -> Iterator[None]:
    """A file system of `size` bytes, mounted on `folder`; skips the test where that needs root."""
    folder.mkdir(exist_ok=True)
    _mount("-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder))
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Nothing can be made in `folder` meanwhile, not even by root."""
    if os.geteuid() != 0:
        folder.chmod(0o500)
        try:
            yield
        finally:
            folder.chmod(0o700)
        return
    _mount("-t", "tmpfs", "-o", "ro", "tmpfs", str(folder))
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextlib.contextmanager
def unreadable(folder: Path) -> Iterator[None]:
    """This process cannot list `folder` meanwhile, not even as root."""
    scandir = os.scandir

    def refused(path: str | Path | int) -> object:
        if not isinstance(path, int) and Path(path).absolute() == folder.absolute():
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return scandir(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "scandir", refused)
        yield


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


def _mount(*args: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    done = subprocess.run(["mount", *args], check=False, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"mounting is not allowed here: {done.stderr.strip()}")
