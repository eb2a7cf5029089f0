from deltatape.wire.json_edit import at
from helpers import chat as shape
from helpers.mutated import ONE, TWO, WORDS, changed, chat, in_pieces, said, told


def text(name: str, exchange: object = ONE, key: str = "content") -> str:
    """The text of a chat completion after a mutation."""
    made = said(changed(name, exchange))  # type: ignore[arg-type]
    pieces = [at(value, "choices", 0, "delta", key) for value in made]
    return "".join(piece for piece in pieces if isinstance(piece, str))


def test_calls_leak_into_text_and_reasoning() -> None:
    written = '<tool_call>\n{"name": "get", "arguments": {"a":"b c"}}\n</tool_call>'
    for name, key in (("text-tool-leak", "content"), ("reasoning-tool", "reasoning_content")):
        made = changed(name, ONE)
        assert told(made) == []
        assert text(name, key=key) == written
        assert at(said(made)[-2], "choices", 0, "finish_reason") == "stop"
        assert changed(name, WORDS) is None


def test_all_calls_leak() -> None:
    assert text("text-tool-leak", TWO).count("<tool_call>") == 2
    assert '"arguments": {}' in text("text-tool-leak", chat(*in_pieces(""), shape.FINISH))


def test_the_beginning_of_a_call_leaks_and_the_call_stays() -> None:
    made = changed("text-partial-leak", ONE)
    assert text("text-partial-leak") == '<tool_call>\n{"name": "get", '
    assert told(made) == told(ONE)
    assert changed("text-partial-leak", WORDS) is None


def test_arguments_are_shown() -> None:
    assert text("content-duplicates-args") == '{"a":"b c"}'
    assert told(changed("content-duplicates-args", ONE)) == told(ONE)
    assert changed("content-duplicates-args", WORDS) is None
    assert changed("content-duplicates-args", chat(*in_pieces("{}"), shape.FINISH)) is None
