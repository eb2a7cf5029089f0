"""`python -m deltatape.inspector index|documents`: the processes of `processes`."""

import gc
import json
import os
import signal
import sys

gc.disable()  # imports leave nothing to collect, and take a tenth of the time less

_NICENESS = 3
"""The niceness of a process for documents: recording comes first, but somebody waits for it."""
_SELDOM = (20_000, 20, 100)
"""Thresholds of Python's garbage collector: exchanges leave no cycles behind."""


def main() -> None:
    """Serve until the input ends, whose first line says what on."""
    what = sys.argv[1]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server decides when it is over
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing else may print among the answers
    begin = json.loads(sys.stdin.buffer.readline())
    if what == "index" and begin.get("dataset"):
        from deltatape.inspector.dataset import serve  # noqa: PLC0415 - one of three
    elif what == "index":
        from deltatape.inspector.indexing import serve  # noqa: PLC0415 - one of three
    else:
        from deltatape.inspector.documents import serve  # noqa: PLC0415 - one of three

        os.nice(_NICENESS)  # not before: a page waits for the start
    gc.freeze()
    gc.set_threshold(*_SELDOM)
    gc.enable()
    serve(begin, sys.stdin.buffer, out)


if __name__ == "__main__":
    main()
