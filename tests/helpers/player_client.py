"""A client without an event loop, for players in other threads and processes."""

import http.client
from collections.abc import Mapping
from urllib.parse import urlsplit

LIMIT_S = 20.0
PATH = "/v1/chat/completions"


def ask(
    url: str, body: bytes, path: str = PATH, headers: Mapping[str, str] | None = None
) -> tuple[int, bytes]:
    """Status and body of the answer to a POST; where it is cut, the chunks that came whole."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=LIMIT_S)
    try:
        given = {"Content-Type": "application/json", **(headers or {})}
        connection.request("POST", path, body, given)
        response = connection.getresponse()
        try:
            return response.status, response.read()
        except http.client.IncompleteRead as cut:
            return response.status, cut.partial
    finally:
        connection.close()
