import pytest

from deltatape.gateway.access import check_access
from deltatape.gateway.addressing import Addressed
from deltatape.http1.head import parse_request


def code(
    *fields: str,
    line: str = "POST /x HTTP/1.1",
    guarded: bool = False,
    local: bool = True,
    token: bool = False,
) -> str | None:
    raw = "\r\n".join((line, *fields, "", "")).encode("latin-1")
    addressed = Addressed(b"/x", None, token)
    refusal = check_access(parse_request(raw), addressed, guarded=guarded, local=local)
    return refusal.code if refusal else None


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1:8377", "localhost:8377", "LOCALHOST", "[::1]:8377", "127.9.9.9", "localhost.:1"],
)
def test_this_machine_may_ask(host: str) -> None:
    assert code(f"Host: {host}") is None


def test_an_http_1_0_client_without_host_may_ask() -> None:
    assert code(line="GET /x HTTP/1.0") is None


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "10.0.0.1", "[::1"])
def test_a_foreign_host_is_refused(host: str) -> None:
    assert code(f"Host: {host}") == "foreign_host"


def test_a_page_of_this_machine_may_ask_and_others_not() -> None:
    assert code("Host: localhost", "Origin: http://localhost:5173") is None
    assert code("Host: localhost", "Origin: http://[::1]:5173") is None
    assert (
        code("Host: localhost", "Origin: http://localhost:1", "Sec-Fetch-Site: cross-site") is None
    )
    assert code("Host: localhost", "Origin: https://evil.example") == "foreign_origin"
    assert code("Host: localhost", "Origin: null") == "foreign_origin"
    assert code("Host: localhost", "Sec-Fetch-Site: cross-site") == "cross_site"


def test_connect_is_refused() -> None:
    assert code("Host: h:443", line="CONNECT h:443 HTTP/1.1") == "not_a_proxy"


def test_where_others_can_reach_the_port_the_token_opens_it_under_any_name() -> None:
    assert code("Host: deltatape:8377", guarded=True) == "token_needed"
    assert code("Host: localhost:8377", guarded=True) == "token_needed"
    assert code("Host: deltatape:8377", guarded=True, token=True) is None
    assert (
        code("Host: h", "Origin: https://evil.example", guarded=True, token=True)
        == "foreign_origin"
    )


def test_on_a_unix_socket_the_name_of_the_host_tells_nothing() -> None:
    assert code("Host: %2Frun%2Fdeltatape.sock", local=False) is None
    assert code("Host: h", "Sec-Fetch-Site: cross-site", local=False) == "cross_site"
