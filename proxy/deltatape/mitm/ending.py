"""How an exchange ended, as far as mitmproxy tells.

mitmproxy tells a text, and what it says is not always so: for HTTP/2 every reset is one "by
client". The states of the two connections are the better witnesses. FIN and RST of an upstream look
the same from here.

Source: mitmproxy 11.0.2 and 12.2.3, `proxy/layers/http` and `proxy/server`.
"""

from deltatape.mitm.flows import Flow
from deltatape.model.exchange import EndReason

KILLED = "Connection killed."
LEFT = "Client disconnected."
_RESET = "stream reset by client"
_CANCEL = "(CANCEL)"
_HTTP2 = "HTTP/2"
_TIMED_OUT = ("[Errno 110]", "[Errno 60]", "timed out")
"""ETIMEDOUT of Linux and macOS."""


def ending(flow: Flow) -> tuple[EndReason, str]:
    """Why a flow failed, and mitmproxy's own words."""
    told = flow.error.msg if flow.error is not None else ""
    if told == KILLED:
        return EndReason.STOPPED, told
    if told == LEFT or not flow.client_conn.connected:
        return EndReason.CLIENT_CLOSED, told
    if not _reached(flow):
        timed_out = any(sign in told for sign in _TIMED_OUT)
        return EndReason.TIMEOUT if timed_out else EndReason.REFUSED, told
    if told.startswith(_RESET) and flow.server_conn.connected:
        return _reset(flow, told), f"HTTP/2: {told}; mitmproxy does not tell which side it was"
    return EndReason.UPSTREAM_CLOSED, told


def _reached(flow: Flow) -> bool:
    """Whether there was a connection to upstream that HTTP could be spoken on."""
    server = flow.server_conn
    if server.timestamp_tcp_setup is None:
        return False
    return flow.request.scheme != "https" or server.timestamp_tls_setup is not None


def _reset(flow: Flow, told: str) -> EndReason:
    """Which side reset an HTTP/2 stream: the one that speaks HTTP/2; of two, who cancels."""
    if not flow.request.http_version.startswith(_HTTP2):
        return EndReason.UPSTREAM_RESET
    upstream = flow.response.http_version if flow.response is not None else ""
    if told.endswith(_CANCEL) or (upstream and not upstream.startswith(_HTTP2)):
        return EndReason.CLIENT_CLOSED
    return EndReason.UPSTREAM_RESET
