import json
from dataclasses import replace

from deltatape.render.report import Annotations
from deltatape.render.sarif import SarifLog
from deltatape.rules import RULES
from helpers.chat import FINISH, calls, entry
from helpers.exchanges import TEXT, call, pasted, timed
from helpers.reports import report_on, unreadable, valid_sarif, written

BAD = calls(entry(0, "c1", name="get", arguments="[1]"))


def results(text: str) -> list[dict[str, object]]:
    found = valid_sarif(text)["results"]
    assert isinstance(found, list)
    return found


def test_a_finding_on_another_shard_is_placed_there() -> None:
    report = report_on(pasted(BAD, FINISH), name="x-1.tape")
    (one,) = report.reported
    moved = one._replace(finding=replace(one.finding, tape="x-2.tape"))
    for shards, place in ((frozenset({"x-1.tape", "x-2.tape"}), "x-2.tape"), ((), "x-1.tape")):
        read = replace(report, reported=(moved,), shards=frozenset(shards))
        assert f'"uri": "{place}"' in written(SarifLog(), [read])
        assert f"file={place}," in written(Annotations(), [read])


def test_a_result_has_rule_level_place_and_fingerprint() -> None:
    tape = report_on(timed((0.1, BAD), (0.2, FINISH)), name="my tapes/x.tape")
    text = written(SarifLog(), [tape])
    (result,) = results(text)
    assert (result["ruleId"], result["level"]) == ("T006", "error")
    index = result["ruleIndex"]
    assert isinstance(index, int)
    assert RULES[index].code == "T006"
    assert result["locations"] == [
        {
            "physicalLocation": {
                "artifactLocation": {"uri": "my%20tapes/x.tape"},
                "region": {"startLine": 1},
            },
            "logicalLocations": [{"fullyQualifiedName": "my tapes/x.tape#1"}],
        }
    ]
    assert result["partialFingerprints"] == {"deltatape/v1": tape.reported[0].fingerprint}
    assert "Fix: " in json.dumps(result["message"])


def test_every_rule_is_described() -> None:
    run = json.loads(written(SarifLog(), []))["runs"][0]
    assert run["results"] == []
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == [rule.code for rule in RULES]
    (empty,) = (rule for rule in rules if rule["id"] == "T001")
    assert empty["name"] == "EmptyArguments"
    assert empty["shortDescription"]["text"].startswith("empty-arguments: A call")
    assert "## Fix" in empty["help"]["markdown"]
    assert empty["defaultConfiguration"] == {"level": "error"}


def test_results_of_several_tapes_are_one_list() -> None:
    bad, good = report_on(pasted(BAD, FINISH)), report_on(pasted(*call(), FINISH))
    text = written(SarifLog(), [good, bad, bad, report_on(pasted(TEXT, done=False))])
    assert [result["ruleId"] for result in results(text)] == ["T006", "T006", "S001"]
    assert valid_sarif(text)["invocations"] == [
        {"executionSuccessful": True, "toolExecutionNotifications": []}
    ]


def test_a_tape_that_cannot_be_read_is_a_notification() -> None:
    text = written(SarifLog(), [unreadable()])
    assert valid_sarif(text)["invocations"] == [
        {
            "executionSuccessful": False,
            "toolExecutionNotifications": [
                {"level": "error", "message": {"text": "bad.tape:5: no JSON"}}
            ],
        }
    ]
    assert results(text) == []


def test_an_absolute_path_is_a_file_url() -> None:
    text = written(SarifLog(), [report_on(pasted(BAD, FINISH), name="/a,b\x1b.tape")])
    assert '"uri": "file:///a%2Cb%1B.tape"' in text
