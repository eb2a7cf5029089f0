from deltatape.match.nearest import closest, likely


def test_what_has_most_in_common_is_looked_at_and_the_first_in_any_case() -> None:
    others = [(at, b"%05d" % (at * 7919 % 100_000)) for at in range(10, 100)]
    others[50] = (60, b"prefix 1 suffix")
    found = likely(b"prefix 2 suffix", others)
    assert 60 in found
    assert found[0] == 10
    assert len(found) <= 9
    assert list(found) == sorted(set(found))


def test_one_body_may_be_the_beginning_of_another() -> None:
    assert likely(b"abc", [(0, b""), (1, b"abcdef"), (2, b"x")]) == (0, 1, 2)
    assert likely(b"", [(3, b"abc")]) == (3,)


def test_the_closest_spelling_is_found() -> None:
    known = ["POST /v1/responses", "POST /v1/messages", "GET /v1/messages"]
    assert closest("POST /v2/messages", known) == "POST /v1/messages"
    assert closest("anything", known[:1]) == known[0]
