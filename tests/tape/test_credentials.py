import base64

import pytest

from deltatape.tape.credentials import basic, in_field, in_other_field, in_url, is_word

BASIC = base64.b64encode(b"user:fake:pass")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        (b"X-Api-Key", b" fake ", [b"fake"]),
        (b"X-Api-Key", b"fake fake", [b"fake fake"]),
        (b"X-Api-Key", b"bearer  fake", [b"fake"]),
        (b"X-Api-Keys", b"fake1, fake2", [b"fake1, fake2", b"fake1", b"fake2"]),
        (b"Authorization", b"Bearer  fake-fake", [b"fake-fake"]),
        (b"Helicone-Auth", b"Bearer fake-fake", [b"fake-fake"]),
        (b"Authorization", b"fake fake", [b"fake", b"fake fake"]),
        (b"authorization", b"fake-fake", [b"fake-fake"]),
        (b"authorization", b"Bearer ", [b"Bearer"]),
        (b"Authorization", b"Bearer EMPTY", [b"EMPTY"]),
        (b"Authorization", b"Bearer\tfake-fake", [b"fake-fake"]),
        (b"Authorization", b"", [b"", b""]),
        (b"AUTHORIZATION", b"Basic " + BASIC, [BASIC, b"fake:pass"]),
        (b"Authorization", b"Basic " + base64.b64encode(b"fake:"), [b"ZmFrZTo=", b"fake"]),
        (b"Authorization", b"Basic " + BASIC.rstrip(b"="), [BASIC.rstrip(b"="), b"fake:pass"]),
        (b"Authorization", b"Basic fake1fake", [b"fake1fake"]),
        (
            b"Authorization",
            b'AWS4 Credential=fake1/2026/x, SignedHeaders=host, Signature="fake2"',
            [
                b'Credential=fake1/2026/x, SignedHeaders=host, Signature="fake2"',
                b"fake1",
                b"fake2",
            ],
        ),
        (b"Cookie", b'a=fake1; b="fake=2";c', [b"fake1", b"fake=2", b""]),
        (b"Cookie", b"env=production; sid=abcdefghijklmnop", [b"production", b"abcdefghijklmnop"]),
        (b"Cookie2", b"a=fake1; b=fake2", [b"fake1", b"fake2"]),
        (b"Set-Cookie2", b"a=fake1; Path=/", [b"fake1"]),
        (b"Set-Cookie", b"a=fake1; Path=/api; HttpOnly", [b"fake1"]),
    ],
)
def test_credentials_are_taken_out_of_their_fields(
    name: bytes, value: bytes, expected: list[bytes]
) -> None:
    assert list(in_field(name, value)) == expected


@pytest.mark.parametrize(
    ("url", "value", "expected"),
    [
        (b"/v1?key=fa%2Bke+1&a=b", b"fa%2Bke+1", {b"fa%2Bke+1", b"fa+ke+1", b"fa+ke 1"}),
        (b"https://user:fa%40ke@host/", b"user:fa%40ke", {b"fa%40ke", b"fa@ke"}),
        (b"https://fake@host/", b"fake", {b"fake"}),
        (b"/v1?key=fake;a=b", b"fake;a=b", {b"fake;a=b", b"fake"}),
        (b'<https://h/?key=fake>; rel="x"', b'fake>; rel="x"', {b'fake>; rel="x"', b"fake"}),
    ],
)
def test_credentials_are_taken_out_of_urls(url: bytes, value: bytes, expected: set[bytes]) -> None:
    start = url.index(value)
    found = set(in_url(url, start, start + len(value)))
    assert expected <= found
    assert all(b"user" not in one for one in found)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        (b"X-Auth-Header", b"Bearer fake-0000", [b"fake-0000"]),
        (b"X-Forwarded", b" bearer  fakefakefakefake ", [b"fakefakefakefake"]),
        (b"X-Auth-Header", b"Bearer fake=000/1", [b"fake=000/1"]),
        (b"X-Remapped-WWW-Authenticate", b"Bearer realm=fake-0000", []),
        (b"X-Note", b'Bearer realm="fake-0000"', []),
        (b"X-Note", b"bearer authentication", []),
        (b"X-Note", b"the bearer fake-0000", []),
        (b"WWW-Authenticate", b"Bearer fake-0000", []),
        (b"WWW-Authenticate", b'Bearer realm="fake-0000"', []),
        (
            b"Sec-WebSocket-Protocol",
            b"realtime, openai-insecure-api-key.fake-0000, openai-beta.realtime-v1",
            [b"fake-0000"],
        ),
        (
            b"sec-websocket-protocol",
            b"base64url.bearer.authorization.k8s.io.fake0,v4.channel.k8s.io",
            [b"fake0"],
        ),
        (b"Sec-WebSocket-Protocol", b"mqtt, graphql-ws", []),
    ],
)
def test_values_tell_of_credentials_where_names_do_not(
    name: bytes, value: bytes, expected: list[bytes]
) -> None:
    assert list(in_other_field(name, value)) == expected


@pytest.mark.parametrize(
    "value", [b"", b"postgres", b"not-needed", b"lm-studio", b"EMPTY", b"my_password"]
)
def test_words_are_no_credentials(value: bytes) -> None:
    assert is_word(value)


@pytest.mark.parametrize("value", [b"fake-0000", b"fakefakefakefake", b"fake fake", b"fake.fake"])
def test_what_is_longer_or_holds_a_digit_is_no_word(value: bytes) -> None:
    assert not is_word(value)


def test_a_password_is_known_as_base64_too() -> None:
    assert basic(b"user", b"fake:pass") == (b"fake:pass", BASIC, BASIC.rstrip(b"="))
    assert basic(b"\xff\xfe", b"fake-000") == (
        b"fake-000",
        b"//46ZmFrZS0wMDA=",
        b"__46ZmFrZS0wMDA=",
        b"//46ZmFrZS0wMDA",
        b"__46ZmFrZS0wMDA",
    )
