"""Find the secrets of one body, also split over events, and overwrite them.

Strategy. The body is searched as a text, see `secret_text`. In a stream, the strings at the same
path of consecutive events are joined and searched, too, since a model streams a key in several
deltas. Amazon's messages are searched as unfolded text; in base64 the asterisks are encoded.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TypeAlias

from deltatape.redact.body_texts import texts_to_search
from deltatape.redact.eventstream import unfold
from deltatape.redact.json_strings import Channel, FramedBody, framed, string_places
from deltatape.secret_text.escaped_text import LayeredView, Overwrite, overwrite, unescaped
from deltatape.secret_text.prefilter import may_any_hold_secret
from deltatape.secret_text.search import Secret, in_view, spans_of


def secrets(data: bytes) -> tuple[Secret, ...]:
    """Return the secrets in `data`, in the order of its bytes; overlapping ones count as one."""
    texts = texts_to_search(data)
    return () if texts is not None and not may_any_hold_secret(texts) else found_secrets(data)


def found_secrets(data: bytes) -> tuple[Secret, ...]:
    """Return the same as `secrets` after an exact search."""
    unfolded = unfold(data)
    if unfolded is None:
        found, _ = _found(data, framed)
    else:
        hits, plain = _found(unfolded.plain, unfolded.framed)
        body = unfolded.folded(plain)
        found = [
            replace(secret, spans=spans, edits=unfolded.edits(body, spans))
            for secret in hits
            for spans in [unfolded.spans(secret.spans)]
        ]
    return tuple(sorted(found, key=lambda secret: secret.spans))


def _found(data: bytes, frame: Callable[[LayeredView], FramedBody]) -> tuple[list[Secret], bytes]:
    """Return the secrets in a text, and the text without them."""
    merged = _FoundSecrets()
    # A secret may begin where another one ended, and show only when that is gone.
    while True:
        before = len(merged.edits)
        body = LayeredView(data.decode("latin-1"))
        framed_body = frame(body)
        merged.add(in_view(body))
        by_index, by_keys = _channels(framed_body)
        merged.add(_in_channels(framed_body, by_index))
        if framed_body.is_stream:
            # By keys alone, strings of several texts may be joined: only where nothing is merged.
            merged.add(_in_channels(framed_body, by_keys), extend=False)
        changed = overwrite(data, merged.edits[before:])
        if changed == data:
            return merged.secrets, data
        data = changed


_Channels: TypeAlias = dict[Channel, list[tuple[int, int]]]
"""The strings of each channel in the data of a body."""


def _channels(frame: FramedBody) -> tuple[_Channels, _Channels]:
    """Return the strings of a body by `Leaf.channel`, and of a stream also by `Leaf.trail`."""
    by_index: _Channels = {}
    by_keys: _Channels = {}
    for start, end in frame.events:
        for string in string_places(frame.view.text, start, end, is_stream=frame.is_stream):
            place = (string.start, string.end)
            by_index.setdefault(string.channel, []).append(place)
            if frame.is_stream:
                by_keys.setdefault(string.trail, []).append(place)
    return by_index, by_keys


def _in_channels(frame: FramedBody, channels: _Channels) -> Iterator[Secret]:
    """Yield secrets that appear only when strings of consecutive events are joined."""
    for slices in channels.values():
        if len(slices) > 1:
            yield from in_view(frame.view.on(unescaped(frame.view.text, slices)))


class _FoundSecrets:
    """Each secret once, joined with overlapping ones; the first one names it."""

    def __init__(self) -> None:
        self.secrets: list[Secret] = []
        self.edits: list[Overwrite] = []
        self._owner: dict[int, int] = {}

    def add(self, found: Iterable[Secret], *, extend: bool = True) -> None:
        """Add secrets; without `extend`, only those that share no byte with a known one."""
        for secret in found:
            places = [at for start, end in secret.spans for at in range(start, end)]
            owner = next((self._owner[at] for at in places if at in self._owner), None)
            if owner is None:
                owner = len(self.secrets)
                self.secrets.append(secret)
            elif not extend:
                continue
            elif secret.certain or any(at not in self._owner for at in places):
                self.secrets[owner] = _merged(self.secrets[owner], secret)
            else:
                continue
            self.edits += secret.edits
            for at in places:
                self._owner.setdefault(at, owner)


def _merged(first: Secret, more: Secret) -> Secret:
    """Join a secret with an overlapping one."""
    edits = (*first.edits, *more.edits)
    longer = max(first, more, key=lambda secret: len(secret.value))
    return Secret(
        kind=more.kind if more.certain and not first.certain else first.kind,
        certain=first.certain or more.certain,
        value=longer.value,
        spans=spans_of(edits),
        edits=edits,
    )
