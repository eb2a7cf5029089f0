from deltatape.dialects._chat.shape import is_chat, is_completion, is_mistral


def test_each_kind_of_completion_is_told_from_the_others() -> None:
    hexadecimal = "0123456789abcdef" * 2
    chat = {"object": "chat.completion.chunk", "choices": [{"delta": {}}]}
    older = {"choices": [None, {"text": ""}]}
    assert (is_chat(chat), is_completion(chat), is_mistral(chat)) == (True, False, False)
    assert (is_chat(older), is_completion(older)) == (False, True)
    assert is_completion({"object": "text_completion"})
    assert is_mistral({**chat, "id": hexadecimal})
    assert not is_mistral({**chat, "id": hexadecimal.upper()})
    assert not is_mistral({"id": hexadecimal})
    assert not is_chat({"choices": 5})
