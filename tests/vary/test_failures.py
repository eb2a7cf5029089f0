import json

import pytest

from deltatape.diagnose.decode import decode
from deltatape.diagnose.rebuild import rebuild
from deltatape.model.exchange import EndReason, Exchange, Framing, header
from deltatape.model.stream import Format
from deltatape.vary.failures import ProviderFailure, answered, error_event
from helpers.mutated import STEMS, imported, recorded
from helpers.taped import taped

LIMIT = ProviderFailure(status=429, headers=((b"retry-after", b"2"),))


def document(exchange: Exchange) -> object:
    value: object = json.loads(exchange.body)
    return value


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 429, 500, 503, 504, 529, 599])
@pytest.mark.parametrize("stem", STEMS)
def test_an_answer_with_an_error_is_read_as_one(stem: str, status: int) -> None:
    before = recorded(stem)
    after = answered(before, rebuild(before).dialect, ProviderFailure(status=status))
    assert after.response
    assert after.response.status == status
    assert header(after.response.headers, "content-length") == b"%d" % len(after.body)
    error = rebuild(after).error
    assert error
    assert "a fault of deltatape" in error


def test_an_answer_comes_when_the_recorded_head_did_and_is_whole() -> None:
    before = taped(end_ms=9000)
    after = answered(before, "openai-chat", LIMIT)
    assert after.request is before.request
    assert after.response
    assert before.response
    assert after.response.framing is Framing.LENGTH
    assert header(after.response.headers, "retry-after") == b"2"
    assert after.end
    assert after.end.reason is EndReason.COMPLETE
    assert after.response.t_ns == after.reads[0].t_ns == after.end.t_ns == before.response.t_ns


def test_a_request_without_an_answer_gets_one() -> None:
    after = answered(taped((), framing=None), "openai-chat", LIMIT)
    assert after.response
    assert (after.response.status, after.response.t_ns) == (429, 0)


def test_each_provider_words_its_errors() -> None:
    said = "Too Many Requests (a fault of deltatape)"
    assert document(answered(taped(), "openai-chat", LIMIT)) == {
        "error": {
            "message": said,
            "type": "rate_limit_error",
            "param": None,
            "code": "rate_limit_exceeded",
        }
    }
    assert document(answered(taped(), "anthropic-messages", ProviderFailure(status=529))) == {
        "type": "error",
        "error": {"type": "overloaded_error", "message": "Overloaded (a fault of deltatape)"},
    }
    google = document(answered(taped(), "gemini", ProviderFailure(status=500)))
    assert isinstance(google, dict)
    assert google["error"]["status"] == "INTERNAL"
    amazon = answered(taped(), "bedrock-converse", LIMIT)
    assert document(amazon) == {"message": said}
    assert amazon.response
    assert header(amazon.response.headers, "x-amzn-errortype") == b"ThrottlingException"


def test_a_gateway_answers_with_a_page() -> None:
    after = answered(taped(), "bedrock-invoke", ProviderFailure(status=502, html=True))
    assert after.response
    assert header(after.response.headers, "content-type") == b"text/html"
    assert header(after.response.headers, "x-amzn-errortype") is None
    assert b"<title>502 Bad Gateway</title>" in after.body


@pytest.mark.parametrize("stem", STEMS)
def test_an_error_event_ends_a_stream_with_an_error(stem: str) -> None:
    before = recorded(stem)
    stream = decode(before)
    start = stream.events[1].place.span.start
    event = error_event(rebuild(before).dialect, stream.format, ProviderFailure(status=529))
    closing = b"]" if stream.format is Format.JSON_ARRAY else b""
    media = header(before.response.headers, "content-type") if before.response else b""
    after = imported(before.body[:start] + event + closing, (media or b"").decode())
    assert "a fault of deltatape" in (rebuild(after).error or "")


def test_the_first_version_of_cohere_has_an_error_of_its_own() -> None:
    body = b'{"event_type":"stream-start","generation_id":"g","is_finished":false}\n'
    event = error_event("cohere", Format.NDJSON, ProviderFailure(status=500))
    after = imported(body + event, "application/stream+json")
    assert rebuild(after).error == "Internal Server Error (a fault of deltatape)"


def test_a_dialect_that_is_not_known_speaks_as_openai_does() -> None:
    event = error_event("of-nobody", Format.SSE, ProviderFailure(status=500))
    assert event.startswith(b'data: {"error":{"message":"Internal Server Error')
