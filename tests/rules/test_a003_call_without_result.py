from dataclasses import replace

from deltatape.model.exchange import EndReason
from deltatape.model.finding import Blame, Confidence, Severity
from helpers.app import available, call, done, output, result, text, told, ui
from helpers.exchanges import found, one, timed


def test_a_stream_that_dies_with_its_call_is_an_error() -> None:
    finding = one(told(call("put"), result("put"), text("a"), call()), "A003")
    assert finding.message == "the result of call 1 (get) never came"
    assert (finding.severity, finding.blame, finding.event) == (Severity.ERROR, Blame.APP, 3)
    assert finding.confidence is Confidence.LIKELY


def test_a_body_that_ends_with_its_only_call_may_leave_it_to_the_page() -> None:
    finding = one(told(text("a"), call()), "A003")
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.POSSIBLE)


def test_a_call_that_is_left_beside_others_of_its_tool_with_results_is_an_error() -> None:
    finding = one(told(call(), result(), call(), done()), "A003")
    assert finding.message == "the result of call 1 (get) never came"
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.LIKELY)
    assert (
        finding.excluded[0].because == "another call of the same tool has its result in this stream"
    )


def test_a_tool_without_any_result_may_be_one_that_the_page_runs() -> None:
    finding = one(told(call(), call("put"), result(), done()), "A003")
    assert finding.message == "the result of call 1 (put) never came"
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.POSSIBLE)


def test_a_stream_in_good_order_without_any_result_is_a_warning() -> None:
    assert one(told(call(), done()), "A003").severity is Severity.WARNING


def test_results_are_paired_by_id_else_by_name_else_in_order() -> None:
    by_id = (call(id="c1"), call(id="c2"), result(id="c2"), result(id="c1"), done())
    assert not found(told(*by_id), "A003")
    by_name = (call("get"), call("put"), result("put"), result("get"), done())
    assert not found(told(*by_name), "A003")
    assert not found(told(call("get"), call("put"), result(None), result(None), done()), "A003")
    assert not found(told(call(None), result("get"), done()), "A003")
    twice = (call(), call(), result(), result(), done())
    assert not found(told(*twice), "A003")


def test_a_result_for_another_id_or_before_its_call_is_none_and_is_named() -> None:
    finding = one(told(call(id="c1"), result(id="x9"), done()), "A003")
    assert finding.message.endswith("a result came for 'x9', which is none of the calls")
    assert "a result came for 'get'" in one(told(result(), call(), done()), "A003").message
    assert one(told(result(None), call(), done()), "A003").message.endswith("never came")


def test_an_error_or_a_cut_tells_enough() -> None:
    assert not found(told(call(), {"type": "error", "content": "no"}), "A003")
    cut = timed((0.1, text("a")), (0.2, call()))
    assert cut.end
    assert one(cut, "A003")
    reset = replace(cut.end, reason=EndReason.UPSTREAM_RESET)
    assert not found(replace(cut, end=reset), "A003")


def test_tools_of_the_page_have_no_results() -> None:
    assert not found(ui(available(), finish="tool-calls"), "A003")
    assert not found(ui(available(), finish=None), "A003")
    assert one(ui(available(), finish="stop"), "A003").severity is Severity.WARNING
    assert not found(ui(available(), output(), finish="stop"), "A003")


def test_a_tool_whose_results_are_never_told_is_possible_only_by_a_specification_too() -> None:
    silent = one(ui(available()), "A003")
    assert (silent.severity, silent.confidence) == (Severity.WARNING, Confidence.POSSIBLE)
    other = one(ui(available(), output(), available("c2", "put")), "A003")
    assert (other.severity, other.confidence) == (Severity.WARNING, Confidence.POSSIBLE)
    same = one(ui(available(), output(), available("c2")), "A003")
    assert (same.severity, same.confidence) == (Severity.ERROR, Confidence.LIKELY)
