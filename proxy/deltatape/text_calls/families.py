"""All notations of calls in text, and how a text is read in all of them at once.

Strategy. One search for the literal openers of all families. The families that use an opener read
the text after it, the most specific first; a call that is read consumes its characters, so that no
call is found twice. A tag without a body in its family's grammar is prose, and so is everything
inside inline code or fenced blocks. The text is searched as a whole, so fragment boundaries do not
matter.

Invariants. Calls are in order and do not overlap. The time is linear in the text: readers look
ahead no further than they consume, or search through `TextSource.find`, or stop after a fixed
number of characters. Nothing raises on any text.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from deltatape.text_calls import begins_as_json
from deltatape.text_calls._code import CodeTracker
from deltatape.text_calls._notation import NotationFamily, Offered, TextSource, WrittenCall
from deltatape.text_calls.gemma import GEMMA
from deltatape.text_calls.json_calls import (
    COHERE,
    DEEPSEEK,
    GENERIC,
    HARMONY,
    HERMES,
    INTERNLM,
    KIMI_K2,
    MISTRAL,
)
from deltatape.text_calls.parameter_tags import (
    DSML,
    FUNCTION_CALLS,
    GLM,
    HUNYUAN,
    MINIMAX_M2,
    MINIMAX_M3,
    QWEN3_CODER,
    STEP3,
)
from deltatape.text_calls.python_tags import LFM2, LLAMA, read_whole

FAMILIES: tuple[NotationFamily, ...] = (
    GENERIC,
    QWEN3_CODER,
    HERMES,
    HUNYUAN,
    GLM,
    MISTRAL,
    LLAMA,
    STEP3,
    KIMI_K2,
    DEEPSEEK,
    DSML,
    MINIMAX_M2,
    MINIMAX_M3,
    HARMONY,
    GEMMA,
    COHERE,
    INTERNLM,
    LFM2,
    FUNCTION_CALLS,
)
"""In the order in which they are asked where they share an opener."""

_BY_OPENER: dict[str, tuple[NotationFamily, ...]] = {
    opener: tuple(candidate for candidate in FAMILIES if opener in candidate.openers)
    for family in FAMILIES
    for opener in family.openers
}
_OPENERS = re.compile(
    "|".join(re.escape(opener) for opener in sorted(_BY_OPENER, key=len, reverse=True))
)


def read_calls(text: str, offered: Offered) -> tuple[WrittenCall, ...]:
    """Find the calls in a text; see `find_calls`."""
    opener = _OPENERS.search(text)
    if opener is None and not begins_as_json(text, offered):
        return ()
    source = TextSource(text, offered)
    calls = read_whole(source)
    if calls:
        return tuple(_place(LLAMA, calls, 0))
    found: list[WrittenCall] = []
    code = CodeTracker(text)
    end = 0
    while opener is not None:
        at = opener.end()
        for family in () if code.inside(opener.start()) else _BY_OPENER[opener[0]]:
            calls = family.read(source, opener.start())
            if calls:
                start = opener.start() if calls[0].start < 0 else calls[0].start
                found += _place(family, calls, max(start, end))
                at = end = max(at, calls[-1].end)
                code.skip(end)
                break
        opener = _OPENERS.search(text, at)
    return tuple(found)


def _place(
    family: NotationFamily, calls: Sequence[WrittenCall], start: int
) -> Iterator[WrittenCall]:
    """Yield `calls`, which begin at `start`, with their places and the name of their family."""
    for call in calls:
        yield replace(call, family=family.name, start=start)
        start = call.end
