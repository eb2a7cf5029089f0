"""A reply under construction: the parts that all dialects share.

A reducer reads events through `ReplyDraft.read` and adds what they bring to a choice (`add_text`,
`open`, `finish`); `build` judges it at the end.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from deltatape.dialects._calls import CallDraft, CallEndCause, ObservationLog, judge_call, new_tuple
from deltatape.dialects._delta_fast_path import TextDelta
from deltatape.dialects._errors import error_message, may_fail
from deltatape.dialects._json import EVIDENCE_LIMIT, as_object
from deltatape.model.reply import (
    NOT_OURS,
    CallKind,
    CallStatus,
    Channel,
    Choice,
    Fragment,
    Observation,
    Reply,
    TextCall,
    TextFragment,
    Thought,
    ToolCall,
    ToolResult,
)
from deltatape.model.request_summary import RequestSummary
from deltatape.model.stream import Event
from deltatape.text_calls import find_calls
from deltatape.wire.json_value import join_pairs, parse, read_object

if TYPE_CHECKING:
    from deltatape.text_calls._notation import WrittenCall

SENTINEL = "[DONE]"
"""Ends the streams of OpenAI's APIs; some proxies send it at the end of other streams, too."""
_CHANNELS = (Channel.TEXT, Channel.REASONING, Channel.REFUSAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class DialectPolicy:
    """The guarantees of a dialect about tool calls and finish reasons."""

    abnormal: frozenset[str] = frozenset()
    """Finish reasons, or their details, after which a tool call may be incomplete."""
    tool_word: bool = False
    """Whether a reply with tool calls has a special finish reason, such as `tool_calls`."""
    explicit_end: bool = False
    """Whether an event marks the end of each tool call."""
    ids: bool = True
    """Whether every call has an id."""
    indexes: bool = True
    """Whether every delta of a call has an index."""
    app: bool = False
    """Whether the events are from an application to its web page, not from a provider."""
    signs_text: bool = False
    """Whether the signature of reasoning covers its text, so that clients must send both back."""
    finishes_often: bool = False
    """Whether several events may carry a finish reason; the last of them then ends the choice."""


class ChoiceDraft:
    """A choice under construction: one of the answers in a reply."""

    def __init__(self, index: int, request: RequestSummary, policy: DialectPolicy) -> None:
        self.index = index
        self.notes = ObservationLog()
        self.calls: list[CallDraft] = []
        """All calls, also those that the provider runs itself, in the order of their opening."""
        self.finish_reason: str | None = None
        self.finish_detail: str | None = None
        self.media = False
        """Whether the answer shows something that is not text."""
        self.thoughts: list[Thought] = []
        self.finishes_often = policy.finishes_often
        """See `DialectPolicy.finishes_often`; some servers put a finish reason on every event."""
        self._finishes: list[tuple[int, str]] = []
        self._request = request
        self.policy = policy
        self._pieces: list[TextFragment] = []
        self._order_changes = [(0, 0)]
        """The number of pieces before each change of the order, and the order after it."""
        self._order = 0
        self._mixed = False

    def add_text(self, channel: Channel, text: str, event: Event, order: int = 0) -> None:
        """Append text, unless it is empty.

        Args:
            channel: where it goes.
            text: the text.
            event: what brought it.
            order: the rank of its part of the answer, where the wire mixes parts: texts of a
                lower rank come first.
        """
        if text:
            if order != self._order:
                self._change_order(order)
            self._pieces.append(new_tuple(TextFragment, (channel, text, event)))

    def add_texts(self, channel: Channel, deltas: Sequence[TextDelta], order: int = 0) -> None:
        """Append texts. See `add_text`."""
        pieces = [new_tuple(TextFragment, (channel, text, event)) for text, event in deltas if text]
        if pieces:
            if order != self._order:
                self._change_order(order)
            self._pieces += pieces

    def _change_order(self, order: int) -> None:
        """Record that the fragments from here on are of another order."""
        self._mixed |= order < self._order
        self._order_changes.append((len(self._pieces), order))
        self._order = order

    def add_fragments(self, pieces: Iterable[TextFragment]) -> None:
        """Append fragments, none of them empty, of the same order as those before."""
        self._pieces += pieces

    def open(self, kind: CallKind, event: Event, wire_index: int | None = None) -> CallDraft:
        """Return a new call, which `event` opens."""
        draft = CallDraft(wire_index, kind, event)
        self.calls.append(draft)
        return draft

    def note_unexpected(self, phrase: str, value: object, event: Event) -> None:
        """Note an unexpected shape, once per phrase."""
        self.notes.once(phrase, "S006", phrase, value, event)

    def finish(self, reason: str, event: Event, detail: str | None = None) -> None:
        """Set the finish reason; the last one counts, a different one before it is noted."""
        if self.finish_reason not in (None, reason):
            phrase = f"a second finish reason: {self.finish_reason!r}, then {reason!r}"
            self.notes.once("other", "S004", phrase, phrase, event)
        self.finish_reason = reason
        self.finish_detail = detail or self.finish_detail
        self._finishes.append((event.number, reason))

    def text(self, channel: Channel) -> str:
        """Return the text of a channel so far."""
        return join_pairs("".join([one.text for one in self._pieces if one.channel is channel]))

    def build(self, ending: CallEndCause) -> tuple[Choice, list[Observation]]:
        """Return the choice, judged, and what was noticed about it.

        Args:
            ending: what ended the stream; a finish reason is more precise for calls.
        """
        ending = self._ending(ending)
        self._sort_pieces()
        ours = [draft for draft in self.calls if draft.kind not in NOT_OURS]
        theirs = [draft for draft in self.calls if draft.kind in NOT_OURS]
        observations = self.notes.observations(self.index, None)
        calls = []
        self._note_shared_ids(ours)
        for place, draft in enumerate(ours):
            calls.append(self._judge(draft, place, ending))
            observations += draft.notes.observations(self.index, place)
        server_calls = []
        for place, draft in enumerate(theirs):
            server_calls.append(self._judge(draft, place, ending))
            observations += draft.notes.observations(self.index, None)
        text, reasoning, refusal = map(self.text, _CHANNELS) if self._pieces else ("", "", "")
        choice = Choice(
            index=self.index,
            text=text,
            reasoning=reasoning,
            refusal=refusal,
            tool_calls=tuple(calls),
            finish_reason_raw=self.finish_reason,
            finish_detail=self.finish_detail,
            finishes=tuple(self._finishes),
            server_calls=tuple(server_calls),
            text_calls=(
                *written_calls(Channel.TEXT, text, self._pieces, self._request),
                *written_calls(Channel.REASONING, reasoning, self._pieces, self._request),
            ),
            pieces=tuple(self._pieces),
            media=self.media,
            thoughts=tuple(self.thoughts),
            signed_text=reasoning if self.policy.signs_text else None,
            finish_event=self._finish_event(),
        )
        return choice, observations

    def _ending(self, of_stream: CallEndCause) -> CallEndCause:
        """Return what ended the answer."""
        if self.finish_reason is None:
            return of_stream
        reasons = {self.finish_reason, self.finish_detail}
        return CallEndCause.NORMAL if self.policy.abnormal.isdisjoint(reasons) else CallEndCause.CUT

    def _finish_event(self) -> int | None:
        if not self._finishes:
            return None
        return self._finishes[-1 if self.finishes_often else 0][0]

    def _sort_pieces(self) -> None:
        if self._mixed:
            ends = [start for start, _ in self._order_changes[1:]] + [len(self._pieces)]
            runs = [
                (order, self._pieces[start:end])
                for (start, order), end in zip(self._order_changes, ends, strict=True)
            ]
            self._pieces = [
                piece for _, run in sorted(runs, key=lambda run: run[0]) for piece in run
            ]

    def _note_shared_ids(self, drafts: Sequence[CallDraft]) -> None:
        """Note ids that two calls share: a result for them is ambiguous."""
        seen: set[str] = set()
        for draft in drafts:
            identifier = draft.first_id
            if identifier in seen:
                detail = f"the id {identifier!r} is used for another call"
                draft.note("shared", "T010", detail, draft.raw, draft.opened)
            if identifier is not None:
                seen.add(identifier)

    def _judge(self, draft: CallDraft, place: int, ending: CallEndCause) -> ToolCall:
        if self.policy.explicit_end and ending is CallEndCause.CUT:
            if draft.ended is None:
                ending = CallEndCause.OPEN
            elif draft is not self.calls[-1]:
                ending = CallEndCause.NORMAL  # what was cut came later
        return draft.judged(place, ending, self._request, ids=self.policy.ids)


# Tool calls that the model wrote into its text, with the events that brought them.


def written_calls(
    channel: Channel, text: str, pieces: Sequence[TextFragment], request: RequestSummary
) -> tuple[TextCall, ...]:
    """Return the calls written into the text of a channel, in order.

    Args:
        channel: which channel.
        text: all of its text.
        pieces: the pieces of all channels, in the order of the text.
        request: the offered tools, by which ambiguous notations are read.
    """
    if not text:
        return ()
    found = find_calls(text, {tool.name: tool.parameters for tool in request.tools})
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
            call=_call(index, one, text, spread.fragments(one.start, one.end), request),
        )
        for index, one in enumerate(found)
    )


class _Spread:
    """Maps characters of a channel's text to events.

    A surrogate pair that was cut between two pieces is one character of the text and two of the
    pieces, so positions after it are off by one character per such cut.
    """

    def __init__(self, pieces: Sequence[TextFragment]) -> None:
        self._pieces = pieces
        self._starts = [0, *accumulate(len(piece.text) for piece in pieces)]

    def fragments(self, start: int, end: int) -> tuple[Fragment, ...]:
        """Return the fragments of the characters from `start` to `end`."""
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
    index: int,
    one: "WrittenCall",
    text: str,
    fragments: tuple[Fragment, ...],
    request: RequestSummary,
) -> ToolCall:
    ending = CallEndCause.NORMAL if one.closed else CallEndCause.OPEN
    name = one.name or None
    status = judge_call(CallKind.TEXT, one.arguments, one.name, ending, request)
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


# The whole reply: its choices, errors, and events of an unexpected form.


class ReplyDraft:
    """A reply under construction.

    Args:
        name: the dialect.
        terminator: its terminal signal, in words.
        request: what the reply answers.
        policy: what the dialect promises of its calls.
    """

    def __init__(
        self, name: str, terminator: str, request: RequestSummary, policy: DialectPolicy
    ) -> None:
        self.notes = ObservationLog()
        self.usage: Mapping[str, object] | None = None
        self.model: str | None = None
        self.error: str | None = None
        self.terminal: Event | None = None
        """The event that was the terminal signal."""
        self.results: list[ToolResult] = []
        self.results_due = False
        self.repeated_text: str | None = None
        """All of the text, as the terminal event repeats it."""
        self.id: str | None = None
        """What the provider calls this answer."""
        self._name = name
        self._terminator = terminator
        self._request = request
        self._policy = policy
        self._choices: dict[int, ChoiceDraft] = {}

    def read(self, event: Event) -> Mapping[str, object] | None:
        """Return the JSON object in `event`; note anything else and return None."""
        return read_object(event.data) or self._read_oddly(event)

    def _read_oddly(self, event: Event) -> Mapping[str, object] | None:
        """Handle data that is not an object, is empty, or has text around the object."""
        parsed = parse(event.data)
        if parsed.error is not None:
            detail = f"the data is not JSON: {parsed.error}"
            self.notes.add("W004", detail, event.data[:EVIDENCE_LIMIT], event)
            if event.type == "error" or event.exception:
                self.take_error({"error": event.data or "an error event without data"}, event)
            return None
        frame = as_object(parsed.value)
        if frame is None:
            self.note_unexpected("the data is not a JSON object", parsed.value, event)
        return frame

    def note_unexpected(self, phrase: str, value: object, event: Event) -> None:
        """Note an unexpected shape, once per phrase."""
        self.notes.once(phrase, "S006", phrase, value, event)

    def take_error(self, frame: Mapping[str, object], event: Event) -> bool:
        """Record any error in `frame`; return whether there was one."""
        if not may_fail(frame, event):
            return False
        message = error_message(frame, event.type)
        if message is None and event.exception:
            message = error_message({"error": frame}, event.type) or event.type
        if message is None:
            return False
        self.fail(message, frame, event)
        return True

    def fail(self, message: str, frame: object, event: Event) -> None:
        """Note that `frame` is an error in place of the rest of the answer."""
        self.error = self.error or message
        self.notes.add("S005", f"an error instead of an answer: {message}", frame, event)

    def choice(self, index: int = 0) -> ChoiceDraft:
        """Return the choice with that index."""
        found = self._choices.get(index)
        if found is None:
            found = self._choices[index] = ChoiceDraft(index, self._request, self._policy)
        return found

    def restart(self, index: int = 0) -> ChoiceDraft:
        """Replace the choice with that index by a new one."""
        self._choices.pop(index, None)
        return self.choice(index)

    @property
    def choices(self) -> list[ChoiceDraft]:
        """The choices in the order of their index."""
        return [self._choices[index] for index in sorted(self._choices)]

    @property
    def finished(self) -> bool:
        """Whether there are choices, each with a finish reason."""
        choices = self._choices.values()
        return bool(choices) and all(draft.finish_reason is not None for draft in choices)

    def build(self, ending: CallEndCause, *, terminated: bool) -> Reply:
        """Return the finished reply.

        Args:
            ending: what ended the stream; the finish reason of a choice may tell worse.
            terminated: whether the dialect's terminal signal arrived.
        """
        observations: list[Observation] = self.notes.observations(0, None)
        choices = []
        for draft in self.choices or [self.choice()]:
            choice, noticed = draft.build(ending)
            choices.append(choice)
            observations += noticed
        return Reply(
            dialect=self._name,
            choices=tuple(choices),
            usage=self.usage,
            model=self.model,
            error=self.error,
            terminated=terminated,
            terminator=self._terminator,
            observations=tuple(sorted(observations, key=lambda one: one.event or 0)),
            tool_word=self._policy.tool_word,
            terminal_event=self.terminal.number if self.terminal else None,
            from_app=self._policy.app,
            results=tuple(self.results),
            results_due=self.results_due,
            repeated_text=self.repeated_text,
            id=self.id,
        )
