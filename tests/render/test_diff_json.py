"""`diff --format json`, held against its schema."""

import json
from itertools import pairwise
from pathlib import Path

import jsonschema
import pytest

from deltatape.compare import compare_exchanges, first_damage
from deltatape.diagnose.rebuild import Analysis, analyse
from deltatape.mutate import MUTATORS, Seeded
from deltatape.render.diff import Hop
from deltatape.render.diff_json import diff_json
from helpers.chat import FINISH
from helpers.compared import analysed, call, chat, words
from helpers.mutated import recorded

SCHEMA = json.loads(
    (Path(__file__).resolve().parents[2] / "docs" / "diff.schema.json").read_bytes()
)


def document(*sides: Analysis) -> dict[str, object]:
    hops = [
        Hop(left=f"{at}.tape", right=f"{at + 1}.tape", comparison=compare_exchanges(*pair))
        for at, pair in enumerate(pairwise(sides))
    ]
    text = diff_json(hops, first_damage(hop.comparison for hop in hops))
    assert text.isascii()
    found: dict[str, object] = json.loads(text)
    jsonschema.Draft202012Validator(SCHEMA).validate(found)
    return found


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("stem", ["openai-chat", "openai-responses", "ai-sdk-ui"])
def test_whatever_was_done_fits_the_schema(stem: str) -> None:
    healthy = recorded(stem)
    for mutator in MUTATORS:
        mutated = mutator.mutate(healthy, Seeded(3))
        if mutated is not None:
            document(analyse(healthy), analyse(mutated))


def test_a_damaged_call_is_told_with_both_sides_and_its_cause() -> None:
    whole, cut = (chat(*words("a"), *call(*pieces), FINISH) for pieces in (("{", "}"), ("{",)))
    found = document(whole, whole, cut)
    assert (found["equal"], found["damaged"]) == (False, 1)
    hops = found["hops"]
    assert isinstance(hops, list)
    assert hops[0]["left"] == {
        "name": "0.tape",
        "exchange": 1,
        "id": "",
        "dialect": "openai-chat",
        "events": 6,
    }
    (damaged,) = hops[1]["calls"]
    assert (damaged["damage"], damaged["left"]["arguments"], damaged["right"]["arguments"]) == (
        "arguments",
        "{}",
        "{",
    )
    assert damaged["cause"] == {
        "kind": "dropped",
        "left": [3],
        "right": [],
        "part": None,
        "differences": [],
    }
    assert hops[1]["changes"][0] == {
        "kind": "equal",
        "left": [0, 1, 2],
        "right": [0, 1, 2],
        "part": None,
        "differences": [],
    }


def test_a_lost_call_other_framing_and_content_fit_the_schema() -> None:
    document(chat(*call("{}"), FINISH), chat(FINISH))
    document(analyse(recorded("openai-responses")), chat(FINISH))
    framed = document(analysed(b"data: {}\n\n"), analysed(b": x\n\ndata:{}\n\n"))
    assert [each["what"] for each in framed["hops"][0]["framing"]] == ["comments", "fields"]  # type: ignore[index]
    ignored = document(*(chat({"id": name, "choices": []}) for name in "ab"))
    assert ignored["hops"][0]["ignored"] == [{"path": "id", "events": 1}]  # type: ignore[index]
