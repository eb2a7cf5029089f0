import pytest

from deltatape.model.exchange import Exchange
from deltatape.model.finding import Blame, Confidence, Severity
from helpers.chat import sse
from helpers.exchanges import FINISH_TEXT, TEXT, USER, asks, found, one, pasted


def answered(asked: object, answers: object, **more: object) -> Exchange:
    request = {**asks(USER, **more), "model": asked}
    return pasted({**TEXT, "model": answers}, FINISH_TEXT, request=request)


@pytest.mark.parametrize(
    ("asked", "answers", "how"),
    [
        ("gpt-4o", "gpt-4o-mini-2024-07-18", "another tier of the family"),
        ("gpt-4o", "claude-sonnet-4-5", "another family of models"),
        ("gpt-4.1-mini", "moonshotai/kimi-k2", "another family of models"),
        ("openai/gpt-4o", "gpt-4.1", "another version"),
        ("gpt-4", "gpt-4o", "another version"),
        ("o3", "o4-mini", "another tier of the family"),
        ("claude-opus-4-1", "claude-opus-4-20250514", None),
        ("claude-opus-4-1", "claude-opus-4-5-20251101", "another version"),
        ("claude-3-5-sonnet-latest", "claude-3-7-sonnet-20250219", "another version"),
        ("us.anthropic.claude-haiku-4-5-20251001-v1:0", "claude-sonnet-4-5", "another tier"),
        ("gemini-2.5-pro", "gemini-2.5-flash", "another tier"),
        ("gemini-2.5-flash", "gemini-2.0-flash-001", "another version"),
        ("meta-llama/Llama-3.3-70B-Instruct", "llama-3.1-8b-instant", "another size"),
    ],
)
def test_names_that_cannot_mean_the_same(asked: str, answers: str, how: str | None) -> None:
    exchange = answered(asked, answers)
    if how is None:
        assert not found(exchange, "S011")
        return
    finding = one(exchange, "S011")
    assert finding.message.startswith(
        f"the request asks for {asked!r}, and {answers!r} answers: {how}"
    )
    assert (finding.severity, finding.blame) == (Severity.WARNING, Blame.UPSTREAM)
    assert finding.confidence is Confidence.POSSIBLE


@pytest.mark.parametrize(
    ("asked", "answers"),
    [
        ("gpt-4o", "gpt-4o-2024-08-06"),
        ("gpt-4-turbo-preview", "gpt-4-0125-preview"),
        ("gpt-3.5-turbo", "gpt-35-turbo"),
        ("gpt-5.2_2025-12-11", "gpt-5.2-2025-12-11"),
        ("o4-mini", "o4-mini-2025-04-16"),
        ("claude-sonnet-4-0", "claude-sonnet-4-20250514"),
        ("anthropic/claude-haiku-4.5", "anthropic/claude-4.5-haiku-20251001"),
        ("anthropic.claude-3-5-sonnet-20240620-v1:0", "claude-3-5-sonnet-20240620"),
        ("claude-3-7-sonnet@20250219", "claude-3-7-sonnet-20250219"),
        ("gemini-flash-latest", "gemini-3.6-flash"),
        ("models/gemini-1.5-pro", "gemini-1.5-pro-002"),
        ("accounts/fireworks/models/llama-v3p3-70b-instruct", "llama-3.3-70b"),
        ("mistral-large-latest", "mistral-large-2411"),
        ("openrouter/auto", "gpt-4o"),
        ("claude-sonnet-4-5", "claude-fake"),
        ("model-router", "gpt-4o-mini"),
        ("my-deployment", "gpt-4o"),
        ("gpt-4o", "default"),
        ("gpt-4o", "/models/model.gguf"),
        ("arn:aws:bedrock:us-east-1:1:inference-profile/abc", "claude-sonnet-4"),
        (None, "gpt-4o"),
        ("gpt-4o", None),
    ],
)
def test_aliases_routers_and_names_of_owners_are_fine(asked: object, answers: object) -> None:
    assert not found(answered(asked, answers), "S011")


@pytest.mark.parametrize("more", [{"models": ["claude-sonnet-4"]}, {"fallbacks": ["gpt-4o-mini"]}])
def test_a_request_may_allow_other_models(more: dict[str, object]) -> None:
    assert not found(answered("gpt-4o", "claude-sonnet-4", **more), "S011")


def test_deployments_are_called_as_their_owner_likes() -> None:
    body = sse({**TEXT, "model": "gpt-4o-mini"}, FINISH_TEXT)
    request = {**asks(USER), "model": "gpt-4o"}
    url = "https://x.openai.azure.com/openai/v1/chat/completions"
    exchange = Exchange.from_body(body, content_type="text/event-stream", url=url, request=request)
    assert not found(exchange, "S011")
