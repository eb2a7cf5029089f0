"""What an application repeats of one reply: the assistant's messages in a row, of a history."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from deltatape.model.asked import RepeatedCall
from deltatape.model.digest import ASSISTANT, Digest, Heard


@dataclass(frozen=True, kw_only=True)
class Block:
    """Assistant messages in a row, `later.history[start:end]`, and what follows them."""

    later: Digest
    start: int
    end: int

    @property
    def messages(self) -> Sequence[Heard]:
        """The messages themselves."""
        return self.later.history[self.start : self.end]

    @cached_property
    def calls(self) -> tuple[RepeatedCall, ...]:
        """Their calls."""
        return tuple(call for message in self.messages for call in message.calls)

    @property
    def texts(self) -> frozenset[str]:
        """Hashes of their texts."""
        return frozenset(message.text for message in self.messages if message.text)

    @cached_property
    def further(self) -> tuple[RepeatedCall, ...]:
        """The calls of all later messages of the history."""
        rest = self.later.history[self.end :]
        return tuple(call for message in rest for call in message.calls)

    @cached_property
    def answered(self) -> tuple[str, ...]:
        """The ids answered between this block and the next assistant message."""
        found = []
        for message in self.later.history[self.end :]:
            if message.role in ASSISTANT:
                break
            if message.call_id:
                found.append(message.call_id)
        return tuple(found)

    @cached_property
    def ids(self) -> frozenset[str]:
        """The ids of its calls, and those answered after it."""
        return frozenset(call.id for call in self.calls if call.id) | frozenset(self.answered)


def blocks(digest: Digest) -> Iterator[Block]:
    """The runs of assistant messages in a request's history; not one that ends the request."""
    start = None
    for place, message in enumerate(digest.history):
        if message.role in ASSISTANT:
            start = place if start is None else start
        elif start is not None:
            yield Block(later=digest, start=start, end=place)
            start = None
