from collections.abc import Sequence
from dataclasses import replace

from deltatape.conversation import check_conversation
from deltatape.model.digest import Digest
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from helpers.chat import FINISH
from helpers.exchanges import FINISH_TEXT, TEXT, USER, asks, assistant, call, digests, result

SAID = [TEXT, FINISH_TEXT]
STEP = (USER, assistant(("c1", "get", '{"a":1}')), result("c1"))
SYSTEM: dict[str, object] = {"role": "system", "content": "Be kind."}


def tools(*names: str) -> list[dict[str, object]]:
    return [{"type": "function", "function": {"name": name}} for name in names]


def withdrawn(tape: list[Digest]) -> list[Finding]:
    return [each for each in check_conversation(tape) if each.code == "C022"]


def pair(
    *left: str, first: tuple[str, ...] = ("get", "put"), said: Sequence[object] = SAID
) -> list[Digest]:
    return digests(
        (asks(USER, tools=tools(*first)), [*call(), FINISH]),
        (asks(*STEP, tools=tools(*left)), said),
    )


def test_the_called_tool_is_gone_and_others_are_there() -> None:
    (finding,) = withdrawn(pair("put"))
    assert finding.message == (
        "the request brings a result of get, which #1 offered, and offers only put"
    )
    assert (finding.exchange, finding.severity) == (2, Severity.WARNING)
    assert (finding.blame, finding.confidence) == (Blame.APP, Confidence.POSSIBLE)


def test_where_all_tools_are_others_it_is_a_remark() -> None:
    (finding,) = withdrawn(pair("set"))
    assert finding.severity is Severity.INFO


def test_a_model_that_calls_it_all_the_same() -> None:
    (finding,) = withdrawn(pair("a", "b", "c", "d", said=[*call(), FINISH]))
    assert finding.message.endswith(
        "offers only a, b, c and 1 more; the model calls it again all the same"
    )
    assert finding.severity is Severity.WARNING


def test_a_provider_that_refuses_it() -> None:
    first, second = pair("put")
    refused = replace(second, status=400, error="tool 'get' is not defined")
    (finding,) = withdrawn([first, refused])
    assert finding.message.endswith("put; it was refused (400)")
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.LIKELY)


def test_tools_that_are_there_or_never_were() -> None:
    assert not withdrawn(pair("get", "put"))
    assert not withdrawn(pair())
    assert not withdrawn(pair("put", first=("put",)))
    first, second = pair("put")
    assert not withdrawn([first, replace(second, tools_elsewhere=True)])
    assert not withdrawn(digests((asks(*STEP, tools=tools("put")), SAID)))


def test_a_call_without_its_result_may_be_over() -> None:
    first = (asks(USER, tools=tools("get", "put")), [*call(), FINISH])
    more: dict[str, object] = {"role": "user", "content": "Stop that."}
    assert not withdrawn(digests(first, (asks(*STEP[:2], more, tools=tools("put")), SAID)))


def test_the_same_id_may_be_another_call() -> None:
    one = (asks(USER, tools=tools("get", "put")), [*call(), FINISH])
    other = (asks(USER, tools=tools("put", "set")), [*call("put"), FINISH])
    step = (USER, assistant(("c1", "put", '{"a":1}')), result("c1"))
    later = (asks(*step, tools=tools("put")), SAID)
    assert not withdrawn(digests(one, later))
    assert not withdrawn(digests(other, one, later))


def test_another_agent_and_a_search_for_tools() -> None:
    first = (asks(SYSTEM, USER, tools=tools("get")), [*call(), FINISH])
    assert not withdrawn(digests(first, (asks(*STEP, tools=tools("put")), SAID)))
    assert not withdrawn(pair("tool_search", "put"))
    over = (asks(USER, tools=tools("transfer", "put")), [*call("transfer"), FINISH])
    step = (USER, assistant(("c1", "transfer", '{"a":1}')), result("c1"))
    assert not withdrawn(digests(over, (asks(*step, tools=tools("put")), SAID)))
