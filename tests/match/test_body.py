import pytest

from deltatape.match.body import NOT_JSON, exact_form, forms_of, json_value, reduce
from deltatape.wire.json_path import parse_path


def test_how_json_is_written_does_not_count() -> None:
    one = forms_of(b'{"a": 1.0, "b": "\\u00e9"}', ())
    assert one == forms_of('{"b":"é","a":1}'.encode(), ())
    assert one != forms_of(b'{"a": 1.5, "b": "\\u00e9"}', ())
    assert one is not None
    assert one.canonical == one.reduced


def test_volatile_fields_are_in_one_form_and_not_in_the_other() -> None:
    paths = (parse_path("a"),)
    one, other = forms_of(b'{"a":1,"b":2}', paths), forms_of(b'{"a":3,"b":2}', paths)
    assert one is not None
    assert other is not None
    assert one.canonical != other.canonical
    assert one.reduced == other.reduced


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 100_000, b"[" * 990 + b"]" * 990])
def test_what_cannot_be_read_is_no_json(body: bytes) -> None:
    assert json_value(body) is NOT_JSON
    assert forms_of(body, ()) is None


def test_numbers_beyond_exact_ones_stay_as_they_are() -> None:
    assert json_value(b"[1e300, 1.0, -2.0, 0.5]") == [1e300, 1, -2, 0.5]
    assert isinstance(json_value(b"1e300"), float)
    assert isinstance(json_value(b"1.0"), int)


def test_a_value_is_reduced_in_place() -> None:
    value = {"a": 1, "b": 2}
    reduce(value, (parse_path("a"), parse_path("x")))
    assert value == {"b": 2}


def multipart(boundary: str, text: str = "hello") -> bytes:
    """A body of one part."""
    return f"--{boundary}\r\nContent-Type: text/plain\r\n\r\n{text}\r\n--{boundary}--\r\n".encode()


def test_the_boundary_of_a_multipart_body_does_not_count() -> None:
    assert exact_form(multipart("0a1b2c")) == exact_form(multipart("ffeedd"))
    assert exact_form(multipart("0a1b2c")) != exact_form(multipart("0a1b2c", "other"))


@pytest.mark.parametrize("body", [b"", b"{}", b"--a\r\nb", b"--a", b"--a\r\n\r\n--b--\r\n"])
def test_other_bodies_are_the_bytes_that_they_are(body: bytes) -> None:
    assert exact_form(body) == body
