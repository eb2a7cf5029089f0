from deltatape.dialects.mistral import Mistral
from deltatape.model.reply import CallStatus
from helpers.chat import calls, choice, entry, reply_to

CHUNK = {"id": "0123456789abcdef0123456789abcdef", "object": "chat.completion.chunk"}


def test_a_call_without_index_is_as_it_should_be() -> None:
    whole = CHUNK | calls(entry(None, "abcdefghi", name="get", arguments="{}"))
    assert reply_to(whole, CHUNK | choice({}, "tool_calls")).observations == ()


def test_calls_come_whole_and_reasoning_in_parts_of_the_content() -> None:
    thinking = [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}]
    reply = reply_to(
        CHUNK | choice({"content": thinking}),
        CHUNK | calls(entry(0, "null", name="get", arguments="")),
        CHUNK | calls(entry(0, "abcdefghi", name="", arguments='{"a":1}')),
        CHUNK | choice({"content": ""}, "tool_calls"),
        request={"tools": [{"function": {"name": "get"}}]},
    )
    assert (reply.dialect, reply.reasoning) == ("mistral", "Hm")
    (call,) = reply.tool_calls
    assert (call.id, call.name, call.arguments) == ("abcdefghi", "get", '{"a":1}')
    assert call.status is CallStatus.COMPLETE


def test_the_limit_of_the_model_is_a_limit() -> None:
    reply = reply_to(
        CHUNK | calls(entry(0, "abcdefghi", name="get", arguments="")),
        CHUNK | choice({}, "model_length"),
        request={"tools": [{"function": {"name": "get"}}]},
    )
    assert reply.tool_calls[0].status is CallStatus.TRUNCATED


def test_any_tool_is_required() -> None:
    read = Mistral().read_request
    assert read(b'{"tool_choice":"any"}', "").tool_choice == "required"
    assert read(b'{"tool_choice":"auto"}', "").tool_choice == "auto"
