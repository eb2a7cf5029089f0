"""A program that computes a fifth of the time, at low priority, until it is ended."""

import os
import time  # noqa: TID251 - it is to compute for a certain time

NICENESS = 10
"""That of the process that reads tapes for `deltatape open`."""
_BUSY_S = 0.03
_REST_S = 0.12


def main() -> None:
    """Compute, and never return."""
    os.nice(NICENESS)
    while True:
        until_s = time.perf_counter() + _BUSY_S
        while time.perf_counter() < until_s:
            pass
        time.sleep(_REST_S)


if __name__ == "__main__":
    main()
