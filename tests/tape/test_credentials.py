import base64

import pytest

from deltatape.tape.credentials import in_field, in_url

BASIC = base64.b64encode(b"user:fake:pass")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        (b"X-Api-Key", b" fake ", [b"fake"]),
        (b"X-Api-Key", b"fake fake", [b"fake fake"]),
        (b"X-Api-Key", b"bearer  fake", [b"fake"]),
        (b"Authorization", b"Bearer  fake-fake", [b"fake-fake"]),
        (b"Helicone-Auth", b"Bearer fake-fake", [b"fake-fake"]),
        (b"Authorization", b"fake fake", [b"fake", b"fake fake"]),
        (b"authorization", b"fake-fake", [b"fake-fake"]),
        (b"authorization", b"Bearer ", [b"Bearer", b"Bearer"]),
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
        (b"Cookie", b"env=production; sid=abcdefghijklmnop", [b"", b"abcdefghijklmnop"]),
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
        (b'<https://h/?key=fake>; rel="x"', b'fake>; rel="x"', {b'fake>; rel="x"', b"fake"}),
    ],
)
def test_credentials_are_taken_out_of_urls(url: bytes, value: bytes, expected: set[bytes]) -> None:
    start = url.index(value)
    found = set(in_url(url, start, start + len(value)))
    assert expected <= found
    assert all(b"user" not in one for one in found)
