import json

from deltatape.diagnose.rebuild import rebuild
from deltatape.dialects.gemini import Gemini
from deltatape.model.exchange import Exchange
from helpers.gemini import MODEL, STOP, call, candidate


def test_every_framing_gives_the_same_reply() -> None:
    parts = [candidate({"text": "Hi"}), candidate(call("f", args={"a": 1})), STOP]
    wrapped = [{"response": each} for each in parts]
    bodies = {
        "text/event-stream": "".join(f"data: {json.dumps(each)}\n\n" for each in parts),
        "application/json": json.dumps(parts),
        "application/x-ndjson": "".join(f"{json.dumps(each)}\n" for each in parts),
        "text/event-stream; wrapped": "".join(f"data: {json.dumps(each)}\n\n" for each in wrapped),
    }
    url = f"{MODEL}:streamGenerateContent"
    for media, body in bodies.items():
        reply = rebuild(Exchange.from_body(body.encode(), content_type=media, url=url))
        assert (reply.dialect, reply.text, reply.finish_reason_raw) == ("gemini", "Hi", "STOP")
        assert [(one.name, one.arguments) for one in reply.tool_calls] == [("f", '{"a": 1}')]
        assert (reply.terminated, reply.observations) == (True, ())


def test_the_request_is_read_with_its_path() -> None:
    asked = Gemini().read_request(b"{}", "/v1beta/models/gemini-x:streamGenerateContent")
    assert (asked.model, asked.stream) == ("gemini-x", True)
    assert Gemini().reducer(asked).finish(cut=False).dialect == "gemini"
