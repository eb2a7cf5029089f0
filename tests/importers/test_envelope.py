import json

import pytest

from deltatape.errors import UsageError
from deltatape.importers._base import ImportedRequest, ImportedResponse
from deltatape.importers.envelope import read_request, read_response


def test_a_request_is_described_by_its_parts() -> None:
    data = json.dumps(
        {
            "method": "PUT",
            "url": "https://host/x",
            "headers": {"A": "1", "B": ["2", "3"]},
            "body": {"model": "é"},
        }
    ).encode()
    assert read_request("r", data) == ImportedRequest(
        method="PUT",
        url="https://host/x",
        headers=((b"A", b"1"), (b"B", b"2"), (b"B", b"3")),
        body=b'{"model": "\\u00e9"}',
    )


@pytest.mark.parametrize(
    "body", [b'{"model":"x","messages":[]}', b"no json", b"", b"[" * 100_000, b"[1]"]
)
def test_what_describes_no_request_is_its_body(body: bytes) -> None:
    assert read_request("r", body) == ImportedRequest(body=body)


@pytest.mark.parametrize(("body", "expected"), [(None, b""), ("a\ud800", b"a?"), ([1], b"[1]")])
def test_a_body_may_be_missing_text_or_json(body: object, expected: bytes) -> None:
    data = json.dumps({"url": "/", "body": body}).encode()
    assert read_request("r", data) == ImportedRequest(url="/", body=expected)


def test_nothing_given_is_nothing_known() -> None:
    assert read_request("r", None) == ImportedRequest()
    assert read_response("r", None) == ImportedResponse()
    assert read_request("r", b'{"url": null, "method": null}') == ImportedRequest()


def test_a_response_is_described_by_status_and_headers() -> None:
    data = b'{"status": 429, "headers": [["Retry-After", "7"]], "other": 1}'
    assert read_response("r", data) == ImportedResponse(
        status=429, headers=((b"Retry-After", b"7"),)
    )
    assert read_response("r", b"{}") == ImportedResponse()


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"[]", "the response must be a JSON object"),
        (b"nonsense", "the response must be a JSON object"),
        (b'{"status": 99}', '"status" is 99; use 100 to 999'),
        (b'{"status": true}', '"status" is True'),
        (b'{"headers": 1}', '"headers" is 1; use an object'),
        (b'{"headers": {"a": 1}}', "header ('a', 1); use a name and a text"),
        (b'{"headers": [["a"]]}', "header ['a']"),
        (b'{"headers": {"a": "b\\nc: d"}}', "\"a\" is 'b\\nc: d'; use printable text"),
    ],
)
def test_what_no_response_can_have_is_refused(data: bytes, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_response("r.json", data)
    assert str(caught.value).startswith("r.json: ")
    assert problem in str(caught.value)


def test_what_no_request_can_have_is_refused() -> None:
    with pytest.raises(UsageError, match=r'r.json: "method" is 7; use printable text'):
        read_request("r.json", b'{"method": 7}')
