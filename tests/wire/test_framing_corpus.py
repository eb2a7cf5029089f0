import json
from collections.abc import Callable
from pathlib import Path

import pytest

from deltatape.diagnose.decode import format_of
from deltatape.model.stream import Format
from deltatape.wire.aws_eventstream import EventStreamDecoder
from deltatape.wire.framer import Decoder
from deltatape.wire.json_array import JsonArrayDecoder
from deltatape.wire.ndjson import NdjsonDecoder
from helpers.corpus import ROOT, is_present, needs_corpus
from helpers.framing import framed
from helpers.splits import cut, each_alone

pytestmark = needs_corpus

DECODERS: dict[Format, Callable[[], Decoder]] = {
    Format.NDJSON: NdjsonDecoder,
    Format.JSON_ARRAY: JsonArrayDecoder,
    Format.EVENTSTREAM: EventStreamDecoder,
}
KINDS = {
    "ndjson": Format.NDJSON,
    "json-array": Format.JSON_ARRAY,
    "eventstream": Format.EVENTSTREAM,
    "sse": Format.SSE,
}
DERIVED = "chunk"
"""Events that wrap others: an SDK counts the events that it makes of them."""


def folders() -> list[Path]:
    return sorted(ROOT.glob("*--*")) if is_present() else []


def read(folder: Path, name: str) -> dict[str, object]:
    value = json.loads((folder / name).read_text())
    assert isinstance(value, dict)
    return value


def told(folder: Path) -> Format:
    """The format that our detection tells of a case."""
    headers = read(folder, "response.json")["headers"]
    assert isinstance(headers, dict)
    media = str(headers.get("content-type") or "").partition(";")[0].strip().lower()
    return format_of((folder / "body.raw").read_bytes(), media)


@pytest.mark.parametrize("folder", folders(), ids=lambda folder: folder.name)
def test_a_captured_body_has_the_format_it_was_captured_as(folder: Path) -> None:
    expected = KINDS[str(read(folder, "meta.json")["kind"])]
    if expected is Format.NDJSON and (folder / "body.raw").read_bytes().startswith(b"{\n"):
        expected = Format.JSON  # an error: one pretty-printed document
    assert told(folder) is expected


@pytest.mark.parametrize(
    "folder",
    [folder for folder in folders() if told(folder) in DECODERS],
    ids=lambda folder: folder.name,
)
def test_a_captured_body_is_framed_as_by_the_sdk_however_it_is_cut(folder: Path) -> None:
    body = (folder / "body.raw").read_bytes()
    decoder = DECODERS[told(folder)]
    whole = framed(decoder(), [body])
    expected = read(folder, "expected.json").get("sdk_events")
    if expected is not None and not any(event.type == DERIVED for event in whole.events):
        assert len(whole.events) == expected
    assert (whole.anomalies, whole.pending) == ([], None)
    assert all(isinstance(json.loads(data), dict) for data in whole.data())
    assert framed(decoder(), each_alone(body)) == whole
    for at in range(1, len(body), max(1, len(body) // 97)):
        assert framed(decoder(), cut(body, [at])) == whole
