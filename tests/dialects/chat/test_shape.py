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
    assert not is_mistral({**chat, "id": hexadecimal, "choices": []})
    assert not is_chat({"choices": 5})
    assert is_chat({"choices": []})
    assert is_chat({"choices": ["a", {"index": 0}]})
    assert not is_chat({"choices": ["a", {"label": "yes", "votes": 3}]})


def test_others_whose_ids_are_like_those_of_mistral_have_members_of_their_own() -> None:
    chunk = {"id": "0123456789abcdef" * 2, "choices": [{"delta": {}}]}
    assert is_mistral(chunk)
    assert not is_mistral({**chunk, "system_fingerprint": ""})
    assert not is_mistral({**chunk, "choices": [{"delta": {}, "matched_stop": None}]})


def test_the_older_ids_of_mistral_count_for_its_own_models() -> None:
    chunk = {"id": "cmpl-" + "0123456789abcdef" * 2, "choices": [{"delta": {}}]}
    assert is_mistral({**chunk, "model": "mistral-tiny"})
    assert is_mistral({**chunk, "model": "open-mixtral-8x7b"})
    assert not is_mistral({**chunk, "model": "mistralai/Mistral-7B-Instruct"})
    assert not is_mistral(chunk)
