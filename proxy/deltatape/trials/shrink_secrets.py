"""Keeps credentials out of what a search leaves behind: the new tape, its tests, the answers.

The new tape has requests as the application makes them today, with the keys of today in them. They
are masked as a recorder masks: what the environment and `.env` files hold, what came in heads, and
what was masked in the recorded request and stands in the new one again.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from deltatape.environment.dotenv import read_dotenv
from deltatape.environment.known_secrets import known_secrets
from deltatape.http1.head import RequestHead
from deltatape.model.exchange import Request
from deltatape.replay.environment import PLACEHOLDER
from deltatape.tape.literals import blanked, merged
from deltatape.tape.mask import Masker
from deltatape.trials.shrink_memory import AskedBody

_BEFORE = 8
"""Bytes in front of a masked value by which its place in another body is found."""


class Secrets:
    """The credentials that the application has."""

    def __init__(self, mask_key: bytes, environ: Mapping[str, str], folder: Path) -> None:
        """Those of the environment and of the `.env` files that count in `folder`."""
        self._masker = Masker(mask_key)
        for secret in known_secrets(environ, read_dotenv(folder, environ)):
            self._masker.learn(secret)
        # On a tape that is played with a key it has to be as masked as that.
        self._masker.learn(PLACEHOLDER.encode())

    def heard(self, head: RequestHead) -> None:
        """Take note of what the head of a request carries."""
        self._masker.see(head.fields, head.target)

    def found(self, recorded: Request, body: bytes) -> None:
        """Take note of what was masked in a recorded request and is in `body` in clear."""
        for start, end, digest in recorded.masked:
            before = recorded.body[max(0, start - _BEFORE) : start]
            at = body.find(before)
            while before and at >= 0:
                value = body[at + len(before) : at + len(before) + end - start]
                if self._masker.value(value).hash == digest:
                    self._masker.learn(value)
                    break
                at = body.find(before, at + 1)

    def body(self, body: bytes) -> AskedBody:
        """`body` as it may stand on a tape."""
        spans = self._masker.literals.spans(body)
        return AskedBody(data=blanked(body, spans), masked=spans)

    def asked(self, request: Request) -> Request:
        """`request` with the credentials masked that are in its body in clear."""
        body = self.body(request.body)
        spans = merged((*request.masked, *body.masked))
        return replace(request, body=body.data, masked=spans) if body.masked else request

    def text(self, text: str) -> str:
        """`text` with asterisks in place of credentials."""
        return self._masker.text(text)
