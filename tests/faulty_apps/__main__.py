"""Run one app: `python -m faulty_apps NAME`."""

import sys

from .registry import FAULTS

APP = FAULTS[sys.argv[1]]
assert APP.run is not None
APP.run()
