import json
import os
from pathlib import Path

import pytest

from deltatape.errors import UsageError
from deltatape.importers import import_capture
from deltatape.importers.parts import ImportSource, sniff
from deltatape.importers.raw import FolderImporter, RawImporter
from deltatape.model.case_files import BODY, FILES
from deltatape.model.exchange import Exchange, header
from helpers.corpus import needs_corpus
from helpers.imported import only, source

ROOT = Path(__file__).parents[2]
CORPUS = Path(os.environ.get("DELTATAPE_CORPUS", ROOT.parent / "shared" / "corpus"))


def read(body: bytes, **described: bytes) -> Exchange:
    material = source(body, "x.sse", **described)
    assert RawImporter().claims(material)
    (exchange,) = RawImporter().read(material)
    return exchange


def test_the_body_is_kept_byte_for_byte() -> None:
    body = b"data: \xff\r\r\n\0junk\n"
    exchange = read(body)
    assert exchange.body == body
    assert exchange.tape == "x.sse"
    assert [note.text for note in exchange.notes] == [
        "media type text/event-stream told by the body"
    ]


def test_request_and_response_may_be_described() -> None:
    exchange = read(
        b"data: x\n\n",
        request=b'{"model": "m"}',
        response=b'{"status": 503, "headers": {"Content-Type": "text/plain"}}',
    )
    assert exchange.request.body == b'{"model": "m"}'
    assert exchange.response is not None
    assert exchange.response.status == 503
    assert header(exchange.response.headers, "content-type") == b"text/plain"
    assert exchange.notes == ()


def test_a_described_response_without_media_type_keeps_its_headers() -> None:
    exchange = read(b"data: x\n\n", response=b'{"headers": {"A": "1"}}')
    assert exchange.response is not None
    assert exchange.response.headers == ((b"A", b"1"), (b"content-type", b"text/event-stream"))


def test_folders_are_not_for_this_importer() -> None:
    assert not RawImporter().claims(ImportSource(name="x", files={"a": b"", "b": b""}))


def test_a_folder_is_an_exchange() -> None:
    files = {
        "body.raw": b"data: x\n\n",
        "request.json": b'{"url": "https://host/v1", "body": {"a": 1}}',
        "response.json": b'{"status": 201, "headers": {"content-type": "text/event-stream"}}',
        "meta.json": b"",
    }
    exchange = import_capture(ImportSource(name="case", files=files)).exchanges[0]
    assert (exchange.body, exchange.request.path) == (b"data: x\n\n", "/v1")
    assert exchange.response is not None
    assert exchange.response.status == 201


def test_only_the_body_is_needed_and_what_is_named_aside_wins() -> None:
    material = ImportSource(
        name="case",
        files={"body.raw": b"{}", "request.json": b'{"old": 1}', "response.json": b"[]"},
        request=b'{"new": 1}',
        response=b'{"status": 201}',
    )
    (exchange,) = FolderImporter().read(material)
    assert exchange.request.body == b'{"new": 1}'
    assert exchange.response is not None
    assert exchange.response.status == 201


@pytest.mark.parametrize("name", ["request.json", "response.json"])
def test_a_file_of_a_folder_that_is_damaged_is_named(name: str) -> None:
    material = ImportSource(name="case", files={"body.raw": b"{}", name: b""})
    with pytest.raises(UsageError, match=f"^case/{name}: the re"):
        FolderImporter().read(material)


def test_a_request_body_beside_its_description_is_sent_as_it_is() -> None:
    described = b'{"url": "https://host/v1", "body": "as text"}'
    files = {"body.raw": b"{}", "request.json": described, "request.raw": b"\xff\x00"}
    (exchange,) = FolderImporter().read(ImportSource(name="case", files=files))
    assert (exchange.request.path, exchange.request.body) == ("/v1", b"\xff\x00")


def cases() -> list[Path]:
    found = sorted(path.parent for path in CORPUS.glob(f"*/{BODY}"))
    if not found and os.environ.get("CI") == "true":
        raise AssertionError(f"no corpus in {CORPUS}")
    return found


def folder_source(folder: Path) -> ImportSource:
    files = {name: (folder / name).read_bytes() for name in FILES if (folder / name).exists()}
    return ImportSource(name=str(folder), files=files)


@pytest.mark.slow
@needs_corpus
def test_every_case_of_the_corpus_is_kept_byte_for_byte() -> None:
    for folder in cases():
        exchange = import_capture(folder_source(folder)).exchanges[0]
        assert exchange.body == (folder / BODY).read_bytes(), folder.name


@pytest.mark.slow
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
        exchange = only(body)
        assert exchange.body == body, folder.name
        kind = json.loads((folder / "meta.json").read_text())["kind"]
        assert sniff(body) in kinds[kind], folder.name
