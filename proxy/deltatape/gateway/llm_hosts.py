"""Which hosts serve LLM APIs, and whose they are: one table for all who ask.

The tunnel tells by it that an application went past the gateway, the key check that a key is about
to reach another provider, mitmproxy what to decrypt, `doctor` what a URL in the source stands for.
Pure data without an import of the package, so that it can be read from any program.

An entry is a host name, or `*.` and a suffix that at least one label precedes. Only hosts whose
business is inference: a console, a login or a telemetry host of the same company is none.

Source: the base URLs that the providers' own documentation and SDKs name.
"""

from collections.abc import Mapping

LLM_HOSTS: Mapping[str, tuple[str, ...]] = {
    "openai": ("api.openai.com", "eu.api.openai.com", "us.api.openai.com"),
    "anthropic": ("api.anthropic.com",),
    "gemini": ("generativelanguage.googleapis.com", "cloudcode-pa.googleapis.com"),
    "openrouter": ("openrouter.ai", "api.openrouter.ai"),
    "groq": ("api.groq.com",),
    "mistral": ("api.mistral.ai", "codestral.mistral.ai"),
    "deepseek": ("api.deepseek.com",),
    "xai": ("api.x.ai", "*.api.x.ai"),
    "cohere": ("api.cohere.com", "api.cohere.ai"),
    "together": ("api.together.xyz", "api.together.ai"),
    "fireworks": ("api.fireworks.ai",),
    "ollama": ("ollama.com", "api.ollama.com"),
    "azure": (
        "*.openai.azure.com",
        "*.openai.azure.us",
        "*.openai.azure.cn",
        "*.services.ai.azure.com",
        "*.cognitiveservices.azure.com",
        "*.inference.ai.azure.com",
        "*.models.ai.azure.com",
    ),
    "bedrock": (),  # its hosts carry a region in the middle: see `provider_of_host`
    "vertex": ("aiplatform.googleapis.com",),  # and one per region
    "github": (
        "models.github.ai",
        "models.inference.ai.azure.com",
        "*.githubcopilot.com",
    ),
    "huggingface": (
        "router.huggingface.co",
        "api-inference.huggingface.co",
        "*.endpoints.huggingface.cloud",
    ),
    "perplexity": ("api.perplexity.ai",),
    "cerebras": ("api.cerebras.ai",),
    "sambanova": ("api.sambanova.ai",),
    "nvidia": ("integrate.api.nvidia.com", "ai.api.nvidia.com"),
    "replicate": ("api.replicate.com",),
    "moonshot": ("api.moonshot.ai", "api.moonshot.cn", "api.kimi.com"),
    "dashscope": (
        "dashscope.aliyuncs.com",
        "dashscope-intl.aliyuncs.com",
        "dashscope-us.aliyuncs.com",
    ),
    "zhipu": ("open.bigmodel.cn", "api.z.ai"),
    "minimax": ("api.minimax.chat", "api.minimax.io", "api.minimaxi.com"),
    "volcengine": ("ark.cn-beijing.volces.com", "ark.ap-southeast.bytepluses.com"),
    "qianfan": ("qianfan.baidubce.com",),
    "hunyuan": ("api.hunyuan.cloud.tencent.com",),
    "stepfun": ("api.stepfun.com", "api.stepfun.ai"),
    "siliconflow": ("api.siliconflow.cn", "api.siliconflow.com"),
    "modelscope": ("api-inference.modelscope.cn",),
    "deepinfra": ("api.deepinfra.com",),
    "novita": ("api.novita.ai",),
    "nebius": ("api.studio.nebius.com", "api.studio.nebius.ai", "api.tokenfactory.nebius.com"),
    "hyperbolic": ("api.hyperbolic.xyz",),
    "baseten": ("inference.baseten.co", "*.api.baseten.co"),
    "friendli": ("api.friendli.ai",),
    "featherless": ("api.featherless.ai",),
    "inception": ("api.inceptionlabs.ai",),
    "upstage": ("api.upstage.ai",),
    "ai21": ("api.ai21.com",),
    "writer": ("api.writer.com",),
    "reka": ("api.reka.ai",),
    "watsonx": ("*.ml.cloud.ibm.com",),
    "cloudflare": ("gateway.ai.cloudflare.com",),
    "vercel": ("ai-gateway.vercel.sh",),
    "portkey": ("api.portkey.ai",),
    "helicone": (
        "oai.helicone.ai",
        "anthropic.helicone.ai",
        "gateway.helicone.ai",
        "ai-gateway.helicone.ai",
    ),
    "requesty": ("router.requesty.ai",),
}
"""Hosts by provider; the name is the gateway's prefix where it has one for that provider."""

PASS_KEYS_ON: frozenset[str] = frozenset(("cloudflare", "vercel", "portkey", "helicone"))
"""Gateways that hand a key to the provider it belongs to: every key may be right there."""

_AWS = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")
_BEDROCK = frozenset(
    ("bedrock-runtime", "bedrock-runtime-fips", "bedrock-agent-runtime", "bedrock-mantle")
)
_EXACT = {host: name for name, hosts in LLM_HOSTS.items() for host in hosts if host[0] != "*"}
_SUFFIXES = {
    host[1:]: name for name, hosts in LLM_HOSTS.items() for host in hosts if host[0] == "*"
}


def provider_of_host(host: str) -> str | None:
    """The provider whose LLM API is served at `host`; None for any other host.

    Args:
        host: a name without a port, in any case, with or without the root's dot.
    """
    name = host.lower().rstrip(".")
    exact = _EXACT.get(name)
    if exact is not None:
        return exact
    labels = name.split(".")
    for cut in range(1, len(labels)):
        found = _SUFFIXES.get("." + ".".join(labels[cut:]))
        if found is not None:
            return found
    return _regional(name, labels)


def _regional(name: str, labels: list[str]) -> str | None:
    """Hosts that carry their region: `bedrock-runtime.eu-west-1.amazonaws.com`."""
    if name.endswith(_AWS) and not _BEDROCK.isdisjoint(labels):
        return "bedrock"
    own = labels[0]
    if name.endswith(".googleapis.com") and (
        own.endswith("-aiplatform") or (own == "aiplatform" and ".rep." in name)
    ):
        return "vertex"
    return None
