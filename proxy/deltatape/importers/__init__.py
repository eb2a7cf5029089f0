"""Exchanges from things that are not tapes: a raw body, pasted text, a HAR, a folder.

Pure: bytes in, an `Exchange` out. An importer is one file and one line in `IMPORTERS`. An import
has no times, no reads and no ending: what it says about those is nothing.
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
"""In the order in which they are asked."""


def import_exchange(material: ImportSource) -> Exchange:
    """The exchange that `material` tells of; `notes` say what was inferred or mended.

    Raises:
        UsageError: nothing here reads such material, or its request or response is malformed.
    """
    for importer in IMPORTERS:
        if importer.claims(material):
            return importer.read(material)
    names = ", ".join(sorted(material.files)) or "nothing"
    raise UsageError(
        f"{material.name}: holds {names}; a file, or a folder with body.raw, is accepted"
    )
