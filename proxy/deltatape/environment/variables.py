"""Which environment variables SDKs and frameworks read their base URL from, and its form.

Each SDK puts its own paths after the base URL, so the value needs what comes before those: with
`/v1` for OPENAI_BASE_URL, without for ANTHROPIC_BASE_URL. Seen at the request lines of the SDKs
themselves and, for LangChain and LiteLLM, in their sources.
"""

import re
from collections.abc import Mapping

SERVED: Mapping[str, Mapping[str, str]] = {
    "openai": {"OPENAI_BASE_URL": "/v1", "OPENAI_API_BASE": "/v1"},
    "anthropic": {"ANTHROPIC_BASE_URL": "", "ANTHROPIC_API_URL": "", "ANTHROPIC_API_BASE": ""},
    "gemini": {"GOOGLE_GEMINI_BASE_URL": ""},
    "openrouter": {"OPENROUTER_API_BASE": "/api/v1"},
    "groq": {"GROQ_BASE_URL": "", "GROQ_API_BASE": "/openai/v1"},
    "mistral": {"MISTRAL_API_BASE": "/v1"},
    "deepseek": {"DEEPSEEK_API_BASE": "/beta"},
    "xai": {"XAI_API_BASE": "/v1"},
    "cohere": {"CO_API_URL": ""},
    "together": {"TOGETHER_BASE_URL": "/v1"},
    "ollama": {"OLLAMA_HOST": "", "OLLAMA_API_BASE": ""},
}
"""By provider: variables that are set also where the user has none, each with its path.

The variables of a provider are aliases, of which each framework prefers another one: where the user
has set one, the others stay unset, or they would win over the user's.
"""
ON_DEMAND: Mapping[str, Mapping[str, str]] = {
    "azure": {"AZURE_OPENAI_ENDPOINT": "", "AZURE_API_BASE": ""},
    "bedrock": {
        "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": "",
        "AWS_BEDROCK_RUNTIME_ENDPOINT": "",
        "ANTHROPIC_BEDROCK_BASE_URL": "",
    },
}
"""By upstream name: variables that are set once such an upstream is configured.

Of Bedrock's: the first is read by AWS's SDKs (see `TLS_ONLY`), the second by LiteLLM, the third by
Anthropic's SDKs, which all send a bearer token over http, too.
"""
OWN_ONLY = frozenset(
    {
        "ANTHROPIC_FOUNDRY_BASE_URL",
        "ANTHROPIC_GOOGLE_CLOUD_BASE_URL",
        "ANTHROPIC_VERTEX_BASE_URL",
        "COHERE_API_BASE",
        "FIREWORKS_API_BASE",
        "GEMINI_API_BASE",
        "GOOGLE_VERTEX_BASE_URL",
    }
)
"""Redirected where the user has one, else not set.

There is no URL that is right for everyone: an account or region is part of it, or readers disagree
about its path (LiteLLM reads GEMINI_API_BASE with and without `/v1beta`).
"""
SIGNED = frozenset(
    {
        *ON_DEMAND["bedrock"],
        "ANTHROPIC_BEDROCK_MANTLE_BASE_URL",
        "AWS_BEDROCK_BASE_URL",
    }
)
"""Requests to these are signed together with their `Host` (AWS Signature Version 4).

A gateway has to change `Host`, and the provider then refuses the signature; only with a bearer
token instead of a signature can they be redirected.
"""
TLS_ONLY = frozenset({"AWS_ENDPOINT_URL_BEDROCK_RUNTIME"})
"""Of `SIGNED`, what no recording redirects: what reads it fails where it is an http URL.

With a bearer token, botocore raises "Bearer authorization requires an HTTPS endpoint", and AWS's
SDK for JavaScript speaks HTTP/2 without TLS; without one, both sign.
"""
UNSIGNED_BY = ("AWS_BEARER_TOKEN_BEDROCK", "CLAUDE_CODE_SKIP_BEDROCK_AUTH")
"""Variables that make clients of Bedrock send no signature.

Seen over http with botocore 1.44.5, anthropic 2.12.0, openai 3.54.0, litellm 1.106.2,
@anthropic-ai/bedrock-sdk 1.1.3, @ai-sdk/amazon-bedrock 4.0.186 and
@aws-sdk/client-bedrock-runtime 3.1163.0.
"""
NEVER = frozenset({"AWS_ENDPOINT_URL"})
"""Serves all of a cloud, from storage to queues."""
_KNOWN = frozenset(
    name for group in (SERVED, ON_DEMAND) for names in group.values() for name in names
)
_LISTED = _KNOWN | OWN_ONLY | SIGNED
_LLM = re.compile(
    r"(?:^|_)(?:AI|LLM|OPENAI|ANTHROPIC|CLAUDE|GEMINI|GPT|OPENROUTER|GROQ|MISTRAL|DEEPSEEK|XAI|GROK"
    r"|COHERE|TOGETHER|FIREWORKS|OLLAMA|VLLM|LITELLM|LMSTUDIO|LM_STUDIO|LLAMA|QWEN)_"
    r"(?:[A-Z0-9]+_)*(?:API_BASE|BASE_PATH|BASE_URL|API_URL|API_HOST|ENDPOINT)$"
)
_NO_BASE_URL = re.compile(
    r"(?:^|_)(?:PROXY|OTEL|TRACING|TELEMETRY|MCP|CALLBACK|WEBHOOK|DOCS)(?:_|$)"
    # Built into pages that run in browsers, where this machine's gateway may not be.
    r"|^(?:NEXT_PUBLIC|NUXT_PUBLIC|PUBLIC|REACT_APP|VITE)_"
)


def is_listed(name: str) -> bool:
    """Whether SDKs or frameworks read a base URL from this variable."""
    return name in _LISTED


def may_be_redirected(name: str) -> bool:
    """Whether a variable of this name may hold a base URL at all, whatever reads it."""
    return name not in NEVER and not _NO_BASE_URL.search(name.upper())


def sounds_like_base_url(name: str) -> bool:
    """Whether an application's own variable holds a provider's base URL, going by its name."""
    return may_be_redirected(name) and _LLM.search(name.upper()) is not None


# Which environment variables hold a provider's key.
#
# Source: the documentation and the sources of the providers' SDKs and of the frameworks over them.

KEY_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "openai": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "gemini": ("GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"),
    "openrouter": ("OPENROUTER_API_KEY",),
    "groq": ("GROQ_API_KEY",),
    "mistral": ("MISTRAL_API_KEY",),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "xai": ("XAI_API_KEY",),
    "cohere": ("CO_API_KEY", "COHERE_API_KEY"),
    "together": ("TOGETHER_API_KEY", "TOGETHER_AI_API_KEY", "TOGETHERAI_API_KEY"),
    "fireworks": ("FIREWORKS_API_KEY", "FIREWORKS_AI_API_KEY"),
    "azure": ("AZURE_OPENAI_API_KEY", "AZURE_API_KEY"),
    "bedrock": ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
}
"""The names that SDKs and frameworks look for, by provider. Who sets them sets all of a provider or
none, since an SDK that finds two of them may take the wrong one."""
