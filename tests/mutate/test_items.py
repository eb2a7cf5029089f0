from deltatape.wire.json_edit import at
from helpers.mutated import WORDS, changed, chat, of_type, recorded, said

RESPONSES = recorded("openai-responses")
MESSAGES = recorded("anthropic-messages")
CONVERSE = recorded("bedrock-converse")
DELTA = "response.function_call_arguments.delta"


def numbers(name: str) -> list[object]:
    """The sequence numbers after a mutation."""
    return [at(value, "sequence_number") for value in said(changed(name, RESPONSES))]


def test_the_id_of_an_item_rotates() -> None:
    deltas = of_type(changed("r-item-id-rotates", RESPONSES), DELTA)
    ids = [at(value, "item_id") for value in deltas]
    assert len(set(ids)) == len(ids)


def test_a_finished_item_has_its_id_elsewhere() -> None:
    done = of_type(changed("r-done-item-no-id", RESPONSES), "response.output_item.done")[1]
    assert (at(done, "item", "id"), at(done, "item", "item_id")) == (None, "fc_fake0001")
    bare = chat('{"type":"response.output_item.done","item":{"type":"function_call"}}')
    assert changed("r-done-item-no-id", bare) is None


def test_all_calls_have_one_output_index() -> None:
    deltas = of_type(changed("r-output-index-collides", RESPONSES), DELTA)
    assert {at(value, "output_index") for value in deltas} == {1}
    assert changed("r-output-index-collides", WORDS) is None


def test_a_delta_is_of_a_block_that_never_began() -> None:
    made = said(changed("a-delta-unknown-block", MESSAGES))
    assert sum(at(value, "index") == len(made) for value in made) == 1
    assert changed("a-delta-unknown-block", WORDS) is None


def test_text_comes_for_a_block_of_a_tool() -> None:
    made = said(changed("a-text-on-tool-block", MESSAGES))
    assert len(made) == len(said(MESSAGES)) + 1
    assert [value for value in made if at(value, "delta", "text") == " "]
    assert changed("a-text-on-tool-block", WORDS) is None


def test_arguments_come_at_the_end_only() -> None:
    assert not of_type(changed("r-done-only-args", RESPONSES), DELTA)
    assert numbers("r-done-only-args") == list(range(len(numbers("r-done-only-args"))))


def test_the_first_delta_is_empty() -> None:
    deltas = of_type(changed("r-empty-first-delta", RESPONSES), DELTA)
    assert at(deltas[0], "delta") == ""
    assert len(deltas) == len(of_type(RESPONSES, DELTA)) + 2
    assert numbers("r-empty-first-delta") == list(range(len(numbers("r-empty-first-delta"))))
    opened = (
        '{"type":"response.output_item.added","output_index":0,'
        '"item":{"type":"function_call","name":"f"}}'
    )
    assert changed("r-empty-first-delta", chat(opened)) is None


def test_deltas_are_ciphers() -> None:
    deltas = of_type(changed("r-cipher-delta", RESPONSES), DELTA)
    assert {len(str(at(value, "delta"))) for value in deltas} == {8}


def test_the_last_event_lists_nothing() -> None:
    (last,) = of_type(changed("r-completed-output-empty", RESPONSES), "response.completed")
    assert at(last, "response", "output") == []
    assert changed("r-completed-output-empty", chat('{"type":"response.completed"}')) is None


def test_nothing_says_that_a_call_is_done() -> None:
    made = changed("r-no-item-done", RESPONSES)
    assert len(of_type(made, "response.output_item.done")) == 1
    assert not of_type(made, "response.function_call_arguments.done")


def test_a_message_begins_twice() -> None:
    made = said(changed("a-dup-message-start", MESSAGES))
    assert made[0] == made[1]
    assert changed("a-dup-message-start", WORDS) is None


def test_a_message_does_not_end() -> None:
    assert not of_type(changed("a-no-message-stop", MESSAGES), "message_stop")
    left = said(changed("a-no-message-stop", CONVERSE))
    assert not [value for value in left if at(value, "stopReason")]
    assert changed("a-no-message-stop", WORDS) is None
    assert changed("a-no-message-stop", chat('{"type":"message_stop"}')) is None
