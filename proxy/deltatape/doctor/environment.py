"""Check an application's environment: proxies, certificates, base URLs, keys.

Nothing secret is shown: of keys the names, of URLs no credentials.
"""

import contextlib
import os
import platform
import re
import shutil
import socket
import ssl
import stat
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from deltatape import __version__
from deltatape.doctor.hardcoded import GATEWAY
from deltatape.doctor.programs import git
from deltatape.environment.application import DEFAULT_PORT, is_deltatape, parse_url, plan
from deltatape.environment.application import GATEWAY as DELTATAPE_URL
from deltatape.environment.clients import clients, started_clients
from deltatape.environment.dotenv import ResolvedValue, read_dotenv, settings
from deltatape.environment.variables import is_listed, sounds_like_base_url
from deltatape.providers import PROVIDERS
from deltatape.render.doctor import DoctorRemark, RemarkLevel
from deltatape.render.numbers import size
from deltatape.store.names import DEFAULT_FOLDER

_PROXIES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")
_CERTIFICATES = (
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "AWS_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
)
_USERINFO = re.compile(r"^((?:[a-z0-9+.-]+://)?)[^/]*@", re.IGNORECASE)
_WORDS = (
    *("AI", "LLM"),
    *(word for each in PROVIDERS.values() for word in (*each.words, *each.key_words)),
)
_KEY = re.compile(
    rf"(?:^|_)(?:{'|'.join(_WORDS)})"
    r"(?:_[A-Z0-9]+)*_(?:KEY|TOKEN|SECRET|BEDROCK)(?:_[A-Z]+)?$"
)


def known_settings(folder: Path, environment: Mapping[str, str]) -> Mapping[str, ResolvedValue]:
    """Return the variables of an application started in `folder`, `.env` files included."""
    known, _ = settings(read_dotenv(folder, environment), environment)
    return known


def surroundings_remarks(folder: Path, environment: Mapping[str, str]) -> Iterator[DoctorRemark]:
    """Yield all remarks about the environment of an application started in `folder`."""
    known = known_settings(folder, environment)
    yield from _proxies(environment)
    yield from _certificates(known)
    yield from _base_urls(folder, environment, known)
    yield from _conflicts(known)
    yield _keys(known)


def _proxies(environment: Mapping[str, str]) -> Iterator[DoctorRemark]:
    found = {name: environment[name] for name in _PROXIES if environment.get(name)}
    if not found:
        return
    shown = ", ".join(f"{name}={_without_userinfo(url)}" for name, url in found.items())
    excepted = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
    hosts = {host.strip() for host in excepted.split(",")}
    plain = [name for name in found if not name.lower().startswith("https")]
    if not plain or "*" in hosts or {"127.0.0.1", "localhost"} <= hosts:
        yield DoctorRemark(level=RemarkLevel.OK, text=f"{shown}: the way to the providers")
        return
    yield DoctorRemark(
        level=RemarkLevel.NOTE,
        text=f"{shown}: apps also send what is for 127.0.0.1 there, and so past a gateway",
        fix="`deltatape record -- CMD` sets it right; without it, export"
        " NO_PROXY=127.0.0.1,localhost,::1",
    )


def _without_userinfo(url: str) -> str:
    return _USERINFO.sub(r"\1***@", url)


def _certificates(known: Mapping[str, ResolvedValue]) -> Iterator[DoctorRemark]:
    right = []
    for name in _CERTIFICATES:
        setting = known.get(name)
        if setting is None or not setting.value:
            continue
        problem = _certificate_problem(Path(setting.value))
        if not problem:
            right.append(name)
            continue
        yield DoctorRemark(
            level=RemarkLevel.PROBLEM,
            text=f"{name}={setting.value} ({setting.where}): {problem}",
            fix=f"name a file of certificates in PEM form, or unset {name}",
        )
    if right:
        yield DoctorRemark(
            level=RemarkLevel.OK, text=f"certificates that can be read: {', '.join(right)}"
        )


def _certificate_problem(place: Path) -> str:
    """Return what is wrong with a file or folder of certificates; "" for nothing."""
    try:
        if place.is_dir():
            return "" if any(place.iterdir()) else "the folder is empty"
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cafile=place)
    except ssl.SSLError:
        return "holds no certificate that can be read"
    except OSError as error:
        return os.strerror(error.errno or 0)
    return ""


def _base_urls(
    folder: Path, environment: Mapping[str, str], known: Mapping[str, ResolvedValue]
) -> Iterator[DoctorRemark]:
    """Yield where base-URL variables point, and how to record that."""
    for note in plan(GATEWAY, environment, read_dotenv(folder, environment)).notes:
        level = RemarkLevel.OK if ": taped as /" in note else RemarkLevel.NOTE
        yield DoctorRemark(level=level, text=note)
    gateways = (GATEWAY, environment.get(DELTATAPE_URL, ""))
    for name in sorted(known):
        setting = known[name]
        url = parse_url(name, setting.value.strip()) if setting.value.strip() else None
        if url is None or not (is_listed(name) or sounds_like_base_url(name)):
            continue
        if is_deltatape(url, gateways) and not listens_deltatape(url.origin.port):
            yield DoctorRemark(
                level=RemarkLevel.NOTE,
                text=f"{name} ({setting.where}) points at a deltatape, but none is running there",
                fix="start `deltatape record` first, or unset it for `deltatape record -- CMD`",
            )


def _conflicts(known: Mapping[str, ResolvedValue]) -> Iterator[DoctorRemark]:
    """Yield variables that contradict each other."""
    values = {name: setting.value.strip() for name, setting in known.items()}
    if values.get("AZURE_OPENAI_ENDPOINT") and values.get("OPENAI_BASE_URL"):
        yield DoctorRemark(
            level=RemarkLevel.NOTE,
            text="AZURE_OPENAI_ENDPOINT and OPENAI_BASE_URL are both set: AzureOpenAI clients"
            " refuse that",
            fix="unset the one that the app does not use",
        )
    one, other = values.get("OPENAI_BASE_URL"), values.get("OPENAI_API_BASE")
    if one and other and one != other:
        yield DoctorRemark(
            level=RemarkLevel.NOTE,
            text="OPENAI_BASE_URL and OPENAI_API_BASE differ: the openai SDK takes the first,"
            " LangChain and LiteLLM the second",
            fix="unset one of them",
        )


def _keys(known: Mapping[str, ResolvedValue]) -> DoctorRemark:
    """Report which keys are set: without one no provider answers."""
    names = sorted(name for name in known if known[name].value and _KEY.search(name.upper()))
    if not names:
        text = "no provider's key is set, neither in the environment nor in .env files"
        return DoctorRemark(level=RemarkLevel.NOTE, text=text)
    shown = ", ".join(f"{name} ({known[name].where})" for name in names)
    return DoctorRemark(level=RemarkLevel.OK, text=f"keys: {shown}")


# Known programs that are installed, and what their own files say.


def client_remarks(folder: Path, environment: Mapping[str, str]) -> Iterator[DoctorRemark]:
    """Yield a remark for each known program on the PATH, or for what keeps it from the recorder."""
    path = environment.get("PATH", os.defpath)
    for client in clients():
        command = next((name for name in client.commands if shutil.which(name, path=path)), "")
        if not command:
            continue
        started = started_clients((command,), folder, environment)
        notes = plan(GATEWAY, environment, (), started=started).client_notes
        for note in notes:
            yield DoctorRemark(level=RemarkLevel.NOTE, text=note)
        if not notes:
            text = f"{client.title}: `deltatape record -- {command}` tapes it"
            yield DoctorRemark(level=RemarkLevel.OK, text=text)


# Checks what a recording needs from this machine: versions, the port, a place for tapes.
#
# Changes nothing. The only connection is to loopback.

_ANSWER_S = 1.0
_MAX_READS = 4
_READ_BYTES = 4096
_MIB = 1024 * 1024
_LITTLE = 1024 * _MIB
_TOO_LITTLE = 100 * _MIB
_EXTRAS = (
    ("brotli", "compression", "only needed to read bodies with content-encoding br"),
    ("mitmproxy", "mitm", "only needed for apps that cannot be pointed anywhere"),
)


def machine_remarks(folder: Path) -> Iterator[DoctorRemark]:
    """Yield all remarks about the machine, for a recording started in `folder`."""
    yield DoctorRemark(
        level=RemarkLevel.OK, text=f"deltatape {__version__}, Python {platform.python_version()}"
    )
    yield from (_extra(*each) for each in _EXTRAS)
    yield port_remark(DEFAULT_PORT)
    tapes = folder / DEFAULT_FOLDER
    yield _folder_remark(tapes)
    yield _disk_remark(tapes)
    yield from _git_remarks(folder, tapes)


def _extra(package: str, extra: str, use: str) -> DoctorRemark:
    try:
        return DoctorRemark(level=RemarkLevel.OK, text=f"{package} {version(package)}")
    except PackageNotFoundError:
        text = f"{package} is not installed: {use} (pip install 'deltatape[{extra}]')"
        return DoctorRemark(level=RemarkLevel.OK, text=text)


def port_remark(port: int) -> DoctorRemark:
    """Report whether `deltatape record` can listen on a port of 127.0.0.1, or what does."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            reason = os.strerror(error.errno or 0)
        else:
            return DoctorRemark(level=RemarkLevel.OK, text=f"port {port} is free")
    if listens_deltatape(port):
        return DoctorRemark(
            level=RemarkLevel.NOTE,
            text=f"a deltatape listens on port {port} already",
            fix=f"point the app at http://127.0.0.1:{port}, or record on another port: --listen"
            " 127.0.0.1:0",
        )
    return DoctorRemark(
        level=RemarkLevel.NOTE,
        text=f"port {port} is not available ({reason}), and no deltatape listens there",
        fix="start `deltatape record --listen 127.0.0.1:0`; `deltatape record -- CMD` takes a free"
        " port anyway",
    )


def listens_deltatape(port: int) -> bool:
    """Return whether a deltatape answers on a port of 127.0.0.1.

    The request is one that no gateway forwards, so that it reaches no provider.
    """
    question = b"OPTIONS * HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    answer = b""
    with (
        contextlib.suppress(OSError),
        socket.create_connection(("127.0.0.1", port), _ANSWER_S) as connection,
    ):
        connection.sendall(question)
        for _ in range(_MAX_READS):
            answer += connection.recv(_READ_BYTES)
    return b"\r\nx-deltatape-error:" in answer.lower()


def _folder_remark(tapes: Path) -> DoctorRemark:
    """Report whether tapes can be written."""
    fix = "choose another folder with --to"
    place = tapes
    while not os.path.lexists(place):
        place = place.parent
    if not place.is_dir():
        return DoctorRemark(level=RemarkLevel.PROBLEM, text=f"{place} is not a folder", fix=fix)
    if not os.access(place, os.W_OK | os.X_OK):
        return DoctorRemark(level=RemarkLevel.PROBLEM, text=f"{place} is not writable", fix=fix)
    if place != tapes:
        return DoctorRemark(
            level=RemarkLevel.OK, text=f"tapes go to {tapes}, which is made when needed"
        )
    mode = stat.S_IMODE(place.stat().st_mode)
    if mode & 0o077:
        text = f"{tapes} is open to other users of this machine (mode {mode:o})"
        return DoctorRemark(level=RemarkLevel.NOTE, text=text, fix=f"chmod 700 {tapes}")
    return DoctorRemark(level=RemarkLevel.OK, text=f"tapes go to {tapes}")


def _disk_remark(tapes: Path) -> DoctorRemark:
    place = tapes
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    text = f"{size(free)} free for tapes"
    if free < _TOO_LITTLE:
        return DoctorRemark(
            level=RemarkLevel.PROBLEM, text=text, fix="make room, or choose a folder with --to"
        )
    return DoctorRemark(level=RemarkLevel.NOTE if free < _LITTLE else RemarkLevel.OK, text=text)


def _git_remarks(folder: Path, tapes: Path) -> Iterator[DoctorRemark]:
    """Yield a remark if git would commit tapes with their prompts."""
    inside = git(folder, "rev-parse", "--is-inside-work-tree")
    if not tapes.is_dir() or inside is None or inside.returncode:
        return
    tracked = git(folder, "ls-files", "--", DEFAULT_FOLDER)
    ignored = git(folder, "check-ignore", "--no-index", "--", f"{DEFAULT_FOLDER}/x.tape")
    ignore = ""
    if ignored is None or ignored.returncode:
        ignore = f"echo '*' > {DEFAULT_FOLDER}/.gitignore"
    if tracked is not None and not tracked.returncode and tracked.stdout:
        # Files that are removed from the index but not ignored are added again.
        commands = [f"git rm --cached -r {DEFAULT_FOLDER}", *([ignore] if ignore else [])]
        yield DoctorRemark(
            level=RemarkLevel.PROBLEM,
            text=f"git tracks files in {DEFAULT_FOLDER}: tapes hold prompts and answers",
            fix=f"{' && '.join(commands)}; `deltatape keep` redacts a tape and moves it to"
            " recordings/",
        )
    elif ignore:
        yield DoctorRemark(
            level=RemarkLevel.PROBLEM,
            text=f"git does not ignore {DEFAULT_FOLDER}: tapes hold prompts and answers",
            fix=ignore,
        )
    else:
        yield DoctorRemark(level=RemarkLevel.OK, text=f"git ignores {DEFAULT_FOLDER}")
