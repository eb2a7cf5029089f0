"""The page, as a program: asks the endpoint of the first argument, prints what it gets.

python page.py http://127.0.0.1:8387 "Analyze TSLA"
"""

# ruff: noqa: INP001 - a program
import http.client
import json
import sys
from urllib.parse import urlsplit


def main() -> int:
    """Ask; 0 if the answer came to its end."""
    url = urlsplit(sys.argv[1])
    connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=30)
    body = json.dumps({"messages": [{"role": "user", "content": sys.argv[2]}], "stream": True})
    connection.request("POST", "/api/chat", body, {"Content-Type": "application/json"})
    last = None
    for line in connection.getresponse():
        if line.startswith(b"data: "):
            sys.stdout.write(line[6:].decode())
            last = json.loads(line[6:])["type"]
    connection.close()
    if last not in {"done", "error"}:
        sys.stdout.write(f"the connection closed after {last!r}\n")
    return 0 if last == "done" else 1


if __name__ == "__main__":
    sys.exit(main())
