"""The report of `why --html`: the page of `deltatape open` with the documents of one exchange."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

from deltatape import __version__
from deltatape.cli.tapes import NamedExchanges, named
from deltatape.cli.terminal import say
from deltatape.diagnose.rebuild import Analysis, analyse
from deltatape.errors import UsageError
from deltatape.exporters.copies import COPIES, copied
from deltatape.inspector.documents import LONGEST, MOST, cuts
from deltatape.model.exchange_row import ExchangeRow
from deltatape.model.explanation import Explanation
from deltatape.render.exchange_rows import row_object
from deltatape.render.explanation import explanation_lines, explanation_object
from deltatape.render.html import PageFiles, report_html
from deltatape.render.json_document import VERSION, inert_line
from deltatape.render.lines import plain
from deltatape.render.show import Surroundings
from deltatape.render.steps import steps_object
from deltatape.settings.defaults import current_rules
from deltatape.store.mask_key import mask_key
from deltatape.store.rewrite import draft
from deltatape.store.shards import ShardedTape
from deltatape.tape.mask import Masker
from deltatape.why.stepping import stepping


def report(found: NamedExchanges, explanation: Explanation) -> str:
    """Return the report as HTML.

    Args:
        found: what the exchange was explained by.
        explanation: the explanation of the exchange.
    """
    name = f"{explanation.tape or found.name}#{explanation.exchange}"
    documents = dict(_documents(found, explanation))
    text = plain(explanation_lines(explanation))
    title = f"{name}: {explanation.verdict.shown}"
    return report_html(_page(), title, documents, plain=text)


def _page() -> PageFiles:
    folder = files("deltatape.inspector") / "static"
    return PageFiles(
        script=(folder / "app.js").read_text(encoding="utf-8"),
        style=(folder / "style.css").read_text(encoding="utf-8"),
    )


def _documents(found: NamedExchanges, explanation: Explanation) -> Iterator[tuple[str, str]]:
    """Yield the documents that the page asks for, each as JSON; `Embedded` in web/src/source.ts."""
    number, alone = explanation.exchange, found.lacks_shards
    own = next(each for each in found.exchanges if each.number == number)
    exchanges = (own,) if alone else found.exchanges
    rules, logs = current_rules(), found.beside().logs
    steps = stepping(explanation, exchanges, rules)
    around = Surroundings(exchanges, {number, steps.stream}, rules, logs, alone=alone)

    def shown(exchange: int) -> str:
        return _small({"version": VERSION, **around.shown(exchange)})

    yield "ref", inert_line({"tape": explanation.tape or found.name, "exchange": number})
    yield "exchanges", _thread(around.rows, number)
    yield "why", _small({"version": VERSION, **explanation_object(explanation)})
    yield "show", shown(number)
    yield "stream", shown(steps.stream) if steps.stream != number else "null"
    yield "steps", _small({"version": VERSION, **steps_object(steps)})
    yield "copies", inert_line(dict(_copies(found, analyse(own, rules.app))))


def _thread(rows: Mapping[int, ExchangeRow], number: int) -> str:
    """Return the rows of the conversation that an exchange belongs to."""
    own = [row for _, row in sorted(rows.items()) if row.thread == rows[number].thread]
    return _small({"version": VERSION, "exchanges": [row_object(row) for row in own]})


def _copies(found: NamedExchanges, analysis: Analysis) -> Iterator[tuple[str, str]]:
    for kind in COPIES:
        try:
            yield kind, copied(kind, analysis, found.name, __version__)
        except UsageError as problem:
            yield kind, str(problem)


_MAX_CHARACTERS = 3_000_000
"""The limit of a document in characters: the file must hold all of it and still open at once."""
_FITS = ((LONGEST, MOST), (16_384, 2_000), (2_048, 1_000), (256, 500))
"""The longest text and the longest list, as long as a document is longer than that."""


def _small(document: Mapping[str, object]) -> str:
    """Return a document without secrets, and without the rest of what is too long for a page."""
    text = ""
    for shorter in cuts(document, _FITS):
        text = json.dumps(shorter, separators=(",", ":"))
        if len(text) <= _MAX_CHARACTERS:
            break
    return text.replace("\x7f", "\\u007f")


@contextmanager
def redacted(found: NamedExchanges, number: int) -> Iterator[NamedExchanges]:
    """Yield the same exchanges as a redacted copy of their tape has them; it is deleted then.

    Raises:
        UsageError: there is no tape, or it cannot be redacted.
    """
    if found.tape is None:
        raise UsageError(f"--redact: {found.name} is no tape; make one first: deltatape import")
    if isinstance(found.tape, ShardedTape):
        raise UsageError(f"--redact: {found.name} is in shards; join them first: deltatape splice")
    with TemporaryDirectory(prefix="deltatape-") as folder:
        copy = draft(found.tape, Path(folder), Masker(mask_key(os.environ, say)), content=False)
        place = copy.path.rename(Path(folder, "redacted.tape"))
        same = named(f"{place}#{number}", full=found.context is None)
        exchanges = tuple(replace(each, tape=found.name) for each in same.exchanges)
        yield replace(same, name=found.name, exchanges=exchanges)
