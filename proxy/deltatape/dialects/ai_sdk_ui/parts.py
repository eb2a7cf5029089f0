"""Texts in parts, each with an id, that must be started before they go on: clients throw else."""

from dataclasses import dataclass

from deltatape.dialects._json import Frame
from deltatape.dialects._table import TableDraft, text_at
from deltatape.model.reply import Channel
from deltatape.model.stream import Event

_ID = ("id",)
_DELTA = ("delta",)


@dataclass(frozen=True, slots=True)
class PartStart:
    """A text begins."""

    channel: Channel

    def take(self, draft: TableDraft, frame: Frame, event: Event) -> None:
        """See `Step.take`."""
        del event
        draft.parts.add((self.channel, text_at(frame, _ID)))


@dataclass(frozen=True, slots=True)
class PartDelta:
    """A text goes on."""

    channel: Channel

    def take(self, draft: TableDraft, frame: Frame, event: Event) -> None:
        """See `Step.take`."""
        draft.watch(frame, event)
        if (self.channel, text_at(frame, _ID)) not in draft.parts:
            draft.choice.odd(f"a piece of {self.channel} that never started", frame, event)
        text = text_at(frame, _DELTA)
        if text is None:
            draft.choice.odd(f"a piece of {self.channel} without a delta", frame, event)
        else:
            draft.choice.say(self.channel, text, event)


@dataclass(frozen=True, slots=True)
class PartEnd:
    """A text is whole."""

    channel: Channel

    def take(self, draft: TableDraft, frame: Frame, event: Event) -> None:
        """See `Step.take`."""
        part = (self.channel, text_at(frame, _ID))
        if part not in draft.parts:
            draft.choice.odd(f"the end of a {self.channel} that never started", frame, event)
        draft.parts.discard(part)


@dataclass(frozen=True, slots=True)
class StepEnd:
    """A step of the agent is over, and with it all its texts."""

    def take(self, draft: TableDraft, frame: Frame, event: Event) -> None:
        """See `Step.take`."""
        del frame, event
        draft.parts.clear()
