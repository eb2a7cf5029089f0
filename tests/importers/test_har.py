import base64
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from datetime import datetime  # noqa: TID251 - it reads no clock

import pytest

from deltatape.diagnose.check_tape import check_exchanges
from deltatape.diagnose.websocket import read_socket
from deltatape.errors import UsageError
from deltatape.importers import har
from deltatape.importers.har import HarImporter
from deltatape.importers.parts import ImportSource
from deltatape.model.exchange import Exchange, Framing
from deltatape.model.rule_settings import Settings
from deltatape.model.websocket import Side, whole_messages
from helpers.chat import FINISH, calls, sse
from helpers.chat import entry as chat_entry
from helpers.eventstream import event
from helpers.imported import imported, notes, source
from helpers.responses_socket import call
from helpers.secret_tapes import words
from helpers.websocket import split

RESPONSE = [piece.data for _, sent in call(1) for piece in split([sent])]
STREAM = sse(words("Hello"))
JSON = "application/json"


def entry(content: object, **response: object) -> dict[str, object]:
    """An entry whose response has this content."""
    return {
        "request": {
            "method": "POST",
            "url": "https://api.example.com/v1/chat/completions?key=fake",
            "httpVersion": "h2",
            "headers": [{"name": ":method", "value": "POST"}, {"name": "A", "value": "1"}, "odd"],
            "postData": {"mimeType": JSON, "text": '{\n"model": "m"}'},
        },
        "response": {"status": 200, "content": content, **response},
    }


def text(body: bytes, media: str = "text/event-stream") -> dict[str, object]:
    return {"mimeType": media, "text": body.decode()}


def encoded(body: bytes) -> dict[str, object]:
    media = "application/vnd.amazon.eventstream"
    return {"mimeType": media, "text": base64.b64encode(body).decode(), "encoding": "base64"}


def archive(*entries: object) -> bytes:
    return json.dumps({"log": {"version": "1.2", "entries": entries}}).encode()


def material(*entries: object) -> ImportSource:
    return source(archive(*entries))


def read_all(*entries: object) -> Sequence[Exchange]:
    assert HarImporter().claims(material(*entries))
    return HarImporter().read(material(*entries))


def read(*entries: object) -> Exchange:
    (exchange,) = read_all(*entries)
    return exchange


def test_an_entry_is_an_exchange() -> None:
    exchange = read(
        entry(text(STREAM), statusText="OK", httpVersion="HTTP/1.1", headers=[{"name": "B"}])
    )
    request, response = exchange.request, exchange.response
    assert (request.method, request.upstream) == ("POST", "https://api.example.com")
    assert (request.path, request.http) == ("/v1/chat/completions", "2")
    assert (request.headers, request.body) == (((b"A", b"1"),), b'{\n"model": "m"}')
    assert response is not None
    assert (response.status, response.reason, response.http) == (200, b"OK", "1.1")
    assert response.headers == ((b"B", b""), (b"content-type", b"text/event-stream"))
    assert exchange.body == STREAM
    assert notes(exchange) == ["HAR: entry 1 of 1"]


def test_what_an_archive_has_undone_is_not_a_part_of_the_head() -> None:
    names = ["Content-Encoding", "Content-Length", "Transfer-Encoding", "Content-Type"]
    fields = [{"name": name, "value": "chunked"} for name in names]
    response = read(entry(text(STREAM), headers=fields)).response
    assert response is not None
    assert response.headers == ((b"Content-Type", b"chunked"),)
    assert response.framing is Framing.CLOSE


def test_a_body_in_base64_is_decoded() -> None:
    body = event("chunk", {"a": "é"})
    assert read(entry(encoded(body))).body == body
    broken = {**encoded(body), "text": "a"}
    exchange = read(entry(broken))
    assert (exchange.body, len(notes(exchange))) == (b"a", 2)


def test_a_binary_body_in_characters_of_one_byte_is_read_and_a_lossy_one_told() -> None:
    body = event("chunk", {})
    exchange = read(entry({"text": body.decode("latin-1")}))
    assert (exchange.body, notes(exchange)[0]) == (body, "HAR: entry 1 of 1")
    lossy = read(entry({"mimeType": "x/y", "text": body.decode(errors="replace")}))
    assert notes(lossy)[1] == "HAR: the body was saved as text; bytes that are not text are lost"


@pytest.mark.parametrize("said", ["café", "€ “quoted” naïve", "日本語", "\x81\x9d é"])
def test_utf_8_that_was_taken_for_another_charset_is_mended(said: str) -> None:
    body = f'data: {{"text": "{said}"}}\n\n'.encode()
    wrong = "".join(
        chr(byte) if byte in {0x81, 0x8D, 0x8F, 0x90, 0x9D} else bytes([byte]).decode("cp1252")
        for byte in body
    )
    found = read(entry({"text": wrong}))
    assert found.body == body
    assert "HAR: the body was saved as if it were Latin-1; it was read as UTF-8" in notes(found)
    assert read(entry({"text": body.decode()})).body == body


def started(at: str, **of: object) -> dict[str, object]:
    return {**entry(text(STREAM), **of), "startedDateTime": at}


def test_every_entry_is_an_exchange_in_the_order_of_their_starts() -> None:
    times = ["2026-01-01T10:00:01.5+01:00", "2026-01-01T09:00:01Z", "never", 7, "0001-01-01"]
    exchanges = read_all(*(started(str(at), statusText=str(at)) for at in times))
    reasons = [each.response.reason.decode() for each in exchanges if each.response]
    assert reasons == ["never", "7", "0001-01-01", "2026-01-01T09:00:01Z", times[0]]
    assert notes(exchanges[3]) == ["HAR: entry 2 of 5"]


def test_what_is_no_traffic_of_a_model_is_left_out_and_counted() -> None:
    page = {"method": "GET", "url": "https://example.com/a.css"}
    css = {**entry(text(b"a{}", "text/css")), "request": page}
    events = {**entry(text(b"data: reload\n\n")), "request": page}
    asked = {"method": "OPTIONS", "url": "https://api.example.com/v1/chat/completions"}
    preflight = {**entry({"size": 0}, status=204), "request": asked}
    bare = {**css, "response": {"status": 200, "content": {"size": 0}}}
    found = imported(archive(css, entry(text(STREAM)), css, events, preflight, bare))
    assert [each.body for each in found] == [STREAM]
    assert notes(found[0])[0] == "HAR: entry 2 of 6"
    left = "2 text/css, 2 application/octet-stream, 1 text/event-stream"
    assert notes(found[0])[1] == f"left out what is no traffic of an LLM: {left}"
    with pytest.raises(
        UsageError, match=r"has 1 exchange \(1 text/css\), none of them with an LLM"
    ):
        imported(archive(css))


def test_a_missing_body_is_no_empty_one() -> None:
    missing, empty = entry({"size": 700}), entry({"size": 0}, bodySize=700)
    found = imported(archive(missing, entry(text(STREAM)), empty, entry({}, bodySize=0)))
    assert [each.response is None for each in found] == [True, False, False, False]
    assert notes(found[0]) == [
        "HAR: entry 1 of 4",
        "HAR: the response body is not in the archive",
    ]
    attached = entry({"_file": "0a.sse", "comment": "kept apart"})
    assert notes(read(attached))[1:] == [
        "HAR: about the content: kept apart",
        "HAR: the response body is not in the archive; it is in 0a.sse: embed the content",
    ]
    with pytest.raises(UsageError, match="1 exchange with an LLM, but no response: HAR: the resp"):
        imported(archive(missing))


def test_rows_of_the_event_stream_tab_are_written_as_events() -> None:
    rows = [
        {"time": 1.5, "eventName": "message", "eventId": "", "data": '{"a": 1}'},
        {"time": 1.6, "eventName": "ping", "eventId": "7", "data": "x\ny"},
        {"eventName": 7, "data": 7},
    ]
    found = read({**entry({"size": 9}), "_eventSourceMessages": rows})
    assert found.body == b'data: {"a": 1}\n\nid: 7\nevent: ping\ndata: x\ndata: y\n\ndata: \n\n'
    assert notes(found)[1].startswith("HAR: the body was written anew from 3 rows of the EventStr")
    assert read({**entry(text(STREAM)), "_eventSourceMessages": rows}).body == STREAM


def test_rows_of_events_have_their_times_and_are_missing_without_data() -> None:
    rows = [{"time": BEGUN + at, "data": f'{{"a": {at}}}'} for at in (1.5, 1.25, 0.125)]
    made = {**started("2026-01-01T00:00:01Z"), "timings": {"blocked": -1, "send": 1.5, "wait": 250}}
    made = {**made, "response": entry({"size": 9})["response"]}
    first = started("2026-01-01T00:00:00Z")
    _, found = read_all(first, {**made, "_eventSourceMessages": rows})
    assert found.response is not None
    times = [found.request.t_ns, found.response.t_ns, *(each.t_ns for each in found.reads)]
    assert times == [10**9, 1_251_500_000, 1_500_000_000, 1_500_000_000, 1_500_000_000]
    sanitized = [{"time": 1.5}, *rows]
    _, found = read_all(first, {**made, "_eventSourceMessages": sanitized})
    assert found.response is None
    assert notes(found)[1].endswith("export it with sensitive data")
    whole = text(b": hi\n\n" + STREAM)
    made = {**made, "response": {"status": 200, "content": whole}}
    for listed, milliseconds in ((sanitized[:2], [1251, 1500]), (rows, [0])):
        _, found = read_all(first, {**made, "_eventSourceMessages": listed})
        assert found.body == b": hi\n\n" + STREAM
        assert [each.t_ns // 10**6 for each in found.reads] == milliseconds
    assert read({**made, "_eventSourceMessages": 7}).body == b": hi\n\n" + STREAM


def row(kind: str, time: object, data: str, opcode: object = 1) -> dict[str, object]:
    return {"type": kind, "time": time, "opcode": opcode, "data": data}


def opened(
    rows: object = None, at: str = "2026-01-01T00:00:01Z", **of: object
) -> dict[str, object]:
    """An entry of a WebSocket; its rows are an attached file where there are none."""
    request = {"method": "GET", "url": "wss://api.example.com/v1/responses", "headers": []}
    listed = {} if rows is None else {"_webSocketMessages": rows}
    made = entry({"size": 0, **of}, status=101)
    return {
        **made,
        "request": request,
        "_resourceType": "websocket",
        "startedDateTime": at,
    } | listed


BEGUN = datetime.fromisoformat("2026-01-01T00:00:00Z").timestamp()
ROWS = [
    row("send", BEGUN + 2, '{"type": "response.create", "input": "Grüße"}'),
    row("receive", BEGUN + 2.5, '{"type": "response.created"}'),
    row("receive", BEGUN + 2.25, "/wA=", 2),
]


def test_rows_of_a_websocket_are_messages_with_their_times() -> None:
    first = started("2026-01-01T00:00:00Z")
    odd = [row("error", BEGUN, "gone"), row("send", BEGUN, "", 8), {}, 7]
    _, found = imported(archive(opened([*ROWS, *odd]), first))
    assert found.response is not None
    assert (found.response.status, found.response.framing) == (101, Framing.NONE)
    assert found.request.upstream == "https://api.example.com"
    assert (found.request.t_ns, found.response.t_ns) == (10**9, 10**9)
    sent = read_socket(found)
    assert sent.violations == ()
    assert [(each.side, each.t_ns // 10**6, each.data) for each in sent.messages] == [
        (Side.CLIENT, 2000, '{"type": "response.create", "input": "Grüße"}'.encode()),
        (Side.SERVER, 2500, b'{"type": "response.created"}'),
        (Side.SERVER, 2500, b"\xff\0"),
    ]
    assert notes(found)[1:] == [
        "HAR: left out 4 rows of the WebSocket that are no messages",
        whole_messages("the archive"),
    ]


def test_times_in_milliseconds_are_playwrights() -> None:
    rows = [{**each, "time": float(str(each["time"])) * 1000} for each in ROWS]
    rows.append(row("send", -1, "a", 2))
    found = imported(archive(opened(rows, at="2026-01-01T00:00:00Z")))[0]
    assert [piece.t_ns // 10**6 for piece in found.frames] == [2000, 2500, 2500, 2500]
    assert found.frames[-1].data == b"a"


def test_messages_that_are_attached_are_read() -> None:
    lines = "".join(json.dumps(each) + "\n" for each in ROWS) + "torn"
    made = archive(opened(_file="0a.jsonl"))
    (found,) = imported(zipped({"0a.jsonl": lines.encode(), "har.har": made}))
    assert len(found.frames) == 3
    with pytest.raises(UsageError, match="the messages of the WebSocket are not in the archive"):
        imported(made)
    with pytest.raises(UsageError, match="the messages of the WebSocket are not in the archive"):
        imported(archive(opened()))


def test_a_websocket_of_no_model_is_left_out() -> None:
    other = {"method": "GET", "url": "wss://example.com/chat", "headers": []}
    page = {**opened([row("receive", 0, "reload")]), "request": other}
    (found,) = imported(archive(page, entry(text(STREAM))))
    assert "left out what is no traffic of an LLM: 1 WebSocket" in notes(found)
    elsewhere = {**opened(ROWS[:1]), "request": other}
    with pytest.raises(UsageError, match="1 WebSocket"):
        imported(archive(elsewhere))
    asked = [row("send", 0, '{"type": "response.create", "model": "m", "input": []}')]
    shown = [row("receive", 0, each.decode()) for each in RESPONSE]
    assert imported(archive({**opened([*asked, *shown]), "request": other}))


def test_a_websocket_over_http_2_is_told() -> None:
    made = opened(ROWS)
    made["response"] = {"status": 200, "content": {}}
    (found,) = imported(archive(made))
    assert found.response is not None
    assert found.response.status == 101
    assert notes(found)[-1] == "a WebSocket whose handshake had the status 200; here it is 101"


def test_a_conversation_is_compared_across_entries() -> None:
    asked = {"model": "m", "messages": [{"role": "user", "content": "Which time is it in Gent?"}]}
    call = {"id": "c1", "type": "function", "function": {"name": "now", "arguments": "{}"}}
    again = [*asked["messages"], {"role": "assistant", "tool_calls": [call]}]
    again.append({"role": "tool", "tool_call_id": "c1", "content": "noon"})

    def turn(at: str, body: object, answer: bytes) -> dict[str, object]:
        made = started(at)
        request = {**made["request"], "postData": {"text": json.dumps(body)}}  # type: ignore[dict-item]
        return {**entry(text(answer)), "request": request, "startedDateTime": at}

    called = sse(calls(chat_entry(0, "c1", name="now", arguments='{"city": "Gent"}')), FINISH)
    first = turn("2026-01-01T00:00:01Z", asked, called)
    second = turn("2026-01-01T00:00:02Z", {**asked, "messages": again}, sse(words("Noon.")))
    report = check_exchanges("x", imported(archive(second, first)), Settings())
    assert [(one.finding.code, one.finding.exchange) for one in report.reported] == [("C002", 2)]


def test_what_a_user_says_beside_an_archive_is_refused() -> None:
    with pytest.raises(UsageError, match="--request and --response describe a body"):
        imported(archive(entry(text(STREAM))), request=b"{}")
    with pytest.raises(UsageError, match="is read as a HAR"):
        imported(archive(entry(text(STREAM))), response=b"{}")


@pytest.mark.parametrize("status", [0, 99, 1000, "200", None, 200.5])
def test_an_archive_without_any_response_is_refused(status: object) -> None:
    entries = material({"response": {"status": status}})
    with pytest.raises(UsageError, match="none of the 1 entries of this HAR has a response"):
        HarImporter().read(entries)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b'{"log": {"entries": 1}}', "0 entries"),
        (b'{"log": {"entries": [', "is a HAR, but JSON that is torn: it ends within a value"),
        (b'{"log":7, "entries"', "is a HAR, but JSON that is torn"),
        (b'{"log": {"entries": [\n}}', "none from line 2 on; save it again"),
    ],
)
def test_a_damaged_archive_is_refused(data: bytes, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        imported(data)


@pytest.mark.parametrize("data", [b"", STREAM, b'{"log": 1}', b'{"a": {"log": {"entries": []}}}'])
def test_what_is_no_archive_is_not_for_this_importer(data: bytes) -> None:
    assert not HarImporter().claims(ImportSource(name="x", files={"x": data}))
    assert not HarImporter().claims(ImportSource(name="x", files={"x": data, "y": data}))


def test_a_byte_order_mark_hides_no_archive() -> None:
    data = b"\xef\xbb\xbf" + (material(entry(text(STREAM))).only or b"")
    marked = ImportSource(name="x.har", files={"x.har": data})
    assert HarImporter().claims(marked)
    assert [each.body for each in HarImporter().read(marked)] == [STREAM]


def test_values_that_a_browser_joined_by_line_feeds_are_fields_of_their_own() -> None:
    hints = {"name": "x-hint", "value": "a\nb\r\nc"}
    exchange = read(entry(text(STREAM), headers=[hints], statusText="OK\nX: y"))
    assert exchange.response is not None
    assert [value for name, value in exchange.response.headers if name == b"x-hint"] == [
        b"a",
        b"b",
        b"c",
    ]
    assert exchange.response.reason == b""


@pytest.mark.parametrize(("sent", "body"), [("/w==", b"\xff"), ("?", b""), ("a", b"a")])
def test_a_request_body_that_is_no_text_is_decoded(sent: str, body: bytes) -> None:
    made = entry(text(STREAM))
    posted = {"text": sent, "_encoding": "base64"}
    made["request"] = {**made["request"], "postData": posted}  # type: ignore[dict-item]
    assert read(made).request.body == body


def test_the_version_of_http_is_as_it_was_written() -> None:
    for written, version in (("HTTP/1.0", "1.0"), ("http/2.0", "2"), ("h3", "3"), ("spdy", "1.1")):
        made = entry(text(STREAM))
        made["request"] = {**made["request"], "httpVersion": written}  # type: ignore[dict-item]
        assert read(made).request.http == version


def zipped(files: Mapping[str, bytes]) -> bytes:
    """A ZIP archive as Playwright writes it."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return made.getvalue()


def test_a_zipped_archive_has_its_bodies_as_files() -> None:
    kept = entry({"mimeType": "text/event-stream", "_file": "0a1b.txt", "size": 9})
    lost = entry({"mimeType": "text/event-stream", "_file": "none.txt", "size": 9})
    data = zipped({"0a1b.txt": STREAM, "har.har": archive(kept, lost)})
    first, second = imported(data)
    assert first.body == STREAM
    assert second.response is None


def test_a_zip_of_other_files_is_not_for_this_importer() -> None:
    for data in (zipped({"a.txt": b""}), b"PK\x03\x04"):
        assert not HarImporter().claims(source(data))
    with pytest.raises(UsageError, match="a ZIP archive; unpack it first"):
        imported(zipped({"a.txt": b"a"}))


def test_a_damaged_or_a_huge_zip_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = zipped({"x.har": archive(entry(text(STREAM)))})
    at = data.index(b"x.har") + 9
    with pytest.raises(UsageError, match="is a zipped HAR, but damaged"):
        imported(data[:at] + bytes(9) + data[at + 9 :])
    monkeypatch.setattr(har, "_LARGEST", 9)
    with pytest.raises(UsageError, match="is a zipped HAR of more than 9 bytes"):
        imported(data)
