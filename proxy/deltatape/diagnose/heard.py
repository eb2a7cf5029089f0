"""Histories as digests keep them, of which each message is looked at once.

Requests of one conversation share the messages that an earlier one had, as objects (see
`dialects._shared`): what was made of those is taken over instead of being made again. So a
conversation's digests hold each message once, and not once for every request that repeats it.

The last few histories are remembered. No result depends on it, only time and memory.
"""

from collections.abc import Callable, Sequence
from operator import is_
from typing import NamedTuple

from deltatape.model.asked import Message
from deltatape.model.digest import Heard

_HISTORIES = 8
_SHORT = 8
"""Messages of a history that is made anew."""


class HeardHistory(NamedTuple):
    """What is kept of a history, and a hash for every number of its first messages."""

    heard: tuple[Heard, ...]
    prefixes: tuple[str, ...]


class _Known(NamedTuple):
    hear: Callable[[Message], Heard]
    messages: Sequence[Message]
    made: HeardHistory


_memory: tuple[_Known, ...] = ()
"""The last histories, the latest first: replaced as a whole, for threads."""


def heard_history(
    messages: Sequence[Message],
    hear: Callable[[Message], Heard],
    link: Callable[[str, Message], str],
    start: str,
) -> HeardHistory:
    """What `hear` makes of each of `messages`, and their prefixes.

    Args:
        messages: a history, without those of the system.
        hear: looks at the message alone.
        link: the hash for one message more.
        start: the hash of no messages.
    """
    global _memory  # noqa: PLW0603 - as a cache of functools: no result depends on it
    known, count = _nearest(messages, hear, start) if len(messages) >= _SHORT else (None, 0)
    heard = list(known.made.heard[:count]) if known else []
    prefixes = list(known.made.prefixes[: count + 1]) if known else [start]
    for message in messages[count:]:
        heard.append(hear(message))
        prefixes.append(link(prefixes[-1], message))
    made = HeardHistory(tuple(heard), tuple(prefixes))
    if len(messages) >= _SHORT:
        old = known if known and 2 * count >= len(known.messages) else None
        others = [each for each in _memory if each is not old]
        _memory = (_Known(hear, messages, made), *others[: _HISTORIES - 1])
    return made


def _nearest(
    messages: Sequence[Message], hear: Callable[[Message], Heard], start: str
) -> tuple[_Known | None, int]:
    """The remembered history that begins with most of `messages`, and with how many."""
    found, most = None, 0
    for known in _memory:
        if known.hear is not hear or known.made.prefixes[0] != start:
            continue
        shared = list(map(is_, messages, known.messages))
        count = len(shared) if all(shared) else shared.index(False)
        if count > most:
            found, most = known, count
    return found, most
