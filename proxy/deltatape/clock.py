"""The only module that reads clocks.

Shells take a `Clock`; the core takes times as integers. `t_ns` everywhere is nanoseconds of the
monotonic clock since the tape's `recorded_at`, so a wall clock that jumps moves nothing.
"""

import calendar
import datetime as dt
import re
import time
from typing import Protocol

_RFC3339 = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)\.(\d{9})Z", re.ASCII)


class Clock(Protocol):
    """A monotonic clock and its wall-clock anchor."""

    def now_ns(self) -> int:
        """Nanoseconds of a monotonic clock with an arbitrary zero."""

    def wall_ns(self) -> int:
        """Nanoseconds since 1970-01-01T00:00:00Z."""


class SystemClock:
    """The machine's clocks."""

    now_ns = staticmethod(time.monotonic_ns)
    wall_ns = staticmethod(time.time_ns)


def rfc3339(wall_ns: int) -> str:
    """Return `wall_ns` as RFC 3339 in UTC with nine decimals: `2026-11-21T20:36:01.000000000Z`."""
    seconds, ns = divmod(wall_ns, 1_000_000_000)
    moment = dt.datetime.fromtimestamp(seconds, tz=dt.UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{ns:09d}Z"


def parse_rfc3339(text: str) -> int:
    """Return the `wall_ns` from which `rfc3339` made `text`; 0 for any other text."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        return 0
    *moment, ns = map(int, match.groups())
    try:
        return calendar.timegm(tuple(moment)) * 1_000_000_000 + ns
    except ValueError:  # such as month 13: the header of a tape is untrusted
        return 0


def file_stamp(wall_ns: int) -> str:
    """Return `wall_ns` in UTC as a part of a file name: `2026-11-21T20-36-01`."""
    moment = dt.datetime.fromtimestamp(wall_ns // 1_000_000_000, tz=dt.UTC)
    return f"{moment:%Y-%m-%dT%H-%M-%S}"
