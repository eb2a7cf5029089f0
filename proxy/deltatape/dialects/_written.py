"""Tool calls that the model wrote into its text, with the events that brought them."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from deltatape.dialects._judge import Ending, judge_call
from deltatape.model.asked import Asked
from deltatape.model.reply import (
    CallKind,
    CallStatus,
    Channel,
    Fragment,
    Piece,
    TextCall,
    ToolCall,
)
from deltatape.text_calls import WrittenCall, find_calls


def written_calls(
    channel: Channel, text: str, pieces: Sequence[Piece], asked: Asked
) -> tuple[TextCall, ...]:
    """The calls in the text of a channel, in order.

    Args:
        channel: which channel.
        text: all of its text.
        pieces: those of all channels, in the order of the text.
        asked: the offered tools, by which ambiguous notations are read.
    """
    if not text:
        return ()
    found = find_calls(text, {tool.name: tool.parameters for tool in asked.tools})
    if not found:
        return ()
    spread = _Spread([piece for piece in pieces if piece.channel is channel])
    return tuple(
        TextCall(
            family=one.family,
            channel=channel,
            closed=one.closed,
            junk=one.junk,
            start=one.start,
            end=one.end,
            call=_call(index, one, text, spread.fragments(one.start, one.end), asked),
        )
        for index, one in enumerate(found)
    )


class _Spread:
    """Which event brought which characters of a channel's text.

    A surrogate pair that was cut between two pieces is one character of the text and two of the
    pieces: places after it may be off by as many characters as there were such cuts, not by events
    of any distance.
    """

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self._pieces = pieces
        self._starts = [0, *accumulate(len(piece.text) for piece in pieces)]

    def fragments(self, start: int, end: int) -> tuple[Fragment, ...]:
        """The pieces of the characters from `start` to `end`."""
        first = min(bisect_right(self._starts, start), len(self._pieces)) - 1
        found = []
        for place in range(first, len(self._pieces)):
            offset, piece = self._starts[place], self._pieces[place]
            if offset >= end:
                break
            text = piece.text[max(start - offset, 0) : end - offset]
            found.append(Fragment(text, piece.carrier))
        return tuple(found)


def _call(
    index: int, one: WrittenCall, text: str, fragments: tuple[Fragment, ...], asked: Asked
) -> ToolCall:
    ending = Ending.NORMAL if one.closed else Ending.OPEN
    name = one.name or None
    status = judge_call(CallKind.TEXT, one.arguments, one.name, ending, asked)
    if not one.closed and status is CallStatus.NO_NAME:
        status = CallStatus.TRUNCATED
    return ToolCall(
        index=index,
        wire_index=None,
        id=one.id,
        ids=() if one.id is None else (one.id,),
        name=name,
        kind=CallKind.TEXT,
        arguments=one.arguments,
        arguments_raw=text[one.start : one.end],
        status=status,
        repairs=(),
        fragments=fragments,
        start=fragments[0].place,
        start_event=fragments[0].event,
    )
