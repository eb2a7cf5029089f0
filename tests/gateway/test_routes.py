import pytest

from deltatape.errors import UsageError
from deltatape.gateway.routes import Refusal, Route, Routes, parse_upstream
from deltatape.providers import UPSTREAMS


def resolve(target: bytes, *upstreams: str) -> tuple[str, bytes]:
    route = Routes(map(parse_upstream, upstreams)).resolve(target)
    assert isinstance(route, Route)
    return route.origin.url, route.target


def test_a_prefix_names_the_provider() -> None:
    assert resolve(b"/openai/v1/chat/completions?a=%7E") == (
        "https://api.openai.com",
        b"/v1/chat/completions?a=%7E",
    )
    assert resolve(b"/ollama") == ("http://127.0.0.1:11434", b"/")
    assert resolve(b"/openai?x=/y") == ("https://api.openai.com", b"/?x=/y")


@pytest.mark.parametrize("name", UPSTREAMS)
def test_every_provider_has_a_route(name: str) -> None:
    assert resolve(f"/{name}/x".encode()) == (UPSTREAMS[name], b"/x")


def test_anthropic_messages_means_v1_messages() -> None:
    assert resolve(b"/anthropic/messages?beta=true")[1] == b"/v1/messages?beta=true"
    assert resolve(b"/anthropic/v1/messages")[1] == b"/v1/messages"
    assert resolve(b"/anthropic/messages/batches")[1] == b"/v1/messages/batches"
    assert resolve(b"/anthropic/messagesx")[1] == b"/messagesx"


def test_a_users_own_upstream_keeps_its_path_and_replaces_a_provider() -> None:
    assert resolve(b"/or/chat/completions", "or=https://openrouter.ai/api/v1/") == (
        "https://openrouter.ai",
        b"/api/v1/chat/completions",
    )
    assert resolve(b"/openai/v1", "openai=http://localhost:1/x")[0] == "http://localhost:1"


def test_a_single_upstream_serves_everything_and_reserves_no_path() -> None:
    assert resolve(b"/openai/v1", "https://h:8443/base") == ("https://h:8443", b"/base/openai/v1")


def test_an_unknown_prefix_lists_the_known_ones() -> None:
    refusal = Routes(()).resolve(b"/v1/chat/completions")
    assert isinstance(refusal, Refusal)
    assert refusal.status == 404
    assert "/openai" in refusal.message
    assert "--upstream URL" in refusal.message


@pytest.mark.parametrize("name", ["azure", "bedrock"])
def test_a_provider_without_a_common_address_names_its_option(name: str) -> None:
    refusal = Routes(()).resolve(f"/{name}/x".encode())
    assert isinstance(refusal, Refusal)
    assert f"--upstream {name}=" in refusal.message


@pytest.mark.parametrize("target", [b"http://evil/x", b"*", b"evil:443"])
def test_only_paths_are_served(target: bytes) -> None:
    refusal = Routes(()).resolve(target)
    assert isinstance(refusal, Refusal)
    assert refusal.status == 400


def test_the_port_is_told_only_where_it_is_not_the_schemes_own() -> None:
    assert parse_upstream("https://h:443").origin.authority == "h"
    assert parse_upstream("http://h:443").origin.authority == "h:443"
    assert parse_upstream("http://[::1]:8080").origin.authority == "[::1]:8080"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("api.openai.com", "invalid upstream"),
        ("ftp://h", "invalid upstream"),
        ("https://", "invalid upstream"),
        ("https://[", "invalid upstream"),
        ("http://h/a b", "write %20 for a blank in a path"),
        ("x=http://h b", "blanks and letters beyond ASCII"),
        ("http://h/é", "blanks and letters beyond ASCII"),
        ("http://é.example", "xn--... for a letter in a host name"),
        ("http://h/a\nb", "blanks and letters beyond ASCII"),
        ("http://h?x=1", r"--upstream 'http://h\?\.\.\.': a query or fragment cannot be part"),
        ("http://h/v1#a?b", "--upstream 'http://h/v1#...': a query or fragment"),
        ("-x=https://h", "invalid name before `=`"),
        ("https://user:pw@h", "credentials in the URL"),
        ("https://h?x=1", "a query or fragment"),
        ("https://h#f", "a query or fragment"),
        ("https://h:99999", "invalid port"),
    ],
)
def test_what_is_no_upstream_is_told(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_upstream(text)


def test_an_upstream_without_a_name_stands_alone() -> None:
    with pytest.raises(UsageError, match="must be the only one"):
        Routes(map(parse_upstream, ("https://a", "https://b")))
    with pytest.raises(UsageError, match="must be the only one"):
        Routes(map(parse_upstream, ("https://a", "b=https://b")))


@pytest.mark.parametrize(
    "text",
    ["http://h?key=fake", "h:80?key=fake", "x?a=fake", "http://h#fake", "u:fake@h", "a:fake@h=x"],
)
def test_a_url_that_is_refused_is_told_without_its_credentials(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_upstream(text)
    assert "fake" not in str(refused.value)


def test_a_refused_target_is_named_without_its_credentials() -> None:
    refused = Routes(()).resolve(b"http://evil.example/?key=fake0123456789abcdef&a=b")
    assert isinstance(refused, Refusal)
    assert "fake0123456789abcdef" not in refused.message
    assert "'http://evil.example/?key=***&a=b'" in refused.message
