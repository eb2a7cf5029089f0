"""Lines of a tape to values. A tape is untrusted: any bytes give a value or `MalformedError`.

Format: recordings/README.md.
"""

import json
import re
from collections.abc import Callable, Mapping
from json.decoder import scanstring  # type: ignore[attr-defined]

from deltatape.tape.fields import MalformedError, seen
from deltatape.tape.heads import Informational, RequestHead, ResponseStart, Trailers
from deltatape.tape.payload import (
    BodyRead,
    Boundaries,
    Client,
    DeliveredSoFar,
    Ending,
    Idle,
    LogLine,
    MaskedSpans,
    Remark,
    RequestBody,
    RequestEnd,
    SentUpstream,
    Stop,
)
from deltatape.tape.record import Header, Payload, ReadRecord, Record, Unknown

_MAX_INT = 2**63 - 1
_PARTS = 4
_EXPECTED = "a line holds one JSON value"
_READ = re.compile(rb'\[(0|[1-9][0-9]{0,17}),([1-9][0-9]{0,17}),"read","')
"""How a line with the text of a read begins if nobody has edited it; at most 18 digits are less
than `_MAX_INT`."""
_READ_ENDS = ("]\n", "]")

CODES: Mapping[str, Callable[[object], Payload]] = {
    RequestHead.code: RequestHead.from_json,
    RequestBody.code: RequestBody.from_json,
    RequestEnd.code: RequestEnd.from_json,
    SentUpstream.code: SentUpstream.from_json,
    Informational.code: Informational.from_json,
    ResponseStart.code: ResponseStart.from_json,
    Boundaries.code: Boundaries.from_json,
    MaskedSpans.code: MaskedSpans.from_json,
    BodyRead.code: BodyRead.from_json,
    Trailers.code: Trailers.from_json,
    DeliveredSoFar.code: DeliveredSoFar.from_json,
    Idle.code: Idle.from_json,
    Client.code: Client.from_json,
    Remark.code: Remark.from_json,
    LogLine.code: LogLine.from_json,
    Ending.code: Ending.from_json,
    Stop.code: Stop.from_json,
}
"""Every code that this version reads; others become `Unknown`."""


def _refuse(constant: str) -> object:
    raise MalformedError(f"{constant} is no JSON; {_EXPECTED}")


_JSON = json.JSONDecoder(parse_constant=_refuse)


def decode_header(line: bytes) -> Header:
    """The header that `line`, with or without its line feed, is.

    Raises:
        MalformedError: it is none, or of another version.
    """
    return Header.from_json(_parse(line))


def decode_read(line: bytes) -> ReadRecord | None:
    """The record of a read that `line` is; None if it is none, or has to be looked at in full.

    Most lines of a tape are such ones: this is what takes time in reading one.
    """
    start = _READ.match(line)
    if start is None:
        return None
    try:
        text = line.decode()
        # All before is ASCII, so that places in the bytes are places in the text.
        value, end = scanstring(text, start.end(), True)  # noqa: FBT003 - C takes no names
        if text[end:] not in _READ_ENDS:
            return None
        return ReadRecord(int(start[1]), int(start[2]), value.encode())
    except ValueError:  # what is wrong is told by the one who looks in full
        return None


def decode_record(line: bytes) -> Record:
    """The record that `line`, with or without its line feed, is.

    Raises:
        MalformedError: it is none.
    """
    value = _parse(line)
    if not isinstance(value, list) or len(value) != _PARTS:
        raise MalformedError(f"{seen(value)} where [t, exchange, code, payload] is expected")
    t_ns, exchange, code, payload = value
    if type(t_ns) is not int or not 0 <= t_ns <= _MAX_INT:
        raise MalformedError(f"time {seen(t_ns)}: nanoseconds from 0 to 2^63-1 are expected")
    if type(exchange) is not int or not 0 <= exchange <= _MAX_INT:
        raise MalformedError(f"exchange {seen(exchange)}: an integer from 0 to 2^63-1 is expected")
    if not isinstance(code, str):
        raise MalformedError(f"code {seen(code)}: a string is expected")
    return Record(t_ns=t_ns, exchange=exchange, payload=_payload(code, payload))


def _payload(code: str, value: object) -> Payload:
    read = CODES.get(code)
    if read is None:
        return Unknown(code=code, value=value)
    try:
        return read(value)
    except MalformedError as error:
        raise MalformedError(f"{code}: {error}") from error


def _parse(line: bytes) -> object:
    """The JSON value of a line."""
    try:
        value: object = _JSON.decode(line.decode())
    except UnicodeDecodeError as error:
        raise MalformedError(f"no UTF-8 at byte {error.start}; {_EXPECTED}") from error
    except json.JSONDecodeError as error:
        around = error.doc[max(error.pos - 10, 0) : error.pos + 20]
        problem = f"no JSON at character {error.pos}, {seen(around)}; {_EXPECTED}"
        raise MalformedError(problem) from error
    except RecursionError as error:
        raise MalformedError(f"JSON nested too deep; {_EXPECTED}") from error
    except MalformedError:
        raise
    except ValueError as error:  # an integer of more digits than Python converts
        raise MalformedError(f"a number too large ({error}); {_EXPECTED}") from error
    return value
