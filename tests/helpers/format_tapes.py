"""The tapes of recordings/conformance: one for each thing that a reader of the format meets.

Each is small, invented, and says what a reader has to make of its lines; `format_reading` says what
deltatape makes of the rest.

Source: recordings/README.md.
"""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from deltatape.tape.encode import json_text

Json = dict[str, object]
Line = tuple[int, int, str, object]
"""A record."""

HEADER: Json = {
    "deltatape": 1,
    "id": "01KAWT5C80000000000F0RMAT1",
    "tool": "deltatape 0.1.0",
    "recorded_at": "2026-11-22T05:30:00.000000000Z",
    "source": "gateway",
}
ID = "01KAWT5C90000000000F0RMAT1"
HASH = "ab12cd34"
JSON_TYPE: Sequence[object] = ("Content-Type", "application/json")
EVENTS: Sequence[object] = ("Content-Type", "text/event-stream")
LOST = "the recorder lost records before this one: No space left on device; 1 so far"
MAX = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatTape:
    """A tape and the verdict about it.

    Args:
        shows: what is on it, in a few words.
        refused: the line that is refused; 1 is the tape; 0: none.
        reported: the lines that a checker tells.
        canonical: whether every line is as writers write it.
    """

    shows: str
    content: bytes
    refused: int = 0
    reported: tuple[int, ...] = ()
    canonical: bool = True

    @property
    def verdict(self) -> Json:
        """The verdict as an expectation has it."""
        what = "tape" if self.refused == 1 else "line"
        refused = {"what": what, "line": self.refused} if self.refused else None
        return {"refused": refused, "reported": [*self.reported]}


def text_of(line: Line | str) -> bytes:
    """A line; a text is one already, without its line feed."""
    text = line if isinstance(line, str) else f"[{line[0]},{line[1]},{json_text(line[2])},"
    if not isinstance(line, str):
        text += f"{json_text(line[3])}]"
    return f"{text}\n".encode()


def tape(*lines: Line | str, header: Json | str = HEADER, stop: bool = True) -> bytes:
    """A tape; the header may be a text like any line."""
    first = header if isinstance(header, str) else json_text(header)
    last: tuple[Line, ...] = ((9000, 0, "stop", {"reason": "interrupted"}),) if stop else ()
    return b"".join(text_of(line) for line in (first, *lines, *last))


def request(number: int = 1, t_ns: int = 10, **changes: object) -> Line:
    """The head of a request."""
    head: Json = {
        "id": ID[:-1] + str(number),
        "method": "POST",
        "target": "/v1/chat/completions",
        "upstream": "https://api.example.com",
        "http": "1.1",
        "headers": [JSON_TYPE],
    }
    return (t_ns, number, "request", head | changes)


def response(framing: str = "length", number: int = 1, t_ns: int = 40, **changes: object) -> Line:
    """The head of a response."""
    head: Json = {"status": 200, "reason": "OK", "http": "1.1", "framing": framing}
    return (t_ns, number, "response", {**head, "headers": [EVENTS], **changes})


def end(body: bytes = b"", number: int = 1, t_ns: int = 900, **changes: object) -> Line:
    """The end of an exchange with this body."""
    value: Json = {"reason": "complete", "bytes": len(body)}
    value["sha256"] = hashlib.sha256(body).hexdigest()
    return (t_ns, number, "end", value | changes)


def one(*middle: Line | str, framing: str = "length", body: bytes = b"", number: int = 1) -> bytes:
    """A tape of an exchange with these records between the heads and the end."""
    heads: list[Line] = [
        request(number),
        (20, number, "request-end", {}),
        response(framing, number),
    ]
    return tape(*heads, *middle, end(body, number))


def b64(data: bytes) -> Json:
    """Bytes that are no text."""
    return {"b64": base64.b64encode(data).decode()}


def masked(length: int = 18) -> Json:
    """A masked value."""
    return {"masked": {"length": length, "hash": HASH}}


READ: Line = (50, 1, "read", "data: 1\n\n")
BODY = b"data: 1\n\n"
SAID = 'data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\n'
SAID_SHA256 = "55b1ebe24f840188c3d3b64c496c553e42a9e7dff96ff86b43ee46048dd642df"
"""Of what deltatape reads in it; `fsck` would tell of another one."""


_UPGRADE = response("none", status=101, reason="Switching Protocols", headers=[])


def _frames() -> bytes:
    compressed = {"b64": "8kjNyckHAA=="}
    pieces: list[Json] = [
        {"side": "client", "opcode": 1, "mask": "37fa213d", "data": '{"type":"start"}'},
        {"side": "server", "opcode": 1, "fin": False, "length": 12, "more": True, "data": "data:"},
        {"side": "server", "opcode": 9, "data": "here?"},
        {"side": "server", "opcode": 1, "at": 5, "data": b64(b" caf\xc3\xa9"[:6] + b"\xff")},
        {"side": "server", "opcode": 0, "data": "***"},
        {"side": "server", "opcode": 2, "wide": 8, "data": b64(b"\x80\xff")},
        {"side": "server", "opcode": 1, "rsv": 4, "data": "Hello", "wire": compressed},
        {"side": "client", "opcode": 10, "mask": "00000000", "data": ""},
        {"side": "server", "opcode": 8, "data": b64(b"\x03\xe8")},
        {"side": "server", "raw": True, "data": b64(b"\x81\x7f")},
    ]
    lines: list[Line] = [(50 + 10 * at, 1, "frame", piece) for at, piece in enumerate(pieces)]
    lines.insert(4, (90, 1, "masked", {"spans": [[0, 3, HASH]]}))
    data = b"".join(_bytes_of(piece["data"]) for piece in pieces)
    total = {"records": len(pieces), "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    heads: list[Line] = [request(), (20, 1, "request-end", {}), _UPGRADE]
    return tape(*heads, *lines, end(reason="upstream_closed", frames=total))


def _bytes_of(value: object) -> bytes:
    if isinstance(value, dict):
        return base64.b64decode(value["b64"])
    return str(value).encode()


def _codes() -> dict[str, FormatTape]:
    masked_target = ["/v1/models?key=", masked(8), "&pageSize=5"]
    odd_headers = [["X-Odd", b64(b"\xff\xfe")], ["Authorization", masked()], ["x-odd", ""]]
    stars = "data: *****************\n\n"
    key = [[6, 23, HASH]]
    losses = {"lost_records": 1, "lost_bytes": 66, "error": "No space left on device"}
    parsed = {"tool": "deltatape 0.1.0", "dialect": "openai-chat", "events": 1, "calls": 0}
    return {
        "request": FormatTape(
            shows="masked parts of a target and of heads, bytes in a field, the side of the app",
            content=tape(
                request(target=masked_target, headers=odd_headers, tap="app"),
                request(2, 12, target=b64(b"/caf\xe9"), upstream="https://host/base"),
            ),
        ),
        "request-body": FormatTape(
            shows="three pieces, one of them bytes that are no text, and masked spans",
            content=tape(
                request(),
                (20, 1, "request-body", '{"a":"'),
                (21, 1, "request-body", b64(b"\xc3")),
                (22, 1, "masked", {"spans": [[1, 4, HASH]]}),
                (22, 1, "request-body", b64(b"\xa9***")),
                (23, 1, "request-body", '"}'),
                (24, 1, "request-end", {}),
            ),
        ),
        "request-end": FormatTape(
            shows="after the response has begun",
            content=tape(request(), response("close"), (45, 1, "request-end", {}), READ),
        ),
        "sent": FormatTape(
            shows="on a new and on a reused connection",
            content=tape(
                request(),
                (15, 1, "sent", {"connect_ns": 21400000, "tls_ns": 34100000, "reused": False}),
                request(2, 16),
                (17, 2, "sent", {"connect_ns": 0, "tls_ns": 0, "reused": True}),
            ),
        ),
        "informational": FormatTape(
            shows="two before the response",
            content=tape(
                request(),
                (30, 1, "informational", {"status": 100, "reason": "", "http": "1.1"} | _NO_FIELDS),
                (
                    31,
                    1,
                    "informational",
                    {"status": 103, "reason": "Early Hints", "http": "1.1"}
                    | {"headers": [["Link", "</a>"]]},
                ),
                response(),
            ),
        ),
        "response": FormatTape(
            shows="a reason phrase that is no text, and a status beyond those that are known",
            content=tape(
                request(), response("none", status=999, reason=b64(b"\xff"), headers=[EVENTS] * 2)
            ),
        ),
        "masked": FormatTape(
            shows="spans of a read, of a log line, and of what a content-coding hides",
            content=tape(
                request(headers=[["Content-Encoding", "gzip"]]),
                (15, 1, "masked", {"spans": [], "decoded": [[9, 26, HASH]]}),
                (15, 1, "request-body", b64(b"\x1f\x8b\x08")),
                response("chunked"),
                (50, 1, "masked", {"spans": key}),
                (50, 1, "boundaries", []),
                (50, 1, "read", stars),
                (60, 0, "masked", {"spans": [[5, 22, HASH]]}),
                (60, 0, "log", {"stream": "stderr", "line": "key: *****************"}),
            ),
        ),
        "boundaries": FormatTape(
            shows="a chunk per read, none, several, one that ended just before, one in three reads",
            content=one(
                (50, 1, "read", "data: 1\n\n"),
                (51, 1, "boundaries", []),
                (51, 1, "read", "data"),
                (52, 1, "boundaries", [0, 3, 5]),
                (52, 1, "read", ": 2\n\n"),
                (53, 1, "boundaries", [2]),
                (53, 1, "read", "data:"),
                (54, 1, "boundaries", []),
                (54, 1, "read", " 3"),
                (55, 1, "read", "\n\n"),
                framing="chunked",
                body=b"data: 1\n\ndata: 2\n\ndata: 3\n\n",
            ),
        ),
        "read": FormatTape(
            shows="reads that cut a character in two, one with separators of Unicode, escapes",
            content=one(
                (50, 1, "read", b64(b"caf\xc3")),
                (51, 1, "read", b64(b"\xa9")),
                (52, 1, "read", '\u2028\u202e\x00\x7f"\\/\U0001f600'),
                body='café\u2028\u202e\x00\x7f"\\/\U0001f600'.encode(),
            ),
        ),
        "frame": FormatTape(
            shows="a WebSocket: both sides, fragments, pieces, control frames, a compressed"
            " message, a wide length, a cut head, a masked span",
            content=_frames(),
        ),
        "trailers": FormatTape(
            shows="after the last chunk, one of them masked",
            content=one(
                READ,
                (60, 1, "trailers", {"headers": [["X-Checksum", "1"], ["X-Key", masked(9)]]}),
                framing="chunked",
                body=BODY,
            ),
        ),
        "delivered": FormatTape(
            shows="how much a slow client had taken",
            content=one(
                READ,
                (60, 1, "delivered", {"bytes": 3}),
                (70, 1, "delivered", {"bytes": 9}),
                body=BODY,
            ),
        ),
        "idle": FormatTape(
            shows="of an exchange and of the tape",
            content=tape(
                request(),
                (5_000_000_010, 1, "idle", {}),
                (5_000_000_011, 0, "idle", {}),
                stop=False,
            ),
        ),
        "note": FormatTape(
            shows="of an exchange and of the tape",
            content=one(
                (45, 0, "note", {"text": "mask key is for this run only"}),
                (46, 1, "note", {"text": "broken chunk framing, bytes go on as they came: \u00e9"}),
                (50, 1, "read", "zz\r\ndata"),
                framing="chunked",
                body=b"zz\r\ndata",
            ),
        ),
        "end": FormatTape(
            shows="with a detail, and with what the recorder lost",
            content=tape(
                request(),
                end(reason="timeout", detail="no answer within 5 s"),
                request(2, 910),
                response(number=2, t_ns=920),
                end(b"12345", 2, 930, recorder=losses),
            ),
        ),
        "parsed": FormatTape(
            shows="what the recorder made of an exchange, after its end",
            content=tape(
                *(request(), response(), (50, 1, "read", SAID), end(SAID.encode())),
                (910, 1, "parsed", parsed | {"finish": "stop", "form": 1, "sha256": SAID_SHA256}),
            ),
        ),
        "client": FormatTape(
            shows="a client that comes and goes",
            content=tape(
                (1, 0, "client", {"connection": 1, "state": "opened"}),
                (8, 0, "client", {"connection": 1, "state": "closed"}),
            ),
        ),
        "log": FormatTape(
            shows="lines of each stream, one with a carriage return, one that is no text",
            content=tape(
                (1, 0, "log", {"stream": "stdout", "line": "50 %\r100 %"}),
                (2, 0, "log", {"stream": "stderr", "line": b64(b"\xff\x1b[0m")}),
                (3, 0, "log", {"stream": "output", "line": ""}),
            ),
        ),
        "stop": FormatTape(
            shows="a program that a signal ended",
            content=tape((9, 0, "stop", {"reason": "child-exit", "code": -9}), stop=False),
        ),
    }


_NO_FIELDS: Json = {"headers": []}
FRAMINGS = ("chunked", "length", "close", "none")
ENDINGS = (
    "complete",
    "upstream_closed",
    "upstream_reset",
    "client_closed",
    "timeout",
    "refused",
    "stopped",
)


def _framings() -> dict[str, FormatTape]:
    body = {"none": ()}
    return {
        framing: FormatTape(
            shows=f"a response whose framing is {framing}",
            content=one(
                *body.get(framing, (READ,)),
                framing=framing,
                body=b"" if framing in body else BODY,
            ),
        )
        for framing in FRAMINGS
    }


def _endings() -> dict[str, FormatTape]:
    unanswered = ("timeout", "refused")
    return {
        reason: FormatTape(
            shows=f"an exchange that ended so{', without a response' * (reason in unanswered)}",
            content=tape(request(), end(reason=reason))
            if reason in unanswered
            else tape(request(), response(), READ, end(BODY, reason=reason)),
        )
        for reason in ENDINGS
    }


def _headers() -> dict[str, FormatTape]:
    shard = {"recording": "01KAWT5C8000000000000SHARD", "index": 1, "count": 2, "begun_ns": 0}
    watched = {"until_ns": 700, "reason": "child-exit", "code": 1}
    return {
        "mitm": FormatTape(
            shows="the source mitm",
            content=tape(
                request(), response(), READ, end(BODY), header=HEADER | {"source": "mitm"}
            ),
        ),
        "import": FormatTape(
            shows="the source import: no times, no end",
            content=tape(
                request(t_ns=0),
                response("close", t_ns=0),
                (0, 1, "read", "data: 1\n\n"),
                (0, 0, "stop", {"reason": "imported"}),
                header=HEADER | {"source": "import"},
                stop=False,
            ),
        ),
        "shard": FormatTape(
            shows="one of two tapes of a recording, and of a name",
            content=tape(
                request(7), end(number=7), header=HEADER | {"shard": shard | {"name": "a"}}
            ),
        ),
        "volatile": FormatTape(
            shows="what may differ",
            content=tape(request(), header=HEADER | {"volatile": ["date", "metadata.session"]}),
        ),
        "watched": FormatTape(
            shows="exchanges of spliced tapes, of which one ended otherwise and one crashed",
            content=tape(request(watched=watched), request(2, 20, watched={"until_ns": 30})),
        ),
        "without-tool": FormatTape(
            shows="a header with what is required alone",
            content=tape(header={key: HEADER[key] for key in HEADER if key != "tool"}),
            canonical=False,
        ),
    }


def _borne() -> dict[str, FormatTape]:
    whole = tape(request(), response(), READ, end(BODY))
    first, _, _ = one(READ, body=BODY).partition(b'[9000,0,"stop"')
    stop = b'[9000,0,"stop",{"reason":"interrupted"}]'
    recorder = {"lost_records": 1, "lost_bytes": 70, "error": "No space left on device"}
    return {
        "no-exchange": FormatTape(shows="a tape of nothing", content=tape()),
        "no-end": FormatTape(
            shows="a crash in mid-stream", content=tape(request(), response(), READ, stop=False)
        ),
        "no-stop": FormatTape(shows="a crash between exchanges", content=first),
        "torn": FormatTape(shows="a last line that is cut", content=whole[:-9]),
        "torn-character": FormatTape(
            shows="a last line that is cut in a character",
            content=first + '[910,0,"note",{"text":"é'.encode()[:-1],
        ),
        "torn-whole": FormatTape(
            shows="a last line without line feed that is a whole record", content=first + stop
        ),
        "torn-header": FormatTape(
            shows="a whole header without line feed", content=json_text(HEADER).encode()
        ),
        "torn-zeros": FormatTape(shows="zeros after a power loss", content=first + b"\0" * 100),
        "interleaved": FormatTape(
            shows="two exchanges at the same time; the second ends first",
            content=tape(
                request(),
                request(2, 11),
                response(),
                response("close", 2, 41),
                (50, 1, "read", "a"),
                (51, 2, "read", "b"),
                (52, 1, "read", "c"),
                end(b"b", 2, 60),
                end(b"ac", 1, 70),
            ),
        ),
        "lost-read": FormatTape(
            shows="records that were lost, as the end tells: nothing to report",
            content=tape(
                request(),
                response("chunked"),
                (50, 1, "boundaries", [99]),
                READ,
                end(BODY * 2, recorder=recorder),
            ),
        ),
        "lost-note": FormatTape(
            shows="records that were lost, as a note tells: nothing to report",
            content=tape(response(), (45, 1, "note", {"text": LOST}), READ, end(BODY * 2)),
        ),
        "lost-request": FormatTape(
            shows="an exchange of which neither the request nor the end is there",
            content=tape((5, 1, "read", "a"), response(t_ns=6)),
        ),
        "late-record": FormatTape(
            shows="times that decrease from one exchange to another",
            content=tape(request(), request(2, 8), end(number=2), end(t_ns=890)),
        ),
    }


def _accepted() -> dict[str, FormatTape]:
    nested = "[" * 60 + "]" * 60
    return {
        "white-space": FormatTape(
            shows="spaces and carriage returns, as an editor leaves them",
            content=tape(request(), ' [20, 1,\t"read" , "a" ] \r', end(b"a")).replace(
                b'Z",', b'Z" , '
            ),
            canonical=False,
        ),
        "header-order": FormatTape(
            shows="a header whose first key is another one",
            content=tape(header=dict(reversed(HEADER.items()))),
            canonical=False,
        ),
        "unknown-code": FormatTape(
            shows="codes of the future anywhere, also after an end, with any number",
            content=tape(
                (1, 0, "weather", None),
                '[2,1,"forecast",[9223372036854775808,-1.5e300,true]]',
                *(request(), end()),
                (950, 1, "forecast", {}),
            ),
            canonical=False,
        ),
        "unknown-key": FormatTape(
            shows="keys of the future in the header and in payloads",
            content=tape(
                request(priority={"u": 1.5}),
                end(recorder={"lost_records": "many", "more": [1]}, quality=2**63),
                header=HEADER | {"colour": "green"},
            ),
            canonical=False,
        ),
        "duplicate-key": FormatTape(
            shows="a key that stands twice: the last one counts",
            content=tape('[1,0,"note",{"text":"first","text":"last"}]'),
            canonical=False,
        ),
        "base64-of-text": FormatTape(
            shows="base64 of what could be a string, and bits that are not zero at its end",
            content=tape(
                request(),
                (20, 1, "request-body", b64(b"text")),
                '[21,1,"request-body",{"b64":"/x=="}]',
                '[21,1,"request-body",{"b64":"eB==","more":1}]',
            ),
            canonical=False,
        ),
        "escapes": FormatTape(
            shows="characters escaped in other ways, and separators that are not",
            content=tape(
                request(),
                '[20,1,"request-body","\\u0041\\/\\u00E9\\ud83d\\ude00\u2028\x85"]',
                '[21,1,"r\\u0065ad","x"]',
                end(b"x"),
            ),
            canonical=False,
        ),
        "lone-surrogate": FormatTape(
            shows="a lone surrogate in a string that is not bytes",
            content=tape('[1,0,"note",{"text":"a\\ud800b"}]'),
            canonical=False,
        ),
        "text-target": FormatTape(
            shows="a string for a target beyond ASCII",
            content=tape(request(target="/é")),
            canonical=False,
        ),
        "nested": FormatTape(
            shows="a payload of an unknown code, nested 61 levels deep in the line",
            content=tape(f'[1,0,"weather",{nested}]'),
        ),
        "large-times": FormatTape(
            shows="times beyond 2^53, up to the last",
            content=tape(
                request(t_ns=2**53 + 1),
                end(t_ns=MAX - 1),
                (MAX, 0, "stop", {"reason": "interrupted"}),
                stop=False,
            ),
        ),
        "odd-values": FormatTape(
            shows="an id that is no ULID, a status of 0, a span over other bytes than asterisks",
            content=tape(
                request(id="7", method=""),
                response(status=0),
                (50, 1, "masked", {"spans": [[0, 4, HASH]]}),
                READ,
                end(BODY),
            ),
            canonical=False,
        ),
        "first-boundary-0": FormatTape(
            shows="a chunk end before the first byte of a body",
            content=one((50, 1, "boundaries", [0, 9]), READ, framing="chunked", body=BODY),
        ),
    }


def _reported() -> dict[str, FormatTape]:
    def told(shows: str, content: bytes, *lines: int, canonical: bool = True) -> FormatTape:
        return FormatTape(shows=shows, content=content, reported=lines, canonical=canonical)

    stop: Line = (800, 0, "stop", {"reason": "interrupted"})
    spans: Line = (50, 1, "masked", {"spans": [[0, 2, HASH], [5, 99, HASH]]})
    sent: Line = (30, 1, "sent", {"connect_ns": 1, "tls_ns": 2, "reused": False})
    trailers: Line = (60, 1, "trailers", {"headers": [["X", "1"]]})
    early: Line = (
        41,
        1,
        "informational",
        {"status": 103, "reason": "", "http": "1.1"} | _NO_FIELDS,
    )
    return {
        "recorded-at": told(
            "a header with a month 13",
            tape(header=HEADER | {"recorded_at": "2026-13-22T05:30:00.000000000Z"}),
            1,
            canonical=False,
        ),
        "misplaced": told(
            "a `read` of the tape; `stop`, `log` and `client` of exchanges",
            tape(
                (1, 0, "read", "x"),
                (2, 1, "stop", {"reason": "x"}),
                (3, 2, "log", {"stream": "stdout", "line": "x"}),
                (4, 3, "client", {"connection": 1, "state": "opened"}),
            ),
            *(2, 3, 4, 5),
            canonical=False,
        ),
        "after-stop": told(
            "an exchange after a `stop`",
            tape(stop, request(t_ns=810), end(), stop=False),
            *(3, 4),
        ),
        "two-stops": told("a `stop` after a `stop`", tape(stop), 3),
        "request-order": told("exchange 2 before exchange 1", tape(request(2), request()), 3),
        "after-end": told(
            "a read after the end of its exchange",
            tape(request(), response(), READ, end(BODY), (950, 1, "read", "late")),
            6,
        ),
        "no-request": told("an exchange without its request", tape(response(), end()), 2),
        "second-request": told("two requests", tape(request(), request(method="PUT"), end()), 3),
        "second-request-end": told(
            "two ends of a request",
            tape(request(), (20, 1, "request-end", {}), (30, 1, "request-end", {}), end()),
            4,
        ),
        "second-sent": told(
            "two `sent`",
            tape(request(), sent, (31, 1, "sent", {"connect_ns": 0, "tls_ns": 0, "reused": True})),
            4,
        ),
        "second-response": told(
            "two responses", tape(request(), response(), response("close", status=500), end()), 4
        ),
        "second-trailers": told(
            "trailers twice",
            one(READ, trailers, (61, 1, "trailers", {"headers": []}), body=BODY),
            7,
        ),
        "time": told("a time that decreases", one((39, 1, "read", "a"), body=b"a"), 5),
        "body-after-request-end": told(
            "a piece of a request after its end",
            tape(request(), (20, 1, "request-end", {}), (30, 1, "request-body", "x"), end()),
            4,
        ),
        "informational-after-response": told(
            "a 1xx after the response", tape(request(), response(), early, end()), 4
        ),
        "trailers-without-response": told(
            "trailers without a response", tape(request(), trailers, end()), 3
        ),
        "response-after-read": told(
            "a response after a read", tape(request(), READ, response(t_ns=60), end(BODY)), 4
        ),
        "empty-pieces": told(
            "pieces of bodies without any byte",
            tape(request(), (20, 1, "request-body", ""), response(), (50, 1, "read", ""), end()),
            *(3, 5),
            canonical=False,
        ),
        "boundaries-beyond": told(
            "a chunk end beyond its read",
            one((50, 1, "boundaries", [4, 99]), READ, framing="chunked", body=BODY),
            6,
        ),
        "boundaries-without-chunks": told(
            "chunk ends where there are no chunks",
            one((50, 1, "boundaries", [4]), READ, body=BODY),
            5,
        ),
        "boundaries-twice": told(
            "chunk ends without a read between them, and before the end",
            one(
                (50, 1, "boundaries", [4]),
                (50, 1, "boundaries", [5]),
                READ,
                (60, 1, "boundaries", []),
                framing="chunked",
                body=BODY,
            ),
            *(6, 9),
        ),
        "spans-beyond": told("a span beyond its piece", one(spans, READ, body=BODY), 6),
        "end-bytes": told("an end that counts other bytes", one(READ, body=b"x"), 6),
        "end-sha256": told("an end with another hash", one(READ, body=b"data: 2\n\n"), 6),
        "end-frames": told(
            "an end that counts no frames",
            tape(request(), (50, 1, "frame", {"side": "server", "opcode": 1, "data": "x"}), end()),
            4,
        ),
        "import-lost": told(
            "an import does not lose records",
            tape((0, 1, "read", "a"), header=HEADER | {"source": "import"}),
            2,
        ),
    }


def _refused_lines() -> dict[str, FormatTape]:
    def damage(shows: str, line: str | Line) -> FormatTape:
        content = tape(request(), end(), request(2, 910), line, end(number=2, t_ns=950))
        return FormatTape(shows=shows, content=content, refused=5, canonical=False)

    def payload(code: str, value: object) -> Line:
        return (920, 2, code, value)

    raw = tape(request(), end(), (920, 0, "note", {"text": "XX"}))
    frame = {"side": "server", "opcode": 1, "data": "x"}
    return {
        "no-json": damage("a line that is no JSON", "[920,2,"),
        "empty": damage("an empty line", ""),
        "nan": damage("NaN, which is no JSON", '[920,2,"weather",NaN]'),
        "control": damage("a control character in a string", '[920,2,"weather","\t"]'),
        "utf-8": FormatTape(
            shows="a line that is not UTF-8",
            content=raw.replace(b"XX", b"\xc3("),
            refused=4,
            canonical=False,
        ),
        "trailing-empty": FormatTape(
            shows="an empty line at the end", content=tape() + b"\n", refused=3, canonical=False
        ),
        "zeros-within": damage("zeros in the middle", "\0" * 9),
        "list-of-three": damage("a list of three", '[920,2,"idle"]'),
        "object": damage("an object", "{}"),
        "header": damage("a second header", json_text(HEADER)),
        "time-fraction": damage("1.0 for a time", '[920.0,2,"idle",{}]'),
        "time-exponent": damage("an exponent in a time", '[92e1,2,"idle",{}]'),
        "time-negative": damage("a negative time", '[-1,2,"idle",{}]'),
        "time-large": damage("a time of 2^63", f'[{2**63},2,"idle",{{}}]'),
        "time-true": damage("true for a time", '[true,2,"idle",{}]'),
        "exchange-text": damage("a text for an exchange", '[920,"2","idle",{}]'),
        "code-number": damage("a number for a code", "[920,2,7,{}]"),
        "read-number": damage("a number for bytes", payload("read", 7)),
        "read-base64": damage("base64 without padding", payload("read", {"b64": "/w"})),
        "read-base64-url": damage("base64 of URLs", payload("read", {"b64": "__8="})),
        "read-base64-space": damage("base64 with a space", payload("read", {"b64": "/ w=="})),
        "read-surrogate": damage("bytes with a lone surrogate", '[920,2,"read","\\ud800"]'),
        "request-key": damage("a request without a target", payload("request", {"id": ID})),
        "request-break": damage("a target of two lines", request(2, 920, target="/a\nb")),
        "header-break": damage("a field of two lines", request(2, 920, headers=[["a", "b\r\nc"]])),
        "header-pair": damage("a field of three", request(2, 920, headers=[["a", "b", "c"]])),
        "request-tap": damage("an unknown side of the app", request(2, 920, tap="middle")),
        "masked-hash": damage(
            "a masked value without a hash",
            request(2, 920, headers=[["a", {"masked": {"length": 1, "hash": "x"}}]]),
        ),
        "response-framing": damage("an unknown framing", response("pigeon", 2, 920)),
        "response-status": damage("a status that is text", response(number=2, status="200")),
        "sent-flag": damage(
            "a number for true", payload("sent", {"connect_ns": 0, "tls_ns": 0, "reused": 1})
        ),
        "end-reason": damage("an unknown ending", end(number=2, t_ns=920, reason="bored")),
        "end-bytes": damage("an end without bytes", payload("end", {"reason": "complete"})),
        "boundaries-order": damage("chunk ends that descend", payload("boundaries", [5, 4])),
        "boundaries-equal": damage("a chunk end twice", payload("boundaries", [4, 4])),
        "boundaries-negative": damage("a negative chunk end", payload("boundaries", [-1])),
        "spans-order": damage(
            "spans that overlap", payload("masked", {"spans": [[0, 5, HASH], [4, 6, HASH]]})
        ),
        "spans-empty": damage("an empty span", payload("masked", {"spans": [[1, 1, HASH]]})),
        "spans-missing": damage("no spans", payload("masked", {})),
        "frame-opcode": damage("an opcode of 16", payload("frame", frame | {"opcode": 16})),
        "frame-side": damage("an unknown side", payload("frame", frame | {"side": "middle"})),
        "frame-mask": damage("a mask of two bytes", payload("frame", frame | {"mask": "37fa"})),
        "frame-wide": damage("a length that is not wide", payload("frame", frame | {"wide": 4})),
        "frame-without-opcode": damage(
            "no opcode", payload("frame", {"side": "server", "data": "x"})
        ),
        "log-stream": damage("an unknown stream", (920, 0, "log", {"stream": "in", "line": ""})),
        "client-state": damage(
            "an unknown state", (920, 0, "client", {"connection": 1, "state": "lost"})
        ),
        "note-text": damage("a note that is no text", payload("note", {"text": None})),
        "stop-code": damage("null for a code", (920, 0, "stop", {"reason": "x", "code": None})),
        "stop-reason": damage("a stop without a reason", (920, 0, "stop", {})),
        "after-end": FormatTape(
            shows="damage after the end of the only exchange",
            content=tape(request(), end(), (950, 1, "read", 7)),
            refused=4,
            canonical=False,
        ),
    }


def _refused_tapes() -> dict[str, FormatTape]:
    def no_tape(shows: str, header: Json | str) -> FormatTape:
        content = tape(request(), end(), header=header)
        return FormatTape(shows=shows, content=content, refused=1, canonical=False)

    shard = {"recording": ID, "index": 3, "count": 2, "begun_ns": 0}
    bare = {key: HEADER[key] for key in HEADER if key != "recorded_at"}
    return {
        "empty": FormatTape(shows="an empty file", content=b"", refused=1),
        "zeros": FormatTape(shows="zeros alone", content=b"\0" * 99, refused=1),
        "torn-header": FormatTape(
            shows="a header that is cut", content=json_text(HEADER).encode()[:-9], refused=1
        ),
        "text": no_tape("another text", "hello"),
        "record-first": no_tape("no header", '[1,0,"idle",{}]'),
        "byte-order-mark": no_tape("a byte order mark", "\ufeff" + json_text(HEADER)),
        "version-2": no_tape("version 2", HEADER | {"deltatape": 2}),
        "version-1.0": no_tape("version 1.0", json_text(HEADER).replace(":1,", ":1.0,", 1)),
        "version-text": no_tape("a version that is text", HEADER | {"deltatape": "1"}),
        "without-recorded-at": no_tape("a header without its instant", bare),
        "source": no_tape("an unknown source", HEADER | {"source": "telepathy"}),
        "shard": no_tape("a shard beyond the count", HEADER | {"shard": shard}),
        "volatile": no_tape("a number in volatile", HEADER | {"volatile": [1]}),
    }


def format_tapes() -> dict[str, FormatTape]:
    """Return every tape by its name, in the order of the page."""
    groups = {
        "code": _codes(),
        "framing": _framings(),
        "end": _endings(),
        "header": _headers(),
        "bear": _borne(),
        "accept": _accepted(),
        "report": _reported(),
        "refuse-line": _refused_lines(),
        "refuse-tape": _refused_tapes(),
    }
    return {
        f"{group}-{name}": made for group, tapes in groups.items() for name, made in tapes.items()
    }
