"""Make exchanges from files that are not tapes: a raw body, pasted text, a HAR, a folder.

Pure: bytes in, an `Exchange` out. An importer is one file and one line in `IMPORTERS`. An imported
exchange has no times, no reads and no ending, and claims nothing about them.
"""

from deltatape.errors import UsageError
from deltatape.importers import corpus, har, pasted, raw
from deltatape.importers._base import Importer, ImportSource
from deltatape.model.exchange import Exchange

IMPORTERS: tuple[Importer, ...] = (
    corpus.CorpusImporter(),
    har.HarImporter(),
    pasted.PastedImporter(),
    raw.RawImporter(),
)
"""In the order in which they are tried."""


def import_exchange(material: ImportSource) -> Exchange:
    """Return the exchange that `material` describes; its notes list what was inferred or repaired.

    Raises:
        UsageError: no importer accepts the material, or its request or response is malformed.
    """
    for importer in IMPORTERS:
        if importer.claims(material):
            return importer.read(material)
    names = ", ".join(sorted(material.files)) or "nothing"
    raise UsageError(f"{material.name}: contains {names}; name a file, or a folder with body.raw")
