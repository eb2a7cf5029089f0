"""How well suspects explain the applications in tests/clients/apps, written without a look at them.

Each made something of streams (`helpers.suspect_apps`); here is who is suspected of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import median

from deltatape.diagnose.rebuild import analyse
from deltatape.model.exchange import Source
from deltatape.model.suspect import Symptom
from deltatape.suspects import delivered, suspects_of
from helpers.suspect_apps import Outcome, streams, written

_LIMIT = 50
_ON_TOOL_CALLS = "finish-only-on-tool-calls"
MISTAKES: Mapping[str, tuple[str, ...]] = {
    "01": ("single-current-call", _ON_TOOL_CALLS),
    "02": ("each-event-is-a-call",),
    "03": (_ON_TOOL_CALLS,),
    "04": ("name-concatenated",),
    "05": ("id-concatenated",),
    "06": ("keyed-by-id",),
    "07": ("first-entry-only",),
    "08": ("finish-before-deltas",),
    "09": ("drops-without-id-or-name",),
    "10": ("first-arguments-dropped",),
    "11": ("fragment-parsed-alone",),
    "12": ("any-finish-ends",),
    "13": ("split-on-network-read",),
    "14": ("split-on-network-read",),
    "15": ("decode-per-read",),
    "16": ("arguments-at-item-added",),
    "17": ("deltas-keyed-by-call-id",),
    "18": ("final-output-only",),
    "19": ("start-input-used",),
    "20": ("current-block-only",),
    "21": ("fragment-parsed-alone",),
    "22": ("flush-before-closing-tag",),
    "23": ("tag-within-one-piece",),
    "24": ("index-as-arguments",),
    "25": ("last-finish-wins", _ON_TOOL_CALLS),
    "26": ("choices-unguarded",),
    "27": ("fires-when-arguments-parse",),
    "28": ("swallows-bad-json",),
    "29": ("index-ignored",),
    "30": ("single-current-call", "waits-for-finish", _ON_TOOL_CALLS),
}
"""By the number of an application, the presets that name one of its mistakes."""

_HEAD = """\
# Suspects found

Small applications in JavaScript, each with a known bug, were written from descriptions alone
(tests/clients/apps). For each stream that an application reads differently from a correct client,
`deltatape why` was asked for the cause. Its suspect comes first, or after others that do exactly
the same with this stream, or is missing; the last column counts the suspects that fit exactly. It
is missing where the stream itself is defective and nobody is accused, or where another bug
explains all that can be seen.

Written by `scripts/suspects-found`, which the tests check.

| application | streams | first | behind others | missing | nobody accused | suspects, median |
|---|---|---|---|---|---|---|
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Who is suspected of what an application made of a stream."""

    outcome: Outcome
    exact: tuple[str, ...]
    """The names of those that do exactly the same, best first."""

    @property
    def place(self) -> int | None:
        """Where the first preset stands that names its mistake; None if nowhere."""
        wanted = MISTAKES.get(self.outcome.app[:2], ())
        return next((at for at, name in enumerate(self.exact) if name in wanted), None)


def found() -> tuple[Found, ...]:
    """Of every outcome that is written, who is suspected."""
    return tuple(_found(outcome) for outcome in written())


def _found(outcome: Outcome) -> Found:
    exchange = replace(streams()[outcome.stream], source=Source.GATEWAY)
    analysis = analyse(exchange)
    stream = delivered(exchange, analysis.stream, analysis.reply, analysis.request)
    made = outcome.made
    symptom = Symptom(calls=None if made.errors else made.calls, errors=made.errors)
    suspects = suspects_of(stream, symptom, _LIMIT)
    return Found(outcome=outcome, exact=tuple(one.name for one in suspects if one.exact))


def page(results: tuple[Found, ...]) -> str:
    """docs/suspects-found.md."""
    apps = dict.fromkeys(one.outcome.app for one in results)
    rows = [_row(app, [one for one in results if one.outcome.app == app]) for app in apps]
    return "".join([_HEAD, *rows, _row("all", list(results))])


def _row(title: str, results: list[Found]) -> str:
    first = sum(one.place == 0 for one in results)
    nobody = sum(not one.exact for one in results)
    missing = sum(one.place is None for one in results) - nobody
    behind = len(results) - first - missing - nobody
    size = median(len(one.exact) for one in results)
    return f"| {title} | {len(results)} | {first} | {behind} | {missing} | {nobody} | {size:g} |\n"
