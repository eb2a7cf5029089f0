import json
import random
import re
import shutil
import subprocess

import pytest

from deltatape.suspects.parsers.failure import failure_of
from deltatape.suspects.parsers.scripted import python, v8

TEXTS = (
    *("", "{", '{"a":', '{"a":1', "}", "{}{", "undefined", "[object Object]", '{"a":1}>', "nul"),
    *("{a:1}", "{'a':1}", '{"a":1,}', "[1,]", "1.", "1e", "-", "01", '{"a" 1}', '"\\x"', "NaN"),
    *('"\\u12"', '"a\nb"', '{"a":1}{"a":2}', "  ", '{"a":tru}', "abc", '{"a":"b', "10 20", ","),
    *('{"a":1,"b"}', '{"a":1} "x"', '{"a":1,"b" 2', " undefined", "[1 2", '["a" "b"]', "é"),
)
WHOLE = '{"city":"Paris","n":-1.5e3,"list":[1,2,{"c":"x\\ny"}],"d":null}'
SCRIPT = """
const said = JSON.parse(require("fs").readFileSync(0, "utf8")).map((text) => {
  try { JSON.parse(text); return null } catch (error) { return error.message }
});
console.log(JSON.stringify(said));
"""


def _texts() -> list[str]:
    chance = random.Random(3)
    found = [*TEXTS]
    for _ in range(400):
        at, to = sorted(chance.choices(range(len(WHOLE)), k=2))
        found += [WHOLE[:at], WHOLE[:at] + WHOLE[to:]]
        found.append(WHOLE[:at] + chance.choice('{}[],:"\\1-.e >\n') + WHOLE[at:])
    return found


@pytest.mark.skipif(shutil.which("node") is None, reason="no Node here")
def test_node_says_the_same() -> None:
    texts = _texts()
    run = subprocess.run(
        ["node", "-e", SCRIPT],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    for text, said in zip(texts, json.loads(run.stdout), strict=True):
        failure = failure_of(text)
        if said is None or failure is None:
            assert said is failure is None, text
        else:
            assert said in tuple(v8(failure)), text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a":}', "Unexpected token } in JSON at position 5"),
        ('{"a":"x', "Unterminated string in JSON at position 7 (line 1 column 8)"),
        ("{}\n{", "Unexpected non-whitespace character after JSON at position 3 (line 2 column 1)"),
        ("{'a'", "Expected property name or '}' in JSON at position 1 (line 1 column 2)"),
        ("[object Object]", '"[object Object]" is not valid JSON'),
        ("[object Object]", "Unexpected token o in JSON at position 1"),
        ("x" * 30, f"Unexpected token 'x', \"{'x' * 10}\"... is not valid JSON"),
        ("", "Unexpected end of JSON input"),
    ],
)
def test_older_and_newer_engines_have_other_words(text: str, said: str) -> None:
    failure = failure_of(text)
    assert failure
    assert said in tuple(v8(failure))


def test_python_says_what_it_says() -> None:
    for text in _texts():
        failure = failure_of(text)
        if failure is not None:
            said = tuple(python(failure))
            if not said:
                json.loads(text)  # NaN
            else:
                with pytest.raises(json.JSONDecodeError, match=re.escape(said[0])):
                    json.loads(text)


def test_texts_that_exhaust_python_have_no_words() -> None:
    failure = failure_of("[" * 100_000)
    assert failure
    assert tuple(python(failure)) == ()
    nan = failure_of("NaN")
    assert nan
    assert tuple(python(nan)) == ()
