"""A tape on which every text has escape sequences for the terminal that shows it."""

import json
import re
from pathlib import Path

from deltatape.model.exchange import EndReason, Framing
from deltatape.tape import encode
from deltatape.tape.tap import ExchangeTap, TapeTap
from helpers.chat import calls, choice, entry, sse
from helpers.tapes import HEADER, MASKER

PAYLOAD = "\x1b[7m\x1b]0;owned\x07\x9b7m\x9d0;owned\x9c\u202e\r\nINJECTED\x00\x08\x7f\u2028\u2066"
"""CSI and OSC in both forms, bidi, a line of its own, NUL, backspace, separators."""

FILE_NAME = "h\x1b]0;owned\x07\x1b[7m\u202e\nINJECTED.tape"

_SGR = re.compile(r"\x1b\[[0-9;]*m")
_ACTING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def bad(word: str) -> str:
    """`word` with everything around it."""
    return f"{PAYLOAD}{word}{PAYLOAD}"


def assert_harmless(shown: bytes) -> None:
    """Nothing but line ends and styles of ours reaches the terminal."""
    text = shown.decode("utf-8")
    assert "\x1b[7m" not in text  # a style that we never use
    rest = _SGR.sub("", text).replace("\r\n", "\n")
    found = _ACTING.search(rest)
    assert found is None, f"{found[0]!r} in {rest[max(0, found.start() - 80) : found.end()]!r}"
    assert not [line for line in rest.split("\n") if line.startswith("INJECTED")]


def body(reply: str) -> bytes:
    """A request in which every name is hostile; it repeats `reply`, if any, as arguments."""
    call = {"id": bad("c1"), "function": {"name": bad("get"), "arguments": bad(reply)}}
    messages = [
        {"role": "user", "content": bad("ask")},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": bad("c1"), "content": bad("result")},
    ]
    schema = {"type": "object", "required": [bad("q")], "properties": {bad("q"): {}}}
    tools = [{"type": "function", "function": {"name": bad("get"), "parameters": schema}}]
    return json.dumps(
        {
            "model": bad("model"),
            "stream": True,
            "messages": messages if reply else messages[:1],
            "tools": tools,
            "tool_choice": {"type": "function", "function": {"name": bad("get")}},
        }
    ).encode()


STREAM = sse(
    choice({"content": bad("text"), "reasoning_content": bad("why"), "refusal": bad("no")}),
    calls(entry(0, bad("c1"), name=bad("get"), arguments=bad("{"))),
    calls(entry(7, bad("c2"), name=bad("put"), arguments=json.dumps({bad("q"): bad("v")}))),
    calls(entry(0, bad("c3"), name=bad("other"), arguments=bad("}"))),
    choice({}, bad("tool_calls")),
    bad("{not json").replace("\r\n", " ").replace("\n", " "),
    {"error": {"message": bad("error"), "type": bad("type"), "code": bad("code")}},
    done=False,
)
"""A stream in which every text is hostile, and most is broken."""


def hostile_tape(folder: Path, name: str = FILE_NAME) -> Path:
    """Two exchanges; the second repeats the first reply wrongly."""
    lines: list[bytes] = []

    def put(_: int, line: bytes) -> None:
        lines.append(line)

    for number, request, stream in ((1, body(""), STREAM), (2, body("changed"), STREAM)):
        _feed(ExchangeTap(number, put, MASKER), number, request, stream)
    TapeTap(put).note(9_000, bad("a remark"))
    TapeTap(put).stop(9_999, bad("stopped"), None)
    path = folder / name
    path.write_bytes(encode.header_line(HEADER) + b"".join(lines))
    return path


def _feed(tap: ExchangeTap, number: int, request: bytes, stream: bytes) -> None:
    at = number * 1_000_000_000
    hostile = bad("x").encode()
    # A tape with line breaks or NUL in its heads is refused.
    head = bytes(byte for byte in hostile if byte not in b"\r\n\0")
    tap.request(
        at,
        id=f"{number:026}",
        method="POST",
        target=b"/v1/chat/completions?" + head,
        upstream="https://api.example.com",
        http="1.1",
        headers=((b"Host", head), (head, head)),
    )
    tap.request_body(at + 1, request)
    tap.request_end(at + 2)
    tap.response(
        at + 3,
        status=200,
        reason=head,
        http="1.1",
        framing=Framing.CHUNKED,
        headers=((b"Content-Type", b"text/event-stream"), (head, head)),
    )
    tap.read(at + 4, stream + b": " + hostile, (len(stream),))
    tap.note(at + 5, bad("a note"))
    tap.end(at + 6, EndReason.UPSTREAM_RESET, detail=bad("detail"), recorder={})
