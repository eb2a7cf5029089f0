"""Base URLs of LLM providers that are written into a project, where the environment cannot reach.

Strategy: every URL in the project's code is looked at (`sources`, `literals`); it is a find when
its host belongs to a provider, when it is an LLM server on this machine, or when a provider's
client is made with it. A URL that is only the default of a variable which `deltatape record -- CMD`
sets is none. Each find comes with what to write instead (`advice`).

What is shown of a project's code has its credentials left out.
"""

import re
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, takewhile
from pathlib import Path

from deltatape.doctor.advice import Advice, advise, is_redirected, is_usual
from deltatape.doctor.concealed import conceal
from deltatape.doctor.literals import Literal, Use, is_base_name, literals
from deltatape.doctor.sources import Limits, Source, Sources
from deltatape.environment.urls import DEFAULT_PORT
from deltatape.gateway.llm_hosts import provider_of_host
from deltatape.http1.listener import is_loopback
from deltatape.rules.evidence import excerpt

MOST = 200
"""Places after which a search stops: more tell nothing more."""

_SHOWN = 120
_LEAD = 20
_VISIBLE = 66
"""Characters of a line that are seen on a narrow terminal."""
_SERVERS = {"11434": "ollama", "1234": "lmstudio"}
"""Ports that nothing but an LLM server uses."""
_API = re.compile(r"/v1(?:/|\Z)")
_CLIENTS = re.compile(
    r"(?P<call>\b(?:(?:Async|Chat|create)?(?:OpenAI|Anthropic|Groq|Mistral|Cohere|Ollama|DeepSeek)\w*"
    r"|init_chat_model|LiteLLM|litellm\.\w+|completion|genai\.Client)\s*\()"
)
_OPENAI_MODULE = re.compile(r"\bopenai\.\w*\Z", re.IGNORECASE)
_WEB_SITES = frozenset({"openrouter.ai", "ollama.com"})
"""Hosts that people visit, too; there only `_SERVED` is the API."""
_SERVED = re.compile(r"https?://[^/]*(?:/(?:api|v1)\b.*)?\Z")
_PAGES = re.compile(r"https?://[^/]*/(?:docs|keys|settings|login|signup|playground)\b")
_TEMPLATE = re.compile(r"\.(?:example|sample|template|dist|defaults)\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardcoded:
    """A base URL in a project's code."""

    path: str
    """Relative to the folder that was searched, with `/`."""
    line: int
    column: int
    code: str
    """The line: escaped, shortened, without credentials."""
    provider: str
    """Such as `openrouter`; "" for an address that is no known provider's."""
    host: str
    url: str
    use: Use
    test: bool
    """Whether it is a test's."""
    variable: str
    """The variable of the environment that goes before it; "" for none."""
    advice: Advice

    @property
    def certain(self) -> bool:
        """Whether the application sends requests there, as far as the code around tells."""
        return self.use is Use.SENT_TO and not self.test


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What was found, the certain ones first, and how far the search went."""

    found: tuple[Hardcoded, ...]
    files: int
    stopped: str
    """"" when everything was read, else why not: `after 5000 files`."""


def find(folder: Path, limits: Limits, known: Container[str] = ()) -> Search:
    """The hard-coded base URLs of the project in `folder`.

    Args:
        folder: the project.
        limits: how much is read.
        known: variables that the user has set, in the environment or in `.env` files.
    """
    sources = Sources(folder, limits)
    finds = (
        _hardcoded(literal, provider)
        for source in sources
        for literal in _until_over(sources, source)
        if (provider := _provider(literal)) is not None and not _is_reached(literal, known)
    )
    found = list(islice(finds, MOST))
    if len(found) == MOST:
        sources.stopped = f"after {MOST} places"
    return Search(found=_sorted(found), files=sources.read, stopped=sources.stopped)


def places_of_host(folder: Path, host: str, limits: Limits) -> tuple[Hardcoded, ...]:
    """Where the project in `folder` names a host, the likeliest place first.

    `host` may have a port, which then counts. Also defaults of variables and hosts of no known
    provider: a request went there, so the place that says so is wanted.
    """
    wanted = host.lower()
    named = _without_port(wanted)
    sources = Sources(folder, limits)
    places = (
        _hardcoded(literal, _provider(literal) or "")
        for source in sources
        if named in source.text.lower()
        for literal in _until_over(sources, source)
        if wanted in (literal.host, _without_port(literal.host))
    )
    return _sorted(islice(places, MOST))


def _until_over(sources: Sources, source: Source) -> Iterator[Literal]:
    return takewhile(lambda _: not sources.is_over(), literals(source))


def _sorted(found: Iterable[Hardcoded]) -> tuple[Hardcoded, ...]:
    return tuple(sorted(found, key=lambda e: (not e.certain, e.path, e.line, e.column)))


def _is_reached(literal: Literal, known: Container[str]) -> bool:
    """Whether `deltatape record -- CMD` redirects it by the variable that goes before it."""
    variable = literal.variable
    if not variable:
        return False
    if literal.source.language == "env" and _TEMPLATE.search(literal.source.path):
        return True  # nothing reads it
    if literal.source.language == "env" or variable in known:
        return is_redirected(variable, literal.url)
    return is_usual(variable, literal.url)


def _provider(literal: Literal) -> str | None:
    """Whose URL it is; "" for nobody's that is known, None if it is no LLM's at all."""
    host = _without_port(literal.host)
    if is_loopback(host):
        return _local(literal)
    provider = provider_of_host(host)
    if provider is None:
        return "" if is_base_name(literal.key) and _made_with(literal) else None
    if "://" not in literal.url:
        return provider if literal.use is Use.SENT_TO else None
    if host in _WEB_SITES and not _SERVED.match(literal.url.rstrip("/")):
        return None
    return None if _PAGES.match(literal.url) else provider


def _local(literal: Literal) -> str | None:
    """An LLM server on this machine: known by its port, or by what the URL is given to."""
    port = literal.host.rpartition(":")[2]
    if port == str(DEFAULT_PORT) or "://" not in literal.url:
        return None
    if port in _SERVERS:
        return _SERVERS[port]
    is_api = _API.search(literal.url) is not None and is_base_name(literal.key)
    return "" if is_api or (is_base_name(literal.key) and _made_with(literal)) else None


def _made_with(literal: Literal) -> bool:
    """Whether it is an argument of a provider's client that is made here, or set on its module."""
    if _OPENAI_MODULE.search(literal.key):
        return True
    return any(
        _is_open(literal.before[match.end() :]) for match in _CLIENTS.finditer(literal.before)
    )


def _is_open(arguments: str) -> bool:
    """Whether the parenthesis before `arguments` is closed nowhere in them."""
    depth = 1
    for character in arguments:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0:
            return False
    return True


def _without_port(host: str) -> str:
    return re.sub(r":[0-9]*\Z", "", host)


def _hardcoded(literal: Literal, provider: str) -> Hardcoded:
    source = literal.source
    line, column = source.place(literal.start)
    return Hardcoded(
        path=source.path,
        line=line,
        column=column,
        code=_shown_line(literal, column - 1),
        provider=provider,
        host=literal.host,
        url=conceal(literal.url),
        use=literal.use,
        test=source.is_test,
        variable=literal.variable,
        advice=_without_credentials(advise(literal, provider)),
    )


def _without_credentials(advice: Advice) -> Advice:
    return Advice(
        old=conceal(advice.old),
        new=conceal(advice.new),
        variable=advice.variable,
        how=conceal(advice.how),
    )


def _shown_line(literal: Literal, column: int) -> str:
    """The line with the URL; where that stands far right, what is around it."""
    text, start = literal.source.text, literal.start
    end = text.find("\n", start)
    # Concealed as a whole: cut first, a credential could lose the name that tells it.
    shown = conceal(text[start - column : len(text) if end < 0 else end].strip())
    url = conceal(literal.url)
    at = shown.find(url)
    if at + len(url) > _VISIBLE:
        shown = f"...{shown[max(0, at - _LEAD) :]}"
    return excerpt(shown, _SHOWN)
