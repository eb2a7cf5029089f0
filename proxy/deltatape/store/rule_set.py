"""The version of the rules that made an index, a sealed tape's rows or a dataset."""

import hashlib
from functools import cache
from pathlib import Path

from deltatape import __version__
from deltatape.model.rule_settings import DEFAULTS, Settings

_PACKAGE = Path(__file__).resolve().parent.parent
_DECIDING = (
    "conversation",
    "diagnose",
    "dialects",
    "model",
    "rules",
    "scan",
    "secret_text",
    "tape",
    "text_calls",
    "why",
    "wire",
    "printable.py",
    "providers.py",
)
"""The code that decides which findings there are, and what a row says."""


def rule_set(settings: Settings = DEFAULTS) -> str:
    """Return the version of deltatape, and a hash of its rules and of the settings.

    Whoever changes a rule gets another one, also between versions; it is the same on all machines
    with the same files.
    """
    digest = hashlib.sha256(_code() + repr(settings).encode("utf-8", "surrogatepass"))
    return f"{__version__}-{digest.hexdigest()[:16]}"


@cache
def _code() -> bytes:
    digest = hashlib.sha256()
    for name in _DECIDING:
        path = _PACKAGE / name
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(f"{file.relative_to(_PACKAGE)}\n".encode())
            digest.update(file.read_bytes())
    return digest.digest()
