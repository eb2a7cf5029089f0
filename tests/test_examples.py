"""The examples do what README.md says of them."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from deltatape.harness.process import Background, background
from helpers.applied import Provider
from helpers.program import environment
from helpers.upstream import connect, post, provider, run

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "examples" / "replay-in-ci.sh"
INCIDENTS = ROOT / "recordings" / "incidents"
TAPES = f"{INCIDENTS}/itinerary-broken.tape#1 {INCIDENTS}/itinerary-fixed.tape#2"
APP = (sys.executable, "-m", "deltatape.harness.app", "--accumulator")


@pytest.mark.parametrize(
    ("tapes", "command", "code"),
    [
        (TAPES, (*APP, "by-index"), 0),
        (TAPES, (*APP, "single-call"), 1),
        (TAPES, ("true",), 1),
        (f"{INCIDENTS}/itinerary-fixed.tape", ("sh", "-c", "exit 3"), 3),
        ("no-such.tape", ("true",), 2),
    ],
    ids=["fixed app", "broken app", "nothing played", "command fails", "no tape"],
)
def test_a_capture_is_a_ci_job(
    tmp_path: Path, tapes: str, command: tuple[str, ...], code: int
) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    result = subprocess.run(
        [str(SCRIPT), tapes, *command],
        cwd=tmp_path,
        env={**environment(tmp_path), "PATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == code, result.stdout + result.stderr
    assert ("2 played, 0 missed, 0 unplayed" in result.stdout) == (code == 0)


DOCKER = ROOT / "examples" / "docker"


def service(name: str) -> dict[str, Any]:
    """A service of compose.yaml, with its variables filled in as Compose does."""
    text = (DOCKER / "compose.yaml").read_text()
    text = re.sub(r"\$\{DELTATAPE_TOKEN[^}]*\}", "t-000-fake-fake-fake", text)
    found: dict[str, Any] = yaml.safe_load(text)["services"][name]
    return found


async def assert_healthy(running: Background, check: str) -> None:
    """Run the recipe's health check, at the port that is listened at here."""
    health = re.search(r"http://\S+/health", running.wait_for("health"))
    assert health is not None
    check = check.replace("http://127.0.0.1:8379/health", health[0])
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", check)
    assert await process.wait() == 0


def test_the_recipe_for_containers_records_who_has_the_token_and_nobody_else(
    tmp_path: Path,
) -> None:
    recorder, app = service("deltatape"), service("app")
    command = [str(part) for part in recorder["command"]]
    # What differs here: free ports, and a folder of the test's for the volume.
    command[command.index("0.0.0.0:8377")] = "0.0.0.0:0"
    command[command.index("127.0.0.1:8379")] = "127.0.0.1:0"
    command[command.index("/tapes")] = str(tmp_path / "tapes")
    served = Provider()

    async def scenario() -> None:
        async with provider(served.serve) as port:
            upstream = ("--upstream", f"openai=http://127.0.0.1:{port}")
            env = {**environment(tmp_path), **recorder["environment"]}
            with background(*command, *upstream, cwd=tmp_path, env=env) as running:
                await assert_healthy(running, str(recorder["healthcheck"]["test"][-1]))
                base = app["environment"]["OPENAI_BASE_URL"]
                assert base.startswith("http://deltatape:8377/")
                path = base.removeprefix("http://deltatape:8377")
                for target, status in ((path, b"200"), ("/openai/v1", b"403")):
                    client = await connect(running.port)
                    asked = post(target=f"{target}/chat/completions")
                    await client.send(asked.replace(b"Host: 127.0.0.1", b"Host: deltatape:8377"))
                    head = await client.until(b"\r\n\r\n")
                    assert head.split(b" ")[1] == status
                code, told = await asyncio.to_thread(running.stop, signal.SIGTERM)
                assert code == 0, told

    run(scenario())
    assert len(served.asked) == 1
    (path,) = (tmp_path / "tapes").glob("*.tape")
    assert "t-000-fake-fake-fake" not in path.read_text()


def test_the_image_runs_what_the_recipe_runs() -> None:
    lines = (DOCKER / "Dockerfile").read_text().splitlines()
    (told,) = (line.removeprefix("CMD ") for line in lines if line.startswith("CMD "))
    assert json.loads(told) == service("deltatape")["command"]
    assert 'ENTRYPOINT ["deltatape"]' in lines
