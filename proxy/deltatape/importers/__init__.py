"""Make exchanges from files that are not tapes: captures of other programs, bodies, pasted text.

Pure: bytes in, exchanges out. An importer is one file and one line in `IMPORTERS`. Imported
exchanges have no reads of the wire and no ending, and claim nothing about them. What is not traffic
of an LLM is left out, and a file without any is refused.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from deltatape.errors import UsageError
from deltatape.importers import (
    aimock,
    cassette,
    curl_trace,
    event_lines,
    event_rows,
    har,
    langfuse,
    litellm_log,
    mitmproxy_flows,
    otel_spans,
    pasted,
    raw,
)
from deltatape.importers.parts import Importer, ImportSource
from deltatape.importers.traffic import describe, is_answer, is_traffic, kind_of
from deltatape.model.app_names import CONTRACT, AppNames
from deltatape.model.case_files import BODY
from deltatape.model.exchange import Exchange, Note
from deltatape.printable import count, escape

IMPORTERS: tuple[Importer, ...] = (
    raw.FolderImporter(),
    har.HarImporter(),
    cassette.CassetteImporter(),
    mitmproxy_flows.FlowsImporter(),
    litellm_log.LiteLlmImporter(),
    otel_spans.SpansImporter(),
    langfuse.LangfuseImporter(),
    aimock.AimockImporter(),
    curl_trace.CurlTraceImporter(),
    event_rows.EventRowsImporter(),
    event_lines.EventLinesImporter(),
    pasted.PastedImporter(),
    raw.RawImporter(),
)
"""In the order in which they are tried."""

ACCEPTED = "accepted are " + "; ".join(each.accepts for each in IMPORTERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """What a file was read as, and the exchanges in it, numbered in their order."""

    kind: str
    exchanges: tuple[Exchange, ...]


def import_capture(source: ImportSource, app: AppNames = CONTRACT) -> Capture:
    """Return the exchanges that `source` describes; their notes list what was inferred or repaired.

    Args:
        source: a file or a folder.
        app: what an application calls the events of its own endpoint.

    Raises:
        UsageError: no importer accepts it, it is damaged, or it has no traffic of an LLM.
    """
    importer = next((each for each in IMPORTERS if each.claims(source)), None)
    if importer is None:
        names = ", ".join(sorted(source.files)) or "nothing"
        raise UsageError(f"{source.name}: contains {names}; {ACCEPTED}")
    if importer.is_body:
        (exchange,) = importer.read(source)
        _refuse_strange(source, exchange, app)
        return Capture(kind=importer.name, exchanges=(exchange,))
    if source.request is not None or source.response is not None:
        raise UsageError(
            f"{source.name}: is read as {importer.name}, which has requests and responses;"
            " --request and --response describe a body"
        )
    return Capture(kind=importer.name, exchanges=_traffic(source, importer, app))


def _refuse_strange(source: ImportSource, exchange: Exchange, app: AppNames) -> None:
    """Refuse what is no answer of an LLM; an empty body may be one that somebody describes."""
    described = source.request is not None or source.response is not None
    if is_answer(exchange, app) or (not exchange.body and (described or BODY in source.files)):
        return
    raise UsageError(
        f"{source.name}: is no answer of an LLM, but {describe(exchange.body)}; {ACCEPTED}"
    )


def _traffic(source: ImportSource, importer: Importer, app: AppNames) -> tuple[Exchange, ...]:
    """Return what is traffic of an LLM, numbered anew; a note counts the rest.

    Raises:
        UsageError: nothing is.
    """
    read = importer.read(source)
    kept: list[Exchange] = []
    left: Counter[str] = Counter()
    for each in read:
        if is_traffic(each, app):
            kept.append(each)
        else:
            left[kind_of(each)] += 1
    rest = ", ".join(f"{number} {escape(kind)}" for kind, number in left.most_common())
    if not kept:
        seen = f"{count(len(read), 'exchange')} ({rest})" if read else "no exchange"
        raise UsageError(
            f"{source.name}: is read as {importer.name}, and has {seen}, none of them with an LLM;"
            f" {ACCEPTED}"
        )
    if all(each.response is None for each in kept):
        raise UsageError(
            f"{source.name}: is read as {importer.name}, and has"
            f" {count(len(kept), 'exchange')} with an LLM, but no response: {_last_note(kept)}"
        )
    first = kept[0]
    if left:
        note = Note(t_ns=0, text=f"left out what is no traffic of an LLM: {rest}")
        kept[0] = replace(first, notes=(*first.notes, note))
    return tuple(replace(each, number=number) for number, each in enumerate(kept, 1))


def _last_note(exchanges: Sequence[Exchange]) -> str:
    return next((note.text for each in exchanges for note in each.notes[::-1]), "none was recorded")
