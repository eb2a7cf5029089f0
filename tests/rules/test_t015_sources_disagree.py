from deltatape.model.exchange import Exchange
from helpers import messages
from helpers.exchanges import one
from helpers.responses import (
    added,
    call,
    created,
    delta,
    done,
    ended,
    findings,
    function,
    message,
    part,
    say,
)

WHOLE = '{"a":1}'


def told(*events: object) -> list[tuple[str, str]]:
    return [(one.severity, one.message) for one in findings(*events) if one.code == "T015"]


def test_arguments_that_differ_are_an_error_about_the_call() -> None:
    lost = (created(), added(function()), delta('{"a":'), done(function(WHOLE)))
    found = told(*lost, ended(function(WHOLE)))
    assert len(found) == 1
    assert found[0][0] == "error"
    assert found[0][1].startswith("call 0 (get): ")


def hint_of(deltas: list[str], end: str, item: str | None = None) -> tuple[str, str]:
    """Hint and message about a call whose sources say this."""
    last = function(end if item is None else item)
    pieces = [delta(text) for text in deltas]
    arguments = part("function_call_arguments.done", arguments=end)
    found_on = findings(created(), added(function()), *pieces, arguments, done(last), ended(last))
    (finding,) = (each for each in found_on if each.code == "T015")
    return finding.hint, finding.message


def test_the_fix_names_the_source_that_holds_arguments() -> None:
    end, _ = hint_of(['{"a":'], WHOLE)
    assert end.startswith("in the client, take the arguments from the event that ends the call")
    deltas, _ = hint_of([WHOLE], '{"a":1]')
    assert deltas.startswith("in the client, take the arguments from the deltas, joined")
    both, _ = hint_of([WHOLE], '{"a":2}')
    assert both.startswith("both are JSON that the tool can take")
    neither, _ = hint_of(['{"a":'], '{"a":1]')
    assert neither.startswith("no source has arguments")


def test_a_third_source_that_differs_is_judged_against_the_others() -> None:
    hint, _ = hint_of([WHOLE], '{"a":2}', WHOLE)
    assert hint.startswith("in the client, take the arguments from the deltas")


def test_what_became_of_the_deltas_is_told() -> None:
    _, lost = hint_of(['{"a":', "}"], WHOLE)
    assert lost.endswith("; '1' is missing before fragment 2 of 2")
    _, doubled = hint_of(['{"a"', ":", ":", "1}"], WHOLE)
    assert doubled.endswith("; fragment 3 of 4 (event 4) repeats the one before it")


def test_input_at_the_start_of_a_call_counts_only_if_the_deltas_are_broken() -> None:
    start = messages.tool_block(input={"a": 1})
    for pieces, source in ((['{"a":2}'], "the deltas, joined"), (["{"], "the event that this is")):
        frames = [messages.start(), start, *map(messages.piece, pieces), messages.stop()]
        body = messages.sse(*frames, *messages.END)
        exchange = Exchange.from_body(
            body, content_type="text/event-stream", url=messages.URL, request=messages.request()
        )
        finding = one(exchange, "T015")
        assert finding.hint.startswith(f"in the client, take the arguments from {source}")


def test_free_text_is_good_as_it_is() -> None:
    item = {"id": "ctc_1", "type": "custom_tool_call", "call_id": "c", "name": "run", "input": ""}
    said = part("custom_tool_call_input.delta", item_id="ctc_1", delta="print(1)")
    last = {**item, "input": "print(2)"}
    found_on = findings(created(), added(item), said, done(last), ended(last))
    (finding,) = (each for each in found_on if each.code == "T015")
    assert finding.hint.startswith("both are JSON that the tool can take")


def test_a_name_that_differs_leaves_the_arguments_alone() -> None:
    named = function(WHOLE)
    named["name"] = "other"
    found_on = findings(created(), *call()[:-1], done(named), ended(named))
    (finding,) = (each for each in found_on if each.code == "T015")
    assert "other" in finding.message


def test_a_text_that_differs_is_a_warning() -> None:
    events = (created(), added(message()), say("Help"), done(message("Hello")))
    assert [severity for severity, _ in told(*events, ended(message("Hello")))] == ["warning"]


def test_sources_that_agree_are_fine() -> None:
    assert told(created(), *call(), ended(function(WHOLE))) == []


def test_sources_that_stand_behind_a_call_without_deltas_are_told() -> None:
    bare = (created(), added(function()), done(function(WHOLE)), ended(function('{"a":2}')))
    assert [severity for severity, _ in told(*bare)] == ["error"]
