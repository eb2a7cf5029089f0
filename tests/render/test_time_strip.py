"""The time axis of an exchange in a terminal."""

from deltatape.diagnose.check import check_analysis
from deltatape.diagnose.rebuild import analyse
from deltatape.model.exchange import Exchange
from deltatape.model.explanation import AxisPhase, DeadZone, TimeAxis
from deltatape.render.lines import plain
from deltatape.render.time_strip import strip_lines
from deltatape.why.timeline import time_axis
from helpers.exchanges import FINISH_TEXT, TEXT, pasted, timed
from helpers.incidents import STALL
from helpers.incidents import exchange as incident

S = 1_000_000_000


def of(exchange: Exchange, width: int = 60) -> list[str]:
    analysis = analyse(exchange)
    axis = time_axis(analysis, {each.code for each in check_analysis(analysis)})
    reads = [read.t_ns for read in exchange.reads] + [piece.t_ns for piece in exchange.frames]
    events = [each.t_ns for each in analysis.stream.events]
    return plain(strip_lines(axis, reads, events, width)).splitlines()


def drawn(axis: TimeAxis, *times: float, width: int = 49) -> list[str]:
    marks = [round(at * S) for at in times]
    return plain(strip_lines(axis, marks, [], width)).splitlines()


def test_a_stall_is_to_scale_and_has_its_finding() -> None:
    lines = of(incident(STALL, 1))
    assert [each.split()[0] for each in lines] == [
        "seconds",
        "phase",
        "silence",
        "reads",
        "events",
    ]
    assert " 12.0 s, D001 " in lines[2]
    assert lines[2].count("=") > 30
    assert lines[3] == lines[4].replace("events", "reads ")
    assert all(len(each) <= 60 for each in lines)
    assert all(len(each) <= 40 for each in of(incident(STALL, 1), 40))


def test_marks_stand_in_the_columns_of_their_times() -> None:
    axis = TimeAxis(request_ns=0, first_event_ns=0, end_ns=4 * S)
    assert drawn(axis, 0, 1, 1.01, 2, 4) == [
        "seconds  0                   2",
        "reads    |         #         |                  |",
    ]


def test_what_happened_before_the_request_or_after_the_end_is_at_the_edge() -> None:
    axis = TimeAxis(request_ns=2 * S, first_event_ns=2 * S, end_ns=3 * S)
    (_, marks) = drawn(axis, 1, 6)
    assert marks == "reads    |" + " " * 38 + "|"


def test_phases_have_their_names_where_there_is_room() -> None:
    spans = ((0, 1, "sending"), (1, 3, "before-first"), (3, 3.6, "in-text"), (3.6, 3.61, "after"))
    phases = tuple(AxisPhase(name, round(a * S), round(b * S)) for a, b, name in spans)
    axis = TimeAxis(request_ns=0, first_event_ns=0, end_ns=4 * S, phases=phases)
    assert drawn(axis, 4)[1] == "phase    |sending--|before-first-------|-----"


def test_short_silences_have_no_words_and_overlapping_ones_stand_in_a_row() -> None:
    zones = (
        DeadZone("in-text", S, round(1.2 * S), 1, None),
        DeadZone("in-text", S, round(3.5 * S), 1, None),
    )
    axis = TimeAxis(request_ns=0, first_event_ns=0, end_ns=4 * S, dead_zones=zones)
    silence = drawn(axis, 4)[1]
    assert silence.startswith("silence            ==========")
    assert " 2.5 s " in silence


def test_without_times_or_any_duration_nothing_is_drawn() -> None:
    assert of(pasted(TEXT, FINISH_TEXT)) == []
    assert drawn(TimeAxis(request_ns=5), 5) == []
    assert drawn(TimeAxis(request_ns=5, first_event_ns=5, end_ns=5), 0) == []


def test_an_exchange_in_progress_is_drawn_as_far_as_it_came() -> None:
    lines = of(timed((0.5, TEXT), (1.0, TEXT), end_s=None), 40)
    assert lines[-1].startswith("events")
    assert lines[-1].rstrip()[-1] == "|"


def test_the_scale_has_round_times_of_any_length() -> None:
    for length_ns, second in ((20_000_000, "0.01"), (700 * S, "500"), (3600 * S, "2000")):
        axis = TimeAxis(request_ns=0, first_event_ns=0, end_ns=length_ns)
        assert drawn(axis, 0)[0].split()[2] in (second, "0.005", "200", "1000")


def test_a_time_that_has_no_room_is_left_out() -> None:
    axis = TimeAxis(request_ns=0, first_event_ns=0, end_ns=405_000_000)
    assert drawn(axis, 0)[0].split() == ["seconds", "0.0", "0.2"]
