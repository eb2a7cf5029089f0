import base64
import socket
import sys
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from deltatape.gateway.outbound import outbound_from
from deltatape.replay.seclusion import Seclusion
from deltatape.trials.torture import torture
from helpers.tortured import rig


def connect(url: str, authority: str) -> bytes:
    """The beginning of the answer to a CONNECT."""
    at = urlsplit(url)
    user = base64.b64encode(f"{at.username}:{at.password}".encode()).decode()
    with socket.create_connection((at.hostname or "", at.port or 0), timeout=5) as sock:
        head = f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n"
        sock.sendall(f"{head}Proxy-Authorization: Basic {user}\r\n\r\n".encode())
        return sock.recv(4096)


def test_a_provider_is_out_of_reach_and_who_asked_for_it_is_told(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text('URL = "https://api.groq.com/openai/v1"\n')
    with Seclusion(outbound_from({}), tmp_path) as seclusion:
        assert seclusion.problem() == ""
        answer = connect(seclusion.variables["HTTPS_PROXY"], "api.groq.com:443")
        assert answer.startswith(b"HTTP/1.1 403 ")
        assert seclusion.refused == ["api.groq.com"]
        problem = seclusion.problem()
        assert problem.startswith("the command asked api.groq.com past the player: ")
        assert "app.py:1" in problem
    assert seclusion.problem() == problem


def test_a_command_that_is_tortured_reaches_nobody_but_the_player(tmp_path: Path) -> None:
    program = "import urllib.request as r; r.urlopen('https://api.groq.com/openai/v1/models')"
    made = rig(tmp_path, "once", only=("every-byte",))
    with Seclusion(outbound_from({}), tmp_path) as seclusion:
        command = (sys.executable, "-c", program)
        result = torture(replace(made, command=command, seclusion=seclusion))
    assert "the command asked api.groq.com past the player: REFUSED" in result.problem
    assert result.runs == 2
