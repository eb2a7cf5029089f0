"""Client mistakes: what each does, its fix, and the dialects in which it can occur.

A mistake is a value of an axis of `ClientModel`; `MISTAKES` has all of them, in the order in which
they are tried and reported.
"""

import enum
from collections.abc import Mapping
from typing import NamedTuple

from deltatape.model.suspect import ClientMistake

USUAL = 10
"""The cost of a mistake that is met in the wild."""


class DialectFamily(enum.Enum):
    """Dialects that clients read in the same way."""

    CHAT = "chat"
    ITEMS = "items"
    """Responses."""
    BLOCKS = "blocks"
    """Anthropic, Bedrock, Cohere."""
    PARTS = "parts"
    """Gemini, Ollama: calls in one piece."""


ALL = frozenset(DialectFamily)
CHAT = frozenset({DialectFamily.CHAT})
ITEMS = frozenset({DialectFamily.ITEMS})
BLOCKS = frozenset({DialectFamily.BLOCKS})
PARTS = frozenset({DialectFamily.PARTS})
STREAMED = ALL - PARTS
KEYED = CHAT | BLOCKS


class MistakeOption(NamedTuple):
    """A mistake, the dialects in which it can occur, and its cost in the search.

    A guard that only matters beside another mistake costs less than usual, a far-fetched one more.
    """

    mistake: ClientMistake
    families: frozenset[DialectFamily]
    cost: int


def mistake(
    axis: str,
    value: str,
    families: frozenset[DialectFamily],
    *,
    says: str,
    fix: str,
    cost: int = USUAL,
) -> MistakeOption:
    """Return the mistake `value` on `axis`. See `ClientMistake`."""
    return MistakeOption(ClientMistake(axis=axis, value=value, says=says, fix=fix), families, cost)


_BY_INDEX = "keep one entry per call in a map by the index that every piece carries"

# By what a client knows a call, its id, its name, its arguments.
_IN_CALLS: tuple[MistakeOption, ...] = (
    mistake(
        "key",
        "single",
        STREAMED,
        says="keeps one call at a time, so that a new id throws the call before away",
        fix=_BY_INDEX,
    ),
    mistake(
        "key",
        "current",
        STREAMED,
        says="appends every piece to the call that began last, whatever its index says",
        fix=_BY_INDEX,
    ),
    mistake("key", "one", STREAMED, says="puts the pieces of all calls into one", fix=_BY_INDEX),
    mistake(
        "key",
        "none",
        ALL,
        says="takes every event for a call of its own",
        fix=f"{_BY_INDEX}, append arguments to it, and use it when the stream has ended",
    ),
    mistake(
        "key",
        "id",
        CHAT,
        says="files pieces under their id, which only the first piece has",
        fix=_BY_INDEX,
    ),
    mistake(
        "key",
        "strict",
        CHAT,
        says="cannot do without an index",
        fix="take a missing index for: the same call as before, or a new one if it has a name",
    ),
    mistake(
        "key",
        "list",
        KEYED,
        says="uses the index as a position in its list",
        fix="use a map, not a list: indexes need not begin at 0",
    ),
    mistake(
        "key",
        "position",
        CHAT | PARTS,
        says="files pieces under their place in the event, which begins at 0 in each",
        fix=_BY_INDEX,
    ),
    mistake(
        "key",
        "name",
        CHAT | PARTS,
        says="files calls under their function's name",
        fix="append calls to a list: one function may be called twice",
    ),
    mistake(
        "key",
        "call-id",
        ITEMS,
        says="builds calls from argument deltas under a call id that those do not have",
        fix="take id, name and arguments from response.output_item.done, or map "
        "item_id to the item of response.output_item.added",
    ),
    mistake(
        "key",
        "delta-item-id",
        ITEMS,
        says="builds calls from argument deltas, which have neither name nor call id",
        fix="take id, name and arguments from response.output_item.done",
    ),
    mistake(
        "key",
        "item-id",
        ITEMS,
        says="knows items by their id only, which some servers change from event to event",
        fix="key by output_index, and answer to call_id",
    ),
    mistake(
        "id",
        "null-too",
        CHAT,
        says="overwrites the id with each later piece's, which has none",
        fix="set the id only if the piece has one",
    ),
    mistake(
        "id",
        "empty-too",
        CHAT,
        says="overwrites the id with an empty one",
        fix="set the id only if the piece's is not empty",
    ),
    mistake(
        "id", "concatenate", CHAT, says="appends ids", fix="set the id once, never append to it"
    ),
    mistake(
        "id", "drop", CHAT | BLOCKS, says="forgets the id", fix="keep the id of the first piece"
    ),
    mistake(
        "id",
        "item",
        ITEMS,
        says="answers to the item's id instead of its call_id",
        fix="use call_id; the item's id is internal",
    ),
    mistake(
        "name",
        "null-too",
        CHAT,
        says="overwrites the name with each later piece's, which has none",
        fix="set the name only if the piece has one",
    ),
    mistake(
        "name",
        "empty-too",
        CHAT,
        says="overwrites the name with an empty one",
        fix="set the name only if the piece's is not empty",
    ),
    mistake(
        "name",
        "concatenate",
        CHAT,
        says="appends names",
        fix="set the name once, never append to it",
    ),
    mistake(
        "name",
        "at-opening",
        CHAT,
        says="looks for the name in the piece that opens a call only",
        fix="set the name whenever a piece has one and the call has none",
    ),
    mistake(
        "arguments",
        "drop-first",
        CHAT,
        says="forgets the arguments that come in the event which opens a call",
        fix="begin the buffer with the first piece's arguments, not with an empty string",
    ),
    mistake(
        "arguments",
        "first-only",
        CHAT,
        says="keeps the arguments of the first piece only",
        fix="append the arguments of every piece",
    ),
    mistake(
        "arguments",
        "replace",
        STREAMED,
        says="keeps the arguments of the last piece only",
        fix="append the arguments of every piece",
    ),
    mistake(
        "arguments",
        "index",
        CHAT,
        says="takes the index of the entry for its arguments",
        fix="read function.arguments, as text, and append it",
    ),
    mistake(
        "arguments",
        "event-number",
        CHAT | BLOCKS,
        says="takes the number of the event for the arguments",
        fix="read function.arguments, as text, and append it",
    ),
    mistake(
        "absent",
        "undefined",
        CHAT,
        says='appends "undefined" where a piece has no arguments',
        fix='append `arguments ?? ""`',
    ),
    mistake(
        "absent",
        "None",
        CHAT,
        says='appends "None" where a piece has no arguments',
        fix='append `arguments or ""`',
    ),
    mistake(
        "value",
        "string",
        CHAT,
        says='makes "[object Object]" of arguments that are an object',
        fix="serialise arguments that are no string",
    ),
    mistake(
        "value",
        "raise",
        CHAT,
        says="throws at arguments that are an object",
        fix="serialise arguments that are no string",
    ),
    mistake(
        "written",
        "python-repr",
        ALL,
        says="repeats arguments as Python prints them",
        fix="write them with json.dumps, not with str",
    ),
    mistake(
        "written",
        "object-text",
        ALL,
        says='repeats "[object Object]" instead of arguments',
        fix="write them with JSON.stringify, not with String or a template",
    ),
    mistake(
        "written",
        "twice",
        ALL,
        says="encodes arguments twice",
        fix="repeat the text as it came: it is JSON already",
    ),
)


# Where it looks, when it stops, how it reads bytes.
_IN_READING: tuple[MistakeOption, ...] = (
    mistake(
        "source",
        "added",
        ITEMS | BLOCKS,
        says="takes the arguments from the event that opens the call, where they are still empty",
        fix="take the arguments from the event that ends the call, or append all deltas",
    ),
    mistake(
        "source",
        "added+deltas",
        ITEMS | BLOCKS,
        says="puts what the opening event holds in front of the deltas",
        fix="begin with an empty buffer; use what the opening event holds only if no delta comes",
    ),
    mistake(
        "source",
        "deltas",
        ITEMS,
        says="knows argument deltas only, no event that ends a call",
        fix="take the arguments of response.output_item.done where there are any",
    ),
    mistake(
        "source",
        "arguments-done",
        ITEMS,
        says="takes arguments from response.function_call_arguments.done only",
        fix="fall back to the item that is done",
    ),
    mistake(
        "source",
        "item-done",
        ITEMS,
        says="takes calls from response.output_item.done only",
        fix="fall back to response.completed",
    ),
    mistake(
        "source",
        "completed",
        ITEMS,
        says="takes calls from the last event only",
        fix="collect response.output_item.done as well: the last event may list nothing",
    ),
    mistake(
        "emit",
        "on-tool-calls",
        KEYED,
        says="uses calls only if the finish reason says so",
        fix="use the calls that came, whatever the finish reason is",
    ),
    mistake(
        "emit",
        "last-tool-calls",
        CHAT,
        says="uses calls only if the last finish reason says so",
        fix="use the calls that came, whatever the finish reason is",
    ),
    mistake(
        "emit",
        "on-finish",
        KEYED,
        says="uses calls only once a finish reason has come",
        fix="use the calls when the stream ends, too",
    ),
    mistake(
        "emit",
        "at-close",
        ITEMS | BLOCKS,
        says="uses a call only when an event ends it",
        fix="use calls without such an event at the end of the stream",
    ),
    mistake(
        "emit",
        "when-parses",
        STREAMED,
        says="uses a call as soon as its arguments parse",
        fix="wait for the end of the call",
    ),
    mistake(
        "emit",
        "at-name",
        CHAT,
        says="uses a call as soon as it has id and name",
        fix="wait for the end of the call",
    ),
    mistake(
        "stop",
        "finish",
        CHAT,
        says="stops reading at the first finish_reason that is not null",
        fix="go on to [DONE]; an empty finish_reason is none",
    ),
    mistake(
        "stop",
        "finish-before",
        CHAT,
        says="looks at the finish reason before the deltas of the same event",
        fix="take the deltas first",
    ),
    mistake(
        "stop",
        "first-entry",
        STREAMED,
        says="stops after the first event of a call",
        fix="read the stream to its end",
        cost=15,
    ),
    mistake(
        "stop",
        "blank",
        PARTS,
        says="stops at the first line without text",
        fix='stop at "done": true only',
    ),
    mistake(
        "entries",
        "first",
        CHAT | PARTS,
        says="reads the first entry of an event's calls only",
        fix="loop over all entries of an event",
    ),
    mistake(
        "entries",
        "with-arguments",
        CHAT,
        says="looks at entries with arguments only",
        fix="read the entry that brings id and name, too",
    ),
    mistake(
        "guard",
        "unguarded",
        CHAT,
        says="expects choices[0].delta in every event",
        fix="skip events without choices, and choices without delta",
    ),
    mistake(
        "kinds",
        "no-legacy",
        CHAT,
        says="does not read function_call",
        fix="read delta.function_call as a call without id",
    ),
    mistake(
        "kinds",
        "no-custom",
        CHAT | ITEMS,
        says="does not read the input of custom tools",
        fix="read custom_tool_call_input deltas, or the item's input",
    ),
    mistake(
        "kinds",
        "wrapped",
        ITEMS,
        says='filters items by the type "function_tool_call", which the API does not send',
        fix='filter by "function_call"',
        cost=15,
    ),
    mistake(
        "whole",
        "overwrite",
        PARTS,
        says="assigns the list of calls with every event that has one",
        fix="append calls to a list",
    ),
    mistake(
        "whole",
        "nameless-dropped",
        PARTS,
        says="drops parts without a name, which bring arguments",
        fix="give nameless parts to the call that is open",
    ),
    mistake(
        "incomplete",
        "dropped",
        ALL,
        says="drops calls without id or name",
        fix="report calls that are dropped, and why",
        cost=4,
    ),
    mistake(
        "repeats",
        "dropped",
        ALL,
        says="drops calls that equal another one",
        fix="keep equal calls: a model may call twice alike",
    ),
    mistake(
        "parse",
        "fragments",
        STREAMED,
        says="parses each piece of the arguments alone",
        fix="append all pieces, parse once at the end",
    ),
    mistake(
        "parse",
        "fragments-spread",
        STREAMED,
        says="parses each piece of the arguments alone and spreads what it gets",
        fix="append all pieces, parse once at the end",
    ),
    mistake(
        "parse",
        "swallow",
        ALL,
        says="runs a call with {} when its arguments do not parse",
        fix="report arguments that do not parse, to the model, too",
    ),
    mistake(
        "parse",
        "drop",
        ALL,
        says="drops calls whose arguments do not parse",
        fix="tell the model that its arguments could not be read; take empty ones for {}",
    ),
    mistake(
        "parse",
        "repair",
        ALL,
        says="closes what is open in arguments that were cut, and runs them",
        fix="never run repaired arguments: the stream was cut",
    ),
    mistake(
        "parse",
        "repair-whole-members",
        ALL,
        says="drops the member in which arguments were cut, and runs the rest",
        fix="never run repaired arguments: the stream was cut",
    ),
    mistake(
        "empty",
        "parsed",
        STREAMED,
        says="parses arguments without a byte",
        fix="take empty arguments for {} if the tool requires nothing",
    ),
    mistake(
        "ending",
        "ignored",
        ALL,
        says="takes the end of the connection for the end of the answer",
        fix="without a terminal event, report a broken stream and run nothing",
    ),
    mistake(
        "calls",
        "ignored",
        ALL,
        says="reads text only, so that calls are dropped",
        fix="read calls in every stream, until one has none",
    ),
    mistake(
        "tags",
        "flush-early",
        ALL,
        says="passes on what stands behind an opening tag before the closing tag has come",
        fix="hold everything back until the closing tag, whole, is there",
    ),
    mistake(
        "tags",
        "per-chunk",
        ALL,
        says="looks for tags in each piece of text alone",
        fix="search the text so far, not the piece",
    ),
    mistake(
        "tags",
        "rescan",
        ALL,
        says="searches the whole text again with every piece, and finds earlier calls anew",
        fix="remember where the last call ended",
    ),
    mistake(
        "tags",
        "braces",
        ALL,
        says="counts braces without minding strings",
        fix="use a JSON parser to find the end",
    ),
    mistake(
        "tags",
        "first-call",
        ALL,
        says="finds the first call of a text only",
        fix="search on behind each closing tag",
    ),
    mistake(
        "tags",
        "reasoning",
        ALL,
        says="looks for calls in the reasoning, too",
        fix="search the text only",
    ),
    mistake(
        "framing",
        "reads",
        ALL,
        says="takes each network read for whole lines",
        fix="keep what follows the last line end for the next read",
    ),
    mistake(
        "framing",
        "blank-lines",
        ALL,
        says=r"splits events at \n\n only, not at \r\n\r\n",
        fix="end lines at CRLF, LF or CR",
    ),
    mistake(
        "framing",
        "space",
        ALL,
        says='reads "data: " with a space only',
        fix="the space behind the colon is optional",
    ),
    mistake(
        "framing",
        "every-line",
        ALL,
        says="parses every line as JSON, comments and event lines, too",
        fix="read data lines only",
        cost=25,
    ),
    mistake(
        "framing",
        "one-per-read",
        ALL,
        says="takes one event from each network read",
        fix="loop over all events of a read",
        cost=15,
    ),
    mistake(
        "decode",
        "reads",
        ALL,
        says="decodes each network read alone, so that characters across reads are spoilt",
        fix="use an incremental UTF-8 decoder",
    ),
    mistake(
        "decode",
        "reads-ignore",
        ALL,
        says="decodes each network read alone and ignores errors, so that characters across reads"
        " are missing",
        fix="use an incremental UTF-8 decoder",
    ),
)

MISTAKES: Mapping[tuple[str, str], MistakeOption] = {
    (choice.mistake.axis, choice.mistake.value): choice for choice in (*_IN_CALLS, *_IN_READING)
}
"""By axis and value."""
