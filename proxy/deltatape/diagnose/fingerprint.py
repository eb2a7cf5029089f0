"""What makes two findings the same one, on tapes of different runs.

A fingerprint survives that a test is recorded again: it takes the code, what was asked (the path,
the last words of the user, whether tools have answered), and the message without what differs from
run to run: numbers, identifiers with digits, quoted text. The names of calls stay. It does not
take: the tape, the exchange's number, lines, times.
"""

import hashlib
import re

from deltatape.model.digest import Digest
from deltatape.model.finding import Finding

_QUOTED = re.compile(r"'[^']*'")
_NUMBERED = re.compile(r"[\w.:+-]*\d[\w.:+-]*")
_SIZE = 16


def shape(message: str) -> str:
    """`message` without what differs from run to run.

    >>> shape("call 0 (get_weather): the id changes from 'call_a1' to 'call_b2' after 1.5 s")
    "call # (get_weather): the id changes from '...' to '...' after # s"
    """
    return _NUMBERED.sub("#", _QUOTED.sub("'...'", message))


def request_identity(digest: Digest) -> str:
    """What was asked, as a hash of 16 hex digits: the same when it is asked again."""
    said = [heard.text for heard in digest.history if heard.role == "user" and not heard.call_id]
    return _hash(digest.path, said[-1] if said else "", "after tools" if digest.results else "")


def fingerprint(finding: Finding, asked: str) -> str:
    """What identifies `finding`, as 16 hex digits.

    Args:
        finding: of an exchange or of its conversation.
        asked: the `request_identity` of that exchange.
    """
    return _hash(finding.code, asked, shape(finding.message))


def _hash(*parts: str) -> str:
    text = "\0".join(parts)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_SIZE]
