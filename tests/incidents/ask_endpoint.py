"""A program: starts the endpoint of an application on a free port, and asks it as the page does.

argv: the application, what to ask. Ends with the page's exit code, and with the endpoint.
"""

import socket
import subprocess
import sys
from pathlib import Path

LIMIT_S = 20


def main() -> int:
    """Start, ask, end."""
    app, question = sys.argv[1:]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    with subprocess.Popen([sys.executable, app, port], stderr=subprocess.PIPE) as endpoint:
        try:
            assert endpoint.stderr is not None
            endpoint.stderr.readline()  # it listens
            page = [sys.executable, str(Path(app).with_name("page.py")), f"http://127.0.0.1:{port}"]
            return subprocess.run([*page, question], timeout=LIMIT_S, check=False).returncode
        finally:
            endpoint.kill()


if __name__ == "__main__":
    sys.exit(main())
