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
) -> tuple[EndReason, str]:
    """The ending of a flow with `message` as its error.

    `client` and `server`: whether they are connected; `setup`: when TCP and TLS stood.
    """
    flow = SimpleNamespace(
        error=SimpleNamespace(msg=message),
        client_conn=SimpleNamespace(connected=client),
        server_conn=SimpleNamespace(
            connected=server, timestamp_tcp_setup=setup[0], timestamp_tls_setup=setup[1]
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


@pytest.mark.parametrize(
    ("message", "http", "reason"),
    [
        (FAILED, ("HTTP/1.1", "HTTP/2.0"), EndReason.UPSTREAM_RESET),
        (FAILED, ("HTTP/2.0", "HTTP/2.0"), EndReason.UPSTREAM_RESET),
        (FAILED, ("HTTP/2.0", None), EndReason.UPSTREAM_RESET),
        (CANCELLED, ("HTTP/2.0", "HTTP/2.0"), EndReason.CLIENT_CLOSED),
        (FAILED, ("HTTP/2.0", "HTTP/1.1"), EndReason.CLIENT_CLOSED),
    ],
)
def test_a_reset_of_http_2_is_of_who_can_have_sent_it(
    message: str, http: tuple[str, str | None], reason: EndReason
) -> None:
    found, detail = failed(message, http=http)
    assert found is reason
    assert "does not tell which side" in detail
