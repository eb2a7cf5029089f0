import random

import pytest

from deltatape.model.reply import Fragment
from deltatape.model.request_summary import ToolSpec
from deltatape.model.rule_settings import DEFAULTS
from deltatape.model.stream import Event
from deltatape.rules._fragment_analysis import (
    FragmentDamage,
    FragmentTrace,
    difference,
    fits,
    gap_of,
    goes_on,
    has_twins,
    trace_of,
)
from helpers.contexts import context_of
from helpers.exchanges import TEXT, pasted

CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "unit": {"enum": ["C", "F"]}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOL = ToolSpec(name="get", parameters=CITY)
WHOLE = ['{"', "city", '":"', "Ge", "nt", '","', "unit", '":"', "C", '"}']


def events(*datas: str) -> list[Event]:
    """Events with these data."""
    return [
        Event(
            number=number,
            type="message",
            data=data,
            id="",
            retry=None,
            start=0,
            end=0,
            t_ns=0,
            line=None,
        )
        for number, data in enumerate(datas)
    ]


def fragments(*texts: str, datas: list[str] | None = None) -> list[Fragment]:
    """Fragments, each in an event of its own."""
    carriers = events(*(datas or texts))
    return [Fragment(text, carrier) for text, carrier in zip(texts, carriers, strict=True)]


def trace(
    *texts: str, datas: list[str] | None = None, tool: ToolSpec = TOOL
) -> FragmentTrace | None:
    """What is found in these fragments."""
    pieces = fragments(*texts, datas=datas)
    return trace_of(pieces, [piece.carrier for piece in pieces], tool, DEFAULTS)


def numbered(*numbers: int) -> list[str]:
    """Data of events that are counted."""
    return [f'{{"sequence_number":{number}}}' for number in numbers]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_run_of_fragments_that_comes_twice_is_found(size: int) -> None:
    found = trace(*WHOLE[:size], *WHOLE)
    assert found is not None
    assert (found.damage, found.start, found.end, found.fits) == (
        FragmentDamage.DOUBLED,
        size,
        2 * size,
        True,
    )


def test_a_repair_that_the_schema_refuses_is_none() -> None:
    refusing = ToolSpec(name="get", parameters={**CITY, "required": ["country"]})
    assert trace(*WHOLE[:1], *WHOLE, tool=refusing) is None
    known = trace(*WHOLE[:1], *WHOLE, tool=ToolSpec(name="get", parameters=None))
    assert known is not None
    assert known.fits is None


def test_whether_a_schema_fits_is_unknown_where_it_cannot_be_checked() -> None:
    backtracks = {"type": "object", "properties": {"a": {"pattern": "(a+)+b"}}}
    assert fits('{"a":"b"}', ToolSpec(name="get", parameters=backtracks), DEFAULTS) is None
    assert fits("{}", None, DEFAULTS) is None


def test_an_event_that_comes_again_with_its_number_is_proven() -> None:
    datas = numbered(0, 0, *range(1, len(WHOLE)))
    found = trace(WHOLE[0], *WHOLE, datas=datas)
    assert found is not None
    assert found.proof == (
        'both events have the same "sequence_number":0, which a server generates anew for each'
    )
    claim = found.claim(context_of(pasted(TEXT)), "m")
    (model, app) = claim.excluded
    assert model.because == found.proof
    assert app.explanation == "the app or its SDK did it"


def test_padding_of_its_own_proves_it_too_and_padding_that_is_everywhere_the_same_does_not() -> (
    None
):
    own = [f'{{"obfuscation":"padding{at}"}}' for at in range(len(WHOLE))]
    found = trace(WHOLE[0], *WHOLE, datas=[own[0], *own])
    assert found is not None
    assert found.proof.startswith('both events have the same "obfuscation":"padding0"')
    same = trace(WHOLE[0], *WHOLE, datas=['{"obfuscation":"padding"}'] * (len(WHOLE) + 1))
    assert same is not None
    assert same.proof == ""


def test_numbers_that_jump_within_the_fragments_prove_a_gap() -> None:
    found = trace(*WHOLE[:2], *WHOLE[3:], datas=numbered(0, 1, 3, 4, 5, 6, 7, 8, 9))
    assert found is not None
    assert (found.damage, found.start, found.end) == (FragmentDamage.LOST, 2, 3)
    assert found.proof == "the sequence number 3 comes 1 event after 1"
    assert found.description == (
        "a part is missing between fragments 2 and 3 (events 1 and 2);"
        " the sequence number 3 comes 1 event after 1"
    )


def test_numbers_that_are_always_the_same_prove_nothing() -> None:
    assert trace('{"a"', "1}", datas=numbered(0, 0)) is None


def test_numbers_out_of_order_prove_a_swap() -> None:
    datas = numbered(0, 2, 1, *range(3, len(WHOLE)))
    found = trace(WHOLE[0], WHOLE[2], WHOLE[1], *WHOLE[3:], datas=datas)
    assert found is not None
    assert found.damage is FragmentDamage.SWAPPED
    assert found.proof == "the sequence number 1 comes 1 event after 2"


def test_nothing_and_far_too_much_have_no_trace() -> None:
    assert trace() is None
    assert trace("[" * 300_000) is None


@pytest.mark.parametrize(
    "rest", ['nt"}', '":"Gent"}', "}", "]}", "ue}", "2,3]}", 'n"]}', '{"b":1}]}', '\\"x"}']
)
def test_what_could_be_the_end_of_an_object_goes_on(rest: str) -> None:
    assert goes_on(rest)


@pytest.mark.parametrize(
    "rest", ["True}", "=>1}", "", "]", '"b', "{", "{}", "x", " " * 30_000 + "}"]
)
def test_what_could_be_the_end_of_no_object_does_not(rest: str) -> None:
    assert not goes_on(rest)


def test_a_lost_beginning_is_reported_as_such() -> None:
    pieces = fragments('code":', '"x"}')
    found = gap_of(pieces)
    assert found is not None
    assert (
        found.description == "the beginning is missing: the arguments start in the middle of JSON"
    )


def test_a_gap_that_may_be_in_several_places_is_recognised_by_the_last() -> None:
    pieces = fragments('{"a":"', "1", "2", '3,"c":2}')
    found = gap_of(pieces)
    assert found is not None
    assert "missing somewhere before fragment 4 (event 3)" in found.description


def test_a_text_that_only_ends_too_early_has_no_gap() -> None:
    assert gap_of(fragments('{"a":', "[")) is None


def test_a_run_is_reported_with_all_its_events() -> None:
    texts = [*WHOLE[:3], *WHOLE]
    found = trace(*texts)
    assert found is not None
    assert found.description == (
        "fragments 4 to 6 of 13 (events 3 to 5) repeat the 3 fragments before them;"
        " without them the arguments are JSON that the tool's schema allows"
    )


def test_a_whole_source_tells_what_is_missing_or_doubled_in_the_pieces() -> None:
    whole = '{"a":"xyz"}'
    assert (
        difference(fragments('{"a":', '"x', 'z"}'), whole)
        == "'y' is missing before fragment 3 of 3"
    )
    assert difference(fragments('{"a":', '"xyz'), whole) == "'\"}' is missing at the end of 2"
    doubled = fragments('{"a":', '"x', "y", "y", 'z"}')
    assert difference(doubled, whole) == "fragment 4 of 5 (event 3) repeats the fragment before it"
    assert difference(fragments("other"), whole) == ""
    twins = fragments('{"a":', '"', '"', 'z"}')
    assert difference(twins, whole) == ""


def test_twins_are_seen_at_a_glance() -> None:
    assert has_twins(["a", "b", "b"])
    assert not has_twins(["a", "b", "a"])
    assert not has_twins([])


def test_every_doubled_or_exchanged_fragment_that_breaks_the_text_is_found() -> None:
    chance = random.Random(7)
    for _ in range(200):
        place = chance.randrange(len(WHOLE) - 1)
        doubled = [*WHOLE[: place + 1], *WHOLE[place:]]
        exchanged = [*WHOLE]
        exchanged[place], exchanged[place + 1] = exchanged[place + 1], exchanged[place]
        for texts in (doubled, exchanged):
            if fits_whole("".join(texts)):
                continue
            assert trace(*texts) is not None, texts


def fits_whole(text: str) -> bool:
    """Whether a text needs no repair."""
    try:
        return fits(text, TOOL, DEFAULTS) is not None
    except ValueError:
        return False
