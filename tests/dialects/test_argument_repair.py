import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltatape.dialects._argument_repair import mend
from deltatape.wire.json_scan import ScanState, scan

PLAIN = [
    [],
    ['{"a":1}'],
    ['{"a":', "1}"],
    ["{}"],
    ['{"a":1}', " "],
    ['"{}"'],
    ["{", "}"],
    ['{"cmd":"ll ', 'll -l"}'],
    ['["a","b",', '"a","b"]'],
]


@pytest.mark.parametrize("pieces", PLAIN)
def test_pieces_that_make_one_value_are_never_mended(pieces: list[str]) -> None:
    assert mend(pieces)[:2] == ("".join(pieces), ())


@pytest.mark.parametrize(
    ("pieces", "text", "codes"),
    [
        (["{}", '{"a":', "1}"], '{"a":1}', ["T017"]),
        (["{}", "{}", '{"a":1}'], '{"a":1}', ["T017"]),
        (["{ }", " ", '{"a":1}'], '{"a":1}', ["T017"]),
        (["{}", "{}"], "{}", ["T017"]),
        (["{}", '{"a":'], '{"a":', ["T017"]),
        (['{"a":1}', '{"a":1}'], '{"a":1}', ["T014"]),
        (['{"a":', "1}", '{"a": 1}', '{"a":1}'], '{"a":1}', ["T014"]),
        (['{"a":1}{"a":1}'], '{"a":1}', ["T014"]),
        (['"{}"', '"{}"'], '"{}"', ["T014"]),
        (['{"a":', '{"a":1}'], '{"a":1}', ["T014"]),
        (['{"', '{"a', '{"a":1}'], '{"a":1}', ["T014"]),
        (["{", '{"a', '{"a', '{"a":1}'], '{"a":1}', ["T014"]),
        (['{"a"', ":1", '{"a":1', "}"], '{"a":1}', ["T014"]),
        (["{}", '{"a":1}', '{"a":1}'], '{"a":1}', ["T017", "T014"]),
        (["{}", '{"a":', '{"a":1}'], '{"a":1}', ["T017", "T014"]),
    ],
)
def test_what_gateways_add_is_taken_away(pieces: list[str], text: str, codes: list[str]) -> None:
    mended = mend(pieces)
    assert (mended.text, [code for code, _ in mended.repairs]) == (text, codes)


@pytest.mark.parametrize(
    "pieces",
    [
        ['{"a":'],
        ['{"a":1}', '{"a":2}'],
        ['{"a":1}', "}"],
        ["{", '{"a":1}'],
        ['{"', '{"a":1}'],
        ["{}", "}"],
        ["{}", "x"],
        [" ", '{"a":'],
        ['{"a":1', '{"a":1'],
        ['{"a":1', '{"a":1', '{"a":1,'],
        ["1", "x"],
    ],
)
def test_anything_else_stays_as_the_wire_said_it(pieces: list[str]) -> None:
    assert mend(pieces)[:2] == ("".join(pieces), ())


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(["{}", '{"a":', "1}", '{"a":1}', " ", "{", "}"]), max_size=6))
def test_mending_yields_one_value_or_what_is_left_of_the_wire(pieces: list[str]) -> None:
    mended = mend(pieces)
    whole = scan(mended.text).verdict is ScanState.COMPLETE
    repaired = [code for code, _ in mended.repairs]
    assert whole or "T014" not in repaired
    assert repaired or mended.text == "".join(pieces)
    assert mended.text in "".join(pieces) or "T014" in repaired


def test_a_whole_object_is_told_as_such() -> None:
    assert mend(['{"a":', "1}"]).is_object
    assert not mend(["[1]"]).is_object
    assert not mend(['{"a":']).is_object
