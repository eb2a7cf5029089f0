"""Our own answers: small JSON errors that say what is wrong and what to do."""

import json
from collections.abc import Mapping

from deltatape.http1.head import Fields, write_response

REASONS: Mapping[int, bytes] = {
    400: b"Bad Request",
    403: b"Forbidden",
    404: b"Not Found",
    405: b"Method Not Allowed",
    502: b"Bad Gateway",
    504: b"Gateway Timeout",
}


def error_answer(
    status: int,
    code: str,
    message: str,
    *,
    detail: Mapping[str, object] | None = None,
    fields: Fields = (),
    head_only: bool = False,
) -> bytes:
    """Return a response whose JSON body has the form that LLM SDKs show to users.

    `{"error": {"message": ..., "type": "deltatape", "code": ..., **detail}}`; the connection is
    closed after it. `head_only` for an answer to HEAD.
    """
    error = {"message": message, "type": "deltatape", "code": code, **(detail or {})}
    body = json.dumps({"error": error}, ensure_ascii=False, indent=1).encode() + b"\n"
    head = write_response(
        status,
        REASONS[status],
        (
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),
            (b"x-deltatape-error", code.encode()),
            *fields,
        ),
    )
    return head if head_only else head + body
