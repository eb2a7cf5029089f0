from deltatape.dialects.openai_chat import OpenAIChat
from helpers.chat import request
from helpers.hints import hints


def test_it_claims_what_has_choices_or_says_so() -> None:
    dialect = OpenAIChat()
    assert dialect.claims(hints({"choices": []}))
    assert dialect.claims(hints({"object": "chat.completion"}))
    assert not dialect.claims(hints({"type": "message_start"}))
    assert not dialect.claims(hints({"object": None}))


def test_it_serves_its_path_below_any_prefix() -> None:
    assert OpenAIChat().serves("/api/v1/chat/completions")
    assert not OpenAIChat().serves("/v1/messages")


def test_a_reducer_judges_by_the_request() -> None:
    dialect = OpenAIChat()
    asked = dialect.read_request(str(request(get={})).replace("'", '"').encode(), "")
    assert asked.known is False
    assert dialect.reducer(asked).finish(cut=False).dialect == "openai-chat"
