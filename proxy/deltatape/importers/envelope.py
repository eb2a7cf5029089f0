"""Read the request and the response beside a body, as JSON.

    request.json   {"method": "POST", "url": "https://...", "headers": {...}, "body": {...}}
    response.json  {"status": 200, "headers": {...}}

A request that has neither `url` nor `method` is taken for the body itself, which is what most
people have at hand. Headers are an object or a list of pairs. Other keys are ignored.
"""

import json
from collections.abc import Iterator

from deltatape.errors import UsageError
from deltatape.importers._base import ImportedRequest, ImportedResponse, PlainHeaders


def read_request(name: str, data: bytes | None) -> ImportedRequest:
    """Return the request in `data`, from the file or folder `name`.

    Raises:
        UsageError: it describes one, but with a part that none can have.
    """
    if data is None:
        return ImportedRequest()
    value = _json(data)
    if not isinstance(value, dict) or not {"url", "method"} & value.keys():
        return ImportedRequest(body=data)
    body = value.get("body")
    return ImportedRequest(
        method=_text(name, "method", value.get("method") or "POST"),
        url=_text(name, "url", value.get("url") or ""),
        headers=_headers(name, value.get("headers")),
        body=_body(body),
    )


def read_response(name: str, data: bytes | None) -> ImportedResponse:
    """Return the response in `data`, from the file or folder `name`.

    Raises:
        UsageError: it is not JSON object, or has a part that no response can have.
    """
    if data is None:
        return ImportedResponse()
    value = _json(data)
    if not isinstance(value, dict):
        raise UsageError(
            f'{name}: the response must be a JSON object, {{"status": 200, "headers": {{...}}}}'
        )
    status = value.get("status", 200)
    if type(status) is not int or not 100 <= status <= 999:  # noqa: PLR2004 - RFC 9110, 15
        raise UsageError(f'{name}: "status" is {ascii(status)[:60]}; use 100 to 999')
    return ImportedResponse(status=status, headers=_headers(name, value.get("headers")))


def _json(data: bytes) -> object:
    try:
        value: object = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value


def _body(value: object) -> bytes:
    if value is None:
        return b""
    if isinstance(value, str):
        return value.encode("utf-8", "replace")
    return json.dumps(value).encode()


def _text(name: str, key: str, value: object) -> str:
    if not isinstance(value, str) or not value.isprintable():
        raise UsageError(f'{name}: "{key}" is {ascii(value)[:60]}; use printable text')
    return value


def _headers(name: str, value: object) -> PlainHeaders:
    if value is None:
        return ()
    pairs = list(value.items()) if isinstance(value, dict) else value
    if not isinstance(pairs, list):
        raise UsageError(f'{name}: "headers" is {ascii(value)[:60]}; use an object')
    return tuple(field for pair in pairs for field in _fields(name, pair))


def _fields(name: str, pair: object) -> Iterator[tuple[bytes, bytes]]:
    """Yield the fields of one name: some tools list repeated values."""
    match pair:
        case (str() as key, str() | list() as value) | [str() as key, str() | list() as value]:
            for text in value if isinstance(value, list) else [value]:
                yield key.encode("utf-8", "replace"), _text(name, key, text).encode()
        case _:
            raise UsageError(f"{name}: header {ascii(pair)[:60]}; use a name and a text")
