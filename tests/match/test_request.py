import pytest

from deltatape.errors import UsageError
from deltatape.match.request import Asking, Ladder, Match, Miss, Rung
from helpers.taped import taped

NONE: frozenset[int] = frozenset()


def ask(body: bytes, target: bytes = b"/v1/chat/completions", method: str = "POST") -> Asking:
    return Asking(method=method, target=target, body=body)


def test_equal_bytes_match_exactly() -> None:
    ladder = Ladder([taped(body=b'{"a": 1}')])
    assert ladder.match(ask(b'{"a": 1}'), NONE) == Match(position=0, rung=Rung.EXACT)


def test_key_order_and_spacing_do_not_matter() -> None:
    ladder = Ladder([taped(body=b'{"a": 1, "b": [2]}')])
    assert ladder.match(ask(b'{"b":[2],"a":1}'), NONE) == Match(position=0, rung=Rung.CANONICAL)


def test_an_exact_match_beats_an_earlier_canonical_one() -> None:
    ladder = Ladder([taped(body=b'{"a": 1}'), taped(body=b'{"a":1}', number=2)])
    assert ladder.match(ask(b'{"a":1}'), NONE) == Match(position=1, rung=Rung.EXACT)


def test_equal_requests_play_in_order() -> None:
    ladder = Ladder([taped(body=b"{}"), taped(body=b"{}", number=2)])
    first = ladder.match(ask(b"{}"), NONE)
    second = ladder.match(ask(b"{}"), frozenset({0}))
    assert isinstance(first, Match)
    assert isinstance(second, Match)
    assert (first.position, second.position) == (0, 1)


def test_volatile_fields_are_left_out_on_the_third_rung() -> None:
    recorded = b'{"user": "a", "messages": [{"id": 1, "text": "x"}], "n": 1}'
    asked = b'{"user": "b", "messages": [{"id": 2, "text": "x"}], "n": 1}'
    ladder = Ladder([taped(body=recorded)], ("user", "messages.*.id", "absent.x", "n.x"))
    assert ladder.match(ask(asked), NONE) == Match(position=0, rung=Rung.WITHOUT_VOLATILE)
    assert isinstance(Ladder([taped(body=recorded)]).match(ask(asked), NONE), Miss)


@pytest.mark.parametrize(
    "path", ["messages.*.id", "messages[*].id", "$.messages[0].id", "messages.0.id"]
)
def test_volatile_paths_are_written_as_misses_print_them(path: str) -> None:
    ladder = Ladder([taped(body={"messages": [{"id": 1}]})], (path,))
    found = ladder.match(ask(b'{"messages": [{"id": 2}]}'), NONE)
    assert found == Match(position=0, rung=Rung.WITHOUT_VOLATILE)


@pytest.mark.parametrize("path", ["messages[9].id", "messages.x.id", "messages[0]"])
def test_volatile_paths_that_lead_nowhere_leave_out_nothing(path: str) -> None:
    ladder = Ladder([taped(body={"messages": [{"id": 1}]})], (path,))
    assert isinstance(ladder.match(ask(b'{"messages": [{"id": 2}]}'), NONE), Miss)


@pytest.mark.parametrize("path", ["", "$", "a..b", "a.", "$."])
def test_what_is_no_path_is_told(path: str) -> None:
    with pytest.raises(UsageError, match="not a path"):
        Ladder([], (path,))


def test_a_volatile_path_may_name_whole_elements() -> None:
    ladder = Ladder([taped(body=b'[{"x": 1}]')], ("*",))
    assert isinstance(ladder.match(ask(b'[{"x": 2}]'), NONE), Miss)


def test_targets_match_bare_and_below_a_prefix() -> None:
    upstream = "https://openrouter.ai/api/v1"
    ladder = Ladder([taped(body=b"{}", target=b"/api/v1/chat/completions", upstream=upstream)])
    for target in (
        b"/api/v1/chat/completions",
        b"/openrouter/api/v1/chat/completions",
        b"/mine/chat/completions",
        b"/chat/completions",
    ):
        assert isinstance(ladder.match(ask(b"{}", target), NONE), Match), target
    for target in (b"/v1/responses", b"/", b"/x/", b"/x/ons"):
        assert isinstance(ladder.match(ask(b"{}", target), NONE), Miss), target


def test_anthropics_two_base_urls_match() -> None:
    ladder = Ladder([taped(body=b"{}", target=b"/v1/messages")])
    for target in (b"/anthropic/messages", b"/anthropic/v1/messages"):
        assert isinstance(ladder.match(ask(b"{}", target), NONE), Match), target
    assert isinstance(ladder.match(ask(b"{}", b"/other/messages"), NONE), Miss)


def test_a_path_that_ends_alike_is_another_path() -> None:
    ladder = Ladder([taped(body=b"{}", target=b"/v1/threads/T1/messages")])
    assert isinstance(ladder.match(ask(b"{}", b"/v1/messages"), NONE), Miss)


def test_credentials_in_the_query_do_not_take_part() -> None:
    ladder = Ladder([taped(body=b"{}", target=b"/x?key=***&alt=sse")])
    assert isinstance(ladder.match(ask(b"{}", b"/x?key=sk-fake&alt=sse"), NONE), Match)
    assert isinstance(ladder.match(ask(b"{}", b"/x?key=sk-fake&alt=json"), NONE), Miss)


def test_a_miss_names_the_nearest_request_and_where_it_differs() -> None:
    ladder = Ladder(
        [
            taped(body={"model": "a", "messages": [1, 2, 3]}),
            taped(body={"model": "b", "messages": [1, 2, 4]}, number=2),
        ]
    )
    miss = ladder.match(ask(b'{"model": "b", "messages": [1, 2, 5]}'), NONE)
    assert isinstance(miss, Miss)
    assert miss.nearest == 1
    assert [d.path for d in miss.differences] == ["$.messages[2]"]


def test_a_miss_is_compared_with_what_is_left_to_play() -> None:
    ladder = Ladder([taped(body={"m": [1]}), taped(body={"m": [1, 2, 3, 4]}, number=2)])
    miss = ladder.match(ask(b'{"m": [1, 9]}'), frozenset({0}))
    assert isinstance(miss, Miss)
    assert miss.nearest == 1


def test_a_miss_says_that_the_exchange_was_played_already() -> None:
    miss = Ladder([taped(body=b"{}")]).match(ask(b"{}"), frozenset({0}))
    assert isinstance(miss, Miss)
    assert "has been played" in miss.problem
    assert miss.nearest == 0


def test_a_miss_of_the_path_lists_what_is_recorded() -> None:
    miss = Ladder([taped()]).match(ask(b"{}", b"/v1/models", "GET"), NONE)
    assert isinstance(miss, Miss)
    assert "no GET /v1/models is recorded; recorded: POST /v1/chat/completions" in miss.problem
    empty = Ladder([]).match(ask(b"{}"), NONE)
    assert isinstance(empty, Miss)
    assert empty.nearest is None
    assert "no request at all" in empty.problem


def test_bodies_that_are_no_json_match_only_by_their_bytes() -> None:
    ladder = Ladder([taped(body=b"\xff\x00")])
    assert isinstance(ladder.match(ask(b"\xff\x00"), NONE), Match)
    miss = ladder.match(ask(b"\xff"), NONE)
    assert isinstance(miss, Miss)
    assert miss.differences[0].recorded == "2 bytes, not JSON"
    assert miss.differences[0].received == "1 bytes, not JSON"
    mixed = ladder.match(ask(b"{}"), NONE)
    assert isinstance(mixed, Miss)
    assert mixed.differences[0].received == "JSON"
    played = ladder.match(ask(b"\xff\x00"), frozenset({0}))
    assert isinstance(played, Miss)
    assert played.differences == ()
    other = Ladder([taped(body=b"{}")]).match(ask(b"\xff"), NONE)
    assert isinstance(other, Miss)
    assert other.differences[0].recorded == "JSON"


def test_hostile_nesting_is_just_not_json() -> None:
    for deep in (b"[" * 100_000, b"[" * 900 + b"]" * 900):
        ladder = Ladder([taped(body=deep)])
        assert isinstance(ladder.match(ask(deep), NONE), Match)
        assert isinstance(ladder.match(ask(b"[" + deep + b"]"), NONE), Miss)
