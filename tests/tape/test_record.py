from deltatape.tape.record import VERSION, Header
from helpers.tapes import HEADER


def test_the_version_comes_first_so_that_a_file_shows_what_it_is() -> None:
    value = HEADER.to_json()
    assert isinstance(value, dict)
    assert next(iter(value.items())) == ("deltatape", VERSION)


def test_a_header_comes_back_from_its_object() -> None:
    assert Header.from_json(HEADER.to_json()) == HEADER
