"""Read the messages of both sides of a WebSocket, and which side ended it."""

from typing import NamedTuple

from deltatape.model.exchange import Exchange
from deltatape.model.websocket import CLOSE, Message, Side, Violation
from deltatape.printable import count
from deltatape.wire.websocket import (
    MessageReader,
    is_control,
    negotiated_deflate,
    read_closure,
)

_EXTENSIONS = b"sec-websocket-extensions"


class Socket(NamedTuple):
    """What went over a WebSocket."""

    messages: tuple[Message, ...]
    """Includes control frames; in the order in which they ended."""
    violations: tuple[Violation, ...]

    def sent(self, side: Side) -> tuple[Message, ...]:
        """Return the messages of a side, without control frames."""
        return tuple(
            each for each in self.messages if each.side is side and not is_control(each.opcode)
        )

    @property
    def ending(self) -> str:
        """Who closed it first, and why; "not closed" if nobody did."""
        for message in self.messages:
            if message.opcode == CLOSE:
                return f"closed by the {message.side}, {read_closure(message.data)}"
        return "not closed"

    def __str__(self) -> str:
        asked, answered = (len(self.sent(side)) for side in Side)
        return f"WebSocket, {count(asked, 'message')} up and {answered} down, {self.ending}"


def read_socket(exchange: Exchange) -> Socket:
    """Read the frames of `exchange`."""
    fields = exchange.response.headers if exchange.response else ()
    values = (value for name, value in fields if name.lower() == _EXTENSIONS)
    deflate = negotiated_deflate(value for value in values if isinstance(value, bytes))
    reader = MessageReader(compressed=deflate is not None)
    found = [reader.add(piece) for piece in exchange.frames]
    messages = (*(message for message in found if message is not None), *reader.end())
    return Socket(messages, tuple(reader.violations))
