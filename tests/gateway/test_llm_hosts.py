"""A host is known by its name, its suffix or its region, and nothing else is taken for one."""

from urllib.parse import urlsplit

import pytest

from deltatape.gateway.llm_hosts import LLM_HOSTS, PASS_KEYS_ON, provider_of_host
from deltatape.gateway.routes import PROVIDERS

KNOWN = [
    ("api.openai.com", "openai"),
    ("API.OpenAI.com.", "openai"),
    ("openrouter.ai", "openrouter"),
    ("generativelanguage.googleapis.com", "gemini"),
    ("acme.openai.azure.com", "azure"),
    ("acme.eastus.models.ai.azure.com", "azure"),
    ("bedrock-runtime.eu-west-1.amazonaws.com", "bedrock"),
    ("bedrock-runtime-fips.us-east-1.amazonaws.com", "bedrock"),
    ("bedrock-runtime.cn-north-1.amazonaws.com.cn", "bedrock"),
    ("vpce-0-a.bedrock-runtime.us-east-1.vpce.amazonaws.com", "bedrock"),
    ("bedrock-mantle.us-east-1.api.aws", "bedrock"),
    ("aiplatform.googleapis.com", "vertex"),
    ("us-central1-aiplatform.googleapis.com", "vertex"),
    ("aiplatform.eu.rep.googleapis.com", "vertex"),
    ("router.huggingface.co", "huggingface"),
    ("x1.us-east-1.aws.endpoints.huggingface.cloud", "huggingface"),
    ("models.inference.ai.azure.com", "github"),
    ("api.githubcopilot.com", "github"),
    ("api.business.githubcopilot.com", "github"),
    ("api.perplexity.ai", "perplexity"),
    ("api.cerebras.ai", "cerebras"),
    ("api.sambanova.ai", "sambanova"),
    ("api.moonshot.cn", "moonshot"),
    ("dashscope-intl.aliyuncs.com", "dashscope"),
    ("open.bigmodel.cn", "zhipu"),
    ("api.minimax.io", "minimax"),
    ("integrate.api.nvidia.com", "nvidia"),
    ("models.github.ai", "github"),
]

FOREIGN = [
    "",
    "localhost",
    "127.0.0.1",
    "::1",
    "example.com",
    "openai.com",
    "platform.openai.com",
    "console.anthropic.com",
    "api.openai.com.evil.example",
    "notapi.openai.com",
    "evil-openai.azure.com",
    "openai.azure.com",
    "s3.eu-west-1.amazonaws.com",
    "bedrock-runtime.eu-west-1.example.com",
    "storage.googleapis.com",
    "aiplatform.example.com",
    "huggingface.co",
    "github.com",
]


@pytest.mark.parametrize(("host", "provider"), KNOWN)
def test_a_known_host_has_its_provider(host: str, provider: str) -> None:
    assert provider_of_host(host) == provider


@pytest.mark.parametrize("host", FOREIGN)
def test_another_host_has_none(host: str) -> None:
    assert provider_of_host(host) is None


@pytest.mark.parametrize("name", [name for name in PROVIDERS if name != "ollama"])
def test_the_gateway_s_own_upstreams_are_known_by_their_prefix(name: str) -> None:
    assert provider_of_host(urlsplit(PROVIDERS[name]).hostname or "") == name


def test_no_host_stands_in_the_table_twice() -> None:
    hosts = [host for each in LLM_HOSTS.values() for host in each]
    assert len(hosts) == len(set(hosts))


def test_the_gateways_that_pass_keys_on_are_in_the_table() -> None:
    assert set(LLM_HOSTS) >= PASS_KEYS_ON
