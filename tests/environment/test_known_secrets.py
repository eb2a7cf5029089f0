"""Credentials that the environment tells."""

import base64
import json

import pytest

from deltatape.environment.dotenv import parse_dotenv
from deltatape.environment.known_secrets import known_secrets


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
    pairs = (b"ann:fake/0000", b"ann:fake%2F0000")
    encoded = [base64.b64encode(pair) for pair in pairs]
    found = known_secrets(environment, [])
    assert {b"fake%2F0000", b"fake/0000", *encoded} <= set(found)
    assert all(each.startswith((b"fake", b"YW5uOm")) for each in found)


def test_a_user_without_a_password_is_known_too() -> None:
    found = known_secrets({"HTTPS_PROXY": "http://fake-0000@proxy.example:8080"}, [])
    assert found == (b"ZmFrZS0wMDAwOg", b"ZmFrZS0wMDAwOg==", b"fake-0000")


def test_keys_in_the_query_of_a_url_are_known() -> None:
    url = "https://gw.example/v1?a=fake-value-1&api-key=fake%2B0000"
    assert known_secrets({"OPENAI_BASE_URL": url}, []) == (b"fake%2B0000", b"fake+0000")


def test_credentials_among_custom_headers_are_known_with_and_without_their_scheme() -> None:
    headers = "X-Team: blue-team\nAuthorization: Bearer fake-000006\nx-api-key: fake-000007\nodd"
    assert known_secrets({"ANTHROPIC_CUSTOM_HEADERS": headers}, []) == (
        b"Bearer fake-000006",
        b"fake-000006",
        b"fake-000007",
    )


@pytest.mark.parametrize(
    "name",
    [
        "OPENAI_KEY_2",
        "OPENAI_KEY2",
        "API_KEYS",
        "APIKEY_OPENAI",
        "STRIPE_SECRET_KEY_LIVE",
        "GITHUB_PAT",
        "openaiApiKey",
        "PGPASSWORD",
        "npm_config_//registry.example/:_password",
        "NEXT_PUBLIC_ANON_KEY",
        "GOOGLE_CREDENTIALS",
    ],
)
def test_names_tell_of_credentials_wherever_the_word_stands(name: str) -> None:
    assert known_secrets({name: "fake-0000"}, []) == (b"fake-0000",)


@pytest.mark.parametrize(
    "name",
    ["MONKEY", "JWT_PUBLIC_KEY", "SIGNING_KEY_ID", "SECRET_NAME", "CACHE_KEY_PREFIX", "PATCH"],
)
def test_names_of_other_things_do_not(name: str) -> None:
    assert known_secrets({name: "fake-0000"}, []) == ()


@pytest.mark.parametrize(
    "value",
    [
        "postgres",
        "not-needed",
        "password",
        "disabled",
        "16384000",
        "0.000000001",
        "https://auth.example/token1",
        "/run/secrets/key1",
        "/home/ann/.ssh/id_ed25519",
        "~/keys/fake1",
        "./fake-0000",
        "C:\\keys\\fake1",
        "config/key1.pem",
        "",
    ],
)
def test_values_that_protect_nothing_are_no_credentials(value: str) -> None:
    assert known_secrets({"SOME_KEY": value}, []) == ()


def test_a_password_that_is_a_word_is_known_in_no_url() -> None:
    found = known_secrets({"DATABASE_URL": "db://postgres:postgres@db.example/x"}, [])
    assert set(found) == {b"cG9zdGdyZXM6cG9zdGdyZXM=", b"cG9zdGdyZXM6cG9zdGdyZXM"}


def test_keys_in_lists_are_known_one_by_one() -> None:
    found = known_secrets({"API_KEYS": "fake-0001,fake-0002  fake-0003"}, [])
    assert found == (b"fake-0001", b"fake-0001,fake-0002  fake-0003", b"fake-0002", b"fake-0003")


def test_keys_in_json_are_known_by_their_own_names() -> None:
    account = json.dumps(
        {"project": "fake-project-1", "private_key": "fake-0001", "more": [{"token": "fake-0002"}]}
    )
    keys = json.dumps({"eu": "fake-0003", "n": 1, "us": ["fake-0004", "postgres"]})
    assert set(known_secrets({"X_CREDENTIALS": account, "API_KEYS": keys}, [])) == {
        *(account.encode(), b"fake-0001", b"fake-0002"),
        *(keys.encode(), b"fake-0003", b"fake-0004"),
    }


def test_what_only_looks_like_json_is_a_value_like_others() -> None:
    deep = "[" * 20 + '"fake-0000"' + "]" * 20
    assert known_secrets({"A_KEY": "{fake-0000"}, []) == (b"{fake-0000",)
    assert known_secrets({"A_KEY": deep}, []) == (deep.encode(),)
    assert b"[" * 50_000 in known_secrets({"A_KEY": "[" * 50_000}, [])


def test_what_has_the_format_of_a_key_is_known_whatever_its_name() -> None:
    key = "AKIA" + "ABCD" * 4
    assert known_secrets({"NOTE": f"é is {key}."}, []) == (key.encode(),)
    assert known_secrets({"AWS_ACCESS_KEY_ID": key}, []) == (key.encode(),)
