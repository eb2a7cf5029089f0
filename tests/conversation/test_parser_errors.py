from deltatape.conversation import read_backs, turns
from deltatape.conversation.parser_errors import printed, without_echoes
from deltatape.model.tape_summary import LogEntry, LogStream
from deltatape.rules.settings import DEFAULTS, Settings
from helpers.chat import FINISH
from helpers.exchanges import FINISH_TEXT, TEXT, USER, asks, assistant, call, digests, result

NS = 1_000_000_000
LINE = "Unexpected end of JSON input"
ONE = [*call(), FINISH]
RIGHT = assistant(("c1", "get", '{"a":1}'))


def entry(at_s: float, line: str = LINE) -> LogEntry:
    return LogEntry(t_ns=round(at_s * NS), stream=LogStream.STDOUT, line=line.encode())


def test_a_printed_error_belongs_to_the_latest_reply_with_calls() -> None:
    tape = digests((asks(USER), ONE), (asks(USER, USER), ONE), (asks(USER), [TEXT, FINISH_TEXT]))
    found = printed(tape, [entry(1.0), entry(2.0), entry(11.0), entry(21.0)], DEFAULTS)
    assert set(found) == {id(tape[0]), id(tape[1])}
    assert found[id(tape[0])].t_ns == NS
    assert found[id(tape[1])].t_ns == 11 * NS


def test_how_long_a_reply_may_be_complained_of_is_a_setting() -> None:
    tape = digests((asks(USER), ONE))
    assert not printed(tape, [entry(12.0)], DEFAULTS)
    assert printed(tape, [entry(12.0)], Settings(app_error_s=20.0))


def test_without_any_calls_nothing_that_was_printed_is_read() -> None:
    def unread() -> LogEntry:
        raise AssertionError

    tape = digests((asks(USER), [TEXT, FINISH_TEXT]))
    assert not printed(tape, (unread() for _ in range(1)), DEFAULTS)


def test_what_a_request_complains_of_is_not_told_again_from_the_log() -> None:
    tape = digests(
        (asks(USER), ONE),
        (asks(USER, RIGHT, result("c1", LINE)), [*call("put", index=3), FINISH]),
    )
    links = read_backs(tape)
    both = turns(tape, links, [entry(1.0), entry(11.0)])
    assert [[each.logged for each in turn.complaints] for turn in both] == [[], [False, True]]
    assert list(without_echoes(both)) == list(both)
