import pytest

from deltatape.http1.ending import fin_completes, keeps_client
from deltatape.http1.head import parse_request
from deltatape.model.exchange import Framing


@pytest.mark.parametrize(
    ("framing", "bare", "completes"),
    [
        (Framing.CLOSE, False, True),
        (Framing.CHUNKED, True, True),
        (Framing.CHUNKED, False, False),
        (Framing.LENGTH, False, False),
        (None, True, False),
    ],
)
def test_where_a_fin_looks_like_the_end(
    framing: Framing | None, *, bare: bool, completes: bool
) -> None:
    assert fin_completes(framing, bare=bare) is completes


@pytest.mark.parametrize(
    ("line", "framing", "keeps"),
    [
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", Framing.LENGTH, True),
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", Framing.CLOSE, False),
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", None, False),
        (b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", Framing.LENGTH, False),
        (b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", Framing.LENGTH, False),
    ],
)
def test_which_connections_serve_another_request(
    line: bytes, framing: Framing | None, *, keeps: bool
) -> None:
    assert keeps_client(parse_request(line), framing) is keeps
