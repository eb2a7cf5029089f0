"""Find base URLs of LLM providers in code, where the environment has no effect.

Strategy: every URL in the project's code (`sources`, `literals`) is reported if its host belongs to
a provider, if it is an LLM server on this machine, or if a provider's client is created with it;
not if it is only the default of a variable that `deltatape record -- CMD` sets. Each report says
what to write instead.

Credentials in the quoted code are masked.
"""

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, takewhile
from pathlib import Path
from typing import NamedTuple

from deltatape.doctor.sources import (
    COMPOSE,
    Limits,
    SourceFile,
    SourceFiles,
    UrlLiteral,
    UrlUse,
    is_base_name,
    literals,
)
from deltatape.environment.application import DEFAULT_PORT, ProxyPrefixes, parse_url
from deltatape.environment.variables import (
    ON_DEMAND,
    SERVED,
    TLS_ONLY,
    is_listed,
    may_be_redirected,
    sounds_like_base_url,
)
from deltatape.http1.listener import is_loopback
from deltatape.printable import excerpt
from deltatape.providers import COMPATIBLE, PROVIDERS, UPSTREAMS, provider_of_host

MOST = 200
"""The search stops after this many places."""
_SHOWN = 120
_LEAD = 20
_VISIBLE = 66
"""How much of a line to show, in characters: a narrow terminal has room for it."""
_SERVERS = {each.local_port: name for name, each in PROVIDERS.items() if each.local_port}
_API = re.compile(r"/v1(?:/|\Z)")
_CLASSES = "|".join(each.client for each in PROVIDERS.values() if each.client)
_CLIENTS = re.compile(
    rf"(?P<call>\b(?:(?:Async|Chat|create)?(?:{_CLASSES})\w*"
    r"|init_chat_model|LiteLLM|litellm\.\w+|completion|genai\.Client)\s*\()"
)
_OPENAI_MODULE = re.compile(r"\bopenai\.\w*\Z", re.IGNORECASE)
_WEB_SITES = frozenset(host for each in PROVIDERS.values() for host in each.sites)
"""Hosts with web pages: only URLs that match `_SERVED` are an API there."""
_SERVED = re.compile(r"https?://[^/]*(?:/(?:api|v1)\b.*)?\Z")
_PAGES = re.compile(r"https?://[^/]*/(?:docs|keys|settings|login|signup|playground)\b")
_TEMPLATE = re.compile(r"\.(?:example|sample|template|dist|defaults)\Z")


# What to write instead of a hard-coded base URL, in the file's own language.
#
# Strategy: a program takes the URL from the variable that `deltatape record -- CMD` sets, with the
# URL as its default, so that nothing changes without a recorder. A file that no variable reaches
# gets the gateway's own address for as long as a recording lasts. An address that is no provider's
# usual one is named when recording, where it becomes the upstream. A URL whose requests are signed
# for its host stays unchanged.

GATEWAY = f"http://127.0.0.1:{DEFAULT_PORT}"
"""Where `deltatape record` listens when no command is given."""
RECORD = "deltatape record -- CMD"
VIA_MITM = "deltatape record --via mitm -- CMD"
_CONFIGURATION = frozenset({"yaml", "json", "toml", "ini", "env"})
_ORIGIN = re.compile(r"https?://[^/?#]*")
_ENDPOINT = re.compile(
    r"/(?:chat/completions|responses|completions|embeddings|models|messages|chat)(?:[/?].*)?\Z"
)
_OPENING = re.compile(
    r"""(?P<key>(?:\b[\w.$-]+\s*[=:]\s*)?)(?P<prefix>[rfbuRFBU@$]{0,2})(?P<quote>["'`])\Z"""
)
_IMPORTS_OS = re.compile(r"^\s*import [\w, ]*\bos\b", re.MULTILINE)
_BEFORE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationAdvice:
    """How to route an app's traffic to the recorder. `old`, `new`: the replacement; "" for none."""

    old: str
    new: str
    variable: str
    """What `deltatape record -- CMD` sets, and the new code reads; "" for none."""
    how: str
    """What to do, in a sentence."""


class _Style(NamedTuple):
    """How a language reads variable `v` with default `u`, appends to that, and cuts `s` off."""

    read: str
    plus: str = "{read} + {rest}"
    cut: str = ""


_STYLES: Mapping[str, _Style] = {
    "python": _Style('os.environ.get("{v}", "{u}")', cut='{read}.removesuffix("{s}")'),
    "javascript": _Style(
        "process.env.{v} ?? '{u}'",
        plus="({read}) + {rest}",
        cut="({read}).replace(new RegExp('{s}$'), '')",
    ),
    "go": _Style('cmp.Or(os.Getenv("{v}"), "{u}")'),
    "rust": _Style('std::env::var("{v}").unwrap_or_else(|_| "{u}".into())', plus=""),
    "java": _Style('System.getenv().getOrDefault("{v}", "{u}")'),
    "kotlin": _Style('(System.getenv("{v}") ?: "{u}")'),
    "csharp": _Style('(Environment.GetEnvironmentVariable("{v}") ?? "{u}")'),
    "ruby": _Style('ENV.fetch("{v}", "{u}")'),
    "php": _Style("(getenv('{v}') ?: '{u}')", plus="{read} . {rest}"),
}


class _Split(NamedTuple):
    """A URL, split into the part that a variable replaces and the rest."""

    variable: str
    base: str
    rest: str = ""
    surplus: str = ""
    """The end of the variable's value that the URL lacks: `/v1`."""
    usual: bool = True
    """Whether the variable has this base URL when a recording begins."""


def advise(literal: UrlLiteral, provider: str) -> MigrationAdvice:
    """Return what to do about a URL of `provider` ("" for an unknown one)."""
    if provider in PROVIDERS and PROVIDERS[provider].is_signed:
        how = f"leave it as it is: `{VIA_MITM}` tapes what goes there"
        return MigrationAdvice(old="", new="", variable=literal.variable, how=how)
    if literal.use is UrlUse.DEFAULT:
        return _default(literal)
    if "://" not in literal.url:
        return _bare_host(provider)
    if literal.source.language in _CONFIGURATION:
        return _in_configuration(literal)
    split = _split(literal, provider)
    old, new = _replaced(literal, split)
    return MigrationAdvice(
        old=old, new=new, variable=split.variable, how=_advice_text(literal, split, new)
    )


def _split(literal: UrlLiteral, provider: str) -> _Split:
    plain = literal.url.rstrip("/")
    if literal.source.language in (COMPOSE, "shell") and is_listed(literal.key):
        return _Split(literal.key, plain, usual=is_usual(literal.key, plain))
    if provider in ON_DEMAND:
        variable, origin = next(iter(ON_DEMAND[provider])), _origin(plain)
        return _Split(variable, origin, plain[len(origin) :], usual=False)
    variable, path = next(iter(SERVED.get(provider, SERVED[COMPATIBLE]).items()))
    base = UPSTREAMS.get(provider, "") + path
    if "://localhost" in plain:
        base = base.replace("://127.0.0.1", "://localhost")
    if f"{plain}/".startswith(f"{base}/"):
        return _Split(variable, base, plain[len(base) :])
    if base == f"{plain}/v1":
        return _Split(variable, base, surplus="/v1")
    own = _ENDPOINT.sub("", plain)
    return _Split(variable, own, plain[len(own) :], usual=False)


def is_usual(variable: str, url: str) -> bool:
    """Return whether `deltatape record -- CMD` sets `variable` in place of `url` by default."""
    return any(
        UPSTREAMS[provider] + names[variable] == url.rstrip("/")
        for provider, names in SERVED.items()
        if variable in names
    )


def is_redirected(variable: str, url: str) -> bool:
    """Return whether `deltatape record -- CMD` redirects `variable`, set by the user to `url`."""
    if variable in TLS_ONLY or not may_be_redirected(variable):
        return False
    parsed = parse_url(variable, url)
    known = parsed is not None and ProxyPrefixes(()).has(parsed)
    return known or is_listed(variable) or sounds_like_base_url(variable)


def _origin(url: str) -> str:
    match = _ORIGIN.match(url)
    assert match is not None
    return match[0]


def _advice_text(literal: UrlLiteral, split: _Split, new: str) -> str:
    start = RECORD if split.usual else f"{split.variable}={split.base} {RECORD}"
    if not new:
        without = f", without its {split.surplus}" if split.surplus else ""
        return f"read {split.variable} here{without}; then `{start}` redirects it"
    if literal.source.language == "python" and not _IMPORTS_OS.search(literal.source.text):
        return f"import os; then `{start}` redirects it"
    return f"then `{start}` redirects it"


def _default(literal: UrlLiteral) -> MigrationAdvice:
    variable, url = literal.variable, literal.url
    if not is_redirected(variable, url):
        address, upstream = _through_gateway(url)
        how = (
            f"`{RECORD}` does not set {variable}: start `deltatape record{upstream}`, then the app"
            f" with {variable}={address}"
        )
    elif any(variable in names for names in SERVED.values()):
        how = (
            f"start `{variable}={url} {RECORD}`, or put it into .env: else {variable} will be"
            " another provider's"
        )
    else:
        how = f"start `{variable}={url} {RECORD}`, or put it into .env: else this goes past"
    return MigrationAdvice(old="", new="", variable=variable, how=how)


def _bare_host(provider: str) -> MigrationAdvice:
    variable = next(iter({**SERVED, **ON_DEMAND}.get(provider, SERVED[COMPATIBLE])))
    how = f"take scheme, host and port from {variable}; then `{RECORD}` redirects it"
    return MigrationAdvice(old="", new="", variable=variable, how=how)


def _in_configuration(literal: UrlLiteral) -> MigrationAdvice:
    address, upstream = _through_gateway(literal.url)
    how = f"while `deltatape record{upstream}` runs"
    return MigrationAdvice(old=literal.url, new=address, variable="", how=how)


def _through_gateway(url: str) -> tuple[str, str]:
    """Return the URL through the gateway at its default address, and the option that this needs."""
    parsed = parse_url("", url)
    if parsed is None or "{" in url:  # a template
        return f"{GATEWAY}/NAME{url[len(_origin(url)) :]}", f" --upstream NAME={_origin(url)}"
    prefixes = ProxyPrefixes(())
    prefix, rest = prefixes.split(parsed)
    upstream = "".join(f" --upstream {each}" for each in prefixes.added)
    return f"{GATEWAY}/{prefix}{rest}", upstream


def _replaced(literal: UrlLiteral, split: _Split) -> tuple[str, str]:
    """Return the old and the new code; "" and "" if no replacement is known to be right."""
    if literal.source.language in (COMPOSE, "shell"):
        return _substituted(literal, split)
    text, start = literal.source.text, literal.start
    style = _STYLES[literal.source.language]
    opening = _OPENING.search(text[max(0, start - _BEFORE) : start])
    if opening is None or (split.surplus and not style.cut):
        return "", ""
    quote = opening["quote"]
    closing = re.compile(rf"(?:\\.|[^\\\n])*?(?={quote})").match(text, start)
    if closing is None:
        return "", ""
    rest = closing[0][len(split.base) - len(split.surplus) :]
    new = style.read.format(v=split.variable, u=split.base)
    if split.surplus:
        new = style.cut.format(read=new, s=split.surplus)
    if rest.strip("/"):
        new = style.plus.format(read=new, rest=f"{opening['prefix']}{quote}{rest}{quote}")
    return (opening[0] + closing[0] + quote, opening["key"] + new) if new else ("", "")


def _substituted(literal: UrlLiteral, split: _Split) -> tuple[str, str]:
    """Return the replacement for shells and Compose files, which expand variables within texts."""
    if split.surplus:
        return "", ""
    new = f"${{{split.variable}:-{split.base}}}"
    if literal.source.language == "shell" and literal.before.endswith("'"):
        new = f"'\"{new}\"'"  # outside of the single quotes, where nothing is expanded
    return literal.url, new + split.rest


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
    use: UrlUse
    test: bool
    """Whether it is in a test."""
    variable: str
    """The environment variable that overrides it; "" for none."""
    advice: MigrationAdvice

    @property
    def certain(self) -> bool:
        """Return whether the application sends requests there, judging by the surrounding code."""
        return self.use is UrlUse.SENT_TO and not self.test


@dataclass(frozen=True, slots=True, kw_only=True)
class HardcodedSearch:
    """The findings, certain ones first, and how far the search went."""

    found: tuple[Hardcoded, ...]
    files: int
    stopped: str
    """"" if everything was read, else where the search stopped: `after 5000 files`."""


def find(folder: Path, limits: Limits, known: Container[str] = ()) -> HardcodedSearch:
    """Return the hard-coded base URLs of the project in `folder`.

    Args:
        folder: the project.
        limits: how much is read.
        known: variables that the user has set, in the environment or in `.env` files.
    """
    sources = SourceFiles(folder, limits)
    finds = (
        _hardcoded(literal, provider)
        for source in sources
        for literal in _until_over(sources, source)
        if (provider := _provider(literal)) is not None and not _is_reached(literal, known)
    )
    found = list(islice(finds, MOST))
    if len(found) == MOST:
        sources.stopped = f"after {MOST} places"
    return HardcodedSearch(found=_sorted(found), files=sources.read, stopped=sources.stopped)


def places_of_host(folder: Path, host: str, limits: Limits) -> tuple[Hardcoded, ...]:
    """Return where the project in `folder` names a host, the likeliest place first.

    `host` may have a port, which then counts. Includes defaults of variables and unknown hosts: a
    request went there, so its source is wanted.
    """
    wanted = host.lower()
    named = _without_port(wanted)
    sources = SourceFiles(folder, limits)
    places = (
        _hardcoded(literal, _provider(literal) or "")
        for source in sources
        if named in source.text.lower()
        for literal in _until_over(sources, source)
        if wanted in (literal.host, _without_port(literal.host))
    )
    return _sorted(islice(places, MOST))


def _until_over(sources: SourceFiles, source: SourceFile) -> Iterator[UrlLiteral]:
    return takewhile(lambda _: not sources.is_over(), literals(source))


def _sorted(found: Iterable[Hardcoded]) -> tuple[Hardcoded, ...]:
    return tuple(sorted(found, key=lambda e: (not e.certain, e.path, e.line, e.column)))


def _is_reached(literal: UrlLiteral, known: Container[str]) -> bool:
    """Return whether `deltatape record -- CMD` redirects it through its environment variable."""
    variable = literal.variable
    if not variable:
        return False
    if literal.source.language == "env" and _TEMPLATE.search(literal.source.path):
        return True  # nothing reads it
    if literal.source.language == "env" or variable in known:
        return is_redirected(variable, literal.url)
    return is_usual(variable, literal.url)


def _provider(literal: UrlLiteral) -> str | None:
    """Return the URL's provider; "" if unknown, None if it is not about LLMs."""
    host = _without_port(literal.host)
    if is_loopback(host):
        return _local(literal)
    provider = provider_of_host(host)
    if provider is None:
        return "" if is_base_name(literal.key) and _made_with(literal) else None
    if "://" not in literal.url:
        return provider if literal.use is UrlUse.SENT_TO else None
    if host in _WEB_SITES and not _SERVED.match(literal.url.rstrip("/")):
        return None
    return None if _PAGES.match(literal.url) else provider


def _local(literal: UrlLiteral) -> str | None:
    """Return the local LLM server of this port; "" if only the URL's use tells, None if nothing."""
    port = literal.host.rpartition(":")[2]
    if port == str(DEFAULT_PORT) or "://" not in literal.url:
        return None
    if port in _SERVERS:
        return _SERVERS[port]
    is_api = _API.search(literal.url) is not None and is_base_name(literal.key)
    return "" if is_api or (is_base_name(literal.key) and _made_with(literal)) else None


def _made_with(literal: UrlLiteral) -> bool:
    """Return whether it is an argument of a provider's client, or set on the provider's module."""
    if _OPENAI_MODULE.search(literal.key):
        return True
    return any(
        _is_open(literal.before[match.end() :]) for match in _CLIENTS.finditer(literal.before)
    )


def _is_open(arguments: str) -> bool:
    """Return whether the parenthesis before `arguments` is not closed in them."""
    depth = 1
    for character in arguments:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0:
            return False
    return True


def _without_port(host: str) -> str:
    return re.sub(r":[0-9]*\Z", "", host)


def _hardcoded(literal: UrlLiteral, provider: str) -> Hardcoded:
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


def _without_credentials(advice: MigrationAdvice) -> MigrationAdvice:
    return MigrationAdvice(
        old=conceal(advice.old),
        new=conceal(advice.new),
        variable=advice.variable,
        how=conceal(advice.how),
    )


def _shown_line(literal: UrlLiteral, column: int) -> str:
    """Return the line with the URL; of a long line the part around it."""
    text, start = literal.source.text, literal.start
    end = text.find("\n", start)
    # Masked before it is cut: a credential may be recognised only by the name before it.
    shown = conceal(text[start - column : len(text) if end < 0 else end].strip())
    url = conceal(literal.url)
    at = shown.find(url)
    if at + len(url) > _VISIBLE:
        shown = f"...{shown[max(0, at - _LEAD) :]}"
    return excerpt(shown, _SHOWN)


# Masks credentials in code that is shown.
#
# Loose on purpose: masking too much does no harm, since the user has the code.

HIDDEN = "***"
_USERINFO = re.compile(r"(?<=://)[^/\s\"'@]+(?=@)")
_NAMED = re.compile(
    r"""(?P<name>[\w-]*(?:key|token|secret|passw(?:or)?d|authorization)["']?\s*(?:=>|:=|[=:])\s*
        (?:[rfbu](?=["'`]))?(?P<quote>["'`]?)(?:Bearer\s+)?)(?P<value>[^\s"'`,;)}&]{4,})""",
    re.IGNORECASE | re.VERBOSE,
)
_SHAPED = re.compile(
    r"\b(?:sk|pk|rk|gsk|xai|pplx|hf|r8|nvapi|csk|fw|tgp|ghp|github_pat|dapi)[-_][A-Za-z0-9_-]{6,}"
    r"|\bAIza[\w-]{8,}|\b(?:AKIA|ASIA|ABSK)[A-Za-z0-9+/=]{8,}|\bey[\w-]{12,}\.[\w-]{4,}[\w.-]*"
)
_READ = re.compile(r"[\w.]*(?:env|ENV|config|settings|args|self|this|os)\b[\w.\[(]*")


def conceal(text: str) -> str:
    """Replace what looks like a credential, or is named one, in `text` by `***`."""
    text = _USERINFO.sub(HIDDEN, text)
    text = _NAMED.sub(_hidden, text)
    return _SHAPED.sub(HIDDEN, text)


def _hidden(match: re.Match[str]) -> str:
    """Keep an expression that reads a credential from elsewhere; mask all others."""
    if not match["quote"] and _READ.match(match["value"]):
        return match[0]
    return f"{match['name']}{HIDDEN}"
