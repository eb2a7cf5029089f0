import pytest
from hypothesis import given, settings

from deltatape.tape.spellings import GIANT, LONG, fewer_spellings, spellings
from helpers.spelling import credentials, spelled


@pytest.mark.parametrize("credential", [b"sk-fake-000000", b"fake.fake_fake", b""])
def test_a_plain_credential_has_one_spelling(credential: bytes) -> None:
    assert spellings(credential) == (credential,)


@pytest.mark.parametrize(
    ("credential", "expected"),
    [
        (b"fake/fake", rb"fake\/fake"),
        (b"fake/fake", rb"fake\\/fake"),
        (b"fake/fake", b"fake%2Ffake"),
        (b"fake/fake", b"fake%2ffake"),
        (b"fake+fake", rb"fake\u002bfake"),
        (b"fake+fake", rb"fake\u002Bfake"),
        (b"fake=fake", rb"fake\u003dfake"),
        (b"fake&fake", rb"fake\u0026fake"),
        (b'fake"fake', rb"fake\"fake"),
        (b'fake"fake', rb"fake\u0022fake"),
        (b'fake"fake', rb"fake\\\"fake"),
        (b"fake\\fake", rb"fake\\fake"),
        (b"fake fake", b"fake+fake"),
        (b"fake fake", b"fake%20fake"),
        ("fakeñfake".encode(), rb"fake\u00f1fake"),
        ("fakeñfake".encode(), rb"fake\u00F1fake"),
        ("fakeñfake".encode("latin-1"), "fakeñfake".encode()),
        ("fakeñfake".encode("latin-1"), rb"fake\u00f1fake"),
        ("fakeñfake".encode("latin-1"), b"fake%F1fake"),
    ],
)
def test_what_encoders_make_of_a_credential_is_known(credential: bytes, expected: bytes) -> None:
    found = spellings(credential)
    assert found[0] == credential
    assert expected in found
    assert len(set(found)) == len(found)


@given(credentials)
@settings(max_examples=60)
def test_every_usual_spelling_is_known(credential: str) -> None:
    found = spellings(credential.encode())
    assert {one.encode() for one in spelled(credential)} <= set(found)


def test_long_credentials_have_fewer_spellings_where_they_come_by_the_dozen() -> None:
    short, long, giant = (b"fake+/=%".ljust(length, b"0") for length in (LONG, LONG + 1, GIANT + 1))
    assert fewer_spellings(short) == spellings(short)
    assert set(fewer_spellings(long)) == {
        long,
        long.replace(b"/", rb"\/"),
        long.replace(b"/", rb"\\/"),
        b"fake%2B%2F%3D%25".ljust(LONG + 9, b"0"),
        b"fake%2b%2f%3d%25".ljust(LONG + 9, b"0"),
    }
    assert fewer_spellings(giant) == (giant,)
