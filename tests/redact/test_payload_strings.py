import json

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from deltatape.redact.fillers import Fillers
from deltatape.redact.payload_strings import (
    fill_payload,
    joined_texts,
    plain_texts,
    redact_payload,
)
from deltatape.secret_text.prefilter import may_hold_secret
from deltatape.tape.decode import decode_record
from deltatape.tape.fields import MalformedError
from deltatape.tape.mask import Masker
from deltatape.tape.record import Payload
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
MASKED = {"length": 4, "hash": "0a1b2c3d"}
VALUES = STRINGS | st.just({"masked": MASKED}) | st.just({"b64": "/w=="})


Members = dict[str, st.SearchStrategy[object]]

FIELDS = st.lists(st.tuples(NAMES, VALUES).map(list), max_size=4)
ONE = st.just(1)
HEAD: Members = {"http": STRINGS, "headers": FIELDS}
LINE: Members = {"id": STRINGS, "method": STRINGS, "upstream": STRINGS}
TARGETS = STRINGS | st.lists(STRINGS, max_size=2)
WATCHED = st.fixed_dictionaries({"until_ns": ONE, "reason": STRINGS})
SUMS: Members = {"bytes": ONE, "sha256": STRINGS}
NUMBERS: Members = {"events": ONE, "calls": ONE, "form": ONE}
NO_MORE: Members = {}
RECORDS: list[tuple[str, Members, Members]] = [
    ("request", {**HEAD, **LINE, "target": TARGETS}, {"watched": WATCHED}),
    ("response", {**HEAD, "reason": VALUES, "status": ONE, "framing": st.just("none")}, NO_MORE),
    ("informational", {**HEAD, "reason": VALUES, "status": ONE}, NO_MORE),
    ("trailers", {"headers": FIELDS}, NO_MORE),
    ("note", {"text": STRINGS}, NO_MORE),
    ("stop", {"reason": STRINGS}, NO_MORE),
    ("delivered", {"bytes": ONE}, NO_MORE),
    ("odd", {"text": STRINGS}, NO_MORE),
    (
        "end",
        {"reason": st.just("complete"), "detail": STRINGS, **SUMS},
        {"recorder": st.dictionaries(STRINGS, STRINGS, max_size=2)},
    ),
    (
        "parsed",
        {"tool": STRINGS, "dialect": STRINGS, "finish": STRINGS, "sha256": STRINGS, **NUMBERS},
        NO_MORE,
    ),
]
PAYLOADS = st.one_of(
    [
        st.tuples(st.just(code), st.fixed_dictionaries(members, optional=optional))
        for code, members, optional in RECORDS
    ]
)


def payload(code: str, value: object) -> Payload:
    return decode_record(json.dumps([1, 1, code, value]).encode()).payload


@given(PAYLOADS)
def test_a_payload_has_a_secret_only_if_one_of_its_plain_texts_has(
    record: tuple[str, dict[str, object]],
) -> None:
    try:
        one = payload(*record)
    except MalformedError:
        reject()
    texts = plain_texts(one, MASKER, frozenset())
    if texts is not None and not may_hold_secret(joined_texts(texts)):
        value = one.to_json()
        assert redact_payload(value, MASKER) == (value, ())


def test_usual_payloads_have_plain_texts_without_those_that_were_searched() -> None:
    response = {"status": 200, "reason": "OK", "http": "1.1", "framing": "none"}
    fields = [["Alt-Svc", 'h3=":443"'], ["Date", "today"], ["X-Key", {"masked": MASKED}]]
    one = payload("response", {**response, "headers": fields})
    texts = plain_texts(one, MASKER, {b"OK"})
    assert texts is not None
    assert joined_texts(texts) == b"1.1\ntoday"
    cleared = {b"OK", b"1.1", *texts}
    assert plain_texts(one, MASKER, cleared) == []
    end = payload("end", {"reason": "complete", "bytes": 5, "sha256": "0a" * 32})
    assert plain_texts(end, MASKER, {b""}) == [b"0a" * 32]
    assert plain_texts(payload("odd", "text"), MASKER, frozenset()) is None
    assert plain_texts(payload("note", {"text": f'"{KEY}"'}), MASKER, frozenset()) is None


def test_what_was_seen_elsewhere_is_no_plain_header() -> None:
    masker = Masker(b"key")
    masker.learn(b"fake-credential-1")
    other, same = (
        payload("trailers", {"headers": [["X-Echo", f"fake-credential-{n}"]]}) for n in (2, 1)
    )
    assert plain_texts(other, masker, frozenset())
    assert plain_texts(same, masker, frozenset()) is None


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
