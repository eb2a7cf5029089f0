"""The official openai SDK for Python, as an application uses it; prints what it understood.

argv: base URL, request as JSON. Output: one JSON object with the digest of the raw body and the
accumulated reply.
"""

import hashlib
import json
import sys

import openai

request = json.loads(sys.argv[2])
client = openai.OpenAI(base_url=sys.argv[1], api_key="sk-fake-000", max_retries=0)
with client.chat.completions.with_streaming_response.create(**request) as response:
    body = b"".join(response.iter_bytes())

reply = error = None
request.pop("stream")
try:
    with client.chat.completions.stream(**request) as stream:
        reply = stream.get_final_completion().model_dump(mode="json")
except (openai.OpenAIError, RuntimeError) as problem:
    error = str(problem)
sha256 = hashlib.sha256(body).hexdigest()
sys.stdout.write(json.dumps({"sha256": sha256, "reply": reply, "error": error}))
