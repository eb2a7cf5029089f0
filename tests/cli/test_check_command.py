"""`deltatape check`, as a CI job calls it."""

import json
import os
import re
import shutil
from pathlib import Path

import pytest

from deltatape.cli.check_command import Baseline, NewBaseline
from deltatape.errors import UsageError
from deltatape.rules import RULES
from deltatape.store.reader import open_tape
from helpers.chat import choice, sse
from helpers.console import called, on_terminal
from helpers.exchanges import pasted
from helpers.hostile import FILE_NAME, assert_harmless, hostile_tape
from helpers.incidents import BROKEN, CUT, EMPTY, FIXED, STALL, recorded
from helpers.program import deltatape
from helpers.reports import report_on, valid_findings, valid_junit, valid_sarif

KEYS = (
    *("code", "name", "severity", "blame", "confidence", "message", "tape", "line"),
    *("exchange", "event", "span", "t_ns", "evidence", "hint", "against", "excluded"),
)


def codes(*arguments: str | Path, folder: Path) -> list[str]:
    """The codes of what is found, in order."""
    result = called("check", *arguments, "--format", "json", folder=folder)
    assert result.returncode in (0, 1), result.stderr
    return [finding["code"] for finding in json.loads(result.stdout)["findings"]]


def test_findings_are_reported_with_place_blame_evidence_and_fix(tmp_path: Path) -> None:
    shutil.copyfile(EMPTY, tmp_path / "x.tape")
    result = deltatape("check", "x.tape", folder=tmp_path)
    text = result.stdout.decode()
    assert (result.returncode, result.stderr) == (1, b"")
    place = r"x\.tape#1, line ([0-9]+), event 1, [0-9]\.[0-9]{3} s into the tape\n"
    found = re.match(rf"error T001 empty-arguments  upstream, proven\n  --> {place}", text)
    assert found is not None
    assert "its tool requires trip_id" in text
    wire, carets = re.findall(rf"  (?:{found[1]}|  ?) \| (.+)\n", text)[:2]
    assert wire[carets.index("^") : carets.rindex("^") + 1] == '""'
    assert wire[: carets.index("^")].endswith('"arguments": ')
    assert "    fix: " in text
    assert text.endswith("2 errors\nmore about a code: deltatape why D002\n")


def test_the_json_form_has_the_keys_of_the_contract(tmp_path: Path) -> None:
    result = called("check", CUT, "--format", "json", folder=tmp_path)
    told = json.loads(result.stdout)
    assert valid_findings(result.stdout) == told["findings"]
    assert result.returncode == 1
    assert set(told) == {"version", "findings"}
    assert told["version"] == 1
    assert [tuple(finding) for finding in told["findings"]] == [KEYS] * 3
    cut, truncated = told["findings"][0], told["findings"][2]
    assert (cut["code"], cut["severity"], cut["blame"]) == ("W006", "error", "transport")
    assert (cut["tape"], cut["exchange"], cut["confidence"]) == (str(CUT), 1, "proven")
    assert truncated["code"] == "T003"
    assert truncated["span"][0] < truncated["span"][1]
    assert isinstance(truncated["t_ns"], int)


def test_a_clean_tape_is_clean(tmp_path: Path) -> None:
    result = called("check", FIXED, folder=tmp_path)
    assert (result.returncode, result.stdout) == (0, b"no findings\n")
    assert codes(FIXED, folder=tmp_path) == []


def test_without_a_name_it_is_the_latest_tape_with_a_request(tmp_path: Path) -> None:
    (tmp_path / "silent.tape").write_bytes(EMPTY.read_bytes().partition(b"\n")[0] + b"\n")
    recorded(tmp_path, EMPTY, CUT, tmp_path / "silent.tape")
    result = called("check", folder=tmp_path)
    assert result.returncode == 1
    assert result.stdout == called("check", f".deltatape/{CUT.name}", folder=tmp_path).stdout
    assert result.stderr.decode().endswith(f"note: the latest tape: .deltatape/{CUT.name}\n")


def test_several_tapes_are_one_report_in_their_order(tmp_path: Path) -> None:
    assert codes(EMPTY, FIXED, CUT, folder=tmp_path) == ["T001", "D002", "W006", "S001", "T003"]
    assert called("check", FIXED, EMPTY, folder=tmp_path).returncode == 1


def test_of_many_tapes_only_the_first_of_a_code_is_shown_unless_all_are_wanted(
    tmp_path: Path,
) -> None:
    few = called("check", BROKEN, BROKEN, folder=tmp_path).stdout.decode()
    every = called("check", BROKEN, BROKEN, "--all", folder=tmp_path).stdout.decode()
    alone = called("check", BROKEN, folder=tmp_path).stdout.decode()
    assert few.count("\nerror C002 arguments-changed-by-app  app") == 1
    assert every.count("\nerror C002 arguments-changed-by-app  app") == 4
    assert alone.count("\nerror C002 arguments-changed-by-app  app") == 2
    assert "C002 arguments-changed-by-app  4 findings  on 2 tapes" in few
    assert "findings  on" not in every + alone
    assert few.splitlines()[-2:] == every.splitlines()[-2:]


def test_an_exchange_alone_is_reported_alone_but_judged_in_its_conversation(tmp_path: Path) -> None:
    assert codes(f"{BROKEN}#1", folder=tmp_path) == []
    assert codes(f"{BROKEN}#2", folder=tmp_path) == ["D002", "C002", "C002", "C009", "C009"]


def test_a_saved_body_is_checked(tmp_path: Path) -> None:
    (tmp_path / "x.sse").write_bytes(sse(choice({"content": "hi"}), done=False))
    assert codes("x.sse", folder=tmp_path) == ["S001"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--select", "T"), ["T003"]),
        (("--select", "t003, W"), ["W006", "T003"]),
        (("--select", "T001"), []),
        (("--ignore", "W006"), ["S001", "T003"]),
        (("--ignore", "T,S"), ["W006"]),
        (("--select", "T,S", "--ignore", "S001"), ["T003"]),
        (("--select", "", "--ignore", ","), ["W006", "S001", "T003"]),
        (("--select", "X001"), []),
    ],
)
def test_codes_are_selected_and_ignored_by_their_beginning(
    tmp_path: Path, arguments: tuple[str, ...], expected: list[str]
) -> None:
    assert codes(CUT, *arguments, folder=tmp_path) == expected
    code = called("check", CUT, *arguments, folder=tmp_path).returncode
    assert code == (1 if expected else 0)


@pytest.mark.parametrize("select", [(), ("--select", "T001,D")])
def test_codes_that_leave_nothing_to_report_are_refused(
    tmp_path: Path, select: tuple[str, ...]
) -> None:
    ignored = ",".join(sorted({rule.code[0] for rule in RULES}))
    result = called("check", CUT, *select, "--ignore", ignored, folder=tmp_path)
    assert (result.returncode, result.stdout) == (2, b"")
    assert b"--select and --ignore: together, they leave no code to report" in result.stderr


@pytest.mark.parametrize("option", ["--select", "--ignore"])
@pytest.mark.parametrize("given", ["T999", "Q", "T001,NOPE", "T001X"])
def test_an_unknown_code_is_reported(tmp_path: Path, option: str, given: str) -> None:
    result = called("check", CUT, option, given, folder=tmp_path)
    assert (result.returncode, result.stdout) == (2, b"")
    wrong = given.rpartition(",")[2]
    assert (
        f"{option} {wrong}: no finding code starts so; use a code such as T001"
        in result.stderr.decode()
    )


@pytest.mark.parametrize(
    ("tape", "fail_on", "code"),
    [
        (CUT, "error", 1),
        (CUT, "warning", 1),
        (CUT, "never", 0),
        (STALL, "error", 0),
        (STALL, "warning", 1),
        (STALL, "never", 0),
        (FIXED, "warning", 0),
    ],
    ids=str,
)
def test_the_exit_code_tells_the_worst_severity(
    tmp_path: Path, tape: Path, fail_on: str, code: int
) -> None:
    assert called("check", tape, "--fail-on", fail_on, folder=tmp_path).returncode == code


def test_variables_stand_for_options(tmp_path: Path) -> None:
    variables = {
        "DELTATAPE_CHECK_FORMAT": "json",
        "DELTATAPE_CHECK_SELECT": "T",
        "DELTATAPE_CHECK_FAIL_ON": "never",
    }
    result = called("check", CUT, folder=tmp_path, env=variables)
    assert result.returncode == 0
    assert [each["code"] for each in json.loads(result.stdout)["findings"]] == ["T003"]
    stronger = called("check", CUT, "--fail-on", "error", folder=tmp_path, env=variables)
    assert stronger.returncode == 1


def damaged(folder: Path) -> None:
    lines = CUT.read_bytes().split(b"\n")
    lines[4] = b"[1,1,"
    (folder / "bad.tape").write_bytes(b"\n".join(lines))


def test_a_damaged_tape_is_reported_with_its_line_and_the_others_are_checked(
    tmp_path: Path,
) -> None:
    damaged(tmp_path)
    result = called("check", CUT, "bad.tape", EMPTY, "--format", "json", folder=tmp_path)
    assert result.returncode == 2
    told = json.loads(result.stdout)["findings"]
    assert [finding["code"] for finding in told] == ["W006", "S001", "T003", "T001", "D002"]
    assert result.stderr.startswith(b"deltatape: bad.tape:5: ")


def test_nothing_is_said_to_be_clean_when_nothing_could_be_read(tmp_path: Path) -> None:
    damaged(tmp_path)
    (tmp_path / "empty").mkdir()
    for form in ("text", "json"):
        result = called("check", "bad.tape", "empty", "--format", form, folder=tmp_path)
        assert (result.returncode, result.stdout) == (2, b"")
        assert b"empty: holds no body.raw, and there is no tape below" in result.stderr


def test_a_folder_is_every_tape_below_it(tmp_path: Path) -> None:
    recorded(tmp_path, CUT, FIXED)
    (tmp_path / ".deltatape" / "deep").mkdir()
    shutil.copyfile(EMPTY, tmp_path / ".deltatape" / "deep" / "z.tape")
    assert codes(".deltatape", folder=tmp_path) == ["W006", "S001", "T003", "T001", "D002"]


def test_a_captured_case_in_a_folder_is_itself(tmp_path: Path) -> None:
    shutil.copyfile(CUT, tmp_path / "x.tape")
    (tmp_path / "body.raw").write_bytes(sse(choice({"content": "hi"}), done=False))
    assert codes(tmp_path, folder=tmp_path) == ["S001"]


def test_what_is_not_an_answer_of_a_provider_is_said_to_be_none(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("<html>hello</html>")
    result = called("check", "page.html", folder=tmp_path)
    assert (result.returncode, result.stdout) == (2, b"")
    assert b"page.html: is no answer of an LLM, but an HTML page" in result.stderr
    (tmp_path / "silent.tape").write_bytes(EMPTY.read_bytes().partition(b"\n")[0] + b"\n")
    result = called("check", "silent.tape", folder=tmp_path)
    assert (result.returncode, result.stdout) == (0, b"no findings\n")
    assert b"note: silent.tape: no request was recorded" in result.stderr
    assert called("check", CUT, folder=tmp_path).stderr == b""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "no tape in .deltatape or recordings"),
        (("missing.tape",), "missing.tape: No such file or directory"),
        ((str(CUT), "--fail-on", "info"), "'info' is not one of"),
        ((str(CUT), "--format", "html"), "'html' is not one of"),
        ((str(CUT), "--jobs", "0"), "0 is not in the range"),
        ((str(CUT), "--baseline", "none.json"), "--baseline none.json: No such file or directory"),
        ((str(CUT), "--baseline", "a", "--write-baseline", "b"), "give one"),
        ((str(CUT), "--nonsense"), "No such option"),
        ((f"{CUT}#2",), "no such exchange on the tape; it has 1 to 1"),
    ],
)
def test_wrong_usage_is_reported_with_exit_code_2(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    result = called("check", *arguments, folder=tmp_path)
    assert (result.returncode, result.stdout) == (2, b"")
    assert message in result.stderr.decode()


def test_every_format_is_valid_on_tapes_of_all_kinds(tmp_path: Path) -> None:
    damaged(tmp_path)
    hostile_tape(tmp_path)
    tapes = (BROKEN, FIXED, CUT, EMPTY, STALL, "bad.tape", FILE_NAME)

    def printed(form: str) -> bytes:
        result = called("check", *tapes, "--format", form, folder=tmp_path)
        assert result.returncode == 2
        assert_harmless(result.stdout)
        assert_harmless(result.stderr)
        return result.stdout

    findings = valid_findings(printed("json"))
    results = valid_sarif(printed("sarif"))["results"]
    assert isinstance(results, list)
    assert [each["ruleId"] for each in results] == [each["code"] for each in findings]
    cases = [case for suite in valid_junit(printed("junit")) for case in suite]
    failed = {str(case.get("name")).split(" ")[1] for case in cases if case.find("failure")}
    assert {str(each["code"]) for each in findings if each["severity"] == "error"} >= failed
    assert sum(case.find("error") is not None for case in cases) == 1
    commands = printed("github").decode().splitlines()
    assert len(commands) == len(findings) + 2
    assert all(
        line.startswith(("::error file=", "::warning file=", "::notice file="))
        for line in commands[:-1]
    )


@pytest.mark.parametrize("form", ["text", "json", "junit", "github", "sarif"])
def test_no_tape_speaks_to_a_terminal_or_to_the_runner_of_a_job(tmp_path: Path, form: str) -> None:
    hostile_tape(tmp_path)
    result = on_terminal("check", FILE_NAME, "--format", form, folder=tmp_path)
    (tmp_path / FILE_NAME).write_bytes(b"{}\n")
    unreadable = called("check", FILE_NAME, "--format", form, folder=tmp_path)
    for output in (result.stdout, unreadable.stdout, unreadable.stderr):
        assert_harmless(output)
        for line in output.decode().splitlines():
            assert "##[" not in line
            if form != "github":
                assert not line.lstrip().startswith("::")


def test_what_a_baseline_accepts_is_not_reported_and_what_is_gone_is_reported(
    tmp_path: Path,
) -> None:
    made = called("check", CUT, EMPTY, "--write-baseline", "b.json", folder=tmp_path)
    assert made.returncode == 0
    assert b"error W006" in made.stdout
    assert made.stderr == b"note: b.json: 5 findings accepted from now on\n"
    same = called("check", CUT, EMPTY, "--baseline", "b.json", folder=tmp_path)
    assert (same.returncode, same.stdout) == (0, b"no findings\n")
    assert same.stderr == b"note: b.json: 5 findings are accepted\n"
    less = called("check", EMPTY, "--baseline", "b.json", folder=tmp_path)
    assert less.returncode == 0
    assert b"note: b.json: 2 findings are accepted\n" in less.stderr
    assert b"note: b.json: 3 accepted findings did not occur:\n  S001 " in less.stderr
    more = called("check", CUT, STALL, "--baseline", "b.json", folder=tmp_path)
    assert (more.returncode, more.stdout.count(b" --> ")) == (0, 1)
    assert codes(BROKEN, "--baseline", "b.json", folder=tmp_path) == [
        "C002",
        "C002",
        "C009",
        "C009",
    ]


def test_a_recording_of_another_day_is_covered_by_the_same_baseline(tmp_path: Path) -> None:
    called("check", CUT, "--write-baseline", "b.json", folder=tmp_path)
    text = CUT.read_text()
    again = re.sub(r"^\[([0-9]+),", lambda line: f"[{int(line[1]) + 77},", text, flags=re.MULTILINE)
    again = again.replace("call_get_itinerary", "call_4f00ba5_9c21d")
    (tmp_path / "later.tape").write_text(again)
    assert codes("later.tape", folder=tmp_path) == ["W006", "S001", "T003"]
    assert codes("later.tape", "--baseline", "b.json", folder=tmp_path) == []


def test_no_baseline_is_written_of_tapes_that_cannot_be_read(tmp_path: Path) -> None:
    damaged(tmp_path)
    result = called("check", CUT, "bad.tape", "--write-baseline", "b.json", folder=tmp_path)
    assert result.returncode == 2
    assert not (tmp_path / "b.json").exists()


def test_a_baseline_replaces_nothing_but_a_baseline(tmp_path: Path) -> None:
    shutil.copy(BROKEN, tmp_path / "x.tape")
    os.mkfifo(tmp_path / "pipe")
    for name in ("x.tape", "pipe"):
        result = called("check", CUT, "--write-baseline", name, folder=tmp_path)
        assert (result.returncode, result.stdout) == (2, b"")
        message = f"--write-baseline {name}: is there already, and no baseline; name another file"
        assert message in result.stderr.decode()
    assert (tmp_path / "x.tape").read_bytes() == BROKEN.read_bytes()


def test_a_baseline_replaces_an_older_one_and_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "b.json").touch()
    for tape, count in ((CUT, 3), (EMPTY, 2)):
        result = called("check", tape, "--write-baseline", "b.json", folder=tmp_path)
        assert result.returncode == 0
        assert len(json.loads((tmp_path / "b.json").read_text())["accepted"]) == count


def test_only_what_is_selected_is_accepted(tmp_path: Path) -> None:
    called("check", CUT, "--select", "W", "--write-baseline", "b.json", folder=tmp_path)
    assert codes(CUT, "--baseline", "b.json", folder=tmp_path) == ["S001", "T003"]


def test_workers_report_in_the_same_order(tmp_path: Path) -> None:
    damaged(tmp_path)
    tapes = (EMPTY, "bad.tape", CUT, FIXED, "missing.tape", BROKEN)
    one = called("check", *tapes, "--jobs", "1", folder=tmp_path)
    many = deltatape("check", *tapes, "--jobs", "2", folder=tmp_path)
    assert (many.returncode, many.stdout, many.stderr) == (2, one.stdout, one.stderr)
    assert b"missing.tape: No such file or directory" in many.stderr


def test_a_tape_whose_last_record_is_torn_is_checked_and_told(tmp_path: Path) -> None:
    (tmp_path / "torn.tape").write_bytes(CUT.read_bytes()[:-20])
    result = called("check", "torn.tape", folder=tmp_path)
    assert b"left out a truncated last record of" in result.stderr
    assert result.returncode == 1


def test_standard_input_is_checked(tmp_path: Path) -> None:
    body = sse(choice({"content": "hi"}), done=False)
    result = called("check", "-", "--jobs", "2", folder=tmp_path, stdin=body)
    assert b"(stdin)#1" in result.stdout or b"S001" in result.stdout
    assert result.returncode == 1


FOUND = report_on(*open_tape(CUT).exchanges()).reported


def written(path: Path) -> Path:
    new = NewBaseline(path)
    for each in FOUND:
        new.add(each)
    new.write()
    return path


def test_accepted_findings_are_known_wherever_they_occur(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known = Baseline(written(tmp_path / "b.json"))
    other = report_on(pasted(choice({"content": "x"}), done=False)).reported
    assert [known.is_new(each) for each in (*FOUND, *other, FOUND[0])] == [
        *(False,) * 3,
        True,
        False,
    ]
    capsys.readouterr()
    known.print_summary()
    assert capsys.readouterr().err.endswith("b.json: 4 findings are accepted\n")


def test_what_did_not_occur_is_reported_up_to_a_limit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = NewBaseline(tmp_path / "b.json")
    for number in range(7):
        print_ = f"{number:016x}"
        new.add(FOUND[0]._replace(fingerprint=print_))
    new.write()
    capsys.readouterr()
    known = Baseline(tmp_path / "b.json")
    known.is_new(FOUND[0]._replace(fingerprint=f"{0:016x}"))
    known.print_summary()
    told = capsys.readouterr().err.splitlines()
    assert told[0].endswith("b.json: 1 finding is accepted")
    assert told[1].endswith("b.json: 6 accepted findings did not occur:")
    assert len(told) == 8
    assert told[2].startswith("  W006 stream-cut, /v1/chat/completions: the upstream closed")
    assert told[-1] == "  and 1 more; --write-baseline drops them"


def test_a_file_that_cannot_be_written_or_read_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--write-baseline .*No such file"):
        written(tmp_path / "missing" / "b.json")
    with pytest.raises(UsageError, match=r"--baseline .*No such file.*--write-baseline makes one"):
        Baseline(tmp_path / "b.json")
    (tmp_path / "b.json").write_bytes(b"\xff")
    with pytest.raises(UsageError, match=r"--baseline .*b\.json: no text in UTF-8; deltatape"):
        Baseline(tmp_path / "b.json")
    assert [path.name for path in tmp_path.iterdir()] == ["b.json"]
