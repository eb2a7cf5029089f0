"""What both versions share: the provider's stream, the tool, and the endpoint `POST /api/chat`.

The endpoint answers with server-sent events of the application's own: `text`, `tool_call` (a name
and an object), `tool_result`, and at the end `done` or `error`.
"""

# ruff: noqa: INP001 - programs in a folder, no package
import contextlib
import http.client
import json
import os
import sys
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

Json = dict[str, object]
Events = Callable[[list[Json]], Iterator[Json]]

_STRING, _YES_NO = {"type": "string"}, {"type": "boolean"}
TOOL = {
    "type": "function",
    "function": {
        "name": "get_stock_analysis",
        "description": "Price, grade and trend of a stock.",
        "parameters": {
            "type": "object",
            "properties": {"symbol": _STRING, "include_news": _YES_NO},
            "required": ["symbol"],
        },
    },
}


def get_stock_analysis(symbol: str, *, include_news: bool = False) -> Json:
    """The only tool."""
    news = ["Deliveries above expectations"] if include_news else []
    return {"symbol": symbol, "price": 449.06, "grade": "B", "trend": "bullish", "news": news}


def chunks(messages: list[Json]) -> Iterator[dict[str, list[dict[str, dict[str, object]]]]]:
    """Ask the provider; its chunks."""
    url = urlsplit(os.environ["OPENAI_BASE_URL"])
    body = {"model": "stock-model", "stream": True, "messages": messages, "tools": [TOOL]}
    key = os.environ.get("OPENAI_API_KEY", "no-key")
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=30)
    with contextlib.closing(connection):
        connection.request("POST", f"{url.path}/chat/completions", json.dumps(body), headers)
        for line in connection.getresponse():
            if line.startswith(b"data: ") and not line.startswith(b"data: [DONE]"):
                yield json.loads(line[6:])


def log(text: str) -> None:
    """A line for the operators."""
    sys.stderr.write(f"chat: {text}\n")


def serve(events: Events) -> None:
    """Serve `events` at the port of the first argument, until a signal ends it."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            messages = json.loads(self.rfile.read(length))["messages"]
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            for event in events(messages):
                self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())

        def log_message(self, *_: object) -> None:
            """Nothing: the operators read the other lines."""

    with ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler) as server:
        log("listening")
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()
