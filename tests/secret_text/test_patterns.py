import pytest

from deltatape.secret_text.patterns import PATTERNS, find
from helpers.secret_tapes import KEY

LOOSE = [
    ("Telegram token", "12345678:AA" + "fake" * 8),
    ("private key", "-----BEGIN RSA PRIVATE KEY-----\nabc=\n-----END RSA PRIVATE KEY-----"),
    ("private key", "-----BEGIN PRIVATE KEY-----\nabc"),
    ("private key", "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: 1\n\nabc"),
    ("Anthropic key", "sk-ant-fake-fakefakefake"),
    ("OpenRouter key", "sk-or-v1-fakefakefake0"),
    ("OpenAI key", "sk-proj-fakefakefake0000"),
    ("API key", KEY),
    ("API key", "sk_test_fakefakefa"),
    ("API key", "pk-fakefakefake0000"),
    ("API key", "rk_live_fakefakefa"),
    ("Google key", "AIza" + "fake" * 8),
    ("Google token", "ya29.fakefakefake-x.y"),
    ("AWS key", "AKIA" + "FAKE" * 4),
    ("AWS key", "A3TZ" + "FAKE" * 4),
    ("Bedrock key", "ABSK" + "fake" * 6 + "=="),
    ("Bedrock key", "bedrock-api-key-fakefakefake"),
    ("Groq key", "gsk_" + "fake" * 4),
    ("xAI key", "xai-" + "fake" * 4),
    ("Hugging Face token", "hf_" + "fake" * 4),
    ("Perplexity key", "pplx-" + "fake" * 4),
    ("GitHub token", "ghp_" + "fake" * 4),
    ("GitHub token", "github_pat_" + "fake" * 4),
    ("Databricks token", "dapi" + "fade" * 4),
    ("Azure secret", "abc8Q~" + "fake" * 5),
    ("JSON Web Token", "ey" + "J0eXAifake.ey" + "JzdWIifake" + ".fake"),
]

PARTS = [
    ("AWS signature", "Signature=", "0a" * 32, ","),
    ("bearer token", "Authorization: Bearer ", "fake" * 4, "\n"),
    ("bearer token", "bearer\t", "fa.ke~fa+ke/fa-ke=", " ok"),
    ("basic credential", "authorization: Basic ", "ZmFrZTpmYWtl", ""),
    ("password in a URL", "postgres://", "user:fake", "@db/x"),
    ("credential by its name", "OPENAI_API_KEY=", "my-own-fake-key-1", " x"),
    ("credential by its name", '"client_secret": "', "fake0fake0fake", '"'),
    ("credential by its name", '\\"password\\":\\"', "fake0fake0fake", '\\"'),
]


@pytest.mark.parametrize(("kind", "secret"), LOOSE)
def test_a_secret_is_found_in_prose_with_its_exact_borders(kind: str, secret: str) -> None:
    text = f'my "{secret}", and more'
    first = next(iter(find(text)))
    assert (first.kind, text[first.start : first.end]) == (kind, secret)


@pytest.mark.parametrize(("kind", "before", "secret", "after"), PARTS)
def test_only_the_secret_part_of_what_shows_it_is_found(
    kind: str, before: str, secret: str, after: str
) -> None:
    text = before + secret + after
    assert [(m.kind, text[m.start : m.end]) for m in find(text)] == [(kind, secret)]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("gsk_" + "0" * 52, "Groq key"),
        ("sk-or-v1-" + "0" * 64, "OpenRouter key"),
        ("hf_" + "a" * 34, "Hugging Face token"),
        ("Signature=" + "0" * 64, "AWS signature"),
        ("-----BEGIN PRIVATE KEY-----", "private key"),
    ],
)
def test_an_exact_format_makes_a_find_certain(text: str, kind: str) -> None:
    assert next((match.kind, match.certain) for match in find(text)) == (kind, True)


@pytest.mark.parametrize("secret", [secret for _, secret in LOOSE if "PRIVATE" not in secret])
def test_the_fakes_of_these_tests_are_not_certain(secret: str) -> None:
    certain = {match.kind for match in find(secret) if match.certain}
    assert certain <= {"AWS key"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ask-a-question-and-see-what-comes",
        "risk-averse-people-know-this",
        "sk-short",
        "call_fakefakefakefakefake",
        "chatcmpl-fakefakefakefake",
        "https://example.com:8080/@user",
        "the password: required",
        "max_tokens: 100000000000000",
        "a bearer of bad news",
        "://****:****@host",
        '{"api_key": {"type": "string"}}',
        "eyes. eyelashes",
        "*" * 80,
    ],
)
def test_what_only_resembles_a_secret_is_none(text: str) -> None:
    assert list(find(text)) == []


def test_every_pattern_is_tried_here() -> None:
    tried = {kind for kind, _ in LOOSE} | {part[0] for part in PARTS}
    assert tried == {pattern.kind for pattern in PATTERNS}
