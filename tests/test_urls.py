"""Facts about URLs that may be anything."""

import pytest

from deltatape.urls import split_url


@pytest.mark.parametrize("url", ["http://[", "http://[x]/v1", "http://h\u2100.example", "//[/v1"])
def test_a_url_that_cannot_be_split_has_no_parts(url: str) -> None:
    assert not any(split_url(url))
    assert split_url(url).hostname is None


def test_another_one_has_its_parts() -> None:
    parts = split_url("https://[::1]:8080/v1?a=b")
    assert (parts.hostname, parts.port, parts.path, parts.query) == ("::1", 8080, "/v1", "a=b")
