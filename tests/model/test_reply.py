import pytest

from deltatape.model.reply import Choice, Reply
from helpers.chat import FINISH, calls, choice, entry, reply_to


def test_plain_attributes_are_those_of_the_first_choice() -> None:
    reply = reply_to(
        choice({"content": "second"}, "stop", index=1),
        choice({"content": "first", "reasoning_content": "why"}),
        calls(entry(0, "c1", name="get", arguments="{}")),
        FINISH,
    )
    assert [each.index for each in reply.choices] == [0, 1]
    assert (reply.text, reply.reasoning) == ("first", "why")
    assert [call.name for call in reply.tool_calls] == ["get"]
    assert reply.finish_reason_raw == "tool_calls"
    assert reply.choices[1].text == "second"


@pytest.mark.parametrize("attribute", ["text", "reasoning", "tool_calls", "finish_reason_raw"])
def test_each_plain_attribute_is_one_of_a_choice(attribute: str) -> None:
    assert attribute in Choice.__dataclass_fields__
    assert isinstance(getattr(Reply, attribute), property)
