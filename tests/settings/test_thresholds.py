import pytest

from deltatape.errors import UsageError
from deltatape.model.rule_settings import DEFAULTS, Settings
from deltatape.settings.document import parse
from deltatape.settings.file import MappingNode, MappingValue
from deltatape.settings.thresholds import FIELDS, thresholds


def entries(text: str) -> dict[str, MappingValue]:
    table = parse(text.encode(), "f.yaml")
    assert isinstance(table, MappingNode)
    return dict(table.entries)


def test_without_any_the_defaults_hold() -> None:
    assert thresholds({}) == DEFAULTS


def test_durations_counts_and_shares() -> None:
    set_ = thresholds(entries("{stall: 2m, burst-wait: 500ms, burst-events: 7, burst-share: .5}"))
    assert set_ == Settings(stall_s=120.0, burst_wait_s=0.5, burst_events=7, burst_share=0.5)


def test_phrases_are_added_to_the_built_in_ones() -> None:
    assert thresholds(entries("small-talk: ahoy")).small_talk == (*DEFAULTS.small_talk, "ahoy")
    assert thresholds(entries("small-talk: [so, long]")).small_talk[-2:] == ("so", "long")


def test_every_threshold_of_the_rules_can_be_set() -> None:
    for name, field in FIELDS.items():
        default = getattr(DEFAULTS, field)
        if isinstance(default, tuple):
            continue
        value = f"{default:f}s" if field.endswith("_s") else f"{default}"
        assert thresholds(entries(f"{name}: {value}")) == DEFAULTS


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("stal: 1s", "f.yaml:1:1: 'stal' is no threshold of a rule; did you mean stall?"),
        ("stall_error: 1s", "f.yaml:1:1: 'stall_error' is no threshold of a rule; did you mean st"),
        ("x: 1", "f.yaml:1:1: 'x' is no threshold of a rule; known are after-result app-error bu"),
        ("stall: 10", "f.yaml:1:8: rules.stall: '10': a duration with its unit is accepted, such"),
        ("stall: ", "f.yaml:1:7: rules.stall: a duration with its unit is accepted"),
        ("stall: [1s]", "f.yaml:1:8: rules.stall: a duration with its unit is accepted"),
        ("burst-events: 0", "f.yaml:1:15: rules.burst-events: '0': a whole number from 1 is"),
        ("burst-events: 1e9", "f.yaml:1:15: rules.burst-events: '1e9': a whole number"),
        ("small-talk: [a, {}]", "f.yaml:1:13: rules.small-talk: a phrase or a list of phrases is"),
        (
            "small-talk: ",
            "f.yaml:1:12: rules.small-talk: a phrase or a list of phrases is accepted",
        ),
        ("burst-share: 2", "f.yaml:1:14: rules.burst-share: '2': a number from 0 to 1 is"),
        ("stall: \u0661s", "f.yaml:1:8: rules.stall: '\\u0661s': a duration"),
    ],
)
def test_what_is_no_threshold_is_reported_with_its_place(text: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        thresholds(entries(text))
    assert str(raised.value).startswith(message)
