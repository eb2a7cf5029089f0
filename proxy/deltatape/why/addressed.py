"""Which answer of which upstream it was: what its provider needs to find it."""

from deltatape.model.exchange import Exchange, header

_IDS = ("x-request-id", "request-id", "x-amzn-requestid", "cf-ray")
"""Header fields in which providers name a request, the most telling first."""
_SECONDS = 19
"""Characters of an RFC 3339 time up to its seconds."""


def came_from(exchange: Exchange) -> str:
    """`https://api.openai.com, request id req_1, tape begun 2026-11-22T08:16:12Z`, if known."""
    head = exchange.response
    headers = head.headers if head else ()
    named = (header(headers, name) for name in _IDS)
    identifier = next((value.decode("latin-1") for value in named if value), "")
    parts = (
        exchange.request.upstream,
        identifier and f"request id {identifier}",
        exchange.timed and f"tape begun {exchange.recorded_at[:_SECONDS]}Z",
    )
    return ", ".join(part for part in parts if part)
