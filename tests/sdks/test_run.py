"""An SDK is installed once, by pip or npm, into the user's cache; what fails is told and undone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from deltatape.errors import DeltatapeError, UsageError
from deltatape.model.exchange import Exchange
from deltatape.model.request_summary import RepeatedCall
from deltatape.sdks.run import PACKAGES, SdkSpec, cache, installed, known, made_by, parse_spec
from deltatape.sdks.table import Ecosystem
from deltatape.store.reader import open_tape
from helpers.chat import request
from helpers.clients import CLIENTS, PYTHON, ROOT, SDKS, available
from helpers.exchanges import from_bytes
from helpers.vectors import VECTORS

NO_INDEX = "http://127.0.0.1:9/"


def made(spec: SdkSpec, folder: Path) -> list[str]:
    told: list[str] = []
    environment = {"XDG_CACHE_HOME": str(folder)}
    found = installed(spec, told.append, environment)
    assert found.package == spec.name
    assert found.folder.is_relative_to(folder / "deltatape" / "sdks")
    assert installed(spec, told.append, environment) == found
    return told


def left(folder: Path) -> list[str]:
    return [path.name for path in (folder / "deltatape" / "sdks").iterdir()]


def test_pip_installs_an_sdk_once(tmp_path: Path) -> None:
    available(SDKS[0])
    told = made(parse_spec("anthropic==2.12.0"), tmp_path)
    assert len(told) == 1
    assert told[0].startswith("installing anthropic==2.12.0 into ")
    assert len(left(tmp_path)) == 1


def test_npm_installs_an_sdk_once(tmp_path: Path) -> None:
    available(SDKS[1])
    assert len(made(parse_spec("openai@7.57.0"), tmp_path)) == 1
    assert left(tmp_path) == ["npm-openai@7.57.0"]


@pytest.mark.parametrize("text", ["openai==3.54.0", "openai@7.57.0"])
def test_without_a_registry_it_is_reported_and_nothing_is_left(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "npm_config_registry"):
        monkeypatch.setitem(os.environ, name, NO_INDEX)
    monkeypatch.setitem(os.environ, "PIP_FIND_LINKS", "")
    monkeypatch.setitem(os.environ, "npm_config_cache", str(tmp_path / "npm"))
    monkeypatch.setitem(os.environ, "npm_config_fetch_retry_mintimeout", "10")
    available(SDKS["@" in text])
    with pytest.raises(DeltatapeError, match=r"cannot be installed: .* can be reached"):
        made(parse_spec(text), tmp_path)
    assert left(tmp_path) == []


def test_without_npm_it_is_told_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "PATH", str(tmp_path))
    with pytest.raises(DeltatapeError, match=r"needs Node\.js 20 or newer with npm in PATH"):
        made(parse_spec("ai@6"), tmp_path)
    assert left(tmp_path) == []


def test_a_cache_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "deltatape").write_text("a file")
    with pytest.raises(DeltatapeError, match="Not a directory"):
        installed(parse_spec("ai@6"), lambda _: None, {"XDG_CACHE_HOME": str(tmp_path)})


def test_the_cache_is_the_users_unless_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "HOME", "/home/somebody")
    assert cache({}) == Path("/home/somebody/.cache/deltatape/sdks")
    assert cache({"XDG_CACHE_HOME": "relative"}) == cache({})
    assert cache({"XDG_CACHE_HOME": "/var/c"}) == Path("/var/c/deltatape/sdks")


@pytest.mark.parametrize(
    ("text", "ecosystem", "name", "version"),
    [
        ("openai==3.54.0", Ecosystem.PYTHON, "openai", "3.54.0"),
        ("openai==3.54.*", Ecosystem.PYTHON, "openai", "3.54.*"),
        ("langchain-openai==1.7rc1", Ecosystem.PYTHON, "langchain-openai", "1.7rc1"),
        ("openai==1rc1", Ecosystem.PYTHON, "openai", "1rc1"),
        ("openai@7", Ecosystem.NODE, "openai", "7"),
        ("@anthropic-ai/sdk@0.60.1", Ecosystem.NODE, "@anthropic-ai/sdk", "0.60.1"),
    ],
)
def test_the_sign_tells_where_a_package_comes_from(
    text: str, ecosystem: Ecosystem, name: str, version: str
) -> None:
    spec = parse_spec(text)
    assert spec == (text, ecosystem, name, version)
    assert spec.requirements == (text,)


def test_packages_that_work_with_it_come_in_the_versions_that_fit() -> None:
    assert parse_spec("ai@6.0.1").requirements == (
        "ai@6.0.1",
        "@ai-sdk/openai-compatible@2",
        "@ai-sdk/openai@3",
        "@ai-sdk/anthropic@3",
    )
    assert parse_spec("@ai-sdk/openai@4").requirements == ("@ai-sdk/openai@4", "ai@7")


@pytest.mark.parametrize("text", ["openai", "openai=3", "openai==", "ai@latest", "ai@6; rm", ""])
def test_what_names_no_version_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"such as openai==3\.54\.0 from PyPI or ai@6 from npm"):
        parse_spec(text)


def test_an_unknown_package_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(UsageError, match=r"unknown; known are openai==VERSION, .*, ai@VERSION, "):
        parse_spec("requests==2.0")
    with pytest.raises(UsageError, match="unknown"):
        parse_spec("ai==6")


def test_a_version_without_the_interface_is_refused() -> None:
    with pytest.raises(UsageError, match=r"'ai@4\.3\.1': too old; ai 5 and later are accepted"):
        parse_spec("ai@4.3.1")


def test_the_known_ones_go_by_dialect() -> None:
    assert known("gemini") == ["google-genai==VERSION"]
    assert known("cohere") == []
    assert len(known()) == sum(len(packages) for packages in PACKAGES.values())


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


def test_what_an_sdk_throws_and_what_it_refuses_is_reported(surroundings: dict[str, str]) -> None:
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
