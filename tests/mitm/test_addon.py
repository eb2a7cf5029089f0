"""The addon in a mitmproxy of another environment, which knows nothing of deltatape."""

import subprocess
import sys
from pathlib import Path

import pytest

from deltatape.mitm.mitmdump import ADDON
from deltatape.model.exchange import EndReason, MaskedCredential, Source
from helpers.mitm import VENVS, call_events, installed, own_mitmproxy
from helpers.program import environment
from helpers.upstream import SSE_HEAD, Peer, chunk, connect, post, provider, run

LIMIT_S = 90
EVENTS = call_events()
OURS = ("deltatape", "__editable__", "aiohttp", "coverage", "a1_coverage", "httptools")
ALSO_OURS = ("jsonschema", "referencing", "rich", "rpds", "yaml", "yarl", "multidict")
START = (
    "import sys; sys.path.insert(0, sys.argv.pop(1));"
    "import importlib.util as u;"
    "assert not any(map(u.find_spec, ('deltatape', 'jsonschema', 'httptools', 'rich')));"
    "from mitmproxy.tools.main import mitmdump; mitmdump()"
)


def foreign(folder: Path, venv: Path) -> tuple[str, ...]:
    """A command that starts mitmdump with nothing but mitmproxy and what it needs."""
    (packages,) = (venv / "lib").glob("python3*/site-packages")
    view = folder / "foreign"
    view.mkdir()
    for entry in packages.iterdir():
        if not entry.name.startswith((*OURS, *ALSO_OURS)):
            (view / entry.name).symlink_to(entry)
    # Isolated, and without `site`: no .pth file adds anything.
    return str(venv / "bin" / "python"), "-I", "-S", "-c", START, str(view)


async def stream(peer: Peer) -> None:
    await peer.request()
    await peer.send(SSE_HEAD)
    for event in EVENTS:
        await peer.send(chunk(event))
    await peer.send(b"0\r\n\r\n")


@pytest.mark.parametrize("version", VENVS)
def test_it_tapes_in_a_mitmproxy_that_has_no_deltatape(tmp_path: Path, version: str) -> None:
    command = foreign(tmp_path, installed(version))

    async def scenario() -> str:
        async with provider(stream) as port:
            mode = ("--mode", f"reverse:http://127.0.0.1:{port}")
            async with own_mitmproxy(tmp_path, command, environment(tmp_path), *mode) as own:
                peer = await connect(own.port)
                await peer.send(post(extra="Authorization: Bearer sk-fake-000000\r\n"))
                await peer.rest_or_end()
                printed = await own.stop()
                (exchange,) = own.tape()
                assert exchange.source is Source.MITM
                assert exchange.body == b"".join(EVENTS)
                assert exchange.end is not None
                assert exchange.end.reason is EndReason.COMPLETE
                assert any(
                    isinstance(value, MaskedCredential) for _, value in exchange.request.headers
                )
                assert own.tape().stopped
                return printed

    printed = run(scenario(), limit_s=LIMIT_S)
    assert "#1 POST /v1/chat/completions 200 complete" in printed


def loaded(before: str) -> subprocess.CompletedProcess[str]:
    """Python running the addon's file after `before`."""
    program = f"import sys, runpy; {before}; runpy.run_path({str(ADDON)!r})"
    command = [sys.executable, "-I", "-S", "-c", program]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_an_older_python_is_refused_plainly() -> None:
    old = loaded("sys.version_info = (3, 10, 2, 'final', 0)")
    assert old.returncode == 1
    assert old.stderr.endswith(
        "RuntimeError: deltatape's addon needs Python 3.11 or newer, and this mitmproxy runs on"
        " 3.10: install mitmproxy with a newer Python\n"
    )


def test_the_package_around_it_is_loaded_and_nothing_beside_it() -> None:
    found = loaded("sys.path_before = list(sys.path)")
    assert "No module named 'mitmproxy'" in found.stderr
    check = (
        "import runpy, sys\ntry:\n    runpy.run_path(sys.argv[1])\n"
        "except ModuleNotFoundError as error:\n    assert error.name == 'mitmproxy'\n"
        "import deltatape\nprint(deltatape.__file__)\n"
        "assert not any('deltatape' in path or path.endswith('proxy') for path in sys.path)\n"
    )
    again = subprocess.run(
        [sys.executable, "-I", "-S", "-c", check, str(ADDON)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert again.stdout.strip() == str(ADDON.parent.parent / "__init__.py")


def test_what_it_imports_needs_only_the_standard_library() -> None:
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import deltatape.mitm.recorder;"
        "print({n.partition('.')[0] for n in sys.modules}"
        " - set(sys.stdlib_module_names) - {'deltatape', '__main__'})"
    )
    found = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program, str(ADDON.parent.parent.parent)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (found.stdout, found.stderr) == ("set()\n", "")
