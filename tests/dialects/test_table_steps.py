from deltatape.dialects._choice import DialectPolicy
from deltatape.dialects._table import DialectTable, TableReducer, TableStep, path
from deltatape.dialects._table_steps import (
    ErrorStep,
    ExpectObject,
    FinishStep,
    NonTextStep,
    Result,
    TerminalStep,
    TextStep,
    UsageStep,
    WholeTextStep,
)
from deltatape.model.reply import Channel, Reply
from deltatape.model.request_summary import NOTHING_ASKED
from helpers.fed import codes, events, said

Json = dict[str, object]
_SHOWN: list[Json] = [{"a": {}}, {"b": {"c": 1}}, {"b": 1, "a": None}]


def reply_to(step: TableStep, *frames: Json) -> Reply:
    table = DialectTable(
        name="toy",
        terminator="t",
        policy=DialectPolicy(),
        type_keys=("type",),
        events={"x": (step,), "end": (TerminalStep(),)},
    )
    reducer = TableReducer(table, NOTHING_ASKED)
    for event in events(*({"type": "x", **frame} for frame in frames)):
        reducer.feed(event)
    return reducer.finish(cut=False)


def test_what_has_to_be_an_object_is_told_otherwise() -> None:
    step = ExpectObject(entry=path("a.b"), what="the b")
    assert codes(reply_to(step, {"a": {"b": {}}})) == []
    wrongs: list[Json] = [{}, {"a": 1}, {"a": {"b": []}}, {"a": {"b": None}}]
    for wrong in wrongs:
        assert said(reply_to(step, wrong), "S006") == ["the b is no object"]


def test_each_element_has_to_be_an_object_if_there_is_any() -> None:
    step = ExpectObject(entry=path("a"), what="an element", each=True)
    fines: list[Json] = [{}, {"a": 1}, {"a": []}, {"a": [{}]}]
    for fine in fines:
        assert codes(reply_to(step, fine)) == []
    assert said(reply_to(step, {"a": [{}, 1, None]}), "S006") == ["an element is no object"]


def test_the_first_string_is_said_in_its_channel() -> None:
    step = TextStep(channel=Channel.REASONING, text=(path("a"), path("b.c")))
    reply = reply_to(step, {"a": "1"}, {"a": 2, "b": {"c": "2"}}, {"b": 3}, {"a": "", "b": "x"})
    assert (reply.reasoning, reply.text) == ("12", "")


def test_text_after_the_terminal_event_is_kept_and_told() -> None:
    step = TextStep(channel=Channel.TEXT, text=(path("a"),))
    reply = reply_to(step, {"a": "1"}, {"type": "end"}, {"a": "2"}, {"a": "3"})
    assert (reply.text, codes(reply)) == ("123", ["S006"])


def test_texts_of_a_list_are_said_in_order() -> None:
    step = TextStep(channel=Channel.TEXT, each=path("list"), text=(path("t"),))
    assert reply_to(step, {"list": [{"t": "1"}, {"u": 0}, 7, {"t": "2"}]}, {"list": 1}).text == "12"


def test_a_whole_text_counts_only_where_nothing_was_said() -> None:
    step = WholeTextStep(text=(path("t"),))
    assert reply_to(step, {"t": "a"}, {"t": "b"}).text == "a"
    assert reply_to(step, {"t": 1}).text == ""


def test_a_whole_text_is_kept_even_if_it_is_empty() -> None:
    step = WholeTextStep(text=(path("t"), path("u")))
    assert reply_to(step, {"t": "", "u": "a"}, {"t": "b"}).recited == "a"
    assert reply_to(step, {"t": ""}, {"t": "b"}).recited == ""
    assert reply_to(step, {"t": 1}).recited is None


def test_results_are_taken_unless_they_are_preliminary() -> None:
    step = Result(id=(path("i"),), name=(path("n"),), preliminary=path("p"))
    reply = reply_to(step, {"i": "c", "n": "f"}, {"p": True}, {"p": False}, {"n": 1})
    assert [(one.call_id, one.name, one.event) for one in reply.results] == [
        ("c", "f", 0),
        (None, None, 2),
        (None, None, 3),
    ]


def test_a_reason_may_be_an_error() -> None:
    step = FinishStep(reason=path("why"), errors=frozenset({"bad"}))
    assert reply_to(step, {"why": "good"}).finish_reason_raw == "good"
    failed = reply_to(step, {"why": "bad"}, {"why": "bad"})
    assert (failed.error, codes(failed)) == ("why is 'bad'", ["S005"])
    assert said(reply_to(step, {"why": 1}, {}), "S006") == ["the finish reason is no string"]


def test_the_end_may_need_a_proof() -> None:
    assert reply_to(TerminalStep(proof=path("why")), {"why": "x"}).terminated
    assert not reply_to(TerminalStep(proof=path("why")), {}).terminated
    assert reply_to(TerminalStep(normal=False), {}).terminated


def test_an_error_has_a_message_or_is_shown_whole() -> None:
    message = (path("a"), path("b.c"))
    assert reply_to(ErrorStep(message=message), {"b": {"c": "down"}}).error == "down"
    assert reply_to(ErrorStep(message=message), {}).error == '{"type": "x"}'
    assert reply_to(ErrorStep(message=message, optional=True), {"a": 1}).error is None


def test_usage_and_model_are_told() -> None:
    step = UsageStep(usage=path("u"), model=path("m"))
    reply = reply_to(step, {"u": {"n": 1}, "m": "a"}, {"u": {"n": 2}, "m": "b"}, {"u": 3})
    assert (reply.usage, reply.model) == ({"n": 2}, "a")
    assert reply_to(UsageStep(model=path("m")), {"m": ""}).model is None
    assert reply_to(UsageStep(usage=path("u")), {"m": "a"}).model is None


def test_anything_that_stands_there_is_shown() -> None:
    step = NonTextStep(what=(path("a"), path("b.c")))
    assert [reply_to(step, frame).choices[0].media for frame in _SHOWN] == [True, True, False]
    each = NonTextStep(each=path("list"), what=(path("a"),))
    assert reply_to(each, {"list": [1, {}, {"a": 1}]}).choices[0].media
    assert not reply_to(each, {"list": [{}], "a": 1}).choices[0].media
