"""What a test needs on the machine: it is skipped without, but never in CI."""

import os
import shutil

import pytest


def skip_unless(present: object, why: str) -> None:
    """Skip the test, saying why, unless what it needs is there; in CI, let it fail instead."""
    if present:
        return
    if os.environ.get("CI"):
        pytest.fail(f"nothing is skipped in CI: {why}")
    pytest.skip(why)


def needs_go() -> None:
    """Skip the test where Go is not installed."""
    skip_unless(shutil.which("go"), "no Go; scripts/setup go installs it")
