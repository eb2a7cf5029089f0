"""What is counted of the answers, where clients get them and on tapes, and compared.

Every answer has stamps, so no two bodies are equal: the sum of their hashes tells whether the same
bodies are in both places, in any order, without keeping any of them.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from benchmarks.traffic import MARK, STAMP_DIGITS, Cut, Plan, body
from deltatape.model.exchange import EndReason

_HASH_BYTES = 8
_ZEROS = b"0" * STAMP_DIGITS
_STAMP = re.compile(rb"(%b|call_)[0-9]{%d}" % (MARK, STAMP_DIGITS))
_TORN = re.compile(rb"(%b|call_)[0-9]{1,%d}\Z" % (MARK, STAMP_DIGITS - 1))
"""A stamp that is cut off."""
ENDINGS: Mapping[Cut, EndReason] = {
    Cut.NONE: EndReason.COMPLETE,
    Cut.CLOSED: EndReason.UPSTREAM_CLOSED,
    Cut.RESET: EndReason.UPSTREAM_RESET,
}
"""How an answer ends on a tape, if its client stays."""


@dataclass(slots=True)
class Tally:
    """Counts of the answers that ended alike.

    Attributes:
        answers: how many.
        deltas: in them.
        size: of their bodies, in bytes.
        hashes: the sum of the hashes of their bodies.
    """

    answers: int = 0
    deltas: int = 0
    size: int = 0
    hashes: int = 0

    def add(self, content: bytes) -> None:
        """Count an answer."""
        self.answers += 1
        self.deltas += content.count(MARK)
        self.size += len(content)
        hashed = hashlib.blake2b(content, digest_size=_HASH_BYTES).digest()
        self.hashes = (self.hashes + int.from_bytes(hashed)) % (1 << 8 * _HASH_BYTES)


@dataclass(slots=True)
class Tallies:
    """Counts of all answers.

    Attributes:
        by_ending: each under its `EndReason`.
        faults: what was not as it has to be, as sentences; of many, the first.
        faulty: how many answers.
    """

    by_ending: dict[str, Tally] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    faulty: int = 0

    def add(self, ending: EndReason, content: bytes) -> None:
        """Count an answer."""
        self.by_ending.setdefault(ending, Tally()).add(content)

    def fault(self, sentence: str) -> None:
        """Report an answer that is not as it has to be."""
        self.faulty += 1
        if len(self.faults) < _TOLD:
            self.faults.append(sentence)


_TOLD = 10


def difference(plan: Plan, content: bytes, *, whole: bool) -> str:
    """Where the body of an answer to `plan` differs from what the provider sent; "" if nowhere.

    Args:
        plan: what was asked for.
        content: the body, with its stamps.
        whole: whether all of it has to be there, or any beginning.
    """
    sent, plain = body(plan), _STAMP.sub(rb"\g<1>" + _ZEROS, content)
    if plain == sent or (not whole and sent.startswith(_TORN.sub(rb"\g<1>", plain))):
        return ""
    if sent.startswith(plain):
        return f"ends after {len(plain)} of {len(sent)} bytes"
    same = next(
        (at for at, pair in enumerate(zip(plain, sent, strict=False)) if len(set(pair)) > 1),
        len(sent),
    )
    return f"differs from byte {same} on"


def lacking(clients: Mapping[str, Tally], tapes: Mapping[str, Tally]) -> list[str]:
    """What the tapes have other than what the clients got, as sentences.

    Of an answer whose client left, the tape may have more than the client has read.
    """
    found = []
    for ending in sorted({*clients, *tapes}):
        client, tape = clients.get(ending, Tally()), tapes.get(ending, Tally())
        if client.answers != tape.answers:
            found.append(
                f"{client.answers} answers ended with {ending} at the clients,"
                f" {tape.answers} on the tapes"
            )
        elif ending == EndReason.CLIENT_CLOSED:
            if tape.size < client.size:
                found.append(
                    f"clients that left had read {client.size} bytes, their tapes have {tape.size}"
                )
        elif (client.deltas, client.size) != (tape.deltas, tape.size):
            found.append(
                f"of answers that ended with {ending}, clients got {client.deltas} deltas in"
                f" {client.size} bytes, the tapes have {tape.deltas} in {tape.size}"
            )
        elif client.hashes != tape.hashes:
            found.append(
                f"answers that ended with {ending} have other bytes on the tapes than clients got"
            )
    return found
