"""An application of two turns with calls of tools, and what traces it.

reported.py HOW BASE_URL FOLDER

HOW is `openllmetry`, `official` (OpenTelemetry's own instrumentation), `langfuse` (its SDK, which
sends the same to LANGFUSE_HOST) or `untraced`. What was traced is in the folder, as a file of
OTLP/JSON (`trace`) and as the SDK prints spans (`printed`).
"""

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "The weather of a city.",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    }
]
ASKED: list[dict[str, object]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Which weather have Gent and Brügge?"},
]


def converse(client: Any) -> None:
    """Ask, call the tools, and ask again with their results."""
    messages: list[dict[str, object]] = [*ASKED]
    calls = streamed(client, messages)
    messages.append({"role": "assistant", "content": None, "tool_calls": calls})
    messages += [{"role": "tool", "tool_call_id": call["id"], "content": "rain"} for call in calls]
    streamed(client, messages)


def streamed(client: Any, messages: list[dict[str, object]]) -> list[dict[str, Any]]:
    """The calls of an answer, put together as an application does."""
    calls: dict[int, dict[str, Any]] = {}
    for chunk in client.chat.completions.create(
        model="m", messages=messages, tools=TOOLS, stream=True
    ):
        for delta in chunk.choices[0].delta.tool_calls or ():
            empty = {"type": "function", "function": {"name": "", "arguments": ""}}
            call = calls.setdefault(delta.index, empty)
            if delta.id:
                call["id"] = delta.id
            call["function"]["name"] += delta.function.name or ""
            call["function"]["arguments"] += delta.function.arguments or ""
    return [call for _, call in sorted(calls.items())]


def traced(how: str, written: TextIO, printed: TextIO) -> tuple[Any, Callable[[], None]]:
    """The module `openai`, traced into files, and what ends that."""
    if how == "untraced":
        return import_module("openai"), lambda: None
    trace = import_module("opentelemetry.sdk.trace")
    export = import_module("opentelemetry.sdk.trace.export")
    otlp = import_module("opentelemetry.exporter.otlp.json.file.trace_exporter")
    tracing = trace.TracerProvider()
    for exporter in (
        otlp.FileSpanExporter(stream=written),
        export.ConsoleSpanExporter(out=printed),
    ):
        tracing.add_span_processor(export.SimpleSpanProcessor(exporter))
    if how == "langfuse":
        import_module("langfuse").Langfuse(tracer_provider=tracing)
        return import_module("langfuse.openai").openai, tracing.shutdown
    name = "genai.openai" if how == "official" else "openai"
    instrumentation = import_module(f"opentelemetry.instrumentation.{name}")
    instrumentation.OpenAIInstrumentor().instrument(tracer_provider=tracing)
    return import_module("openai"), tracing.shutdown


def main() -> None:
    """Converse, and write what was traced."""
    how, url, folder = sys.argv[1:]
    files = [Path(folder, name) for name in ("trace", "printed")]
    with files[0].open("w") as written, files[1].open("w") as printed:
        openai, end = traced(how, written, printed)
        converse(openai.OpenAI(base_url=f"{url}/v1", api_key="sk-fake-000000", max_retries=0))
        end()


if __name__ == "__main__":
    main()
