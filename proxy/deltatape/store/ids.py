"""Identifiers: ULIDs for tapes and exchanges (https://github.com/ulid/spec).

Invariant: within a process every ULID sorts after the one before, also when the clock jumps back.
"""

import os
import threading

from deltatape.clock import Clock

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_RANDOM_BITS = 80
_LENGTH = 26
_MAX = (1 << 128) - 1


class UlidSource:
    """Makes ULIDs, each greater than the one before."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0

    def next(self, clock: Clock) -> str:
        """26 characters of Crockford's base 32: 48 bits of milliseconds, 80 random bits."""
        fresh = (clock.wall_ns() // 1_000_000) << _RANDOM_BITS
        fresh |= int.from_bytes(os.urandom(_RANDOM_BITS // 8))
        with self._lock:
            if fresh >> _RANDOM_BITS <= self._last >> _RANDOM_BITS:
                fresh = self._last + 1
            self._last = fresh & _MAX
            value = self._last
        return "".join(_ALPHABET[value >> 5 * place & 31] for place in reversed(range(_LENGTH)))


ulid = UlidSource().next
"""A new ULID of this process."""
