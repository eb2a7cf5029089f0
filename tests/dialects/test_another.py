"""A dialect is added by its module and its entry in `dialects`: nothing else has to know of it."""

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import deltatape
from deltatape.dialects import DIALECTS
from helpers.program import uncovered

PACKAGE = Path(deltatape.__file__).parent
TOY = '''
"""A dialect of nobody's: a line per piece, `{"toy": "say", "text": "..."}`, and an end."""

from typing import ClassVar

from deltatape.dialects._base import Errors, Hints, Traits
from deltatape.dialects._chat_request import read_request
from deltatape.dialects._reply import DialectPolicy
from deltatape.dialects._table import (
    DialectTable,
    FinishStep,
    TableReducer,
    TerminalStep,
    TextStep,
    path,
)
from deltatape.model.reply import Channel
from deltatape.model.request_summary import RequestSummary
from deltatape.model.stream import Format

_TABLE = DialectTable(
    name="toy",
    terminator="end",
    policy=DialectPolicy(),
    type_keys=("toy",),
    events={
        "say": (TextStep(channel=Channel.TEXT, text=(path("text"),)),),
        "end": (FinishStep(reason=path("why")), TerminalStep()),
    },
)


def _error(status: int, message: str) -> dict[str, object]:
    del status
    return {"toy": "failed", "error": message}


class Toy:
    """The dialect. See `Dialect`."""

    name: ClassVar[str] = _TABLE.name
    traits: ClassVar[Traits] = Traits(
        formats=frozenset({Format.NDJSON}),
        errors=Errors(document=_error),
        delta_keys=frozenset({"text"}),
    )

    def claims(self, hints: Hints) -> bool:
        return "toy" in hints.members

    def serves(self, path: str) -> bool:
        return path.endswith("/toy")

    def read_request(self, body: bytes, path: str) -> RequestSummary:
        del path
        return read_request(body)

    def reducer(self, request: RequestSummary) -> TableReducer:
        return TableReducer(_TABLE, request)
'''
PROGRAM = """
import json, sys
from deltatape.diagnose.check import check
from deltatape.diagnose.rebuild import rebuild
from deltatape.match.endpoint import asked_places, recorded_places
from deltatape.model.stream import Format
from deltatape.mutate import MUTATORS, SeededChoices
from deltatape.vary.failures import ProviderFailure, answered, error_event
from deltatape.vary.variation import VARIATIONS
from helpers.taped import taped

LINES = [{"toy": "say", "text": "Good "}, {"toy": "say", "text": "day"}]
END = {"toy": "end", "why": "stop"}


def body(*lines):
    return "".join(json.dumps(each) + "\\n" for each in lines).encode()


def tape(data):
    head = ((b"content-type", b"application/x-ndjson"),)
    return taped(((1, data),), headers=head, target=b"/v1/toy")


whole = tape(body(*LINES, END))
made = {each.name: each.make(whole, SeededChoices(1)) for each in VARIATIONS}
failed = answered(whole, "toy", ProviderFailure(status=500))
json.dump(
    {
        "dialect": rebuild(whole).dialect,
        "text": rebuild(whole).text,
        "codes": [found.code for found in check(whole)],
        "cut": [found.code for found in check(tape(body(*LINES)))],
        "mutators": [each.name for each in MUTATORS if "toy" in each.dialects],
        "finer": rebuild(made["finer-text"]).text if made["finer-text"] else None,
        "events": made["finer-text"].body.count(b"\\n") if made["finer-text"] else 0,
        "error": [rebuild(failed).dialect, rebuild(failed).error],
        "event": error_event("toy", Format.NDJSON, ProviderFailure(status=500)).decode(),
        "matches": bool({*recorded_places(whole.request)} & {*asked_places("POST", b"/v1/toy")}),
    },
    sys.stdout,
)
"""


def test_a_dialect_is_added_by_its_module_and_its_entry(tmp_path: Path) -> None:
    copy = tmp_path / "deltatape"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "incidents"))
    (copy / "dialects" / "toy.py").write_text(TOY)
    registry = copy / "dialects" / "__init__.py"
    entries = registry.read_text().replace("    AppEvents(),\n", "    Toy(),\n    AppEvents(),\n")
    lines = entries.replace(
        "from deltatape.model.app_names",
        "from deltatape.dialects.toy import Toy\nfrom deltatape.model.app_names",
    )
    registry.write_text(lines)
    places = (str(tmp_path), str(Path(__file__).resolve().parent.parent))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        check=False,
        capture_output=True,
        text=True,
        env={**uncovered(os.environ), "PYTHONPATH": os.pathsep.join(places)},
    )
    assert done.stderr == ""
    found = json.loads(done.stdout)
    assert (found["dialect"], found["text"], found["codes"]) == ("toy", "Good day", [])
    assert "S001" in found["cut"]
    assert found["mutators"] == [], "without a shape of events there are none"
    assert (found["finer"], found["events"]) == ("Good day", len("Good day") + 1)
    assert found["error"][0] == "toy"
    assert "fault of deltatape" in found["error"][1]
    assert json.loads(found["event"])["toy"] == "failed"
    assert found["matches"]


def test_no_dialect_imports_another() -> None:
    owners = {type(dialect).__module__ for dialect in DIALECTS}
    for owner in owners:
        place = PACKAGE.parent / Path(*owner.split("."))
        for file in place.rglob("*.py") if place.is_dir() else [place.with_suffix(".py")]:
            imported = {
                f"{node.module}.{alias.name}."
                for node in ast.walk(ast.parse(file.read_text()))
                if isinstance(node, ast.ImportFrom)
                for alias in node.names
            }
            others = tuple(f"{other}." for other in owners - {owner})
            assert not [name for name in imported if name.startswith(others)]
