"""Which hosts are taped."""

import pytest

from deltatape.errors import UsageError
from deltatape.mitm.hosts import Hosts


@pytest.mark.parametrize("host", ["api.openai.com", "API.Anthropic.com", "openrouter.ai."])
def test_llm_providers_are_taped_by_default(host: str) -> None:
    assert Hosts(()).has(host)


@pytest.mark.parametrize("host", ["example.com", "api.openai.com.example.com", "localhost", ""])
def test_other_hosts_are_not_taped(host: str) -> None:
    assert not Hosts(()).has(host)


@pytest.mark.parametrize(
    ("pattern", "host", "taped"),
    [
        ("llm.example.com", "LLM.example.com", True),
        ("*.example.com", "a.b.example.com", True),
        ("*.example.com", "example.com", False),
        ("llm.example.com", "llmxexample.com", False),
        ("*", "anything", True),
        ("::1", "::1", True),
    ],
)
def test_patterns_add_hosts(pattern: str, host: str, *, taped: bool) -> None:
    assert Hosts([pattern]).has(host) is taped


@pytest.mark.parametrize("pattern", ["https://x.com", "x.com/v1", "a b", "", "[a]"])
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(UsageError, match="invalid host pattern"):
        Hosts([pattern])
