import json
import os
from pathlib import Path

from deltatape.importers import import_exchange, raw
from deltatape.importers._base import ImportSource
from deltatape.importers.corpus import BODY, FILES, CorpusImporter
from helpers.corpus import needs_corpus

ROOT = Path(__file__).parents[2]
CORPUS = Path(os.environ.get("DELTATAPE_CORPUS", ROOT.parent / "shared" / "corpus"))


def cases() -> list[Path]:
    found = sorted(path.parent for path in CORPUS.glob(f"*/{BODY}"))
    if not found and os.environ.get("CI") == "true":
        raise AssertionError(f"no corpus in {CORPUS}")
    return found


def material(folder: Path) -> ImportSource:
    files = {name: (folder / name).read_bytes() for name in FILES if (folder / name).exists()}
    return ImportSource(name=str(folder), files=files)


def test_a_folder_is_an_exchange() -> None:
    files = {
        "body.raw": b"data: x\n\n",
        "request.json": b'{"url": "https://host/v1", "body": {"a": 1}}',
        "response.json": b'{"status": 201, "headers": {"content-type": "text/event-stream"}}',
        "meta.json": b"",
    }
    exchange = import_exchange(ImportSource(name="case", files=files))
    assert (exchange.body, exchange.request.path) == (b"data: x\n\n", "/v1")
    assert exchange.response is not None
    assert exchange.response.status == 201


def test_only_the_body_is_needed_and_what_is_named_aside_wins() -> None:
    material = ImportSource(
        name="case",
        files={"body.raw": b"{}", "request.json": b"old"},
        request=b"new",
    )
    assert CorpusImporter().read(material).request.body == b"new"


@needs_corpus
def test_every_case_of_the_corpus_is_kept_byte_for_byte() -> None:
    for folder in cases():
        exchange = import_exchange(material(folder))
        assert exchange.body == (folder / BODY).read_bytes(), folder.name


@needs_corpus
def test_no_stream_of_the_corpus_is_taken_for_pasted_text() -> None:
    kinds = {
        "sse": {"text/event-stream"},
        "ndjson": {"application/x-ndjson", "application/json"},  # an error is one document
        "json-array": {"application/json"},
        "eventstream": {"application/vnd.amazon.eventstream"},
    }
    for folder in cases():
        body = (folder / BODY).read_bytes()
        exchange = import_exchange(ImportSource(name="x", files={"x": body}))
        assert exchange.body == body, folder.name
        kind = json.loads((folder / "meta.json").read_text())["kind"]
        assert raw.sniff(body) in kinds[kind], folder.name
