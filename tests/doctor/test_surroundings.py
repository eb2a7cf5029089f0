"""What doctor says of the environment: proxies, certificates, base URLs, keys."""

from pathlib import Path

import pytest

from deltatape.doctor.surroundings import known_settings, surroundings_remarks
from deltatape.render.doctor import Level, Remark
from helpers.projects import put
from helpers.upstream import free_port

ROUTER = "https://openrouter.ai/api/v1"


def remarks(folder: Path, **environment: str) -> list[Remark]:
    return list(surroundings_remarks(folder, environment))


def remark(folder: Path, words: str, **environment: str) -> Remark:
    (found,) = (each for each in remarks(folder, **environment) if words in each.text)
    return found


def test_an_empty_environment_lacks_only_a_key(tmp_path: Path) -> None:
    (found,) = remarks(tmp_path)
    assert (found.level, found.text[:24]) == (Level.NOTE, "no provider's key is set")


def test_a_proxy_is_shown_without_its_password(tmp_path: Path) -> None:
    found = remark(tmp_path, "PROXY", HTTPS_PROXY="http://me:fake@proxy.example:3128")
    assert found.level is Level.OK
    assert found.text == "HTTPS_PROXY=http://***@proxy.example:3128: the way to the providers"
    assert "fake" not in remark(tmp_path, "PROXY", HTTPS_PROXY="me:fake@proxy:1").text


@pytest.mark.parametrize(
    ("excepted", "level"),
    [
        ({}, Level.NOTE),
        ({"NO_PROXY": "corp.example"}, Level.NOTE),
        ({"NO_PROXY": "127.0.0.1"}, Level.NOTE),
        ({"NO_PROXY": "127.0.0.1, localhost"}, Level.OK),
        ({"no_proxy": "*"}, Level.OK),
    ],
)
def test_a_proxy_that_also_gets_what_is_for_loopback_is_noted(
    tmp_path: Path, excepted: dict[str, str], level: Level
) -> None:
    found = remark(tmp_path, "http_proxy", http_proxy="http://proxy:1", **excepted)
    assert found.level is level


def test_certificates_are_read(tmp_path: Path) -> None:
    bundle = "/etc/ssl/certs/ca-certificates.crt"
    empty = tmp_path / "empty"
    empty.mkdir()
    put(tmp_path, "none.pem", "no certificate")
    found = {
        each.text: each.level
        for each in remarks(
            tmp_path,
            SSL_CERT_FILE=bundle,
            SSL_CERT_DIR="/etc/ssl/certs",
            REQUESTS_CA_BUNDLE=str(tmp_path / "none.pem"),
            CURL_CA_BUNDLE=str(tmp_path / "gone.pem"),
            AWS_CA_BUNDLE=str(empty),
            NODE_EXTRA_CA_CERTS="",
        )
    }
    place = "(the environment)"
    assert found.pop("certificates that can be read: SSL_CERT_FILE, SSL_CERT_DIR") is Level.OK
    for text in (
        f"REQUESTS_CA_BUNDLE={tmp_path}/none.pem {place}: holds no certificate that can be read",
        f"CURL_CA_BUNDLE={tmp_path}/gone.pem {place}: No such file or directory",
        f"AWS_CA_BUNDLE={empty} {place}: the folder is empty",
    ):
        assert found[text] is Level.PROBLEM


def test_where_base_urls_point_is_told_also_from_env_files(tmp_path: Path) -> None:
    put(tmp_path, ".env", f"# mine\nOPENAI_BASE_URL={ROUTER}\nno line\n")
    found = remark(tmp_path, "openrouter.ai")
    assert found.level is Level.OK
    assert found.text == (
        f"OPENAI_BASE_URL in .env:2 points at {ROUTER}: taped as /openrouter/api/v1"
    )
    assert remark(tmp_path, ".env:3").level is Level.NOTE
    assert known_settings(tmp_path, {})["OPENAI_BASE_URL"].value == ROUTER


def test_a_base_url_at_a_gateway_that_is_not_there_is_noted(tmp_path: Path) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/openai/v1"
    found = remark(
        tmp_path, "none listens", OPENAI_BASE_URL=url, DELTATAPE_URL=f"http://127.0.0.1:{port}"
    )
    assert found.text == (
        "OPENAI_BASE_URL (the environment) points at a deltatape, and none listens there"
    )
    assert found.fix.startswith("start `deltatape record` first")


def test_variables_that_contradict_each_other_are_noted(tmp_path: Path) -> None:
    azure = "https://x.openai.azure.com"
    found = remark(
        tmp_path, "are both set", AZURE_OPENAI_ENDPOINT=azure, OPENAI_BASE_URL="https://x.example"
    )
    assert found.level is Level.NOTE
    found = remark(tmp_path, "differ", OPENAI_BASE_URL=ROUTER, OPENAI_API_BASE="https://x.example")
    assert found.level is Level.NOTE
    same = remarks(tmp_path, OPENAI_BASE_URL=ROUTER, OPENAI_API_BASE=ROUTER)
    assert not any("differ" in each.text for each in same)


def test_of_keys_only_the_names_are_told(tmp_path: Path) -> None:
    put(tmp_path, ".env", "ANTHROPIC_API_KEY=sk-fake-000000\n")
    found = remark(
        tmp_path,
        "keys:",
        OPENAI_API_KEY="sk-fake-111111",
        GEMINI_API_KEY="fake",
        MISTRAL_API_KEY="",
        STRIPE_API_KEY="fake",
    )
    assert found.text == (
        "keys: ANTHROPIC_API_KEY (.env:1), GEMINI_API_KEY (the environment),"
        " OPENAI_API_KEY (the environment)"
    )
