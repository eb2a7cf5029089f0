"""Find the secrets of one body, also split and escaped, and overwrite them.

Strategy. The body is searched unchanged, then with JSON escapes decoded once, twice, and so on,
which finds secrets in strings, in JSON inside strings, and in broken JSON. In a stream, the strings
at the same path of consecutive events are joined and searched, too, since a model streams a key in
several deltas.

Everything found is overwritten with asterisks, byte by byte. Whitespace, quotes, backslashes and
short escapes stay: JSON stays JSON, and lines stay lines. Amazon's messages are searched as
unfolded text, too; in base64 the asterisks are encoded.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from deltatape.redact.escaped_text import (
    Layer,
    LayeredView,
    Overwrite,
    joined,
    overwrite,
    unescaped,
)
from deltatape.redact.eventstream import unfold
from deltatape.redact.json_strings import Channel, FramedBody, Leaf, framed, leaves
from deltatape.redact.patterns import SecretMatch, find

_LEVELS = 16
"""How often escapes are undone at most: once for each JSON text that stands in a string."""

_VISIBLE = re.compile(r'[^\s"\\\x00-\x1f\x7f]')


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """A secret in a body. `spans` are its bytes, ascending, at least one."""

    kind: str
    certain: bool
    value: bytes
    """The secret itself, for its hash: never shown."""
    spans: tuple[tuple[int, int], ...]
    edits: tuple[Overwrite, ...]
    """What overwrites it, if those of all secrets of the body are applied."""


def secrets(data: bytes) -> tuple[Secret, ...]:
    """Return the secrets in `data`, in the order of its bytes; overlapping ones count as one."""
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
    before = -1
    # A secret may begin where another one ended, and show only when that is gone.
    while before < len(merged.edits):
        before = len(merged.edits)
        body = LayeredView(data.decode("latin-1"))
        framed_body = frame(body)
        merged.add(_in_view(body))
        by_index, by_keys = _channels(framed_body)
        merged.add(_in_channels(framed_body, by_index))
        if framed_body.is_stream:
            # By keys alone, strings of several texts may be joined: only where nothing is merged.
            merged.add(_in_channels(framed_body, by_keys), extend=False)
        data = overwrite(data, merged.edits[before:])
    return merged.secrets, data


def _in_view(view: LayeredView) -> Iterator[Secret]:
    """Yield the secrets in a text, at every level of escapes."""
    texts = [view.text]
    layers: list[Layer] = []
    while "\\" in texts[-1] and len(layers) < _LEVELS:
        layer = unescaped(texts[-1], [(0, len(texts[-1]))])
        if layer.text == texts[-1]:
            break
        layers.append(layer)
        texts.append(layer.text)
        view = view.on(layer)
    for level, text in enumerate(texts):
        for match in find(text):
            value = text[match.start : match.end]
            edits = _asterisks(view, layers[level:], match)
            if edits:
                yield Secret(
                    kind=match.kind,
                    certain=match.certain,
                    value=value.encode("latin-1"),
                    spans=_spans(edits),
                    edits=edits,
                )


def _asterisks(
    view: LayeredView, above: Iterable[Layer], match: SecretMatch
) -> tuple[Overwrite, ...]:
    """Return the changes of the bytes that overwrite a match.

    They are made in the fully decoded text, so that no escape is broken.
    """
    start, end = match.start, match.end
    for layer in above:
        start, end = layer.lifted(start, end)
    stars = _VISIBLE.sub("*", view.text[start:end])
    return tuple(edit for edit in view.down([Overwrite(start, stars)]) if edit.text)


_Channels: TypeAlias = dict[Channel, list[tuple[int, int]]]
"""Where the strings of each channel stand in the data of a body."""


def _channels(frame: FramedBody) -> tuple[_Channels, _Channels]:
    """Return the strings of a body by `Leaf.channel`, and those of a stream by `Leaf.trail`."""
    by_index: _Channels = {}
    by_keys: _Channels = {}
    for start, end in frame.events:
        found: Iterable[Leaf] = leaves(frame.view.text, start, end)
        if frame.is_stream:
            found = list(found)  # an index may stand behind what it is about
        for leaf in found:
            place = (leaf.start, leaf.end)
            by_index.setdefault(leaf.channel, []).append(place)
            if frame.is_stream:
                by_keys.setdefault(leaf.trail, []).append(place)
    return by_index, by_keys


def _in_channels(frame: FramedBody, channels: _Channels) -> Iterator[Secret]:
    """Yield secrets that appear only when strings of consecutive events are joined."""
    for slices in channels.values():
        if len(slices) > 1:
            yield from _in_view(frame.view.on(unescaped(frame.view.text, slices)))


def _spans(edits: Iterable[Overwrite]) -> tuple[tuple[int, int], ...]:
    return joined((edit.start, edit.end) for edit in edits)


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
        spans=_spans(edits),
        edits=edits,
    )
