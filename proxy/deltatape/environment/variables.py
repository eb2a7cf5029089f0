"""The environment variables from which SDKs and frameworks read base URLs and keys.

The table of providers lists them; this module orders them for a command's environment, and tells
them from an application's own variables.
"""

import re
from collections.abc import Mapping

from deltatape.providers import PROVIDERS

SERVED: Mapping[str, Mapping[str, str]] = {
    each.name: each.base_urls for each in PROVIDERS.values() if each.url and each.base_urls
}
"""By provider: variables that are set also where the user has none, each with its path. See
`Provider.base_urls`."""
ON_DEMAND: Mapping[str, Mapping[str, str]] = {
    each.name: each.base_urls for each in PROVIDERS.values() if each.own_url
}
"""By upstream name: variables that are set once such an upstream is configured."""
SIGNED = frozenset(
    name
    for each in PROVIDERS.values()
    if each.is_signed
    for name in (*each.base_urls, *each.own_base_urls)
)
"""Requests to these are signed. See `Provider.is_signed`."""
TLS_ONLY = frozenset(name for each in PROVIDERS.values() for name in each.tls_only)
"""Those of `SIGNED` that no recording redirects."""
UNSIGNED_BY = tuple(name for each in PROVIDERS.values() for name in each.unsigned_by)
"""Variables that make clients send no signature."""
KEY_VARIABLES: Mapping[str, tuple[str, ...]] = {
    each.name: each.keys for each in PROVIDERS.values() if each.is_prefix and each.needs_key
}
"""By provider, of those whose prefix the gateway knows and whose SDK needs a key: the names that
SDKs and frameworks look for."""
NEVER = frozenset({"AWS_ENDPOINT_URL"})
"""Serves all of a cloud, from storage to queues."""
_LISTED = frozenset(
    name for each in PROVIDERS.values() for name in (*each.base_urls, *each.own_base_urls)
)
_WORDS = (
    *("AI", "LLM", "VLLM", "LITELLM", "LLAMA", "QWEN"),
    *(word for each in PROVIDERS.values() for word in (*each.words, *each.url_words)),
)
_LLM = re.compile(
    rf"(?:^|_)(?:{'|'.join(_WORDS)})_"
    r"(?:[A-Z0-9]+_)*(?:API_BASE|BASE_PATH|BASE_URL|API_URL|API_HOST|ENDPOINT)$"
)
_NO_BASE_URL = re.compile(
    r"(?:^|_)(?:PROXY|OTEL|TRACING|TELEMETRY|MCP|CALLBACK|WEBHOOK|DOCS)(?:_|$)"
    # Built into pages that run in browsers, where this machine's gateway may not be.
    r"|^(?:NEXT_PUBLIC|NUXT_PUBLIC|PUBLIC|REACT_APP|VITE)_"
)


def is_listed(name: str) -> bool:
    """Check whether SDKs or frameworks read a base URL from this variable."""
    return name in _LISTED


def may_be_redirected(name: str) -> bool:
    """Check whether a variable of this name may hold a base URL, whatever reads it."""
    return name not in NEVER and not _NO_BASE_URL.search(name.upper())


def sounds_like_base_url(name: str) -> bool:
    """Check whether the name suggests that the app's own variable holds a provider's base URL."""
    return may_be_redirected(name) and _LLM.search(name.upper()) is not None
