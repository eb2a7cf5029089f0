"""What an application's environment says: proxies, certificates, base URLs, keys.

Nothing secret is shown: of keys the names, of URLs no credentials.
"""

import os
import re
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path

from deltatape.doctor.machine import listens_deltatape
from deltatape.environment.application import GATEWAY as DELTATAPE_URL
from deltatape.environment.application import plan
from deltatape.environment.base_urls import is_listed, sounds_like_base_url
from deltatape.environment.dotenv import Setting, read_dotenv, settings
from deltatape.environment.urls import DEFAULT_PORT, is_deltatape, parse_url
from deltatape.render.doctor import Level, Remark

GATEWAY = f"http://127.0.0.1:{DEFAULT_PORT}"

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
_KEY = re.compile(
    r"(?:^|_)(?:OPENAI|ANTHROPIC|CLAUDE|GEMINI|GOOGLE|OPENROUTER|GROQ|MISTRAL|DEEPSEEK|XAI|COHERE|CO"
    r"|TOGETHER|FIREWORKS|OLLAMA|AZURE|BEDROCK|AWS|HF|NVIDIA|PERPLEXITY|CEREBRAS|LLM|AI)"
    r"(?:_[A-Z0-9]+)*_(?:KEY|TOKEN|SECRET|BEDROCK)(?:_[A-Z]+)?$"
)


def known_settings(folder: Path, environment: Mapping[str, str]) -> Mapping[str, Setting]:
    """What an application started in `folder` gets, from the environment and `.env` files."""
    known, _ = settings(read_dotenv(folder, environment), environment)
    return known


def surroundings_remarks(folder: Path, environment: Mapping[str, str]) -> Iterator[Remark]:
    """Everything about the environment of an application that is started in `folder`."""
    known = known_settings(folder, environment)
    yield from _proxies(environment)
    yield from _certificates(known)
    yield from _base_urls(folder, environment, known)
    yield from _conflicts(known)
    yield _keys(known)


def _proxies(environment: Mapping[str, str]) -> Iterator[Remark]:
    found = {name: environment[name] for name in _PROXIES if environment.get(name)}
    if not found:
        return
    shown = ", ".join(f"{name}={_without_userinfo(url)}" for name, url in found.items())
    excepted = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
    hosts = {host.strip() for host in excepted.split(",")}
    plain = [name for name in found if not name.lower().startswith("https")]
    if not plain or "*" in hosts or {"127.0.0.1", "localhost"} <= hosts:
        yield Remark(level=Level.OK, text=f"{shown}: the way to the providers")
        return
    yield Remark(
        level=Level.NOTE,
        text=f"{shown}: apps also send what is for 127.0.0.1 there, and so past a gateway",
        fix="`deltatape record -- CMD` cares for that; else export"
        " NO_PROXY=127.0.0.1,localhost,::1",
    )


def _without_userinfo(url: str) -> str:
    return _USERINFO.sub(r"\1***@", url)


def _certificates(known: Mapping[str, Setting]) -> Iterator[Remark]:
    right = []
    for name in _CERTIFICATES:
        setting = known.get(name)
        if setting is None or not setting.value:
            continue
        problem = _certificate_problem(Path(setting.value))
        if not problem:
            right.append(name)
            continue
        yield Remark(
            level=Level.PROBLEM,
            text=f"{name}={setting.value} ({setting.where}): {problem}",
            fix=f"name a file of certificates in PEM form, or unset {name}",
        )
    if right:
        yield Remark(level=Level.OK, text=f"certificates that can be read: {', '.join(right)}")


def _certificate_problem(place: Path) -> str:
    """What is wrong with a file or folder of certificates; "" for nothing."""
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
    folder: Path, environment: Mapping[str, str], known: Mapping[str, Setting]
) -> Iterator[Remark]:
    """Where base-URL variables point, and what a recording makes of them."""
    for told in plan(GATEWAY, environment, read_dotenv(folder, environment)).told:
        level = Level.OK if ": taped as /" in told else Level.NOTE
        yield Remark(level=level, text=told)
    gateways = (GATEWAY, environment.get(DELTATAPE_URL, ""))
    for name in sorted(known):
        setting = known[name]
        url = parse_url(name, setting.value.strip()) if setting.value.strip() else None
        if url is None or not (is_listed(name) or sounds_like_base_url(name)):
            continue
        if is_deltatape(url, gateways) and not listens_deltatape(url.origin.port):
            yield Remark(
                level=Level.NOTE,
                text=f"{name} ({setting.where}) points at a deltatape, and none listens there",
                fix="start `deltatape record` first, or unset it for `deltatape record -- CMD`",
            )


def _conflicts(known: Mapping[str, Setting]) -> Iterator[Remark]:
    """Variables that contradict each other."""
    values = {name: setting.value.strip() for name, setting in known.items()}
    if values.get("AZURE_OPENAI_ENDPOINT") and values.get("OPENAI_BASE_URL"):
        yield Remark(
            level=Level.NOTE,
            text="AZURE_OPENAI_ENDPOINT and OPENAI_BASE_URL are both set: AzureOpenAI clients"
            " refuse that",
            fix="unset the one that the app does not use",
        )
    one, other = values.get("OPENAI_BASE_URL"), values.get("OPENAI_API_BASE")
    if one and other and one != other:
        yield Remark(
            level=Level.NOTE,
            text="OPENAI_BASE_URL and OPENAI_API_BASE differ: the openai SDK takes the first,"
            " LangChain and LiteLLM the second",
            fix="unset one of them",
        )


def _keys(known: Mapping[str, Setting]) -> Remark:
    """Which keys there are: without one no provider answers."""
    names = sorted(name for name in known if known[name].value and _KEY.search(name.upper()))
    if not names:
        text = "no provider's key is set, neither in the environment nor in .env files"
        return Remark(level=Level.NOTE, text=text)
    shown = ", ".join(f"{name} ({known[name].where})" for name in names)
    return Remark(level=Level.OK, text=f"keys: {shown}")
