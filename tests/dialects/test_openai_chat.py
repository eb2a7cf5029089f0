from deltatape.dialects import Hints
from deltatape.dialects.openai_chat import OpenAIChat
from helpers.chat import request


def hints(path: str, *first: dict[str, object]) -> Hints:
    return Hints(path=path, content_type="", first=first)


def test_it_claims_what_has_choices_or_says_so_or_comes_from_its_path() -> None:
    dialect = OpenAIChat()
    assert dialect.claims(hints("", {"choices": []}))
    assert dialect.claims(hints("", {"object": "chat.completion"}))
    assert dialect.claims(hints("/api/v1/chat/completions"))
    assert not dialect.claims(hints("/v1/messages", {"type": "message_start"}))
    assert not dialect.claims(hints("", {"object": None}))


def test_a_reducer_judges_by_the_request() -> None:
    dialect = OpenAIChat()
    asked = dialect.read_request(str(request(get={})).replace("'", '"').encode())
    assert asked.known is False
    assert dialect.reducer(asked).finish(cut=False).dialect == "openai-chat"
