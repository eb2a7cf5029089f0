"""A key whose owner is known does not reach a host that is known to be another's."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltatape.gateway.key_fit import KEY_FORMS, KeyForm, mismatch
from deltatape.gateway.llm_hosts import LLM_HOSTS
from deltatape.gateway.routes import PROVIDERS
from deltatape.http1.head import Fields

TARGET = b"/v1/chat/completions"


def bearer(key: bytes) -> Fields:
    return ((b"Host", b"x"), (b"Authorization", b"Bearer " + key))


REFUSED = [
    (bearer(b"sk-or-v1-fake"), "api.openai.com", "Authorization", "sk-or-"),
    (bearer(b"sk-ant-fake"), "openrouter.ai", "Authorization", "sk-ant-"),
    (bearer(b"sk-proj-fake"), "api.anthropic.com", "Authorization", "sk-proj-"),
    (bearer(b"gsk_fake"), "api.openai.com", "Authorization", "gsk_"),
    (bearer(b"xai-fake"), "api.groq.com", "Authorization", "xai-"),
    (bearer(b"hf_fake"), "api.together.xyz", "Authorization", "hf_"),
    (((b"X-Api-Key", b"sk-proj-fake"),), "api.anthropic.com", "X-Api-Key", "sk-proj-"),
    (((b"api-key", b"sk-proj-fake"),), "acme.openai.azure.com", "api-key", "sk-proj-"),
    (((b"x-goog-api-key", b"sk-or-v1-fake"),), "aiplatform.googleapis.com", "x-goog", "sk-or-"),
    (((b"authorization", b"bEARER   gsk_fake"),), "api.x.ai", "authorization", "gsk_"),
    (((b"authorization", b" gsk_fake "),), "api.x.ai", "authorization", "gsk_"),
]


@pytest.mark.parametrize(("fields", "host", "place", "prefix"), REFUSED)
def test_a_foreign_key_is_refused_with_its_place_and_prefix(
    fields: Fields, host: str, place: str, prefix: str
) -> None:
    problem = mismatch(fields, TARGET, host)
    assert problem is not None
    assert place in problem
    assert prefix in problem
    assert host in problem
    assert "fake" not in problem
    assert "--allow-key-mismatch" in problem


@pytest.mark.parametrize(
    ("fields", "host"),
    [
        (bearer(b"sk-or-v1-fake"), "openrouter.ai"),
        (bearer(b"sk-fake"), "api.openai.com"),
        (bearer(b"sk-fake"), "api.deepseek.com"),
        (bearer(b"sk-fake"), "api.anthropic.com"),
        (bearer(b"sk-ant-fake"), "litellm.corp.example"),
        (bearer(b"sk-ant-fake"), "127.0.0.1"),
        (bearer(b"sk-ant-fake"), "gateway.ai.cloudflare.com"),
        (bearer(b"eyJfake"), "api.openai.com"),
        (((b"authorization", b"Basic c2stYW50LWZha2U="),), "api.openai.com"),
        (((b"x-other", b"sk-ant-fake"),), "api.openai.com"),
        ((), "api.openai.com"),
    ],
)
def test_what_may_be_meant_is_let_pass(fields: Fields, host: str) -> None:
    assert mismatch(fields, TARGET, host) is None


def test_a_key_in_the_query_counts_also_when_it_is_escaped() -> None:
    host = "generativelanguage.googleapis.com"
    assert mismatch((), b"/v1beta/models?alt=sse&key=AIzafake", host) is None
    problem = mismatch((), b"/v1beta/models?alt=sse&key=sk%2Dor%2Dfake", host)
    assert problem is not None
    assert "?key=" in problem
    assert mismatch((), b"/v1beta/models?keys=sk-or-fake", host) is None


def test_the_message_names_the_path_that_a_base_url_needs() -> None:
    problem = mismatch(bearer(b"sk-or-v1-fake"), TARGET, "api.openai.com")
    assert problem is not None
    assert "/openrouter/api/v1" in problem


def test_an_owner_without_a_prefix_here_needs_an_upstream() -> None:
    problem = mismatch(bearer(b"pplx-fake"), TARGET, "api.openai.com")
    assert problem is not None
    assert "--upstream perplexity=https://HOST" in problem


@pytest.mark.parametrize("form", KEY_FORMS, ids=lambda form: form.prefix.decode())
def test_each_form_is_accepted_by_hosts_that_exist(form: KeyForm) -> None:
    assert set(form.accepted_by) <= set(LLM_HOSTS)
    name = form.path.split("/")[1] if form.path else ""
    assert bool(form.path) == any(each in PROVIDERS for each in form.accepted_by)
    assert not form.path or name in form.accepted_by


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(KEY_FORMS),
    st.binary(min_size=6, max_size=40),
    st.sampled_from(["api.openai.com", "api.anthropic.com", "api.groq.com"]),
)
def test_no_message_holds_the_key(form: KeyForm, rest: bytes, host: str) -> None:
    problem = mismatch(bearer(form.prefix + rest), TARGET, host)
    assert problem is None or (form.prefix + rest).decode("latin-1") not in problem
