"""Records moved to another tape: other time and number, else the same bytes.

Only the first two elements of a line are written anew. What follows is kept as it stands, so that
a record keeps its bytes whatever its code, known or not. Where a payload has to say something else,
its other keys stay, also those that nobody knows.

Format: recordings/README.md, "Records".
"""

import json
import re
from collections.abc import Mapping
from typing import NamedTuple

from deltatape.tape.encode import json_text
from deltatape.tape.fields import MalformedError

MAX_INT = 2**63 - 1
"""The last time that a record can have."""

_FRONT = re.compile(rb"[ \t\r]*\[[ \t\r]*(-?[0-9]+)[ \t\r]*,[ \t\r]*(-?[0-9]+)[ \t\r]*,[ \t\r]*")
_CODE = re.compile(rb'"([a-z-]+)"')


class LinePrefix(NamedTuple):
    """A split line: `rest` follows time and number, with the line feed."""

    t_ns: int
    exchange: int
    rest: bytes

    @property
    def code(self) -> str:
        """The code, "" if it is written in another way than recorders write codes."""
        match = _CODE.match(self.rest)
        return match[1].decode() if match else ""

    def line(self, t_ns: int, exchange: int) -> bytes:
        """Return the same record at another time, under another number."""
        return b"[%d,%d,%b" % (t_ns, exchange, self.rest)

    @property
    def payload(self) -> Mapping[str, object]:
        """The payload of a record whose payload is an object."""
        value: Mapping[str, object] = json.loads(b"[" + self.rest)[1]
        return value

    def saying(self, payload: Mapping[str, object]) -> "LinePrefix":
        """Return the record with another payload."""
        code = json.loads(b"[" + self.rest)[0]
        return self._replace(rest=f"{json_text(code)},{json_text(payload)}]\n".encode())


def front(line: bytes) -> LinePrefix:
    """Split a record's line, with or without its line feed.

    Args:
        line: what `decode_record` accepts.

    Raises:
        MalformedError: the line is no record.
    """
    match = _FRONT.match(line)
    if match is None:
        raise MalformedError("no record: [t, exchange, code, payload] is expected")
    rest = line[match.end() :]
    return LinePrefix(int(match[1]), int(match[2]), rest if rest.endswith(b"\n") else rest + b"\n")
