"""A cassette is played by vcrpy itself."""

import gzip
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from deltatape.diagnose.rebuild import analyse
from deltatape.exporters import export
from deltatape.exporters.cassette import CassetteExporter
from deltatape.model.exchange import Exchange, MaskedCredential, Read
from helpers.chat import FINISH, choice, sse
from helpers.clients import ROOT
from helpers.needed import skip_unless
from helpers.taped import taped

PYTHON = ROOT / ".venv-plugins" / "bin" / "python"
ANSWER = sse(choice({"content": "caf\u00e9"}), FINISH)
PLAY = """
import sys, urllib.request, vcr
request = urllib.request.Request("https://api.openai.com/v1/chat/completions", b"{}")
with vcr.use_cassette(sys.argv[1], record_mode="none") as cassette:
    response = urllib.request.urlopen(request)
    sys.stdout.buffer.write(response.read())
    print(response.status, response.headers["Content-Type"], cassette.play_count, file=sys.stderr)
"""


def cassette(*exchanges: Exchange) -> bytes:
    return export([analyse(each) for each in exchanges], CassetteExporter(), "1").files[""]


@pytest.mark.slow
@pytest.mark.parametrize("coding", ["", "gzip"])
def test_vcrpy_plays_a_cassette(tmp_path: Path, coding: str) -> None:
    skip_unless(PYTHON.exists(), "no vcrpy; scripts/setup plugins installs it")
    fields = [(b"Content-Type", b"text/event-stream")]
    fields += [(b"Content-Encoding", b"gzip")] * bool(coding)
    body = gzip.compress(ANSWER, mtime=0) if coding else ANSWER
    (tmp_path / "x.yaml").write_bytes(cassette(taped([(10, body)], headers=tuple(fields))))
    done = subprocess.run(
        [str(PYTHON), "-c", PLAY, "x.yaml"], cwd=tmp_path, capture_output=True, check=False
    )
    assert done.stderr.decode().splitlines() == ["200 text/event-stream 1"]
    assert done.stdout == body


def test_bodies_are_text_or_binary() -> None:
    text, binary = yaml.safe_load(cassette(taped([(1, ANSWER)], body=b""), taped([(1, b"\xff")])))[
        "interactions"
    ]
    assert text["response"]["body"] == {"string": ANSWER.decode()}
    assert text["request"]["body"] is None
    assert binary["response"]["body"] == {"string": b"\xff"}


def test_fields_of_one_name_are_together_and_credentials_masked() -> None:
    exchange = taped(
        headers=((b"A", b"1"), (b"B", b"2"), (b"a", MaskedCredential(length=4, hash="0" * 8)))
    )
    (found,) = yaml.safe_load(cassette(exchange))["interactions"]
    headers = found["response"]["headers"]
    assert (headers["A"], headers["B"]) == (["1", "****"], ["2"])


def test_a_credential_under_a_content_coding_does_not_reappear() -> None:
    asked, answer = b'{"key": "abcd"}', b'data: {"key": "abcd"}\n\n'
    span = (answer.index(b"abcd"), answer.index(b"abcd") + 4, "0" * 8)
    exchange = taped(
        headers=((b"Content-Encoding", b"gzip"), (b"Content-Type", b"text/event-stream"))
    )
    exchange = replace(
        exchange,
        request=replace(
            exchange.request,
            headers=((b"Content-Encoding", b"gzip"),),
            body=gzip.compress(asked),
            hidden=((9, 13, "0" * 8),),
        ),
        reads=(Read(5, gzip.compress(answer), None, None, hidden=(span,)),),
    )
    (found,) = yaml.safe_load(cassette(exchange))["interactions"]
    assert found["request"]["body"] == '{"key": "****"}'
    assert found["response"]["body"]["string"] == 'data: {"key": "****"}\n\n'
    assert "Content-Encoding" not in found["request"]["headers"]
    assert "Content-Encoding" not in found["response"]["headers"]
