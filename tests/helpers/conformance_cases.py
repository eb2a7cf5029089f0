"""The cases of the conformance table: what a client and a provider send each other."""

from collections.abc import Iterator

from helpers.conformance import REFUSED, Came, Case, Do, Step
from helpers.websocket_cases import SOCKETS

FIN, RST, SEEN, GONE = Do.FIN, Do.RST, Do.SEEN, Do.GONE

GET = b"GET /v1/models HTTP/1.1\r\nHost: HOST\r\nAccept: */*\r\n\r\n"
POST = b"POST /v1/chat/completions HTTP/1.1\r\nHost: HOST\r\nContent-Type: application/json\r\n"
BODY = b'{"model":"m","stream":true}'
ASK = POST + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY
CLOSING_GET = GET.replace(b"Accept", b"Connection: close\r\nAccept")
HEAD_REQUEST = GET.replace(b"GET", b"HEAD")
OLD_GET = GET.replace(b"HTTP/1.1", b"HTTP/1.0")
CHUNKED_ASK = POST + b"Transfer-Encoding: chunked\r\n\r\n"
ONE, TWO = b'data: {"n":1}\n\n', b'data: {"n":2,"last":true}\n\n'
TYPE = b"Content-Type: text/event-stream\r\n"
STREAM = b"HTTP/1.1 200 OK\r\n" + TYPE + b"Transfer-Encoding: chunked\r\n\r\n"
SIZED = b"HTTP/1.1 200 OK\r\n" + TYPE + b"Content-Length: %d\r\n\r\n" % len(ONE + TWO)
UNTIL_CLOSE = b"HTTP/1.1 200 OK\r\n" + TYPE + b"\r\n"
CLOSING = b"Connection: close\r\n"
CLOSING_STREAM = STREAM.replace(TYPE, TYPE + CLOSING)
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"
"""Before a body of nine bytes."""

# Why deltatape differs from direct: docs/recording.md.

HOP = "fields for one hop"
HOST = "`Host` names the provider"
OWN = "`X-Deltatape-*` removed"
SPACES = "white space beside values"
EMPTY_LINES = "without the empty line"
REFRAMED = "other chunks"
OLD = "client of HTTP/1.0"
CLOSES = "`Connection: close`"
BEYOND = "bytes after the end left out"
HALF_CLOSED = "half-closed, counts as gone"

# Why a replay differs from what the recorded client got: docs/replay.md.

LINES = "white space in the head"
FRAMED = "other chunks"
CUT_FRAMING = "framing at the cut"


def chunk(data: bytes) -> bytes:
    """`data` as one HTTP chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def answers(
    name: str,
    *upstream: Step,
    request: bytes = ASK,
    deltatape: str = "",
    replay: str = "",
) -> Case:
    """A case whose client asks once, at once."""
    return Case(
        name=name,
        client=(request,),
        upstream=(Came(request[-12:]), *upstream),
        deltatape=deltatape,
        replay=replay,
    )


def asks(name: str, request: bytes, *, came: bytes = b"", deltatape: str = "") -> Case:
    """A case about a request, which is answered once `came` has come."""
    return Case(
        name=name,
        client=(request,),
        upstream=(Came(came or request[-12:]), OK + b"the reply"),
        deltatape=deltatape,
    )


# Response heads, each with a body: in one piece, followed slowly by its body, and cut.


def head(*fields: bytes, line: bytes = b"HTTP/1.1 200 OK", end: bytes = b"\r\n") -> bytes:
    """A head of an event stream with these fields."""
    return end.join((line, TYPE[:-2], *fields, b"", b""))


CHUNKED = b"Transfer-Encoding: chunked"
LENGTH = b"Content-Length: %d" % len(ONE + TWO)
HEADS = {
    "plain": head(),
    "plain, with a length": head(LENGTH),
    "plain, chunked": head(CHUNKED),
    "line feeds alone": head(end=b"\n"),
    "line feeds alone, with a length": head(LENGTH, end=b"\n"),
    "last line ends with a line feed alone": b"HTTP/1.1 200 OK\r\n" + TYPE + b"\n",
    "line feed before the blank line": b"HTTP/1.1 200 OK\r\n" + TYPE[:-2] + b"\n\r\n",
    "folded field": head(b"X-A: 1\r\n 2"),
    "folded first field": b"HTTP/1.1 200 OK\r\n X-A: 1\r\n" + TYPE + b"\r\n",
    "space before a colon": head(b"X-A : 1"),
    "space in a name": head(b"X A: 1"),
    "no colon": head(b"X-A 1"),
    "empty name": head(b": 1"),
    "empty value": head(b"X-A:"),
    "no space after a colon": head(b"X-A:1"),
    "spaces and tabs around a value": head(b"X-A: \t 1 \t "),
    "NUL in a value": head(b"X-A: 1\x002"),
    "NUL in a name": head(b"X\x00A: 1"),
    "control character in a value": head(b"X-A: 1\x012"),
    "DEL in a value": head(b"X-A: 1\x7f2"),
    "CR in a value": head(b"X-A: 1\r2"),
    "Latin-1 in a value": head(b"X-A: caf\xe9"),
    "the same field twice, in other case": head(b"X-A: 1", b"x-a: 2", b"X-A: 1"),
    "two lengths, equal": head(LENGTH, LENGTH),
    "two lengths, different": head(LENGTH, b"Content-Length: 7"),
    "list of equal lengths": head(b"Content-Length: 41, 41"),
    "length with a sign": head(b"Content-Length: +41"),
    "negative length": head(b"Content-Length: -1"),
    "length in hexadecimal": head(b"Content-Length: 0x29"),
    "empty length": head(b"Content-Length:"),
    "length over 64 bits": head(b"Content-Length: 99999999999999999999"),
    "length beside chunks": head(LENGTH, CHUNKED),
    "chunks beside length": head(CHUNKED, LENGTH),
    "chunked twice": head(CHUNKED, CHUNKED),
    "chunked in capitals": head(b"TRANSFER-ENCODING: CHUNKED"),
    "chunked after gzip": head(b"Transfer-Encoding: gzip, chunked"),
    "chunked before identity": head(b"Transfer-Encoding: chunked, identity"),
    "identity": head(b"Transfer-Encoding: identity"),
    "unknown coding": head(b"Transfer-Encoding: xchunked"),
    "HTTP/1.2": head(line=b"HTTP/1.2 200 OK"),
    "HTTP/2.0": head(line=b"HTTP/2.0 200 OK"),
    "HTTP/3": head(line=b"HTTP/3 200 OK"),
    "HTTP/0.9": head(line=b"HTTP/0.9 200 OK"),
    "http in small letters": head(line=b"http/1.1 200 OK"),
    "ICY": head(line=b"ICY 200 OK"),
    "status without reason": head(line=b"HTTP/1.1 200 "),
    "status without reason and space": head(line=b"HTTP/1.1 200"),
    "reason in Latin-1": head(line=b"HTTP/1.1 200 tr\xe8s bien"),
    "unknown status": head(line=b"HTTP/1.1 799 Odd"),
    "status of two digits": head(line=b"HTTP/1.1 20 OK"),
    "status of four digits": head(line=b"HTTP/1.1 2000 OK"),
    "two spaces before the status": head(line=b"HTTP/1.1  200 OK"),
    "empty line before the head": b"\r\n" + head(),
    "no head": b"",
    "HTTP/1.0": head(line=b"HTTP/1.0 200 OK"),
    "HTTP/1.0 with a length": head(LENGTH, line=b"HTTP/1.0 200 OK"),
    "HTTP/1.0, kept": head(LENGTH, b"Connection: keep-alive", line=b"HTTP/1.0 200 OK"),
    "HTTP/1.0, chunked": head(CHUNKED, line=b"HTTP/1.0 200 OK"),
    "Connection: close": head(CHUNKED, b"Connection: close", b"X-A: 1"),
    "Connection: keep-alive": head(b"Connection: keep-alive", b"Keep-Alive: timeout=5", CHUNKED),
    "field that Connection lists": head(b"Connection: X-A", b"X-A: 1", CHUNKED),
    "Upgrade offered": head(b"Upgrade: h2c", b"Connection: Upgrade", CHUNKED),
    "field of 64 KB": head(b"X-A: " + b"a" * 65536, CHUNKED),
    "1,000 fields": head(*(b"X-%d: 1" % number for number in range(1000)), CHUNKED),
    "200 KB": head(*(b"X-%d: " % number + b"a" * 2000 for number in range(100)), CHUNKED),
    "400 KB": head(*(b"X-%d: " % number + b"a" * 4000 for number in range(100)), CHUNKED),
}


RESPELLED = frozenset(
    (
        *("empty value", "no space after a colon", "spaces and tabs around a value"),
        *("status without reason and space", "empty line before the head"),
    )
)
"""Names of heads that a tape spells in its own way."""


def odd_heads() -> Iterator[Case]:
    """Each head in three ways."""
    for name, raw in HEADS.items():
        chunked = CHUNKED.lower() in raw.lower() and b", identity" not in raw
        first, last = (chunk(ONE), chunk(TWO) + b"0\r\n\r\n") if chunked else (ONE, TWO)
        ends_itself = (chunked or b"length: " in raw.lower()) and not closes_itself(raw)
        end = () if ends_itself else (FIN,)
        replay = LINES if name in RESPELLED else ""
        yield answers(f"{name} / whole", raw + first + last, *end, replay=replay)
        begin = (raw, SEEN) if raw else ()
        yield answers(f"{name} / slowly", *begin, first, SEEN, last, *end, replay=replay)
        if raw:
            yield answers(f"{name} / cut", raw[:-2], FIN)


def closes_itself(raw: bytes) -> bool:
    """Whether a head says that the connection ends after its response."""
    return CLOSING in raw or (raw.startswith(b"HTTP/1.0") and b"keep-alive" not in raw)


# Answers without a body, and heads before the head.

EMPTY = (
    answers("204", b"HTTP/1.1 204 No Content\r\nX-A: last\r\n\r\n"),
    answers("204 with a length", b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"),
    answers(
        "204 with a body",
        b"HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\nbody",
        FIN,
        request=CLOSING_GET,
        deltatape=BEYOND,
    ),
    answers("304 with a length", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"),
    answers(
        "304 with a body",
        b"HTTP/1.1 304 Not Modified\r\nContent-Length: 4\r\n\r\nbody",
        FIN,
        request=CLOSING_GET,
        deltatape=BEYOND,
    ),
    answers("HEAD", SIZED, request=HEAD_REQUEST),
    answers("HEAD, chunked", STREAM, request=HEAD_REQUEST),
    answers("HEAD without framing", UNTIL_CLOSE, request=HEAD_REQUEST),
    answers(
        "HEAD with a body",
        SIZED,
        ONE + TWO,
        FIN,
        request=CLOSING_GET.replace(b"GET", b"HEAD"),
        deltatape=BEYOND,
    ),
    answers("empty body", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    answers("empty chunked body", STREAM + b"0\r\n\r\n"),
    answers("100 before 200", b"HTTP/1.1 100 Continue\r\n\r\n" + SIZED + ONE + TWO),
    answers(
        "103, slowly before 200",
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n",
        *(SEEN, b"HTTP/1.1 102 Processing\r\n\r\n"),
        *(SEEN, SIZED + ONE + TWO),
    ),
    answers(
        "101 that nobody asked for",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nabc",
        FIN,
    ),
    answers("nothing, FIN", FIN),
    answers("nothing, RST", RST),
    answers("cut after 103", b"HTTP/1.1 103 Early Hints\r\n\r\n", SEEN, FIN),
    answers("cut in the head after 103", b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200", FIN),
    answers("RST in a head", SIZED[:30], RST),
)

# Bodies in every framing, whole and cut.

BODIES = (
    answers("length", SIZED + ONE + TWO),
    answers("length, slowly", SIZED, SEEN, ONE, SEEN, TWO[:5], SEEN, TWO[5:]),
    answers("length, FIN after the head", SIZED, SEEN, FIN),
    answers("length, FIN in the body", SIZED + ONE, SEEN, FIN),
    answers("length, RST after the head", SIZED, SEEN, RST),
    answers("length, RST in the body", SIZED + ONE, SEEN, RST),
    answers(
        "length, then more", SIZED + ONE + TWO + b"more", FIN, request=CLOSING_GET, deltatape=BEYOND
    ),
    answers("until close", UNTIL_CLOSE, SEEN, ONE, SEEN, TWO, FIN),
    answers("until close, empty", UNTIL_CLOSE, SEEN, FIN),
    answers("until close, RST after the head", UNTIL_CLOSE, SEEN, RST),
    answers("until close, RST in the body", UNTIL_CLOSE + ONE, SEEN, RST),
    answers("chunked", STREAM + chunk(ONE) + chunk(TWO) + b"0\r\n\r\n"),
    answers("chunked, slowly", STREAM, SEEN, chunk(ONE), SEEN, chunk(TWO), SEEN, b"0\r\n\r\n"),
    answers(
        "chunked, an event in two chunks",
        STREAM + chunk(ONE[:5]),
        SEEN,
        chunk(ONE[5:]) + b"0\r\n\r\n",
    ),
    answers(
        "chunked, in pieces",
        STREAM,
        SEEN,
        b"f\r",
        SEEN,
        b"\n" + ONE[:4],
        SEEN,
        ONE[4:] + b"\r",
        SEEN,
        b"\n0\r\n\r",
        SEEN,
        b"\n",
    ),
    answers("chunked, 1 MB", STREAM, chunk(b"x" * 1_000_000) + b"0\r\n\r\n"),
    answers(
        "chunk sizes with zeros and capitals",
        CLOSING_STREAM + b"00F\r\n" + ONE + b"\r\n0\r\n\r\n",
        FIN,
        replay=FRAMED,
    ),
    answers(
        "chunk extensions",
        CLOSING_STREAM + b'd;a=1;b="x y"\r\n' + ONE + b"\r\n0;c\r\n\r\n",
        FIN,
        replay=FRAMED,
    ),
    answers(
        "space after a chunk size",
        CLOSING_STREAM + b"f \r\n" + ONE + b"\r\n0\r\n\r\n",
        FIN,
        replay=FRAMED,
    ),
    answers(
        "several zeros as the last chunk",
        CLOSING_STREAM + chunk(ONE) + b"000\r\n\r\n",
        FIN,
        replay=FRAMED,
    ),
    answers("trailers", STREAM + chunk(ONE) + b"0\r\nX-Sum: 1\r\nx-b: 2\r\n\r\n"),
    answers(
        "trailer without a space",
        CLOSING_STREAM + chunk(ONE) + b"0\r\nX-Sum:1\r\n\r\n",
        FIN,
        replay=LINES,
    ),
    answers(
        "chunked, then more",
        STREAM + chunk(ONE) + b"0\r\n\r\nmore",
        FIN,
        request=CLOSING_GET,
        deltatape=BEYOND,
    ),
    *(
        answers(f"chunked, {how.name} {place}", STREAM + raw, SEEN, how, replay=replay)
        for how in (FIN, RST)
        for place, raw, replay in (
            ("after the head", b"", ""),
            ("in a chunk size", b"f", CUT_FRAMING),
            ("after a chunk size", b"f\r\n", CUT_FRAMING),
            ("in a chunk", b"f\r\n" + ONE[:5], CUT_FRAMING),
            ("after a chunk's data", b"f\r\n" + ONE, CUT_FRAMING),
            ("after a chunk", chunk(ONE), ""),
            ("in the next chunk size", chunk(ONE) + b"1", CUT_FRAMING),
            ("in the next chunk", chunk(ONE) + b"1b\r\n" + TWO[:9], CUT_FRAMING),
            ("in the last chunk", chunk(ONE) + b"0\r\n", ""),
            ("in the trailers", chunk(ONE) + b"0\r\nX-Sum: 1\r\n", CUT_FRAMING),
        )
    ),
    answers(
        "broken chunk size", STREAM, SEEN, chunk(ONE), SEEN, b"zz\r\nrest", SEEN, b" of it", FIN
    ),
    answers("chunk lines with line feeds alone", STREAM, SEEN, b"f\n" + ONE + b"\n0\n\n", FIN),
    answers(
        "chunk longer than its size", STREAM, b"2\r\n" + ONE + b"\r\n0\r\n\r\n", FIN, replay=FRAMED
    ),
    answers("chunk size over 64 bits", STREAM, SEEN, b"1ffffffffffffffff\r\nabc", FIN),
    answers(
        "broken trailer",
        STREAM,
        SEEN,
        chunk(ONE),
        SEEN,
        b"0\r\nno colon\r\n\r\n",
        FIN,
    ),
    answers("half-closed before its end", SIZED + ONE, SEEN, FIN),
    answers("HTTP/1.0 client, length", SIZED + ONE + TWO, FIN, request=OLD_GET, deltatape=OLD),
    answers(
        "HTTP/1.0 client, chunked",
        STREAM + chunk(ONE) + b"0\r\n\r\n",
        FIN,
        request=OLD_GET,
        deltatape=OLD,
    ),
    answers(
        "client that closes, length",
        SIZED + ONE + TWO,
        FIN,
        request=CLOSING_GET,
        deltatape=CLOSES,
    ),
    answers(
        "client that closes, provider that closes",
        CLOSING_STREAM + chunk(ONE) + b"0\r\n\r\n",
        FIN,
        request=CLOSING_GET,
        deltatape=CLOSES,
    ),
)

# Requests, as they reach the provider.


def get(target: bytes = b"/v1/models", *fields: bytes, method: bytes = b"GET") -> bytes:
    """A request without a body."""
    return b"\r\n".join((b"%b %b HTTP/1.1" % (method, target), b"Host: HOST", *fields, b"", b""))


METHODS = (
    b"GET",
    b"POST",
    b"PUT",
    b"PATCH",
    b"DELETE",
    b"OPTIONS",
    b"TRACE",
    b"PROPFIND",
    b"QUERY",
)
TARGETS = (
    *(b"/", b"//b/../c", b"/a?q=%7E&q=", b"/'(){}|", b"/v1/x?a=b%20c", b"/a#b", b"/%00"),
    *(b"/a?", b"/a;b=c", b"/v1/" + b"a" * 8000, b'/a"<>\\^`'),
)
REQUESTS = (
    *(asks(f"method {method.decode()}", get(method=method)) for method in METHODS),
    *(asks(f"target {target[:20].decode()}", get(target)) for target in TARGETS),
    asks("target *", get(b"*", method=b"OPTIONS"), deltatape=REFUSED),
    asks("absolute target", get(b"http://HOST/v1/models?a=1"), deltatape=REFUSED),
    asks(
        "absolute target of another host", get(b"http://evil.example/v1/models"), deltatape=REFUSED
    ),
    asks("CONNECT", get(b"HOST", method=b"CONNECT"), deltatape=REFUSED),
    asks(
        "the same field twice, in other case (request)", get(b"/", b"X-A: 1", b"x-a: 2", b"X-A: 1")
    ),
    asks("empty value (request)", get(b"/", b"X-A:", b"X-B: last"), deltatape=SPACES),
    asks("no space after a colon (request)", get(b"/", b"X-A:1", b"X-B: last"), deltatape=SPACES),
    asks(
        "spaces around a value (request)", get(b"/", b"X-A: \t1\t ", b"X-B: last"), deltatape=SPACES
    ),
    asks("Latin-1 in a value (request)", get(b"/", b"X-A: caf\xe9", b"X-B: last")),
    asks("1,000 fields (request)", get(b"/", *(b"X-%d: 1" % number for number in range(1000)))),
    asks("field of 8 KB (request)", get(b"/", b"X-A: " + b"a" * 8000)),
    asks("field of 64 KB (request)", get(b"/", b"X-A: " + b"a" * 65536)),
    asks(
        "Authorization and cookies",
        get(b"/", b"Authorization: Bearer sk-fake-0000", b"Cookie: a=b", b"X-B: last"),
    ),
    asks("x-deltatape-tape", get(b"/", b"X-Deltatape-Tape: t", b"X-B: last"), deltatape=OWN),
    asks(
        "fields for one hop",
        get(
            b"/",
            b"Connection: keep-alive, X-A",
            b"X-A: 1",
            b"Keep-Alive: timeout=5",
            b"TE: trailers",
            b"X-B: last",
        ),
        deltatape=HOP,
    ),
    asks(
        "Upgrade: websocket",
        get(b"/", b"Connection: Upgrade", b"Upgrade: websocket", b"X-B: last"),
    ),
    asks(
        "Upgrade: h2c",
        get(
            b"/",
            b"Connection: Upgrade, HTTP2-Settings",
            b"Upgrade: h2c",
            b"HTTP2-Settings: AAMAAABkAAQ",
            b"X-B: last",
        ),
        deltatape=HOP,
    ),
    asks(
        "other Host",
        get(b"/", b"X-B: last").replace(b"Host: HOST", b"Host: localhost:9"),
        deltatape=HOST,
    ),
    asks("empty line before the request", b"\r\n" + GET, deltatape=EMPTY_LINES),
    Case(
        name="HTTP/1.0 without Host",
        client=(b"GET /v1/models HTTP/1.0\r\nX-B: last\r\n\r\n",),
        upstream=(Came(b"last\r\n\r\n"), OK + b"the reply", FIN),
        deltatape=OLD,
    ),
    Case(
        name="HTTP/1.0, chunked (request)",
        client=(CHUNKED_ASK.replace(b"HTTP/1.1", b"HTTP/1.0") + chunk(BODY) + b"0\r\n\r\n",),
        upstream=(Came(b"\r\n0\r\n\r\n"), OK + b"the reply", FIN),
        deltatape=OLD,
    ),
    asks("GET with a body", get(b"/", b"Content-Length: 4") + b"body"),
    asks("body with a length", ASK),
    Case(
        name="body with a length, in pieces",
        client=(ASK[:-20], SEEN, ASK[-20:-9], SEEN, ASK[-9:]),
        upstream=(Came(BODY), OK + b"the reply"),
    ),
    asks("empty body (request)", POST + b"Content-Length: 0\r\n\r\n", came=b"\r\n\r\n"),
    asks(
        "body of 1 MB",
        POST + b"Content-Length: 1000000\r\n\r\n" + b"x" * 1_000_000,
        came=b"x" * 999_999,
    ),
    asks("chunked (request)", CHUNKED_ASK + chunk(BODY) + b"0\r\n\r\n"),
    asks(
        "chunked, in several chunks",
        CHUNKED_ASK + chunk(BODY[:9]) + chunk(BODY[9:]) + b"0\r\n\r\n",
        came=b"\r\n0\r\n\r\n",
        deltatape=REFRAMED,
    ),
    asks(
        "chunk extensions (request)",
        CHUNKED_ASK + b"1b;a=1\r\n" + BODY + b"\r\n0\r\n\r\n",
        deltatape=REFRAMED,
    ),
    asks("trailers (request)", CHUNKED_ASK + chunk(BODY) + b"0\r\nX-Sum: 1\r\n\r\n"),
    asks(
        "trailer without a space (request)",
        CHUNKED_ASK + chunk(BODY) + b"0\r\nX-Sum:1\r\n\r\n",
        came=b"1\r\n\r\n",
        deltatape=SPACES,
    ),
    Case(
        name="Expect: 100-continue",
        client=(
            POST + b"Content-Length: 2\r\nExpect: 100-continue\r\n\r\n",
            Came(b"100 Continue\r\n\r\n"),
            b"{}",
        ),
        upstream=(
            Came(b"\r\n\r\n"),
            b"HTTP/1.1 100 Continue\r\n\r\n",
            Came(b"{}"),
            OK + b"the reply",
        ),
    ),
    Case(
        name="Expect: 100-continue, refused",
        client=(POST + b"Content-Length: 2\r\nExpect: 100-continue\r\n\r\n",),
        upstream=(
            Came(b"\r\n\r\n"),
            b"HTTP/1.1 417 No\r\nContent-Length: 7\r\nConnection: close\r\n\r\nno body",
            FIN,
        ),
        replay=None,
    ),
    Case(
        name="kept connection",
        client=(GET, Came(b"the first"), ASK),
        upstream=(Came(GET[-12:]), OK + b"the first", Came(BODY), OK + b"the reply"),
    ),
    Case(
        name="kept connection after chunks",
        client=(GET, Came(b"\r\n0\r\n\r\n"), ASK),
        upstream=(
            Came(GET[-12:]),
            STREAM + chunk(ONE) + b"0\r\n\r\n",
            Came(BODY),
            OK + b"the reply",
        ),
    ),
    Case(
        name="kept connection after HEAD, 204 and 304",
        client=(
            get(method=b"HEAD"),
            Came(b"A: 1\r\n\r\n"),
            get(b"/2"),
            Came(b"A: 2\r\n\r\n"),
            get(b"/3"),
            Came(b"A: 3\r\n\r\n"),
            GET,
        ),
        upstream=(
            *(Came(b"\r\n\r\n"), b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\nX-A: 1\r\n\r\n"),
            *(
                Came(b"/2 HTTP/1.1\r\nHost: HOST\r\n\r\n"),
                b"HTTP/1.1 204 No Content\r\nX-A: 2\r\n\r\n",
            ),
            *(
                Came(b"/3 HTTP/1.1\r\nHost: HOST\r\n\r\n"),
                b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\nX-A: 3\r\n\r\n",
            ),
            *(Came(GET[-12:]), OK + b"the reply"),
        ),
    ),
    Case(
        name="kept connection after two lengths",
        client=(GET, Came(b"the first"), ASK),
        upstream=(
            Came(GET[-12:]),
            OK.replace(b"\r\n\r\n", b"\r\nContent-Length: 9\r\n\r\n") + b"the first",
            Came(BODY),
            OK + b"the reply",
        ),
    ),
    Case(
        name="pipelined",
        client=(GET + ASK,),
        upstream=(Came(GET[-12:]), OK + b"the first", Came(BODY), OK + b"the reply"),
    ),
    Case(
        name="pipelined while an answer streams",
        client=(GET, Came(ONE), ASK),
        upstream=(
            Came(GET[-12:]),
            STREAM + chunk(ONE),
            SEEN,
            chunk(TWO) + b"0\r\n\r\n",
            Came(BODY),
            OK + b"the reply",
        ),
    ),
    Case(
        name="answer before the body has come",
        client=(POST + b"Content-Length: 99\r\n\r\n" + BODY,),
        upstream=(
            Came(BODY),
            b"HTTP/1.1 413 Too Large\r\nContent-Length: 7\r\nConnection: close\r\n\r\nno more",
            FIN,
        ),
        replay=None,
    ),
    *(
        Case(
            name=f"client's {how.name} {place}",
            client=(*sent, SEEN, how),
            upstream=(Came(BODY[:9]), *got, GONE, FIN),
            deltatape=reframed,
            replay=None if "body" in place else "",
        )
        for how in (FIN, RST)
        for place, sent, got, reframed in (
            ("in a body with a length", (ASK[:-9],), (), ""),
            ("in a chunked body", (CHUNKED_ASK + b"1b\r\n" + BODY[:9],), (), REFRAMED),
            ("before the answer", (ASK,), (), ""),
            ("in the answer", (ASK, Came(ONE)), (STREAM + chunk(ONE),), ""),
        )
    ),
    Case(
        name="client's FIN after its request",
        client=(ASK, FIN),
        upstream=(Came(BODY), GONE, OK + b"the reply", FIN),
        deltatape=HALF_CLOSED,
    ),
)

# Requests that a browser or an attacker sends: refused before they reach the provider.

HOSTS = (
    *(
        b"evil.example",
        b"evil.example@127.0.0.1",
        b"127.0.0.1.evil.example",
        b"",
        b"localhost#.evil.example",
    ),
    *(
        b"localhost/.evil.example",
        b"localhost?.evil.example",
        b"127.0.0.1:80:80",
        b"127.0.0.1 evil.example",
    ),
    *(b"localhost:x", b"[::1].evil.example", b"[::1", b"localhost,evil.example", b"10.0.0.1"),
)
ORIGINS = (
    *((b"http://evil.example",), (b"null",), (b"http://localhost", b"http://evil.example")),
    *((b"http://evil.example@localhost",), (b"http://localhost.evil.example",), (b"",)),
)
HEADS_OF_ATTACKS = {
    "two Hosts": get(b"/", b"Host: HOST"),
    "no Host": b"GET / HTTP/1.1\r\nX-A: 1\r\n\r\n",
    "page of another site": get(b"/", b"Sec-Fetch-Site: cross-site"),
    "two lengths": get(b"/", b"Content-Length: 1", b"Content-Length: 2") + b"ab",
    "list of lengths": get(b"/", b"Content-Length: 1, 1") + b"a",
    "length beside chunks": get(b"/", b"Content-Length: 5", CHUNKED) + b"0\r\n\r\n",
    "chunks beside length": get(b"/", CHUNKED, b"Content-Length: 5") + b"0\r\n\r\n",
    "length with a sign": get(b"/", b"Content-Length: +1") + b"a",
    "length over 64 bits": get(b"/", b"Content-Length: 99999999999999999999") + b"a",
    "unknown coding": get(b"/", b"Transfer-Encoding: xchunked") + b"0\r\n\r\n",
    "chunked before identity": get(b"/", b"Transfer-Encoding: chunked, identity") + b"0\r\n\r\n",
    "empty coding beside another": get(b"/", CHUNKED, b"Transfer-Encoding:") + b"0\r\n\r\n",
    "line feeds alone": GET.replace(b"\r\n", b"\n"),
    "folded field": get(b"/", b"X-A: 1\r\n 2"),
    "space before a colon": get(b"/", b"X-A : 1"),
    "no colon": get(b"/", b"X-A"),
    "empty name": get(b"/", b": 1"),
    "CR in a value": get(b"/", b"X-A: 1\rX-B: 2"),
    "NUL in a value": get(b"/", b"X-A: 1\x00"),
    "NUL in a name": get(b"/", b"X\x00A: 1"),
    "CR in the target": get(b"/a\rb"),
    "NUL in the target": get(b"/a\x00b"),
    "space in the target": get(b"/a b"),
    "UTF-8 in the target": get(b"/caf\xc3\xa9"),
    "unknown method": get(method=b"FOO"),
    "method in small letters": get(method=b"get"),
    "HTTP/1.2": GET.replace(b"1.1", b"1.2"),
    "HTTP/0.9": b"GET /\r\n\r\n",
    "HTTP/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
    "TLS": b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03" + b"a" * 40,
    "no HTTP": b"hello\r\n\r\n",
    "head of 300 KB": get(b"/", b"X-A: " + b"a" * 300_000),
}
BODIES_OF_ATTACKS = {
    "trailer Host": b"0\r\nHost: evil.example\r\n\r\n",
    "trailer Content-Length": b"0\r\nContent-Length: 9\r\n\r\n",
    "trailer Transfer-Encoding": b"0\r\nTransfer-Encoding: x\r\n\r\n",
    "trailer Authorization": b"0\r\nAuthorization: x\r\n\r\n",
    "CR in a trailer": b"0\r\nX-A: 1\rGET /smuggled HTTP/1.1\r\n\r\n",
    "NUL in a trailer": b"0\r\nX-A: 1\x00\r\n\r\n",
    "space in a trailer's name": b"0\r\nX A: 1\r\n\r\n",
    "folded trailer": b"0\r\nX-A: 1\r\n 2\r\n\r\n",
    "trailer with a line feed alone": b"0\r\nX-A: 1\n\r\n",
    "chunk lines with line feeds alone": b"1\na\n0\n\n",
    "chunk size with a sign": b"+1\r\na\r\n0\r\n\r\n",
    "chunk size in 0x": b"0x1\r\na\r\n0\r\n\r\n",
    "chunk size over 64 bits": b"10000000000000001\r\na\r\n0\r\n\r\n",
    "negative chunk size": b"-1\r\na\r\n0\r\n\r\n",
    "empty chunk size": b"\r\na\r\n0\r\n\r\n",
    "space before a chunk size": b" 1\r\na\r\n0\r\n\r\n",
    "space after a chunk size": b"1 \r\na\r\n0\r\n\r\n",
    "CR in a chunk extension": b"1;a\rb\r\na\r\n0\r\n\r\n",
    "chunk longer than its size": b"1\r\nabc\r\n0\r\n\r\n",
}


def attacks() -> Iterator[Case]:
    """Requests that must be refused."""
    for host in HOSTS:
        yield _attack(f"Host {host.decode()!r}", GET.replace(b"Host: HOST", b"Host: " + host))
    for origins in ORIGINS:
        shown = " and ".join(repr(origin.decode()) for origin in origins)
        yield _attack(f"Origin {shown}", get(b"/", *(b"Origin: " + origin for origin in origins)))
    for name, raw in HEADS_OF_ATTACKS.items():
        yield _attack(name, raw)
    for name, body in BODIES_OF_ATTACKS.items():
        yield _attack(name, CHUNKED_ASK + body)


def _attack(name: str, request: bytes) -> Case:
    return asks(name, request, came=request[:1], deltatape=REFUSED)


GROUPS = {
    "heads": tuple(odd_heads()),
    "empty": EMPTY,
    "bodies": BODIES,
    "requests": REQUESTS,
    "sockets": SOCKETS,
    "refused": tuple(attacks()),
}
