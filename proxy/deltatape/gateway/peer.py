"""Tells which user has the other end of a connection on this machine's loopback.

Linux lists the owner of every TCP socket in `/proc/net/tcp`; other systems have no such list that
any program may read. Source: https://docs.kernel.org/networking/proc_net_tcp.html.
"""

import re
import socket
import sys
from pathlib import Path

Address = tuple[str, int]

_LISTS = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_UID = rb" [0-9A-F]{2}(?: [0-9A-F]+:[0-9A-F]+){2} [0-9A-F]+ +([0-9]+) "
"""State, queues, timer, retransmissions; then the user."""
_NOBODY = ("0.0.0.0", 0)  # noqa: S104 - the other end of a listening socket
_TRIES = 3
"""The kernel makes the list piece by piece, so that one reading may miss a socket."""


def owner(local: Address, remote: Address) -> int | None:
    """Return the user id of the socket that is bound to `local` and connected to `remote`.

    Args:
        local: an address of IPv4, and a port.
        remote: the same.

    Returns:
        None if there is no such socket, or the system does not tell.
    """
    for _ in range(_TRIES):
        for place, pattern in zip(_LISTS, _patterns(local, remote), strict=True):
            try:
                found = pattern.search(place.read_bytes())
            except OSError:
                continue
            if found is not None:
                return int(found[1])
    return None


def listener_owner(address: Address) -> int | None:
    """Return the user id of the socket that listens at `address`, as `owner` does."""
    return owner(address, _NOBODY)


def _patterns(local: Address, remote: Address) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """Return what the line of a socket looks like, of IPv4 and of one that maps it into IPv6."""
    four = b" %b %b" % (_shown(local), _shown(remote))
    six = b" %b%b %b%b" % (_MAPPED, _shown(local), _MAPPED, _shown(remote))
    return re.compile(re.escape(four) + _UID), re.compile(re.escape(six) + _UID)


def _shown(address: Address) -> bytes:
    host, port = address
    return b"%b:%04X" % (_word(socket.inet_aton(host)), port)


def _word(data: bytes) -> bytes:
    """Return four bytes as the kernel shows them: a number of this machine."""
    return b"%08X" % int.from_bytes(data, sys.byteorder)


_MAPPED = b"".join(map(_word, (bytes(4), bytes(4), b"\0\0\xff\xff")))
"""The beginning of an IPv6 address that maps an IPv4 address."""
