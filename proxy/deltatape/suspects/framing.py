r"""The framings and decodings that clients write themselves, and what goes wrong with them.

All take the reads as they came from the socket: `data.split("\n")` on a read finds half lines, and
half characters, wherever the network cut.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from deltatape.model.stream import Event, Format
from deltatape.wire.json_value import parse
from deltatape.wire.ndjson import NdjsonDecoder
from deltatape.wire.sse import SseDecoder

_FIELD = "data: "
_SENTINEL = "[DONE]"


class Framed(NamedTuple):
    """What a client frames."""

    events: tuple[Event, ...]
    texts: tuple[str, ...] = ()
    """What it gives its JSON parser although it is no JSON."""
    thrown: tuple[str, ...] = ()
    dies: bool = False
    """Whether that certainly ends its reading."""


def framed(reads: Sequence[bytes], form: Format, framing: str, decode: str) -> Framed:
    """What a client frames that chooses so.

    Args:
        reads: after content-coding.
        form: SSE or NDJSON.
        framing: how it finds events; `standard` or one of the mistakes.
        decode: how it decodes: `stream`, or `reads` and `reads-ignore`, which leaves out half
            characters.
    """
    thrown: tuple[str, ...] = ()
    if decode == "reads":
        texts = [data.decode(errors="replace") for data in reads]
        thrown = _refusals(reads)
    elif decode == "reads-ignore":
        texts = [data.decode(errors="ignore") for data in reads]
    else:
        texts = _decoded(reads)
    if framing == "standard":
        return Framed(_standard("".join(texts), form), (), thrown)
    if form is Format.NDJSON:
        found = [line for text in texts for line in text.split("\n")]
        if framing not in ("reads", "one-per-read"):
            found = "".join(texts).split("\n")
        elif framing == "one-per-read":
            found = [text.partition("\n")[0] for text in texts]
    else:
        found = [*_FRAMINGS[framing](texts)]
    return _events(found, thrown, dies=framing == "every-line")


def _decoded(reads: Sequence[bytes]) -> list[str]:
    """The reads as texts; a character that is cut belongs to the read that completes it."""
    texts, held = [], b""
    for data in reads:
        data = held + data  # noqa: PLW2901
        cut = _cut(data)
        held = data[cut:]
        texts.append(data[:cut].decode(errors="replace"))
    return [*texts, held.decode(errors="replace")]


def _cut(data: bytes) -> int:
    """Where the last character of `data` begins if it is not whole; else the end."""
    for back in range(1, min(4, len(data)) + 1):
        lead = data[-back]
        if lead >= 0xC0:  # noqa: PLR2004 - a byte that begins a sequence
            needed = 2 + (lead >= 0xE0) + (lead >= 0xF0)  # noqa: PLR2004
            return len(data) - back if back < needed else len(data)
    return len(data)


def _refusals(reads: Sequence[bytes]) -> tuple[str, ...]:
    """What a strict decoder says of the first read that ends inside a character."""
    for data in reads:
        try:
            data.decode()
        except UnicodeDecodeError as problem:
            return (str(problem),)
    return ()


def _standard(text: str, form: Format) -> tuple[Event, ...]:
    decoder = NdjsonDecoder() if form is Format.NDJSON else SseDecoder()
    events = decoder.feed(text.encode(), 0, None)
    decoder.end()
    return (*events, *filter(None, [decoder.tail]))


def _by_reads(texts: Sequence[str]) -> Iterator[str]:
    for text in texts:
        yield from _data_lines(text)


def _data_lines(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        if line.startswith(_FIELD):
            yield line[len(_FIELD) :]


def _first_of_read(texts: Sequence[str]) -> Iterator[str]:
    for text in texts:
        yield from [*_data_lines(text)][:1]


def _by_blank_lines(texts: Sequence[str]) -> Iterator[str]:
    *blocks, _ = "".join(texts).split("\n\n")
    for block in blocks:
        lines = (line for line in block.split("\n") if line.startswith("data:"))
        yield "\n".join(line[len("data:") :].removeprefix(" ") for line in lines)


def _with_space(texts: Sequence[str]) -> Iterator[str]:
    return _data_lines("".join(texts))


def _every_line(texts: Sequence[str]) -> Iterator[str]:
    for line in "".join(texts).splitlines():
        yield line.removeprefix(_FIELD)


_FRAMINGS: Mapping[str, Callable[[Sequence[str]], Iterator[str]]] = {
    "reads": _by_reads,
    "one-per-read": _first_of_read,
    "blank-lines": _by_blank_lines,
    "space": _with_space,
    "every-line": _every_line,
}


def _events(found: Sequence[str], thrown: tuple[str, ...], *, dies: bool) -> Framed:
    events: list[Event] = []
    refused: list[str] = []
    for data in found:
        text = data.strip()
        if not text:
            continue
        if text != _SENTINEL and parse(text).error is not None:
            refused.append(data)
            continue
        events.append(Event(len(events), "message", data, "", None, 0, 0, 0, None))
    return Framed(tuple(events), tuple(dict.fromkeys(refused)), thrown, dies and bool(refused))
