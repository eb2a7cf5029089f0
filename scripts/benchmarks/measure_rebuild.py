"""A program: what deltatape makes of bodies, and how long it takes.

As `measure_sdk` for the SDKs: each line of stdin names a language and a file with a body, each
line of stdout is a JSON object. Framing and JSON are timed once more by themselves, for their
share. What is told is CPU time of this process.
"""

import gc
import json
import resource
import sys
from pathlib import Path

from benchmarks.languages import LANGUAGES, Language
from benchmarks.measure_sdk import digest
from deltatape import __version__
from deltatape.diagnose.decode import decode
from deltatape.diagnose.rebuild import rebuild
from deltatape.model.exchange import Exchange
from deltatape.wire.json_value import read_object


def measured(language: Language, body: bytes) -> dict[str, object]:
    """The CPU time from bytes to reply, that of its parts, and digests of the reply."""
    gc.collect()
    began = cpu_s()
    reply = rebuild(exchange_of(language, body))
    took = cpu_s() - began
    (call,) = reply.tool_calls
    digests = {"text": digest(reply.text), "arguments": digest(json.loads(call.arguments))}
    del reply, call
    exchange = exchange_of(language, body)
    gc.collect()
    began = cpu_s()
    stream = decode(exchange)
    framing = cpu_s() - began
    texts = [event.data for event in stream.events]
    began = cpu_s()
    for text in texts:
        read_object(text)
    parsing = cpu_s() - began
    return {"seconds": took, "framing": framing, "json": parsing, **digests}


def exchange_of(language: Language, body: bytes) -> Exchange:
    """An exchange with that response."""
    url = f"http://127.0.0.1{language.url}"
    return Exchange.from_body(body, content_type=language.content_type, url=url)


def cpu_s() -> float:
    """Used by this process so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Run the program."""
    languages = {language.name: language for language in LANGUAGES}
    print(json.dumps({"deltatape": __version__}), flush=True)
    for line in sys.stdin:
        name, file = json.loads(line)
        print(json.dumps(measured(languages[name], Path(file).read_bytes())), flush=True)


if __name__ == "__main__":
    main()
