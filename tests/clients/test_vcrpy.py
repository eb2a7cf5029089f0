"""Cassettes that vcrpy and Ruby's VCR themselves write are imported."""

import gzip
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from deltatape.store.reader import open_tape
from helpers.chat import choice, sse
from helpers.clients import ROOT, output
from helpers.console import called
from helpers.needed import skip_unless
from helpers.upstream import Peer, ok_response, provider, run

PYTHON = ROOT / ".venv-plugins" / "bin" / "python"
ANSWER = sse(choice({"content": "caf\u00e9"}, "stop"))
RECORD = """
import json, sys, urllib.request, vcr
base, cassette, coding, *form = sys.argv[1:]
asked = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": "hi"}]})
headers = {"Content-Type": "application/json", "Accept-Encoding": coding}
request = urllib.request.Request(base + "/v1/chat/completions", asked.encode(), headers)
with vcr.use_cassette(cassette, serializer=(form or ["yaml"])[0]):
    urllib.request.urlopen(request).read()
"""

RUBY = """
require "json"
require "net/http"
require "vcr"
base, coding, form = ARGV
VCR.configure do |config|
  config.cassette_library_dir = "."
  config.hook_into :webmock
  config.default_cassette_options = { serialize_with: form.to_sym, preserve_exact_body_bytes: true }
  config.ignore_localhost = false
end
asked = { model: "m", stream: true, messages: [{ role: "user", content: "hi" }] }
headers = { "Content-Type" => "application/json", "Accept-Encoding" => coding }
VCR.use_cassette("cassette") do
  Net::HTTP.post(URI(base + "/v1/chat/completions"), asked.to_json, headers)
end
"""


async def serve(peer: Peer) -> None:
    head, _ = await peer.request()
    coded = b"Accept-Encoding: gzip" in head
    body = gzip.compress(ANSWER) if coded else ANSWER
    coding = [b"Content-Encoding: gzip"] if coded else []
    await peer.send(ok_response(body, b"Content-Type: text/event-stream", *coding))


async def recorded(folder: Path, *command: str | Path) -> None:
    """Run a program that records what it asks the provider, whose URL replaces BASE."""
    async with provider(serve) as port:
        url = f"http://127.0.0.1:{port}"
        await output(*[part if part != "BASE" else url for part in command], cwd=folder)


def assert_imported(folder: Path, cassette: str, *, coded: bool) -> None:
    result = called("import", cassette, "-o", "x.tape", folder=folder)
    assert result.stderr.startswith(b"read as a cassette: 1 exchange\n"), result.stderr
    (exchange,) = open_tape(folder / "x.tape")
    assert exchange.request.path == "/v1/chat/completions"
    assert json.loads(exchange.request.body)["messages"] == [{"role": "user", "content": "hi"}]
    assert (gzip.decompress(exchange.body) if coded else exchange.body) == ANSWER
    shown = called("show", "x.tape", folder=folder)
    assert b"4 characters, finish stop; no findings" in shown.stdout


@pytest.mark.parametrize("arguments", [("identity",), ("gzip",), ("identity", "json")])
def test_a_cassette_of_vcrpy_is_imported(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    skip_unless(PYTHON.exists(), "no vcrpy; scripts/setup plugins installs it")
    run(recorded(tmp_path, PYTHON, "-c", RECORD, "BASE", "cassette", *arguments))
    assert_imported(tmp_path, "cassette", coded="gzip" in arguments)


@pytest.mark.parametrize("coding", ["identity", "gzip"])
@pytest.mark.parametrize(("form", "suffix"), [("yaml", "yml"), ("json", "json")])
def test_a_cassette_of_rubys_vcr_is_imported(
    tmp_path: Path, coding: str, form: str, suffix: str
) -> None:
    has_vcr = ("ruby", "-r", "vcr", "-r", "webmock", "-r", "multi_json", "-e", "exit")
    installed = shutil.which("ruby") and subprocess.call(has_vcr) == 0
    skip_unless(installed, "no VCR; scripts/setup vcr installs it")
    run(recorded(tmp_path, "ruby", "-e", RUBY, "BASE", coding, form))
    assert_imported(tmp_path, f"cassette.{suffix}", coded=coding == "gzip")
