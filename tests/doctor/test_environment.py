"""What doctor says of the environment: proxies, certificates, base URLs, keys."""

import os
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from deltatape.doctor.environment import (
    client_remarks,
    known_settings,
    listens_deltatape,
    machine_remarks,
    port_remark,
    surroundings_remarks,
)
from deltatape.render.doctor import DoctorRemark, RemarkLevel
from helpers.program import program
from helpers.projects import put
from helpers.upstream import free_port

ROUTER = "https://openrouter.ai/api/v1"


def remarks(folder: Path, **environment: str) -> list[DoctorRemark]:
    return list(surroundings_remarks(folder, environment))


def remark(folder: Path, words: str, **environment: str) -> DoctorRemark:
    (found,) = (each for each in remarks(folder, **environment) if words in each.text)
    return found


def test_an_empty_environment_lacks_only_a_key(tmp_path: Path) -> None:
    (found,) = remarks(tmp_path)
    assert (found.level, found.text[:24]) == (RemarkLevel.NOTE, "no provider's key is set")


def test_a_proxy_is_shown_without_its_password(tmp_path: Path) -> None:
    found = remark(tmp_path, "PROXY", HTTPS_PROXY="http://me:fake@proxy.example:3128")
    assert found.level is RemarkLevel.OK
    assert found.text == "HTTPS_PROXY=http://***@proxy.example:3128: the way to the providers"
    assert "fake" not in remark(tmp_path, "PROXY", HTTPS_PROXY="me:fake@proxy:1").text


@pytest.mark.parametrize(
    ("excepted", "level"),
    [
        ({}, RemarkLevel.NOTE),
        ({"NO_PROXY": "corp.example"}, RemarkLevel.NOTE),
        ({"NO_PROXY": "127.0.0.1"}, RemarkLevel.NOTE),
        ({"NO_PROXY": "127.0.0.1, localhost"}, RemarkLevel.OK),
        ({"no_proxy": "*"}, RemarkLevel.OK),
    ],
)
def test_a_proxy_that_also_gets_what_is_for_loopback_is_noted(
    tmp_path: Path, excepted: dict[str, str], level: RemarkLevel
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
    assert found.pop("certificates that can be read: SSL_CERT_FILE, SSL_CERT_DIR") is RemarkLevel.OK
    for text in (
        f"REQUESTS_CA_BUNDLE={tmp_path}/none.pem {place}: holds no certificate that can be read",
        f"CURL_CA_BUNDLE={tmp_path}/gone.pem {place}: No such file or directory",
        f"AWS_CA_BUNDLE={empty} {place}: the folder is empty",
    ):
        assert found[text] is RemarkLevel.PROBLEM


def test_where_base_urls_point_is_reported_also_from_env_files(tmp_path: Path) -> None:
    put(tmp_path, ".env", f"# mine\nOPENAI_BASE_URL={ROUTER}\nno line\n")
    found = remark(tmp_path, "openrouter.ai")
    assert found.level is RemarkLevel.OK
    assert found.text == (
        f"OPENAI_BASE_URL in .env:2 points at {ROUTER}: taped as /openrouter/api/v1"
    )
    assert remark(tmp_path, ".env:3").level is RemarkLevel.NOTE
    assert known_settings(tmp_path, {})["OPENAI_BASE_URL"].value == ROUTER


def test_a_base_url_at_a_gateway_that_is_not_there_is_noted(tmp_path: Path) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/openai/v1"
    found = remark(
        tmp_path, "none is running", OPENAI_BASE_URL=url, DELTATAPE_URL=f"http://127.0.0.1:{port}"
    )
    assert found.text == (
        "OPENAI_BASE_URL (the environment) points at a deltatape, but none is running there"
    )
    assert found.fix.startswith("start `deltatape record` first")


def test_variables_that_contradict_each_other_are_noted(tmp_path: Path) -> None:
    azure = "https://x.openai.azure.com"
    found = remark(
        tmp_path, "are both set", AZURE_OPENAI_ENDPOINT=azure, OPENAI_BASE_URL="https://x.example"
    )
    assert found.level is RemarkLevel.NOTE
    found = remark(tmp_path, "differ", OPENAI_BASE_URL=ROUTER, OPENAI_API_BASE="https://x.example")
    assert found.level is RemarkLevel.NOTE
    same = remarks(tmp_path, OPENAI_BASE_URL=ROUTER, OPENAI_API_BASE=ROUTER)
    assert not any("differ" in each.text for each in same)


def test_of_keys_only_the_names_are_reported(tmp_path: Path) -> None:
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


def machine_remark(folder: Path, words: str) -> DoctorRemark:
    (found,) = (each for each in machine_remarks(folder) if words in each.text)
    return found


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, timeout=300)


def test_versions_and_extras_are_reported(tmp_path: Path) -> None:
    texts = [each.text for each in machine_remarks(tmp_path)]
    assert texts[0].startswith("deltatape 0.")
    assert any(text.startswith("brotli ") for text in texts)
    assert any(text.startswith("mitmproxy ") for text in texts)


def test_a_free_port_is_fine() -> None:
    port = free_port()
    assert port_remark(port) == DoctorRemark(level=RemarkLevel.OK, text=f"port {port} is free")


@pytest.mark.parametrize("options", [(), ("--upstream", "http://127.0.0.1:9")])
def test_a_deltatape_that_listens_is_recognised_and_forwards_nothing(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    with program("record", "--listen", "127.0.0.1:0", *options, folder=tmp_path) as running:
        found = port_remark(running.port)
        assert running.stop()[1].count("0 exchanges taped") == 1
    assert found.level is RemarkLevel.NOTE
    assert found.text == f"a deltatape listens on port {running.port} already"


def test_something_else_that_listens_is_told_apart() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]

        def serve() -> None:
            connection, _ = server.accept()
            connection.recv(4096)
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            connection.close()

        thread = threading.Thread(target=serve)
        thread.start()
        found = port_remark(port)
        thread.join(10)
    assert found.level is RemarkLevel.NOTE
    assert "Address already in use" in found.text
    assert "no deltatape" in found.text


def test_who_accepts_and_says_nothing_is_not_waited_for_long() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert not listens_deltatape(server.getsockname()[1])
    assert not listens_deltatape(free_port())


def test_the_folder_is_made_when_needed_and_nothing_is_made_now(tmp_path: Path) -> None:
    found = machine_remark(tmp_path, "tapes go to")
    assert found.level is RemarkLevel.OK
    assert "made when needed" in found.text
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_none_is_a_problem(tmp_path: Path) -> None:
    put(tmp_path, ".deltatape", "")
    assert machine_remark(tmp_path, "is not a folder").level is RemarkLevel.PROBLEM


def test_a_folder_for_everyone_is_noted(tmp_path: Path) -> None:
    tapes = tmp_path / ".deltatape"
    tapes.mkdir(mode=0o700)
    assert machine_remark(tmp_path, "tapes go to").level is RemarkLevel.OK
    tapes.chmod(0o755)
    found = machine_remark(tmp_path, "open to other users")
    assert (found.level, found.fix) == (RemarkLevel.NOTE, f"chmod 700 {tapes}")


def test_a_place_that_cannot_be_written_to_is_a_problem(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    # For root there is no such folder, but in a container a read-only mount.
    places = (tmp_path, Path("/proc/sys"), Path("/sys"))
    place = next((each for each in places if not os.access(each, os.W_OK)), None)
    if place is None:
        pytest.skip("root can write everywhere here")
    assert machine_remark(place, "not writable").level is RemarkLevel.PROBLEM


def test_a_full_disk_is_a_problem() -> None:
    # The kernel's own file systems have no room at all.
    found = machine_remark(
        Path("/sys") if Path("/sys").is_dir() else Path("/dev"), "free for tapes"
    )
    assert (found.level, found.text) == (RemarkLevel.PROBLEM, "0 B free for tapes")


def test_git_is_asked_whether_it_would_take_tapes(tmp_path: Path) -> None:
    tapes = tmp_path / ".deltatape"
    tapes.mkdir(mode=0o700)
    assert not any(each.text.startswith("git ") for each in machine_remarks(tmp_path))
    git(tmp_path, "init", "-q")
    assert machine_remark(tmp_path, "git does not ignore").level is RemarkLevel.PROBLEM
    put(tapes, ".gitignore", "*\n")
    assert machine_remark(tmp_path, "git ignores").level is RemarkLevel.OK
    put(tapes, "x.tape", "")
    git(tmp_path, "add", "-f", ".deltatape/x.tape")
    found = machine_remark(tmp_path, "git tracks")
    assert found.level is RemarkLevel.PROBLEM
    assert found.fix.startswith("git rm --cached -r .deltatape;")
    (tapes / ".gitignore").unlink()  # then the next `git add` would take them again
    found = machine_remark(tmp_path, "git tracks")
    assert found.fix.startswith(
        "git rm --cached -r .deltatape && echo '*' > .deltatape/.gitignore;"
    )


def test_without_git_nothing_is_said_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".deltatape").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not any(each.text.startswith("git ") for each in machine_remarks(tmp_path))


# Known programs.


def test_programs_on_the_path_are_told_with_what_keeps_them_from_the_recorder(
    tmp_path: Path,
) -> None:
    for name in ("claude", "codex", "aider"):
        put(tmp_path, f"bin/{name}", "").chmod(0o755)
    settings = '{"env": {"ANTHROPIC_BASE_URL": "https://llm.corp.example"}}'
    put(tmp_path, ".claude/settings.json", settings)
    environment = {"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path)}
    claude, codex, aider = client_remarks(tmp_path / "bin", environment)
    assert claude.level is codex.level is RemarkLevel.NOTE
    assert "in ~/.claude/settings.json points at https://llm.corp.example, and wins" in claude.text
    assert "start it with: deltatape record -- sh -c 'codex -c model_provider=dt" in codex.text
    assert (aider.level, aider.text) == (
        RemarkLevel.OK,
        "aider: `deltatape record -- aider` tapes it",
    )
    assert list(client_remarks(tmp_path, {"PATH": str(tmp_path)})) == []
