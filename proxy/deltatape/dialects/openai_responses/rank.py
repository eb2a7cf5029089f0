"""What tells the arguments of a call, or a text, and how much it is to be believed."""

import enum


class Rank(enum.IntEnum):
    """A source, in the order of its authority.

    Pieces that streamed count more than `ADDED`, which is sent before anything is known and is
    mostly empty, and less than all others.
    """

    ADDED = 0
    PART_DONE = 1
    SNAPSHOT = 2
    ITEM_DONE = 3


NAMES = {
    Rank.ADDED: "response.output_item.added",
    Rank.PART_DONE: "the event that ends the pieces",
    Rank.SNAPSHOT: "the final response",
    Rank.ITEM_DONE: "response.output_item.done",
}
"""What a message calls a source."""
