"""Searches with a judge that only looks for bytes, and a log of the trials."""

from collections.abc import Callable
from dataclasses import dataclass, field

from deltatape.diagnose.decode import decode
from deltatape.model.exchange import Exchange
from deltatape.shrink.passes import shrink
from deltatape.shrink.search import BudgetExhaustedError, Exchanges, ShrinkSearch
from deltatape.trials.shrink_memory import content_of
from deltatape.wire.json_value import parse
from helpers.chat import URL, sse
from helpers.defects import as_recorded


@dataclass
class Asked:
    """A judge that counts its trials; like the real one, it tries equal tapes only once."""

    holds: Callable[[Exchanges], bool]
    most: int = 10_000
    known: dict[str, bool] = field(default_factory=dict)

    def __call__(self, exchanges: Exchanges) -> Exchanges | None:
        content = content_of(exchanges)
        if content not in self.known:
            if len(self.known) == self.most:
                raise BudgetExhaustedError
            self.known[content] = self.holds(exchanges)
        return exchanges if self.known[content] else None


def bodies(exchanges: Exchanges) -> bytes:
    return b"".join(one.body for one in exchanges)


def having(*needles: bytes) -> Asked:
    """A judge for which a tape fails as long as the bodies have these bytes."""
    return Asked(lambda exchanges: all(each in bodies(exchanges) for each in needles))


def said(search: ShrinkSearch) -> list[object]:
    """The data of all events: JSON values, or texts if it is not JSON."""
    events = (event.data for one in search.exchanges for event in decode(one).events)
    return [data if (parsed := parse(data)).error else parsed.value for data in events]


def search_of(*exchanges: Exchange, judge: Asked, sound: bool = False) -> ShrinkSearch:
    return ShrinkSearch(exchanges, judge, sound=sound)


def streamed(*chunks: object, done: bool = True) -> Exchange:
    """A recorded chat completion."""
    return recorded(sse(*chunks, done=done))


def recorded(body: bytes, media: str = "text/event-stream") -> Exchange:
    """A body as if recorded."""
    return as_recorded(Exchange.from_body(body, content_type=media, url=URL, request={"a": 1}))


def smallest(*exchanges: Exchange, judge: Asked, sound: bool = False) -> Exchanges:
    """The exchanges after all passes."""
    search = search_of(*exchanges, judge=judge, sound=sound)
    assert shrink(search, lambda _: None)
    return search.exchanges
