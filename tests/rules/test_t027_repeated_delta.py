import pytest

from deltatape.model.finding import Blame, Confidence, Finding, Severity
from helpers.chat import FINISH, calls, choice, entry, request
from helpers.exchanges import codes, found, pasted, timed

CITY = {
    "type": "object",
    "properties": {"city": {"enum": ["Gent", "Rome"]}, "text": {"type": "string"}},
}


def told(*pieces: str, padding: tuple[str, ...] = ()) -> list[Finding]:
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
    (finding,) = told('{"text":"', "Gent ", "Gent ", '"}', padding=padding)
    assert (finding.blame, finding.confidence) == (Blame.UPSTREAM, Confidence.PROVEN)
    assert finding.severity is Severity.WARNING
    assert finding.message == (
        "in the arguments of call 0 (get), fragment 3 of 4 (event 3) repeats the one before it;"
        ' both events have "obfuscation": "padding1", which a server makes anew for each'
    )
    assert finding.excluded[0].explanation == "the model wrote it so"


def test_a_repetition_without_which_the_schema_allows_the_arguments_is_likely() -> None:
    (finding,) = told('{"city":"', "Gent", "Gent", '"}')
    assert (finding.blame, finding.confidence) == (Blame.UPSTREAM, Confidence.LIKELY)
    assert finding.message.endswith("only without that are they what the tool's schema allows")


def test_a_long_piece_that_comes_twice_is_a_fact_about_nobody() -> None:
    (finding,) = told('{"text":"', "again ", "again ", '"}')
    assert (finding.blame, finding.severity) == (None, Severity.INFO)
    assert finding.message.endswith("sent twice, or meant so")


@pytest.mark.parametrize(
    "piece",
    ["    ", "00", "\\n", "-----", "null, ", "]", "1.5, ", "aaaaaaaa", "ha ", "the", "=" * 20],
)
def test_what_repeats_by_nature_is_not_worth_a_word(piece: str) -> None:
    assert told('{"text":"', piece, piece, '"}') == []


def test_a_repetition_that_another_rule_explains_is_its_business() -> None:
    cumulative = [calls(entry(0, arguments=piece)) for piece in ('{"text":', '{"text":', '"x"}')]
    opened = calls(entry(0, "c1", name="get"))
    assert codes(pasted(opened, *cumulative, FINISH, request=request(get=CITY))) == ["T014"]
    broken = [calls(entry(0, arguments=piece)) for piece in ('{"', '{"', 'text":"x"}')]
    assert codes(pasted(opened, *broken, FINISH, request=request(get=CITY))) == ["T002"]
    cut = pasted(opened, *broken[:2], choice({}, "length"), request=request(get=CITY))
    assert not found(cut, "T027")


def test_a_call_without_twins_is_fine() -> None:
    assert told('{"text":"', "a", "b", "a", '"}') == []
    assert told('{"text":"a"}') == []
