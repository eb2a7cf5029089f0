"""An SDK is installed once, by pip or npm, into the user's cache; what fails is told and undone."""

import os
from pathlib import Path

import pytest

from deltatape.errors import DeltatapeError
from deltatape.sdks.install import cache, installed
from deltatape.sdks.packages import SdkSpec, parse_spec
from helpers.clients import SDKS, available

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
def test_without_a_registry_it_is_told_and_nothing_is_left(
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


def test_a_cache_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "deltatape").write_text("a file")
    with pytest.raises(DeltatapeError, match="Not a directory"):
        installed(parse_spec("ai@6"), lambda _: None, {"XDG_CACHE_HOME": str(tmp_path)})


def test_the_cache_is_the_users_unless_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "HOME", "/home/somebody")
    assert cache({}) == Path("/home/somebody/.cache/deltatape/sdks")
    assert cache({"XDG_CACHE_HOME": "relative"}) == cache({})
    assert cache({"XDG_CACHE_HOME": "/var/c"}) == Path("/var/c/deltatape/sdks")
