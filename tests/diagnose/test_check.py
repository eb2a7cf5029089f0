from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltatape.diagnose.check import check, check_analysis
from deltatape.diagnose.rebuild import analyse
from deltatape.model.exchange import EndReason, Exchange, Tap
from deltatape.model.finding import Blame, Finding, Severity
from deltatape.rules import EXCHANGE_RULES
from deltatape.rules.settings import Settings
from helpers.chat import FINISH, URL, calls, choice, entry, request, sse
from helpers.contexts import failing
from helpers.exchanges import TEXT, from_bytes, pasted, timed
from helpers.splits import cuttings
from helpers.taped import taped
from helpers.vectors import VECTORS, Vector


def test_in_front_of_the_applications_endpoint_the_upstream_is_the_application() -> None:
    def blamed(exchange: Exchange) -> list[tuple[str, Blame | None]]:
        app = replace(exchange, tap=Tap.APP)
        return [(finding.code, finding.blame) for finding in check(app)]

    broken = timed((0.1, TEXT))
    assert blamed(broken) == [("S001", Blame.APP)]
    for reason, blame in (
        (EndReason.UPSTREAM_RESET, Blame.TRANSPORT),
        (EndReason.CLIENT_CLOSED, None),
    ):
        assert broken.end
        cut = replace(broken, end=replace(broken.end, reason=reason))
        assert ("W006", blame) in blamed(cut)


def expect(vector: Vector, findings: tuple[Finding, ...]) -> None:
    codes = {finding.code for finding in findings}
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    match vector.kind:
        case "healthy":
            assert not findings
        case "trap":
            assert not errors
        case _:
            assert codes & vector.codes


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.name)
def test_each_vector_fires_what_it_is_made_for_and_no_more(vector: Vector) -> None:
    expect(vector, check(from_bytes(vector.body)))


@pytest.mark.exhaustive
@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.name)
def test_no_cutting_into_reads_changes_a_finding(vector: Vector) -> None:
    whole = [(each.code, each.message, each.span) for each in check(taped([(10, vector.body)]))]
    for pieces in cuttings(vector.body):
        exchange = taped([(10, piece) for piece in pieces])
        findings = check(exchange)
        expect(vector, findings)
        assert [(each.code, each.message, each.span) for each in findings] == whole


def test_the_worst_comes_first_then_the_order_of_reports_then_wire_order() -> None:
    exchange = pasted(
        calls(entry(1, "c1", name="get", arguments="")),
        calls(entry(2, "c2", name="get", arguments="[1]")),
        choice({}, "tool_calls"),
        choice({}, "stop"),
    )
    found = [(finding.severity.value, finding.code) for finding in check(exchange)]
    assert found == [
        ("error", "T006"),
        ("error", "T013"),
        ("warning", "S004"),
        ("warning", "T001"),
    ]


def test_thresholds_are_settings() -> None:
    exchange = timed((0.1, TEXT), (3.0, TEXT), (3.1, choice({}, "stop")))
    assert not check(exchange)
    assert [finding.code for finding in check(exchange, Settings(stall_s=2))] == ["D001"]


def test_an_analysis_is_checked_without_being_made_again() -> None:
    exchange = pasted(calls(entry(0, "c1", name="get", arguments="[1]")), FINISH)
    assert check_analysis(analyse(exchange)) == check(exchange)


def test_a_rule_that_fails_is_reported_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rules = failing("T001", EXCHANGE_RULES)
    monkeypatch.setattr("deltatape.diagnose.check.rules_about", lambda *_, **__: rules)
    both = (entry(0, "c1", name="get", arguments="[1]"), entry(1, "c2", name="get", arguments=""))
    first, second = check(pasted(calls(*both), FINISH))
    assert {first.code, second.code} == {"X001", "T006"}


HOSTILE = [
    '{"choices":' + "[" * 5000,
    '{"choices":[{"index":1e999,"delta":{"tool_calls":[{"index":-1,"function":[]}]}}]}',
    '{"choices":[{"delta":{"tool_calls":[{"function":{"name":"\\ud800","arguments":"\\ud800"}}]}}]}',
    '{"choices":[{"delta":{"tool_calls":[{"id":"\\u0000","function":{"arguments":"NaN"}}]}}]}',
    '{"choices":[{"index":0,"finish_reason":{"a":1},"delta":[]}],"error":[]}',
    '{"error":{"message":{"deep":[[[[]]]]}}}',
    "9" * 6000,
]


@pytest.mark.parametrize("data", HOSTILE)
@pytest.mark.parametrize("content_type", ["text/event-stream", "application/json", ""])
def test_hostile_events_are_findings_and_never_exceptions(data: str, content_type: str) -> None:
    body = sse(TEXT, data, FINISH) if content_type != "application/json" else data.encode()
    exchange = from_bytes(body, request(get={"$ref": "#"}), content_type=content_type)
    assert "X001" not in {finding.code for finding in check(exchange)}


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=300), st.binary(max_size=60), st.sampled_from([200, 404, 500]))
def test_no_body_raises(body: bytes, asked: bytes, status: int) -> None:
    for media in ("text/event-stream", "text/html"):
        exchange = Exchange.from_body(
            body, content_type=media, url=URL, request=asked, status=status
        )
        assert "X001" not in {finding.code for finding in check(exchange)}


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.just("{"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["index", "id", "name", "arguments", "function", "type", "error"]),
            inner,
        )
    ),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(st.lists(JSON_VALUES, max_size=4), st.booleans())
def test_no_delta_raises(entries: list[object], done: bool) -> None:  # noqa: FBT001 - drawn
    exchange = pasted(choice({"tool_calls": entries}), FINISH, done=done, request=request(get={}))
    assert "X001" not in {finding.code for finding in check(exchange)}
