"""Collects a request until it is known who answers it.

That is when it is whole, or when it is longer than any on the tape: then it goes on as it comes. A
client that waits for `100 Continue` gets it from here, so that its field `Expect` is not on the
tape of what is recorded.
"""

from dataclasses import replace
from typing import Protocol

from deltatape.http1.head import Fields, RequestHead, waits_to_continue, write_response
from deltatape.http1.server import Handler, ServerConnection
from deltatape.player.play import joined

_CONTINUE = write_response(100, b"Continue", ())


class Chooser(Protocol):
    """Knows who answers."""

    @property
    def longest(self) -> int:
        """Of the bodies that have to be whole, in bytes."""

    def refused_answer(self, head: RequestHead) -> bytes | None:
        """The answer to a request that must not be served; None: it may."""

    def choose(self, head: RequestHead, body: bytes, client: ServerConnection) -> Handler | bytes:
        """Who answers a request, or the answer; a body of more than `longest` is its beginning."""


class Collect:
    """One request; see `http1.server.Handler`."""

    def __init__(self, owner: Chooser, client: ServerConnection) -> None:
        self._owner = owner
        self._client = client
        self._head: RequestHead | None = None
        self._body: bytes | bytearray = b""
        self._answerer: Handler | None = None

    def on_request(self, head: RequestHead) -> None:
        """See `Handler.on_request`."""
        refusal = self._owner.refused_answer(head)
        if refusal is not None:
            self._end(refusal)
            return
        if waits_to_continue(head):
            self._client.write(_CONTINUE)
        fields = tuple(pair for pair in head.fields if pair[0].lower() != b"expect")
        self._head = replace(head, fields=fields)

    def on_body(self, data: bytes) -> None:
        """See `Handler.on_body`."""
        if self._answerer is not None:
            self._answerer.on_body(data)
            return
        self._body = joined(self._body, data)
        if len(self._body) > self._owner.longest:
            self._choose()

    def on_request_end(self, trailers: Fields) -> None:
        """See `Handler.on_request_end`."""
        answerer = self._answerer or self._choose()
        if answerer is not None:
            answerer.on_request_end(trailers)

    def _choose(self) -> Handler | None:
        """Hand on what has come; None: it has been answered."""
        assert self._head is not None
        body, self._body = bytes(self._body), b""
        chosen = self._owner.choose(self._head, body, self._client)
        if isinstance(chosen, bytes):
            self._end(chosen)
            return None
        self._answerer = chosen
        chosen.on_request(self._head)
        if body:
            chosen.on_body(body)
        return chosen

    def _end(self, answer: bytes) -> None:
        self._client.write(answer)
        self._client.finish(keep_alive=False)

    def on_writable(self, *, writable: bool) -> None:
        """See `Handler.on_writable`."""
        if self._answerer is not None:
            self._answerer.on_writable(writable=writable)

    def on_client_lost(self, *, was_reset: bool) -> None:
        """See `Handler.on_client_lost`."""
        if self._answerer is not None:
            self._answerer.on_client_lost(was_reset=was_reset)
