import pkgutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltatape import importers
from deltatape.errors import UsageError
from deltatape.importers import IMPORTERS, import_exchange
from deltatape.importers.parts import ImportSource
from deltatape.model.exchange import Source

NO_IMPORTERS = {"parts", "taping"}


def test_every_importer_is_listed() -> None:
    files = {module.name for module in pkgutil.iter_modules(importers.__path__)}
    assert files - NO_IMPORTERS == {
        type(importer).__module__.rpartition(".")[2] for importer in IMPORTERS
    }
    assert len({importer.name for importer in IMPORTERS}) == len(IMPORTERS)


def test_a_folder_without_a_body_is_refused() -> None:
    material = ImportSource(name="folder", files={"b.txt": b"", "a.txt": b""})
    with pytest.raises(
        UsageError, match=r"folder: contains a.txt, b.txt; name a file, or a folder with"
    ):
        import_exchange(material)
    with pytest.raises(UsageError, match="empty: contains nothing"):
        import_exchange(ImportSource(name="empty", files={}))


@given(
    st.binary(max_size=80)
    | st.text("data:event id{}\"'[]\\\n\r <>|*12:T-HTP/.b\x1b\ufeff", max_size=80).map(str.encode)
)
def test_any_file_gives_an_exchange_that_claims_no_time_and_no_ending(body: bytes) -> None:
    exchange = import_exchange(ImportSource(name="x", files={"x": body}))
    assert (exchange.source, exchange.timed, exchange.cut) == (Source.IMPORT, False, False)
    assert exchange.end is None
