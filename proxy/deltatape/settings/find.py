"""Which settings file holds: the nearest `deltatape.yaml`, from the working directory upward.

`DELTATAPE_CONFIG` names another one, or `none`. A file that was only found must belong to the
user, to root, or to whom the working directory belongs: in a folder that everybody can write to,
such as /tmp, somebody else's file could have our traffic sent elsewhere, or run a command.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from deltatape.errors import UsageError

NAME = "deltatape.yaml"
VARIABLE = "DELTATAPE_CONFIG"
NONE = "none"


def find(start: Path, environment: Mapping[str, str]) -> Path | None:
    """The settings file for a command that runs in `start`; None when there is none.

    Raises:
        UsageError: the named file is not there, or the one found belongs to a stranger.
    """
    named = environment.get(VARIABLE, "")
    if named == NONE:
        return None
    if named:
        path = start / named
        if not path.is_file():
            raise UsageError(
                f"{VARIABLE}={named}: no such file; the path of a settings file is accepted, or"
                f" {NONE}"
            )
        return path
    for folder in (start, *start.parents):
        path = folder / NAME
        if _is_there(path):
            _refuse_strangers(path, start)
            return path
    return None


def _is_there(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a folder that we may not look into
        return False


def _refuse_strangers(path: Path, start: Path) -> None:
    owner = path.stat().st_uid
    if owner not in (0, os.geteuid(), start.stat().st_uid):
        raise UsageError(
            f"{path}: belongs to another user (uid {owner}), so it is not used; accept it with"
            f" {VARIABLE}={path}, or do without settings by {VARIABLE}={NONE}"
        )
