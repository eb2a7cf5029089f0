import base64
import html
import json
import random
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from deltatape.secret_text import prefilter
from deltatape.secret_text.escaped_text import LayeredView
from deltatape.secret_text.prefilter import (
    ClearedTexts,
    may_any_hold_secret,
    may_hold_secret,
    may_span_strings,
)
from deltatape.secret_text.search import in_view
from helpers.leaks import SPELLINGS
from helpers.secret_tapes import KEY

SECRETS = [
    KEY, "sk-ant-" + "fake" * 4, "sk_live_fakefake00", "pk-" + "f" * 16, "rk-live_" + "a" * 10,
    "AIza" + "x" * 30, "ya29." + "x" * 10, "AKIA" + "FAKE" * 4, "ABSK" + "f/+4" * 5,
    "bedrock-api-key-fA3=_fA3=_", "Signature=" + "0a" * 32, "gsk_" + "f" * 16, "xai-" + "f" * 16,
    "hf_" + "f" * 16, "pplx-" + "f" * 16, "ghp_" + "f" * 16, "github_pat_" + "f_" * 8,
    "dapi" + "0a" * 8, "abc1Q~" + "f.~-" * 5, "12345678:AA" + "f-_0" * 8,
    "ey" + "J" * 10 + ".ey" + "J" * 10, "Bearer abcdefghijklmn0p", "bearer\tabcdefghijklmn0p",
    "Authorization: Basic YWxhZGRp", "https://u:fake@h", "x://u\bs:p@x", "api_key=x1x2x3x4x5x6",
    '{"password": "passw0rdpassw0rd"}', "-----BEGIN RSA PRIVATE KEY-----",
]  # fmt: skip
PARTS = [
    *SECRETS, "api_key", "client-secret", "Bearer ", "authorization", "basic ", "x1x2x3x4x5x6",
    '"', "\\", "\n", "\t", "\b", " ", ":", "=", "%", "&", "#", "u", "n", "b", "f", "a", "{", "}",
    ",", "é", "/", "-", "_", "'", "\\u00", "%2", "&#", "0", "1", "\\\\", "\\n", "\\b", ";",
]  # fmt: skip
ENCODERS: list[Callable[[str], str]] = [
    json.dumps,
    lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    lambda text: json.dumps(text).replace("/", "\\/"),
    lambda text: "".join(f"\\u{ord(each):04x}" for each in text),
    quote,
    html.escape,
    lambda text: "".join(f"&#{ord(each)};" for each in text),
    lambda text: base64.b64encode(text.encode()).decode(),
    lambda text: "n" + base64.urlsafe_b64encode(b"~" + text.encode()).decode().rstrip("="),
    lambda text: text.encode().hex(),
]

texts = st.recursive(
    st.lists(st.sampled_from(PARTS), min_size=1, max_size=6).map("".join),
    lambda inner: (
        st.tuples(st.sampled_from(ENCODERS), inner).map(lambda pair: pair[0](pair[1]))
        | st.tuples(inner, inner).map("".join)
    ),
    max_leaves=4,
)


def is_found(text: str) -> bool:
    return any(in_view(LayeredView(text.encode().decode("latin-1"))))


def is_passed_on(text: str) -> bool:
    return may_hold_secret(text.encode())


@pytest.mark.slow
@settings(max_examples=400)
@given(texts)
@example("\\fW5mc2stYW50LWZha2VmYWtlZmFrZWZha2Vz")
def test_nothing_that_is_found_is_passed_over(text: str) -> None:
    assert is_passed_on(text) or not is_found(text)


@pytest.mark.slow
@settings(max_examples=400)
@given(texts)
@example('authorization":"Basic YWxhZGRp')
@example('"password\\u0022:\\u0022x1x2x3x4x5x6')
@example('"password=\\n\\"x1x2x3x4x5x6')
def test_a_secret_around_a_quotation_mark_is_told(text: str) -> None:
    parts = [f'{part}"' for part in text.split('"')]
    assert may_span_strings(text.encode()) or is_found(text) <= any(map(is_found, parts))


@pytest.mark.parametrize("text", ['"monkey":"x"', '"token": "x"', 'my password is "x"', "%4%45"])
def test_strings_that_are_no_names_stand_alone(text: str) -> None:
    assert not may_span_strings(text.encode())


def test_texts_are_searched_with_and_without_escapes() -> None:
    assert not may_any_hold_secret([])
    assert not may_any_hold_secret([b"one", b"%20"])
    assert may_any_hold_secret([b"one", KEY.encode()])
    assert may_any_hold_secret([b"one", quote(KEY.replace("-", "/")).replace("/", "%2d").encode()])


@pytest.mark.slow
@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("before", ["", "it is ", "\\n", "\\\\n", '"', "é"])
def test_every_kind_is_passed_on_in_every_spelling(spelling: str, before: str) -> None:
    texts = [f"{before}{SPELLINGS[spelling](secret)}, ok" for secret in SECRETS]
    assert [text for text in texts if is_found(text) and not is_passed_on(text)] == []


def test_every_kind_is_found() -> None:
    assert [secret for secret in SECRETS if not is_found(f"it is {secret}, ok")] == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The key to a secret is no token; the password is not in this text.",
        '{"id":"chatcmpl-0123456789abcdefghij","object":"chat.completion.chunk","key":"a b"}',
        "https://example.com/a?b=c%20d&amp;e @ 12:30",
        "a task-management-system and a risk-assessment",
        r"C:\users\new &# \u00 %zz",
        "the PRIVATE KEY is elsewhere",
        base64.b64encode(random.Random(1).randbytes(3000)).decode(),
        "0123456789abcdef" * 8,
        "conversation_summary_buffer_memory",
        base64.b64encode(b"This text has been encoded, but is harmless.").decode() * 40,
        b"This text has been encoded, but is harmless.".hex(),
    ],
)
def test_ordinary_text_is_passed_over(text: str) -> None:
    assert not is_found(text)
    assert not is_passed_on(text)


HISTORY = 'He said "yes" and it is fine. ' * 1500
TAIL = '"tools": [{"name": "get", "text": "It gets what it is told."}], ' * 700


@pytest.mark.slow
@settings(max_examples=200)
@given(st.lists(texts, min_size=2, max_size=4), st.sampled_from(["", TAIL]))
def test_what_a_text_adds_to_others_is_searched(added: list[str], tail: str) -> None:
    cleared = ClearedTexts()
    history = HISTORY
    for each in added:
        history += each
        text = history + HISTORY[: len(each) % 7 * 1000] + tail
        passed_on = cleared.may_hold_secret(text.encode())
        assert passed_on or not is_found(text)


def test_a_secret_behind_quotes_that_are_escaped_is_found() -> None:
    cleared = ClearedTexts()
    history = HISTORY.replace('"', '\\"')
    assert not cleared.may_hold_secret(history.encode())
    assert cleared.may_hold_secret(f"{history}{KEY}".encode())


@pytest.mark.parametrize("tail", ["", TAIL])
@pytest.mark.parametrize("end", ["", '"', "%20", "\\"])
def test_a_secret_that_begins_in_what_was_searched_is_found(end: str, tail: str) -> None:
    cleared = ClearedTexts()
    assert not cleared.may_hold_secret(f"{HISTORY}api_key={end}".encode())
    assert not cleared.may_hold_secret(f"{HISTORY}api_key={end} and{HISTORY}{tail}".encode())
    assert not cleared.may_hold_secret(f"{HISTORY}api_key={end} and{HISTORY}more{tail}".encode())
    assert cleared.may_hold_secret(f"{HISTORY}api_key=x1x2x3x4x5x6{tail}".encode())
    assert cleared.may_hold_secret(f"{HISTORY}{KEY}{HISTORY}{tail}".encode())
    assert cleared.may_hold_secret(f"{HISTORY}{HISTORY}{KEY}".encode())


def test_a_text_that_was_searched_is_not_searched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[int] = []

    def search(data: bytes) -> bool:
        searched.append(len(data))
        return may_hold_secret(data)

    monkeypatch.setattr(prefilter, "may_hold_secret", search)
    cleared = ClearedTexts()
    text = HISTORY + TAIL
    escaped = f"{HISTORY}%41 "
    for each in (text, text, f"{escaped}{TAIL}", f"{escaped}more {TAIL}", "x " * 25_000):
        assert not cleared.may_hold_secret(each.encode())
    assert searched[0] == len(text)
    # Nothing of the same text; what is new and around it; all, since there are escapes; all.
    assert searched[1] < 40_000
    assert [size for size in searched[2:] if size > 40_000] == [len(text) + 9, 50_000]


@pytest.mark.parametrize(
    "secret", [KEY, "https://u:fake@h", "authorization\xff:\xfebasic YWxhZGRp"]
)
def test_text_among_encoded_bytes_is_passed_on(secret: str) -> None:
    noise = random.Random(2).randbytes(2000)
    data = base64.b64encode(noise + secret.encode("latin-1") + b"\xff" * 2 + b"x" * 20 + noise)
    assert is_found(data.decode())
    assert is_passed_on(data.decode())


def test_what_would_take_long_is_passed_on() -> None:
    assert is_passed_on("\\" * 16)
    assert is_passed_on(f"%{'25' * 20}41")
    assert may_span_strings(f"%{'25' * 20}41".encode())
