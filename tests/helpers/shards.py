"""Tapes of one recorder, made into those of several that recorded together."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from deltatape.store.reader import open_tape
from deltatape.tape.encode import header_line
from deltatape.tape.record import Shard

RECORDING = "01JD3ZQ8T000000000000SHARD"
_EXCHANGE = re.compile(rb"\[[0-9]+,([0-9]+),")
_ID = "01JD3ZQ8T000000000000TAPE"


def sharded(
    tape: Path,
    folder: Path,
    count: int = 2,
    name: str | None = None,
    where: Callable[[int], int] | None = None,
) -> list[Path]:
    """`x.tape` as `x-1.tape`, `x-2.tape`, ...: each has the clients and the end, and its exchanges.

    Args:
        where: to which one an exchange goes, from 1; else to one after another.
    """
    header = open_tape(tape).header
    _, *lines = tape.read_bytes().splitlines(keepends=True)
    paths = []
    for index in range(1, count + 1):
        shard = Shard(recording=RECORDING, index=index, count=count, name=name)
        content = header_line(replace(header, id=f"{_ID}{index}", shard=shard))
        for line in lines:
            number = int(_EXCHANGE.match(line)[1])  # type: ignore[index]
            if number == 0 or (where(number) if where else (number - 1) % count + 1) == index:
                content += line
        paths.append(folder / f"{tape.stem}-{index}.tape")
        paths[-1].write_bytes(content)
    return paths
