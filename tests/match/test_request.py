import gzip
import json
import zlib
from dataclasses import replace

import pytest
import zstandard

from deltatape.errors import UsageError
from deltatape.match.request import (
    MatchLevel,
    MatchQuery,
    NoMatch,
    RecordedMatch,
    RequestMatcher,
    closest,
    likely,
)
from deltatape.model.exchange import Exchange, MaskedCredential
from helpers.taped import taped


def ask(body: bytes, target: bytes = b"/v1/chat/completions", method: str = "POST") -> MatchQuery:
    return MatchQuery(method=method, target=target, body=body)


def test_equal_bytes_match_exactly() -> None:
    matcher = RequestMatcher([taped(body=b'{"a": 1}')])
    assert matcher.match(ask(b'{"a": 1}')) == RecordedMatch(position=0, level=MatchLevel.EXACT)


def test_key_order_and_spacing_do_not_matter() -> None:
    matcher = RequestMatcher([taped(body=b'{"a": 1, "b": [2]}')])
    assert matcher.match(ask(b'{"b":[2],"a":1}')) == RecordedMatch(
        position=0, level=MatchLevel.CANONICAL
    )


def test_an_exact_match_beats_an_earlier_canonical_one() -> None:
    matcher = RequestMatcher([taped(body=b'{"a": 1}'), taped(body=b'{"a":1}', number=2)])
    assert matcher.match(ask(b'{"a":1}')) == RecordedMatch(position=1, level=MatchLevel.EXACT)


def found(matcher: RequestMatcher, asking: MatchQuery) -> int:
    """Where the exchange is that answers; it is spent by that."""
    match = matcher.match(asking)
    assert isinstance(match, RecordedMatch), match
    matcher.play(match.position, spent=True)
    return match.position


def spent(matcher: RequestMatcher, position: int) -> RequestMatcher:
    """`matcher` with one exchange spent."""
    matcher.play(position, spent=True)
    return matcher


def test_equal_requests_play_in_order() -> None:
    matcher = RequestMatcher([taped(body=b"{}"), taped(body=b"{}", number=2)])
    assert [found(matcher, ask(b"{}")) for _ in range(2)] == [0, 1]


def test_equal_requests_play_in_order_however_they_are_spelled() -> None:
    bodies = (b'{"a":1}', b'{"a": 1}', b'{"a":1.0}', b'{"a":1}')
    matcher = RequestMatcher([taped(body=body, number=at + 1) for at, body in enumerate(bodies)])
    assert [found(matcher, ask(b'{"a":1}')) for _ in range(4)] == [0, 3, 1, 2]
    assert matcher.spent == {0, 1, 2, 3}


def test_what_is_spent_answers_again_in_turn_if_that_is_wanted() -> None:
    exchanges = [taped(body=b"{}"), taped(body=b"[]", number=2), taped(body=b"{}", number=3)]
    matcher = RequestMatcher(exchanges, repeat=True)
    assert [found(matcher, ask(b"{}")) for _ in range(5)] == [0, 2, 0, 2, 0]
    assert found(matcher, ask(b"[]")) == 1


def test_a_fault_that_ends_an_answer_leaves_its_exchange_for_the_next_request() -> None:
    matcher = RequestMatcher([taped(body=b"{}"), taped(body=b"{}", number=2)])
    matcher.play(0, spent=False)
    assert [found(matcher, ask(b"{}")) for _ in range(2)] == [0, 1]


def test_branches_of_a_conversation_part_where_their_requests_do() -> None:
    same, one, other = b'["hi"]', b'["hi","yes","go"]', b'["hi","no","stop"]'
    bodies = (same, one, same, other)
    matcher = RequestMatcher([taped(body=body, number=at + 1) for at, body in enumerate(bodies)])
    assert [found(matcher, ask(body)) for body in (same, same, other, one)] == [0, 2, 3, 1]


def test_numbers_are_equal_however_they_are_written() -> None:
    matcher = RequestMatcher([taped(body=b'{"t": 1.0, "x": 1e400, "p": 0.5}')])
    assert isinstance(matcher.match(ask(b'{"t":1,"p":5e-1,"x":2e400}')), RecordedMatch)
    assert isinstance(matcher.match(ask(b'{"t":2,"p":0.5,"x":1e400}')), NoMatch)


def test_volatile_fields_are_left_out_on_the_third_rung() -> None:
    recorded = b'{"user": "a", "messages": [{"id": 1, "text": "x"}], "n": 1}'
    asked = b'{"user": "b", "messages": [{"id": 2, "text": "x"}], "n": 1}'
    matcher = RequestMatcher([taped(body=recorded)], ("user", "messages.*.id", "absent.x", "n.x"))
    assert matcher.match(ask(asked)) == RecordedMatch(position=0, level=MatchLevel.WITHOUT_VOLATILE)
    assert isinstance(RequestMatcher([taped(body=recorded)]).match(ask(asked)), NoMatch)


@pytest.mark.parametrize(
    "path", ["messages.*.id", "messages[*].id", "$.messages[0].id", "messages.0.id"]
)
def test_volatile_paths_are_written_as_misses_print_them(path: str) -> None:
    matcher = RequestMatcher([taped(body={"messages": [{"id": 1}]})], (path,))
    found = matcher.match(ask(b'{"messages": [{"id": 2}]}'))
    assert found == RecordedMatch(position=0, level=MatchLevel.WITHOUT_VOLATILE)


@pytest.mark.parametrize("path", ["messages[9].id", "messages.x.id", "messages[1]"])
def test_volatile_paths_that_lead_nowhere_leave_out_nothing(path: str) -> None:
    matcher = RequestMatcher([taped(body={"messages": [{"id": 1}]})], (path,))
    assert isinstance(matcher.match(ask(b'{"messages": [{"id": 2}]}')), NoMatch)


@pytest.mark.parametrize("path", ["", "$", "a..", "a.", "$."])
def test_what_is_not_a_path_is_reported(path: str) -> None:
    with pytest.raises(UsageError, match="not a path"):
        RequestMatcher([], (path,))


def test_a_volatile_path_may_name_whole_elements() -> None:
    matcher = RequestMatcher([taped(body=b'[{"x": 1}, 2]')], ("[0]",))
    assert isinstance(matcher.match(ask(b'[{"x": 2}, 2]')), RecordedMatch)
    assert isinstance(matcher.match(ask(b"[2]")), NoMatch)


def test_parts_of_texts_may_differ_on_the_third_rung() -> None:
    def body(day: str, other: str = "x") -> dict[str, object]:
        return {"model": "m", "messages": [{"content": f"Today is {day}. {other}"}]}

    matcher = RequestMatcher([taped(body=body("2026-11-26"))], ("date",))
    asked = json.dumps(body("2026-12-03")).encode()
    assert matcher.match(ask(asked)) == RecordedMatch(position=0, level=MatchLevel.WITHOUT_VOLATILE)
    assert isinstance(matcher.match(ask(json.dumps(body("2026-12-03", "y")).encode())), NoMatch)


def test_what_only_a_mask_makes_equal_plays_in_order_and_is_told() -> None:
    days = ("2026-11-26", "2026-11-27", "2026-11-27", "2026-11-28")
    matcher = RequestMatcher(
        [taped(body={"day": day}, number=at + 1) for at, day in enumerate(days)], ("date",)
    )
    asking = ask(b'{"day":"2026-12-03"}')
    found = []
    for _ in days:
        match = matcher.match(asking)
        assert isinstance(match, RecordedMatch)
        found.append((match.position, match.alike))
        matcher.play(match.position, spent=True)
    assert found == [(0, (1, 2, 3)), (1, (3,)), (2, (3,)), (3, ())]
    exact = RequestMatcher([taped(body={"day": day}) for day in days], ("date",))
    assert exact.match(ask(b'{"day": "2026-11-27"}')) == RecordedMatch(
        position=1, level=MatchLevel.EXACT
    )


def test_nothing_is_told_of_exchanges_that_play_again() -> None:
    exchanges = [taped(body={"day": "2026-11-26"}), taped(body={"day": "2026-11-27"}, number=2)]
    matcher = spent(spent(RequestMatcher(exchanges, ("date",), repeat=True), 0), 1)
    match = matcher.match(ask(b'{"day":"2026-12-03"}'))
    assert match == RecordedMatch(position=0, level=MatchLevel.WITHOUT_VOLATILE)


def test_a_redacted_tape_matches_with_and_without_masks() -> None:
    recorded = taped(body={"text": "xxxxx xx 1111-11-11 xx xxxx xxxxxxxxx"})
    asked = b'{"text": "Today is 2026-12-03 or some wednesday"}'
    for volatile in ((), ("date",), ("x",), ("text:date",)):
        match = RequestMatcher([recorded], volatile).match(ask(asked))
        assert match == RecordedMatch(position=0, level=MatchLevel.MASKED), volatile
    other = b'{"text": "Today is 2026-12-3 or some wednesday"}'
    assert isinstance(RequestMatcher([recorded], ("date",)).match(ask(other)), NoMatch)


def test_targets_match_bare_and_below_a_prefix() -> None:
    upstream = "https://openrouter.ai/api/v1"
    matcher = RequestMatcher(
        [taped(body=b"{}", target=b"/api/v1/chat/completions", upstream=upstream)]
    )
    for target in (
        b"/api/v1/chat/completions",
        b"/openrouter/api/v1/chat/completions",
        b"/mine/chat/completions",
        b"/chat/completions",
    ):
        assert isinstance(matcher.match(ask(b"{}", target)), RecordedMatch), target
    for target in (b"/v1/responses", b"/", b"/x/", b"/x/ons"):
        assert isinstance(matcher.match(ask(b"{}", target)), NoMatch), target


def test_anthropics_two_base_urls_match() -> None:
    matcher = RequestMatcher([taped(body=b"{}", target=b"/v1/messages")])
    for target in (b"/anthropic/messages", b"/anthropic/v1/messages"):
        assert isinstance(matcher.match(ask(b"{}", target)), RecordedMatch), target
    assert isinstance(matcher.match(ask(b"{}", b"/other/messages")), NoMatch)


def test_a_path_that_ends_alike_is_another_path() -> None:
    matcher = RequestMatcher([taped(body=b"{}", target=b"/v1/threads/T1/messages")])
    assert isinstance(matcher.match(ask(b"{}", b"/v1/messages")), NoMatch)


def test_credentials_in_the_query_do_not_take_part() -> None:
    matcher = RequestMatcher([taped(body=b"{}", target=b"/x?key=***&alt=sse")])
    assert isinstance(matcher.match(ask(b"{}", b"/x?key=sk-fake&alt=sse")), RecordedMatch)
    assert isinstance(matcher.match(ask(b"{}", b"/x?key=sk-fake&alt=json")), NoMatch)


def test_a_miss_names_the_nearest_request_and_where_it_differs() -> None:
    matcher = RequestMatcher(
        [
            taped(body={"model": "a", "messages": [1, 2, 3]}),
            taped(body={"model": "b", "messages": [1, 2, 4]}, number=2),
        ]
    )
    miss = matcher.match(ask(b'{"model": "b", "messages": [1, 2, 5]}'))
    assert isinstance(miss, NoMatch)
    assert miss.nearest == 1
    assert [d.path for d in miss.differences] == ["$.messages[2]"]


def test_a_miss_says_what_would_have_to_be_volatile() -> None:
    recorded = taped(body={"model": "m", "text": "on 2026-11-26, pid 1", "id": 1})
    asked = ask(b'{"model":"m","text":"on 2026-12-03, pid 22","id":2}')
    miss = RequestMatcher([recorded], ("$.id",)).match(asked)
    assert isinstance(miss, NoMatch)
    assert (miss.volatile, miss.suggested) == (("$.id",), ("date", "pid"))
    assert [each.path for each in miss.differences] == ["$.text"]
    rules = (*miss.volatile, *miss.suggested)
    assert isinstance(RequestMatcher([recorded], rules).match(asked), RecordedMatch)


@pytest.mark.parametrize(
    ("recorded", "asked"),
    [
        (b'{"a": [1]}', b'{"a": [1, 2]}'),
        (b'{"a": 1}', b"a"),
        (b'{"a"b": 1}', b'{"a"b": 2}'),
        (b'{"a": 1, "b": [1]}', b'{"a": 2, "b": []}'),
        (b'{"": 1}', b'{"": 2}'),  # no path spells that name
    ],
)
def test_a_miss_suggests_nothing_that_does_not_help(recorded: bytes, asked: bytes) -> None:
    miss = RequestMatcher([taped(body=recorded)]).match(ask(asked))
    assert isinstance(miss, NoMatch)
    assert miss.suggested == ()


def test_a_suggestion_is_tried_before_it_is_made() -> None:
    recorded = taped(body={"m": {"a": "on 2026-11-26"}, "xs": [{"t": "/w/1"}, {"t": "x"}]})
    asked = ask(b'{"m": {"a": "on 2026-12-03"}, "xs": [{"t": "/w/2"}, {"t": "x"}]}')
    miss = RequestMatcher([recorded], ("/on 2026-11/",)).match(asked)
    assert isinstance(miss, NoMatch)
    assert miss.suggested == ("path", "$.m.a")


def test_a_miss_is_compared_with_what_is_left_to_play() -> None:
    matcher = RequestMatcher([taped(body={"m": [1]}), taped(body={"m": [1, 2, 3, 4]}, number=2)])
    miss = spent(matcher, 0).match(ask(b'{"m": [1, 9]}'))
    assert isinstance(miss, NoMatch)
    assert miss.nearest == 1


def test_a_miss_says_that_the_exchange_was_played_already() -> None:
    miss = spent(RequestMatcher([taped(body=b"{}")]), 0).match(ask(b"{}"))
    assert isinstance(miss, NoMatch)
    assert "was already played" in miss.problem
    assert miss.nearest == 0


def test_a_miss_of_the_path_lists_what_is_recorded() -> None:
    miss = RequestMatcher([taped()]).match(ask(b"{}", b"/v1/models", "GET"))
    assert isinstance(miss, NoMatch)
    assert "the tape has no GET /v1/models; it has POST /v1/chat/completions" in miss.problem
    empty = RequestMatcher([]).match(ask(b"{}"))
    assert isinstance(empty, NoMatch)
    assert empty.nearest is None
    assert "it has no request" in empty.problem


def test_bodies_that_are_not_json_match_only_by_their_bytes() -> None:
    matcher = RequestMatcher([taped(body=b"\xff\x00")])
    assert isinstance(matcher.match(ask(b"\xff\x00")), RecordedMatch)
    miss = matcher.match(ask(b"\xff"))
    assert isinstance(miss, NoMatch)
    assert miss.differences[0].recorded == "2 bytes, not JSON"
    assert miss.differences[0].received == "1 bytes, not JSON"
    mixed = matcher.match(ask(b"{}"))
    assert isinstance(mixed, NoMatch)
    assert mixed.differences[0].received == "JSON"
    played = spent(matcher, 0).match(ask(b"\xff\x00"))
    assert isinstance(played, NoMatch)
    assert played.differences == ()
    other = RequestMatcher([taped(body=b"{}")]).match(ask(b"\xff"))
    assert isinstance(other, NoMatch)
    assert other.differences[0].recorded == "JSON"


def test_hostile_nesting_is_just_not_json() -> None:
    for deep in (b"[" * 100_000, b"[" * 900 + b"]" * 900):
        matcher = RequestMatcher([taped(body=deep)])
        assert isinstance(matcher.match(ask(deep)), RecordedMatch)
        assert isinstance(matcher.match(ask(b"[" + deep + b"]")), NoMatch)


def masked(body: bytes, *spans: tuple[int, int], number: int = 1) -> Exchange:
    """An exchange whose request's body has asterisks for credentials."""
    exchange = taped(body=body, number=number)
    marked = tuple((start, end, "ab12cd34") for start, end in spans)
    return replace(exchange, request=replace(exchange.request, masked=marked))


def test_masked_credentials_fit_any_other() -> None:
    recorded = b'{"key":"***********","n":1}'
    matcher = RequestMatcher([masked(recorded, (8, 19))])
    assert matcher.match(ask(b'{"n":1,"key":"sk-fake"}')) == RecordedMatch(
        position=0, level=MatchLevel.MASKED
    )
    assert isinstance(matcher.match(ask(b'{"n":2,"key":"sk-fake"}')), NoMatch)
    assert isinstance(matcher.match(ask(b'{"n":1,"key":7}')), NoMatch)


def test_asterisks_outside_of_masks_match_only_asterisks() -> None:
    matcher = RequestMatcher([taped(body=b'{"key":"***********"}')])
    assert isinstance(matcher.match(ask(b'{"key":"sk-fake-000"}')), NoMatch)


def test_masked_bodies_that_are_not_json_fit_by_what_is_around() -> None:
    matcher = RequestMatcher([masked(b"key=****&n=1", (4, 8))])
    assert matcher.match(ask(b"key=sk-fake-000&n=1")) == RecordedMatch(
        position=0, level=MatchLevel.MASKED
    )
    assert isinstance(matcher.match(ask(b"key=sk-fake-000&n=2")), NoMatch)
    assert isinstance(matcher.match(ask(b'{"n":1}')), NoMatch)


def test_a_better_rung_goes_before_a_masked_one_and_masked_ones_play_in_order() -> None:
    recorded = b'{"key":"****"}'
    exchanges = [masked(recorded, (8, 12)), masked(recorded, (8, 12), number=2)]
    exchanges.append(taped(body=b'{"key":"fake"}', number=3))
    matcher = RequestMatcher(exchanges, repeat=True)
    assert [found(matcher, ask(b'{"key":"fake"}')) for _ in range(3)] == [2, 0, 1]
    assert [found(matcher, ask(b'{"key":"sk-fake"}')) for _ in range(3)] == [0, 1, 0]


def test_volatile_fields_do_not_count_beside_masked_ones() -> None:
    matcher = RequestMatcher([masked(b'{"key":"****","id":1}', (8, 12))], ("id",))
    match = matcher.match(ask(b'{"key":"fake","id":2}'))
    assert match == RecordedMatch(position=0, level=MatchLevel.MASKED)


def test_content_that_was_overwritten_fits_what_has_its_shape() -> None:
    recorded = b'{"model":"gpt","messages":["xxxx xx xxx-11","xx","yes"]}'
    matcher = RequestMatcher([taped(body=recorded)])
    sent = b'{"model":"gpt","messages":["What is new-42","ok","yes"]}'
    assert matcher.match(ask(sent)) == RecordedMatch(position=0, level=MatchLevel.MASKED)
    assert isinstance(matcher.match(ask(sent.replace(b'"gpt"', b'"llm"'))), NoMatch)
    assert isinstance(matcher.match(ask(sent.replace(b"new-42", b"new: 42"))), NoMatch)


def test_a_masked_path_fits_any_credential() -> None:
    exchange = taped(body=b"{}")
    parts = (b"/bot", MaskedCredential(length=3, hash="ab12cd34"), b"/send?x=1")
    matcher = RequestMatcher([replace(exchange, request=replace(exchange.request, target=parts))])
    assert isinstance(matcher.match(ask(b"{}", b"/bot123456/send?x=1")), RecordedMatch)
    assert isinstance(matcher.match(ask(b"{}", b"/prefix/bot123456/send?x=1")), RecordedMatch)
    assert isinstance(matcher.match(ask(b"{}", b"/bot123456/get?x=1")), NoMatch)
    assert isinstance(matcher.match(ask(b"{}", b"/bot123456/send")), NoMatch)


def test_what_goes_to_the_same_place_is_known_whatever_its_body() -> None:
    exchanges = [taped(body=b"{}"), taped(body=b"[]", number=2), taped(target=b"/x", number=3)]
    matcher = RequestMatcher(exchanges)
    assert matcher.positions_at("POST", b"/openai/v1/chat/completions") == (0, 1)
    assert matcher.positions_at("GET", b"/x") == ()


def test_a_miss_does_not_name_what_is_volatile_or_masked() -> None:
    recorded = b'{"key":"a****b","id":1,"n":1}'
    matcher = RequestMatcher([masked(recorded, (9, 13))], ("id",))
    miss = matcher.match(ask(b'{"key":"a-fake-b","id":2,"n":2}'))
    assert isinstance(miss, NoMatch)
    assert [each.path for each in miss.differences] == ["$.n"]


def test_the_nearest_request_is_found_among_many() -> None:
    exchanges = [
        taped(body={"model": "m", "messages": ["x" * 50, n * 7919]}, number=n + 1)
        for n in range(1000)
    ]
    miss = RequestMatcher(exchanges).match(
        ask(b'{"model": "m", "messages": ["%b", 7920]}' % (b"x" * 50))
    )
    assert isinstance(miss, NoMatch)
    assert len(miss.differences) == 1
    assert miss.nearest is not None
    assert miss.differences[0].recorded == str(miss.nearest * 7919)


def test_the_nearest_request_to_another_path_is_the_one_that_is_spelled_alike() -> None:
    exchanges = [taped(target=b"/v1/responses"), taped(target=b"/v1/messages", number=2)]
    miss = RequestMatcher(exchanges).match(ask(b"{}", b"/v2/messages"))
    assert isinstance(miss, NoMatch)
    assert miss.nearest == 1


def test_every_rung_has_words() -> None:
    assert len({level.words for level in MatchLevel}) == len(MatchLevel)


@pytest.mark.slow
def test_a_tape_of_four_thousand_exchanges_plays_in_no_time() -> None:
    exchanges = [taped(body={"n": n // 2}, number=n + 1) for n in range(4_000)]
    matcher = RequestMatcher(exchanges)
    played = [found(matcher, ask(b'{"n": %d}' % (n // 2))) for n in range(4_000)]
    assert played == list(range(4_000))


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


def coded(coding: str, body: bytes, number: int = 1) -> Exchange:
    made = taped(body=body, number=number)
    headers = ((b"Content-Encoding", coding.encode()),)
    return replace(made, request=replace(made.request, headers=headers))


def test_a_recorded_body_matches_whatever_it_was_compressed_with() -> None:
    said = b'{"a": 1}'
    matcher = RequestMatcher(
        [
            coded("zstd", zstandard.compress(said)),
            coded("gzip", gzip.compress(said), 2),
            taped(body=said, number=3),
            coded("deflate", zlib.compress(b'{"a":1}'), 4),
        ]
    )
    assert [found(matcher, ask(said)) for _ in range(4)] == [0, 1, 2, 3]


def test_a_miss_of_a_compressed_body_names_where_its_json_differs() -> None:
    matcher = RequestMatcher([coded("gzip", gzip.compress(b'{"a": 1, "b": "x"}'))])
    miss = matcher.match(ask(b'{"a": 2, "b": "x"}'))
    assert isinstance(miss, NoMatch)
    assert [(one.path, one.recorded, one.received) for one in miss.differences] == [
        ("$.a", "1", "2")
    ]


def test_a_miss_says_why_a_body_could_not_be_decoded() -> None:
    matcher = RequestMatcher([coded("gzip", gzip.compress(b"{}")[:6])])
    query = replace(ask(b"Uryyb"), fault="unknown coding 'rot13'")
    miss = matcher.match(query)
    assert isinstance(miss, NoMatch)
    (difference,) = miss.differences
    assert difference.recorded == "6 bytes, not JSON: the gzip data is cut: its end is missing"
    assert difference.received == "5 bytes, not JSON: unknown coding 'rot13'"


def test_a_credential_under_a_content_coding_fits_any_other() -> None:
    made = coded("gzip", gzip.compress(b'{"key": "sk-real"}'))
    hidden = replace(made.request, hidden=((9, 16, "0011aabb"),))
    matcher = RequestMatcher([replace(made, request=hidden)])
    assert matcher.match(ask(b'{"key": "sk-fake"}')) == RecordedMatch(
        position=0, level=MatchLevel.MASKED
    )
