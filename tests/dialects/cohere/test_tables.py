from deltatape.dialects.cohere.tables import V1, V2


def test_both_versions_are_the_same_dialect_and_end_in_words_of_their_own() -> None:
    assert V1.name == V2.name == "cohere"
    assert (V1.terminator, V2.terminator) == ("stream-end", "message-end")
    assert V1.terminator in V1.events
    assert V2.terminator in V2.events


def test_only_version_2_has_ids() -> None:
    assert (V1.policy.ids, V2.policy.ids) == (False, True)
