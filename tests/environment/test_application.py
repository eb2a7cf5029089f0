"""Which environment an application gets."""

from collections.abc import Mapping

import pytest

from deltatape.environment.application import (
    BaseUrl,
    EnvironmentPlan,
    EnvironmentPurpose,
    ProxyPrefixes,
    is_deltatape,
    parse_url,
    plan,
    port_of,
    without_overlap,
)
from deltatape.environment.dotenv import parse_dotenv
from deltatape.gateway.routes import Route, Routes, parse_upstream

BASE = "http://127.0.0.1:4000"
AMAZONS = "AWS_ENDPOINT_URL_BEDROCK_RUNTIME"
TOKEN = {"AWS_BEARER_TOKEN_BEDROCK": "fake-000000"}


def planned(
    environment: Mapping[str, str] | None = None,
    *upstreams: str,
    dotenv: str = "",
    purpose: EnvironmentPurpose = EnvironmentPurpose.RECORD,
    base: str = BASE,
) -> EnvironmentPlan:
    files = [parse_dotenv(dotenv, ".env")] if dotenv else []
    given = [parse_upstream(each) for each in upstreams]
    return plan(base, environment or {}, files, given, purpose)


EVERY = {
    "OPENAI_BASE_URL": "/openai/v1",
    "OPENAI_API_BASE": "/openai/v1",
    "ANTHROPIC_BASE_URL": "/anthropic",
    "ANTHROPIC_API_URL": "/anthropic",
    "ANTHROPIC_API_BASE": "/anthropic",
    "GOOGLE_GEMINI_BASE_URL": "/gemini",
    "OPENROUTER_API_BASE": "/openrouter/api/v1",
    "GROQ_BASE_URL": "/groq",
    "GROQ_API_BASE": "/groq/openai/v1",
    "MISTRAL_API_BASE": "/mistral/v1",
    "DEEPSEEK_API_BASE": "/deepseek/beta",
    "XAI_API_BASE": "/xai/v1",
    "CO_API_URL": "/cohere",
    "TOGETHER_BASE_URL": "/together/v1",
    "OLLAMA_HOST": "/ollama",
    "OLLAMA_API_BASE": "/ollama",
}
HOSTS = "127.0.0.1,localhost,::1"


def test_without_urls_of_the_users_every_variable_points_at_its_provider() -> None:
    answer = planned()
    assert answer.variables == {
        **{name: BASE + path for name, path in EVERY.items()},
        "NO_PROXY": HOSTS,
        "no_proxy": HOSTS,
        "DELTATAPE_URL": BASE,
    }
    assert (answer.upstreams, answer.notes, answer.secrets) == ((), (), ())


def test_a_token_in_the_base_is_in_every_variable() -> None:
    answer = planned(base=f"{BASE}/t/abc/")
    assert answer.variables["OPENAI_BASE_URL"] == f"{BASE}/t/abc/openai/v1"
    assert answer.variables["DELTATAPE_URL"] == f"{BASE}/t/abc"


def test_a_known_provider_in_a_file_keeps_its_prefix_and_path() -> None:
    answer = planned(dotenv="# mine\nOPENAI_BASE_URL=https://openrouter.ai/api/v1")
    assert answer.variables["OPENAI_BASE_URL"] == f"{BASE}/openrouter/api/v1"
    assert answer.upstreams == ()
    assert answer.notes == (
        (
            "OPENAI_BASE_URL in .env:2 points at https://openrouter.ai/api/v1:"
            " taped as /openrouter/api/v1"
        ),
    )


def test_another_host_becomes_an_upstream() -> None:
    answer = planned({"ANTHROPIC_BASE_URL": "https://llm.corp.example:8443/claude/"})
    assert answer.variables["ANTHROPIC_BASE_URL"] == f"{BASE}/llm.corp.example-8443/claude/"
    assert answer.upstreams == ("llm.corp.example-8443=https://llm.corp.example:8443",)
    assert answer.notes == (
        (
            "ANTHROPIC_BASE_URL in the environment points at https://llm.corp.example:8443/claude/:"
            " taped as /llm.corp.example-8443/claude/"
        ),
    )


def test_two_variables_go_to_two_hosts() -> None:
    answer = planned(
        {"OPENAI_BASE_URL": "http://localhost:8000/v1", "GROQ_BASE_URL": "https://g.example"}
    )
    routes = Routes(parse_upstream(each) for each in answer.upstreams)
    for name, origin in (
        ("OPENAI_BASE_URL", "http://localhost:8000"),
        ("GROQ_BASE_URL", "https://g.example"),
    ):
        route = routes.resolve(answer.variables[name].removeprefix(BASE).encode() + b"/x")
        assert isinstance(route, Route)
        assert route.origin.url == origin


def test_aliases_of_a_variable_that_the_user_has_stay_unset() -> None:
    answer = planned({"OPENAI_BASE_URL": "https://openrouter.ai/api/v1"})
    assert "OPENAI_API_BASE" not in answer.variables  # some frameworks would prefer it


def test_the_environment_wins_over_a_file_and_the_other_value_is_reported() -> None:
    answer = planned(
        {"OPENAI_BASE_URL": "http://127.0.0.1:8000/v1"},
        dotenv="OPENAI_BASE_URL=https://api.openai.com/v1",
    )
    assert answer.variables["OPENAI_BASE_URL"] == f"{BASE}/127.0.0.1-8000/v1"
    (told,) = answer.notes
    assert told.endswith("taped as /127.0.0.1-8000/v1 (not https://api.openai.com/v1 in .env:1)")


def test_a_url_that_is_the_default_is_nothing_to_tell() -> None:
    answer = planned({"OPENAI_BASE_URL": "https://api.openai.com/v1", "OLLAMA_HOST": ":11434"})
    assert answer.variables["OPENAI_BASE_URL"] == f"{BASE}/openai/v1"
    assert answer.variables["OLLAMA_HOST"] == f"{BASE}/ollama"
    assert answer.notes == ()


def test_an_empty_value_is_none() -> None:
    assert planned(dotenv="OPENAI_BASE_URL=").variables["OPENAI_BASE_URL"] == f"{BASE}/openai/v1"


def test_a_value_that_is_not_a_url_is_left_and_not_shown() -> None:
    answer = planned({"OPENAI_BASE_URL": "sk-fake-000000", "LLM_BASE_URL": "sk-fake-000000"})
    assert "OPENAI_BASE_URL" not in answer.variables
    assert answer.notes == (
        "OPENAI_BASE_URL in the environment is not an http or https URL and stays as it is",
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OPENAI_BASE_URL", "http://127.0.0.1:99999"),
        ("OPENAI_BASE_URL", "https://llm.example:port/v1"),
        ("OLLAMA_HOST", "127.0.0.1:99999"),
    ],
)
def test_a_port_that_is_none_is_told_as_such(name: str, value: str) -> None:
    answer = planned({name: value})
    assert name not in answer.variables
    assert answer.notes == (f"{name} in the environment has an invalid port and stays as it is",)


def test_credentials_in_a_url_go_on_to_the_app_and_to_nobody_else() -> None:
    answer = planned({"OPENAI_BASE_URL": "https://ann:fake0000@llm.example/v1"})
    assert (
        answer.variables["OPENAI_BASE_URL"] == "http://ann:fake0000@127.0.0.1:4000/llm.example/v1"
    )
    assert answer.upstreams == ("llm.example=https://llm.example",)
    assert b"fake0000" in answer.secrets
    assert not any("fake0000" in line for line in answer.notes)


@pytest.mark.parametrize(
    "environment",
    [
        {"OPENAI_BASE_URL": f"{BASE}/openai/v1"},
        {"OPENAI_BASE_URL": "http://localhost:8377/openai/v1"},
        {"OPENAI_BASE_URL": "http://127.0.0.1:5/v1", "DELTATAPE_URL": "http://127.0.0.1:5"},
    ],
)
def test_a_deltatape_is_left_alone(environment: dict[str, str]) -> None:
    answer = planned(environment)
    assert "OPENAI_BASE_URL" not in answer.variables
    assert answer.upstreams == ()
    assert answer.notes[0].endswith(", a deltatape already: left as it is")


def test_at_a_replay_nothing_may_go_elsewhere() -> None:
    environment = {
        "OPENAI_BASE_URL": "http://127.0.0.1:8377/openai/v1",
        AMAZONS: "https://b.example",
    }
    answer = planned(environment, purpose=EnvironmentPurpose.REPLAY)
    assert answer.variables["OPENAI_BASE_URL"] == f"{BASE}/127.0.0.1-8377/openai/v1"
    assert answer.variables[AMAZONS] == f"{BASE}/b.example"


def test_an_apps_own_variable_is_redirected() -> None:
    answer = planned(
        {
            "LLM_BASE_URL": "http://10.0.0.5:8000/v1",
            "WHATEVER": "https://api.anthropic.com/v1",
            "DATABASE_URL": "https://db.example",
            "HTTPS_PROXY": "http://proxy.example:3128",
            "AWS_ENDPOINT_URL": "https://api.openai.com",
        }
    )
    assert answer.variables["LLM_BASE_URL"] == f"{BASE}/10.0.0.5-8000/v1"
    assert answer.variables["WHATEVER"] == f"{BASE}/anthropic/v1"
    assert not answer.variables.keys() & {"DATABASE_URL", "HTTPS_PROXY", "AWS_ENDPOINT_URL"}


def test_azure_is_redirected_once_the_user_has_it_and_openai_is_left_unset_beside_it() -> None:
    answer = planned({"AZURE_OPENAI_ENDPOINT": "https://mine.openai.azure.example/"})
    assert answer.variables["AZURE_OPENAI_ENDPOINT"] == f"{BASE}/mine.openai.azure.example/"
    assert not answer.variables.keys() & {"OPENAI_BASE_URL", "OPENAI_API_BASE"}
    assert "what this app sends to OpenAI itself is not taped" in answer.notes[0]
    both = planned(
        {
            "AZURE_OPENAI_ENDPOINT": "https://mine.openai.azure.example/",
            "OPENAI_BASE_URL": "https://api.openai.com/v1",
        }
    )
    assert both.variables["OPENAI_BASE_URL"] == f"{BASE}/openai/v1"


def test_an_upstream_named_azure_sets_its_variables() -> None:
    answer = planned({}, "azure=https://mine.openai.azure.example")
    assert answer.variables["AZURE_OPENAI_ENDPOINT"] == f"{BASE}/azure"
    assert "OPENAI_BASE_URL" not in answer.variables


def test_signed_requests_are_not_redirected_unless_a_bearer_replaces_the_signature() -> None:
    name = "ANTHROPIC_BEDROCK_BASE_URL"
    environment = {name: "https://bedrock-runtime.example"}
    assert name not in planned().variables
    signed = planned(environment)
    assert name not in signed.variables
    assert "not taped. Requests to it are signed for its host" in signed.notes[0]
    bearer = planned({**environment, **TOKEN})
    assert bearer.variables[name] == f"{BASE}/bedrock-runtime.example"


@pytest.mark.parametrize("token", [{}, TOKEN])
@pytest.mark.parametrize("upstream", ["", "http://127.0.0.1:9", "bedrock=http://127.0.0.1:9"])
@pytest.mark.parametrize("name", [AMAZONS, "LLM_ENDPOINT"])
def test_what_amazons_sdks_read_is_left_for_they_send_no_token_over_http(
    token: Mapping[str, str], upstream: str, name: str
) -> None:
    environment = {name: "https://bedrock-runtime.eu-west-1.amazonaws.com", **token}
    answer = planned(environment, *filter(None, [upstream]))
    assert name not in answer.variables
    assert "not taped. AWS's SDKs sign for its host or send a token over" in answer.notes[0]
    assert answer.notes[0].endswith("`deltatape record --via mitm -- CMD` tapes them")


def test_bedrocks_base_urls_for_the_sdks_of_others_are_redirected() -> None:
    host = "bedrock-runtime.eu-west-1.amazonaws.com"
    for name in ("OPENAI_BASE_URL", "LLM_BASE_URL"):
        answer = planned({name: f"https://{host}/openai/v1"})
        assert answer.variables[name] == f"{BASE}/{host}/openai/v1"


def test_a_configured_bedrock_sets_no_variable_that_an_app_would_fail_with() -> None:
    upstream = "bedrock=https://bedrock-runtime.example"
    others = ("ANTHROPIC_BEDROCK_BASE_URL", "AWS_BEDROCK_RUNTIME_ENDPOINT")
    signed = planned({}, upstream)
    assert not signed.variables.keys() & {AMAZONS, *others}
    (told,) = signed.notes
    assert told.startswith("no variable points at /bedrock: without AWS_BEARER_TOKEN_BEDROCK ")
    bearer = planned(TOKEN, upstream)
    assert {bearer.variables[name] for name in others} == {f"{BASE}/bedrock"}
    assert AMAZONS not in bearer.variables
    (told,) = bearer.notes
    assert told.startswith(f"{AMAZONS} does not point at /bedrock: AWS's SDKs, such as boto3, send")
    replayed = planned({}, upstream, purpose=EnvironmentPurpose.REPLAY)
    assert {replayed.variables[name] for name in (AMAZONS, *others)} == {f"{BASE}/bedrock"}
    assert replayed.notes == ()


def test_an_endpoint_of_amazons_that_is_the_gateway_already_is_left_without_a_word_of_tls() -> None:
    answer = planned({AMAZONS: f"{BASE}/bedrock", **TOKEN})
    (told,) = answer.notes
    assert told.endswith(", a deltatape already: left as it is")


def test_a_single_upstream_serves_all_and_the_users_urls_are_reported_as_unused() -> None:
    environment = {
        "OPENAI_BASE_URL": "https://openrouter.ai/api/v1",
        "GROQ_BASE_URL": "http://127.0.0.1:9000",
        "XAI_API_BASE": "nonsense",
        "LLM_API_URL": "https://llm.example/v1",
    }
    answer = planned(environment, "http://127.0.0.1:9000")
    assert answer.variables["OPENAI_BASE_URL"] == f"{BASE}/v1"
    assert answer.variables["ANTHROPIC_BASE_URL"] == BASE
    assert answer.variables["OPENROUTER_API_BASE"] == f"{BASE}/api/v1"
    assert answer.variables["LLM_API_URL"] == f"{BASE}/v1"
    assert answer.upstreams == ()
    unused = " is not used: --upstream sends everything there to http://127.0.0.1:9000"
    assert answer.notes == (
        f"OPENAI_BASE_URL in the environment points at https://openrouter.ai/api/v1{unused}",
        f"XAI_API_BASE in the environment{unused}",
        f"LLM_API_URL in the environment points at https://llm.example/v1{unused}",
    )


def test_an_upstream_that_ends_in_v1_is_not_given_another() -> None:
    answer = planned({}, "https://openrouter.ai/api/v1")
    assert answer.variables["OPENAI_BASE_URL"] == BASE
    named = planned({}, "openai=https://openrouter.ai/api/v1")
    assert named.variables["OPENAI_BASE_URL"] == f"{BASE}/openai"
    assert named.variables["ANTHROPIC_BASE_URL"] == f"{BASE}/anthropic"


@pytest.mark.parametrize(
    ("environment", "upper", "lower"),
    [
        ({"NO_PROXY": "a.example, ::1"}, "a.example,::1,127.0.0.1,localhost", None),
        ({"NO_PROXY": "*"}, "*", "*"),
        ({"no_proxy": "a", "NO_PROXY": "b"}, f"b,{HOSTS}", f"a,{HOSTS}"),
        ({"NO_PROXY": ""}, HOSTS, HOSTS),
    ],
)
def test_this_machine_joins_no_proxy(
    environment: dict[str, str], upper: str, lower: str | None
) -> None:
    variables = planned(environment).variables
    assert (variables["NO_PROXY"], variables["no_proxy"]) == (upper, lower or upper)


def test_no_proxy_of_a_file_is_kept() -> None:
    assert planned(dotenv="NO_PROXY=corp.example").variables["NO_PROXY"] == f"corp.example,{HOSTS}"


def test_problems_of_files_and_keys_in_them_are_handed_on() -> None:
    answer = planned(dotenv="OPENAI_API_KEY=sk-fake-000000\nnonsense\n")
    assert answer.notes == (".env:2: not NAME=value; the line is ignored",)
    assert answer.secrets == (b"sk-fake-000000",)


def url(value: str, name: str = "OPENAI_BASE_URL") -> BaseUrl:
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
def test_an_invalid_value_is_not_a_url(value: str) -> None:
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
    prefixes = ProxyPrefixes([])
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
    prefixes = ProxyPrefixes([])
    long = "x" * 60
    hosts = [f"https://{long}{end}.example:8443" for end in "abc"]
    names = [prefixes.split(url(host))[0] for host in hosts]
    assert names == [f"{long[:54]}-8443", f"{long[:54]}-8443-2", f"{long[:54]}-8443-3"]


def test_an_upstream_of_the_users_is_used_where_it_fits() -> None:
    prefixes = ProxyPrefixes([parse_upstream("corp=https://llm.corp.example/llm")])
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
