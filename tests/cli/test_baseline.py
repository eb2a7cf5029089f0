from pathlib import Path

import pytest

from deltatape.cli.baseline import Baseline, NewBaseline
from deltatape.errors import UsageError
from deltatape.store.reader import open_tape
from helpers.chat import choice
from helpers.exchanges import pasted
from helpers.incidents import CUT
from helpers.reports import report_on

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
    known.tell()
    assert capsys.readouterr().err.endswith("b.json: 4 findings are accepted\n")


def test_what_did_not_occur_is_told_up_to_a_limit(
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
    known.tell()
    told = capsys.readouterr().err.splitlines()
    assert told[0].endswith("b.json: 1 finding is accepted")
    assert told[1].endswith("b.json: 6 accepted findings did not occur:")
    assert len(told) == 8
    assert told[2].startswith("  W006 stream-cut, /v1/chat/completions: the upstream closed")
    assert told[-1] == "  and 1 more; --write-baseline drops them"


def test_a_file_that_cannot_be_written_or_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--write-baseline .*No such file"):
        written(tmp_path / "missing" / "b.json")
    with pytest.raises(UsageError, match=r"--baseline .*No such file.*--write-baseline makes one"):
        Baseline(tmp_path / "b.json")
    (tmp_path / "b.json").write_bytes(b"\xff")
    with pytest.raises(UsageError, match=r"--baseline .*codec"):
        Baseline(tmp_path / "b.json")
    assert [path.name for path in tmp_path.iterdir()] == ["b.json"]
