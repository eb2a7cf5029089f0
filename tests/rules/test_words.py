from deltatape.rules.words import count


def test_one_is_singular() -> None:
    assert [count(number, "event") for number in (0, 1, 2)] == ["0 events", "1 event", "2 events"]
