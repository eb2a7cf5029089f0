from deltatape.dialects.app_events.table import table
from deltatape.model.app_names import CONTRACT, AppNames


def test_every_type_of_the_contract_is_in_it() -> None:
    made = table(CONTRACT)
    assert set(made.events) == {
        "text",
        "reasoning",
        "thinking",
        "tool_call",
        "tool_result",
        "done",
        "error",
    }
    assert all(made.events.values())


def test_of_a_word_for_two_things_the_more_telling_meaning_counts() -> None:
    made = table(AppNames(text=("text", "done"), error=("error",)))
    assert made.events["done"] == made.events["text"]
