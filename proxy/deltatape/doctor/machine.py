"""What a recording needs of this machine: versions, the port, a place for tapes.

Looks and reports; makes and changes nothing. The only connection is to loopback.
"""

import contextlib
import os
import platform
import shutil
import socket
import stat
import subprocess
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from deltatape import __version__
from deltatape.environment.urls import DEFAULT_PORT
from deltatape.render.doctor import Level, Remark
from deltatape.render.units import size
from deltatape.store.names import DEFAULT_FOLDER

_ANSWER_S = 1.0
_GIT_S = 2.0
_MAX_READS = 4
_READ_BYTES = 4096
_MIB = 1024 * 1024
_LITTLE = 1024 * _MIB
_TOO_LITTLE = 100 * _MIB
_EXTRAS = (
    ("brotli", "compression", "only needed to read bodies with content-encoding br"),
    ("mitmproxy", "mitm", "only needed for apps that cannot be pointed anywhere"),
)


def machine_remarks(folder: Path) -> Iterator[Remark]:
    """Everything about the machine, for a recording that is started in `folder`."""
    yield Remark(
        level=Level.OK, text=f"deltatape {__version__}, Python {platform.python_version()}"
    )
    yield from (_extra(*each) for each in _EXTRAS)
    yield port_remark(DEFAULT_PORT)
    tapes = folder / DEFAULT_FOLDER
    yield _folder_remark(tapes)
    yield _disk_remark(tapes)
    yield from _git_remarks(folder, tapes)


def _extra(package: str, extra: str, use: str) -> Remark:
    try:
        return Remark(level=Level.OK, text=f"{package} {version(package)}")
    except PackageNotFoundError:
        text = f"{package} is not installed: {use} (pip install 'deltatape[{extra}]')"
        return Remark(level=Level.OK, text=text)


def port_remark(port: int) -> Remark:
    """Whether `deltatape record` can listen on a port of 127.0.0.1, and who does if not."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            reason = os.strerror(error.errno or 0)
        else:
            return Remark(level=Level.OK, text=f"port {port} is free")
    if listens_deltatape(port):
        return Remark(
            level=Level.NOTE,
            text=f"a deltatape listens on port {port} already",
            fix=f"point the app at http://127.0.0.1:{port}, or record on another port: --listen"
            " 127.0.0.1:0",
        )
    return Remark(
        level=Level.NOTE,
        text=f"port {port} cannot be had ({reason}), and what is there is no deltatape",
        fix="`deltatape record` needs --listen 127.0.0.1:0; `deltatape record -- CMD` takes a free"
        " port anyway",
    )


def listens_deltatape(port: int) -> bool:
    """Whether a deltatape answers on a port of 127.0.0.1.

    It is asked for what no gateway forwards, so that the question reaches no provider.
    """
    question = b"OPTIONS * HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    answer = b""
    with (
        contextlib.suppress(OSError),
        socket.create_connection(("127.0.0.1", port), _ANSWER_S) as connection,
    ):
        connection.sendall(question)
        for _ in range(_MAX_READS):
            answer += connection.recv(_READ_BYTES)
    return b"\r\nx-deltatape-error:" in answer.lower()


def _folder_remark(tapes: Path) -> Remark:
    """Whether tapes can be written."""
    fix = "choose another folder with --to"
    place = tapes
    while not os.path.lexists(place):
        place = place.parent
    if not place.is_dir():
        return Remark(level=Level.PROBLEM, text=f"{place} is not a folder", fix=fix)
    if not os.access(place, os.W_OK | os.X_OK):
        return Remark(level=Level.PROBLEM, text=f"{place} is not writable", fix=fix)
    if place != tapes:
        return Remark(level=Level.OK, text=f"tapes go to {tapes}, which is made when needed")
    mode = stat.S_IMODE(place.stat().st_mode)
    if mode & 0o077:
        text = f"{tapes} is open to other users of this machine (mode {mode:o})"
        return Remark(level=Level.NOTE, text=text, fix=f"chmod 700 {tapes}")
    return Remark(level=Level.OK, text=f"tapes go to {tapes}")


def _disk_remark(tapes: Path) -> Remark:
    place = tapes
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    text = f"{size(free)} free for tapes"
    if free < _TOO_LITTLE:
        return Remark(level=Level.PROBLEM, text=text, fix="make room, or choose a folder with --to")
    return Remark(level=Level.NOTE if free < _LITTLE else Level.OK, text=text)


def _git_remarks(folder: Path, tapes: Path) -> Iterator[Remark]:
    """Whether git would take tapes, with the prompts that are on them."""
    if not tapes.is_dir() or _git(folder, "rev-parse", "--is-inside-work-tree") is None:
        return
    if _git(folder, "ls-files", "--", DEFAULT_FOLDER):
        yield Remark(
            level=Level.PROBLEM,
            text=f"git tracks files in {DEFAULT_FOLDER}: tapes hold prompts and answers",
            fix=f"git rm --cached -r {DEFAULT_FOLDER}; `deltatape keep` redacts a tape and moves it"
            " to recordings/",
        )
    elif _git(folder, "check-ignore", "--", f"{DEFAULT_FOLDER}/x.tape") is None:
        yield Remark(
            level=Level.PROBLEM,
            text=f"git does not ignore {DEFAULT_FOLDER}: tapes hold prompts and answers",
            fix=f"echo '*' > {DEFAULT_FOLDER}/.gitignore",
        )
    else:
        yield Remark(level=Level.OK, text=f"git ignores {DEFAULT_FOLDER}")


def _git(folder: Path, *arguments: str) -> bytes | None:
    """What git prints; None when it fails, says no, or is not there."""
    try:
        answer = subprocess.run(  # noqa: S603 - fixed commands
            ["git", "-c", "core.fsmonitor=false", *arguments],  # noqa: S607 - the user's git
            cwd=folder,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_GIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout if answer.returncode == 0 else None
