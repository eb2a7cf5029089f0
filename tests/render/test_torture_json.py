import json

from deltatape.model.torture import Verdict
from deltatape.render.torture_json import torture_json
from helpers.tortured import cell, failed, result


def test_the_document_has_all_that_is_known() -> None:
    found = result(
        cell("crlf", verdict=Verdict.NO_PLACE),
        failed(seed=3, kept="kept/x.tape", seconds=0.12345),
        idle=("#2",),
    )
    told = json.loads(torture_json(found))
    first, second = told.pop("cells")
    assert [one["name"] for one in told.pop("variations")] == ["every-byte", "crlf"]
    assert told == {
        "version": 1,
        "passes": False,
        "problem": "",
        "printed": "",
        "command": ["app"],
        "tapes": ["x.tape"],
        "exchanges": ["#1"],
        "unplayed": ["#2"],
        "runs": 2,
        "seconds": 1.5,
    }
    assert (first["verdict"], first["passes"], first["seed"]) == ("no-place", True, None)
    assert second == {
        "variation": "every-byte",
        "harmless": True,
        "exchange": "#1",
        "verdict": "differs",
        "passes": False,
        "why": "exit code 1",
        "seed": 3,
        "seconds": 0.123,
        "runs": 1,
        "reproduce": "deltatape torture x.tape --only every-byte -- app",
        "tape": "kept/x.tape",
        "printed": "Traceback\nboom",
    }


def test_what_tried_nothing_passes_nothing() -> None:
    told = json.loads(torture_json(result(cell("crlf", verdict=Verdict.NO_PLACE))))
    assert told["passes"] is False
    assert told["problem"].startswith("nothing was tried: none of the chosen variations has ")
