"""`scripts/test-offline`: a place from which nothing leads out; scripts/check runs tests there."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "scripts" / "test-offline"
FORBIDDEN = 77
LIMIT_S = 60.0

LOOK = """
import errno, socket
from pathlib import Path
for family, address in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        assert sock.connect_ex((address, 9)) == errno.ENETUNREACH, family
assert Path("/proc/net/route").read_text().count("\\n") == 1
try:
    socket.getaddrinfo("api.openai.com", 443)
except socket.gaierror:
    pass
else:
    raise AssertionError("a name was looked up")
with socket.create_server(("127.0.0.1", 0)) as server:
    socket.create_connection(server.getsockname()).close()
raise SystemExit(5)
"""


def offline(*command: str | Path) -> subprocess.CompletedProcess[str]:
    """The script with these arguments; skips where the kernel forbids what it needs."""
    done = subprocess.run(
        [sys.executable, SCRIPT, *command],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    if done.returncode == FORBIDDEN:
        pytest.skip(done.stderr)
    return done


def test_nothing_leads_out_but_loopback_does_work_and_the_exit_code_comes_back() -> None:
    done = offline(sys.executable, "-c", LOOK)
    assert (done.returncode, done.stderr) == (5, "")


def test_the_tests_of_the_player_are_among_those_that_run_there() -> None:
    assert "tests/player" in offline("--list").stdout.splitlines()
    assert "tests/cli/test_replay_command.py" in offline("--list").stdout.splitlines()
