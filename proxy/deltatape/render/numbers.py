"""Numbers for people."""

_NS = 1_000_000_000
_MINUTE_S = 60
_HOUR_S = 3600
_DAY_S = 86_400
_TENTHS_BELOW_S = 100
_KIB = 1024

NO_TIMES = "in wire order; no times were recorded"
"""Printed in place of times."""


def duration(ns: int) -> str:
    """`ns` in a readable unit: `0.3 ms`, `12 ms`, `1.2 s`, `3 min 20 s`, `5 h 2 min`, `3 d 4 h`."""
    seconds = ns / _NS
    if seconds < 0.001:  # noqa: PLR2004 - a millisecond
        return f"{seconds * 1000:.1f} ms"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < _TENTHS_BELOW_S:
        return f"{seconds:.1f} s"
    rounded = round(seconds)
    if rounded < _HOUR_S:
        return f"{rounded // _MINUTE_S} min {rounded % _MINUTE_S} s"
    if rounded < _DAY_S:
        return f"{rounded // _HOUR_S} h {rounded % _HOUR_S // _MINUTE_S} min"
    return f"{rounded // _DAY_S} d {rounded % _DAY_S // _HOUR_S} h"


def seconds(ns: int) -> str:
    """`ns` as seconds with milliseconds: `12.345`."""
    return f"{ns / _NS:.3f}"


def since_request(start_ns: int) -> str:
    """Say what times are counted from, for a request at `start_ns`."""
    return f"seconds since the request, which came {seconds(start_ns)} s into the tape"


def size(count: int) -> str:
    """Bytes in a readable unit: `812 B`, `1.5 kB`, `3.2 MB`; units of 1024."""
    value = float(count)
    for unit in ("B", "kB", "MB"):
        if value < _KIB:
            return f"{value:.0f} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= _KIB
    return f"{value:.1f} GB"
