from deltatape.model.finding import Severity
from deltatape.rules._ending import unended
from deltatape.rules.s001_no_terminal_event import NoTerminalEvent
from helpers.chat import sse
from helpers.contexts import context_of
from helpers.exchanges import FINISH_TEXT, TEXT, codes, from_bytes, pasted, timed


def test_an_end_without_the_terminal_signal_is_a_finding_of_the_rule_that_asks() -> None:
    (finding,) = unended(NoTerminalEvent(), context_of(timed((0.1, TEXT))), "a hint")
    assert (finding.code, finding.hint, finding.severity) == ("S001", "a hint", Severity.ERROR)


def test_a_pasted_stream_whose_last_event_is_not_whole_may_have_lost_the_signal() -> None:
    torn = from_bytes(sse(TEXT, done=False) + b'data: {"choices":[]}')
    (finding,) = unended(NoTerminalEvent(), context_of(torn), "a hint")
    assert finding.severity is Severity.WARNING
    (finding,) = unended(NoTerminalEvent(), context_of(pasted(TEXT, done=False)), "a hint")
    assert finding.severity is Severity.ERROR


def test_a_body_that_could_not_be_decoded_may_hold_the_signal() -> None:
    coded = ((b"Content-Type", b"text/event-stream"), (b"Content-Encoding", b"gzip"))
    exchange = timed((0.1, b"no gzip"), headers=coded)
    assert codes(exchange) == ["W009"]


def test_an_end_as_it_should_be_is_none() -> None:
    assert not list(unended(NoTerminalEvent(), context_of(pasted(TEXT, FINISH_TEXT)), "a hint"))
