from dataclasses import replace

import pytest

from deltatape.match.endpoint import (
    asked_places,
    fits_masked,
    masked_pieces,
    recorded_places,
    shown,
)
from deltatape.model.exchange import HeaderValue, MaskedCredential, Request
from helpers.taped import taped

KEY = MaskedCredential(length=4, hash="ab12cd34")


def request(*target: HeaderValue, upstream: str = "https://api.example.com") -> Request:
    return replace(taped(upstream=upstream).request, target=target)


def meets(recorded: bytes, asked: bytes, upstream: str = "https://api.example.com") -> bool:
    """Whether a request for `asked` is one for what was recorded."""
    places = recorded_places(request(recorded, upstream=upstream))
    return not set(places).isdisjoint(asked_places("POST", asked))


@pytest.mark.parametrize(
    "asked",
    [
        b"/api/v1/chat",
        b"/chat",
        b"/corp/chat",
        b"/corp/api/v1/chat",
        b"/s/my-test/chat",
        b"/t/fake-token/s/my-test/corp/api/v1/chat",
        b"http://127.0.0.1:8378/api/v1/chat",
    ],
)
def test_a_path_is_found_bare_below_prefixes_and_without_the_upstreams_own(asked: bytes) -> None:
    assert meets(b"/api/v1/chat", asked, "https://openrouter.ai/api/v1/")


@pytest.mark.parametrize("upstream", ["http://[", "http://[x]", "http://\u2100.example", "\udc80"])
def test_an_upstream_that_is_no_url_has_no_path(upstream: str) -> None:
    assert meets(b"/v1/chat", b"/v1/chat", upstream)


def test_what_only_begins_like_the_upstreams_path_is_not_shortened() -> None:
    assert not meets(b"/api2/chat", b"2/chat", "https://api.example.com/api")
    assert meets(b"/", b"http://127.0.0.1")


@pytest.mark.parametrize(
    ("recorded", "asked"),
    [
        (b"/model/a%3A0/invoke", b"/model/a:0/invoke"),
        (b"/model/a:0/invoke", b"/model/a%3a0/invoke"),
        (b"/x/%7Euser", b"/x/~user"),
        (b"/x/a%2fb", b"/x/a%2Fb"),
        (b"/x/%zz", b"/x/%zz"),
        (b"/x?a=1&b=2", b"/x?b=2&a=1"),
        (b"/x?a=%31", b"/x?a=1"),
        (b"/x?key=****", b"/x?key=fake-000"),
        (b"/x?a=1", b"/x?a=1#part"),
    ],
)
def test_spellings_that_mean_the_same_target_are_equal(recorded: bytes, asked: bytes) -> None:
    assert meets(recorded, asked)


@pytest.mark.parametrize(
    ("recorded", "asked"),
    [
        (b"/x/a%2Fb", b"/x/a/b"),
        (b"/x/a%3Fb", b"/x/a?b"),
        (b"/x/100%25", b"/x/100%"),
        (b"/x?a=1&a=2", b"/x?a=2&a=1"),
        (b"/x?a=", b"/x"),
        (b"/x?a=1", b"/x?a=2"),
    ],
)
def test_spellings_that_mean_another_target_are_not(recorded: bytes, asked: bytes) -> None:
    assert not meets(recorded, asked)


def test_the_method_is_part_of_the_place() -> None:
    assert set(recorded_places(request(b"/x"))).isdisjoint(asked_places("GET", b"/x"))


def test_a_path_that_was_masked_is_known_by_its_pieces() -> None:
    masked = request(b"/a/", KEY, b"/b%3A/", KEY, b"?q=1&key=", KEY)
    pieces = masked_pieces(masked)
    assert pieces == (b"/a/", b"/b:/", b"")
    places = asked_places("POST", b"/p/a/x/y/b:/z?q=1&key=fake")
    assert fits_masked(places, masked, pieces)
    assert not fits_masked(asked_places("POST", b"/a/x/b:/z?q=2&key=f"), masked, pieces)
    assert not fits_masked(asked_places("GET", b"/a/x/b:/z?q=1&key=f"), masked, pieces)


def test_a_path_without_masks_is_one_piece() -> None:
    assert masked_pieces(request(b"/a?key=", KEY, b"&b=", KEY)) == (b"/a",)
    assert masked_pieces(request(b"/a")) == (b"/a",)


def test_a_target_is_shown_without_credentials_and_shortened() -> None:
    assert shown(b"/a?key=fake-000000&b=1") == "/a?key=***&b=1"
    assert shown(b"/" + b"a" * 100, 20) == "/" + "a" * 16 + "..."
    assert shown(b"/a?api_key=" + b"f" * 5000, 20) == "/a?api_key=***"


def test_the_token_of_a_gateway_and_what_else_is_to_be_hidden_is_not_shown() -> None:
    assert shown(b"/t/fake/openai/v1?key=fake") == "/t/***/openai/v1?key=***"
    assert shown(b"http://localhost/s/x/t/fake") == "http://localhost/s/x/t/***"
    assert shown(b"/v1/t/kept") == "/v1/t/kept"
    assert shown(b"/fake/0123456789", 9, lambda text: text.replace("fake", "****")) == "/****/..."
