import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltatape.redact.fillers import Fillers
from deltatape.redact.payload_strings import (
    WrittenPayload,
    fill_payload,
    is_harmless,
    redact_payload,
)
from deltatape.tape.encode import json_record
from deltatape.tape.mask import Masker
from helpers.secret_tapes import KEY, STARS
from helpers.tapes import MASKER


def cleaned(value: object) -> tuple[object, list[tuple[str, str]]]:
    done = redact_payload(value, MASKER)
    assert redact_payload(done.value, MASKER).value == done.value
    return done.value, [(hit.kind, hit.where) for hit in done.hits]


def test_header_fields_of_credentials_are_masked_as_a_recorder_does() -> None:
    value, hits = cleaned(
        {"headers": [["X-Api-Key", "fake"], ["Host", "x"], [{"b64": "/w=="}, "y"]]}
    )
    assert isinstance(value, dict)
    assert value["headers"][0][1]["masked"]["length"] == 4
    assert value["headers"][1:] == [["Host", "x"], [{"b64": "/w=="}, "y"]]
    assert hits == [("unmasked credential", "X-Api-Key")]


def test_secrets_in_other_header_fields_are_overwritten() -> None:
    value, hits = cleaned({"headers": [["X-Debug", f"key={KEY}"], [KEY], 3]})
    assert value == {"headers": [["X-Debug", f"key={STARS}"], [STARS], 3]}
    assert hits == [("API key", "X-Debug"), ("API key", "headers")]


def test_a_target_is_masked_by_its_parameters_and_searched() -> None:
    value, hits = cleaned({"target": "/x?key=fake&a=1"})
    assert isinstance(value, dict)
    path, masked, rest = value["target"]
    assert (path, masked["masked"]["length"], rest) == ("/x?key=", 4, "&a=1")
    assert hits == [("unmasked credential", "target")]
    value, _ = cleaned({"target": f"/x/{KEY}?key=fake"})
    assert isinstance(value, dict)
    assert value["target"][0] == f"/x/{STARS}?key="
    assert cleaned({"target": f"/x/{KEY}"})[0] == {"target": f"/x/{STARS}"}
    parts = ["/x?key=", {"masked": {"length": 4, "hash": "ab12cd34"}}, f"&a={KEY}"]
    assert cleaned({"target": parts})[0] == {"target": [*parts[:2], f"&a={STARS}"]}
    assert cleaned({"target": 5})[0] == {"target": 5}


def test_any_string_of_any_payload_is_searched() -> None:
    value = {"text": f"é {KEY}", "n": [1, None, {"deep": KEY}], "b64": "x"}
    assert cleaned(value) == (
        {"text": f"é {STARS}", "n": [1, None, {"deep": STARS}], "b64": "x"},
        [("API key", "text"), ("API key", "n")],
    )
    assert cleaned({"a": {KEY: 1}}) == ({"a": {STARS: 1}}, [("API key", "a")])
    assert cleaned(KEY) == (STARS, [("API key", "")])


def test_bytes_are_searched_in_their_base64() -> None:
    data = {"b64": "/3NrLWZha2VmYWtlZmFrZTAwMDA="}
    value, hits = cleaned({"reason": data, "other": {"b64": "/w=="}, "bad": {"b64": "!"}})
    assert value == {
        "reason": {"b64": "/yoqKioqKioqKioqKioqKioqKio="},
        "other": {"b64": "/w=="},
        "bad": {"b64": "!"},
    }
    assert hits == [("API key", "reason")]


STRINGS = st.sampled_from(
    [
        *(
            "",
            "text/event-stream",
            "req_0123456789abcdef",
            'h3=":443"; ma=86400',
            KEY,
            f"a {KEY[:9]}",
        ),
        *(
            "Bearer abcdefghijklmn0p",
            '["x","y"]',
            f'["{KEY[:9]}","{KEY[9:]}"]',
            "a=b; c=d",
            "\\u0041",
        ),
        *("https://u:fake@h", "/v1/chat?key=fake", "/v1", "\x00\x01", "x" * 300, "é", "%41"),
    ]
)
NAMES = st.sampled_from(["Date", "X-Api-Key", "Set-Cookie", "alt-svc", "Location", KEY, "X-Key"])
VALUES = STRINGS | st.just({"masked": {"length": 4, "hash": "0a1b2c3d"}}) | st.just({"b64": "/w=="})


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "headers": st.lists(st.tuples(NAMES, VALUES).map(list), max_size=4),
            "target": STRINGS | st.lists(STRINGS, max_size=2),
            "detail": STRINGS | st.lists(STRINGS, max_size=2) | st.dictionaries(STRINGS, STRINGS),
            "status": st.integers(),
        },
    )
)
def test_a_payload_that_is_harmless_at_a_glance_has_no_secret(value: dict[str, object]) -> None:
    line = json_record(1, 1, "response", value)
    if is_harmless(WrittenPayload(value, line), MASKER):
        assert redact_payload(value, MASKER) == (value, ())


def test_usual_payloads_are_harmless_at_a_glance() -> None:
    for value in (
        {"reason": "complete", "bytes": 5, "sha256": "0a" * 32},
        {"status": 200, "headers": [["Alt-Svc", 'h3=":443"'], ["Date", "today"]]},
        {"target": "/v1/chat/completions", "headers": [["X-Key", {"masked": {"length": 4}}]]},
    ):
        assert is_harmless(WrittenPayload(value, json_record(1, 1, "x", value)), MASKER)
    text = ["a text"]
    assert not is_harmless(WrittenPayload(text, json_record(1, 1, "x", text)), MASKER)


def test_what_was_seen_elsewhere_is_no_harmless_header() -> None:
    masker = Masker(b"key")
    masker.learn(b"fake-credential-1")
    value = {"headers": [["X-Echo", "fake-credential-1"]]}
    assert not is_harmless(WrittenPayload(value, json_record(1, 1, "x", value)), masker)


def test_what_is_nested_too_deep_goes_as_a_whole_if_it_holds_a_secret() -> None:
    def nested(value: object) -> object:
        for _ in range(200):
            value = [value]
        return value

    assert cleaned({"x": nested("y")}) == ({"x": nested("y")}, [])
    value, hits = cleaned({"x": nested(KEY)})
    assert KEY not in json.dumps(value)
    assert '"*"' in json.dumps(value)
    assert hits == [("API key", "x")]


def test_the_strings_of_unknown_codes_can_be_filled() -> None:
    value = {"side": "client", "data": "Hello", "n": [1, None, "Ann"]}
    assert fill_payload(value, Fillers()) == {
        "side": "client",
        "data": "xxxxx",
        "n": [1, None, "xxx"],
    }
    deep: object = {"a": "b"}
    for _ in range(200):
        deep = [deep]
    assert json.dumps(fill_payload(deep, Fillers())).strip("[]") == '"*"'


@pytest.mark.parametrize(
    "field",
    [["X-A"], ["X-A", "y" * 300], [{"b64": "/w=="}, "y"], ["X-A", {"b64": "/w=="}], "X-A: y"],
)
def test_unusual_fields_do_not_hide_what_stands_beside_them(field: object) -> None:
    fields = [["A", "b"], field, ["X-Debug", KEY]]
    found = redact_payload({"headers": fields}, MASKER)
    assert found.value == {"headers": [["A", "b"], field, ["X-Debug", STARS]]}
    assert [hit.where for hit in found.hits] == ["X-Debug"]
