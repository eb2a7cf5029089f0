import pytest

from deltatape.text_calls import find_calls


@pytest.mark.parametrize(
    "text",
    [
        '<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json{"a":1}',
        '<|channel|>commentary to=functions.f<|message|>{"a":1}<|call|>',
        '<|start|>assistant to=functions.f<|channel|>commentary json<|message|>{"a":1}',
        'assistantcommentary to=functions.f json{"a":1}',
        'analysis to=functions.f json{"a":1}',
        '<|channel|>commentary to=functions.f code<|message|>{"a":1}<|call|>',
        'commentary to=f json{"a":1}',
        'to=functions.f<|channel|>commentary {"a":1}',
    ],
)
def test_a_message_to_a_function_is_a_call_with_its_header(text: str) -> None:
    (call,) = find_calls("Well.\n\n" + text)
    assert (call.family, call.name, call.arguments) == ("harmony", "f", '{"a":1}')
    assert (call.start, call.end, call.closed) == (7, 7 + len(text), True)


def test_the_text_before_the_header_is_not_part_of_the_call() -> None:
    (call,) = find_calls('I look it up.commentary to=functions.f json{"a":1} done')
    assert (call.start, call.end) == (13, 13 + len('commentary to=functions.f json{"a":1}'))


def test_a_message_that_is_cut_off_is_open() -> None:
    for rest in ("", " ", " <|con", " <|constrain|>json<|mess", ' json{"a'):
        (call,) = find_calls(f"assistantcommentary to=functions.get{rest}")
        assert (call.name, call.closed) == ("get" if rest else "", False)


def test_other_recipients_and_prose_are_none() -> None:
    for text in (
        'to=f {"a":1} ',
        'go to=f {"a":1}',
        "a link with ?to=functions.f in it",
        "commentary to=functions.f is the header",
        "commentary to=functions.f json{...}",
        "commentary to=python code<|message|>print(1)",
        "to=",
    ):
        assert find_calls(text) == ()
