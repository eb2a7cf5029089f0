"""The named clients, each an entry of a table; order in the tables is order on the page."""

from collections.abc import Mapping

from deltatape.suspects.client import Preset
from deltatape.suspects.presets import arguments, calls, dialects, streams

GROUPS: Mapping[str, tuple[Preset, ...]] = {
    "Which call a fragment belongs to": calls.WHICH_CALL,
    "Ids and names": calls.NAMES,
    "Arguments": arguments.ARGUMENTS,
    "When a call counts, and when a stream ends": streams.ENDS,
    "Responses": dialects.IN_ITEMS,
    "Blocks": dialects.IN_BLOCKS,
    "Calls in one piece": dialects.IN_ONE_PIECE,
    "Calls in the text": streams.TEXTS,
    "What the next request repeats": arguments.REPEATED,
    "Bytes and lines": streams.BYTES,
}
"""What they are about, in the order of the page about them."""

PRESETS: tuple[Preset, ...] = tuple(
    sorted((one for group in GROUPS.values() for one in group), key=lambda one: one.place)
)
"""In the order in which they are suspected where all else is equal."""
