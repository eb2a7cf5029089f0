"""What to write instead of a hard-coded base URL, in the file's own language.

Strategy: a program takes the URL from the variable that `deltatape record -- CMD` sets, with the
URL as its default, so that nothing changes without a recorder. A file that no variable reaches
gets the gateway's own address for as long as a recording lasts. An address that is no provider's
usual one is named when recording, where it becomes the upstream. Bedrock is left at its host, for
which requests are signed.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from deltatape.doctor.literals import Literal, Use
from deltatape.doctor.sources import COMPOSE
from deltatape.environment.base_urls import (
    ON_DEMAND,
    SERVED,
    TLS_ONLY,
    is_listed,
    may_be_redirected,
    sounds_like_base_url,
)
from deltatape.environment.urls import DEFAULT_PORT, Prefixes, parse_url
from deltatape.gateway.routes import PROVIDERS

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
class Advice:
    """How to bring an app's traffic to the recorder. `old`, `new`: what to replace; "" for none."""

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
    """A URL as what a variable stands for, and the rest."""

    variable: str
    base: str
    rest: str = ""
    surplus: str = ""
    """What the variable's value has at its end, and the URL has not."""
    usual: bool = True
    """Whether the variable stands for this base URL when a recording begins."""


def advise(literal: Literal, provider: str) -> Advice:
    """What to do about a URL of `provider` ("" for an unknown one)."""
    if provider == "bedrock":
        how = f"leave it as it is: `{VIA_MITM}` tapes what goes there"
        return Advice(old="", new="", variable=literal.variable, how=how)
    if literal.use is Use.DEFAULT:
        return _default(literal)
    if "://" not in literal.url:
        return _bare_host(provider)
    if literal.source.language in _CONFIGURATION:
        return _in_configuration(literal)
    split = _split(literal, provider)
    old, new = _replaced(literal, split)
    return Advice(old=old, new=new, variable=split.variable, how=_how(literal, split, new))


def _split(literal: Literal, provider: str) -> _Split:
    plain = literal.url.rstrip("/")
    if literal.source.language in (COMPOSE, "shell") and is_listed(literal.key):
        return _Split(literal.key, plain, usual=is_usual(literal.key, plain))
    if provider in ON_DEMAND:
        variable, origin = next(iter(ON_DEMAND[provider])), _origin(plain)
        return _Split(variable, origin, plain[len(origin) :], usual=False)
    variable, path = next(iter(SERVED.get(provider, SERVED["openai"]).items()))
    base = PROVIDERS.get(provider, "") + path
    if "://localhost" in plain:
        base = base.replace("://127.0.0.1", "://localhost")
    if f"{plain}/".startswith(f"{base}/"):
        return _Split(variable, base, plain[len(base) :])
    if base == f"{plain}/v1":
        return _Split(variable, base, surplus="/v1")
    own = _ENDPOINT.sub("", plain)
    return _Split(variable, own, plain[len(own) :], usual=False)


def is_usual(variable: str, url: str) -> bool:
    """Whether `deltatape record -- CMD`, left to itself, makes `variable` stand for `url`."""
    return any(
        PROVIDERS[provider] + names[variable] == url.rstrip("/")
        for provider, names in SERVED.items()
        if variable in names
    )


def is_redirected(variable: str, url: str) -> bool:
    """Whether `deltatape record -- CMD` redirects `variable` where the user has set it to `url`."""
    if variable in TLS_ONLY or not may_be_redirected(variable):
        return False
    parsed = parse_url(variable, url)
    known = parsed is not None and Prefixes(()).has(parsed)
    return known or is_listed(variable) or sounds_like_base_url(variable)


def _origin(url: str) -> str:
    match = _ORIGIN.match(url)
    assert match is not None
    return match[0]


def _how(literal: Literal, split: _Split, new: str) -> str:
    start = RECORD if split.usual else f"{split.variable}={split.base} {RECORD}"
    if not new:
        without = f", without its {split.surplus}" if split.surplus else ""
        return f"read {split.variable} here{without}; then `{start}` redirects it"
    if literal.source.language == "python" and not _IMPORTS_OS.search(literal.source.text):
        return f"import os; then `{start}` redirects it"
    return f"then `{start}` redirects it"


def _default(literal: Literal) -> Advice:
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
    return Advice(old="", new="", variable=variable, how=how)


def _bare_host(provider: str) -> Advice:
    variable = next(iter({**SERVED, **ON_DEMAND}.get(provider, SERVED["openai"])))
    how = f"take scheme, host and port from {variable}; then `{RECORD}` redirects it"
    return Advice(old="", new="", variable=variable, how=how)


def _in_configuration(literal: Literal) -> Advice:
    address, upstream = _through_gateway(literal.url)
    how = f"while `deltatape record{upstream}` runs"
    return Advice(old=literal.url, new=address, variable="", how=how)


def _through_gateway(url: str) -> tuple[str, str]:
    """The URL by way of the gateway at its usual address, and the option that this needs."""
    parsed = parse_url("", url)
    if parsed is None or "{" in url:  # something is left to be filled in
        return f"{GATEWAY}/NAME{url[len(_origin(url)) :]}", f" --upstream NAME={_origin(url)}"
    prefixes = Prefixes(())
    prefix, rest = prefixes.split(parsed)
    upstream = "".join(f" --upstream {each}" for each in prefixes.added)
    return f"{GATEWAY}/{prefix}{rest}", upstream


def _replaced(literal: Literal, split: _Split) -> tuple[str, str]:
    """What to replace, and by what; "" and "" where no replacement is known to be right."""
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


def _substituted(literal: Literal, split: _Split) -> tuple[str, str]:
    """In shells and Compose files a variable is put into the middle of a text."""
    if split.surplus:
        return "", ""
    new = f"${{{split.variable}:-{split.base}}}"
    if literal.source.language == "shell" and literal.before.endswith("'"):
        new = f"'\"{new}\"'"  # ends the string in which nothing is substituted, and begins it again
    return literal.url, new + split.rest
