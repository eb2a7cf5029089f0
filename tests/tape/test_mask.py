import hashlib
import hmac
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltatape.model.exchange import HeaderValue, MaskedCredential
from deltatape.tape import fields
from deltatape.tape.mask import (
    Masker,
    content_coding,
    credential_spans,
    is_credential_header,
    is_credential_parameter,
    without_userinfo,
)

MASKER = Masker(b"k" * 32)


@pytest.mark.parametrize(
    "name",
    [
        "Authorization",
        "Proxy-Authorization",
        "X-API-Key",
        "api-key",
        "x-goog-api-key",
        "x-goog-iam-authorization-token",
        "X-Amz-Security-Token",
        "Cookie",
        "Set-Cookie",
        "OpenAI-Organization",
        "openai-project",
        "cf-aig-authorization",
        "Helicone-Auth",
        "x-portkey-api-key",
        "CF-Access-Client-Secret",
        "Ocp-Apim-Subscription-Key",
        "X_Api_Key",
        "x-deltatape-token",
        "X-Api-Keys",
        "X-Credentials",
        "Cookie2",
        "Set-Cookie2",
        "Token",
    ],
)
def test_header_fields_that_carry_credentials(name: str) -> None:
    assert is_credential_header(name.encode())


@pytest.mark.parametrize(
    "name",
    [
        "Idempotency-Key",
        "x-idempotency-key",
        "X-Request-Id",
        "request-id",
        "Sec-WebSocket-Key",
        "Surrogate-Key",
        "Surrogate-Keys",
        "Access-Control-Allow-Credentials",
        "x-ratelimit-limit-tokens",
        "anthropic-version",
        "traceparent",
        "WWW-Authenticate",
        "Host",
        "\xff",
    ],
)
def test_header_fields_that_stay_readable(name: str) -> None:
    assert not is_credential_header(name.encode("latin-1"))


@pytest.mark.parametrize(
    "name",
    [
        b"key",
        b"KEY",
        b"api_key",
        b"api-key",
        b"apiKey",
        b"access_token",
        b"token",
        b"sig",
        b"signature",
        b"X-Amz-Signature",
        b"X-Amz-Credential",
        b"X-Amz-Security-Token",
        b"client_secret",
        b"a%70i_key",
        b"%6B%65%79",
        b"pwd",
        b"+key",
    ],
)
def test_query_parameters_that_carry_credentials(name: bytes) -> None:
    assert is_credential_parameter(name)


@pytest.mark.parametrize(
    "name", [b"alt", b"pageToken", b"page_token", b"api-version", b"monkey", b"", b"%", b"%zz"]
)
def test_query_parameters_that_stay_readable(name: bytes) -> None:
    assert not is_credential_parameter(name)


MASK = "*"


def shown(target: bytes) -> str:
    """The target with every masked byte as an asterisk."""
    return "".join(
        part.decode() if isinstance(part, bytes) else MASK * part.length
        for part in MASKER.target(target)
    )


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (b"", ""),
        (b"/v1/models", "/v1/models"),
        (b"/v1?alt=sse&x", "/v1?alt=sse&x"),
        (b"/v1?key=abc", "/v1?key=***"),
        (b"/v1?key=abc&alt=sse", "/v1?key=***&alt=sse"),
        (b"/v1?alt=sse&key=a%26b&token=c", "/v1?alt=sse&key=*****&token=*"),
        (b"/v1?key=", "/v1?key="),
        (b"/v1?key", "/v1?key"),
        (b"/v1?key=a=b", "/v1?key=***"),
        (b"/v1?a=1;key=abc;b=2&c=3", "/v1?a=1;key=*******&c=3"),
        (b"/v1?alt=sse?key=abc", "/v1?alt=sse?key=***"),
        (b"/v1?alt=sse#key=abc", "/v1?alt=sse#key=***"),
        (b"/v1?&&key=abc&", "/v1?&&key=***&"),
        (b"/key=abc", "/key=abc"),
        (b"/x#access_token=abc", "/x#access_token=***"),
        (b"/x#a=1&access_token=abc&b=2", "/x#a=1&access_token=***&b=2"),
        (b"/x;access_token=abc", "/x;access_token=***"),
        (b"/x;v=1&key=abc&b/y;key=abc?a=1&key=d", "/x;v=1&key=***&b/y;key=***?a=1&key=*"),
        (b"https://user:p;ss@host/x", "https://*********@host/x"),
        (b"/v1?next=https://user:p;ss@host", "/v1?next=https://*********@host"),
        (b"/v1?key=https://user:pass@host&a", "/v1?key=**********************&a"),
        (b"http://user:pass@host/x?key=abc", "http://*********@host/x?key=***"),
        (b"/to/https://user@host/x", "/to/https://****@host/x"),
        (b"/v1?next=https://user:pass@host&a=@", "/v1?next=https://*********@host&a=@"),
    ],
)
def test_credentials_in_a_target_are_masked_in_place(target: bytes, expected: str) -> None:
    assert shown(target) == expected


def test_an_empty_credential_is_told_as_empty() -> None:
    parts = MASKER.target(b"/v1?key=&a=1")
    assert parts == (b"/v1?key=", MASKER.value(b""), b"&a=1")


def test_a_target_without_credentials_is_one_part() -> None:
    assert MASKER.target(b"/v1?a=1") == (b"/v1?a=1",)
    assert MASKER.target(b"") == (b"",)


@given(st.text("akey=&;?#/:@%3. -_", max_size=40).map(str.encode) | st.binary(max_size=40))
def test_spans_ascend_and_masking_keeps_the_length(target: bytes) -> None:
    at = 0
    for start, end in credential_spans(target):
        assert at <= start <= end <= len(target)
        at = end
    lengths = [
        part.length if isinstance(part, MaskedCredential) else len(part)
        for part in MASKER.target(target)
    ]
    assert sum(lengths) == len(target)


@pytest.mark.parametrize("unit", [b"a", b";", b"?", b"://", b"key", b"a=", b"&", b"@"])
def test_a_hostile_target_costs_time_in_proportion_to_its_length(unit: bytes) -> None:
    assert sum(1 for _ in credential_spans(b"/?" + unit * 100_000)) <= 100_000


def test_the_whole_value_of_a_credential_header_is_masked() -> None:
    digest = hmac.new(b"k" * 32, b"Bearer fake", hashlib.sha256).hexdigest()[:8]
    headers: tuple[tuple[bytes, HeaderValue], ...] = (
        (b"authorization", b"Bearer fake"),
        (b"X-Request-Id", b"17"),
        (b"authorization", b"Bearer fake"),
    )
    masked = MaskedCredential(length=11, hash=digest)
    assert MASKER.headers(headers) == (
        (b"authorization", masked),
        (b"X-Request-Id", b"17"),
        (b"authorization", masked),
    )


@pytest.mark.parametrize("size", [20, 2000])
def test_a_field_of_any_length_is_masked_each_time(size: int) -> None:
    masker = Masker(b"k")
    headers = ((b"authorization", b"Bearer " + b"k" * size),)
    for _ in range(2):
        masker.see(headers)
        (value,) = (value for _, value in masker.headers(headers))
        assert isinstance(value, MaskedCredential)
        assert value.length == len("Bearer ") + size
    assert masker.data(b"<" + b"k" * size + b">") == b"<" + b"*" * size + b">"


def test_what_is_masked_already_stays_as_it_is() -> None:
    headers = ((b"authorization", MaskedCredential(length=3, hash="00000000")),)
    assert MASKER.headers(headers) == headers


@pytest.mark.parametrize(
    ("name", "value", "masked"),
    [
        (b"Location", b"https://host/x?sig=abc", True),
        (b"Location", b"https://user:pass@host/", True),
        (b"Link", b'<https://user:pass@host/>; rel="next"', True),
        (b"Location", b"https://host/cb#access_token=abc", True),
        (b"Referer", b"https://host/cb?x=1#access_token=abc", True),
        (b"X-Forwarded-Uri", b"/x?api_key=abc", True),
        (b"X-Original-URL", b"/x?api_key=abc", True),
        (b"X-Auth-Header", b"Bearer fake-0000", True),
        (b"Sec-WebSocket-Protocol", b"realtime, openai-insecure-api-key.fake", True),
        (b"Sec-WebSocket-Protocol", b"realtime", False),
        (b"X-Config", b'{"retry":1,"targets":[{"api_key": "fake"}]}', True),
        (b"X-Config", b'{"provider":"openai","cache_key":"fake"}', False),
        (b"Location", b"https://host/x?a=1", False),
        (b"Date", b"https://user:pass@host/", False),
    ],
)
def test_header_fields_are_masked_when_their_values_carry_credentials(
    name: bytes, value: bytes, *, masked: bool
) -> None:
    ((_, found),) = MASKER.headers(((name, value),))
    assert isinstance(found, MaskedCredential) is masked


def test_another_key_gives_another_hash() -> None:
    assert MASKER.value(b"fake") == Masker(b"k" * 32).value(b"fake")
    assert MASKER.value(b"fake") != Masker(b"other").value(b"fake")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://api.example.com", "https://api.example.com"),
        ("https://user:p@ss@api.example.com:8443", "https://api.example.com:8443"),
        ("https://user@host/a@b", "https://host/a@b"),
        ("", ""),
        ("host:80", "host:80"),
    ],
)
def test_userinfo_is_dropped_from_the_upstream(url: str, expected: str) -> None:
    assert without_userinfo(url) == expected


KEY = b"sk-fake-000000"


@pytest.mark.parametrize(
    "field",
    [
        (b"Authorization", b"Bearer " + KEY),
        (b"X-Api-Key", KEY),
        (b"Cookie", b"a=1; session=" + KEY),
        (b"Set-Cookie", b"session=" + KEY + b"; HttpOnly"),
        (b"Location", b"https://host/?key=" + KEY),
        (b"Referer", b"https://user:" + KEY + b"@host/"),
        (b"Referer", b"https://host/cb#access_token=" + KEY),
        (b"X-Original-Url", b"/x?key=" + KEY),
        (b"X-Auth-Header", b"Bearer " + KEY),
        (b"Sec-WebSocket-Protocol", b"a, openai-insecure-api-key." + KEY),
    ],
)
def test_a_credential_that_a_head_carried_is_masked_wherever_it_comes_up(
    field: tuple[bytes, bytes],
) -> None:
    masker = Masker(b"k")
    plain = ((b"X-Plain", b"1"),)
    headers = (*plain, (b"X-Debug", b"k=" + KEY), (b"X-" + KEY, b""))
    assert masker.headers(headers) == headers
    masker.see((field, (b"X-Other-Key", MaskedCredential(length=3, hash="00000000"))))
    assert masker.headers(headers) == (
        *plain,
        (b"X-Debug", masker.value(b"k=" + KEY)),
        (b"X-**************", b""),
    )
    assert masker.data(b"a " + KEY + b" b") == b"a ************** b"
    assert masker.text("ñ sk-fake-000000 \udcff") == "ñ ************** \ufffd\ufffd\ufffd"
    assert masker.text("ñ \udcff") == "ñ \udcff"


def test_a_field_that_only_begins_like_a_credential_stays_readable() -> None:
    key = b"fake-0000-1111-2222"
    for others in ((), ((b"x-echo", b"your key " + key),)):
        masker = Masker(b"k")
        masker.see(((b"authorization", b"Bearer " + key),))
        heads = (*others, (b"x-request-id", key[:9]))
        assert masker.headers(heads)[-1] == (b"x-request-id", key[:9])
        assert json.loads(masker.headers_text(heads))[-1] == ["x-request-id", "fake-0000"]


@pytest.mark.parametrize("word", [b"not-needed", b"lm-studio", b"postgres"])
@pytest.mark.parametrize(
    ("name", "value"),
    [(b"Authorization", b"Bearer %s"), (b"X-Api-Key", b"%s"), (b"Cookie", b"env=%s")],
)
def test_a_word_is_masked_in_its_field_and_nowhere_else(
    name: bytes, value: bytes, word: bytes
) -> None:
    masker = Masker(b"k")
    field = (name, value % word)
    masker.see((field,), b"/v1?key=" + word, b"https://user:%s@host" % word)
    assert masker.data(b"a " + word + b" b") == b"a " + word + b" b"
    assert masker.headers((field,)) == ((name, masker.value(field[1])),)


def test_credentials_of_urls_are_masked_wherever_they_come_up() -> None:
    masker = Masker(b"k")
    masker.see((), b"/v1?key=fake%2Ffake", b"https://user:pass-000@host")
    assert (
        masker.data(b"fake/fake fake%2Ffake pass-000 user")
        == b"********* *********** ******** user"
    )


def test_the_hash_of_a_credential_is_the_same_wherever_it_comes_up() -> None:
    masker = Masker(b"k")
    masker.learn(b"fake/fake")
    ((_, _, found),) = masker.seen.find(rb"x fake\/fake x")
    assert found == masker.value(b"fake/fake").hash


def test_a_target_is_masked_by_name_and_by_what_was_seen() -> None:
    masker = Masker(b"k")
    masker.learn(KEY)
    target = b"/" + KEY + b"?key=a-" + KEY + b"&b=" + KEY
    assert masker.target(target) == (
        b"/",
        masker.value(KEY),
        b"?key=",
        masker.value(b"a-" + KEY),
        b"&b=",
        masker.value(KEY),
    )


@pytest.mark.parametrize(
    ("value", "coding"),
    [(b"gzip", "gzip"), (b" GZIP, br", "gzip, br"), (b"identity", ""), (b"", "")],
)
def test_what_a_body_is_coded_in_is_known(value: bytes, coding: str) -> None:
    assert content_coding(((b"A", b"b"), (b"Content-encoding", value))) == coding
    assert (
        content_coding(((b"Content-Encoding", MaskedCredential(length=4, hash="00000000")),)) == ""
    )


SIZES = pytest.mark.parametrize("padding", [b"", b"p" * 2000], ids=["remembered", "too-long"])


@SIZES
def test_a_text_is_masked_anew_once_another_credential_was_seen(padding: bytes) -> None:
    masker = Masker(b"k")
    headers = ((b"X-Trace", padding + b" sk-later-0000"),)
    line = ("POST", b"/" + padding + b"/sk-later-0000", "https://api.example.com")
    reason = padding + b" sk-later-0000"

    def texts() -> str:
        return masker.headers_text(headers) + masker.line_text(*line) + masker.data_text(reason)

    before = texts()
    assert before == texts()
    assert before.count("sk-later-0000") == 3
    masker.see(((b"Authorization", b"Bearer sk-later-0000"),), b"/")
    after = texts()
    assert "sk-later-0000" not in after
    assert json.loads(masker.headers_text(headers)) == fields.headers_to_json(
        masker.headers(headers)
    )
    assert json.loads(f"{{{masker.line_text(*line)}}}") == {
        "method": "POST",
        "target": fields.target_to_json(masker.target(line[1])),
        "upstream": "https://api.example.com",
    }
    assert json.loads(masker.data_text(reason)) == masker.data(reason).decode()


def test_the_text_of_a_head_keeps_what_is_no_text_or_masked_already() -> None:
    headers = ((b"X-\xff", b"1"), (b"X-Key", MaskedCredential(length=3, hash="01234567")))
    text = MASKER.headers_text(headers)
    assert json.loads(text) == fields.headers_to_json(headers)


@SIZES
def test_a_credential_of_a_url_is_seen_again_each_time(padding: bytes) -> None:
    masker = Masker(b"k")
    url = b"/v1/x?key=sk-in-the-url-0000&pad=" + padding
    for _ in range(2):
        masker.see((), url)
        assert masker.data(b"a sk-in-the-url-0000") == b"a " + b"*" * 18


def test_what_is_remembered_of_heads_is_bounded_and_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fields, "REMEMBERED", 2)
    masker = Masker(b"k")
    headers: tuple[tuple[bytes, HeaderValue], ...] = (
        *((b"X-%d" % n, b"sk-fake-%d000" % n) for n in range(4)),
        (b"Authorization", b"Bearer sk-fake-2000"),
        (b"X-Key", MaskedCredential(length=3, hash="01234567")),
    )
    for _ in range(2):
        masker.see(headers)
        text = masker.headers_text(headers)
        assert json.loads(text) == fields.headers_to_json(masker.headers(headers))
        assert "sk-fake-2000" not in text
        assert "sk-fake-1000" in text
