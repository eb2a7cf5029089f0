"""The texts of one output item: streamed fragments, and the whole as sources give it.

Strategy: pieces are kept by part. At the end the whole text of a channel, as `output_item.done` or
else the final snapshot tells it, is compared with the joined pieces: if equal the pieces stay; if
it goes on where they end, the rest is added; else it takes their place. An empty whole replaces
nothing. Parts are compared together, since servers number them in different ways.
"""

import enum
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from deltatape.dialects._json import as_object, get_array, get_str
from deltatape.dialects.openai_responses.kinds import SourceRank
from deltatape.model.reply import Channel, TextFragment
from deltatape.model.stream import Event
from deltatape.wire.json_value import join_pairs


class TextGroup(enum.StrEnum):
    """The list of an item that a text belongs to."""

    SUMMARY = "summary"
    CONTENT = "content"


class WholeText(NamedTuple):
    """A whole text according to one source."""

    rank: SourceRank
    text: str
    event: Event


PARTS = {
    "output_text": (Channel.TEXT, "text"),
    "text": (Channel.TEXT, "text"),
    "refusal": (Channel.REFUSAL, "refusal"),
    "reasoning_text": (Channel.REASONING, "text"),
    "summary_text": (Channel.REASONING, "text"),
}
"""By type of a part: where its text goes, and the member it stands in."""

_Stream = tuple[TextGroup, Channel]
_new = tuple.__new__
"""What the constructor of a named tuple calls, in a third of the time: every delta makes one."""


def piece_of(channel: Channel, text: str, event: Event) -> TextFragment:
    """Return the text fragment of `event`."""
    return _new(TextFragment, (channel, text, event))


class ItemTexts:
    """The texts of one output item."""

    def __init__(self) -> None:
        self._parts: dict[_Stream, dict[int, list[TextFragment]]] = {}
        self._wholes: dict[_Stream, list[WholeText]] = {}

    def part(self, group: TextGroup, channel: Channel, index: int) -> list[TextFragment]:
        """Return the list of a part's fragments, to append to."""
        parts = self._parts.get((group, channel))
        if parts is None:
            parts = self._parts[group, channel] = {}
        pieces = parts.get(index)
        if pieces is None:
            pieces = parts[index] = []
        return pieces

    def end_part(self, group: TextGroup, index: int, whole: TextFragment) -> None:
        """Set a part's whole text; it counts only if nothing streamed."""
        pieces = self.part(group, whole.channel, index)
        if not pieces:
            pieces.append(whole)

    def take(self, item: Mapping[str, object], rank: SourceRank, event: Event) -> None:
        """Take the whole texts of an item."""
        for group in TextGroup:
            said: dict[Channel, str] = {}
            for channel, text in _texts(item, group):
                said[channel] = said.get(channel, "") + text
            if group is TextGroup.CONTENT and item.get("type") == "message":
                said.setdefault(Channel.TEXT, "")
            for channel, text in said.items():
                self._wholes.setdefault((group, channel), []).append(WholeText(rank, text, event))

    def settle(self) -> tuple[list[TextFragment], list[WholeText]]:
        """Return the fragments that count, and whole texts that contradict them."""
        pieces: list[TextFragment] = []
        differing: list[WholeText] = []
        for stream in dict.fromkeys((*self._parts, *self._wholes)):
            parts = self._parts.get(stream, {})
            streamed = [piece for part in parts.values() for piece in part]
            settled, against = _settle(stream[1], streamed, self._wholes.get(stream, ()))
            pieces += settled
            differing += against
        return pieces, differing


def _texts(item: Mapping[str, object], group: TextGroup) -> Iterator[tuple[Channel, str]]:
    for part in map(as_object, get_array(item, group.value)):
        place = PARTS.get(get_str(part, "type") or "") if part is not None else None
        if part is not None and place is not None:
            yield place[0], get_str(part, place[1]) or ""


def _settle(
    channel: Channel, streamed: list[TextFragment], wholes: Sequence[WholeText]
) -> tuple[list[TextFragment], list[WholeText]]:
    best = max((whole for whole in wholes if whole.text), default=None, key=_rank)
    if not streamed:
        return ([piece_of(channel, best.text, best.event)] if best else []), []
    joined = join_pairs("".join([piece.text for piece in streamed]))
    against = [whole for whole in wholes if whole.text != joined]
    if best is None or best.text == joined:
        return streamed, against
    if best.text.startswith(joined):
        return [*streamed, piece_of(channel, best.text[len(joined) :], best.event)], against
    return [piece_of(channel, best.text, best.event)], against


def _rank(whole: WholeText) -> SourceRank:
    return whole.rank
