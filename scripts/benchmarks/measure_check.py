"""A program: what `deltatape check` or `fsck` takes for a folder of tapes.

Prints one line of JSON: seconds of CPU time, the largest resident memory as Linux counts it
(`VmHWM`), and the exit code.
"""

import argparse
import contextlib
import json
import os
import re
import sys
from pathlib import Path

from benchmarks.measure_rebuild import cpu_s
from deltatape.cli import deltatape

_STATUS = Path("/proc/self/status")
_OPTIONS = {"check": ("--jobs", "1"), "fsck": ()}


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(prog="measure_check")
    parser.add_argument("command", choices=_OPTIONS)
    parser.add_argument("folder", help="of tapes")
    options = parser.parse_args()
    command = [options.command, *_OPTIONS[options.command], "--format", "json", options.folder]
    began = cpu_s()
    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
        code: object = deltatape.main(command, prog_name="deltatape", standalone_mode=False)
    took = cpu_s() - began
    found = re.search(r"VmHWM:\s*(\d+)", _STATUS.read_text())
    kib = int(found[1]) if found else 0
    sys.stdout.write(json.dumps({"seconds": took, "kib": kib, "code": code}) + "\n")


if __name__ == "__main__":
    main()
