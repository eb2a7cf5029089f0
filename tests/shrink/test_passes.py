import gzip
import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltatape.diagnose.check import check
from deltatape.model.exchange import (
    BROKEN_CHUNKS,
    DeliveryProgress,
    Exchange,
    Headers,
    Note,
    ResponseHead,
)
from deltatape.shrink.body import EditableBody
from deltatape.shrink.passes import (
    COARSE,
    FINE,
    STEP_NS,
    ShrinkPass,
    fewer_blanks,
    fewer_columns,
    fewer_events,
    fewer_exchanges,
    fewer_fields_of_heads,
    fewer_kinds,
    fewer_members,
    fewer_neighbours,
    fewer_single_events,
    join_pieces,
    labels,
    leaves,
    less_between,
    members,
    plainer,
    shorter_data,
    shorter_texts,
    shrink,
    smaller_numbers,
)
from deltatape.shrink.search import Exchanges, ShrinkSearch
from deltatape.store.reader import open_tape
from helpers.chat import FINISH, calls, choice, entry, sse
from helpers.mutated import RECORDINGS
from helpers.shrunk import Asked, bodies, having, recorded, said, search_of, smallest, streamed

EVENTS = 1000
MARKED = (301, 604, 899)


def marked(found: Exchanges) -> int:
    """How many events carry the mark."""
    return sum(b"#" in event for event in bodies(found).split(b"\n\n"))


@pytest.mark.slow
def test_of_a_thousand_events_those_with_the_three_bytes_are_left_in_few_runs() -> None:
    words = [f"word{at} {'#' if at in MARKED else ''}" for at in range(EVENTS - 2)]
    chunks = [choice({"content": word}) for word in words]
    exchange = streamed(choice({"role": "assistant"}), *chunks, choice({}, "stop"), done=False)
    assert len(exchange.reads) == EVENTS
    judge = Asked(lambda found: marked(found) == 3)
    search = search_of(exchange, judge=judge)
    assert shrink(search, lambda _: None)
    assert said(search) == [{"choices": [{"delta": {"content": "#"}}]}] * 3
    assert bodies(search.exchanges).count(b" ") == 3
    assert len(judge.known) < 200


@pytest.mark.slow
def test_a_sound_stream_stays_sound_and_the_same_input_gives_the_same_output() -> None:
    pieces = ('{"a"', ': "some text', ' and a bit more"}')
    chunks = [choice({"role": "assistant"}), *(choice({"content": "x "}) for _ in range(30))]
    for index in (0, 1):
        chunks.append(calls(entry(index, f"call_{index}", name="get", arguments="")))
        chunks += [calls(entry(index, arguments=piece)) for piece in pieces]
    whole = streamed(*chunks, FINISH)

    def holds(found: Exchanges) -> bool:
        return bodies(found).count(b'"name": "get"') == 2

    (one,), (other,) = (smallest(whole, judge=Asked(holds), sound=True) for _ in range(2))
    assert one == other
    assert [finding.code for finding in check(one)] == [finding.code for finding in check(whole)]
    assert one.body.count(b"data:") == 5  # two calls, opened and filled, and the end
    assert len(one.body) < 500


@pytest.mark.parametrize("stem", ["anthropic-messages", "bedrock-converse", "gemini-array"])
def test_a_recording_shrinks_to_its_call_and_stays_sound(stem: str) -> None:
    (exchange,) = open_tape(RECORDINGS / f"{stem}.tape")
    before = {finding.code for finding in check(exchange)}
    (small,) = smallest(exchange, judge=having(b"Gent"), sound=True)
    assert len(small.body) < len(exchange.body) / 2
    assert {finding.code for finding in check(small)} <= before


@pytest.mark.slow
@settings(max_examples=10)
@given(st.sets(st.integers(0, 11), min_size=1, max_size=4), st.integers(0, 1))
def test_what_is_left_holds_and_no_event_of_it_can_go(needed: set[int], sound: int) -> None:
    needles = [f"word{at}x".encode() for at in sorted(needed)]
    exchange = streamed(*(choice({"content": f"word{at}x "}) for at in range(12)))
    left = smallest(exchange, judge=having(*needles), sound=bool(sound))
    assert all(needle in bodies(left) for needle in needles)
    assert len(bodies(left)) <= len(exchange.body)


def test_a_search_without_runs_left_keeps_what_it_has() -> None:
    exchange = streamed(*(choice({"content": f"word{at}"}) for at in range(40)))
    told: list[str] = []
    search = search_of(exchange, judge=Asked(having(b"word7").holds, most=6))
    assert not shrink(search, told.append)
    assert b"word7" in bodies(search.exchanges)
    assert len(bodies(search.exchanges)) < len(exchange.body)
    assert told[:2] == ["times and reads", COARSE[0].name]


def test_every_pass_has_a_name_of_its_own() -> None:
    names = [each.name for each in (*COARSE, *FINE)]
    assert len({*names}) == len(names)


def test_an_empty_tape_is_as_small_as_can_be() -> None:
    assert shrink(ShrinkSearch((), lambda _: None), lambda _: None)


WHOLE = streamed(choice({"role": "assistant"}), choice({"content": "abc"}), FINISH)


def headed(exchange: Exchange, headers: Headers) -> Exchange:
    assert exchange.response is not None
    return replace(exchange, response=replace(exchange.response, headers=headers))


def left(search_made: Exchange | None) -> Exchange:
    assert search_made is not None
    return search_made


def test_exchanges_that_do_not_matter_go() -> None:
    several = [replace(WHOLE, number=number) for number in range(1, 9)]
    several[4] = replace(streamed(choice({"content": "needle"})), number=5)
    search = search_of(*several, judge=having(b"needle"))
    fewer_exchanges(search)
    assert search.numbers == (5,)
    fewer_exchanges(search)  # a single one is not asked about
    assert search.numbers == (5,)


def test_an_answer_is_simplified_in_one_run() -> None:
    zipped = recorded(gzip.compress(sse(choice({"content": "abc"}), FINISH), mtime=0))
    coded = headed(
        zipped, ((b"content-type", b"text/event-stream"), (b"Content-Encoding", b"gzip"))
    )
    early = ResponseHead(
        status=103, reason=b"", http="1.1", framing=coded.response.framing, headers=(), t_ns=0,
        line=None,
    ) if coded.response else None  # fmt: skip
    assert early is not None
    full = replace(
        coded,
        informational=(early,),
        notes=(Note(t_ns=0, text="x"), Note(t_ns=0, text=f"{BROKEN_CHUNKS}: y")),
        delivered=(DeliveryProgress(t_ns=0, bytes=1),),
        idle_ns=(5,),
    )
    judge = having()
    search = search_of(full, judge=judge)
    plainer(search)
    plain = left(search.get(1))
    assert len(judge.known) == 1
    assert plain.body == sse(choice({"content": "abc"}), FINISH)
    assert [read.data for read in plain.reads] == [
        sse(choice({"content": "abc"}), done=False),
        sse(FINISH, done=False),
        sse(),
    ]
    assert plain.response is not None
    assert plain.response.headers == ((b"content-type", b"text/event-stream"),)
    start = plain.response.t_ns
    assert [read.t_ns - start for read in plain.reads] == [STEP_NS, 2 * STEP_NS, 3 * STEP_NS]
    assert plain.end is not None
    assert plain.end.t_ns == start + 4 * STEP_NS
    assert [note.text for note in plain.notes] == [f"{BROKEN_CHUNKS}: y"]
    assert not plain.informational
    assert not plain.delivered
    assert not plain.idle_ns
    plainer(search)  # what is plain is left alone
    assert len(judge.known) == 1


def test_where_reads_matter_times_still_become_even() -> None:
    joined = WHOLE.reads[0]._replace(data=WHOLE.body, boundaries=(len(WHOLE.body),))
    whole = replace(WHOLE, reads=(joined,))
    search = search_of(whole, judge=Asked(lambda found: len(found[0].reads) == 1))
    plainer(search)
    found = left(search.get(1))
    assert found.response is not None
    assert [read.t_ns for read in found.reads] == [found.response.t_ns + STEP_NS]


def test_what_cannot_be_made_plain_stays() -> None:
    masked = WHOLE.reads[0]._replace(masked=((6, 8, "00000000"),))
    exchange = replace(WHOLE, reads=(masked._replace(data=WHOLE.body),))
    search = search_of(exchange, judge=having())
    plainer(search)
    assert len(left(search.get(1)).reads) == 1
    answerless = replace(WHOLE, response=None, reads=(), end=None, number=2)
    search = search_of(answerless, judge=having())
    plainer(search)
    fewer_fields_of_heads(search)
    assert search.exchanges == (answerless,)


def test_fields_of_heads_go_but_for_those_that_say_how_to_read() -> None:
    headers = (
        (b"Content-Type", b"text/event-stream"),
        (b"x-request-id", b"1"),
        (b"Needed", b"1"),
        (b"date", b"now"),
    )
    exchange = replace(headed(WHOLE, headers), trailers=((b"a", b"b"),))

    def holds(found: tuple[Exchange, ...]) -> bool:
        response = found[0].response
        return response is not None and (b"Needed", b"1") in response.headers

    search = search_of(exchange, judge=Asked(holds))
    fewer_fields_of_heads(search)
    found = left(search.get(1))
    assert found.response is not None
    assert found.response.headers == (headers[0], headers[2])
    assert found.trailers == ()


def test_an_exchange_that_has_gone_meanwhile_is_passed_over() -> None:
    other = replace(WHOLE, number=2, notes=(Note(t_ns=0, text="x"),))
    noted = replace(WHOLE, notes=(Note(t_ns=0, text="x"),), trailers=((b"a", b"b"),))
    search = search_of(noted, other, judge=Asked(lambda _: True))
    search._judge = lambda found: found[:1]
    plainer(search)
    assert search.numbers == (1,)
    search = search_of(noted, other, judge=Asked(lambda _: True))
    search._judge = lambda found: found[:1]
    fewer_fields_of_heads(search)
    assert search.numbers == (1,)


def test_texts_lose_what_can_go() -> None:
    event = choice({"content": "a long text with \u00e9 and a needle in it"})
    search = search_of(streamed(event, done=False), judge=having(b"needle"))
    shorter_texts(search)
    assert said(search) == [choice({"content": "needle"})]


def test_an_escape_goes_as_a_whole() -> None:
    exchange = recorded(b'data: {"t":"\\u00e9 \\" \\n 12"}\n\n')
    search = search_of(exchange, judge=having(b"2", b"\\n"))
    shorter_texts(search)
    assert bodies(search.exchanges) == b'data: {"t":"\\n2"}\n\n'


def test_a_word_that_is_needed_becomes_a_letter() -> None:
    events = [{"id": "chatcmpl-123", "a": "chatcmpl-123"}, {"id": "chatcmpl-123"}]

    def holds(found: Exchanges) -> bool:
        values = [json.loads(line[6:]) for line in bodies(found).split(b"\n\n") if line]
        return len({value["id"] for value in values}) == 1 and bool(values[0]["id"])

    search = search_of(streamed(*events, done=False), judge=(judge := Asked(holds)))
    shorter_texts(search)
    assert said(search) == [{"id": "c", "a": "c"}, {"id": "c"}]
    assert len(judge.known) == 2


def test_words_of_the_protocol_stay_whole() -> None:
    event = {"type": "text_delta", "object": "x y", "name": "get"}
    search = search_of(streamed(event, done=False), judge=(judge := Asked(lambda _: False)))
    shorter_texts(search)
    assert said(search) == [event]
    assert judge.known == {}


def test_json_in_a_text_stays_json() -> None:
    arguments = json.dumps({"city": "Lisbon in \u00e9t\u00e9", "days": [1, 2, 3], "x": {"y": "z"}})
    events = [calls(entry(0, arguments=arguments)), {"done": {"arguments": arguments}}]

    def holds(found: Exchanges) -> bool:
        texts = [json.loads(line[6:]) for line in bodies(found).split(b"\n\n") if line]
        first = texts[0]["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"]
        if not first:
            return False
        value = json.loads(first)
        return (
            texts[1]["done"]["arguments"] == first
            and "city" in value
            and 2 in value.get("days", ())
        )

    search = search_of(streamed(*events, done=False), judge=Asked(holds))
    shorter_texts(search)
    assert said(search)[1] == {"done": {"arguments": '{"city": "", "days": [2]}'}}


def test_a_text_that_went_with_another_is_not_looked_at() -> None:
    events = [{"a": "abcdef", "b": "needle"}, {"a": "abcde"}]
    keep = replace(streamed({"keep": 1}), number=2)
    search = search_of(streamed(*events, done=False), keep, judge=Asked(lambda _: True))
    search._judge = lambda found: found[1:]
    shorter_texts(search)
    shorter_data(search)
    assert search.numbers == (2,)


def test_data_that_is_not_json_is_shortened() -> None:
    exchange = recorded(b"data: plain text 42\n\ndata: {broken\n\ndata: [DONE]\n\ndata: 1\n\n")
    search = search_of(exchange, judge=having(b"42", b"bro"))
    shorter_data(search)
    assert said(search) == [42, "bro", "[DONE]", 1]


BODY_PASSES = [each for each in (*COARSE, *FINE) if each.name not in ("exchanges", "headers")]


@pytest.mark.parametrize("each", BODY_PASSES, ids=lambda each: each.name)
def test_a_body_that_cannot_be_rewritten_is_skipped(each: ShrinkPass) -> None:
    judge = Asked(lambda _: False)
    each.run(search_of(replace(streamed(choice({})), reads=()), judge=judge))
    assert judge.known == {}


def test_a_block_goes_in_one_run() -> None:
    first = [calls(entry(0, arguments=str(at))) for at in range(5)]
    second = [calls(entry(1, arguments=f"needle{at}")) for at in range(5)]
    mixed = [each for pair in zip(first, second, strict=True) for each in pair]
    judge = having(*(f"needle{at}".encode() for at in range(5)), b"[DONE]")
    search = search_of(streamed(*mixed), judge=judge)
    fewer_kinds(search)
    assert said(search) == [*second, "[DONE]"]
    assert len(judge.known) <= 5


def test_single_events_go() -> None:
    words = [choice({"content": f"word{at}"}) for at in range(50)]
    search = search_of(streamed(*words), judge=having(b"word7", b"word31"))
    fewer_events(search)
    assert said(search) == [words[7], words[31]]


@pytest.mark.slow
def test_where_nearly_all_events_are_needed_it_is_given_up_at_first() -> None:
    words = [choice({"content": f"word{at}"}) for at in range(130)]
    judge = Asked(lambda found: bodies(found).count(b"data") >= 125)
    search = search_of(streamed(*words, done=False), judge=judge)
    fewer_events(search)
    assert len(search.exchanges[0].reads) == 125
    given_up = len(judge.known)
    assert given_up < 115
    fewer_neighbours(search)  # there are too many
    assert len(judge.known) == given_up
    fewer_single_events(search)
    assert len(judge.known) > 125


def test_neighbours_that_need_each_other_go_together() -> None:
    begin, end = {"begin": 1}, {"end": 1}

    def holds(found: Exchanges) -> bool:
        body = bodies(found)
        return b"needle" in body and (b"begin" in body) == (b"end" in body)

    search = search_of(streamed({"needle": 1}, begin, end, done=False), judge=Asked(holds))
    fewer_events(search)
    assert said(search) == [{"needle": 1}, begin, end]
    fewer_neighbours(search)
    assert said(search) == [{"needle": 1}]


def test_pieces_of_a_text_become_one() -> None:
    pieces = [choice({"content": piece}) for piece in ("a", "b", "b", "\u00e9")]
    search = search_of(streamed(*pieces, FINISH), judge=having(b"abb"))
    join_pieces(search)
    assert said(search) == [choice({"content": "abb\u00e9"}), FINISH, "[DONE]"]


def test_as_many_pieces_are_put_together_as_can_be() -> None:
    pieces = [choice({"content": piece}) for piece in ("a", "b", "c", "d")]
    search = search_of(
        streamed(*pieces, done=False), judge=Asked(lambda found: b"abc" not in bodies(found))
    )
    join_pieces(search)
    assert said(search) == [choice({"content": "ab"}), choice({"content": "cd"})]


def test_what_differs_in_more_than_a_text_is_not_put_together() -> None:
    events = [
        {"a": "x", "b": "y"},
        {"a": "z", "b": "w"},
        {"a": "z", "c": "w"},
        {"index": "a"},
        {"index": "b"},
        {"n": 1},
        {"n": 2},
        "text",
        {"t": "a", "u": "b"},
        {"t": "c", "u": "b"},
        {"t": "c", "u": "d"},
    ]
    judge = Asked(lambda _: False)
    search = search_of(streamed(*events, done=False), judge=judge)
    join_pieces(search)
    assert len(judge.known) == 2  # the last three, two by two


def test_equal_pieces_alone_are_left() -> None:
    judge = Asked(lambda _: False)
    join_pieces(search_of(streamed({"a": "x"}, {"a": "x"}, done=False), judge=judge))
    assert judge.known == {}


def test_an_event_is_described_by_its_type_its_form_and_what_it_belongs_to() -> None:
    body = EditableBody.of(
        recorded(b'event: x\ndata: {"index":1,"delta":{"text":"a"}}\n\ndata: 1\n\n')
    )
    assert body is not None
    assert labels(body, 0) == {("type", "x"), ("form", "delta/text", "index"), ("index", "1")}
    assert labels(body, 1) == {("type", "message")}


def test_leaves_are_what_holds_nothing_more() -> None:
    assert list(leaves({"a": [1, {"b": None}], "c": {}})) == [
        (("a", 0), 1),
        (("a", 1, "b"), None),
    ]


def test_an_exchange_that_goes_meanwhile_ends_its_passes() -> None:
    events = [{"n": at % 3, "index": at % 2} for at in range(6)]
    keep = replace(streamed({"keep": 1}), number=2)

    def only_second(found: tuple[Exchange, ...]) -> tuple[Exchange, ...]:
        return found[1:]

    for each in (fewer_kinds, fewer_neighbours):
        search = search_of(streamed(*events, done=False), keep, judge=Asked(lambda _: True))
        search._judge = only_second
        each(search)
        assert 1 not in search.numbers


def test_members_go_from_all_events_at_once() -> None:
    events = [{"id": "x", "n": at, "deep": {"a": [1, {"keep": at}], "b": 2}} for at in range(20)]
    judge = having(*(b'"keep": %d' % at for at in range(20)))
    search = search_of(streamed(*events, done=False), judge=judge)
    fewer_columns(search)
    assert said(search) == [{"deep": {"a": [{"keep": at}]}} for at in range(20)]
    assert len(judge.known) < 20


def test_members_go_from_single_events() -> None:
    events = [{"a": 1, "b": 1}, {"a": 2, "b": 2}]
    search = search_of(streamed(*events), judge=having(b'"a": 1', b'"b": 2'))
    fewer_columns(search)
    assert said(search) == [*events, "[DONE]"]
    fewer_members(search)
    assert said(search) == [{"a": 1}, {"b": 2}, "[DONE]"]


def test_a_sound_stream_keeps_what_tells_what_an_event_is() -> None:
    event = {"type": "x", "a": {"type": "y", "b": 1}}
    for sound, left in ((True, {"type": "x", "a": {"type": "y"}}), (False, {"a": {}})):
        search = search_of(streamed(event, done=False), judge=having(b'"a"'), sound=sound)
        fewer_columns(search)
        fewer_members(search)
        assert said(search) == [left]


def test_numbers_become_zero_but_for_those_that_matter() -> None:
    event = {"created": 1700000000, "index": 1, "rate": 2.5, "on": True, "none": 0}
    search = search_of(streamed(event, done=False), judge=having(b'"index": 1'))
    smaller_numbers(search)
    assert said(search) == [{"created": 0, "index": 1, "rate": 0, "on": True, "none": 0}]


def test_blanks_go_but_not_those_in_texts() -> None:
    body = b'data: { "a" : "b  \\" c" ,\t"d": [ 1, 2 ] }\n\ndata: 1\n\ndata: {"needed": 1}\n\n'
    search = search_of(recorded(body), judge=having(b'needed": '))
    fewer_blanks(search)
    assert bodies(search.exchanges).split(b"\n\n")[::2] == [
        b'data: {"a":"b  \\" c","d":[1,2]}',
        b'data: {"needed": 1}',
    ]


def test_comments_go_and_events_stay() -> None:
    body = b": hello\n\ndata: 1\n\n: ping\n: needed\n\ndata: 2\n\n"
    search = search_of(recorded(body), judge=having(b"needed"))
    less_between(search)
    left = bodies(search.exchanges)
    assert b"ping" not in left
    assert b"hello" not in left
    assert said(search) == [1, 2]


def test_a_body_without_events_shrinks_to_its_bytes() -> None:
    search = search_of(
        recorded(b"a page\nthat says 503 twice\n503\n", "text/plain"), judge=having(b"503")
    )
    less_between(search)
    assert bodies(search.exchanges) == b"503"


def test_members_are_listed_by_depth() -> None:
    value = {"a": [1, {"b": 2}], "c": 3}
    assert list(members(value, 1)) == [("a",), ("c",)]
    assert list(members(value, 2)) == [("a", 0), ("a", 1)]
    assert list(members(value, 3)) == [("a", 1, "b")]
    assert list(members(1, 1)) == []
