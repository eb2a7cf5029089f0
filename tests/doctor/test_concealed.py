"""Credentials in shown code."""

import pytest

from deltatape.doctor.concealed import conceal


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        (
            'OpenAI(api_key="fake-000", base_url="https://x")',
            'OpenAI(api_key="***", base_url="https://x")',
        ),
        ("apiKey: 'fake-000',", "apiKey: '***',"),
        ('{"x-api-key": "fake-000"}', '{"x-api-key": "***"}'),
        ("OPENAI_API_KEY=fake-000", "OPENAI_API_KEY=***"),
        ('-H "Authorization: Bearer fake-000"', '-H "Authorization: Bearer ***"'),
        ("https://user:pw@host/v1?key=fake-000&x=1", "https://***@host/v1?key=***&x=1"),
        ('call("sk-fake-000000")', 'call("***")'),
    ],
)
def test_a_credential_is_hidden(code: str, shown: str) -> None:
    assert conceal(code) == shown


@pytest.mark.parametrize(
    "code",
    [
        'OpenAI(api_key=os.environ["OPENAI_API_KEY"], base_url="https://x")',
        "apiKey: process.env.OPENROUTER_KEY,",
        "api_key=settings.key",
        'base_url="https://openrouter.ai/api/v1"',
        "max_tokens=4096000",
    ],
)
def test_what_is_none_stays(code: str) -> None:
    assert conceal(code) == code
