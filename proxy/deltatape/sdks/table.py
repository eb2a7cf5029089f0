"""The variables that each LLM SDK reads its base URL from, by ecosystem, package and version.

Source: the request lines of the SDKs themselves, run with the variable against a server on
loopback, for others their sources and issue trackers.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple


class Ecosystem(StrEnum):
    """The registry of a package."""

    PYTHON = "python"
    NODE = "node"


class Sdk(NamedTuple):
    """A package, in the versions below `before` (all when empty)."""

    reads: tuple[str, ...] = ()
    """Variables, the one that wins first; none: its base URL is an option only."""
    option: str = ""
    """How code passes the base URL to it; "" if it has no base URL."""
    remark: str = ""
    """A remark for its users."""
    before: tuple[int, ...] = ()


_AMAZON = (
    "for Bedrock only, where it signs for the host or sends a token over https alone: `deltatape"
    " record --via mitm -- CMD` tapes it"
)
_UNSIGNED = (
    "with AWS_BEARER_TOKEN_BEDROCK set by `deltatape record --upstream bedrock=URL -- CMD`; what is"
    " signed, `deltatape record --via mitm -- CMD` tapes"
)
_LEFT = (
    "`deltatape record --via mitm -- CMD` tapes it; a gateway can only with"
    " AWS_BEARER_TOKEN_BEDROCK, and where CMD sets the variable to $DELTATAPE_URL/bedrock itself"
)
_BEDROCK = ("AWS_ENDPOINT_URL_BEDROCK_RUNTIME",)
_LITELLM = ("OPENAI_API_BASE", "ANTHROPIC_API_BASE", "OPENROUTER_API_BASE", "MISTRAL_API_BASE")

GENERAL = frozenset({"aiohttp", "botocore"})
"""Packages of the table that are in many programs without an LLM."""

SDKS: Mapping[Ecosystem, Mapping[str, tuple[Sdk, ...]]] = {
    Ecosystem.PYTHON: {
        "openai": (
            Sdk(("OPENAI_API_BASE",), "openai.api_base = ...", before=(1,)),
            Sdk(("OPENAI_BASE_URL",), "base_url=..."),
        ),
        "anthropic": (Sdk(("ANTHROPIC_BASE_URL",), "base_url=..."),),
        "google-genai": (Sdk(("GOOGLE_GEMINI_BASE_URL",), "http_options={'base_url': ...}"),),
        "google-generativeai": (
            Sdk(option="client_options={'api_endpoint': ...}, transport='rest'"),
        ),
        "groq": (Sdk(("GROQ_BASE_URL",), "base_url=..."),),
        "cohere": (Sdk(("CO_API_URL",), "base_url=..."),),
        "ollama": (Sdk(("OLLAMA_HOST",), "host=..."),),
        "mistralai": (Sdk(option="server_url=..."),),
        "together": (Sdk(("TOGETHER_BASE_URL",), "base_url=..."),),
        "langchain-openai": (Sdk(("OPENAI_API_BASE", "OPENAI_BASE_URL"), "base_url=..."),),
        "langchain-anthropic": (Sdk(("ANTHROPIC_API_URL", "ANTHROPIC_BASE_URL"), "base_url=..."),),
        "litellm": (Sdk(_LITELLM, "api_base=...", "and the like for other providers"),),
        "botocore": (Sdk(_BEDROCK, "endpoint_url=...", _AMAZON),),
        "aiohttp": (
            Sdk(remark="what goes past is only noticed with ClientSession(trust_env=True)"),
        ),
    },
    Ecosystem.NODE: {
        "openai": (Sdk(("OPENAI_BASE_URL",), "baseURL: ..."),),
        "@anthropic-ai/sdk": (Sdk(("ANTHROPIC_BASE_URL",), "baseURL: ..."),),
        "@ai-sdk/openai": (
            Sdk(option="createOpenAI({ baseURL: ... })", before=(2,)),
            Sdk(("OPENAI_BASE_URL",), "createOpenAI({ baseURL: ... })"),
        ),
        "@ai-sdk/anthropic": (
            Sdk(
                ("ANTHROPIC_BASE_URL",),
                "createAnthropic({ baseURL: ... })",
                "it expects /v1 in it; the gateway takes both",
            ),
        ),
        "@ai-sdk/google": (Sdk(option="createGoogleGenerativeAI({ baseURL: ... })"),),
        "@ai-sdk/mistral": (Sdk(option="createMistral({ baseURL: ... })"),),
        "@ai-sdk/groq": (Sdk(option="createGroq({ baseURL: ... })"),),
        "@ai-sdk/xai": (Sdk(option="createXai({ baseURL: ... })"),),
        "@ai-sdk/deepseek": (Sdk(option="createDeepSeek({ baseURL: ... })"),),
        "@ai-sdk/cohere": (Sdk(option="createCohere({ baseURL: ... })"),),
        "@ai-sdk/openai-compatible": (Sdk(option="createOpenAICompatible({ baseURL: ... })"),),
        "@openrouter/ai-sdk-provider": (Sdk(option="createOpenRouter({ baseURL: ... })"),),
        "@google/genai": (
            Sdk(("GOOGLE_GEMINI_BASE_URL",), "new GoogleGenAI({ httpOptions: { baseUrl: ... } })"),
        ),
        "@mistralai/mistralai": (Sdk(option="new Mistral({ serverURL: ... })"),),
        "@ai-sdk/amazon-bedrock": (Sdk(_BEDROCK, "createAmazonBedrock({ baseURL: ... })", _LEFT),),
        "@anthropic-ai/bedrock-sdk": (
            Sdk(("ANTHROPIC_BEDROCK_BASE_URL",), "baseURL: ...", _UNSIGNED),
        ),
        "@aws-sdk/client-bedrock-runtime": (
            Sdk(_BEDROCK, "new BedrockRuntimeClient({ endpoint: ... })", _AMAZON),
        ),
        "groq-sdk": (Sdk(("GROQ_BASE_URL",), "baseURL: ..."),),
        "ollama": (Sdk(option="new Ollama({ host: ... })"),),
    },
}
"""The SDKs by package; of several, the first whose `before` is above the version applies."""


def sdk_of(ecosystem: Ecosystem, package: str, version: str) -> Sdk | None:
    """Return the entry of a package; None if it is no LLM SDK."""
    numbers = version_numbers(version)
    for sdk in SDKS[ecosystem].get(package, ()):
        if not sdk.before or numbers < sdk.before:
            return sdk
    return None


def version_numbers(version: str) -> tuple[int, ...]:
    """Return `3.54.0rc1` as (3, 54, 0); also the lower end of a range such as `^3.54.0`."""
    numbers = []
    for part in version.lstrip("^~>=v ").split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        numbers.append(int(digits[:9]))
    return tuple(numbers)
