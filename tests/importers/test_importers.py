"""What all importers have in common, and what none of them accepts."""

import pkgutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltatape import importers
from deltatape.errors import UsageError
from deltatape.importers import ACCEPTED, IMPORTERS, import_capture
from deltatape.importers.parts import ImportSource
from deltatape.model.app_names import AppNames
from deltatape.model.exchange import Source
from helpers.chat import choice, sse
from helpers.eventstream import event
from helpers.imported import imported, only, source

NO_IMPORTERS = {"messages", "parts", "taping", "traffic"}
ANSWER = sse(choice({"content": "hi"}, "stop"))


def test_every_importer_is_listed() -> None:
    files = {module.name for module in pkgutil.iter_modules(importers.__path__)}
    assert files - NO_IMPORTERS == {
        type(importer).__module__.rpartition(".")[2] for importer in IMPORTERS
    }
    assert len({importer.name for importer in IMPORTERS}) == len(IMPORTERS)


def test_a_folder_without_a_body_is_refused() -> None:
    folder = ImportSource(name="folder", files={"b.txt": b"", "a.txt": b""})
    with pytest.raises(UsageError, match=r"folder: contains a.txt, b.txt; accepted are"):
        import_capture(folder)
    with pytest.raises(UsageError, match="empty: contains nothing"):
        import_capture(ImportSource(name="empty", files={}))


@given(
    st.binary(max_size=80)
    | st.text("data:event id{}\"'[]\\\n\r <>|*12:T-HTP/.b\x1b\ufeff", max_size=80).map(str.encode)
)
def test_any_file_is_refused_or_claims_no_time_and_no_ending(body: bytes) -> None:
    try:
        exchange = only(body)
    except UsageError:
        return
    assert (exchange.source, exchange.timed, exchange.cut) == (Source.IMPORT, False, False)
    assert exchange.end is None


@pytest.mark.parametrize(
    ("data", "seen"),
    [
        (b"", "empty"),
        (b" \n", "only white space"),
        (b"\x1f\x8b\x08", "a gzip file; unpack it first"),
        (b"PK\x03\x04...", "a ZIP archive; unpack it first"),
        (b"\x89PNG\r\n\x1a\n\0", "a PNG image"),
        (b"%PDF-1.7", "a PDF document"),
        (b"\x7fELF\x02", "a program (ELF)"),
        (b"\x01\x02\xff\xfe", "binary data that begins with 01 02 ff fe"),
        (b"text" * 20 + b"\0", "binary data that begins with 74 65 78 74"),
        (b"<!DOCTYPE html><p>502", "an HTML page"),
        (b"\xef\xbb\xbf <HTML lang=en>", "an HTML page"),
        (b"<?xml version='1.0'?><a/>", "an XML or HTML document"),
        (b'{"name": "x", "version": 1}', "JSON, an object with 'name', 'version'; "),
        (
            b'{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1}',
            "JSON, an object with 'a', 'b', 'c', 'd', 'e', ...; ",
        ),
        (b"{}", "JSON, an object with no members"),
        (b"[1, 2]", "JSON, an array"),
        (b'{"fixtures": []}', "JSON, an object with 'fixtures'"),
        (b'{"resourceSpans": []}', "JSON, an object with 'resourceSpans'"),
        (b'{"id": "t", "observations": []}', "JSON, an object with 'id', 'observations'"),
        (b'{"a": 1}\n{"b": 2}\n', "lines of JSON, the first with 'a'"),
        (b'{"id": "x", "choices": [{"mess', "JSON that is torn: it ends within a value, after 30"),
        (b'{"a": 1,\n\nb}', "text that begins like JSON, and is none from line 3 on"),
        (b"hello\nthere", "text that begins with 'hello'; "),
        (b"a b " * 99, f"text that begins with '{'a b ' * 14}a...'"),
        (b"KEY=sk-" + b"Zq3" * 9, "text that begins with 'KEY=***"),
        (b"id: deploy\nname: CI\non: push\n", "text that begins with 'id: deploy'"),
        (b"data:\n  a: 1\n  b: 2\nkind: Map\n", "text that begins with 'data:'"),
        (b"for d in data:\n    use(d)\nif data:\n    end()\n", "text that begins with 'for d in"),
        (b"HTTP/1.1 200 OK\n\n<html>", "an HTML page"),
    ],
)
def test_what_is_no_answer_is_refused_and_described(data: bytes, seen: str) -> None:
    with pytest.raises(UsageError) as refused:
        only(data)
    message = str(refused.value)
    assert message.startswith(f"x: is no answer of an LLM, but {seen}")
    assert message.endswith(f"; {ACCEPTED}")


@pytest.mark.parametrize(
    "data",
    [
        ANSWER,
        b"data: an application's own text\n\n",
        b": keep-alive\n\n: keep-alive\n\n",
        event("chunk", {"own": 1}),
        b'{"error": {"message": "slow down"}}',
        b"HTTP/1.1 502 Bad Gateway\n\n<html>",
    ],
)
def test_answers_and_errors_are_accepted(data: bytes) -> None:
    assert only(data).number == 1


def test_nothing_that_is_described_is_an_empty_answer() -> None:
    assert only(b"", response=b'{"status": 200}').body == b""
    assert import_capture(
        ImportSource(name="f", files={"body.raw": b"", "request.json": b'{"a": 1}'})
    )
    with pytest.raises(UsageError, match="a PNG image"):
        only(b"\x89PNG\r\n\x1a\n", response=b'{"status": 200}')


def test_a_request_tells_what_the_response_does_not() -> None:
    asked = b'{"url": "https://api.openai.com/v1/chat/completions", "body": {}}'
    assert only(b"<html>", request=asked).body == b"<html>"
    assert only(b"<html>", request=b'{"messages": [{"role": "user"}]}').body == b"<html>"
    assert only(b"<html>", request=b'{"model": "m", "prompt": "x"}').body == b"<html>"
    for other in (b'{"messages": 7}', b'{"a": []}', b'{"method": "HEAD", "url": "/v1/messages"}'):
        with pytest.raises(UsageError, match="an HTML page"):
            only(b"<html>", request=other)


def test_the_names_that_an_application_uses_are_known() -> None:
    lines = b'{"t": "say", "w": "hi"}\n{"t": "over"}\n'
    with pytest.raises(UsageError, match="lines of JSON"):
        imported(lines)
    names = AppNames(type=("t",), text=("say",), done=("over",), content=("w",))
    (exchange,) = import_capture(source(lines), names).exchanges
    assert exchange.body == lines
