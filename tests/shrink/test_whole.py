import gzip
from dataclasses import replace

from deltatape.model.exchange import (
    BROKEN_CHUNKS,
    Delivered,
    Exchange,
    Headers,
    Note,
    ResponseHead,
)
from deltatape.shrink.whole import (
    STEP_NS,
    fewer_exchanges,
    fewer_fields_of_heads,
    plainer,
)
from helpers.chat import FINISH, choice, sse
from helpers.shrunk import Asked, having, recorded, search_of, streamed

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


def test_an_answer_becomes_plain_in_one_run() -> None:
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
        delivered=(Delivered(t_ns=0, bytes=1),),
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
