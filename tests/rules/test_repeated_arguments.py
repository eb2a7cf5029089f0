import pytest

from deltatape.model.exchange import Exchange
from deltatape.model.finding import Blame, Confidence, Finding, Severity
from helpers import messages
from helpers.chat import FINISH, calls, choice, entry, request
from helpers.exchanges import call, codes, found, one, pasted, timed
from helpers.responses import (
    added,
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
from helpers.responses import call as function_call


def test_an_argument_text_that_grows_is_reported() -> None:
    finding = one(
        pasted(
            calls(entry(0, "c1", name="get", arguments='{"a":')),
            calls(entry(0, arguments='{"a":1}')),
            FINISH,
        ),
        "T014",
    )
    assert finding.blame is Blame.UPSTREAM
    assert "repeats" in finding.message
    assert finding.evidence


def test_a_healthy_call_is_fine() -> None:
    assert not found(pasted(*call(), FINISH), "T014")


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
    assert deltas.startswith("in the client, take the arguments from the joined")
    both, _ = hint_of([WHOLE], '{"a":2}')
    assert both.startswith("the tool accepts both, and the tape does not show which was intended")
    neither, _ = hint_of(['{"a":'], '{"a":1]')
    assert neither.startswith("neither source has arguments")


def test_a_third_source_that_differs_is_judged_against_the_others() -> None:
    hint, _ = hint_of([WHOLE], '{"a":2}', WHOLE)
    assert hint.startswith("in the client, take the arguments from the joined deltas:")


def test_what_became_of_the_deltas_is_reported() -> None:
    _, lost = hint_of(['{"a":', "}"], WHOLE)
    assert lost.endswith("; '1' is missing before fragment 2 of 2")
    _, doubled = hint_of(['{"a"', ":", ":", "1}"], WHOLE)
    assert doubled.endswith("; fragment 3 of 4 (event 4) repeats the fragment before it")


def test_input_at_the_start_of_a_call_counts_only_if_the_deltas_are_broken() -> None:
    start = messages.tool_block(input={"a": 1})
    for pieces, source in ((['{"a":2}'], "the joined deltas"), (["{"], "this event")):
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
    assert finding.hint.startswith(
        "the tool accepts both, and the tape does not show which was intended"
    )


def test_a_name_that_differs_leaves_the_arguments_alone() -> None:
    named = function(WHOLE)
    named["name"] = "other"
    found_on = findings(created(), *function_call()[:-1], done(named), ended(named))
    (finding,) = (each for each in found_on if each.code == "T015")
    assert "other" in finding.message


def test_a_text_that_differs_is_a_warning() -> None:
    events = (created(), added(message()), say("Help"), done(message("Hello")))
    assert [severity for severity, _ in told(*events, ended(message("Hello")))] == ["warning"]


def test_sources_that_agree_are_fine() -> None:
    assert told(created(), *function_call(), ended(function(WHOLE))) == []


def test_sources_that_stand_behind_a_call_without_deltas_are_reported() -> None:
    bare = (created(), added(function()), done(function(WHOLE)), ended(function('{"a":2}')))
    assert [severity for severity, _ in told(*bare)] == ["error"]


def test_an_empty_object_in_front_is_reported() -> None:
    finding = one(
        pasted(
            calls(entry(0, "c1", name="get", arguments="{}")),
            calls(entry(0, arguments='{"a":1}')),
            FINISH,
        ),
        "T017",
    )
    assert finding.blame is Blame.UPSTREAM
    assert "empty object" in finding.message
    assert finding.evidence


def test_arguments_without_such_a_prefix_are_fine() -> None:
    assert not found(pasted(*call(), FINISH), "T017")


CITY = {
    "type": "object",
    "properties": {"city": {"enum": ["Gent", "Rome"]}, "text": {"type": "string"}},
}


def doubled(*pieces: str, padding: tuple[str, ...] = ()) -> list[Finding]:
    """What is found on a call whose arguments come in `pieces`, each event with its padding."""
    chunks = [calls(entry(0, arguments=piece)) for piece in pieces]
    padded = [
        {**chunk, "obfuscation": text} for chunk, text in zip(chunks, padding, strict=False)
    ] or chunks
    reads = [calls(entry(0, "c1", name="get")), *padded, FINISH]
    times = [(0.1 * at, read) for at, read in enumerate(reads, 1)]
    return found(timed(*times, (9.0, b"data: [DONE]\n\n"), request=request(get=CITY)), "T027")


def test_an_event_that_comes_again_byte_for_byte_is_proven() -> None:
    padding = ("padding0", "padding1", "padding1", "padding2")
    (finding,) = doubled('{"text":"', "Gent ", "Gent ", '"}', padding=padding)
    assert (finding.blame, finding.confidence) == (Blame.UPSTREAM, Confidence.PROVEN)
    assert finding.severity is Severity.WARNING
    assert finding.message == (
        "in the arguments of call 0 (get), fragment 3 of 4 (event 3) repeats the"
        " fragment before it;"
        ' both events have the same "obfuscation": "padding1", which a server generates'
        " anew for each"
    )
    assert finding.excluded[0].explanation == "the model wrote it so"


def test_a_repetition_without_which_the_schema_allows_the_arguments_is_likely() -> None:
    (finding,) = doubled('{"city":"', "Gent", "Gent", '"}')
    assert (finding.blame, finding.confidence) == (Blame.UPSTREAM, Confidence.LIKELY)
    assert finding.message.endswith("only without the repetition does the tool's schema allow them")


def test_a_long_piece_that_comes_twice_is_a_fact_about_nobody() -> None:
    (finding,) = doubled('{"text":"', "again ", "again ", '"}')
    assert (finding.blame, finding.severity) == (None, Severity.INFO)
    assert finding.message.endswith("sent twice by mistake or the text repeats itself")


@pytest.mark.parametrize(
    "piece",
    ["    ", "00", "\\n", "-----", "null, ", "]", "1.5, ", "aaaaaaaa", "ha ", "the", "=" * 20],
)
def test_what_repeats_by_nature_is_not_worth_a_word(piece: str) -> None:
    assert doubled('{"text":"', piece, piece, '"}') == []


def test_a_repetition_that_another_rule_explains_is_its_business() -> None:
    cumulative = [calls(entry(0, arguments=piece)) for piece in ('{"text":', '{"text":', '"x"}')]
    opened = calls(entry(0, "c1", name="get"))
    assert codes(pasted(opened, *cumulative, FINISH, request=request(get=CITY))) == ["T014"]
    broken = [calls(entry(0, arguments=piece)) for piece in ('{"', '{"', 'text":"x"}')]
    assert codes(pasted(opened, *broken, FINISH, request=request(get=CITY))) == ["T002"]
    cut = pasted(opened, *broken[:2], choice({}, "length"), request=request(get=CITY))
    assert not found(cut, "T027")


def test_a_call_without_twins_is_fine() -> None:
    assert doubled('{"text":"', "a", "b", "a", '"}') == []
    assert doubled('{"text":"a"}') == []
