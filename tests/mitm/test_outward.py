"""How a mitmproxy that deltatape starts gets out of a company's network."""

import json
import os
import stat
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import trustme

from deltatape.errors import UsageError
from deltatape.gateway.outbound import OutboundSettings, Proxy, ProxyBypass, outbound_from
from deltatape.mitm.environment import mitmproxy_environment
from deltatape.mitm.ipc import CA_FILE, CA_FOLDER, CLIENT_CERTS, OPTIONS_VARIABLE, PROXY_LOGIN
from deltatape.mitm.mitmdump import MitmOptions, arguments
from deltatape.store.reader import open_tape
from helpers.corporate_network import EVENTS, LLM, LOGIN, OTHER, CorporateNetwork, corporate_network
from helpers.mitm import NEWEST, Recorded, confdir, installed, ran, recorder, variables
from helpers.upstream import run

LIMIT_S = 90
CURL = f"curl -sSN -d '{{}}' https://{LLM}/v1/chat/completions && curl -sSN https://{OTHER}/ -o o"
PLAIN = MitmOptions(host="127.0.0.1", port=8377, upstream=None, to=Path("t"))
SPY = f"""
import os
from mitmproxy import ctx

def client_connected(client):
    with open("spied", "w") as file:
        file.write(f"{{ctx.options.upstream_auth}} {{os.environ.get({OPTIONS_VARIABLE!r})}}")
"""
PS = "ps -ww -eo args > ps; env > env; "


def values(options: MitmOptions, environment: dict[str, str]) -> dict[str, str]:
    """What mitmproxy is handed."""
    with mitmproxy_environment(options, environment) as theirs:
        handed: dict[str, str] = json.loads(theirs[OPTIONS_VARIABLE])
        return handed


def behind(folder: Path, outbound: OutboundSettings) -> MitmOptions:
    to, more = folder / "tapes", confdir(folder)
    return replace(PLAIN, port=0, to=to, hosts=(LLM,), more=more, outbound=outbound)


def exchanges(folder: Path) -> list[bytes]:
    (path,) = (folder / "tapes").glob("*.tape")
    return [each.body for each in open_tape(path)]


@pytest.mark.parametrize("version", NEWEST)
def test_a_command_gets_out_by_the_company_s_proxy_and_its_authority(
    tmp_path: Path, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    spy = tmp_path / "spy.py"
    spy.write_text(SPY)
    own = variables(tmp_path, installed(version))

    async def scenario() -> tuple[int | None, Recorded, CorporateNetwork]:
        async with corporate_network(tmp_path) as net:
            env = {**own, "HTTPS_PROXY": net.url, "SSL_CERT_FILE": str(net.ca_file)}
            chosen = behind(tmp_path, outbound_from(env))
            chosen = replace(chosen, more=(*chosen.more, "-s", str(spy)))
            argv = ("sh", "-c", f"{PS}curl -sS http://127.0.0.1:{net.port}/ -o p; {CURL}")
            recorded = recorder(chosen, env, argv)
            return await recorded.session.run(), recorded, net

    code, recorded, net = run(scenario(), limit_s=LIMIT_S)
    lines = recorded.lines
    assert code == 0, lines
    assert not recorded.reporter.trouble
    assert exchanges(tmp_path) == [b"".join(EVENTS)]
    assert (tmp_path / "o").read_bytes() == b"".join(EVENTS)
    assert (tmp_path / "p").read_bytes() == b"".join(EVENTS)
    assert net.proxy.passed == [f"{LLM}:443", f"{OTHER}:443"]
    assert f"  through  http://127.0.0.1:{net.proxy.port} (HTTPS_PROXY)" in lines
    seen = (tmp_path / "ps").read_text()
    assert f"upstream:http://127.0.0.1:{net.proxy.port}" in seen
    assert "s3cret" not in seen
    assert OPTIONS_VARIABLE not in (tmp_path / "env").read_text()
    # Nor does what mitmproxy itself starts inherit the login.
    assert (tmp_path / "spied").read_text() == "ann:s3cret:x None"


@pytest.mark.parametrize("version", NEWEST)
@pytest.mark.parametrize("files", ["two", "one"])
def test_options_name_the_authority_and_the_certificate_to_show(
    tmp_path: Path, version: str, files: str
) -> None:
    clients = trustme.CA()
    me = clients.issue_cert("ann@company.test")
    cert, key = tmp_path / "me.pem", tmp_path / "me.key"
    if files == "two":
        # Beside another's key, which is not the one to use.
        other = clients.issue_cert("bob@company.test").private_key_pem.bytes()
        cert.write_bytes(me.cert_chain_pems[0].bytes() + other)
        me.private_key_pem.write_to_path(str(key))
    else:
        me.private_key_and_cert_chain_pem.write_to_path(str(cert))
    own = variables(tmp_path, installed(version))

    async def scenario() -> tuple[int, str, str]:
        async with corporate_network(tmp_path, clients) as net:
            env = {**own, "HTTPS_PROXY": net.url}
            argv = [sys.executable, "-m", "deltatape", "record", "--via", "mitm", "--no-log"]
            argv += ["--hosts", LLM, "--to", str(tmp_path / "tapes"), "--ca", str(net.ca_file)]
            argv += [
                "--client-cert",
                str(cert),
                *(("--client-key", str(key)) if files == "two" else ()),
            ]
            argv += ["--", "curl", "-sSN", "-d", "{}", f"https://{LLM}/v1/chat/completions"]
            return await ran(*argv, env=env, cwd=tmp_path)

    code, out, err = run(scenario(), limit_s=LIMIT_S)
    assert code == 0, err
    assert out.encode() == b"".join(EVENTS), err
    assert exchanges(tmp_path) == [b"".join(EVENTS)]
    assert not list(tmp_path.rglob("mitm-*/*.pem"))


def test_without_anything_named_the_system_s_roots_are_trusted(tmp_path: Path) -> None:
    handed = values(PLAIN, {"XDG_STATE_HOME": str(tmp_path / "state")})
    assert set(handed) <= {CA_FILE, CA_FOLDER}
    assert Path(handed[CA_FILE]).read_text().count("BEGIN CERTIFICATE") > 50
    assert not (tmp_path / "state").exists()


def test_a_file_or_folder_of_the_user_s_replaces_the_system_s(tmp_path: Path) -> None:
    file = tmp_path / "own.pem"
    trustme.CA().cert_pem.write_to_path(str(file))
    folders = f"{tmp_path}{os.pathsep}{tmp_path}"
    env = {"SSL_CERT_FILE": str(file), "SSL_CERT_DIR": folders}
    handed = values(replace(PLAIN, outbound=outbound_from(env)), env)
    assert handed == {CA_FILE: str(file), CA_FOLDER: folders}


def test_what_is_put_together_is_the_owner_s_alone_and_goes_with_the_run(tmp_path: Path) -> None:
    authority = trustme.CA()
    file, extra = tmp_path / "own.pem", tmp_path / "extra.pem"
    for path in (file, extra):
        authority.cert_pem.write_to_path(str(path))
    me = authority.issue_cert("ann@company.test")
    cert, key = tmp_path / "me.pem", tmp_path / "me.key"
    me.cert_chain_pems[0].write_to_path(str(cert))
    me.private_key_pem.write_to_path(str(key))
    env = {"SSL_CERT_FILE": str(file), "XDG_STATE_HOME": str(tmp_path / "state")}
    outbound = outbound_from(env, ca=extra, client_cert=cert, client_key=key)
    with mitmproxy_environment(replace(PLAIN, outbound=outbound), env) as theirs:
        handed = json.loads(theirs[OPTIONS_VARIABLE])
        both, shown = Path(handed[CA_FILE]), Path(handed[CLIENT_CERTS])
        assert (
            both.read_text() == file.read_text().strip() + "\n" + extra.read_text().strip() + "\n"
        )
        assert shown.read_text() == key.read_text().strip() + "\n" + cert.read_text().strip() + "\n"
        assert stat.S_IMODE(shown.stat().st_mode) == 0o600
        assert stat.S_IMODE(shown.parent.stat().st_mode) == 0o700
    assert not list((tmp_path / "state" / "deltatape").iterdir())


def test_a_folder_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    extra = tmp_path / "extra.pem"
    trustme.CA().cert_pem.write_to_path(str(extra))
    env = {"XDG_STATE_HOME": str(extra)}
    with pytest.raises(UsageError, match="Not a directory"):
        values(replace(PLAIN, outbound=outbound_from(env, ca=extra)), env)


def test_a_proxy_is_mitmproxy_s_mode_and_its_login_is_not_in_the_arguments() -> None:
    env = {"https_proxy": f"http://{LOGIN}@proxy.company.test:3128"}
    options = replace(PLAIN, outbound=outbound_from(env))
    assert arguments(options)[:3] == [
        "--quiet",
        "--mode",
        "upstream:http://proxy.company.test:3128",
    ]
    assert "s3cret" not in " ".join(arguments(options))
    assert values(options, env)[PROXY_LOGIN] == "ann:s3cret:x"
    without = {"https_proxy": "proxy.company.test:3128"}
    assert PROXY_LOGIN not in values(replace(PLAIN, outbound=outbound_from(without)), without)


def test_one_upstream_knows_no_proxy_and_gets_no_login() -> None:
    env = {"HTTPS_PROXY": f"http://{LOGIN}@proxy.company.test:3128"}
    options = replace(PLAIN, outbound=outbound_from(env), upstream="https://api.openai.com")
    assert arguments(options)[2] == "reverse:https://api.openai.com"
    assert PROXY_LOGIN not in values(options, env)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0.0.0.0"])  # noqa: S104 - not bound
def test_the_variable_that_leads_to_mitmproxy_does_not_lead_it_to_itself(host: str) -> None:
    proxy = Proxy(scheme="http", host=host, port=8377, variable="HTTPS_PROXY")
    options = replace(PLAIN, host=host, outbound=OutboundSettings(https_proxy=proxy))
    assert options.proxy is None
    assert replace(options, port=8378).proxy == proxy


def test_a_login_without_a_name_is_refused() -> None:
    env = {"HTTPS_PROXY": "http://:s3cret@proxy.company.test:3128"}
    with pytest.raises(UsageError, match="without a user's name") as caught:
        values(replace(PLAIN, outbound=outbound_from(env)), env)
    assert "s3cret" not in str(caught.value)


def test_no_proxy_for_everything_leaves_no_proxy() -> None:
    env = {"HTTPS_PROXY": "http://proxy.company.test:3128", "NO_PROXY": "*"}
    options = replace(PLAIN, outbound=outbound_from(env))
    assert options.outbound.direct == ProxyBypass(everything=True)
    assert arguments(options)[2] == "regular"
