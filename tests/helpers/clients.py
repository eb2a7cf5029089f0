"""The real clients: the official SDKs in their own environment, and curl."""

import asyncio
import contextlib
import json
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from helpers.needed import skip_unless

ROOT = Path(__file__).resolve().parent.parent.parent
CLIENTS = ROOT / "tests" / "clients"
PYTHON = ROOT / ".venv-clients" / "bin" / "python"


async def output(
    *command: str | Path,
    stdin: bytes = b"",
    stderr: int = asyncio.subprocess.PIPE,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> bytes:
    """Run a program to its end; return its output, and raise if it fails."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=stderr,
        cwd=cwd,
        env=env,
    )
    out, err = await process.communicate(stdin)
    assert process.returncode == 0, (err or out).decode()
    return out


@dataclass(frozen=True)
class Client:
    """A program that makes one conversation turn and prints the reply as it understood it."""

    name: str
    command: tuple[str, ...]

    async def run(self, base_url: str, request: dict[str, object]) -> str:
        """Run it; return its output, and raise if it fails."""
        environment = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
        command = (*self.command, base_url, json.dumps(request))
        return (await output(*command, env=environment)).decode()


def available(client: Client) -> Client:
    """The client; skips the test where it is not installed."""
    program = client.command[0]
    missing = shutil.which(program) is None
    if program == "node":
        missing |= not (CLIENTS / "node_modules" / "ai").is_dir()
    skip_unless(not missing, f"no {client.name}; scripts/setup clients installs it")
    return client


SDKS = (
    Client("openai-python", (str(PYTHON), str(CLIENTS / "stream.py"))),
    Client("openai-node", ("node", str(CLIENTS / "stream.mjs"))),
)
CURL = Client("curl", ("sh", str(CLIENTS / "stream.sh")))


def chromium() -> str:
    """A real browser; skips the test where it, or Playwright, is not installed."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    why = "no Chromium or no Playwright; scripts/setup clients browser installs them"
    skip_unless(program and PYTHON.exists(), why)
    return str(program)


async def browse(url: str, *archive: Path) -> str:
    """What the page at `url` shows once it is done; an archive is recorded where one is named."""
    return await opened("browse.py", url, *archive)


async def opened(script: str, url: str, *more: Path) -> str:
    """What a script prints that opens the page at `url` in a real browser."""
    program = chromium()
    return (await output(PYTHON, CLIENTS / script, url, program, *more)).decode().rstrip("\n")


@dataclass(frozen=True)
class Sdk(Client):
    """An SDK that converses with one base URL after another, in one dialect.

    Args:
        dialect: whose tape in recordings/dialects is what the SDK asks for.
        prefix: the gateway's for its provider.
    """

    dialect: str
    prefix: str


def _python(dialect: str, prefix: str) -> Sdk:
    command = (str(PYTHON), "-W", "error", str(CLIENTS / "converse.py"), dialect)
    return Sdk(f"python-{dialect}", command, dialect, prefix)


def _node(dialect: str, prefix: str) -> Sdk:
    command = ("node", str(CLIENTS / "converse.mjs"), dialect)
    return Sdk(f"node-{dialect}", command, dialect, prefix)


BEDROCK = _python("bedrock-converse", "bedrock")
CONVERSING = (
    _python("openai-chat", "openai"),
    _python("openai-responses", "openai"),
    _python("openai-completions", "openai"),
    _python("anthropic-messages", "anthropic"),
    _python("gemini", "gemini"),
    _python("gemini-interactions", "gemini"),
    _python("cohere", "cohere"),
    _python("ollama", "ollama"),
    _python("mistral", "mistral"),
    BEDROCK,
    _python("bedrock-invoke", "bedrock"),
    _node("openai-chat", "openai"),
    _node("openai-responses", "openai"),
    _node("anthropic-messages", "anthropic"),
    _node("ai-sdk-ui", "app"),
)
AMAZON = {  # no file of the user's, and no question to the network
    "AWS_BEARER_TOKEN_BEDROCK": "fake-000000",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
}


@contextlib.asynccontextmanager
async def conversing(sdk: Sdk, request: bytes) -> AsyncIterator[Callable[[str], Awaitable[str]]]:
    """Start `sdk`; yield a function that makes one turn with a base URL and returns the reply."""
    process = await asyncio.create_subprocess_exec(
        *(*sdk.command, request.decode()),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"PATH": os.environ["PATH"], "HOME": os.devnull, **AMAZON},
        limit=1 << 20,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    stdin, stdout = process.stdin, process.stdout

    async def ask(url: str) -> str:
        stdin.write(f"{url}\n".encode())
        line = (await asyncio.wait_for(stdout.readline(), 30)).decode()
        if not line:
            raise AssertionError((await process.communicate())[1].decode())
        return line

    try:
        yield ask
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.communicate()
