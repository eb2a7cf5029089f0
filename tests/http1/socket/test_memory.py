"""Reading as asyncio does costs no page once a block of that size has been freed."""

import platform
import subprocess
import sys

import pytest

READS = 2000
PROGRAM = f"""
import resource, socket
from deltatape.http1.socket import keep_read_memory

here, there = socket.socketpair()

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range({READS}):
        here.send(b"data")
        there.recv(256 * 1024)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

keep_read_memory()
print(faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other allocators do not need it")
def test_reads_as_asyncio_does_them_cost_no_page_faults() -> None:
    """In a process of its own: what others have freed would hide it."""
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=True
    )
    assert int(result.stdout) < READS / 4
