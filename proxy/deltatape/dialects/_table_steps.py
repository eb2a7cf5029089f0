"""Table steps for anything but calls: text, endings, errors, usage."""

from dataclasses import dataclass

from deltatape.dialects._json import Frame, as_array, as_object, shown
from deltatape.dialects._table import Path, TableDraft, at, first_text, listed, text_at
from deltatape.model.reply import Channel, Thought, ToolResult
from deltatape.model.stream import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectObject:
    """Requires an object."""

    entry: Path
    what: str
    """How it is called."""
    each: bool = False
    """Whether it is every element of an array, which may be missing."""

    def take(self, draft: TableDraft, frame: Frame, event: Event) -> None:
        found = at(frame, self.entry)
        values = (as_array(found) or ()) if self.each else (found,)
        for one in values:
            if not isinstance(one, dict):
                draft.reply.note_unexpected(f"{self.what} is no object", frame, event)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextStep:
    """A fragment of text."""

    channel: Channel
    text: tuple[Path, ...]
    """The first that is a string counts, here and below."""
    each: Path | None = None
    """The array in whose elements the text is; None where it is in the event itself."""

    def take(self, draft: TableDraft, frame: Frame, event: Event) -> None:
        if self.each is not None:
            for _, part in listed(at(frame, self.each)):
                draft.choice.say(self.channel, first_text(part, self.text) or "", event)
            return
        for keys in self.text:
            text = at(frame, keys)
            if isinstance(text, str):
                draft.watch(frame, event)
                draft.choice.say(self.channel, text, event)
                return


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeTextStep:
    """The whole text again: counts only if no fragment of it came."""

    text: tuple[Path, ...]

    def take(self, draft: TableDraft, frame: Frame, event: Event) -> None:
        texts = [text for keys in self.text if (text := text_at(frame, keys)) is not None]
        text = first_text(frame, self.text)
        if draft.reply.recited is None:
            draft.reply.recited = text or (texts[0] if texts else None)
        if text and not draft.recited:
            draft.recited = True
            if not draft.choice.text(Channel.TEXT):
                draft.choice.say(Channel.TEXT, text, event)


@dataclass(frozen=True, slots=True, kw_only=True)
class NonTextStep:
    """Content that is not text: an image, audio."""

    what: tuple[Path, ...]
    """It is there if anything stands at one of these."""
    each: Path | None = None
    """The array in whose elements it is; None where it is in the event itself."""

    def take(self, draft: TableDraft, frame: Frame, event: Event) -> None:
        del event
        holders = [frame] if self.each is None else [one for _, one in listed(at(frame, self.each))]
        if any(at(one, keys) is not None for one in holders for keys in self.what):
            draft.choice.media = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SignatureStep:
    """The signature of reasoning."""

    signature: tuple[Path, ...]
    """The first that is a string counts."""
    each: Path | None = None
    """The array in whose elements it is; None where it is in the event itself."""

    def take(self, draft: TableDraft, frame: Frame, event: Event) -> None:
        del event
        holders = [frame] if self.each is None else [one for _, one in listed(at(frame, self.each))]
        found = (first_text(one, self.signature) for one in holders)
        draft.choice.thoughts += [Thought(signature=text) for text in found if text]


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishStep:
    """The finish reason."""

    reason: Path
    errors: frozenset[str] = frozenset()
    """Reasons that are errors."""

    def take(self, draft: TableDraft, frame: Frame, event: Event) -> None:
        reason = at(frame, self.reason)
        if not isinstance(reason, str):
            if reason is not None:
                draft.reply.note_unexpected("the finish reason is no string", frame, event)
            return
        draft.choice.finish(reason, event)
        if reason in self.errors and draft.reply.error is None:
            draft.reply.fail(f"{self.reason[-1]} is {reason!r}", frame, event)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A tool result."""

    id: tuple[Path, ...]
    name: tuple[Path, ...] = ()
    preliminary: Path | None = None
    """Where it may say that a later one counts."""

    def take(self, draft: TableDraft, frame: Frame, event: Event) -> None:
        draft.watch(frame, event)
        if self.preliminary is None or at(frame, self.preliminary) is not True:
            call_id, name = first_text(frame, self.id), first_text(frame, self.name)
            draft.reply.results.append(ToolResult(call_id, name, event.number, event.place))


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalStep:
    """The terminal event."""

    normal: bool = True
    """Whether it may be taken as whole."""
    proof: Path = ()
    """What has to be there for that, if anything."""

    def take(self, draft: TableDraft, frame: Frame, event: Event) -> None:
        if not self.proof or at(frame, self.proof) is not None:
            draft.end(event, normal=self.normal)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorStep:
    """An error in place of the rest of the answer."""

    message: tuple[Path, ...]
    optional: bool = False
    """Whether there is no error without a message."""

    def take(self, draft: TableDraft, frame: Frame, event: Event) -> None:
        message = first_text(frame, self.message)
        if message or not self.optional:
            draft.reply.fail(message or shown(frame), frame, event)


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageStep:
    """Usage and model."""

    usage: Path | None = None
    model: Path | None = None

    def take(self, draft: TableDraft, frame: Frame, event: Event) -> None:
        del event
        usage = as_object(at(frame, self.usage)) if self.usage else None
        if usage is not None:
            draft.reply.usage = usage
        if self.model:
            draft.reply.model = draft.reply.model or text_at(frame, self.model) or None
