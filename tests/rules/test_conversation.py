from deltatape.conversation import check_conversation
from deltatape.model.finding import Blame, Confidence
from deltatape.rules import CONVERSATION_RULES
from helpers.chat import FINISH, choice
from helpers.exchanges import USER, asks, assistant, call, digests, result


def test_a_finding_lies_at_the_request_that_repeats_the_reply() -> None:
    (finding,) = check_conversation(
        digests(
            (asks(USER), [*call(), FINISH]),
            (asks(USER, assistant(("c1", "get", "")), result("c1")), []),
        )
    )
    assert (finding.tape, finding.exchange, finding.line) == ("x.tape", 2, 200)
    assert finding.t_ns == 10_000_000_000
    assert (finding.blame, finding.confidence) == (Blame.APP, Confidence.PROVEN)
    assert finding.message.startswith("call 0 (get, c1) of #1 ")


def test_every_rule_about_a_conversation_blames_nobody_for_a_reply_that_broke_off() -> None:
    broken = digests(
        (asks(USER), [*call(), choice({}, "length")]),
        (asks(USER, assistant(("c1x", "gett", "")), result("c1x")), []),
    )
    assert len(CONVERSATION_RULES) == 4
    assert not check_conversation(broken)
