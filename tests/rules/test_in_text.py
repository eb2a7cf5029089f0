from deltatape.diagnose.rebuild import analyse, rebuild
from deltatape.model.asked import Asked
from deltatape.model.reply import TextCall
from deltatape.rules._in_text import is_asked_for, is_structured, where
from helpers.chat import FINISH, choice, request
from helpers.exchanges import call, pasted

HERMES = '<tool_call>{"name": "get", "arguments": {"a": 1}}</tool_call>'
GENERIC = '<tool>{"tool_name": "get", "arguments": {}}</tool>'


def written(text: str) -> TextCall:
    (found,) = rebuild(pasted(choice({"content": text}, "stop"))).text_calls
    return found


def asked(*, prompt: str = "", tools: bool = False) -> Asked:
    body = request(get={}) if tools else request()
    body["messages"] = [{"role": "system", "content": prompt}]
    return context_of(body)


def context_of(body: dict[str, object]) -> Asked:
    return analyse(pasted(FINISH, request=body)).asked


def test_the_generic_notation_is_asked_for_where_no_tools_are_declared() -> None:
    assert is_asked_for(asked(), written(GENERIC))
    assert not is_asked_for(asked(tools=True), written(GENERIC))


def test_another_notation_is_asked_for_if_its_tag_stands_in_the_messages() -> None:
    prompt = "Write <tool_call>{...}</tool_call> to call a tool."
    assert is_asked_for(asked(prompt=prompt), written(HERMES))
    assert not is_asked_for(asked(prompt=prompt, tools=True), written(HERMES))
    assert not is_asked_for(asked(prompt="Be brief."), written(HERMES))


def test_a_notation_without_a_tag_is_never_asked_for() -> None:
    whole = '{"name": "get", "arguments": {}}'
    reply = rebuild(pasted(choice({"content": whole}, "stop"), request=request(get={})))
    assert not is_asked_for(asked(prompt=whole), reply.text_calls[0])


def test_a_call_is_structured_too_if_name_and_arguments_are_the_same() -> None:
    def both(arguments: str) -> bool:
        chunks = [choice({"content": HERMES}), *call(arguments=arguments), FINISH]
        (answer,) = rebuild(pasted(*chunks)).choices
        return is_structured(answer, answer.text_calls[0])

    assert both('{ "a":1 }')
    assert not both('{"a":2}')
    assert not both("")


def test_a_message_names_the_call_its_channel_and_its_notation() -> None:
    assert where(written(HERMES)) == "call 0 (get) in the text (hermes)"
