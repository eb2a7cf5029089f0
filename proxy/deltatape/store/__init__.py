"""Tapes as files: written while streams go on, read lazily, named, listed, found.

The only package that reads and writes files. `writer` never raises for a disk; `reader` trusts no
byte of a tape.
"""

from deltatape.store.listing import list_tapes, locate
from deltatape.store.reader import Tape, open_tape
from deltatape.store.writer import TapeWriter

__all__ = ["Tape", "TapeWriter", "list_tapes", "locate", "open_tape"]
