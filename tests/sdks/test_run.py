"""What real SDKs make of a recorded response, in the versions that the user names."""

import subprocess
import sys
from pathlib import Path

import pytest

from deltatape.errors import UsageError
from deltatape.model.asked import RepeatedCall
from deltatape.model.exchange import Exchange
from deltatape.sdks.run import made_by
from deltatape.store.reader import open_tape
from helpers.chat import request
from helpers.clients import CLIENTS, PYTHON, ROOT, SDKS, available
from helpers.exchanges import from_bytes
from helpers.vectors import VECTORS


def vector(number: int) -> Exchange:
    """A synthetic stream, by the number in its name."""
    (found,) = (one for one in VECTORS if one.name.startswith(f"{number:02} "))
    return from_bytes(found.body, request(get={"type": "object"}))


@pytest.fixture(scope="module")
def surroundings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A cache in which the SDKs of the tests are installed already."""
    for client in SDKS:
        available(client)
    folder = tmp_path_factory.mktemp("cache")
    sdks = folder / "deltatape" / "sdks"
    sdks.mkdir(parents=True)
    python = f"python{sys.version_info.major}.{sys.version_info.minor}"
    (sdks / f"{python}-openai==3.54.0").symlink_to(PYTHON.parent.parent)
    (sdks / "npm-ai@7").symlink_to(CLIENTS)
    return {"XDG_CACHE_HOME": str(folder)}


def test_two_sdks_tell_what_each_makes_of_a_response(surroundings: dict[str, str]) -> None:
    python, node = made_by(
        vector(3), ["openai==3.54.0", "ai@7"], tell=pytest.fail, environment=surroundings
    )
    assert python.spec == "openai==3.54.0"
    assert python.versions == {"openai": "3.54.0"}
    assert python.made.calls == (RepeatedCall(id="c1", name="getgetget", arguments='{"a":1}'),)
    assert (python.finish, node.finish) == ("tool_calls", "tool-calls")
    assert node.spec == "ai@7"
    assert node.versions["ai"].startswith("7.")
    assert node.made.calls == (RepeatedCall(id="c1", name="get", arguments='{"a":1}'),)
    assert (python.made.errors, node.made.errors) == ((), ())


def test_what_an_sdk_throws_and_what_it_refuses_is_told(surroundings: dict[str, str]) -> None:
    (python,) = made_by(vector(8), ["openai==3.54.0"], tell=pytest.fail, environment=surroundings)
    (error,) = python.made.errors
    assert error == "TypeError: list indices must be integers or slices, not NoneType"
    (node,) = made_by(vector(16), ["ai@7"], tell=pytest.fail, environment=surroundings)
    assert node.made.calls == ()
    assert [call.arguments for call in node.refused] == ['{}{"a":1}']


def test_a_taped_response_is_played_as_it_was_recorded(surroundings: dict[str, str]) -> None:
    (exchange,) = open_tape(ROOT / "recordings" / "dialects" / "openai-chat.tape")
    (python,) = made_by(exchange, ["openai==3.54.0"], tell=pytest.fail, environment=surroundings)
    assert [call.name for call in python.made.calls] == ["get_weather", "get_forecast"]
    assert python.made.text == "I will look up both. 🌦"


def test_an_sdk_of_another_dialect_is_refused_before_anything_is_installed(tmp_path: Path) -> None:
    surroundings = {"XDG_CACHE_HOME": str(tmp_path)}
    with pytest.raises(UsageError, match="reads anthropic-messages; the response is openai-chat;"):
        made_by(
            vector(1),
            ["ai@7", "anthropic==2.12.0"],
            tell=pytest.fail,
            environment=surroundings,
        )
    (cohere,) = open_tape(ROOT / "recordings" / "dialects" / "cohere.tape")
    with pytest.raises(UsageError, match="the response is cohere; nothing known reads cohere"):
        made_by(cohere, ["ai@7"], tell=pytest.fail, environment=surroundings)
    assert list(tmp_path.iterdir()) == []


def test_the_runners_are_part_of_the_package() -> None:
    code = (
        "from importlib.resources import files\n"
        "for name in ('run_python.py', 'run_node.mjs'):\n"
        "    assert files('deltatape').joinpath('sdks/runners', name).is_file(), name\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
