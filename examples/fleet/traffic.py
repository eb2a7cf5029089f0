"""A provider with some defects, and apps that call it; a conversation's number decides which."""

# ruff: noqa: INP001, PLR2004, TID251 - a program in a folder
import http.client
import json
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

BETWEEN_EVENTS_S = 0.05
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city"],
        },
    },
}


def defect(number: int) -> str:
    """Return what goes wrong in a conversation."""
    return {
        3: "the arguments end too early",
        5: "the arguments do not fit the schema",
        7: "the stream is cut",
        9: "the app loses the call",
    }.get(number % 12, "")


def reply(number: int, *, calls: bool) -> list[dict[str, Any]]:
    """Return the deltas of a reply: a tool call, or a text."""
    if not calls:
        return [{"role": "assistant"}, {"content": "It is "}, {"content": "7 °C."}]
    arguments = ['{"city":', '"Oslo"', "}"]
    if defect(number).endswith("too early"):
        arguments = arguments[:2]
    if defect(number).endswith("schema"):
        arguments = ['{"city":', '"Oslo",', '"days":"two"}']
    call = {"index": 0, "id": f"call_{number}", "type": "function"}
    named = {**call, "function": {"name": "get_weather", "arguments": ""}}
    parts = [{"index": 0, "function": {"arguments": each}} for each in arguments]
    return [
        {"role": "assistant", "content": "Let me look."},
        *({"tool_calls": [each]} for each in (named, *parts)),
    ]


class Provider(BaseHTTPRequestHandler):
    """Answers Chat Completions as a stream."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        messages = request["messages"]
        number = int(re.findall(r"\d+", messages[0]["content"])[0])
        calls = len(messages) == 1
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for delta in reply(number, calls=calls):
            self._event(number, request["model"], delta, None)
            time.sleep(BETWEEN_EVENTS_S)
        if not calls and defect(number) == "the stream is cut":
            self.close_connection = True
            return
        self._event(number, request["model"], {}, "tool_calls" if calls else "stop")
        self._chunk(b"data: [DONE]\n\n")
        self._chunk(b"")

    def _event(self, number: int, model: str, delta: dict[str, Any], finish: str | None) -> None:
        event = {
            "id": f"chatcmpl-{number}",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": model,
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        }
        self._chunk(b"data: %b\n\n" % json.dumps(event).encode())

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def log_message(self, *_: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    """Serves many at once."""

    request_queue_size = 128
    daemon_threads = True


class Apps:
    """Apps that hold conversations of two exchanges, each in a thread, until `stop`."""

    def __init__(self, port: int, apps: int) -> None:
        self._port = port
        self._number = 0
        self._over = False
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._work) for _ in range(apps)]
        self.whole = 0
        """Streams that came as the provider sent them, to their ends."""
        self.cut = 0
        """Streams that the provider cut, and that came as cut."""
        self.failed: list[str] = []
        """Everything else."""

    @property
    def exchanges(self) -> int:
        return self.whole + self.cut

    def start(self) -> None:
        for each in self._threads:
            each.start()

    def stop(self) -> None:
        """Begin no conversation any more, and wait for those that go on."""
        self._over = True
        for each in self._threads:
            each.join()

    def _work(self) -> None:
        while not self._over:
            with self._lock:
                self._number += 1
                number = self._number
            try:
                self._converse(number)
            except (OSError, http.client.HTTPException, AssertionError) as error:
                with self._lock:
                    self.failed.append(f"conversation {number}: {error!r}")

    def _converse(self, number: int) -> None:
        question = {"role": "user", "content": f"Conversation {number}: the weather in Oslo?"}
        self._ask(number, [question])
        said: dict[str, Any] = {"role": "assistant", "content": "Let me look."}
        if defect(number) == "the app loses the call":
            self._ask(number, [question, said, {"role": "user", "content": "And?"}])
            return
        arguments = "".join(
            delta["tool_calls"][0]["function"]["arguments"]
            for delta in reply(number, calls=True)
            if "tool_calls" in delta
        )
        function = {"name": "get_weather", "arguments": arguments}
        said["tool_calls"] = [{"id": f"call_{number}", "type": "function", "function": function}]
        result = {"role": "tool", "tool_call_id": f"call_{number}", "content": "7"}
        self._ask(number, [question, said, result])

    def _ask(self, number: int, messages: list[dict[str, Any]]) -> None:
        """Send a request, and read the stream to its end; nothing is tried twice."""
        loses = defect(number) == "the app loses the call"
        model = ("model-large", "model-small")[number // 12 % 2]
        request = {"model": model, "stream": True, "messages": messages, "tools": [TOOL]}
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"assistant/{'1.1' if loses else '1.0'}",
        }
        connection.request("POST", "/v1/chat/completions", json.dumps(request), headers)
        answer = connection.getresponse()
        assert answer.status == 200, answer.status
        to_be_cut = len(messages) > 1 and defect(number) == "the stream is cut"
        try:
            body, cut = answer.read(), False
        except http.client.IncompleteRead as error:
            body, cut = error.partial, True
        connection.close()
        calls = len(messages) == 1
        assert body.count(b'"delta"') == len(reply(number, calls=calls)) + (not to_be_cut)
        assert cut is to_be_cut
        with self._lock:
            self.cut += cut
            self.whole += not cut
