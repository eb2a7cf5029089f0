"""What a recorder says when it starts, and when nothing comes."""

import pytest

from deltatape.environment.application import plan
from deltatape.gateway.routes import Routes, parse_upstream
from deltatape.record.introduction import Beginning, introduce, no_traffic

BASE = "http://127.0.0.1:8377"


def said(
    *upstreams: str, base: str = BASE, tape: str = "x.tape", alone: bool = True, **more: bool
) -> str:
    given = [parse_upstream(each) for each in upstreams]
    planned = plan(base, {}, (), given)
    beginning = Beginning(
        base=base,
        tape=tape,
        routes=Routes(given),
        variables=planned.variables,
        alone=alone,
        **more,
    )
    return "\n".join(introduce(beginning))


def test_it_says_where_it_tapes_where_it_forwards_and_what_to_set() -> None:
    text = said("corp=https://llm.corp.example/v2")
    assert "tape     x.tape" in text
    assert f"forward  {BASE}/NAME -> the provider; NAME: openai anthropic" in text
    assert f"{BASE}/corp -> https://llm.corp.example/v2" in text
    assert f"{BASE}/openai ->" not in text
    assert f"  set      OPENAI_BASE_URL={BASE}/openai/v1\n" in text
    assert f"           ANTHROPIC_BASE_URL={BASE}/anthropic" in text
    assert "Ctrl-C ends the tape" in text
    assert "same token" not in text


def test_one_upstream_serves_everything_and_says_its_path_once() -> None:
    text = said("http://127.0.0.1:9")
    assert f"forward  {BASE} -> http://127.0.0.1:9" in text
    assert f"OPENAI_BASE_URL={BASE}/v1\n" in text
    assert f"OPENAI_BASE_URL={BASE}\n" in said("http://127.0.0.1:9/v1")


def test_around_a_command_nothing_has_to_be_set() -> None:
    text = said(alone=False)
    assert "set" not in text
    assert "Ctrl-C" not in text
    assert "anthropic" not in text


def test_without_a_tape_it_does_not_name_one() -> None:
    assert "tape     none: see above" in said(tape="")


def test_a_unix_socket_is_no_base_url() -> None:
    text = said(base="http+unix://%2Frun%2Fx.sock")
    assert "OPENAI_BASE_URL" not in text
    assert "Unix socket" in text


def test_a_port_that_others_can_reach_says_so() -> None:
    assert "from other machines" in said(guarded=True)


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
