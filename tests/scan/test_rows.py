"""The rows of a tape: the same findings as `check`, and what else the tables have."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from deltatape.diagnose.check_tape import check_exchanges
from deltatape.errors import DeltatapeError
from deltatape.model.exchange import Exchange
from deltatape.model.rule_settings import DEFAULTS
from deltatape.model.tape_summary import LogEntry
from deltatape.scan import rows as rows_module
from deltatape.scan.rows import began_us, tape_rows
from deltatape.scan.schema import TABLES
from deltatape.secret_text.search import without_secrets
from deltatape.store.reader import open_tape
from helpers.chat import FINISH, choice
from helpers.exchanges import (
    CALL_MESSAGE,
    CALL_REPLY,
    TEXT_REPLY,
    USER,
    asks,
    assistant,
    call,
    conversation,
    from_bytes,
    pasted,
    result,
    timed,
)
from helpers.incidents import BROKEN, STALL

RECORDINGS = Path(__file__).resolve().parents[2] / "recordings"
TOOL = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
Told = dict[str, list[dict[str, object]]]


def told(
    exchanges: Iterable[Exchange],
    logs: Iterable[LogEntry] = (),
    *,
    near: int = 1024,
    alone: bool = False,
) -> Told:
    """All rows of a tape, as objects."""
    found: Told = {name: [] for name in TABLES}
    batches = tape_rows(exchanges, "K", "R", DEFAULTS, logs, near=near, alone=alone)
    for batch in batches:
        for name, rows in batch.items():
            names = [column.name for column in TABLES[name].columns]
            found[name] += [dict(zip(names, row, strict=True)) for row in rows]
    return found


def of_scan(found: Told) -> Counter[tuple[object, ...]]:
    names = ("exchange", "code", "severity", "blame", "message", "line", "event", "fingerprint")
    return Counter(tuple(row[name] for name in names) for row in found["findings"])


def of_check(
    exchanges: Iterable[Exchange],
    logs: Iterable[LogEntry] = (),
    *,
    near: int = 1024,
    alone: bool = False,
) -> Counter[tuple[object, ...]]:
    report = check_exchanges(
        "x", exchanges, DEFAULTS, None, logs, excerpts=False, near=near, alone=alone
    )
    return Counter(
        (
            each.finding.exchange,
            each.finding.code,
            each.finding.severity,
            each.finding.blame,
            without_secrets(each.finding.message),
            each.finding.line,
            each.finding.event,
            each.fingerprint,
        )
        for each in report.reported
    )


def tapes() -> list[Path]:
    """A quarter of the recordings that can be read."""
    found = RECORDINGS.rglob("*.tape")
    return sorted(path for path in found if not path.name.startswith("refuse-"))[::4]


def printed(path: Path) -> Iterator[LogEntry]:
    yield from open_tape(path).logs


@pytest.mark.slow
def test_the_findings_are_those_of_check_and_count_for_the_exchanges_that_have_them() -> None:
    number = 0
    for path in tapes():
        try:
            exchanges = [*open_tape(path)]
        except DeltatapeError:
            continue
        found = told(exchanges, printed(path))
        assert of_scan(found) == of_check(exchanges, printed(path)), path
        counted = Counter(row["about"] for row in found["findings"])
        for row in found["exchanges"]:
            assert row["findings"] == counted[row["exchange"]], path
        assert len(found["exchanges"]) == len(exchanges)
        number += len(found["findings"])
    assert number > 100


def test_they_are_on_tapes_of_which_few_exchanges_are_held_and_come_in_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rows_module, "_BATCH_ROWS", 5)
    lost = (asks(USER, assistant(text="ok"), result("c1")), TEXT_REPLY)
    exchanges = conversation(*[(asks(USER), CALL_REPLY), lost] * 20)

    found = told(exchanges, near=2)
    batches = [*tape_rows(exchanges, "K", "R", near=2)]

    assert of_scan(found) == of_check(exchanges, near=2)
    assert [row["exchange"] for row in found["exchanges"]] == [*range(1, 41)]
    assert len(batches) == 2


@pytest.mark.slow
def test_the_rows_that_are_held_do_not_grow_with_the_tape(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rows_module, "_BATCH_ROWS", 50)

    def most(number: int) -> int:
        exchanges = conversation(*[(asks(USER), CALL_REPLY)] * number)
        parts = tape_rows(exchanges, "K", "R", near=4)
        return max(sum(map(len, part.values())) for part in parts)

    assert most(700) <= most(200)


def test_exchanges_whose_conversations_are_elsewhere_too_are_judged_for_themselves() -> None:
    lost = (asks(USER, assistant(text="ok"), result("c1")), TEXT_REPLY)
    exchanges = conversation((asks(USER), CALL_REPLY), lost, (asks(USER), [*call(), choice({})]))

    found = told(exchanges, alone=True)

    assert of_scan(found) == of_check(exchanges, alone=True)
    assert [row["exchange"] for row in found["exchanges"]] == [1, 2, 3]


def test_a_lost_call_is_on_the_request_without_it_and_counts_for_the_reply_with_it() -> None:
    found = told(open_tape(BROKEN))
    changed = [row for row in found["findings"] if row["code"] == "C002"]

    assert changed
    for row in changed:
        assert (row["exchange"], row["about"]) == (2, 1)
        assert (row["across"], row["withdrawn"], row["rules"]) == (False, False, "R")
    assert [row["call"] for row in changed] == [*range(len(changed))]
    assert found["exchanges"][0]["worst_code"] == "C002"
    assert [row["thread"] for row in found["exchanges"]] == [1, 1]


def test_a_dead_zone_says_at_what_point_of_the_answer_it_is() -> None:
    (row,) = (row for row in told(open_tape(STALL))["findings"] if row["code"] == "D001")
    assert row["phase"] == "in-arguments"
    assert isinstance(row["silent_ns"], int)
    assert row["silent_ns"] > 10**10


def test_a_silence_before_the_first_event_has_its_phase_too() -> None:
    exchange = timed((90.0, choice({"content": "x"})), (90.1, choice({}, "stop")), end_s=91)
    (row,) = (row for row in told([exchange])["findings"] if row["code"] == "D001")
    assert (row["event"], row["phase"]) == (None, "before-first")


def test_dead_zones_of_a_websocket_are_at_the_events_of_all_its_responses() -> None:
    for path in sorted((RECORDINGS / "rules" / "D001").glob("*.tape")):
        rows = [row for row in told(open_tape(path))["findings"] if row["code"] == "D001"]
        assert all(row["phase"] for row in rows)


@pytest.mark.parametrize(
    ("arguments", "tool", "fits"),
    [
        ('{"a":1}', TOOL, True),
        ('{"a":"1"}', TOOL, False),
        ('{"a":1}', None, None),
        ('{"a":', TOOL, None),
        ('{"a":1}', {"$ref": "https://elsewhere.example/x"}, None),
    ],
)
def test_a_call_says_whether_its_arguments_fit_the_schema(
    arguments: str, tool: dict[str, object] | None, fits: object
) -> None:
    function = {"name": "get", **({"parameters": tool} if tool else {})}
    request = asks(USER, tools=[{"type": "function", "function": function}])

    found = told([pasted(*call("get", arguments), FINISH, request=request)])
    (row,) = found["calls"]

    assert row["schema_ok"] is fits
    assert (row["name"], row["call"], row["kind"]) == ("get", 0, "function")
    assert row["arguments_bytes"] == len(arguments)


def test_of_several_calls_only_the_one_that_does_not_fit_is_said_not_to() -> None:
    function = {"name": "get", "parameters": TOOL}
    request = asks(USER, tools=[{"type": "function", "function": function}])
    chunks = [*call("get", '{"a":1}'), *call("get", '{"b":1}', index=1), FINISH]

    found = told([pasted(*chunks, request=request)])

    assert [row["schema_ok"] for row in found["calls"]] == [True, False]
    (broken,) = (row for row in found["findings"] if row["code"] == "T008")
    assert broken["call"] == 1


def test_where_a_schema_is_only_partly_checked_nothing_is_said_of_other_calls_either() -> None:
    schema = {"$ref": "https://elsewhere.example/x"}
    request = asks(
        USER, tools=[{"type": "function", "function": {"name": "get", "parameters": schema}}]
    )
    chunks = [*call("get", '{"a":1}'), *call("get", '{"b":1}', index=1), FINISH]
    assert [row["schema_ok"] for row in told([pasted(*chunks, request=request)])["calls"]] == [
        None,
        None,
    ]


def test_calls_that_the_application_does_not_run_are_rows_without_a_schema() -> None:
    kinds = {
        row["kind"]
        for path in sorted((RECORDINGS / "rules").rglob("T018/*.tape"))
        for row in told(open_tape(path))["calls"]
        if row["schema_ok"] is None
    }
    assert "text" in kinds


@pytest.mark.parametrize(
    ("agent", "name", "version"),
    [
        (b"OpenAI/Python 3.54.0", "OpenAI/Python", "3.54.0"),
        (b"curl/7.88.1", "curl", "7.88.1"),
        (b"mine", "mine", None),
        (None, None, None),
    ],
)
def test_an_exchange_names_its_client(agent: bytes | None, name: object, version: object) -> None:
    exchange = pasted(*TEXT_REPLY, request=asks(USER))
    headers = () if agent is None else ((b"User-Agent", agent), (b"traceparent", b"00-ab-cd-01"))
    exchange = replace(exchange, request=replace(exchange.request, headers=headers))
    (row,) = told([exchange])["exchanges"]
    assert (row["client_name"], row["client_version"]) == (name, version)
    assert row["traceparent"] == (agent and "00-ab-cd-01")


def test_times_are_microseconds_since_1970() -> None:
    found = told(conversation((asks(USER), TEXT_REPLY), (asks(USER), TEXT_REPLY)))
    first, second = (row["at"] for row in found["exchanges"])
    assert first == 1_795_293_361_000_000
    assert second == first + 10_000_000
    assert [row["at"] for row in found["digests"]] == [first, second]
    assert {row["recorded_ns"] for row in found["digests"]} == {first * 1000}


def test_what_was_not_recorded_has_no_time() -> None:
    assert began_us("yesterday") is None
    (row,) = told([replace(pasted(*TEXT_REPLY, request=asks(USER)), recorded_at="?")])["exchanges"]
    assert (row["at"], row["input_tokens"], row["worst_code"]) == (None, None, None)
    (digest,) = told([replace(timed((0.1, TEXT_REPLY[0]), request=asks(USER)), recorded_at="?")])[
        "digests"
    ]
    assert (digest["at"], digest["recorded_ns"]) == (None, None)


def test_only_requests_with_a_history_are_kept_to_be_compared() -> None:
    asked = (asks(USER, CALL_MESSAGE, result("c1")), TEXT_REPLY)
    exchanges = [*conversation((asks(USER), CALL_REPLY), asked), from_bytes(b"{}")]
    rows = told(exchanges)["digests"]
    assert [(row["exchange"], row["messages"], row["results"]) for row in rows] == [
        (1, 1, 0),
        (2, 3, 1),
    ]
    assert rows[0]["root"] == rows[1]["root"]


@pytest.mark.parametrize("message", ["no call", "call 7 (get)", "call 0 (other)", "call 0 of #9"])
def test_a_message_that_names_no_call_of_the_reply_has_none(message: str) -> None:
    digests: Sequence[object] = conversation((asks(USER), CALL_REPLY))
    assert len(digests) == 1
    from deltatape.diagnose.digest import digest  # noqa: PLC0415

    (exchange,) = conversation((asks(USER), CALL_REPLY))
    assert rows_module._call_in(message, 1, (digest(exchange),)) is None


def test_secrets_are_hidden_in_what_a_model_may_have_been_told() -> None:
    key = "sk-" + "aB3dE5fG7hJ9kL1m" * 3
    request = asks(USER, model=key)
    (row,) = told([pasted(*TEXT_REPLY, request=request)])["exchanges"]
    assert "aB3d" not in str(row["model"])
