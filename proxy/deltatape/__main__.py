"""`python -m deltatape`."""

import sys

from deltatape.cli import main

sys.exit(main())
