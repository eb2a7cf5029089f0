"""The credentials that this process has seen, and the search for them in bytes.

Strategy: every spelling of every credential is one exact byte string. A few of them, usually one
key, are searched one by one, and several in large reads, which C passes over quickly. Many are
found by the aligned four-byte words of the data: the first seven bytes of any spelling (at least
eight bytes) cover such a word at every alignment, so that one pass in C over a quarter of the
positions decides for any number of spellings. A sorted list of the spellings then shows which one
is there, and whether the data ends within one.

Invariants: no occurrence is missed, overlapping ones included; the cost per read does not grow
with the number of credentials; what is remembered is bounded.
"""

import re
import struct
from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from json.encoder import encode_basestring, encode_basestring_ascii

from deltatape.model.exchange import MaskedSpan

LEAST = 8
"""Shorter credentials, in bytes, are not searched for: they look like ordinary words."""
LONGEST = 8 << 10
"""The longest credential to search for, in bytes; spellings are at most seven times as long."""
MOST = 4096
"""How many credentials of heads are kept; the least recently seen ones are dropped first."""
_MOST_BYTES = 16 << 20
"""The same limit, in bytes of spellings."""
_FEW = 8
"""Up to this number, spellings are searched faster one by one, in reads of some 100 bytes."""
_SEVERAL = 64
"""The same limit in reads of at least `_LARGE` bytes: words cost ten times as much as a search."""
_LARGE = 4 << 10
_WORD = 4
_PREFIX = 2 * _WORD - 1
"""Long enough to contain an aligned word at any offset."""
_MANY = 64
"""How many elements of a list are searched in the time in which one of them is moved about."""


class SeenCredentials:
    """The credentials that have been seen, and the search for them.

    Args:
        digest: the hash by which a credential is told from others.

    Attributes:
        version: changes when another credential is searched for, or one no longer is.
    """

    __slots__ = (
        "_alphabet",
        "_bytes",
        "_digest",
        "_few",
        "_firsts",
        "_hashes",
        "_kept",
        "_longest",
        "_prefixes",
        "_seen",
        "_several",
        "_sorted",
        "_uses",
        "_words",
        "version",
    )

    def __init__(self, digest: Callable[[bytes], str]) -> None:
        self._digest = digest
        self._kept: set[bytes] = set()
        self._seen: dict[bytes, tuple[bytes, ...]] = {}  # the least recently seen first
        self._bytes = 0  # of the spellings of what is seen
        self._uses: Counter[bytes] = Counter()  # how many credentials have a spelling
        self._hashes: dict[bytes, str] = {}  # by spelling
        self._sorted: list[bytes] = []
        self._prefixes: Counter[bytes] = Counter()  # how many spellings begin so
        self._words: Counter[int] = Counter()  # how many prefixes cover one
        self._few: tuple[bytes, ...] | None = ()  # None: there are more
        self._several: tuple[bytes, ...] | None = ()
        # These only grow: too much in them costs time, never an occurrence.
        self._alphabet = b""
        self._firsts = b""
        self._longest = 0
        self.version = 0

    def learn(self, credential: bytes) -> None:
        """Look for `credential` from now on, for good; ignored if too short."""
        if _is_looked_for(credential) and credential not in self._kept:
            self._kept.add(credential)
            self._add(((credential, spellings(credential)),))

    def see(self, credentials: Iterable[bytes]) -> None:
        """Look for `credentials` from now on, for each until `MOST` others were seen after it.

        Linear in their length. Long ones are searched in fewer spellings.
        """
        new: list[tuple[bytes, tuple[bytes, ...]]] = []
        for credential in credentials:
            if not _is_looked_for(credential) or credential in self._kept:
                continue
            spelled = self._seen.pop(credential, ())
            if not spelled:
                spelled = fewer_spellings(credential)
                new.append((credential, spelled))
                self._bytes += sum(map(len, spelled))
            self._seen[credential] = spelled
        if new:
            self._add(new)
            self._forget()

    def _add(self, new: Iterable[tuple[bytes, tuple[bytes, ...]]]) -> None:
        fresh: list[bytes] = []
        for credential, forms in new:
            digest = self._digest(credential)
            for form in forms:
                self._uses[form] += 1
                if self._uses[form] == 1:
                    self._hashes[form] = digest
                    fresh.append(form)
        if fresh:
            self._index(fresh)

    def _index(self, fresh: Sequence[bytes]) -> None:
        _insert(self._sorted, fresh)
        for form in fresh:
            prefix = form[:_PREFIX]
            self._prefixes[prefix] += 1
            if self._prefixes[prefix] == 1:
                self._words.update(_words(prefix))
                self._firsts = _united(self._firsts, form[:1])
            self._alphabet = _united(self._alphabet, form[:-1])
        self._longest = max(self._longest, *map(len, fresh))
        self._count()

    def _forget(self) -> None:
        """Forget the credentials seen longest ago, if there are too many."""
        dead: list[bytes] = []
        while len(self._seen) > MOST or self._bytes > _MOST_BYTES:
            for form in self._seen.pop(next(iter(self._seen))):
                self._bytes -= len(form)
                self._uses[form] -= 1
                if not self._uses[form]:
                    del self._uses[form], self._hashes[form]
                    dead.append(form)
        if dead:
            self._drop(dead)

    def _drop(self, dead: Sequence[bytes]) -> None:
        _remove(self._sorted, dead)
        for form in dead:
            prefix = form[:_PREFIX]
            self._prefixes[prefix] -= 1
            if not self._prefixes[prefix]:
                del self._prefixes[prefix]
                for word in _words(prefix):
                    self._words[word] -= 1
                    if not self._words[word]:
                        del self._words[word]
        self._count()

    def _count(self) -> None:
        self.version += 1
        self._several = tuple(self._sorted) if len(self._sorted) <= _SEVERAL else None
        self._few = self._several if len(self._sorted) <= _FEW else None

    def clean(self, data: bytes) -> bool:
        """Check that `data` contains no credential and no beginning of one at its end.

        Hot path: called once per read. False may be wrong.
        """
        if data[-1:] in self._alphabet:
            return False
        forms = self._few if len(data) < _LARGE else self._several
        if forms is None:
            return self._words.keys().isdisjoint(_aligned(data))
        for form in forms:  # noqa: SIM110 - a generator costs more than the search
            if form in data:
                return False
        return True

    def find(self, data: bytes) -> tuple[MaskedSpan, ...]:
        """Return where credentials are in `data`: ascending, overlapping ones joined."""
        forms = self._few if len(data) < _LARGE else self._several
        if forms is None:
            return merged(self._at_words(data))
        return merged(self._one_by_one(data, forms))

    def _one_by_one(self, data: bytes, forms: Iterable[bytes]) -> Iterator[MaskedSpan]:
        for form in forms:
            start = data.find(form)
            while start >= 0:
                yield start, start + len(form), self._hashes[form]
                start = data.find(form, start + 1)

    def _at_words(self, data: bytes) -> Iterator[MaskedSpan]:
        words = _aligned(data)
        if self._words.keys().isdisjoint(words):
            return
        for at, word in enumerate(words):
            if word in self._words:
                for start in range(max(at * _WORD - _WORD + 1, 0), at * _WORD + 1):
                    form = self._longest_at(data, start)
                    if form:
                        yield start, start + len(form), self._hashes[form]

    def _longest_at(self, data: bytes, start: int) -> bytes:
        """Return the longest spelling at `start`; empty if there is none."""
        text = data[start : start + self._longest]
        while len(text) >= LEAST:
            # What `text` starts with sorts before it, and so does all that starts with that.
            place = bisect_right(self._sorted, text) - 1
            form = self._sorted[place] if place >= 0 else b""
            if form and text.startswith(form):
                return form
            text = text[: _common(text, form)]
        return b""

    def tail(self, data: bytes) -> tuple[int, str]:
        """Return the length of the longest end of `data` that begins a credential, and its hash.

        A complete credential counts only if it also begins another one. 0 and "" if there is no
        such end.
        """
        if data[-1:] not in self._alphabet:
            return 0, ""
        window = data[-self._longest :]
        for at in range(len(window.rstrip(self._alphabet)), len(window)):
            if window[at] in self._firsts:
                end = window[at:]
                place = bisect_right(self._sorted, end)
                form = self._sorted[place] if place < len(self._sorted) else b""
                if form.startswith(end):
                    return len(end), self._hashes[form]
        return 0, ""

    def spans(self, text: bytes) -> tuple[MaskedSpan, ...]:
        """Return the spans to mask in `text` at the end of data, truncated credentials too."""
        if self.clean(text):
            return ()
        length, digest = self.tail(text)
        cut = ((len(text) - length, len(text), digest),) if length >= LEAST else ()
        return merged((*self.find(text), *cut))


def _is_looked_for(credential: bytes) -> bool:
    # Asterisks are what a mask looks like.
    return LEAST <= len(credential) <= LONGEST and bool(credential.strip(b"*"))


def _insert(ordered: list[bytes], fresh: Sequence[bytes]) -> None:
    """Put `fresh` in their places: one by one or all at once, whichever is cheaper."""
    if len(fresh) * _MANY > len(ordered):
        ordered += fresh
        ordered.sort()
        return
    for form in fresh:
        insort(ordered, form)


def _remove(ordered: list[bytes], dead: Sequence[bytes]) -> None:
    """Take `dead` out: one by one or all at once, whichever is cheaper."""
    if len(dead) * _MANY > len(ordered):
        gone = frozenset(dead)
        ordered[:] = [form for form in ordered if form not in gone]
        return
    for form in dead:
        del ordered[bisect_left(ordered, form)]


def _united(known: bytes, more: bytes) -> bytes:
    """Return the bytes that occur in one of both; `known` itself if that is all."""
    new = more.translate(None, known)
    return known + bytes(set(new)) if new else known


def _words(prefix: bytes) -> list[int]:
    """Return words; every text with this prefix contains one of them, at any alignment."""
    return [struct.unpack_from("=I", prefix, at)[0] for at in range(_WORD)]


def _aligned(data: bytes) -> memoryview:
    """Return the words of `data`; up to three bytes at its end are left out."""
    return memoryview(data)[: len(data) // _WORD * _WORD].cast("I")


def _common(one: bytes, other: bytes) -> int:
    """Return how many bytes both begin with."""
    for at, (mine, theirs) in enumerate(zip(one, other, strict=False)):
        if mine != theirs:
            return at
    return min(len(one), len(other))


def merged(spans: Iterable[MaskedSpan]) -> tuple[MaskedSpan, ...]:
    """Return `spans` ascending and disjoint; those that overlap are one, named after the first."""
    found: list[MaskedSpan] = []
    for start, end, digest in sorted(spans, key=lambda span: (span[0], -span[1])):
        if found and start < found[-1][1]:
            first = found[-1]
            found[-1] = (first[0], max(first[1], end), first[2])
        else:
            found.append((start, end, digest))
    return tuple(found)


def blanked(data: bytes, spans: Iterable[MaskedSpan]) -> bytes:
    """Return `data` with asterisks in `spans`."""
    masked = bytearray(data)
    for start, end, _ in spans:
        masked[start:end] = b"*" * (end - start)
    return bytes(masked)


# How one credential may be spelled in bytes: as it is, in JSON strings, percent-encoded.
#
# Encoders differ in what they escape beyond what they must: PHP `/`, Go `<>&`, Gson also `=` and
# `'`, .NET also `+` and the quotes. JSON in a JSON string, such as the arguments of a tool call, is
# escaped twice. A credential of letters, digits, `-`, `.` and `_` has one spelling in all of them.
#
# Source: RFC 8259 section 7, RFC 3986 section 2, the URL standard's "application/x-www-form-
# urlencoded".

LONG = 256
"""Longer credentials, in bytes, are searched for only in the spellings of common encoders."""
GIANT = 1024
"""Even longer ones are searched for only unchanged."""
_PLAIN = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
_HEX = re.compile(r"\\u[0-9a-f]{4}")
_LOWER = "\\u{:04x}"
_UPPER = "\\u{:04X}"
_Table = tuple[tuple[str, str], ...]
_NOTHING: _Table = ()
_SLASH: _Table = (("/", "\\/"),)
_ESCAPES: tuple[_Table, ...] = (
    _NOTHING,
    _SLASH,
    *(
        tuple((char, form.format(ord(char))) for char in also)
        for also in ("<>&", "<>&='", "<>&'+`", "+/=")
        for form in (_LOWER, _UPPER)
    ),
)
"""Characters that some encoders escape in JSON strings without need."""
_SAFE = (b"~", b"/~", b"!'()*~")
"""Characters that encoders keep in URLs, besides letters, digits, `.`, `_` and `-`."""


def spellings(credential: bytes) -> tuple[bytes, ...]:
    """Every usual spelling of `credential`, itself first, each once."""
    return _spelled(credential, _ESCAPES, _SAFE)


def fewer_spellings(credential: bytes) -> tuple[bytes, ...]:
    """The same, with limits that keep the cost in proportion to the length; itself at least."""
    if len(credential) > GIANT:
        return (credential,)
    if len(credential) > LONG:
        return _spelled(credential, (_NOTHING, _SLASH), _SAFE[:1])
    return spellings(credential)


def _spelled(
    credential: bytes, escapes: Iterable[_Table], safe: Iterable[bytes]
) -> tuple[bytes, ...]:
    odd = credential.translate(None, _PLAIN)
    if not odd:
        return (credential,)
    try:
        text = credential.decode()
    except UnicodeDecodeError:
        text = credential.decode("latin-1")  # as HTTP libraries read header values
    found = dict.fromkeys((credential, text.encode()))
    for spelled in _in_json(text, escapes):
        found[spelled.encode()] = None
    found.update(dict.fromkeys(_in_urls(credential, bytes(set(odd)), safe)))
    return tuple(found)


def _in_json(text: str, escapes: Iterable[_Table]) -> Iterator[str]:
    quoted = dict.fromkeys((encode_basestring(text)[1:-1], encode_basestring_ascii(text)[1:-1]))
    quoted.update(dict.fromkeys([_upper(form) for form in quoted]))
    # Most tables change nothing that another one does not.
    for once in dict.fromkeys(_escaped(form, table) for form in quoted for table in escapes):
        yield once
        if "\\" in once:
            yield once.replace('\\"', "\\u0022")
            yield encode_basestring(once)[1:-1]
        if not once.isascii():
            yield encode_basestring_ascii(once)[1:-1]


def _upper(text: str) -> str:
    return _HEX.sub(lambda match: f"\\u{match.group()[2:].upper()}", text)


def _escaped(text: str, table: _Table) -> str:
    for char, escape in table:
        text = text.replace(char, escape)
    return text


def _in_urls(credential: bytes, odd: bytes, safe: Iterable[bytes]) -> Iterator[bytes]:
    # What is put in holds a `%`, so that one goes first.
    first = b"%" if b"%" in odd else b""
    odd = first + odd.translate(None, b"%")
    for escaped in dict.fromkeys(odd.translate(None, kept) for kept in safe):
        for form in (b"%%%02X", b"%%%02x"):
            encoded = _percent(credential, escaped.translate(None, b" "), form)
            yield encoded.replace(b" ", b"%20")
            yield encoded.replace(b" ", b"+")


def _percent(credential: bytes, escaped: bytes, form: bytes) -> bytes:
    for byte in escaped:
        credential = credential.replace(bytes((byte,)), form % byte)
    return credential
