"""Compares a reply's text with the application's repetition of it.

Applications may trim, translate, redact, cut or summarise a text, but no deliberate change follows
the fragments in which the wire delivered it. So a change counts only if it begins and ends at
fragment boundaries. It is surer if the boundary is inside a word: at a space somebody may cut on
purpose.

Everything is linear in the length of the texts.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from deltatape.model.digest import MAX_CONTENT
from deltatape.model.finding import Confidence, Excluded
from deltatape.model.turn import TextChange, TextDamage
from deltatape.printable import excerpt
from deltatape.wire.json_value import parse

_FEW = 3
"""From this number of fragments on, one may be missing; of two, only where a word is cut."""
_LEAST = 3
"""How many characters distinguish two texts reliably."""
_LEAST_LENGTH = 2
"""Shorter fragments, on average, are characters: their borders prove nothing."""
_ROUND = 10
"""Texts are cut to lengths that are a multiple of this, or a power of two."""
_MARKUP = re.compile(r"[<>\[\]{}`*#|_\\~\u3010\u3011]|^\s*\n|\n\s*$|[A-Z]{3}")
"""Parts that applications remove on purpose: tags, fences, marks, a stop word, a line."""
_CLOSING = frozenset(",.;:!?)]}%\u2019\u2026\u3002\u3001\uff0c")
"""Characters that no text begins with."""
_ENDS = frozenset(".!?:;\u2026\u3002\uff01\uff1f\"')]}")
"""Characters that end a sentence."""
_REPLACED = "\ufffd"
_REPLACED_RUN = re.compile(f"{_REPLACED}+")
_SPACE = re.compile(r"\s+")
_MEETING = "\0"
_RUNS_TOGETHER = re.compile(r"([^\W\d_])(?=\0*\s)(?=\s*\0)[\s\0]+(?=([^\W\d_]))")
"""White space between letters, where fragments meet."""
_RUN_TOGETHER = 4
"""This many words that run together are not a name, a number or code."""
_GAP = 4
"""The most adjacent characters that a decoder may replace: each read can cut one."""
_CP1252_HOLES = {0x81: 0x81, 0x8D: 0x8D, 0x8F: 0x8F, 0x90: 0x90, 0x9D: 0x9D}
_CP1252 = str.maketrans(
    {
        chr(byte): bytes([byte]).decode("cp1252")
        for byte in range(0x80, 0xA0)
        if byte not in _CP1252_HOLES
    }
)
_TRIMS = (str.strip, str.lstrip, str.rstrip)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Text:
    """A delivered text without surrounding white space, and its fragments."""

    whole: str
    pieces: tuple[str, ...]
    ends: tuple[int, ...]
    torn: frozenset[int]
    """Places of the fragments in which a read cut a character in two."""

    @property
    def starts(self) -> tuple[int, ...]:
        return (0, *self.ends[:-1])

    @property
    def by_letters(self) -> bool:
        """Return whether there are borders of fragments wherever somebody may edit the text."""
        return len(self.whole) < _LEAST_LENGTH * len(self.pieces)

    def nth(self, first: int, last: int) -> str:
        """Name the fragments from `first` to `last` in a message."""
        count = len(self.pieces)
        text = _quoted("".join(self.pieces[first : last + 1]))
        if first == last:
            return f"fragment {first + 1} of {count}, {text}"
        return f"fragments {first + 1} to {last + 1} of {count}, {text}"


def text_change(
    content: str, ends: Sequence[int], repetition: str, torn: Sequence[int] = ()
) -> TextChange | None:
    """Return what the application did to a text; None if an innocent program might do it.

    Args:
        content: the text as delivered.
        ends: where its fragments end; see `Digest.content_ends`.
        repetition: the text that the request has in its place.
        torn: the fragments in which a read ended within a character; see `Digest.torn`.
    """
    original, repeated = content.strip(), repetition.strip()
    if len(original) < _LEAST or not repeated or original == repeated:
        return None
    if len(content) >= MAX_CONTENT or len(repetition) >= MAX_CONTENT:
        return None
    if _is_json(original) and _is_json(repeated):
        return None
    text = _fragments(content, ends, torn)
    if _without_space(original) == _without_space(repeated):
        return _trimmed(text, repeated)
    found = _recoded(text, repeated) or _doubled(text, repeated)
    if found is not None or len(text.pieces) == 1:
        return found
    found = _one_end(text, repeated, repetition)
    if found is not None and found.where != "last":
        return found
    found = found or _one_gap(text, repeated) or _one_more(text, repeated)
    found = found or _swapped(text, repeated)
    if found is None:
        return _several_fragments(text, repeated)
    if text.by_letters:
        return replace(found, confidence=Confidence.POSSIBLE, excluded=())
    return found


def _fragments(content: str, ends: Sequence[int], torn: Sequence[int]) -> _Text:
    whole = content.strip()
    lead = len(content) - len(content.lstrip())
    inner = [min(max(end - lead, 0), len(whole)) for end in (*ends, len(content))]
    kept = [place for place, (one, end) in enumerate(pairwise([0, *inner])) if end > one]
    bounds = [inner[place] for place in kept]
    pieces = tuple(whole[one:end] for one, end in pairwise([0, *bounds]))
    places = frozenset(at for at, place in enumerate(kept) if place in torn)
    return _Text(whole=whole, pieces=pieces, ends=tuple(bounds), torn=places)


def _is_json(text: str) -> bool:
    return text[0] in "{[" and parse(text).error is None


def _without_space(text: str) -> str:
    return _SPACE.sub("", text)


def _quoted(text: str) -> str:
    return repr(excerpt(text, 40)) if text.isprintable() else f"'{excerpt(text, 40)}'"


def _splits_word(left: str, right: str) -> bool:
    """Return whether a word or number continues across the end of `left` and the start of `right`.

    Only in scripts with upper and lower case: a capital may start a new sentence. Unknown in other
    scripts.
    """
    if not left or not right:
        return False
    if left[-1].isdigit() and right[0].isdigit():
        return True
    return splits_letters(left, right)


def splits_letters(left: str, right: str) -> bool:
    """Like `_splits_word`, but not for numbers."""
    before, after = left[-1:], right[:1]
    return (before.islower() or before.isupper()) and after.islower()


def _has_word(text: str) -> bool:
    return any(map(str.isalnum, text))


# -- wrong characters ------------------------------------------------------------------------------


def _recoded(text: _Text, repeated: str) -> TextChange | None:
    """Detect bytes that were decoded with the wrong encoding, or chunk by chunk."""
    original = text.whole
    if original.isascii():
        return None
    raw = original.encode("utf-8", "surrogatepass").decode("latin-1")
    for name, wrong in (("Latin-1", raw), ("Windows-1252", raw.translate(_CP1252))):
        if repeated == wrong.strip():
            return _encoding(
                f"with its UTF-8 read as {name}: {_near_special(repeated)}",
                Excluded(
                    "the app changed characters on purpose",
                    (
                        "every non-ASCII character became the characters that its UTF-8 bytes"
                        f" are in {name}, and nothing else changed"
                    ),
                ),
            )
    if _REPLACED in repeated and _REPLACED not in original:
        return _replaced(text, repeated)
    return _dropped_characters(text, repeated)


def _replaced(text: _Text, repeated: str) -> TextChange | None:
    if not _is_with_gaps(_REPLACED_RUN.split(repeated), text.whole):
        return None
    count = len(_REPLACED_RUN.findall(repeated))
    return _encoding(
        f"with {count} U+FFFD in place of characters: {_near_special(repeated)}",
        Excluded("the model wrote U+FFFD", "the delivered text has none"),
        Excluded(
            "the app changed characters on purpose",
            (
                "a decoder writes U+FFFD for half a character: the bytes of a character were"
                " decoded in two chunks"
            ),
        ),
    )


def _is_with_gaps(parts: Sequence[str], original: str) -> bool:
    """Return whether `original` is `parts` with a few non-ASCII characters in between."""
    if not original.startswith(parts[0]):
        return False
    at = len(parts[0])
    for place, part in enumerate(parts[1:], 2):
        ends = (at + gap + len(part) for gap in range(1, _GAP + 1))
        fits = (end for end in ends if place < len(parts) or end == len(original))
        end = next((end for end in fits if original.startswith(part, end - len(part))), None)
        if end is None or any(each.isascii() for each in original[at : end - len(part)]):
            return False
        at = end
    return True


def _dropped_characters(text: _Text, repeated: str) -> TextChange | None:
    """Detect missing non-ASCII characters, as after chunk-by-chunk decoding that ignores errors.

    A decoder loses single characters, and an edit mostly more than one in a row. Which ones a read
    cut, the tape shows; the application may have read in other chunks than the recorder.
    """
    original, at, lost = text.whole, 0, []
    for place, character in enumerate(original):
        if at < len(repeated) and repeated[at] == character:
            at += 1
        elif character.isascii():
            return None
        else:
            lost.append(place)
    if at < len(repeated) or not lost:
        return None
    missing = {original[place] for place in lost}
    kept = missing & set(repeated)
    clause = (
        "without the characters"
        f" {', '.join(map(_quoted, dict.fromkeys(original[place] for place in lost[:8])))},"
        f" near {_excerpt_around(original, lost[0])}"
    )
    if all(_piece_at(text, place) in text.torn for place in lost):
        return _encoding(
            clause,
            Excluded(
                "the app filters characters",
                "a chunk boundary splits the bytes of exactly these characters"
                + (", and the same characters are kept elsewhere" if kept else ""),
            ),
        )
    if not kept or any(other - one == 1 for one, other in pairwise(lost)):
        return None
    if len(lost) == 1:
        return _encoding(clause, confidence=Confidence.POSSIBLE)
    excluded = (
        Excluded("the app filters characters", f"{_quoted(min(kept))} is kept elsewhere"),
        Excluded("somebody edited the text", f"{len(lost)} single characters are missing"),
    )
    return _encoding(clause, *excluded, confidence=Confidence.LIKELY)


def _piece_at(text: _Text, place: int) -> int:
    return bisect_right(text.ends, place)


def _encoding(
    clause: str, *excluded: Excluded, confidence: Confidence = Confidence.PROVEN
) -> TextChange:
    return TextChange(
        damage=TextDamage.ENCODING,
        clause=clause,
        where="all",
        confidence=confidence,
        excluded=excluded,
    )


def _near_special(text: str) -> str:
    place = next(at for at, each in enumerate(text) if not each.isascii())
    return _excerpt_around(text, place)


def _excerpt_around(text: str, place: int) -> str:
    return _quoted(text[max(0, place - 12) : place + 12])


# -- too much --------------------------------------------------------------------------------------


def _doubled(text: _Text, repeated: str) -> TextChange | None:
    """Detect doubled text: all of it, each fragment, or all so far at each fragment."""
    original, pieces = text.whole, text.pieces
    half = len(repeated) - len(original)
    around = half >= len(original) and repeated.startswith(original) and repeated.endswith(original)
    if around and not repeated[len(original) : half].strip():
        return _doubled_text("twice", "the provider delivered it once")
    if len(pieces) > 1 and repeated == "".join(piece * 2 for piece in pieces).strip():
        return _doubled_text(
            f"with each of its {len(pieces)} fragments duplicated",
            ("the provider delivered each one once"),
        )
    long = len(pieces) > 1 and len(repeated) == sum(text.ends)
    if long and repeated == "".join(original[:end] for end in text.ends):
        return _doubled_text(
            (
                f"as a series of snapshots: for each of its {len(pieces)} fragments, all text"
                " up to it was appended"
            ),
            "the provider delivered each fragment once",
        )
    return None


def _doubled_text(clause: str, because: str) -> TextChange:
    return TextChange(
        damage=TextDamage.DOUBLED,
        clause=clause,
        where="all",
        confidence=Confidence.PROVEN,
        excluded=(
            Excluded("the model wrote it twice", because),
            Excluded(
                "the app added text around it on purpose",
                "the message is exactly the delivered fragments, repeated",
            ),
        ),
    )


def repeated_message(copies: int) -> TextChange:
    """Describe a text that is complete, and appears in several messages in a row."""
    return TextChange(
        damage=TextDamage.DOUBLED,
        clause=f"{copies} times, each in a separate message",
        where="all",
        confidence=Confidence.LIKELY,
        excluded=(Excluded("the model wrote it twice", "the provider delivered it once"),),
    )


def _one_more(text: _Text, repeated: str) -> TextChange | None:
    """Detect fragments in a row, most often one, that appear twice."""
    original, more = text.whole, len(repeated) - len(text.whole)
    if more <= 0:
        return None
    front, back = _in_common(original, repeated)
    starts = {start: place for place, start in enumerate(text.starts)}
    for place, end in enumerate(text.ends):
        if end > front:
            return None
        first = starts.get(end - more)
        if (
            first is None
            or len(original) - end > back
            or repeated[end : end + more] != original[end - more : end]
        ):
            continue
        double = original[end - more : end]
        if not _has_word(double) or len(double) < 2:  # noqa: PLR2004 - a letter may be a typist's
            return None
        return TextChange(
            damage=TextDamage.DOUBLED,
            clause=f"with {text.nth(first, place)} duplicated: {_excerpt_around(repeated, end)}",
            where=f"{first}",
            confidence=Confidence.PROVEN
            if _splits_word(original[: end - more], double) or _splits_word(double, original[end:])
            else Confidence.LIKELY,
            excluded=(
                Excluded("the model wrote it twice", "the provider delivered it once"),
                Excluded(
                    "somebody edited the text",
                    "the duplicated text begins and ends exactly where delivered fragments do",
                ),
            ),
        )
    return None


# -- too little ------------------------------------------------------------------------------------


def _one_end(text: _Text, repeated: str, repetition: str) -> TextChange | None:
    """Detect missing fragments at the start or the end, or all but one."""
    original = text.whole
    if len(repeated) >= len(original):
        return None
    if original.endswith(repeated):
        start = len(original) - len(repeated)
        first = _end_within(text, len(original[:start].rstrip()), start)
        if first is not None:
            return _first_lost(text, repetition, first)
    if original.startswith(repeated):
        after = original[len(repeated) :]
        last = _end_within(text, len(repeated), len(original) - len(after.lstrip()))
        return None if last is None else _last_lost(text, repeated, last + 1)
    return None


def _end_within(text: _Text, first: int, last: int) -> int | None:
    """Return the first fragment that ends between `first` and `last`."""
    place = bisect_left(text.ends, first)
    return place if text.ends[place] <= last else None


def _first_lost(text: _Text, repetition: str, last: int) -> TextChange | None:
    """Describe the loss of the fragments up to `last`."""
    end = text.ends[last]
    lost, left = text.whole[:end], text.whole[end:]
    if not _has_word(lost) or _MARKUP.search(lost):
        return None
    excluded = [
        Excluded(
            "the app cut off the beginning on purpose",
            (
                f"the text now begins inside a word, exactly where {_count(last + 1)} of the"
                " delivered text ends"
            ),
        )
    ]
    if _splits_word(lost, left):
        confidence = Confidence.PROVEN if last == 0 else Confidence.LIKELY
    elif last or len(text.pieces) < _FEW:
        return None
    elif (
        left[0] in _CLOSING
        or repetition[0].isspace()
        or (left.strip()[0].islower() and _rises(lost))
    ):
        how = (
            f"the text now begins with {_quoted(repetition[0])}"
            if left[0] in _CLOSING or repetition[0].isspace()
            else "the text now begins in the middle of a sentence"
        )
        confidence = Confidence.LIKELY
        excluded = [
            Excluded(
                "the app cut off the beginning on purpose",
                f"{how}, exactly where the first delivered fragment ends",
            )
        ]
    else:
        confidence, excluded = Confidence.POSSIBLE, []
    clause = "its first fragment" if last == 0 else f"its first {last + 1} fragments"
    return TextChange(
        damage=TextDamage.LOST,
        clause=f"without {clause}, {_quoted(lost)}: it begins with {_quoted(repetition[:24])}",
        where="first",
        lost=lost,
        confidence=confidence,
        excluded=tuple(excluded),
    )


def _rises(lost: str) -> bool:
    """Return whether a sentence begins in `lost` without ending there."""
    bare = lost.strip()
    return bare[0].isupper() and bare[-1] not in _ENDS


def _last_lost(text: _Text, repeated: str, first: int) -> TextChange | None:
    """Describe the loss of the fragments from `first` on."""
    start = text.starts[first]
    left, lost = text.whole[:start], text.whole[start:]
    alone = first == len(text.pieces) - 1
    if not _has_word(lost) or _MARKUP.search(lost):
        return None
    inside = _splits_word(left, lost)
    clause = "its last fragment" if alone else f"its last {len(text.pieces) - first} fragments"
    because = ""
    if inside and alone and not _is_round_number(len(repeated)):
        confidence, because = Confidence.PROVEN, "the text now ends inside a word"
    elif inside and (alone or not _is_round_number(len(repeated))):
        confidence = Confidence.POSSIBLE
    elif not alone or len(text.pieces) < _FEW or _is_round_number(len(repeated)):
        return None
    elif repeated[-1] not in _ENDS and text.whole[-1] in _ENDS:
        confidence, because = Confidence.LIKELY, "the text now ends in the middle of a sentence"
    else:
        confidence = Confidence.POSSIBLE
    excluded = Excluded(
        "the app cut the text at a maximum length, or at a stop word, on purpose",
        f"{because}, exactly where the last delivered fragment begins",
    )
    return TextChange(
        damage=TextDamage.LOST,
        clause=f"without {clause}, {_quoted(lost)}: it ends with {_quoted(left[-24:])}",
        where="last",
        lost=lost,
        confidence=confidence,
        excluded=(excluded,) if because else (),
    )


def _is_round_number(length: int) -> bool:
    return length % _ROUND == 0 or length & (length - 1) == 0


def _count(fragments: int) -> str:
    return "the first fragment" if fragments == 1 else f"fragment {fragments}"


def _one_gap(text: _Text, repeated: str) -> TextChange | None:
    """Detect missing fragments in a row in the middle, most often one."""
    original, less = text.whole, len(text.whole) - len(repeated)
    if less <= 0:
        return None
    front, back = _in_common(original, repeated)
    places = {end: place for place, end in enumerate(text.ends)}
    for first, start in enumerate(text.starts[1:], 1):
        if start > front:
            return None
        last = places.get(start + less)
        if last in (None, len(text.ends) - 1) or len(original) - start - less > back:
            continue
        lost = original[start : start + less]
        if not _has_word(lost) or _MARKUP.search(lost):
            return None
        begins = _splits_word(original[:start], lost)
        ends = _splits_word(lost, original[start + less :])
        inside = begins or ends
        if not inside and (last > first or len(text.pieces) < _FEW):
            return None
        because = (
            "the missing text begins or ends inside a word, exactly where delivered fragments do"
        )
        # What is left of both sides may be a word: somebody took a part out of another one.
        alone = last == first and not (begins and ends)
        confidence = Confidence.PROVEN if alone else Confidence.LIKELY
        return TextChange(
            damage=TextDamage.LOST,
            clause=f"without {text.nth(first, last)}: {_excerpt_around(repeated, start)}",
            where=f"{first}",
            lost=lost,
            confidence=confidence if inside else Confidence.POSSIBLE,
            excluded=(Excluded("the app removed a passage on purpose", because),) if inside else (),
        )
    return None


def _swapped(text: _Text, repeated: str) -> TextChange | None:
    """Detect two neighbouring fragments in the wrong order."""
    original, pieces, starts = text.whole, text.pieces, text.starts
    if len(repeated) != len(original):
        return None
    front, back = _in_common(original, repeated)
    for first in range(len(pieces) - 1):
        start, end = starts[first], text.ends[first + 1]
        if start > front:
            return None
        one, other = pieces[first], pieces[first + 1]
        if len(original) - end > back or repeated[start:end] != other + one:
            continue
        if not (_has_word(one) and _has_word(other)):
            return None
        return TextChange(
            damage=TextDamage.ORDER,
            clause=(
                f"with fragments {first + 1} and {first + 2} of {len(pieces)} swapped:"
                f" {_excerpt_around(repeated, start)}"
            ),
            where=f"{first}",
            confidence=Confidence.PROVEN,
            excluded=(
                Excluded(
                    "somebody edited the text",
                    "the text is the same except that two adjacent fragments are swapped",
                ),
            ),
        )
    return None


def _several_fragments(text: _Text, repeated: str) -> TextChange | None:
    """Detect fragments that are missing or doubled in several places."""
    lost: list[int] = []
    double: list[int] = []
    at = 0
    for place, piece in enumerate(text.pieces):
        if not repeated.startswith(piece, at):
            lost.append(place)
            continue
        at += len(piece)
        after = "".join(text.pieces[place + 1 : place + 2])
        if repeated.startswith(piece, at) and not after.startswith(piece):
            double.append(place)
            at += len(piece)
    words = [place for place in (*lost, *double) if _has_word(text.pieces[place])]
    if at < len(repeated) or len(words) < _FEW - 1 or (lost and double):
        return None
    if any(_MARKUP.search(text.pieces[place]) for place in words):
        return None
    inside = [place for place in words if _is_inside_word(text, place)]
    if lost in ([*range(0, len(text.pieces), 2)], [*range(1, len(text.pieces), 2)]):
        because = "every second fragment is missing"
    elif text.by_letters or (lost and (len(words) > len(text.pieces) / 2 or not inside)):
        return None
    else:
        what = "missing" if lost else "doubled"
        because = f"the {what} text begins and ends exactly where delivered fragments do"
    shown = ", ".join(_quoted(text.pieces[place]) for place in words[:3])
    many = f"{len(words)} of its {len(text.pieces)} fragments"
    clause = f"without {many} ({shown})" if lost else f"with {many} duplicated ({shown})"
    return TextChange(
        damage=TextDamage.LOST if lost else TextDamage.DOUBLED,
        clause=clause,
        where="several",
        confidence=Confidence.LIKELY if lost or not inside else Confidence.PROVEN,
        excluded=(Excluded("somebody edited the text", because),),
    )


def _is_inside_word(text: _Text, place: int) -> bool:
    around = text.pieces[place - 1 : place] if place else ()
    before, after = "".join(around), "".join(text.pieces[place + 1 : place + 2])
    piece = text.pieces[place]
    return _splits_word(before, piece) or _splits_word(piece, after)


def _in_common(one: str, other: str) -> tuple[int, int]:
    """Count the characters that are equal at the start, and at the end."""
    return _common_prefix(one, other), _common_prefix(one[::-1], other[::-1])


def _common_prefix(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


# -- white space -----------------------------------------------------------------------------------


def _trimmed(text: _Text, repeated: str) -> TextChange | None:
    """Detect words that run together because white space is missing only where fragments meet."""
    if len(repeated) >= len(text.whole):
        return None
    made = [("".join(map(trim, text.pieces)).strip(), "each fragment") for trim in _TRIMS]
    worded = "".join(each for each in text.pieces if each.strip())
    made.append((worded, "fragments of nothing else"))
    how = next((how for whole, how in made if whole == repeated), None)
    if how is None or ("\n" in text.whole and "\n" not in repeated):
        return None
    between = _RUNS_TOGETHER.findall(_MEETING.join(text.pieces))
    # Chinese has no spaces, and some take out those around a Latin word.
    meetings = sum(all(each.lower() != each.upper() for each in both) for both in between)
    joined = min(meetings, len(text.whole.split()) - len(repeated.split()))
    kept = len(repeated.split()) > 1
    if joined < (_FEW - 1 if kept else _RUN_TOGETHER):
        return None
    words = f"{joined + 1} words run together where fragments meet"
    because = f"{words}; white space within fragments is kept" if kept else words
    return TextChange(
        damage=TextDamage.TRIMMED,
        clause=f"with the white space of {how} stripped: {_quoted(repeated[:40])}",
        where="all",
        confidence=Confidence.PROVEN if kept and joined >= _FEW else Confidence.LIKELY,
        excluded=(Excluded("the app removes white space on purpose", because),),
    )
