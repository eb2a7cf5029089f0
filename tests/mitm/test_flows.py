"""What mitmproxy tells of an ending, as a reason."""

from types import SimpleNamespace
from typing import cast

import pytest

from deltatape.mitm.flows import Flow, ending
from deltatape.model.exchange import EndReason

CUT = "peer closed connection without sending complete message body (incomplete chunked read)"
CANCELLED, FAILED = "stream reset by client (CANCEL)", "stream reset by client (INTERNAL_ERROR)"


def failed(
    message: str,
    *,
    client: bool = True,
    server: bool = True,
    setup: tuple[float | None, float | None] = (1.0, 2.0),
    http: tuple[str, str | None] = ("HTTP/1.1", "HTTP/1.1"),
    alpn: bytes | None = None,
) -> tuple[EndReason, str]:
    """The ending of a flow with `message` as its error.

    `client` and `server`: whether they are connected; `setup`: when TCP and TLS stood; `alpn`: the
    protocol of the latter.
    """
    flow = SimpleNamespace(
        error=SimpleNamespace(msg=message),
        client_conn=SimpleNamespace(connected=client),
        server_conn=SimpleNamespace(
            connected=server,
            alpn=alpn,
            timestamp_tcp_setup=setup[0],
            timestamp_tls_setup=setup[1],
        ),
        request=SimpleNamespace(scheme="https", http_version=http[0]),
        response=SimpleNamespace(http_version=http[1]) if http[1] else None,
    )
    return ending(cast("Flow", flow))


def test_a_flow_that_was_killed_was_stopped() -> None:
    assert failed("Connection killed.") == (EndReason.STOPPED, "Connection killed.")


@pytest.mark.parametrize("message", ["Client disconnected.", "peer closed connection"])
def test_a_client_that_is_gone_has_left(message: str) -> None:
    assert failed(message, client=False, server=False)[0] is EndReason.CLIENT_CLOSED


def test_mitmproxy_s_word_for_it_is_enough() -> None:
    assert failed("Client disconnected.", server=False)[0] is EndReason.CLIENT_CLOSED


@pytest.mark.parametrize("setup", [(None, None), (1.0, None)])
def test_no_connection_or_no_tls_is_a_refusal(setup: tuple[float | None, float | None]) -> None:
    message = "Certificate verify failed: unable to get local issuer certificate"
    assert failed(message, server=False, setup=setup) == (EndReason.REFUSED, message)


@pytest.mark.parametrize(
    "message", ["[Errno 110] Connect call failed ('192.0.2.1', 443)", "connection timed out"]
)
def test_a_connection_that_never_stood_may_have_timed_out(message: str) -> None:
    assert failed(message, server=False, setup=(None, None))[0] is EndReason.TIMEOUT


def test_an_upstream_that_is_gone_has_closed() -> None:
    assert failed(CUT, server=False) == (EndReason.UPSTREAM_CLOSED, CUT)
    assert failed("HTTP/1 protocol error: illegal chunk")[0] is EndReason.UPSTREAM_CLOSED


UNKNOWN = "; mitmproxy does not tell by which side"


@pytest.mark.parametrize(
    ("message", "http", "alpn", "reason"),
    [
        (FAILED, ("HTTP/2.0", "HTTP/2.0"), b"h2", EndReason.UPSTREAM_RESET),
        (FAILED, ("HTTP/2.0", None), b"h2", EndReason.UPSTREAM_RESET),
        (CANCELLED, ("HTTP/2.0", "HTTP/2.0"), b"h2", EndReason.CLIENT_CLOSED),
        (CANCELLED, ("HTTP/2.0", None), b"h2", EndReason.CLIENT_CLOSED),
        (FAILED, ("HTTP/3", None), b"h3", EndReason.UPSTREAM_RESET),
    ],
)
@pytest.mark.parametrize("server", [True, False])
def test_where_both_sides_speak_http_2_the_code_of_a_reset_tells(
    message: str,
    http: tuple[str, str | None],
    alpn: bytes,
    reason: EndReason,
    *,
    server: bool,
) -> None:
    found = failed(message, http=http, alpn=alpn, server=server)
    assert found == (reason, f"HTTP/2: {message.replace(' by client', '')}{UNKNOWN}")


@pytest.mark.parametrize("message", [CANCELLED, FAILED])
@pytest.mark.parametrize(
    ("response", "alpn"), [("HTTP/1.1", None), (None, None), (None, b"http/1.1")]
)
def test_before_an_upstream_with_http_1_only_the_client_can_reset(
    message: str, response: str | None, alpn: bytes | None
) -> None:
    # mitmproxy has closed the connection to upstream by then.
    found = failed(message, http=("HTTP/2.0", response), alpn=alpn, server=False)
    assert found == (EndReason.CLIENT_CLOSED, f"HTTP/2: {message}")


def test_behind_a_client_with_http_1_only_upstream_can_reset() -> None:
    found = failed(CANCELLED, http=("HTTP/1.1", "HTTP/2.0"), alpn=b"h2")
    assert found == (EndReason.UPSTREAM_RESET, "HTTP/2: stream reset by upstream (CANCEL)")


@pytest.mark.parametrize(("number", "code"), [("2", "INTERNAL_ERROR"), ("99", "99")])
@pytest.mark.parametrize("client", [True, False])
def test_a_goaway_is_told_with_its_code(number: str, code: str, *, client: bool) -> None:
    said = f"HTTP/2 connection closed: <ConnectionTerminated error_code:{number}, last_stream_id:7"
    http = ("HTTP/2.0", "HTTP/2.0")
    found = failed(f"{said}, additional_data:None>", http=http, alpn=b"h2", client=client)
    reason = EndReason.UPSTREAM_CLOSED if client else EndReason.CLIENT_CLOSED
    assert found[0] is reason
    assert found[1].startswith(f"HTTP/2: GOAWAY ({code}, last stream 7); mitmproxy ends all")
