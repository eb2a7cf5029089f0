"""Proxies as curl reads them, certificates that are tried at the start, and no secret in a text."""

import base64
import ssl
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
import trustme

from deltatape.errors import UsageError
from deltatape.gateway.outbound import OutboundSettings, Proxy, outbound_from
from helpers.corporate import server_context

HTTPS = ("https", "api.example.com", 443)


def proxy_of(environment: Mapping[str, str], *target: str | int) -> str | None:
    scheme, host, port = target or HTTPS
    assert isinstance(scheme, str)
    assert isinstance(host, str)
    proxy = outbound_from(environment).proxy_for(scheme, host, int(port))
    return None if proxy is None else proxy.url


def problem(environment: Mapping[str, str], **files: Path) -> str:
    with pytest.raises(UsageError) as caught:
        outbound_from(environment, **files)
    return str(caught.value)


# Which proxy.


def test_without_variables_everything_is_direct() -> None:
    assert outbound_from({}) == OutboundSettings()
    assert proxy_of({}) is None


@pytest.mark.parametrize(
    ("environment", "https", "http"),
    [
        ({"HTTPS_PROXY": "http://a:1"}, "http://a:1", None),
        ({"HTTP_PROXY": "http://a:1"}, None, "http://a:1"),
        ({"https_proxy": "http://a:1", "HTTPS_PROXY": "http://b:2"}, "http://a:1", None),
        ({"ALL_PROXY": "http://a:1"}, "http://a:1", "http://a:1"),
        ({"all_proxy": "http://a:1", "HTTPS_PROXY": "http://b:2"}, "http://b:2", "http://a:1"),
        ({"https_proxy": "", "HTTPS_PROXY": "http://b:2", "ALL_PROXY": "http://c:3"}, None, "c:3"),
        ({"https_proxy": " "}, None, None),
        ({"HTTPS_PROXY": "http://a:1", "NO_PROXY": "*"}, None, None),
        ({"ALL_PROXY": "socks5://a:1", "no_proxy": "x, *"}, None, None),
    ],
)
def test_the_first_variable_that_exists_decides(
    environment: Mapping[str, str], https: str | None, http: str | None
) -> None:
    assert proxy_of(environment) == https
    plain = proxy_of(environment, "http", "api.example.com", 80)
    assert plain == http or str(plain).endswith(str(http))


@pytest.mark.parametrize(
    ("value", "url"),
    [
        ("http://proxy", "http://proxy:80"),
        ("https://proxy", "https://proxy:443"),
        ("proxy:3128", "http://proxy:3128"),
        ("HTTP://Proxy:3128/", "http://proxy:3128"),
        ("http://[fd00::1]:3128", "http://[fd00::1]:3128"),
        ("http://ann:pw@proxy:3128", "http://proxy:3128"),
    ],
)
def test_a_proxy_has_a_scheme_and_a_port(value: str, url: str) -> None:
    assert proxy_of({"HTTPS_PROXY": value}) == url


@pytest.mark.parametrize(
    ("value", "pair"),
    [
        ("http://ann:pw@proxy:1", b"ann:pw"),
        ("http://ann@proxy:1", b"ann:"),
        ("http://ann:a%40b%3Ac@proxy:1", b"ann:a@b:c"),
        ("http://corp%5Cann:%C3%BC@proxy:1", "corp\\ann:ü".encode()),
    ],
)
def test_credentials_become_basic(value: str, pair: bytes) -> None:
    proxy = outbound_from({"HTTPS_PROXY": value}).https_proxy
    assert isinstance(proxy, Proxy)
    assert proxy.authorization == b"Basic " + base64.b64encode(pair)
    assert base64.b64encode(pair).decode() not in repr(proxy)


@pytest.mark.parametrize(
    "value",
    [
        "socks5://ann:pw@proxy:1080",
        "ftp://ann:pw@proxy",
        "http://ann:pw@",
        "http://ann:pw@proxy:99999",
        "http://ann:pw@proxy:x",
        "http://ann:p/pw@proxy:1",
        "http://ann:pw@[::1",
    ],
)
def test_what_is_no_proxy_is_refused_without_the_password(value: str) -> None:
    text = problem({"HTTPS_PROXY": value})
    assert text.startswith("HTTPS_PROXY '")
    assert "***@" in text
    assert "pw" not in text
    assert "use http://[USER:PASSWORD@]HOST:PORT" in text


def test_socks_is_named_as_what_it_is() -> None:
    assert "SOCKS is not supported" in problem({"all_proxy": "socks5h://proxy:1080"})


# What is reached directly.


@pytest.mark.parametrize(
    ("entries", "host", "port"),
    [
        ("example.com", "example.com", 443),
        ("example.com", "api.example.com", 443),
        (".example.com", "API.Example.com.", 443),
        ("*.example.com", "api.example.com", 443),
        ("other,example.com:443", "api.example.com", 443),
        ("other example.com", "example.com", 443),
        ("192.0.2.7", "192.0.2.7", 443),
        ("192.0.2.0/24", "192.0.2.7", 443),
        ("192.0.2.0/24:8443", "192.0.2.7", 8443),
        ("2001:db8::/32", "2001:db8::7", 443),
        ("[2001:db8::7]:443", "2001:db8::7", 443),
        ("[2001:db8::7]", "2001:db8::7", 1),
        ("", "localhost", 443),
        ("", "127.1.2.3", 443),
        ("", "::1", 443),
    ],
)
def test_no_proxy_covers(entries: str, host: str, port: int) -> None:
    environment = {"HTTPS_PROXY": "http://a:1", "NO_PROXY": entries}
    assert proxy_of(environment, "https", host, port) is None


@pytest.mark.parametrize(
    ("entries", "host", "port"),
    [
        ("example.com", "notexample.com", 443),
        ("example.com", "example.com.evil", 443),
        ("example.com:80", "example.com", 443),
        ("192.0.2.0/24", "192.0.3.7", 443),
        ("192.0.2.0/24:80", "192.0.2.7", 443),
        ("192.0.2.0/24", "2001:db8::7", 443),
        ("2.7", "192.0.2.7", 443),
        (", . ,,", "example.com", 443),
        ("192.0.2.0/99", "192.0.2.7", 443),
    ],
)
def test_no_proxy_does_not_cover(entries: str, host: str, port: int) -> None:
    environment = {"HTTPS_PROXY": "http://a:1", "NO_PROXY": entries}
    assert proxy_of(environment, "https", host, port) == "http://a:1"


def test_lower_case_no_proxy_wins() -> None:
    environment = {"HTTPS_PROXY": "http://a:1", "no_proxy": "b", "NO_PROXY": "api.example.com"}
    assert proxy_of(environment) == "http://a:1"


# Certificates.


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


def trusts(outbound: OutboundSettings, authority: trustme.CA) -> bool:
    """Whether a handshake with a server of `authority` succeeds."""
    client, server = (ssl.MemoryBIO(), ssl.MemoryBIO()), (ssl.MemoryBIO(), ssl.MemoryBIO())
    a = outbound.trust.upstream_context().wrap_bio(*client, server_hostname="api.test")
    b = server_context(authority, "api.test").wrap_bio(*server, server_side=True)
    for _ in range(4):
        for side, out, far in ((a, client[1], server[0]), (b, server[1], client[0])):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLError:
                return False
            far.write(out.read())
    return True


def test_ca_is_trusted_besides_the_system_s(authority: trustme.CA, tmp_path: Path) -> None:
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    assert not trusts(outbound_from({}), authority)
    outbound = outbound_from({}, ca=tmp_path / "ca.pem")
    assert trusts(outbound, authority)
    system = outbound_from({}).trust.upstream_context().cert_store_stats()["x509_ca"]
    assert outbound.trust.upstream_context().cert_store_stats()["x509_ca"] == system + 1


def test_ssl_cert_file_takes_the_place_of_the_system_s_file(
    authority: trustme.CA, tmp_path: Path
) -> None:
    other = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "one.pem"))
    other.cert_pem.write_to_path(str(tmp_path / "other.pem"))
    environment = {"SSL_CERT_FILE": str(tmp_path / "one.pem")}
    assert trusts(outbound_from(environment), authority)
    assert not trusts(outbound_from(environment), other)
    both = outbound_from(environment, ca=tmp_path / "other.pem")
    assert trusts(both, authority)
    assert trusts(both, other)
    assert both.trust.upstream_context().cert_store_stats()["x509_ca"] == 2


def test_ssl_cert_dir_is_a_folder_of_hashed_names(authority: trustme.CA, tmp_path: Path) -> None:
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    subprocess.run(["openssl", "rehash", str(tmp_path)], check=True, timeout=300)
    assert trusts(outbound_from({"SSL_CERT_DIR": str(tmp_path)}), authority)


def test_an_intermediate_certificate_may_be_all_that_is_trusted(
    authority: trustme.CA, tmp_path: Path
) -> None:
    middle = authority.create_child_ca()
    middle.cert_pem.write_to_path(str(tmp_path / "middle.pem"))
    assert trusts(outbound_from({}, ca=tmp_path / "middle.pem"), middle)


def test_tls_secrets_are_logged_where_the_variable_says(
    authority: trustme.CA, tmp_path: Path
) -> None:
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    log = tmp_path / "keys.log"
    outbound = outbound_from({"SSLKEYLOGFILE": str(log)}, ca=tmp_path / "ca.pem")
    assert trusts(outbound, authority)
    assert "CLIENT_HANDSHAKE_TRAFFIC_SECRET" in log.read_text()


def test_a_proxy_is_not_shown_the_client_certificate(authority: trustme.CA, tmp_path: Path) -> None:
    cert = authority.issue_cert("ann.test")
    cert.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "ann.pem"))
    outbound = outbound_from({}, client_cert=tmp_path / "ann.pem")
    assert outbound.trust.proxy_context() is not outbound.trust.upstream_context()


def test_files_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    text = tmp_path / "text.pem"
    text.write_text("no certificate\n")
    missing = tmp_path / "missing.pem"
    assert "No such file" in problem({}, ca=missing)
    assert "No such file" in problem({"SSL_CERT_FILE": str(missing)})
    assert "no such folder" in problem({"SSL_CERT_DIR": str(missing)})
    assert "no certificate or crl found" in problem({}, ca=text)
    assert problem({}, ca=text).startswith(f"--ca {str(text)!r}: ")
    assert "No such file" in problem({}, client_cert=missing)
    assert "without its certificate" in problem({}, client_key=missing)
    assert problem({}, client_cert=text) == (
        f"--client-cert {str(text)!r}: no certificate with its key; use PEM files with a"
        " certificate and its key, without a passphrase"
    )


def test_a_key_must_belong_to_its_certificate_and_have_no_passphrase(
    authority: trustme.CA, tmp_path: Path
) -> None:
    one, other = authority.issue_cert("a.test"), authority.issue_cert("b.test")
    cert, key, foreign = tmp_path / "a.pem", tmp_path / "a.key", tmp_path / "b.key"
    one.cert_chain_pems[0].write_to_path(str(cert))
    one.private_key_pem.write_to_path(str(key))
    other.private_key_pem.write_to_path(str(foreign))
    locked = tmp_path / "locked.key"
    subprocess.run(
        ["openssl", "pkey", "-in", key, "-aes128", "-passout", "pass:x1234", "-out", locked],
        check=True,
        timeout=300,
        capture_output=True,
    )
    outbound_from({}, client_cert=cert, client_key=key)
    mismatched = problem({}, client_cert=cert, client_key=foreign)
    assert "key values mismatch" in mismatched
    assert str(foreign) in mismatched
    assert "has a passphrase" in problem({}, client_cert=cert, client_key=locked)
    assert "No such file" in problem({}, client_cert=cert, client_key=tmp_path / "none")
