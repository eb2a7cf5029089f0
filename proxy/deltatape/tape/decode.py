"""Lines of a tape to values. A tape is untrusted: any bytes give a value or `MalformedError`.

Format: recordings/README.md.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping

from deltatape.tape.fields import MAX_INT, MalformedError, seen
from deltatape.tape.payload import (
    BodyRead,
    Boundaries,
    ClientRecord,
    DeliveredSoFar,
    EndRecord,
    FrameRecord,
    Idle,
    Informational,
    LogLine,
    MaskedSpans,
    ParsedAs,
    RemarkRecord,
    RequestBodyPiece,
    RequestEnd,
    RequestHeadRecord,
    ResponseStart,
    SentUpstream,
    Stop,
    Trailers,
)
from deltatape.tape.record import NO_HEADER, Header, Payload, ReadRecord, Record, Unknown

_PARTS = 4
_EXPECTED = "a line holds one JSON value"

CODES: Mapping[str, Callable[[object], Payload]] = {
    RequestHeadRecord.code: RequestHeadRecord.from_json,
    RequestBodyPiece.code: RequestBodyPiece.from_json,
    RequestEnd.code: RequestEnd.from_json,
    SentUpstream.code: SentUpstream.from_json,
    Informational.code: Informational.from_json,
    ResponseStart.code: ResponseStart.from_json,
    Boundaries.code: Boundaries.from_json,
    MaskedSpans.code: MaskedSpans.from_json,
    BodyRead.code: BodyRead.from_json,
    FrameRecord.code: FrameRecord.from_json,
    Trailers.code: Trailers.from_json,
    DeliveredSoFar.code: DeliveredSoFar.from_json,
    Idle.code: Idle.from_json,
    ClientRecord.code: ClientRecord.from_json,
    RemarkRecord.code: RemarkRecord.from_json,
    LogLine.code: LogLine.from_json,
    EndRecord.code: EndRecord.from_json,
    ParsedAs.code: ParsedAs.from_json,
    Stop.code: Stop.from_json,
}
"""Every code that this version reads; others become `Unknown`."""
_READ = BodyRead.code


def _refuse(constant: str) -> object:
    raise MalformedError(f"{constant} is no JSON; {_EXPECTED}")


_JSON = json.JSONDecoder(parse_constant=_refuse)
_scan = _JSON.scan_once  # type: ignore[attr-defined]  # where `raw_decode` begins


def decode_header(line: bytes) -> Header:
    """Parse the header `line`, with or without its line feed.

    Raises:
        MalformedError: it is no header, or has another version. The text quotes nothing of a line
            that is no header: the file may be any, such as the target of a link.
    """
    try:
        value = _parse(line)
    except MalformedError:
        raise MalformedError(NO_HEADER) from None
    return Header.from_json(value)


def decode_lines(
    lines: Iterable[tuple[int, bytes]], otherwise: Callable[[int, bytes], Iterable[Record]]
) -> Iterator[tuple[int, ReadRecord | Record]]:
    """Parse `lines` to records; yield each with its line number.

    Hot path of reading tapes: a line costs one call of the standard library's C scanner, and a read
    calls no function of ours.

    Args:
        lines: with their numbers, each with its line feed.
        otherwise: parses lines that are invalid or unusual.
    """
    for number, line in lines:
        record: ReadRecord | Record | None = None
        try:
            text = line.decode()
            # Bytes as characters are read faster, and at once back to bytes. Escapes are not.
            encoding = "utf-8" if text.isascii() or b"\\u" in line else "latin-1"
            text = text if encoding == "utf-8" else line.decode(encoding)
            # Four things of these types come of no value but a list.
            (t_ns, exchange, code, payload), end = _scan(text, 0)
            if (
                text[end:] == "\n"
                and type(t_ns) is type(exchange) is int
                and type(code) is str
                and MAX_INT >= t_ns >= 0 <= exchange <= MAX_INT
            ):
                if code == _READ and type(payload) is str:
                    record = (t_ns, exchange, payload.encode(encoding))
                elif encoding == "utf-8":
                    record = Record(t_ns, exchange, _payload(code, payload))
        except (ValueError, TypeError, StopIteration, RecursionError):
            pass  # `otherwise` reports what is wrong
        if record is not None:
            yield number, record
        else:
            for found in otherwise(number, line):
                yield number, found


def decode_record(line: bytes) -> Record:
    """Parse the record `line`, with or without its line feed.

    Raises:
        MalformedError: it is no record.
    """
    value = _parse(line)
    if not isinstance(value, list) or len(value) != _PARTS:
        raise MalformedError(f"{seen(value)} where [t, exchange, code, payload] is expected")
    t_ns, exchange, code, payload = value
    if type(t_ns) is not int or not 0 <= t_ns <= MAX_INT:
        raise MalformedError(f"time {seen(t_ns)}: nanoseconds from 0 to 2^63-1 are expected")
    if type(exchange) is not int or not 0 <= exchange <= MAX_INT:
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
    """Return the JSON value of a line."""
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
