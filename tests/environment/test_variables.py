"""Which variables hold base URLs."""

import pytest

from deltatape.environment.variables import (
    SERVED,
    is_listed,
    may_be_redirected,
    sounds_like_base_url,
)
from deltatape.providers import PROVIDERS


def test_every_provider_that_is_served_has_a_prefix() -> None:
    assert all(PROVIDERS[name].is_prefix for name in SERVED)


def test_what_serves_more_than_models_is_never_redirected() -> None:
    assert not is_listed("AWS_ENDPOINT_URL")
    assert not may_be_redirected("AWS_ENDPOINT_URL")
    assert not may_be_redirected("HTTPS_PROXY")
    assert may_be_redirected("OPENAI_BASE_URL")


@pytest.mark.parametrize(
    "name",
    ["LLM_BASE_URL", "MY_OPENAI_API_URL", "OPENROUTER_BASE_URL", "AI_ENDPOINT", "vllm_api_base"],
)
def test_a_name_of_the_apps_own_is_recognised(name: str) -> None:
    assert sounds_like_base_url(name)


@pytest.mark.parametrize(
    "name",
    [
        "OPENROUTER_SITE_URL",
        "DATABASE_URL",
        "BASE_URL",
        "EMAIL_API_URL",
        "NEXT_PUBLIC_LLM_API_URL",
        "LLM_OTEL_ENDPOINT",
        "OPENAI_API_KEY",
    ],
)
def test_other_names_are_not(name: str) -> None:
    assert not sounds_like_base_url(name)
