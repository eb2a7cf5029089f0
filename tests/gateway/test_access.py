import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltatape.gateway.access import (
    AddressedTarget,
    check_access,
    mismatch,
    read_address,
)
from deltatape.gateway.routes import Refusal
from deltatape.http1.head import Fields, parse_request
from deltatape.providers import PROVIDERS, UPSTREAMS


def code(
    *fields: str,
    line: str = "POST /x HTTP/1.1",
    guarded: bool = False,
    local: bool = True,
    token: bool = False,
) -> str | None:
    raw = "\r\n".join((line, *fields, "", "")).encode("latin-1")
    addressed = AddressedTarget(b"/x", None, token)
    refusal = check_access(parse_request(raw), addressed, guarded=guarded, local=local)
    return refusal.code if refusal else None


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1:8377", "localhost:8377", "LOCALHOST", "[::1]:8377", "127.9.9.9", "localhost.:1"],
)
def test_this_machine_may_ask(host: str) -> None:
    assert code(f"Host: {host}") is None


def test_an_http_1_0_client_without_host_may_ask() -> None:
    assert code(line="GET /x HTTP/1.0") is None


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "10.0.0.1", "[::1"])
def test_a_foreign_host_is_refused(host: str) -> None:
    assert code(f"Host: {host}") == "foreign_host"


def test_a_page_of_this_machine_may_ask_and_others_not() -> None:
    assert code("Host: localhost", "Origin: http://localhost:5173") is None
    assert code("Host: localhost", "Origin: http://[::1]:5173") is None
    assert (
        code("Host: localhost", "Origin: http://localhost:1", "Sec-Fetch-Site: cross-site") is None
    )
    assert code("Host: localhost", "Origin: https://evil.example") == "foreign_origin"
    assert code("Host: localhost", "Origin: null") == "foreign_origin"
    assert code("Host: localhost", "Sec-Fetch-Site: cross-site") == "cross_site"


def test_connect_is_refused() -> None:
    assert code("Host: h:443", line="CONNECT h:443 HTTP/1.1") == "not_a_proxy"


def test_where_others_can_reach_the_port_the_token_opens_it_under_any_name() -> None:
    assert code("Host: deltatape:8377", guarded=True) == "token_needed"
    assert code("Host: localhost:8377", guarded=True) == "token_needed"
    assert code("Host: deltatape:8377", guarded=True, token=True) is None
    assert (
        code("Host: h", "Origin: https://evil.example", guarded=True, token=True)
        == "foreign_origin"
    )


def test_on_a_unix_socket_the_name_of_the_host_tells_nothing() -> None:
    assert code("Host: %2Frun%2Fdeltatape.sock", local=False) is None
    assert code("Host: h", "Sec-Fetch-Site: cross-site", local=False) == "cross_site"


TOKEN = "t-000"  # noqa: S105 - a fake


def read(
    target: str, *fields: str, token: str | None = TOKEN, reserved: bool = True
) -> AddressedTarget | Refusal:
    raw = "\r\n".join((f"POST {target} HTTP/1.1", "Host: h", *fields, "", "")).encode()
    return read_address(parse_request(raw), token, reserved=reserved)


@pytest.mark.parametrize(
    ("target", "rest", "tape", "allowed"),
    [
        ("/openai/v1", b"/openai/v1", None, False),
        ("/s/test_one/openai/v1?a=b", b"/openai/v1?a=b", "test_one", False),
        ("/t/t-000/openai", b"/openai", None, True),
        ("/t/t-000/s/a.b-c/openai", b"/openai", "a.b-c", True),
        ("/s/a/t/t-000/openai", b"/openai", "a", True),
        ("/t/wrong/openai", b"/openai", None, False),
        ("/s/a", b"/", "a", False),
        ("/s/a?x=1", b"/?x=1", "a", False),
        ("/s/a/s/b/openai", b"/s/b/openai", "a", False),
        ("/t/t-000/t/t-000/openai", b"/openai", None, True),
        ("/static/app.js", b"/static/app.js", None, False),
        ("//s/a", b"//s/a", None, False),
    ],
)
def test_the_path_names_the_tape_and_brings_the_token(
    target: str,
    rest: bytes,
    tape: str | None,
    allowed: bool,  # noqa: FBT001
) -> None:
    assert read(target) == AddressedTarget(rest, tape, allowed)


def test_fields_do_the_same() -> None:
    both = read("/openai", "X-Deltatape-Tape: a", "X-Deltatape-Token: t-000")
    assert both == AddressedTarget(b"/openai", "a", token=True)


def test_what_stands_in_the_path_outranks_the_fields() -> None:
    assert read("/s/path/openai", "X-Deltatape-Tape: field") == AddressedTarget(
        b"/openai", "path", token=False
    )


def test_an_app_of_its_own_keeps_all_paths_but_that_of_the_right_token() -> None:
    assert read("/s/a/v1", reserved=False) == AddressedTarget(b"/s/a/v1", None, token=False)
    assert read("/t/x/v1", reserved=False) == AddressedTarget(b"/t/x/v1", None, token=False)
    assert read("/t/t-000/v1", reserved=False) == AddressedTarget(b"/v1", None, token=True)
    assert read("/v1", "X-Deltatape-Tape: a", reserved=False) == AddressedTarget(
        b"/v1", "a", token=False
    )


def test_without_a_token_nothing_is_the_right_one() -> None:
    assert read("/t//openai", token=None) == AddressedTarget(b"/openai", None, token=False)
    assert read("/t/None/openai", token=None) == AddressedTarget(b"/openai", None, token=False)


@pytest.mark.parametrize("name", ["", ".hidden", "a%2Fb", "x" * 65, "a.ring", "a.ring-2"])
def test_a_name_that_no_tape_can_have_is_refused(name: str) -> None:
    refusal = read(f"/s/{name}/openai")
    assert isinstance(refusal, Refusal)
    assert (refusal.status, refusal.code) == (400, "bad_tape_name")


@pytest.mark.parametrize("target", ["/openai/t/t-000/v1", "/s/a/s/b/t/t-000/x", "/v1/t/t-000"])
def test_the_token_is_never_passed_on(target: str) -> None:
    refusal = read(target)
    assert isinstance(refusal, Refusal)
    assert refusal.code == "token_in_path"


TARGET = b"/v1/chat/completions"
PREFIXES = [(name, prefix) for name, each in PROVIDERS.items() for prefix in each.key_prefixes]


def bearer(key: bytes) -> Fields:
    return ((b"Host", b"x"), (b"Authorization", b"Bearer " + key))


REFUSED = [
    (bearer(b"sk-or-v1-fake"), "api.openai.com", "Authorization", "sk-or-"),
    (bearer(b"sk-ant-fake"), "openrouter.ai", "Authorization", "sk-ant-"),
    (bearer(b"sk-proj-fake"), "api.anthropic.com", "Authorization", "sk-proj-"),
    (bearer(b"gsk_fake"), "api.openai.com", "Authorization", "gsk_"),
    (bearer(b"xai-fake"), "api.groq.com", "Authorization", "xai-"),
    (bearer(b"hf_fake"), "api.together.xyz", "Authorization", "hf_"),
    (((b"X-Api-Key", b"sk-proj-fake"),), "api.anthropic.com", "X-Api-Key", "sk-proj-"),
    (((b"api-key", b"sk-proj-fake"),), "acme.openai.azure.com", "api-key", "sk-proj-"),
    (((b"x-goog-api-key", b"sk-or-v1-fake"),), "aiplatform.googleapis.com", "x-goog", "sk-or-"),
    (((b"authorization", b"bEARER   gsk_fake"),), "api.x.ai", "authorization", "gsk_"),
    (((b"authorization", b" gsk_fake "),), "api.x.ai", "authorization", "gsk_"),
]


@pytest.mark.parametrize(("fields", "host", "place", "prefix"), REFUSED)
def test_a_foreign_key_is_refused_with_its_place_and_prefix(
    fields: Fields, host: str, place: str, prefix: str
) -> None:
    problem = mismatch(fields, TARGET, host)
    assert problem is not None
    assert place in problem
    assert prefix in problem
    assert host in problem
    assert "fake" not in problem
    assert "--allow-key-mismatch" in problem


@pytest.mark.parametrize(
    ("fields", "host"),
    [
        (bearer(b"sk-or-v1-fake"), "openrouter.ai"),
        (bearer(b"sk-fake"), "api.openai.com"),
        (bearer(b"sk-fake"), "api.deepseek.com"),
        (bearer(b"sk-fake"), "api.anthropic.com"),
        (bearer(b"sk-ant-fake"), "litellm.corp.example"),
        (bearer(b"sk-ant-fake"), "127.0.0.1"),
        (bearer(b"sk-ant-fake"), "gateway.ai.cloudflare.com"),
        (bearer(b"eyJfake"), "api.openai.com"),
        (((b"authorization", b"Basic c2stYW50LWZha2U="),), "api.openai.com"),
        (((b"x-other", b"sk-ant-fake"),), "api.openai.com"),
        ((), "api.openai.com"),
    ],
)
def test_what_may_be_meant_is_let_pass(fields: Fields, host: str) -> None:
    assert mismatch(fields, TARGET, host) is None


def test_a_key_in_the_query_counts_also_when_it_is_escaped() -> None:
    host = "generativelanguage.googleapis.com"
    assert mismatch((), b"/v1beta/models?alt=sse&key=AIzafake", host) is None
    problem = mismatch((), b"/v1beta/models?alt=sse&key=sk%2Dor%2Dfake", host)
    assert problem is not None
    assert "?key=" in problem
    assert mismatch((), b"/v1beta/models?keys=sk-or-fake", host) is None


def test_the_message_names_the_path_that_a_base_url_needs() -> None:
    problem = mismatch(bearer(b"sk-or-v1-fake"), TARGET, "api.openai.com")
    assert problem is not None
    assert "/openrouter/api/v1" in problem


def test_an_owner_without_a_prefix_here_needs_an_upstream() -> None:
    problem = mismatch(bearer(b"pplx-fake"), TARGET, "api.openai.com")
    assert problem is not None
    assert "--upstream perplexity=https://HOST" in problem


@pytest.mark.parametrize(("owner", "prefix"), PREFIXES)
def test_the_owner_of_a_key_is_told_with_where_it_is_reached(owner: str, prefix: str) -> None:
    problem = mismatch(bearer(prefix.encode() + b"fake"), TARGET, "api.sambanova.ai")
    assert problem is not None
    assert PROVIDERS[owner].title in problem
    assert (f"ends with /{owner}" in problem) == (owner in UPSTREAMS)
    assert (f"--upstream {owner}=https://HOST" in problem) == (owner not in UPSTREAMS)


@given(
    st.sampled_from(PREFIXES),
    st.binary(min_size=6, max_size=40),
    st.sampled_from(["api.openai.com", "api.anthropic.com", "api.groq.com"]),
)
def test_no_message_holds_the_key(owned: tuple[str, str], rest: bytes, host: str) -> None:
    key = owned[1].encode() + rest
    problem = mismatch(bearer(key), TARGET, host)
    assert problem is None or key.decode("latin-1") not in problem
