"""Tapes with fake secrets on them, record by record."""

import hashlib
import json
from collections.abc import Iterable, Sequence

from deltatape.redact.search import secrets
from deltatape.secret_text.escaped_text import overwrite
from deltatape.tape.decode import decode_record
from deltatape.tape.encode import header_line, json_text
from deltatape.tape.fields import bytes_to_json
from deltatape.tape.record import Record
from helpers.chat import calls, choice, entry
from helpers.tapes import HEADER

KEY = "sk-fakefakefake0000"
"""A fake that looks like a key of no particular provider."""
STARS = "*" * len(KEY)

TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Looks out of the window.",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "A town."},
                "unit": {"type": "string", "enum": ["celsius", "kelvin"]},
            },
            "required": ["city"],
        },
    },
}
"""A tool in the format of Chat Completions."""


def record(t_ns: int, exchange: int, code: str, payload: object) -> bytes:
    """A canonical line."""
    return f"[{t_ns},{exchange},{json_text(code)},{json_text(payload)}]\n".encode()


def body(data: bytes) -> object:
    """Bytes as the payload of a record."""
    return bytes_to_json(data)


def exchange(
    number: int = 1,
    *,
    request: Sequence[bytes] = (b'{"a":1}',),
    reads: Sequence[bytes] = (b"data: 1\n\n",),
    asked: Sequence[object] = (),
    answered: Sequence[object] = (["Content-Type", "text/event-stream"],),
    target: object = "/v1/chat/completions",
    framing: str = "close",
) -> list[bytes]:
    """The lines of a whole exchange; `asked` and `answered` are header fields."""
    head = {
        "id": f"01JD3ZQ8T00000000000000{number:03}",
        "method": "POST",
        "target": target,
        "upstream": "https://api.example.com",
        "http": "1.1",
        "headers": list(asked),
    }
    response = {
        "status": 200,
        "reason": "OK",
        "http": "1.1",
        "framing": framing,
        "headers": list(answered),
    }
    data = b"".join(reads)
    end = {
        "reason": "complete",
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    return [
        record(10, number, "request", head),
        *(record(20, number, "request-body", body(piece)) for piece in request),
        record(30, number, "request-end", {}),
        record(50, number, "response", response),
        *(record(60 + at, number, "read", body(piece)) for at, piece in enumerate(reads)),
        record(9000, number, "end", end),
    ]


def tape(*lines: bytes) -> bytes:
    """A whole tape of records."""
    return b"".join([header_line(HEADER), *lines, record(9999, 0, "stop", {"reason": "done"})])


def numbered(lines: Iterable[bytes], first: int = 2) -> list[tuple[int, Record]]:
    """Lines as records with their numbers."""
    return [(number, decode_record(line)) for number, line in enumerate(lines, first)]


def payloads(content: bytes, code: str) -> list[object]:
    """The payloads of all records of a code."""
    found = [json.loads(line) for line in content.splitlines()[1:]]
    return [payload for _, _, each, payload in found if each == code]


def arguments(text: str, index: int = 0) -> dict[str, object]:
    """A chunk with a fragment of a call's arguments."""
    return calls(entry(index, arguments=text))


def words(text: str) -> dict[str, object]:
    """A chunk with a fragment of text."""
    return choice({"content": text})


def without_secrets(data: bytes) -> bytes:
    """`data` with every secret overwritten."""
    return overwrite(data, [edit for secret in secrets(data) for edit in secret.edits])
