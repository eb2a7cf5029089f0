"""A delivered response in the form that suspects need."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from deltatape.dialects import EventShape, Traits, traits_of
from deltatape.model.content_coding import decoded
from deltatape.model.exchange import Exchange, content_codings
from deltatape.model.reply import Channel, Reply, ToolCall
from deltatape.model.request_summary import NOTHING_ASKED, RepeatedCall, RequestSummary
from deltatape.model.stream import Event, Format, Stream
from deltatape.suspects.mistakes import DialectFamily
from deltatape.suspects.steps import (
    Step,
    block_steps,
    chat_steps,
    gemini_steps,
    ollama_steps,
    responses_steps,
)

FAMILIES: Mapping[EventShape | None, DialectFamily] = {
    EventShape.CHAT: DialectFamily.CHAT,
    EventShape.ITEMS: DialectFamily.ITEMS,
    EventShape.MESSAGES: DialectFamily.BLOCKS,
    EventShape.CONVERSE: DialectFamily.BLOCKS,
    EventShape.COHERE: DialectFamily.BLOCKS,
    EventShape.CANDIDATES: DialectFamily.PARTS,
    EventShape.LINES: DialectFamily.PARTS,
}
"""The shapes of whose clients something is known."""
_STREAMED = frozenset({Format.SSE, Format.NDJSON})
_ABNORMAL = frozenset(
    {"length", "max_tokens", "MAX_TOKENS", "incomplete", "failed", "content_filter", "error"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveredResponse:
    """A framed and rebuilt response, with its reads."""

    format: Format
    reads: tuple[bytes, ...]
    """After content-coding; one where the reads are not known."""
    events: tuple[Event, ...]
    reply: Reply
    read_numbers: tuple[int, ...] = ()
    """The number of each of the reads in the exchange."""
    reads_known: bool = True
    """Whether the reads are as the network delivered them."""
    follow_up: bool = False
    """Whether the request brings results of tools: the application reads a second stream."""

    @property
    def family(self) -> DialectFamily | None:
        """The family of clients; None if unknown."""
        return FAMILIES.get(self._traits.shape)

    @property
    def ids(self) -> frozenset[str | None]:
        """The ids that a client must repeat; empty in dialects without ids."""
        if not self._traits.policy.ids:
            return frozenset()
        return frozenset(each for call in self.reply.tool_calls for each in call.ids)

    @property
    def is_text(self) -> bool:
        """Whether clients frame it by lines."""
        return self.format in _STREAMED

    @property
    def is_whole(self) -> bool:
        """Whether it came to its regular end."""
        return self.reply.terminated and self.reply.finish_reason_raw not in _ABNORMAL

    @property
    def calls(self) -> tuple[RepeatedCall, ...]:
        """The calls of the reference accumulator."""
        return tuple(_repeated(call) for call in self.reply.tool_calls)

    @property
    def text_calls(self) -> tuple[RepeatedCall, ...]:
        """The calls that the model wrote into its text."""
        return tuple(
            _repeated(one.call) for one in self.reply.text_calls if one.channel is Channel.TEXT
        )

    def steps(self, events: Iterable[Event]) -> Iterator[Step]:
        """Yield what `events` ask a client to do."""
        traits = self._traits
        if self.family is DialectFamily.CHAT:
            index = self.reply.choices[0].index
            return chat_steps(events, index, indexed=traits.policy.indexes)
        if self.family is DialectFamily.ITEMS:
            return responses_steps(events)
        if self.family is DialectFamily.BLOCKS:
            return block_steps(events)
        if traits.shape is EventShape.CANDIDATES:
            return gemini_steps(events, self.reply.tool_calls)
        return ollama_steps(events)

    @property
    def _traits(self) -> Traits:
        return traits_of(self.reply.dialect)


def delivered(
    exchange: Exchange, stream: Stream, reply: Reply, asked: RequestSummary = NOTHING_ASKED
) -> DeliveredResponse:
    """Collect what `exchange` delivered.

    Args:
        exchange: with a response.
        stream: the response, framed.
        reply: rebuilt from that.
        asked: what the request says; its history shows whether this is a second stream.
    """
    headers = exchange.response.headers if exchange.response else ()
    codings = content_codings(headers)
    pieces, _ = decoded((read.data for read in exchange.reads), codings, exchange.hidden)
    numbered = [(number, piece) for number, piece in enumerate(pieces) if piece]
    if b"".join(piece for _, piece in numbered) != stream.body:
        numbered = [(max(0, len(pieces) - 1), stream.body)]
    last = asked.history[-1] if asked.history else None
    return DeliveredResponse(
        format=stream.format,
        reads=tuple(piece for _, piece in numbered),
        events=stream.events,
        reply=reply,
        read_numbers=tuple(number for number, _ in numbered),
        reads_known=exchange.timed,
        follow_up=last is not None and last.call_id is not None,
    )


def _repeated(call: ToolCall) -> RepeatedCall:
    return RepeatedCall(id=call.id, name=call.name, arguments=call.arguments)
