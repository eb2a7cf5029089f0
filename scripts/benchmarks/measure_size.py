"""A program: how long deltatape takes for one large body, and how much memory.

Prints one line of JSON: seconds of CPU time, the body's size, and by how much the resident memory
was larger than before, at most, as Linux counts it (`VmHWM`).
"""

import argparse
import gc
import json
import re
from dataclasses import replace
from pathlib import Path

from benchmarks.languages import LANGUAGES
from benchmarks.measure_rebuild import cpu_s, exchange_of
from deltatape.diagnose.rebuild import rebuild
from deltatape.model.exchange import Exchange, Read

_STATUS = Path("/proc/self/status")
_RESET_PEAK = "5"


def bytewise(exchange: Exchange) -> Exchange:
    """`exchange`, of which every read brought one byte."""
    body = exchange.body
    reads = (
        Read(t_ns=at, data=body[at : at + 1], boundaries=None, line=None) for at in range(len(body))
    )
    return replace(exchange, reads=tuple(reads))


def _memory_kib(field: str) -> int:
    found = re.search(rf"{field}:\s*(\d+)", _STATUS.read_text())
    return int(found[1]) if found else 0


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(prog="measure_size")
    parser.add_argument("language", choices=[language.name for language in LANGUAGES])
    parser.add_argument("file", type=Path, help="the body")
    parser.add_argument("--bytewise", action="store_true", help="a byte a read")
    parser.add_argument("--uncollected", action="store_true", help="no garbage collection")
    options = parser.parse_args()
    (language,) = (each for each in LANGUAGES if each.name == options.language)
    exchange = exchange_of(language, options.file.read_bytes())
    size = len(exchange.body)
    if options.bytewise:
        exchange = bytewise(exchange)
    gc.collect()
    if options.uncollected:
        gc.disable()
    Path("/proc/self/clear_refs").write_text(_RESET_PEAK)
    memory, began = _memory_kib("VmRSS"), cpu_s()
    reply = rebuild(exchange)
    took = cpu_s() - began
    grown = _memory_kib("VmHWM") - memory
    figures = {"seconds": took, "bytes": size, "kib": grown, "calls": len(reply.tool_calls)}
    print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
