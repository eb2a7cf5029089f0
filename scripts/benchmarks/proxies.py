"""The proxies that are compared: how each is started, and what has to be there for it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.played import small_answers, write_tape
from benchmarks.traffic import PATH
from deltatape import __version__

SCRIPTS = Path(__file__).resolve().parent.parent
ROOT = SCRIPTS.parent
DIRECT = "direct"
YARDSTICK = "nginx"
BARE = "bare asyncio"
OURS = "deltatape"

_MITM = ROOT / ".venv-mitm" / "bin"
_SYSTEM_PATH = ("/usr/sbin", "/usr/local/sbin")
"""Where nginx lies on Debian, which is not on everybody's PATH."""

_NGINX_CONF = """\
worker_processes 1;
daemon off;
pid nginx.pid;
events {{ worker_connections 8192; multi_accept on; }}
http {{
  access_log off;
  tcp_nodelay on;
  keepalive_requests 1000000;
  client_max_body_size 0;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  upstream provider {{
    server 127.0.0.1:{provider};
    keepalive 2000; keepalive_requests 1000000;
  }}
  server {{
    listen 127.0.0.1:{listen} backlog=4096;
    {certificate}
    location / {{
      proxy_pass {scheme}://provider;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
      proxy_request_buffering off;
      proxy_read_timeout 600s;
    }}
  }}
}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """Where to forward to.

    Attributes:
        provider: the port of the provider itself.
        port: to forward to.
        ca: who vouches for it; None: without TLS.
    """

    provider: int
    port: int
    ca: Path | None = None

    @property
    def url(self) -> str:
        """The base URL."""
        return f"{'https' if self.ca else 'http'}://127.0.0.1:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a proxy stands.

    Attributes:
        port: where it has to listen.
        upstream: where to forward to.
        folder: its own; gone after the run.
        timed: whether the turns of its event loop are counted.
    """

    port: int
    upstream: Upstream
    folder: Path
    timed: bool = False

    @property
    def tapes(self) -> Path:
        """The folder for tapes."""
        return self.folder / "tapes"

    @property
    def turns(self) -> Path:
        """Where they are."""
        return self.folder / "turns"

    def python(self) -> list[str | Path]:
        """What begins the command of a program in Python."""
        timed = (SCRIPTS / "benchmarks" / "timed_loop.py", self.turns) if self.timed else ()
        return [sys.executable, *timed]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxy:
    """One way to the provider.

    Attributes:
        name: in the tables and on the command line.
        what: it is, for the page.
        program: that has to be there; None where nothing has.
        target: of `scripts/setup` that brings it.
        command: starts it; None where clients go to the provider themselves.
        version: the words of a command that tells it.
        tapes: whether it writes a tape, which is read after the run.
        scenarios: the names of those that it can take part in; (): all.
        path: at which it answers.
    """

    name: str
    what: str
    program: Callable[[], Path | None] = lambda: Path(sys.executable)
    target: str = ""
    command: Callable[[Place], list[str | Path]] | None = None
    version: Callable[[], str] = lambda: ""
    tapes: bool = False
    scenarios: tuple[str, ...] = ()
    path: str = PATH


def environment(place: Place) -> Mapping[str, str]:
    """What a proxy's process finds beside the environment of this one."""
    return {"XDG_STATE_HOME": str(place.folder / "state"), "HOME": str(place.folder)}


def find_nginx() -> Path | None:
    """The program, if it is installed."""
    path = os.pathsep.join((os.environ.get("PATH", ""), *_SYSTEM_PATH))
    found = shutil.which("nginx", path=path)
    return Path(found) if found else None


def _nginx(place: Place) -> list[str | Path]:
    conf = place.folder / "nginx.conf"
    upstream = place.upstream
    scheme = "https" if upstream.ca else "http"
    conf.write_text(
        _NGINX_CONF.format(listen=place.port, certificate="", provider=upstream.port, scheme=scheme)
    )
    return _nginx_command(place.folder)


def _nginx_command(folder: Path) -> list[str | Path]:
    program = find_nginx()
    assert program is not None
    return [program, "-p", folder, "-e", folder / "error.log", "-c", folder / "nginx.conf"]


def nginx_with_tls(folder: Path, port: int, provider: int, certificate: Path) -> list[str | Path]:
    """The command of an nginx in `folder` that decrypts, in front of the provider."""
    shown = f"ssl_certificate {certificate}; ssl_certificate_key {certificate};"
    (folder / "nginx.conf").write_text(
        _NGINX_CONF.format(
            listen=f"{port} ssl", certificate=shown, provider=provider, scheme="http"
        )
    )
    return _nginx_command(folder)


def _nginx_version() -> str:
    return f"nginx {_output_of(find_nginx(), '-v').rpartition('/')[2]}"


def _record(place: Place) -> list[str | Path]:
    return [
        *(*place.python(), "-m", "deltatape", "record", "--listen", f"127.0.0.1:{place.port}"),
        *("--upstream", place.upstream.url, "--to", place.tapes),
        *("--durability", "exchange"),
        *(("--ca", place.upstream.ca) if place.upstream.ca else ()),
    ]


def _bare(place: Place) -> list[str | Path]:
    ports = ("--port", str(place.port), "--upstream", str(place.upstream.port))
    return [*place.python(), SCRIPTS / "benchmarks" / "bare_proxy.py", *ports]


def _replay(place: Place) -> list[str | Path]:
    tape = write_tape(place.folder / "answers.tape", small_answers())
    return [
        *(sys.executable, "-m", "deltatape", "replay", tape, "--repeat", "--speed", "instant"),
        *("--listen", f"127.0.0.1:{place.port}"),
    ]


def find_mitmdump() -> Path | None:
    """The program, if `scripts/setup mitm` has installed it."""
    program = _MITM / "mitmdump"
    return program if program.exists() else None


def _mitmdump(place: Place) -> list[str | Path]:
    return [
        *(_MITM / "mitmdump", "-q", "--mode", f"reverse:{place.upstream.url}"),
        *("--listen-host", "127.0.0.1", "-p", str(place.port)),
        *("--set", f"confdir={place.folder / 'mitmproxy'}", "--set", "stream_large_bodies=1"),
    ]


def _mitm(place: Place) -> list[str | Path]:
    return [
        *(_MITM / "python", "-m", "deltatape", "mitm", "--listen", f"127.0.0.1:{place.port}"),
        *("--upstream", place.upstream.url, "--to", place.tapes),
    ]


def _mitmdump_version() -> str:
    output = _output_of(find_mitmdump(), "--version").splitlines()
    return "mitmproxy " + ", ".join(line.partition(":")[2].strip() for line in output[:1])


def _output_of(program: Path | None, option: str) -> str:
    if program is None:
        return ""
    result = subprocess.run(
        [str(program), option],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )
    return result.stdout.strip()


PROXIES = (
    Proxy(name=DIRECT, what="no proxy: what provider, clients and machine cost by themselves"),
    Proxy(
        name=YARDSTICK,
        what="one worker, `proxy_buffering off`, kept upstream connections; records nothing",
        program=find_nginx,
        target="bench",
        command=_nginx,
        version=_nginx_version,
    ),
    Proxy(
        name=OURS,
        what="`deltatape record --upstream URL --durability exchange`: taping, masking, checking",
        command=_record,
        version=lambda: f"deltatape {__version__}",
        tapes=True,
    ),
    Proxy(
        name=BARE,
        what="what an asyncio program costs that only passes bytes on: it looks at none of them",
        command=_bare,
    ),
    Proxy(
        name="deltatape-replay",
        what=(
            "`deltatape replay TAPE --repeat --speed instant`, no proxy: the provider's answer is"
            " on a tape"
        ),
        command=_replay,
        scenarios=("requests",),
    ),
    Proxy(
        name="mitmdump",
        what="reverse mode as it comes, with `stream_large_bodies=1`; records nothing",
        program=find_mitmdump,
        target="mitm",
        command=_mitmdump,
        version=_mitmdump_version,
    ),
    Proxy(
        name="deltatape-mitm",
        what="`deltatape mitm --upstream URL`: mitmdump with the addon, taping and checking",
        program=find_mitmdump,
        target="mitm",
        command=_mitm,
        tapes=True,
    ),
)
"""Every proxy, in the order of the tables and of each round."""
