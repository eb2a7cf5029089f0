"""What JSON parsers say of a text that is not JSON, in the words of the languages clients use.

An application that logs or repeats such words tells which text it gave its parser: the error is the
fingerprint of the arguments that it ended up with. `json.loads` is at hand; the others are written
after their sources and documentation, V8's words are tested against Node.

One scan finds where and why the text fails (`failure.py`); each parser words it its way.
"""

from deltatape.suspects.parsers.compiled import dotnet, go, java, rust
from deltatape.suspects.parsers.failure import failure_of
from deltatape.suspects.parsers.scripted import python, v8

LIMIT = 2_000_000
"""Characters of a text from which on no parser is asked."""


def parser_errors(text: str) -> tuple[str, ...]:
    """What parsers say of `text`, any one of them; () if it is one JSON value."""
    failure = failure_of(text[:LIMIT])
    if failure is None:
        return ()
    words = (v8, python, go, rust, java, dotnet)
    return tuple(dict.fromkeys(said for speak in words for said in speak(failure)))


def stands_in(error: str, text: str) -> bool:
    """Whether `text`, of a log perhaps, has `error` in it as a whole: position 1 is not in 12."""
    at = text.find(error)
    while at >= 0:
        end = at + len(error)
        cut_before = at > 0 and text[at - 1].isalnum() and error[0].isalnum()
        cut_behind = end < len(text) and text[end].isalnum() and error[-1].isalnum()
        if not cut_before and not cut_behind:
            return True
        at = text.find(error, at + 1)
    return False
