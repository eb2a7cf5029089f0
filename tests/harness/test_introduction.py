"""What a recorder says when it starts, and when nothing comes."""

import pytest

from deltatape.gateway.routes import Routes, parse_upstream
from deltatape.harness.introduction import introduce, no_traffic

BASE = "http://127.0.0.1:8377"


def said(*upstreams: str, base: str = BASE, tape: str = "x.tape", alone: bool = True) -> str:
    routes = Routes(map(parse_upstream, upstreams))
    return "\n".join(introduce(base, tape, routes, alone=alone))


def test_it_says_where_it_tapes_where_it_forwards_and_what_to_set() -> None:
    text = said("corp=https://llm.corp.example/v2")
    assert "tape     x.tape" in text
    assert f"forward  {BASE}/NAME -> the provider; NAME: openai anthropic" in text
    assert f"{BASE}/corp -> https://llm.corp.example/v2" in text
    assert f"{BASE}/openai ->" not in text
    assert f"OPENAI_BASE_URL={BASE}/openai/v1" in text
    assert "Ctrl-C ends the tape" in text


def test_one_upstream_serves_everything_and_says_its_path_once() -> None:
    text = said("http://127.0.0.1:9")
    assert f"forward  {BASE} -> http://127.0.0.1:9" in text
    assert f"OPENAI_BASE_URL={BASE}/v1  " in text
    assert f"OPENAI_BASE_URL={BASE}  " in said("http://127.0.0.1:9/v1")


def test_around_a_command_nothing_has_to_be_set() -> None:
    text = said(alone=False)
    assert "set" not in text
    assert "Ctrl-C" not in text


def test_without_a_tape_it_does_not_name_one() -> None:
    assert "tape     none: see above" in said(tape="")


def test_a_unix_socket_is_no_base_url() -> None:
    text = said(base="http+unix://%2Frun%2Fx.sock")
    assert "OPENAI_BASE_URL" not in text
    assert "Unix socket" in text


@pytest.mark.parametrize(
    ("clients", "child", "clue"),
    [
        (1, None, "is it speaking HTTPS to this HTTP port?"),
        (0, None, "A container reaches http://127.0.0.1:8377 only on the host's network"),
        (0, "npm", "npm has not called a provider through http://127.0.0.1:8377"),
    ],
)
def test_no_traffic_says_what_to_look_at(clients: int, child: str | None, clue: str) -> None:
    text = no_traffic(BASE, clients=clients, child=child)
    assert clue in text
    assert ("deltatape doctor" in text) == (clients == 0)
