"""What a format is declared to hold is equal after `import(export(tape))`, on every recording."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from deltatape.diagnose.exchange_parts import Part, held, value_of
from deltatape.diagnose.rebuild import Analysis, analyse
from deltatape.exporters import EXPORTERS, export
from deltatape.exporters.parts import Exporter
from deltatape.importers import IMPORTERS
from deltatape.importers.parts import ImportSource
from deltatape.model.exchange import Exchange
from deltatape.store.reader import open_tape

RECORDINGS = Path(__file__).parent.parent.parent / "recordings"
FOLDERS = sorted(
    {path.relative_to(RECORDINGS).parts[0] for path in RECORDINGS.rglob("*.tape")}
    - {"conformance"}  # tapes that are damaged, or say what no exchange of HTTP does
)
IMPORTED = [each for each in EXPORTERS if each.name != "curl"]
"""Of commands of curl, see test_curl.py: what they hold shows when they run."""
MENDED = {"W009/fires.tape"}
"""A body that is not coded as its head says, which imports take for one that was decoded."""


MANY, SHARES = 30, 3


def exchanges(folder: str, share: int) -> Iterator[tuple[str, Exchange]]:
    """Those of a folder's recordings; of many, of every third: another third for each format."""
    paths = sorted((RECORDINGS / folder).rglob("*.tape"))
    for path in paths[share % SHARES :: SHARES] if len(paths) > MANY else paths:
        if not str(path).endswith(tuple(MENDED)):
            for exchange in open_tape(path).exchanges():
                yield f"{path.relative_to(RECORDINGS)}#{exchange.number}", exchange


def lacks_ids(analysis: Analysis) -> bool:
    ids = [call.id for message in analysis.request.history for call in message.calls]
    ids += [call.id for choice in analysis.reply.choices for call in choice.tool_calls]
    return not all(ids)


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.parametrize("exporter", IMPORTED, ids=lambda exporter: exporter.name)
def test_what_a_format_holds_is_equal_afterwards(exporter: Exporter, folder: str) -> None:
    exported, failures = 0, []
    for place, exchange in exchanges(folder, IMPORTED.index(exporter)):
        before = analyse(exchange)
        if exporter.refuses(before) or exchange.response is None:
            continue  # a HAR has requests alone, too
        if exchange.upgraded and Part.SOCKET not in exporter.holds:
            continue
        if exporter.name == "otlp" and lacks_ids(before):
            continue  # an import of messages makes them up
        exported += 1
        files = export([before], exporter, "1").files
        source = ImportSource(name="x", files={name or "x": data for name, data in files.items()})
        (read,) = next(each for each in IMPORTERS if each.claims(source)).read(source)
        after = analyse(read)
        failures += [
            f"{place}: {part}"
            for part in held(exporter.holds)
            if value_of(part, before) != value_of(part, after)
        ]
    assert not failures
    assert exported
