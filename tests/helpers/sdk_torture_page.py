"""docs/torture-sdks.md as text: the matrix, and why each failure is one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from deltatape.vary.variation import VARIATIONS
from helpers.sdk_table import COLUMNS, SAME, SILENTLY, Column
from helpers.sdk_torture import DIALECTS, FINISH, GZIP, HANGS, Told, cases

HEAD = """\
# What SDKs make of varied streams

Each SDK below, used as its documentation says, read a healthy stream of each dialect that it
supports: some words of text with a non-ASCII character, two calls, usage, as recorded in
[recordings/dialects](../recordings/dialects). Then it read the same stream in the variations of
[`deltatape torture`](torture.md), uncompressed and, if the variation is harmless, in gzip. What
it passed to its application is compared with what it passed for the unchanged stream.

- `same`: no difference; `-`: the variation does not apply to this stream.
- `raises E`: an exception or an error event, perhaps after some calls.
- **only its finish tells**: no error; less than the whole stream, or nothing, and only the finish
  reason shows it.
- **silently**: something differs, and the finish reason is a regular one.
- **hangs**: no end after 13 seconds, although the SDK's timeout, if it has one, is ten.

A harmless variation has to be `same`; a hostile one has to raise, or to be `same` because all that
counts had arrived. Anything else is a failure: its number leads to an explanation.

`scripts/torture-table COLUMN VARIATION` runs one cell again and prints what the SDK returns. This
page is written by `scripts/torture-table`; the tests run a part of it and fail if an SDK behaves
differently.

"""
TITLES = {
    "openai-chat": "Chat completions",
    "openai-responses": "Responses",
    "anthropic-messages": "Messages of Anthropic",
    "gemini": "Gemini",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why cells fail: those of these columns and variations; `end-...` is all that begin so."""

    columns: tuple[str, ...]
    variations: tuple[str, ...]
    text: str
    dialects: tuple[str, ...] = DIALECTS

    def explains(self, column: str, dialect: str, variation: str) -> bool:
        """Whether it is about a cell."""
        plain = variation.removeprefix(GZIP)
        return (
            column in self.columns
            and dialect in self.dialects
            and any(_is_named(plain, name) for name in self.variations)
        )


def _is_named(variation: str, name: str) -> bool:
    begins = name.removesuffix("...")
    return variation == name or (begins != name and variation.startswith(begins))


_CHAT, _OTHER, _CLAUDE = "openai-chat", "openai-responses", "anthropic-messages"
_OPENAI_PYTHON, _OPENAI_NODE = "openai, Python", "openai, Node"
_LANGCHAIN, _LITELLM = "LangChain", "LiteLLM"
_AI, _AI_CHAT = "AI SDK", "AI SDK, openai.chat"
_CLAUDE_PYTHON, _CLAUDE_NODE, _GENAI = "anthropic, Python", "anthropic, Node", "google-genai"

REASONS = (
    Reason(
        columns=(_GENAI,),
        variations=("comments", "comments-inside", "no-space", "ids", "event-message"),
        text="It knows no lines of an event stream but `data: ` with a space and blank ones: every"
        " other line - a comment, `id:`, `event:`, `data:{` - is taken for a piece of a JSON"
        " document that spans lines, as errors without a stream do, and what cannot be parsed ends"
        " the stream (`_api_client.py`, `_iter_response_stream`). A proxy that sends keep-alive"
        " comments is enough.",
    ),
    Reason(
        columns=(_AI,),
        variations=("cr",),
        dialects=(_OTHER, _CLAUDE),
        text="`eventsource-parser` keeps a CR at the end of a piece back, since an LF may follow,"
        " and does not look at it again when the stream ends: where lines end with CR alone, the"
        " last event is lost. That is `response.completed` or `message_stop`; chat completions lose"
        " `[DONE]`, which nothing needs. All text and calls are there, the finish says"
        " `interrupted`.",
    ),
    Reason(
        columns=(_OPENAI_PYTHON,),
        variations=("delta-null",),
        text="The helper calls `choice.delta.to_dict()` without looking (`_completions.py`). Some"
        " servers send `delta: null` with the finish reason.",
    ),
    Reason(
        columns=(_LANGCHAIN,),
        variations=("delta-null",),
        text="A chunk whose delta is null is left out before its finish reason is looked at.",
    ),
    Reason(
        columns=(_LANGCHAIN,),
        variations=("r-done-only-args",),
        text="Arguments are taken from `response.function_call_arguments.delta` alone, never from"
        " the `.done` events that repeat them: where a server sends no deltas, tools run with"
        " `{}`.",
    ),
    Reason(
        columns=(_LITELLM,),
        variations=("args-custom-empty",),
        text="An entry with the key `custom`, even `{}`, is read as the call of a custom tool; that"
        " has no name, so `stream_chunk_builder` leaves the call out. The finish says"
        " `tool_calls`, and there are none.",
    ),
    Reason(
        columns=(_LITELLM,),
        variations=("end-before-first",),
        text="A body without any event is an answer without text, which ended with `stop`.",
    ),
    Reason(
        columns=(_OPENAI_PYTHON, _LANGCHAIN),
        variations=("end-in-text", "end-in-arguments", "end-after-call", "end-before-end"),
        dialects=(_CHAT,),
        text="The end of the body is the end of the answer: neither a missing `[DONE]` nor a"
        " missing finish reason is an error. The half of a call is given as a call.",
    ),
    Reason(
        columns=(_LANGCHAIN,),
        variations=("end-in-text", "end-in-arguments", "end-after-call", "end-before-end"),
        dialects=(_OTHER,),
        text="Nothing asks for `response.completed`: what came before is added up and given.",
    ),
    Reason(
        columns=(_OPENAI_NODE,),
        variations=("end-in-text", "end-in-arguments", "end-after-call", "end-before-end"),
        dialects=(_OTHER,),
        text="`finalResponse()` gives the snapshot that it has when the body ends; without"
        " `response.completed` its status is still `in_progress`, which nothing reports.",
    ),
    Reason(
        columns=(_CLAUDE_PYTHON,),
        variations=("end-in-text", "end-in-arguments", "end-after-call", "end-before-end"),
        text="`get_final_message()` gives the snapshot that it has when the body ends, with or"
        " without `message_stop`; the arguments of a call that was cut are those of the JSON that"
        " had come, parsed as far as it goes.",
    ),
    Reason(
        columns=(_AI, _AI_CHAT),
        variations=("end-...",),
        text="A stream that ends early ends with the finish reason `interrupted` and without an"
        " error part. (The provider `openai-compatible` does throw.)",
    ),
    Reason(
        columns=(_GENAI,),
        variations=("end-...",),
        text="It adds nothing up, so that nothing can be missing: chunks come until the body ends,"
        " and that the last one had no finish reason is for the application to see.",
    ),
    Reason(
        columns=(_OPENAI_NODE, _CLAUDE_NODE),
        variations=("stall-...",),
        text="`timeout` ends with the head of the response (`fetchWithTimeout` clears its timer"
        " then): how long a body may be silent is not bounded by it. Node's own `fetch` gives up"
        " after 300 s without a byte.",
    ),
    Reason(
        columns=(_AI, _AI_CHAT),
        variations=("stall-...",),
        text="`streamText` has no bound unless one is given; Node's own `fetch` gives up after"
        " 300 s without a byte.",
    ),
)


def page(told: Told) -> str:
    """The whole page."""
    return HEAD + "".join(_parts(told))


def failures(told: Told) -> Iterator[tuple[str, str, str, str]]:
    """The cells that fail: column, dialect, variation, word."""
    for column in COLUMNS:
        for dialect, words in told.words[column.name].items():
            for name, word in words.items():
                if is_failure(name, word):
                    yield column.name, dialect, name, word


def is_failure(name: str, word: str) -> bool:
    """Whether a cell is not as it should be."""
    if name.removeprefix(GZIP) in _HARMLESS:
        return word != SAME
    return word.startswith((SILENTLY, FINISH, HANGS))


_HARMLESS = frozenset(one.name for one in VARIATIONS if one.harmless)


def reason_of(column: str, dialect: str, name: str) -> int | None:
    """The place of the explanation of a cell, from 1."""
    for number, reason in enumerate(REASONS, 1):
        if reason.explains(column, dialect, name):
            return number
    return None


def _parts(told: Told) -> Iterator[str]:
    rows = [
        (
            column.name,
            ", ".join(f"{name} {one}" for name, one in told.versions[column.name].items()),
        )
        for column in COLUMNS
    ]
    yield _table(("", "packages"), rows)
    for dialect in DIALECTS:
        columns = [column for column in COLUMNS if dialect in column.dialects]
        yield f"\n## {TITLES[dialect]}\n"
        yield from _harmless(told, dialect, columns)
        yield from _hostile(told, dialect, columns)
    yield "\n## Why\n\n"
    for number, reason in enumerate(REASONS, 1):
        yield f'{number}. <a id="why-{number}"></a>**{"** and **".join(reason.columns)}**,'
        yield f" {', '.join(f'`{name}`' for name in reason.variations)}: {reason.text}\n"


def _harmless(told: Told, dialect: str, columns: Sequence[Column]) -> Iterator[str]:
    placed = {case.name for case in cases(dialect) if case.name.removeprefix(GZIP) in _HARMLESS}
    plain = [one.name for one in VARIATIONS if one.name in placed]
    lines = []
    for name in (*plain, *(GZIP + name for name in plain if GZIP + name in placed)):
        words = [told.words[column.name][dialect].get(name, SAME) for column in columns]
        if set(words) != {SAME} and not _as_plain(told, dialect, columns, name):
            lines.append(_row(name, dialect, columns, words))
    alike = len(plain) - len(lines)
    yield f"\nHarmless: {len(plain)} variations, {alike} of them `same` in all columns."
    yield "\n" if any(line[0].startswith(GZIP) for line in lines) else " In gzip as well.\n"
    if lines:
        yield "\n" + _table(("", *(column.name for column in columns)), lines)


def _as_plain(told: Told, dialect: str, columns: Sequence[Column], name: str) -> bool:
    """Whether a row in gzip says what the plain one says."""
    if not name.startswith(GZIP):
        return False
    words = (told.words[column.name][dialect] for column in columns)
    return all(one.get(name, SAME) == one.get(name.removeprefix(GZIP), SAME) for one in words)


def _hostile(told: Told, dialect: str, columns: Sequence[Column]) -> Iterator[str]:
    placed = {case.name for case in cases(dialect)}
    lines = []
    for one in VARIATIONS:
        if not one.harmless and one.name in placed:
            words = [told.words[column.name][dialect].get(one.name, SAME) for column in columns]
            lines.append((one.name, _row(one.name, dialect, columns, words)[1:]))
    merged = []
    for cells, group in groupby(lines, key=lambda line: line[1]):
        names = [name for name, _ in group]
        merged.append((", ".join(names), *cells))
    yield f"\nHostile: {len(lines)} variations.\n\n"
    yield _table(("", *(column.name for column in columns)), merged)


def _row(
    name: str, dialect: str, columns: Sequence[Column], words: Sequence[str]
) -> tuple[str, ...]:
    cells = (
        _cell(name, column.name, dialect, word) for column, word in zip(columns, words, strict=True)
    )
    return (name, *cells)


def _cell(name: str, column: str, dialect: str, word: str) -> str:
    shown = word.replace("_", "\\_")
    if not is_failure(name, word):
        return shown
    number = reason_of(column, dialect, name)
    return f"**{shown}** [{number}](#why-{number})"


def _table(head: Sequence[object], rows: Sequence[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)
