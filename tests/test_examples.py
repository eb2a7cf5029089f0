"""The examples do what README.md says of them."""

import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from benchmarks.proxies import find_nginx

from deltatape.demo.demo import Background, background
from deltatape.store.reader import open_tape
from helpers.clients import output
from helpers.needed import skip_unless
from helpers.program import environment
from helpers.recorded_apps import Provider
from helpers.upstream import connect, post, provider, run

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "examples" / "replay-in-ci.sh"
INCIDENTS = ROOT / "recordings" / "incidents"
APP = (sys.executable, "-m", "deltatape.demo.app", "--accumulator")


def replayed(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """The script with the tapes in `folder`."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [str(SCRIPT), str(folder), *command],
        cwd=folder,
        env={**environment(folder), "PATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_captures_are_a_ci_job_that_names_the_one_that_fails(tmp_path: Path) -> None:
    for name in ("itinerary-fixed", "cut-mid-arguments"):
        shutil.copy(INCIDENTS / f"{name}.tape", tmp_path)
    both = replayed(tmp_path, *APP, "by-index")
    assert both.returncode == 1
    cut, fixed = both.stdout.split("== ")[1:]
    assert f"FAILED with 1: {tmp_path}/cut-mid-arguments.tape" in cut
    assert "FAILED" not in fixed
    assert "a flight leaves Berlin" in fixed
    (tmp_path / "cut-mid-arguments.tape").unlink()
    assert replayed(tmp_path, *APP, "by-index").returncode == 0
    broken = replayed(tmp_path, *APP, "single-call")
    assert broken.returncode == 1
    assert "1 played, 1 missed, 1 unplayed" in broken.stderr


def test_the_script_tells_how_it_is_used(tmp_path: Path) -> None:
    for arguments in ([], [str(tmp_path)]):
        done = subprocess.run(
            [str(SCRIPT), *arguments], capture_output=True, text=True, check=False
        )
        assert done.returncode == 2
        assert done.stderr == f"usage: {SCRIPT} FOLDER COMMAND...\n"


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
    await output(sys.executable, "-c", check)


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


@pytest.mark.slow
def test_a_fleet_records_ships_scans_and_answers_while_one_is_replaced(tmp_path: Path) -> None:
    skip_unless(find_nginx(), "no nginx; scripts/setup bench installs it")
    work = tmp_path / "work"
    with subprocess.Popen(
        [str(ROOT / "examples" / "fleet" / "run"), str(work)],
        cwd=tmp_path,
        env={**environment(tmp_path), "PYTHON": sys.executable},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as running:
        try:
            said, _ = running.communicate(timeout=400)
        finally:
            if running.poll() is None:
                os.killpg(running.pid, signal.SIGKILL)
    assert running.returncode == 0, said
    assert " 0 failed" in said
    assert "it has ended by itself, with exit code 0" in said
    assert re.search(r"/metrics of .*: open 0, exchanges \d+, .* findings [1-9]\d*, lost 0", said)
    whole = re.search(r"(\d+) exchanges are in the dataset, of (\d+) that apps had", said)
    assert whole is not None
    assert whole[1] == whole[2]
    for code in ("T003", "T008", "W006", "C001"):
        assert f"\n         {code} " in said
    stops = [open_tape(path).watch.stop for path in (work / "tapes").rglob("*.tape")]
    assert sorted(filter(None, stops)) == ["replaced", "sigterm", "sigterm", "sigterm"]
    assert [each for each in Path("/proc").glob("[0-9]*") if was_started_in(work, each)] == []


def was_started_in(folder: Path, process: Path) -> bool:
    """Whether a process has the folder's state."""
    with contextlib.suppress(OSError):
        return f"={folder}/state\0".encode() in (process / "environ").read_bytes()
    return False
