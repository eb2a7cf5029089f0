"""Make exchanges from files that are not tapes: a raw body, pasted text, a HAR, a folder.

Pure: bytes in, an `Exchange` out. An importer is one file and one line in `IMPORTERS`. An imported
exchange has no times, no reads and no ending, and claims nothing about them.
"""

from deltatape.errors import UsageError
from deltatape.importers import har, pasted, raw
from deltatape.importers.parts import Importer, ImportSource
from deltatape.model.exchange import Exchange

IMPORTERS: tuple[Importer, ...] = (
    raw.FolderImporter(),
    har.HarImporter(),
    pasted.PastedImporter(),
    raw.RawImporter(),
)
"""In the order in which they are tried."""


def import_exchange(source: ImportSource) -> Exchange:
    """Return the exchange that `source` describes; its notes list what was inferred or repaired.

    Raises:
        UsageError: no importer accepts it, or its request or response is malformed.
    """
    for importer in IMPORTERS:
        if importer.claims(source):
            return importer.read(source)
    names = ", ".join(sorted(source.files)) or "nothing"
    raise UsageError(f"{source.name}: contains {names}; name a file, or a folder with body.raw")
