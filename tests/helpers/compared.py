"""Exchanges to be compared, in a few words."""

from deltatape.compare import ChangeKind, Comparison
from deltatape.compare.comparable_events import VOLATILE, ComparableEvent, FieldFilter, units_of
from deltatape.diagnose.rebuild import Analysis, analyse
from deltatape.model.exchange import Exchange
from helpers.chat import URL, calls, choice, entry, sse

SSE = "text/event-stream"
MESSAGES = "http://127.0.0.1/v1/messages"


def analysed(body: bytes, url: str = URL, media: str = SSE) -> Analysis:
    """An imported body, analysed."""
    return analyse(Exchange.from_body(body, content_type=media, url=url))


def chat(*chunks: object, done: bool = True) -> Analysis:
    """A chat completion of these chunks."""
    return analysed(sse(*chunks, done=done))


def words(*texts: str) -> list[object]:
    """Chunks of text."""
    return [choice({"content": text}) for text in texts]


def call(*pieces: str, index: int = 0, name: str = "get") -> list[object]:
    """Chunks of a call: it is opened, then its arguments come."""
    opened = calls(entry(index, f"c{index}", name=name, arguments=""))
    return [opened, *(calls(entry(index, arguments=piece)) for piece in pieces)]


def anthropic_stream(*frames: str) -> Analysis:
    """A stream of Anthropic's events, each given as the text of its block."""
    return analysed("".join(f"{frame}\n\n" for frame in frames).encode(), MESSAGES)


def units(analysis: Analysis) -> tuple[ComparableEvent, ...]:
    """Its events as they are compared by default."""
    return units_of(analysis, FieldFilter(VOLATILE))


def unlike(comparison: Comparison) -> list[tuple[str, tuple[int, ...], tuple[int, ...]]]:
    """The changes of events that are not equal: kind, left, right."""
    return [
        (change.kind.value, change.left, change.right)
        for change in comparison.changes
        if change.kind is not ChangeKind.EQUAL
    ]
