"""The providers of LLM APIs: hosts, base URLs, environment variables and keys, in one table.

The gateway reads its prefixes and the owners of keys here, the tunnel and mitmproxy the hosts that
serve LLMs, `environment` the variables to set, `doctor` what a URL or variable stands for. Streams
are described in `dialects`.

A provider is added by an entry of `PROVIDERS`. It imports nothing of the package, so that any
program can load it.

Sources: the documentation of the providers and their SDKs; base URLs seen at the request lines of
the SDKs themselves and, for LangChain and LiteLLM, in their sources; forms of keys as the providers
document and secret scanners look for them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

COMPATIBLE = "openai"
"""The provider whose API others copy; unknown providers are treated like it."""
COMMON = (COMPATIBLE, "anthropic")
"""The providers of the most used SDKs: for examples, and as a guess."""
KEY_FIELDS = frozenset({b"authorization", b"x-api-key", b"api-key", b"x-goog-api-key"})
"""Header fields, in lower case, for keys of any provider."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """Facts about a provider."""

    name: str
    """Lower case: the gateway's prefix, where it has one."""
    title: str = ""
    """Its usual name; required with `key_prefixes`."""

    # Where it is reached.
    hosts: tuple[str, ...] = ()
    """A name each, or `*.` and a suffix that at least one label precedes. Only hosts for
    inference, not those for a console, a login or telemetry."""
    sites: frozenset[str] = frozenset()
    """The `hosts` that are web sites as well."""
    local_port: str = ""
    """The default port of its server on this machine."""
    url: str = ""
    """The upstream of its prefix without configuration; "" for none."""
    own_url: bool = False
    """Whether each account has its own URL, so that the prefix needs configuration."""
    api_path: str = ""
    """The path that most clients need in the base URL, after the prefix."""
    optional_path: tuple[str, str] | None = None
    """A beginning of its paths that some SDKs expect in the base URL and others put there
    themselves, and the path that shows that it is missing."""
    passes_keys_on: bool = False
    """Whether it forwards keys to other providers, so that any key may be valid."""
    request_ends: tuple[str, ...] = ()
    """The ends of the paths that its SDK requests, also from other servers."""

    # Base URLs in the environment.
    base_urls: Mapping[str, str] = field(default_factory=dict)
    """Variables, each with the path that its value needs: each SDK puts its own paths after the
    base URL. They are aliases, and each framework prefers another one: where the user has set one,
    the others stay unset, or they would win over the user's. Set where the user has none; if
    `own_url`, once such an upstream is configured."""
    own_base_urls: frozenset[str] = frozenset()
    """Variables that are redirected where the user has one, else not set: there is no URL that is
    right for everyone, since an account or region is part of it, or readers disagree about its path
    (LiteLLM reads GEMINI_API_BASE with and without `/v1beta`)."""
    is_signed: bool = False
    """Whether requests to its base URLs are signed together with their `Host` (AWS Signature
    Version 4). A gateway has to change `Host`, and the provider then refuses the signature; only
    with a bearer token instead of a signature can they be redirected."""
    unsigned_by: tuple[str, ...] = ()
    """Variables that make its clients send no signature."""
    tls_only: frozenset[str] = frozenset()
    """Base URLs that no recording redirects: what reads them fails where it is an http URL."""

    # Keys.
    keys: tuple[str, ...] = ()
    """Variables that SDKs and frameworks read. Set all of them or none: an SDK that reads two of
    them may take the wrong one."""
    tokens: tuple[str, ...] = ()
    """Variables with the `Authorization` value, if that is not the key."""
    instead_of_keys: tuple[str, ...] = ()
    """Variables that make `keys` unnecessary."""
    needs_key: bool = True
    """Whether its SDK refuses to start without a key."""
    regions: tuple[str, ...] = ()
    """Variables with the region that its SDK needs beside a key."""
    settings: Mapping[bytes, tuple[str, ...]] = field(default_factory=dict)
    """By header field, in lower case, the variables with its value."""
    key_prefixes: tuple[str, ...] = ()
    """Prefixes that only its keys have, as long as possible."""
    keys_fit: tuple[str, ...] = ()
    """Other providers that take its keys."""

    # How it is named elsewhere.
    client: str = ""
    """How the classes of its SDK begin."""
    words: tuple[str, ...] = ()
    """Words in the names of an application's own variables, for keys and base URLs."""
    key_words: tuple[str, ...] = ()
    """Words for variables with keys only."""
    url_words: tuple[str, ...] = ()
    """Words for variables with base URLs only."""

    @property
    def is_prefix(self) -> bool:
        """Whether its name is a prefix in the gateway."""
        return bool(self.url) or self.own_url


_TABLE = (
    Provider(
        name="openai",
        title="OpenAI",
        # The last one serves Codex after a login.
        hosts=("api.openai.com", "eu.api.openai.com", "us.api.openai.com", "chatgpt.com"),
        sites=frozenset({"chatgpt.com"}),
        url="https://api.openai.com",
        api_path="/v1",
        request_ends=("/chat/completions", "/responses"),
        base_urls={"OPENAI_BASE_URL": "/v1", "OPENAI_API_BASE": "/v1"},
        keys=("OPENAI_API_KEY",),
        settings={
            b"openai-organization": ("OPENAI_ORG_ID", "OPENAI_ORGANIZATION"),
            b"openai-project": ("OPENAI_PROJECT_ID", "OPENAI_PROJECT"),
        },
        key_prefixes=("sk-proj-", "sk-svcacct-", "sk-admin-"),
        client="OpenAI",
        words=("OPENAI",),
        url_words=("GPT",),
    ),
    Provider(
        name="anthropic",
        title="Anthropic",
        hosts=("api.anthropic.com",),
        url="https://api.anthropic.com",
        optional_path=("/v1", "/messages"),
        request_ends=("/messages",),
        base_urls={"ANTHROPIC_BASE_URL": "", "ANTHROPIC_API_URL": "", "ANTHROPIC_API_BASE": ""},
        keys=("ANTHROPIC_API_KEY",),
        tokens=("ANTHROPIC_AUTH_TOKEN",),
        instead_of_keys=("ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
        key_prefixes=("sk-ant-",),
        client="Anthropic",
        words=("ANTHROPIC", "CLAUDE"),
    ),
    Provider(
        name="gemini",
        title="Google",
        hosts=("generativelanguage.googleapis.com", "cloudcode-pa.googleapis.com"),
        url="https://generativelanguage.googleapis.com",
        request_ends=(":generateContent", ":streamGenerateContent"),
        base_urls={"GOOGLE_GEMINI_BASE_URL": ""},
        own_base_urls=frozenset({"GEMINI_API_BASE"}),
        keys=("GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"),
        key_prefixes=("AIza",),
        keys_fit=("vertex",),
        words=("GEMINI",),
        key_words=("GOOGLE",),
    ),
    Provider(
        name="openrouter",
        title="OpenRouter",
        hosts=("openrouter.ai", "api.openrouter.ai"),
        sites=frozenset({"openrouter.ai"}),
        url="https://openrouter.ai",
        api_path="/api/v1",
        base_urls={"OPENROUTER_API_BASE": "/api/v1"},
        keys=("OPENROUTER_API_KEY",),
        key_prefixes=("sk-or-",),
        words=("OPENROUTER",),
    ),
    Provider(
        name="groq",
        title="Groq",
        hosts=("api.groq.com",),
        url="https://api.groq.com",
        api_path="/openai/v1",
        base_urls={"GROQ_BASE_URL": "", "GROQ_API_BASE": "/openai/v1"},
        keys=("GROQ_API_KEY",),
        key_prefixes=("gsk_",),
        client="Groq",
        words=("GROQ",),
    ),
    Provider(
        name="mistral",
        hosts=("api.mistral.ai", "codestral.mistral.ai"),
        url="https://api.mistral.ai",
        base_urls={"MISTRAL_API_BASE": "/v1"},
        keys=("MISTRAL_API_KEY",),
        client="Mistral",
        words=("MISTRAL",),
    ),
    Provider(
        name="deepseek",
        hosts=("api.deepseek.com",),
        url="https://api.deepseek.com",
        base_urls={"DEEPSEEK_API_BASE": "/beta"},
        keys=("DEEPSEEK_API_KEY",),
        client="DeepSeek",
        words=("DEEPSEEK",),
    ),
    Provider(
        name="xai",
        title="xAI",
        hosts=("api.x.ai", "*.api.x.ai"),
        url="https://api.x.ai",
        api_path="/v1",
        base_urls={"XAI_API_BASE": "/v1"},
        keys=("XAI_API_KEY",),
        key_prefixes=("xai-",),
        words=("XAI",),
        url_words=("GROK",),
    ),
    Provider(
        name="cohere",
        hosts=("api.cohere.com", "api.cohere.ai"),
        url="https://api.cohere.com",
        base_urls={"CO_API_URL": ""},
        own_base_urls=frozenset({"COHERE_API_BASE"}),
        keys=("CO_API_KEY", "COHERE_API_KEY"),
        client="Cohere",
        words=("COHERE",),
        key_words=("CO",),
    ),
    Provider(
        name="together",
        title="Together",
        hosts=("api.together.xyz", "api.together.ai"),
        url="https://api.together.xyz",
        api_path="/v1",
        base_urls={"TOGETHER_BASE_URL": "/v1"},
        keys=("TOGETHER_API_KEY", "TOGETHER_AI_API_KEY", "TOGETHERAI_API_KEY"),
        key_prefixes=("tgp_v1_",),
        words=("TOGETHER",),
    ),
    Provider(
        name="fireworks",
        title="Fireworks",
        hosts=("api.fireworks.ai",),
        url="https://api.fireworks.ai",
        api_path="/inference/v1",
        own_base_urls=frozenset({"FIREWORKS_API_BASE"}),
        keys=("FIREWORKS_API_KEY", "FIREWORKS_AI_API_KEY"),
        key_prefixes=("fw_",),
        words=("FIREWORKS",),
    ),
    Provider(
        name="ollama",
        hosts=("ollama.com", "api.ollama.com"),
        sites=frozenset({"ollama.com"}),
        local_port="11434",
        url="http://127.0.0.1:11434",
        base_urls={"OLLAMA_HOST": "", "OLLAMA_API_BASE": ""},
        keys=("OLLAMA_API_KEY",),
        needs_key=False,
        client="Ollama",
        words=("OLLAMA",),
    ),
    Provider(name="lmstudio", local_port="1234", url_words=("LMSTUDIO", "LM_STUDIO")),
    Provider(
        name="azure",
        hosts=(
            "*.openai.azure.com",
            "*.openai.azure.us",
            "*.openai.azure.cn",
            "*.services.ai.azure.com",
            "*.cognitiveservices.azure.com",
            "*.inference.ai.azure.com",
            "*.models.ai.azure.com",
        ),
        own_url=True,
        base_urls={"AZURE_OPENAI_ENDPOINT": "", "AZURE_API_BASE": ""},
        own_base_urls=frozenset({"ANTHROPIC_FOUNDRY_BASE_URL"}),
        keys=("AZURE_OPENAI_API_KEY", "AZURE_API_KEY"),
        instead_of_keys=("AZURE_OPENAI_AD_TOKEN",),
        key_words=("AZURE",),
    ),
    Provider(
        name="bedrock",
        title="Amazon Bedrock",
        # Its hosts carry a region in the middle: see `provider_of_host`.
        own_url=True,
        # The first is read by AWS's SDKs (see `tls_only`), the second by LiteLLM, the third by
        # Anthropic's SDKs, which all send a bearer token over http, too.
        base_urls={
            "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": "",
            "AWS_BEDROCK_RUNTIME_ENDPOINT": "",
            "ANTHROPIC_BEDROCK_BASE_URL": "",
        },
        own_base_urls=frozenset({"ANTHROPIC_BEDROCK_MANTLE_BASE_URL", "AWS_BEDROCK_BASE_URL"}),
        is_signed=True,
        # Seen over http with botocore 1.44.5, anthropic 2.12.0, openai 3.54.0, litellm 1.106.2,
        # @anthropic-ai/bedrock-sdk 1.1.3, @ai-sdk/amazon-bedrock 4.0.186 and
        # @aws-sdk/client-bedrock-runtime 3.1163.0.
        unsigned_by=("AWS_BEARER_TOKEN_BEDROCK", "CLAUDE_CODE_SKIP_BEDROCK_AUTH"),
        # With a bearer token, botocore raises "Bearer authorization requires an HTTPS endpoint",
        # and AWS's SDK for JavaScript speaks HTTP/2 without TLS; without one, both sign.
        tls_only=frozenset({"AWS_ENDPOINT_URL_BEDROCK_RUNTIME"}),
        keys=("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
        tokens=("AWS_BEARER_TOKEN_BEDROCK",),
        instead_of_keys=("AWS_PROFILE",),
        regions=("AWS_REGION", "AWS_DEFAULT_REGION"),
        key_prefixes=("ABSKQmVkcm9ja0FQSUtleS", "bedrock-api-key-"),
        key_words=("BEDROCK", "AWS"),
    ),
    Provider(
        name="vertex",
        hosts=("aiplatform.googleapis.com",),  # and one per region: see `provider_of_host`
        own_base_urls=frozenset(
            {
                "ANTHROPIC_GOOGLE_CLOUD_BASE_URL",
                "ANTHROPIC_VERTEX_BASE_URL",
                "GOOGLE_VERTEX_BASE_URL",
            }
        ),
    ),
    Provider(
        name="github",
        title="GitHub",
        hosts=("models.github.ai", "models.inference.ai.azure.com", "*.githubcopilot.com"),
        keys=("GITHUB_TOKEN",),
        key_prefixes=("github_pat_", "ghp_"),
    ),
    Provider(
        name="huggingface",
        title="Hugging Face",
        hosts=(
            "router.huggingface.co",
            "api-inference.huggingface.co",
            "*.endpoints.huggingface.cloud",
        ),
        keys=("HF_TOKEN",),
        key_prefixes=("hf_",),
        key_words=("HF",),
    ),
    Provider(
        name="perplexity",
        title="Perplexity",
        hosts=("api.perplexity.ai",),
        keys=("PERPLEXITY_API_KEY",),
        key_prefixes=("pplx-",),
        key_words=("PERPLEXITY",),
    ),
    Provider(
        name="cerebras",
        title="Cerebras",
        hosts=("api.cerebras.ai",),
        keys=("CEREBRAS_API_KEY",),
        key_prefixes=("csk-",),
        key_words=("CEREBRAS",),
    ),
    Provider(name="sambanova", hosts=("api.sambanova.ai",)),
    Provider(
        name="nvidia",
        title="NVIDIA",
        hosts=("integrate.api.nvidia.com", "ai.api.nvidia.com"),
        keys=("NVIDIA_API_KEY",),
        key_prefixes=("nvapi-",),
        key_words=("NVIDIA",),
    ),
    Provider(
        name="replicate", title="Replicate", hosts=("api.replicate.com",), key_prefixes=("r8_",)
    ),
    Provider(name="moonshot", hosts=("api.moonshot.ai", "api.moonshot.cn", "api.kimi.com")),
    Provider(
        name="dashscope",
        hosts=(
            "dashscope.aliyuncs.com",
            "dashscope-intl.aliyuncs.com",
            "dashscope-us.aliyuncs.com",
            "portal.qwen.ai",  # serves Qwen Code after a login
        ),
    ),
    Provider(name="zhipu", hosts=("open.bigmodel.cn", "api.z.ai")),
    Provider(name="minimax", hosts=("api.minimax.chat", "api.minimax.io", "api.minimaxi.com")),
    Provider(
        name="volcengine", hosts=("ark.cn-beijing.volces.com", "ark.ap-southeast.bytepluses.com")
    ),
    Provider(name="qianfan", hosts=("qianfan.baidubce.com",)),
    Provider(name="hunyuan", hosts=("api.hunyuan.cloud.tencent.com",)),
    Provider(name="stepfun", hosts=("api.stepfun.com", "api.stepfun.ai")),
    Provider(name="siliconflow", hosts=("api.siliconflow.cn", "api.siliconflow.com")),
    Provider(name="modelscope", hosts=("api-inference.modelscope.cn",)),
    Provider(name="deepinfra", hosts=("api.deepinfra.com",)),
    Provider(name="novita", hosts=("api.novita.ai",)),
    Provider(
        name="nebius",
        hosts=("api.studio.nebius.com", "api.studio.nebius.ai", "api.tokenfactory.nebius.com"),
    ),
    Provider(name="hyperbolic", hosts=("api.hyperbolic.xyz",)),
    Provider(name="baseten", hosts=("inference.baseten.co", "*.api.baseten.co")),
    Provider(name="friendli", hosts=("api.friendli.ai",)),
    Provider(name="featherless", hosts=("api.featherless.ai",)),
    Provider(name="inception", hosts=("api.inceptionlabs.ai",)),
    Provider(name="upstage", hosts=("api.upstage.ai",)),
    Provider(name="ai21", hosts=("api.ai21.com",)),
    Provider(name="writer", hosts=("api.writer.com",)),
    Provider(name="reka", hosts=("api.reka.ai",)),
    Provider(name="watsonx", hosts=("*.ml.cloud.ibm.com",)),
    Provider(name="cloudflare", hosts=("gateway.ai.cloudflare.com",), passes_keys_on=True),
    Provider(name="vercel", hosts=("ai-gateway.vercel.sh",), passes_keys_on=True),
    Provider(name="portkey", hosts=("api.portkey.ai",), passes_keys_on=True),
    Provider(
        name="helicone",
        hosts=(
            "oai.helicone.ai",
            "anthropic.helicone.ai",
            "gateway.helicone.ai",
            "ai-gateway.helicone.ai",
        ),
        passes_keys_on=True,
    ),
    # Gateways of coding agents, for who logs in there.
    Provider(
        name="opencode",
        hosts=("opencode.ai",),
        sites=frozenset({"opencode.ai"}),
        passes_keys_on=True,
    ),
    Provider(name="cline", hosts=("api.cline.bot",), passes_keys_on=True),
    Provider(name="continue", hosts=("api.continue.dev",), passes_keys_on=True),
    Provider(name="requesty", hosts=("router.requesty.ai",)),
)
PROVIDERS: Mapping[str, Provider] = {each.name: each for each in _TABLE}
"""By name, those with a prefix first, in the order in which users see them."""

UPSTREAMS: Mapping[str, str] = {name: each.url for name, each in PROVIDERS.items() if each.url}
"""The upstream URL of each prefix that works without configuration."""

_AWS = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")
_BEDROCK = frozenset(
    ("bedrock-runtime", "bedrock-runtime-fips", "bedrock-agent-runtime", "bedrock-mantle")
)
_OWNERS = {host: each.name for each in _TABLE for host in each.hosts}
_KEY_OWNERS = tuple((each, prefix) for each in _TABLE for prefix in each.key_prefixes)


def provider_of_host(host: str) -> str | None:
    """Return the provider whose LLM API is at `host`; None for other hosts.

    Args:
        host: a name without a port, in any case, with or without the root's dot.
    """
    name = host.lower().rstrip(".")
    exact = _OWNERS.get(name)
    if exact is not None:
        return exact
    labels = name.split(".")
    for cut in range(1, len(labels)):
        found = _OWNERS.get("*." + ".".join(labels[cut:]))
        if found is not None:
            return found
    return _regional(name, labels)


def _regional(name: str, labels: list[str]) -> str | None:
    """Match hosts with a region: `bedrock-runtime.eu-west-1.amazonaws.com`."""
    if name.endswith(_AWS) and not _BEDROCK.isdisjoint(labels):
        return "bedrock"
    own = labels[0]
    if name.endswith(".googleapis.com") and (
        own.endswith("-aiplatform") or (own == "aiplatform" and ".rep." in name)
    ):
        return "vertex"
    return None


def provider_of_key(key: bytes) -> tuple[Provider | None, str]:
    """Return the provider whose keys alone start as `key` does, and that prefix; or None."""
    found = (each for each in _KEY_OWNERS if key.startswith(each[1].encode()))
    return next(found, (None, ""))
