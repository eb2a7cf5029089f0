"""Credentials that the environment tells."""

from deltatape.harness.dotenv import parse_dotenv
from deltatape.harness.known_secrets import known_secrets


def test_values_of_variables_named_like_credentials_are_known() -> None:
    environment = {
        "OPENAI_API_KEY": "sk-fake-000001",
        "ANTHROPIC_AUTH_TOKEN": " fake-000002\n",
        "AWS_SECRET_ACCESS_KEY": "fake-000003",
        "AWS_BEARER_TOKEN_BEDROCK": "fake-000004",
        "db_password": "fake-000005",
        "HOME": "/home/ann/fake",
        "MONKEY": "fake-monkey",
        "SHORT_KEY": "true",
    }
    expected = (b"fake-000002", b"fake-000003", b"fake-000004", b"fake-000005", b"sk-fake-000001")
    assert known_secrets(environment, []) == expected


def test_files_are_searched_too_and_nothing_is_named_twice() -> None:
    file = parse_dotenv("GROQ_API_KEY=gsk-fake-00\nX_TOKEN='gsk-fake-00'\nY_SECRET=fake-é-00", "")
    assert known_secrets({}, [file]) == ("fake-é-00".encode(), b"gsk-fake-00")


def test_passwords_in_urls_are_known_as_written_and_as_sent() -> None:
    environment = {"DATABASE_URL": "db://ann:fake%2F0000@db.example/x", "URL": "http://h/@x"}
    assert known_secrets(environment, []) == (b"fake%2F0000", b"fake/0000")


def test_credentials_among_custom_headers_are_known_with_and_without_their_scheme() -> None:
    headers = "X-Team: blue-team\nAuthorization: Bearer fake-000006\nx-api-key: fake-000007\nodd"
    assert known_secrets({"ANTHROPIC_CUSTOM_HEADERS": headers}, []) == (
        b"Bearer fake-000006",
        b"fake-000006",
        b"fake-000007",
    )
