import base64
import gzip
import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deltatape.diagnose.rebuild import analyse
from deltatape.exporters import export
from deltatape.exporters.har import HarExporter
from deltatape.model.exchange import Exchange, MaskedCredential
from deltatape.model.websocket import BINARY, TEXT
from deltatape.store.reader import open_tape
from helpers.chat import FINISH, choice, sse
from helpers.clients import CLIENTS, ROOT
from helpers.mitm import VENVS
from helpers.needed import skip_unless
from helpers.responses_socket import question
from helpers.taped import taped
from helpers.websocket import socket

RECORDED = ROOT / "recordings" / "dialects"
ANSWER = sse(choice({"content": "hi"}), FINISH)
READ = """
import sys
from mitmproxy.io import FlowReader
for flow in FlowReader(open(sys.argv[1], "rb")).stream():
    print(flow.request.pretty_url, flow.response.status_code, len(flow.response.content))
"""

VALIDATE = """
import { readFileSync } from "node:fs";
import validator from "har-validator";
const wrong = ({ errors }) => errors.map((each) => each.dataPath + " " + each.message).join();
const archives = JSON.parse(readFileSync(0));
const told = await Promise.all(archives.map((each) => validator.har(each).then(() => "", wrong)));
console.log(JSON.stringify(told));
"""


def archive(exchange: Exchange) -> dict[str, Any]:
    files = export([analyse(exchange)], HarExporter(), "1.2.3").files
    log: dict[str, Any] = json.loads(files[""])["log"]
    return log


def entry(exchange: Exchange) -> dict[str, Any]:
    only: dict[str, Any]
    (only,) = archive(exchange)["entries"]
    return only


def test_an_archive_says_who_wrote_it() -> None:
    log = archive(taped())
    assert (log["version"], log["creator"]) == ("1.2", {"name": "deltatape", "version": "1.2.3"})


def test_an_entry_has_the_times_that_were_measured() -> None:
    found = entry(taped([(10, ANSWER[:5]), (30, ANSWER[5:])]))
    assert found["startedDateTime"] == "2026-11-21T20:36:01.000000Z"
    assert found["timings"] == {"send": 0, "wait": 5, "receive": 25}
    assert found["time"] == 30


def test_bodies_are_decoded_and_their_framing_left_out() -> None:
    exchange = taped(
        [(10, gzip.compress(ANSWER))],
        headers=((b"Content-Encoding", b"gzip"), (b"Content-Type", b"text/event-stream; a=b")),
    )
    response = entry(exchange)["response"]
    assert response["content"] == {
        "size": len(ANSWER),
        "mimeType": "text/event-stream",
        "text": ANSWER.decode(),
    }
    assert response["headers"] == [{"name": "Content-Type", "value": "text/event-stream; a=b"}]


@pytest.mark.parametrize("body", [b"data: \xff\n\n", "data: é Ã©\n\n".encode(), "Ã©".encode()])
def test_a_body_that_readers_would_mend_or_lose_is_base64(body: bytes) -> None:
    content = entry(taped([(10, body)]))["response"]["content"]
    if content.get("encoding") == "base64":
        assert base64.b64decode(content["text"]) == body
    else:
        assert content["text"].encode() == body


def test_a_request_body_that_is_no_text_is_base64() -> None:
    posted = entry(taped(body=b"\xff"))["request"]["postData"]
    assert posted == {"mimeType": "", "text": "/w==", "_encoding": "base64"}
    assert "postData" not in entry(taped(body=b"", method="GET"))["request"]


def test_masked_credentials_stay_masked() -> None:
    secret = MaskedCredential(length=4, hash="0a0a0a0a")
    exchange = taped()
    request = replace(
        exchange.request,
        target=(b"/v1?b=2&key=", secret),
        headers=((b"Authorization", secret),),
    )
    asked = entry(replace(exchange, request=request))["request"]
    assert asked["url"] == "https://api.openai.com/v1?b=2&key=****"
    assert asked["headers"] == [{"name": "Authorization", "value": "****"}]
    assert asked["queryString"] == [{"name": "b", "value": "2"}, {"name": "key", "value": "****"}]


def test_a_redirect_names_its_target() -> None:
    moved = taped([], headers=((b"Location", b"/there"),))
    assert moved.response is not None
    moved = replace(moved, response=replace(moved.response, status=307))
    assert entry(moved)["response"]["redirectURL"] == "/there"


def test_a_request_without_a_response_has_status_0() -> None:
    refused = entry(taped([], framing=None, detail="no route"))["response"]
    assert (refused["status"], refused["_error"]) == (0, "no route")
    assert entry(taped([], framing=None))["response"]["_error"] == "complete"
    unfinished = replace(taped([], framing=None, reason=None))
    unfinished = replace(unfinished, request=replace(unfinished.request, t_end_ns=None))
    assert entry(unfinished)["response"]["_error"] == ""
    assert entry(unfinished)["time"] == 0


def test_the_messages_of_a_websocket_are_those_of_chrome() -> None:
    found = entry(socket(question()))
    messages = found["_webSocketMessages"]
    assert messages[0]["type"] == "send"
    assert {each["opcode"] for each in messages} <= {TEXT, BINARY}
    assert found["_resourceType"] == "websocket"


def test_mitmproxy_reads_an_archive(tmp_path: Path) -> None:
    python = VENVS["11"] / "bin" / "python"
    skip_unless(python.exists(), "no mitmproxy; scripts/setup mitm installs it")
    exchange = taped([(10, ANSWER)], body={"messages": []})
    files = export([analyse(exchange)], HarExporter(), "1").files
    (tmp_path / "x.har").write_bytes(files[""])
    done = subprocess.run(
        [str(python), "-c", READ, "x.har"], cwd=tmp_path, capture_output=True, check=True
    )
    expected = f"https://api.openai.com/v1/chat/completions 200 {len(ANSWER)}\n"
    assert done.stdout.decode() == expected


def test_a_validator_of_others_accepts_archives() -> None:
    """Of a recording of each dialect, and of what a HAR has no place for."""
    validator = CLIENTS / "node_modules" / "har-validator"
    skip_unless(validator.is_dir(), "no har-validator; scripts/setup clients installs it")
    recorded = [each for path in RECORDED.rglob("*.tape") for each in open_tape(path).exchanges()]
    assert any(each.upgraded for each in recorded)
    odd = [taped([], framing=None), taped(body=b"\xff"), taped([(10, b"\xff\0")], headers=())]
    odd.append(replace(taped(), recorded_at=""))
    archives = [archive(each) for each in (*recorded, *odd)]
    broken = archive(taped())
    del broken["entries"][0]["startedDateTime"]
    told = subprocess.run(
        ["node", "--input-type=module", "-e", VALIDATE],
        cwd=CLIENTS,
        input=json.dumps([{"log": each} for each in (*archives, broken)]).encode(),
        capture_output=True,
        check=True,
    )
    *accepted, refused = json.loads(told.stdout)
    assert set(accepted) == {""}
    assert "startedDateTime" in refused
