"""Which recorded exchange answers a request: a ladder from exact to canonical, never a guess.

1. the same bytes, 2. the same JSON (key order and spacing aside), 3. the same JSON without the
fields that the user calls volatile; else a miss, told with the nearest recorded request. Equal
requests play in the order in which they were recorded. Headers do not take part: they carry
credentials, versions and dates.
"""

import enum
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from deltatape.errors import UsageError
from deltatape.match.difference import Difference, compare
from deltatape.model.exchange import Exchange
from deltatape.tape.mask import is_credential_parameter


class Rung(enum.IntEnum):
    """How a request was matched; the lowest is the best."""

    EXACT = 0
    CANONICAL = 1
    WITHOUT_VOLATILE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """A request that wants an answer."""

    method: str
    target: bytes
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """The recorded exchange that answers; `position` is its place in the list."""

    position: int
    rung: Rung


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """Nothing answers.

    `nearest` is the position of the most similar recorded request (None: nothing is recorded),
    `problem` says in one sentence why it does not answer, `differences` which JSON paths differ.
    """

    nearest: int | None
    problem: str
    differences: tuple[Difference, ...]


class Ladder:
    """The recorded requests of one or more tapes, ready to be matched."""

    def __init__(self, exchanges: Iterable[Exchange], volatile: Sequence[str] = ()) -> None:
        """Args: volatile: JSON paths that are left out on the third rung; see `parse_path`."""
        self._volatile = tuple(parse_path(path) for path in volatile)
        requests = tuple(exchange.request for exchange in exchanges)
        self._recorded = tuple(
            Asking(method=request.method, target=request.target_bytes, body=request.body)
            for request in requests
        )
        self._bases = tuple(urlsplit(request.upstream).path.encode() for request in requests)
        self._keys = tuple(self._key(asking) for asking in self._recorded)

    def match(self, asking: Asking, spent: frozenset[int]) -> Match | Miss:
        """The best recorded exchange that is not in `spent`, the first of equals."""
        key = self._key(asking)
        best: Match | None = None
        for position, recorded in enumerate(self._recorded):
            if position in spent or not _same_place(asking, recorded, self._bases[position]):
                continue
            rung = key.rung(self._keys[position])
            if rung is not None and (best is None or rung < best.rung):
                best = Match(position=position, rung=rung)
        return best or self._miss(asking, key, spent)

    def _key(self, asking: Asking) -> "_Key":
        value, canonical = _parse(asking.body)
        reduced = canonical
        if canonical is not None and self._volatile:
            rest, _ = _parse(asking.body)
            for path in self._volatile:
                _drop(rest, path)
            reduced = _dump(rest)
        return _Key(asking.body, value, canonical, reduced)

    def _miss(self, asking: Asking, key: "_Key", spent: frozenset[int]) -> Miss:
        places = [
            position
            for position, recorded in enumerate(self._recorded)
            if _same_place(asking, recorded, self._bases[position])
        ]
        if not places:
            known = sorted(
                {f"{r.method} {r.target.decode('ascii', 'replace')}" for r in self._recorded}
            )
            wanted = f"{asking.method} {asking.target.decode('ascii', 'replace')}"
            listed = ", ".join(known[:5]) or "no request at all"
            return Miss(
                nearest=0 if self._recorded else None,
                problem=f"no {wanted} is recorded; recorded: {listed}",
                differences=(),
            )
        found = [(position, self._differences(key, position)) for position in places]
        # An equal one that was played tells of a repeated request; else what is left counts.
        nearest, differences = min(
            found, key=lambda pair: (bool(pair[1]), pair[0] in spent, len(pair[1]))
        )
        if not differences and nearest in spent:
            problem = (
                "the request is recorded, but each exchange plays once and it has been played"
                " (--repeat plays it again)"
            )
        else:
            problem = "the nearest recorded request differs"
        return Miss(nearest=nearest, problem=problem, differences=differences)

    def _differences(self, key: "_Key", position: int) -> tuple[Difference, ...]:
        other = self._keys[position]
        if key.canonical is None or other.canonical is None:
            if key.body == other.body:
                return ()
            text = f"{len(other.body)} bytes, not JSON" if other.canonical is None else "JSON"
            mine = f"{len(key.body)} bytes, not JSON" if key.canonical is None else "JSON"
            return (Difference(path="(body)", recorded=text, received=mine),)
        return compare(other.value, key.value)


@dataclass(frozen=True, slots=True)
class _Key:
    """A body in the forms in which bodies are compared; canonical None: not JSON."""

    body: bytes
    value: object
    canonical: str | None
    reduced: str | None

    def rung(self, other: "_Key") -> Rung | None:
        if self.body == other.body:
            return Rung.EXACT
        if self.canonical is None or other.canonical is None:
            return None
        if self.canonical == other.canonical:
            return Rung.CANONICAL
        return Rung.WITHOUT_VOLATILE if self.reduced == other.reduced else None


def parse_path(text: str) -> tuple[str, ...]:
    """`messages.*.id`, `messages[0].id` or `$.messages[*].id` as its steps.

    Raises:
        UsageError: not such a path.
    """
    steps = tuple(text.removeprefix("$.").replace("[", ".").replace("]", "").split("."))
    if not all(steps) or steps == ("$",):
        raise UsageError(
            f"--volatile {text!r}: not a path; metadata.session, messages.*.id, messages[0].id are"
        )
    return steps


def _same_place(asking: Asking, recorded: Asking, base: bytes) -> bool:
    """Whether method and target agree.

    The tape holds the target as sent upstream, which begins with the path `base` of the upstream's
    URL; the application may ask for it bare, below a gateway's prefix, or without `base`.
    """
    if asking.method != recorded.method:
        return False
    path, _, query = asking.target.partition(b"?")
    recorded_path, _, recorded_query = recorded.target.partition(b"?")
    if _query(query) != _query(recorded_query):
        return False
    prefix, _, rest = path.removeprefix(b"/").partition(b"/")
    rest = b"/" + rest
    wanted = {path, base + path, rest, base + rest}
    if prefix == b"anthropic":  # whose SDKs disagree about /v1, as the gateway knows
        wanted.add(b"/v1" + rest)
    return recorded_path in wanted


def _query(query: bytes) -> list[tuple[str, str]]:
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    return [
        (name, "" if is_credential_parameter(name.encode()) else value) for name, value in pairs
    ]


def _parse(body: bytes) -> tuple[object, str | None]:
    """The JSON value of a body and its canonical text; the text is None where there is no value."""
    try:
        value: object = json.loads(body)
        return value, _dump(value)
    except (ValueError, RecursionError):  # json writes less deep than it reads
        return None, None


def _dump(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _drop(value: object, path: tuple[str, ...]) -> None:
    """Remove the member at a path; elements of an array are never removed, only what is in them."""
    head, rest = path[0], path[1:]
    if isinstance(value, list):
        chosen = value if head == "*" else value[int(head) :][:1] if head.isdecimal() else []
        for element in chosen:
            if rest:
                _drop(element, rest)
    elif isinstance(value, dict) and head in value:
        if rest:
            _drop(value[head], rest)
        else:
            del value[head]
