import pytest

from deltatape.http1.access import check_origin
from deltatape.http1.head import parse_request

HERE = "Host: localhost"


def code(*fields: str, local: bool = True) -> str | None:
    raw = "\r\n".join(("POST /x HTTP/1.1", *fields, "", "")).encode("latin-1")
    foreign = check_origin(parse_request(raw).fields, local=local)
    return foreign.code if foreign else None


def test_names_of_this_machine_may_be_asked_for_and_others_not() -> None:
    for host in ("127.0.0.1:8378", "LOCALHOST", "[::1]:1", "127.9.9.9"):
        assert code(f"Host: {host}") is None
    for host in (
        *("evil.example", "127.0.0.1.evil.example", "10.0.0.1", "[::1", ""),
        *("evil.com@127.0.0.1", "localhost#.evil.com", "localhost/x", "127.0.0.1:80:80"),
    ):
        assert code(f"Host: {host}") == "foreign_host"


def test_on_a_unix_socket_the_name_of_the_host_tells_nothing() -> None:
    assert code("Host: %2Frun%2Fx.sock", local=False) is None
    assert code("Host: x", "Origin: null", local=False) == "foreign_origin"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (("Origin: http://localhost:5173",), None),
        (("Origin: http://[::1]:1", "Sec-Fetch-Site: cross-site"), None),
        (("Sec-Fetch-Site: same-origin",), None),
        (("Origin: https://evil.example",), "foreign_origin"),
        (("Origin: null",), "foreign_origin"),
        (("Origin: http://localhost", "Origin: https://evil.example"), "foreign_origin"),
        (("Origin: https://evil.example@localhost",), "foreign_origin"),
        (("Sec-Fetch-Site: Cross-Site",), "cross_site"),
    ],
)
def test_pages_of_this_machine_may_ask_and_others_not(
    fields: tuple[str, ...], expected: str | None
) -> None:
    assert code(HERE, *fields) == expected


def test_of_a_long_name_the_beginning_is_shown() -> None:
    head = parse_request(b"GET / HTTP/1.1\r\nHost: %b\r\n\r\n" % (b"a" * 9999))
    foreign = check_origin(head.fields)
    assert foreign is not None
    assert len(foreign.message) < 200
