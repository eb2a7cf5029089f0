"""What LiteLLM itself logs is imported."""

import os
from pathlib import Path

from deltatape.store.reader import open_tape
from helpers.chat import FINISH, calls, entry, sse
from helpers.clients import PYTHON, output
from helpers.console import called
from helpers.needed import skip_unless
from helpers.upstream import Peer, ok_response, provider, run

LIMIT_S = 120.0
ANSWER = sse(calls(entry(0, "c1", name="now", arguments='{"city": "Gent"}')), FINISH)
LOG = """
import json, sys, threading, litellm
logged = threading.Event()

def write(call, *_):
    with open("log.jsonl", "a") as file:
        file.write(json.dumps(call["standard_logging_object"], default=str) + chr(10))
    logged.set()

litellm.success_callback = [write]
user = {"role": "user", "content": "Which time is it in Gent?"}
for _ in litellm.completion(
    model="openai/m", messages=[user], stream=True, api_base=sys.argv[1], api_key="fake"
):
    pass
sys.exit(0 if logged.wait(60) else "nothing was logged")
"""


async def serve(peer: Peer) -> None:
    await peer.request()
    await peer.send(ok_response(ANSWER, b"Content-Type: text/event-stream"))


def test_a_log_of_litellm_is_imported(tmp_path: Path) -> None:
    skip_unless(PYTHON.exists(), "no LiteLLM; scripts/setup clients installs it")

    async def scenario() -> None:
        async with provider(serve) as port:
            env = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
            await output(PYTHON, "-c", LOG, f"http://127.0.0.1:{port}/v1", cwd=tmp_path, env=env)

    run(scenario(), LIMIT_S)
    result = called("import", "log.jsonl", "-o", "x.tape", folder=tmp_path)
    assert result.stderr.startswith(b"read as a log of LiteLLM: 1 exchange\n"), result.stderr
    (exchange,) = open_tape(tmp_path / "x.tape")
    assert exchange.request.path == "/v1/chat/completions"
    shown = called("show", "x.tape", folder=tmp_path)
    assert b"1 call (now), finish tool_calls; no findings" in shown.stdout
