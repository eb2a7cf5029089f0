from deltatape.diagnose.check import check
from deltatape.diagnose.rebuild import analyse
from deltatape.model.exchange import Exchange
from deltatape.render.summary import exchange_line
from helpers.chat import FINISH, calls, entry
from helpers.exchanges import FINISH_TEXT, TEXT, call, from_bytes, pasted, timed


def told(exchange: Exchange) -> str:
    return exchange_line(analyse(exchange), check(exchange))


def test_a_healthy_exchange_in_one_line() -> None:
    chunks = [(1.0, each) for each in (TEXT, *call(), FINISH)]
    assert told(timed(*chunks)) == (
        "#1 POST /v1/chat/completions 200 1.0 s: 5 characters, 1 call (get), finish tool_calls;"
        " no findings"
    )


def test_the_worst_finding_is_named_and_the_others_counted() -> None:
    bad = calls(entry(0, "c1", arguments="[1]"))
    assert told(pasted(bad, FINISH, FINISH_TEXT)).endswith(
        ": 1 call (?), finish stop; error T004 missing-name and 1 more"
    )


def test_errors_and_exchanges_without_response_or_reply() -> None:
    assert ": error no such key; error S005" in told(
        from_bytes(b'{"error":"no such key"}', status=401)
    )
    assert told(timed(framing=None)).startswith(
        "#1 POST /v1/chat/completions no response 5 ms: 0 b"
    )


def test_the_line_has_no_character_that_could_act() -> None:
    line = told(pasted(*call("a\x1b[2J"), {"error": {"message": "\u202e\n"}}))
    assert line.isprintable()
