"""Cache the results of runs on disk until a search ends, so that it can be resumed.

Strategy: a file per search, a line per run, appended immediately. The file's name is a hash of
everything known that results depend on. The application's own behaviour is not known, so the file
is deleted at the end of the search, and the first and the last run are never cached.
"""

import contextlib
import hashlib
import json
import os
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from deltatape.environment.dotenv import read_dotenv
from deltatape.environment.known_secrets import known_secrets
from deltatape.errors import UsageError
from deltatape.http1.head import ParsedRequestHead
from deltatape.model.exchange import Exchange, MaskedSpan, Request
from deltatape.replay.environment import PLACEHOLDER
from deltatape.store.names import prepare_folder
from deltatape.tape.mask import Masker
from deltatape.tape.seen_credentials import blanked, merged
from deltatape.tape.serialize import exchange_lines


class AskedBody(NamedTuple):
    """The body of a request, with its masked spans."""

    data: bytes
    masked: tuple[MaskedSpan, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateResult:
    """The result of a run against a candidate."""

    same: bool
    """Whether it failed in the same way."""
    asked: Mapping[int, AskedBody] = field(default_factory=dict)
    """By exchange, the body of a request that differed from the recorded one."""
    unplayed: frozenset[int] = frozenset()
    """Exchanges that the command did not request."""


class SearchCache:
    """The results of one search, by the hash of the candidate."""

    def __init__(self, path: Path) -> None:
        """Args: path: of the file; read if it exists."""
        self._path = path
        self._known = dict(_read(path))
        self.found = len(self._known)
        """How many results an earlier search left."""

    def get(self, content: str) -> CandidateResult | None:
        """Return the result of a candidate, if known; see `content_of`."""
        return self._known.get(content)

    def put(self, content: str, answer: CandidateResult) -> None:
        """Add a result.

        Raises:
            UsageError: it cannot be written.
        """
        self._known[content] = answer
        line = json.dumps({"tape": content, **_to_json(answer)}) + "\n"
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            # One by one: mkdir ignores the mode for parent folders.
            prepare_folder(self._path.parent.parent)
            prepare_folder(self._path.parent)
            with os.fdopen(os.open(self._path, flags, 0o600), "a") as file:
                file.write(line)
        except OSError as error:
            raise UsageError(
                f"{self._path}: {error.strerror or error}; results of runs are kept there"
            ) from None

    def forget(self) -> None:
        """Delete the file."""
        self._known.clear()
        self.found = 0
        with contextlib.suppress(OSError):  # nothing was stored, or the folder is gone
            self._path.unlink()


def content_of(exchanges: Iterable[Exchange]) -> str:
    """Hash all that is played and its requests."""
    digest = hashlib.sha256()
    for exchange in exchanges:
        for _, line in exchange_lines(exchange, exchange.number):
            digest.update(line)
    return digest.hexdigest()


def _read(path: Path) -> Iterable[tuple[str, CandidateResult]]:
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return
    for line in lines:
        try:
            found = json.loads(line)
            yield str(found["tape"]), _from_json(found)
        except (ValueError, KeyError, TypeError, AttributeError):
            continue  # the last line of a search that was killed, or not ours


def _to_json(answer: CandidateResult) -> dict[str, object]:
    return {
        "same": answer.same,
        "asked": {
            str(at): [b64encode(body.data).decode(), body.masked]
            for at, body in answer.asked.items()
        },
        "unplayed": sorted(answer.unplayed),
    }


def _body(data: str, masked: Iterable[tuple[int, int, str]]) -> AskedBody:
    spans = ((int(start), int(end), str(digest)) for start, end, digest in masked)
    return AskedBody(data=b64decode(data), masked=tuple(spans))


def _from_json(found: Mapping[str, object]) -> CandidateResult:
    asked, unplayed = found["asked"], found["unplayed"]
    if not isinstance(asked, dict) or not isinstance(unplayed, list):
        raise TypeError
    return CandidateResult(
        same=found["same"] is True,
        asked={int(number): _body(*found) for number, found in asked.items()},
        unplayed=frozenset(int(number) for number in unplayed),
    )


# Keeps credentials out of what a search writes: the new tape, its tests, the cached results.
#
# The new tape has requests that the application makes today, with today's keys. They are masked as
# by a recorder: the values from the environment and `.env` files, the credentials in request heads,
# and what was masked in the recorded request and appears again in the new one.

_BEFORE = 8
"""How many bytes before a masked value are searched for in another body."""


class AppCredentials:
    """The credentials of the application."""

    def __init__(self, mask_key: bytes, environ: Mapping[str, str], folder: Path) -> None:
        """Read the environment and the `.env` files of `folder`."""
        self._masker = Masker(mask_key)
        for secret in known_secrets(environ, read_dotenv(folder, environ)):
            self._masker.learn(secret)
        # Masked as well: a real key would be, so both tapes look alike.
        self._masker.learn(PLACEHOLDER.encode())

    def add_head(self, head: ParsedRequestHead) -> None:
        """Add the credentials in the head of a request."""
        self._masker.see(head.fields, head.target)

    def found(self, recorded: Request, body: bytes) -> None:
        """Add the credentials that are masked in a recorded request but not in `body`."""
        for start, end, digest in recorded.content_masked:
            before = recorded.content[max(0, start - _BEFORE) : start]
            at = body.find(before)
            while before and at >= 0:
                value = body[at + len(before) : at + len(before) + end - start]
                if self._masker.value(value).hash == digest:
                    self._masker.learn(value)
                    break
                at = body.find(before, at + 1)

    def body(self, body: bytes) -> AskedBody:
        """Return `body` as it may be written on a tape."""
        spans = self._masker.seen.spans(body)
        return AskedBody(data=blanked(body, spans), masked=spans)

    def asked(self, request: Request) -> Request:
        """Return `request` with credentials in its body masked."""
        body = self.body(request.content)
        spans = merged((*request.content_masked, *body.masked))
        return request.with_content(body.data, spans) if body.masked else request

    def text(self, text: str) -> str:
        """Return `text` with asterisks in place of credentials."""
        return self._masker.text(text)
