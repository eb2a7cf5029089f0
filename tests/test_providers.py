"""A host is known by its name, its suffix or its region, and nothing else is taken for one."""

from urllib.parse import urlsplit

import pytest

from deltatape.providers import PROVIDERS, UPSTREAMS, provider_of_host, provider_of_key

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


@pytest.mark.parametrize("name", [name for name in UPSTREAMS if name != "ollama"])
def test_the_gateway_s_own_upstreams_are_known_by_their_prefix(name: str) -> None:
    assert provider_of_host(urlsplit(UPSTREAMS[name]).hostname or "") == name


def test_no_host_stands_in_the_table_twice() -> None:
    hosts = [host for each in PROVIDERS.values() for host in each.hosts]
    assert len(hosts) == len(set(hosts))


def test_what_names_another_provider_names_one_that_is_there() -> None:
    assert {name for each in PROVIDERS.values() for name in each.keys_fit} <= PROVIDERS.keys()
    assert all(each.sites <= set(each.hosts) for each in PROVIDERS.values())


def test_a_key_is_known_by_its_beginning_and_by_no_other() -> None:
    prefixes = [prefix for each in PROVIDERS.values() for prefix in each.key_prefixes]
    assert not [(a, b) for a in prefixes for b in prefixes if a != b and a.startswith(b)]
    for each in PROVIDERS.values():
        assert bool(each.key_prefixes) <= bool(each.title)
        for prefix in each.key_prefixes:
            assert provider_of_key(prefix.encode() + b"fake") == (each, prefix)
    assert provider_of_key(b"sk-fake") == (None, "")
