from deltatape.conversation.block import Block, blocks
from helpers.exchanges import USER, asks, assistant, digests, result


def made(*history: dict[str, object]) -> list[Block]:
    (digest,) = digests((asks(*history), []))
    return list(blocks(digest))


CALL = ("c1", "get", '{"a": 1}')
OTHER = ("c2", "put", "")


def test_messages_of_the_assistant_in_a_row_are_one_block() -> None:
    first, second = made(
        USER, assistant(text="Hm."), assistant(CALL), result("c1"), USER, assistant(OTHER), USER
    )
    assert (first.start, first.end, second.start, second.end) == (1, 3, 5, 6)
    assert [call.id for call in first.calls] == ["c1"]
    assert (len(first.messages), len(first.texts)) == (2, 1)
    assert [call.id for call in first.further] == ["c2"]
    assert (first.answered, second.answered) == (("c1",), ())
    assert first.ids == {"c1"}


def test_a_block_that_ends_the_request_is_none() -> None:
    assert made(USER, assistant(CALL)) == []
    assert made(USER) == []
