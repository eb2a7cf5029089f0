"""The plugin beside others that stand between tests and the network, and beside pytest-xdist."""

import subprocess
from pathlib import Path

from helpers.needed import skip_unless
from helpers.program import environment
from helpers.pytest_projects import hello, write_tape

ROOT = Path(__file__).resolve().parent.parent.parent
PYTHON = ROOT / ".venv-plugins" / "bin" / "python"

SETTINGS = """
[pytest]
asyncio_default_fixture_loop_scope = function
filterwarnings = error
"""
CASSETTE = """
interactions:
- request: {body: '', headers: {}, method: GET, uri: 'http://weather.example/lisbon'}
  response:
    body: {string: sunny}
    headers: {}
    status: {code: 200, message: OK}
version: 1
"""
BODY = '{"model": "m", "stream": true, "messages": [{"role": "user", "content": "Hi"}]}'
SHARED = f"""
import os, socket, httpx, pytest
BODY = {BODY!r}
JSON = {{"Content-Type": "application/json"}}

def weather():
    return httpx.get("http://weather.example/lisbon").text

def url():
    return os.environ["OPENAI_BASE_URL"] + "/chat/completions"

def asked():
    return httpx.post(url(), content=BODY, headers=JSON).text

async def asked_async():
    async with httpx.AsyncClient() as client:
        return (await client.post(url(), content=BODY, headers=JSON)).text
"""
TESTS = {
    "test_recording": """
from shared import *

@pytest.mark.vcr
def test_a_cassette():
    assert weather() == "sunny"

@pytest.mark.vcr(ignore_localhost=True)
@pytest.mark.tape
def test_a_cassette_and_a_tape():
    assert weather() == "sunny"
    assert "[DONE]" in asked()

@pytest.mark.tape
@pytest.mark.block_network(allowed_hosts=["127.0.0.1"])
def test_a_tape_without_a_network():
    assert "[DONE]" in asked()
    with socket.socket() as one, pytest.raises(RuntimeError, match="Network is disabled"):
        one.connect(("192.0.2.1", 80))
""",
    "test_respx": """
from shared import *

def test_a_mock(respx_mock):
    respx_mock.get("http://weather.example/lisbon").respond(text="sunny")
    assert weather() == "sunny"

@pytest.mark.tape
def test_a_mock_and_a_tape(respx_mock):
    respx_mock.get("http://weather.example/lisbon").respond(text="sunny")
    respx_mock.route(host="127.0.0.1").pass_through()
    assert weather() == "sunny"
    assert "[DONE]" in asked()
""",
    "test_async": """
from shared import *

@pytest.mark.asyncio
@pytest.mark.tape
async def test_asyncio():
    assert "[DONE]" in await asked_async()

@pytest.mark.anyio
@pytest.mark.tape
async def test_anyio():
    assert "[DONE]" in await asked_async()

@pytest.fixture
def anyio_backend():
    return "asyncio"
""",
    "test_proxy": """
from shared import *

@pytest.mark.tape
def test_its_package_is_still_its_own():
    import proxy
    assert proxy.Proxy
    assert "[DONE]" in asked()
""",
}
CASSETTES = ("test_a_cassette", "test_a_cassette_and_a_tape")
TAPES = (
    "test_recording/test_a_cassette_and_a_tape",
    "test_recording/test_a_tape_without_a_network",
    "test_respx/test_a_mock_and_a_tape",
    "test_async/test_asyncio",
    "test_async/test_anyio",
    "test_proxy/test_its_package_is_still_its_own",
)
PLUGINS = ("deltatape", "recording", "respx", "xdist", "asyncio", "anyio")


def test_all_of_them_pass_together_in_parallel(tmp_path: Path) -> None:
    skip_unless(PYTHON.exists(), "no other plugins; scripts/setup plugins installs them")
    (tmp_path / "pytest.ini").write_text(SETTINGS)
    (tmp_path / "shared.py").write_text(SHARED)
    for name, text in TESTS.items():
        (tmp_path / f"{name}.py").write_text(text)
    for name in CASSETTES:
        path = tmp_path / "cassettes" / "test_recording" / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(CASSETTE)
    for name in TAPES:
        write_tape(tmp_path / "recordings" / f"{name}.tape", hello())
    result = subprocess.run(
        [str(PYTHON), "-m", "pytest", "-n", "2", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env={**environment(tmp_path), "PYTHONPATH": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stdout
    assert "8 passed" in result.stdout
    (plugins,) = (line for line in result.stdout.splitlines() if line.startswith("plugins: "))
    assert all(f"{name}-" in plugins for name in PLUGINS)
