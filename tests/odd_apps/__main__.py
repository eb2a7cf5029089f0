"""Run one app: `python -m odd_apps NAME`."""

import sys

from . import registry

APP = registry.APPS[sys.argv[1]]
assert APP.run is not None, "a program in JavaScript"
APP.run(*sys.argv[2:])
