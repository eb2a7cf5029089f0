"""The passes, from whole exchanges down to characters, and the order in which they are made.

Strategy: what takes much away with few runs comes first. The coarse passes are made until none of
them changes anything; then come the fine ones, and all again as long as something changed.
"""

from collections.abc import Callable
from typing import NamedTuple

from deltatape.shrink.events import (
    fewer_events,
    fewer_kinds,
    fewer_neighbours,
    fewer_single_events,
    joined,
)
from deltatape.shrink.fields import (
    fewer_blanks,
    fewer_columns,
    fewer_members,
    less_between,
    smaller_numbers,
)
from deltatape.shrink.search import Search, UsedUpError
from deltatape.shrink.texts import shorter_data, shorter_texts
from deltatape.shrink.whole import fewer_exchanges, fewer_fields_of_heads, plainer


class Pass(NamedTuple):
    """A way to make smaller tapes."""

    name: str
    """What it is about: `events`."""
    run: Callable[[Search], None]


COARSE = (
    Pass("exchanges", fewer_exchanges),
    Pass("kinds of events", fewer_kinds),
    Pass("events", fewer_events),
    Pass("neighbours", fewer_neighbours),
    Pass("pieces of texts", joined),
)
FINE = (
    Pass("heads", fewer_fields_of_heads),
    Pass("what is between events", less_between),
    Pass("fields", fewer_columns),
    Pass("fields of single events", fewer_members),
    Pass("texts", shorter_texts),
    Pass("data", shorter_data),
    Pass("numbers", smaller_numbers),
    Pass("blanks", fewer_blanks),
    Pass("single events", fewer_single_events),
)
_FIRST = Pass("times and reads", plainer)


def shrink(search: Search, tell: Callable[[str], None]) -> bool:
    """Makes the tape of `search` as small as the passes can; whether they came to their end.

    Args:
        search: holds the tape, also in the end.
        tell: gets the name of each pass before it is made.
    """

    def made(passes: tuple[Pass, ...]) -> bool:
        before = search.exchanges
        for each in passes:
            tell(each.name)
            each.run(search)
        return search.exchanges != before

    try:
        made((_FIRST,))
        while True:
            while made(COARSE):
                pass
            if not made(FINE):
                made((_FIRST,))  # what is left may have kept times that only others needed
                return True
    except UsedUpError:
        return False
