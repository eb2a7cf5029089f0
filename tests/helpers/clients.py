"""The real clients: the official SDKs in their own environment, and curl."""

import asyncio
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
CLIENTS = ROOT / "tests" / "clients"
PYTHON = ROOT / ".venv-clients" / "bin" / "python"


@dataclass(frozen=True)
class Client:
    """A program that makes one conversation turn and prints what it understood."""

    name: str
    command: tuple[str, ...]

    async def run(self, base_url: str, request: dict[str, object]) -> str:
        """What it prints; fails when it fails."""
        environment = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
        process = await asyncio.create_subprocess_exec(
            *(*self.command, base_url, json.dumps(request)),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment,
        )
        out, err = await process.communicate()
        assert process.returncode == 0, err.decode()
        return out.decode()


def available(client: Client) -> Client:
    """The client; skips the test where it is not installed, but never in CI."""
    program = client.command[0]
    missing = shutil.which(program) is None
    if client.name == "openai-node":
        missing |= not (CLIENTS / "node_modules" / "openai").is_dir()
    if missing and not os.environ.get("CI"):
        pytest.skip(f"{client.name} is not installed; scripts/setup clients installs it")
    assert not missing, f"{client.name} must be installed in CI"
    return client


SDKS = (
    Client("openai-python", (str(PYTHON), str(CLIENTS / "stream.py"))),
    Client("openai-node", ("node", str(CLIENTS / "stream.mjs"))),
)
CURL = Client("curl", ("sh", str(CLIENTS / "stream.sh")))
