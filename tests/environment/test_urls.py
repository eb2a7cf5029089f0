"""The user's URL, and the prefix that stands for it."""

import pytest

from deltatape.environment.urls import (
    Prefixes,
    Url,
    is_deltatape,
    parse_url,
    port_of,
    without_overlap,
)
from deltatape.gateway.routes import Routes, parse_upstream


def url(value: str, name: str = "OPENAI_BASE_URL") -> Url:
    parsed = parse_url(name, value)
    assert parsed is not None
    return parsed


def test_a_url_is_read_in_its_parts() -> None:
    parsed = url("https://user:pw@llm.corp.example:8443/v1/?x=1")
    assert parsed.origin.url == "https://llm.corp.example:8443"
    assert (parsed.userinfo, parsed.path) == ("user:pw@", "/v1/?x=1")
    assert parsed.shown == "https://llm.corp.example:8443/v1/"


@pytest.mark.parametrize(
    "value",
    ["", "llm", "sk-fake-000000", "ftp://h/", "https://", "https://h:x/", "https://h:99999/",
     "https://[::1/", "https://a b/", "https://é.example/", "unix:/x"],
)  # fmt: skip
def test_what_is_no_url_is_none(value: str) -> None:
    assert parse_url("OPENAI_BASE_URL", value) is None


@pytest.mark.parametrize(
    ("value", "origin"),
    [
        ("localhost", "http://localhost:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),  # noqa: S104 - an address to listen at
        ("0.0.0.0:11500", "http://127.0.0.1:11500"),
        (":11500", "http://127.0.0.1:11500"),
        ("[::1]:11500", "http://[::1]:11500"),
        ("[::]", "http://127.0.0.1:11434"),
        ("http://gpu.corp.example", "http://gpu.corp.example"),
        ("https://0.0.0.0:1/x", "https://127.0.0.1:1"),
    ],
)
def test_the_short_forms_of_ollama_are_understood(value: str, origin: str) -> None:
    assert url(value, "OLLAMA_HOST").origin.url == origin


@pytest.mark.parametrize(
    ("value", "split"),
    [
        ("https://api.openai.com/v1", ("openai", "/v1")),
        ("https://openrouter.ai/api/v1/", ("openrouter", "/api/v1/")),
        ("http://localhost:11434/v1", ("ollama", "/v1")),
        ("https://llm.corp.example/v1?k=1", ("llm.corp.example", "/v1?k=1")),
        ("https://llm.corp.example:8443", ("llm.corp.example-8443", "")),
        ("http://llm.corp.example/v1", ("llm.corp.example-80", "/v1")),
        ("http://127.0.0.1:8000/v1", ("127.0.0.1-8000", "/v1")),
        ("http://[::1]:8000/v1", ("ipv6---1-8000", "/v1")),
        ("https://openai/v1", ("openai-443", "/v1")),
        ("https://s/v1", ("s-443", "/v1")),
        ("https://_/v1", ("host", "/v1")),
        (f"https://{'long.' * 40}example/v1", ("long." * 10 + "long", "/v1")),
    ],
)
def test_an_origin_has_a_prefix(value: str, split: tuple[str, str]) -> None:
    prefixes = Prefixes([])
    known = prefixes.has(url(value))
    assert prefixes.split(url(value)) == split
    assert prefixes.split(url(value)) == split
    assert prefixes.has(url(value))
    assert len(prefixes.added) == (0 if known else 1)
    routes = Routes(parse_upstream(each) for each in prefixes.added)
    path = split[1] or "/"
    route = routes.resolve(f"/{split[0]}{path}".encode())
    assert getattr(route, "origin", None) == url(value).origin or known


def test_two_origins_never_share_a_prefix() -> None:
    prefixes = Prefixes([])
    long = "x" * 60
    hosts = [f"https://{long}{end}.example:8443" for end in "abc"]
    names = [prefixes.split(url(host))[0] for host in hosts]
    assert names == [f"{long[:54]}-8443", f"{long[:54]}-8443-2", f"{long[:54]}-8443-3"]


def test_an_upstream_of_the_users_is_used_where_it_fits() -> None:
    prefixes = Prefixes([parse_upstream("corp=https://llm.corp.example/llm")])
    assert prefixes.split(url("https://llm.corp.example/llm/v1")) == ("corp", "/v1")
    assert prefixes.split(url("https://llm.corp.example/llm")) == ("corp", "")
    assert prefixes.split(url("https://llm.corp.example/llmx")) == ("llm.corp.example", "/llmx")


def test_a_deltatape_is_recognised_by_its_port_on_this_machine() -> None:
    gateways = ["http://127.0.0.1:4000/t/x"]
    assert is_deltatape(url("http://localhost:4000/openai/v1"), gateways)
    assert is_deltatape(url("http://127.0.0.1:8377/openai/v1"), [])
    assert not is_deltatape(url("http://127.0.0.1:8000/openai/v1"), gateways)
    assert not is_deltatape(url("https://h.example:8377/v1"), ["https://h.example:8377"])
    assert port_of("http+unix:/run/x") is None


@pytest.mark.parametrize(
    ("upstream", "path", "rest"),
    [
        ("", "/v1", "/v1"),
        ("/v1", "/v1", ""),
        ("/api/v1", "/v1", ""),
        ("/api", "/api/v1", "/v1"),
        ("/api/v1", "/api/v1", ""),
        ("/x", "", ""),
        ("/x", "/v1/", "/v1/"),
        ("/xv1", "/v1", "/v1"),
    ],
)
def test_what_an_upstream_has_already_is_not_repeated(upstream: str, path: str, rest: str) -> None:
    assert without_overlap(upstream, path) == rest
