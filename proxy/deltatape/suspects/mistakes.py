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
    """A mistake, the dialects in which it can occur, and its cost in the search."""

    mistake: ClientMistake
    families: frozenset[DialectFamily]
    cost: int


_BY_INDEX = "keep one entry per call in a map, by the index that every fragment has"

_TABLE: Mapping[str, Mapping[str, tuple[frozenset[DialectFamily], str, str]]] = {
    # By what a client tells calls apart.
    "key": {
        "single": (
            STREAMED,
            "keeps one call at a time, so that a new id discards the call before it",
            _BY_INDEX,
        ),
        "current": (
            STREAMED,
            "appends every fragment to the call that began last and ignores its index",
            _BY_INDEX,
        ),
        "one": (STREAMED, "puts the fragments of all calls into one", _BY_INDEX),
        "none": (
            ALL,
            "treats every event as a separate call",
            f"{_BY_INDEX}, append arguments to it, and use it when the stream has ended",
        ),
        "id": (CHAT, "stores fragments by id, but only the first fragment has one", _BY_INDEX),
        "strict": (
            CHAT,
            "fails if a fragment has no index",
            "without an index, continue the last call; start a new one if the fragment has a name",
        ),
        "list": (
            KEYED,
            "uses the index as a position in its list",
            "use a map, not a list: indexes need not begin at 0",
        ),
        "position": (
            CHAT | PARTS,
            "stores fragments by their position in the event, which starts at 0 in each event",
            _BY_INDEX,
        ),
        "name": (
            CHAT | PARTS,
            "stores calls by the name of their function",
            "append calls to a list: one function may be called twice",
        ),
        "call-id": (
            ITEMS,
            "looks for the call id in argument deltas, where there is none",
            (
                "take id, name and arguments from response.output_item.done, or map "
                "item_id to the item of response.output_item.added"
            ),
        ),
        "delta-item-id": (
            ITEMS,
            "builds calls from argument deltas alone, which have neither name nor call id",
            "take id, name and arguments from response.output_item.done",
        ),
        "item-id": (
            ITEMS,
            "knows items by their id only, which some servers change from event to event",
            "key by output_index, and answer to call_id",
        ),
    },
    # What it does with the ids, names and arguments of fragments.
    "id": {
        "null-too": (
            CHAT,
            "overwrites the id with that of each later fragment, which has none",
            "set the id only if the fragment has one",
        ),
        "empty-too": (
            CHAT,
            "overwrites the id with an empty one",
            "set the id only if the fragment's is not empty",
        ),
        "concatenate": (CHAT, "appends ids", "set the id once, never append to it"),
        "drop": (CHAT | BLOCKS, "discards the id", "keep the id of the first fragment"),
        "item": (
            ITEMS,
            "answers to the item's id instead of its call_id",
            "use call_id; the item's id is internal",
        ),
    },
    "name": {
        "null-too": (
            CHAT,
            "overwrites the name with that of each later fragment, which has none",
            "set the name only if the fragment has one",
        ),
        "empty-too": (
            CHAT,
            "overwrites the name with an empty one",
            "set the name only if the fragment's is not empty",
        ),
        "concatenate": (CHAT, "appends names", "set the name once, never append to it"),
        "at-opening": (
            CHAT,
            "looks for the name only in the fragment that opens a call",
            "set the name whenever a fragment has one and the call has none",
        ),
    },
    "arguments": {
        "drop-first": (
            CHAT,
            "discards the arguments in the event that opens a call",
            "start the buffer with the arguments of the first fragment, not with an empty string",
        ),
        "first-only": (
            CHAT,
            "keeps only the arguments of the first fragment",
            "append the arguments of every fragment",
        ),
        "replace": (
            STREAMED,
            "keeps only the arguments of the last fragment",
            "append the arguments of every fragment",
        ),
        "index": (
            CHAT,
            "uses the index of the entry as its arguments",
            "read function.arguments, as text, and append it",
        ),
        "event-number": (
            CHAT | BLOCKS,
            "uses the number of the event as the arguments",
            "read function.arguments, as text, and append it",
        ),
    },
    "absent": {
        "undefined": (
            CHAT,
            'appends "undefined" where a fragment has no arguments',
            'append `arguments ?? ""`',
        ),
        "None": (
            CHAT,
            'appends "None" where a fragment has no arguments',
            'append `arguments or ""`',
        ),
    },
    "value": {
        "string": (
            CHAT,
            'turns arguments that are an object into "[object Object]"',
            "serialise arguments that are not a string",
        ),
        "raise": (
            CHAT,
            "throws if arguments are an object",
            "serialise arguments that are not a string",
        ),
    },
    "written": {
        "python-repr": (
            ALL,
            "repeats arguments as Python prints them",
            "write them with json.dumps, not with str",
        ),
        "object-text": (
            ALL,
            'repeats "[object Object]" instead of arguments',
            "write them with JSON.stringify, not with String or a template",
        ),
        "twice": (ALL, "encodes arguments twice", "repeat the text as it came: it is JSON already"),
    },
    # Which events it reads, and when it uses a call.
    "source": {
        "added": (
            ITEMS | BLOCKS,
            "takes the arguments from the event that opens the call, where they are still empty",
            "take the arguments from the event that ends the call, or append all deltas",
        ),
        "added+deltas": (
            ITEMS | BLOCKS,
            "puts what the opening event holds in front of the deltas",
            "begin with an empty buffer; use what the opening event holds only if no delta comes",
        ),
        "deltas": (
            ITEMS,
            "reads only argument deltas, not the events that end a call",
            "take the arguments of response.output_item.done where there are any",
        ),
        "arguments-done": (
            ITEMS,
            "takes arguments from response.function_call_arguments.done only",
            "fall back to the item that is done",
        ),
        "item-done": (
            ITEMS,
            "takes calls from response.output_item.done only",
            "fall back to response.completed",
        ),
        "completed": (
            ITEMS,
            "takes calls from the last event only",
            "collect response.output_item.done as well: the last event may list nothing",
        ),
    },
    "emit": {
        "on-tool-calls": (
            KEYED,
            "uses calls only if the finish reason says so",
            "use the calls that came, whatever the finish reason is",
        ),
        "last-tool-calls": (
            CHAT,
            "uses calls only if the last finish reason says so",
            "use the calls that came, whatever the finish reason is",
        ),
        "on-finish": (
            KEYED,
            "uses calls only once a finish reason has come",
            "use the calls when the stream ends, too",
        ),
        "at-close": (
            ITEMS | BLOCKS,
            "uses a call only when an event ends it",
            "use calls without such an event at the end of the stream",
        ),
        "when-parses": (
            STREAMED,
            "uses a call as soon as its arguments parse",
            "wait for the end of the call",
        ),
        "at-name": (
            CHAT,
            "uses a call as soon as it has id and name",
            "wait for the end of the call",
        ),
    },
    "stop": {
        "finish": (
            CHAT,
            "stops reading at the first finish_reason that is not null",
            "read on to [DONE]; ignore an empty finish_reason",
        ),
        "finish-before": (
            CHAT,
            "handles the finish reason before the deltas of the same event",
            "handle the deltas first",
        ),
        "first-entry": (
            STREAMED,
            "stops after the first event of a call",
            "read the stream to its end",
        ),
        "blank": (PARTS, "stops at the first line without text", 'stop at "done": true only'),
    },
    "entries": {
        "first": (
            CHAT | PARTS,
            "reads only the first entry of an event's calls",
            "loop over all entries of an event",
        ),
        "with-arguments": (
            CHAT,
            "reads only entries with arguments",
            "read the entry that brings id and name, too",
        ),
    },
    "guard": {
        "unguarded": (
            CHAT,
            "expects choices[0].delta in every event",
            "skip events without choices, and choices without delta",
        ),
    },
    "kinds": {
        "no-legacy": (
            CHAT,
            "does not read function_call",
            "read delta.function_call as a call without id",
        ),
        "no-custom": (
            CHAT | ITEMS,
            "does not read the input of custom tools",
            "read custom_tool_call_input deltas, or the item's input",
        ),
        "wrapped": (
            ITEMS,
            'filters items by the type "function_tool_call", which the API does not send',
            'filter by "function_call"',
        ),
    },
    "whole": {
        "overwrite": (
            PARTS,
            "assigns the list of calls with every event that has one",
            "append calls to a list",
        ),
        "nameless-dropped": (
            PARTS,
            "drops parts without a name, which bring arguments",
            "give nameless parts to the call that is open",
        ),
    },
    "incomplete": {
        "dropped": (
            ALL,
            "drops calls without id or name",
            "report calls that are dropped, and why",
        ),
    },
    "repeats": {
        "dropped": (
            ALL,
            "drops calls that are equal to another one",
            "keep equal calls: a model may want the same call twice",
        ),
    },
    # How it parses arguments, and what it makes of the end of a stream.
    "parse": {
        "fragments": (
            STREAMED,
            "parses each fragment of the arguments by itself",
            "append all fragments and parse once, at the end",
        ),
        "fragments-spread": (
            STREAMED,
            "parses each fragment of the arguments by itself and spreads the result",
            "append all fragments and parse once, at the end",
        ),
        "swallow": (
            ALL,
            "runs a call with {} when its arguments do not parse",
            "report arguments that do not parse, also to the model",
        ),
        "drop": (
            ALL,
            "drops calls whose arguments do not parse",
            "tell the model that its arguments could not be read; treat empty ones as {}",
        ),
        "repair": (
            ALL,
            "closes open brackets and strings in truncated arguments, and runs the call",
            "never run repaired arguments: the stream was cut",
        ),
        "repair-whole-members": (
            ALL,
            "drops the last, incomplete member of truncated arguments, and runs the call",
            "never run repaired arguments: the stream was cut",
        ),
    },
    "empty": {
        "parsed": (
            STREAMED,
            "parses empty arguments",
            "treat empty arguments as {} if the tool requires nothing",
        ),
    },
    "ending": {
        "ignored": (
            ALL,
            "treats the end of the connection as the end of the answer",
            "without a terminal event, report a broken stream and run nothing",
        ),
    },
    "calls": {
        "ignored": (
            ALL,
            "reads text only, so that calls are dropped",
            "read calls in every stream, until one has none",
        ),
    },
    # How it finds calls in text, and how it frames and decodes bytes.
    "tags": {
        "flush-early": (
            ALL,
            "passes on the text after an opening tag before the closing tag has come",
            "hold everything back until the whole closing tag has come",
        ),
        "per-chunk": (
            ALL,
            "looks for tags in each fragment of text by itself",
            "search the text so far, not the fragment",
        ),
        "rescan": (
            ALL,
            "searches the whole text again with every fragment, and finds earlier calls again",
            "remember where the last call ended",
        ),
        "braces": (ALL, "counts braces in strings, too", "use a JSON parser to find the end"),
        "first-call": (
            ALL,
            "finds only the first call of a text",
            "continue the search after each closing tag",
        ),
        "reasoning": (ALL, "looks for calls in the reasoning, too", "search the text only"),
    },
    "framing": {
        "reads": (
            ALL,
            "treats each network read as whole lines",
            "keep the text after the last line end for the next read",
        ),
        "blank-lines": (
            ALL,
            r"splits events only at \n\n, not at \r\n\r\n",
            "end lines at CRLF, LF or CR",
        ),
        "space": (
            ALL,
            'reads "data: " only with a space',
            "treat the space after the colon as optional",
        ),
        "every-line": (
            ALL,
            "parses every line as JSON, comments and event lines, too",
            "read only data lines",
        ),
        "one-per-read": (
            ALL,
            "takes one event from each network read",
            "loop over all events of a read",
        ),
    },
    "decode": {
        "reads": (
            ALL,
            "decodes each network read by itself, so that characters across reads are damaged",
            "use an incremental UTF-8 decoder",
        ),
        "reads-ignore": (
            ALL,
            (
                "decodes each network read by itself and ignores errors: characters across reads"
                " are missing"
            ),
            "use an incremental UTF-8 decoder",
        ),
    },
}
"""Each axis with its mistakes: where one can occur, what such a client does, and the fix."""

_COSTS = {
    ("stop", "first-entry"): 15,
    ("kinds", "wrapped"): 15,
    ("incomplete", "dropped"): 4,
    ("framing", "every-line"): 25,
    ("framing", "one-per-read"): 15,
}
"""Mistakes that are not as usual as others.

A guard that only matters beside another mistake costs less, a far-fetched one more.
"""

MISTAKES: Mapping[tuple[str, str], MistakeOption] = {
    (axis, value): MistakeOption(
        ClientMistake(axis=axis, value=value, says=says, fix=fix),
        families,
        _COSTS.get((axis, value), USUAL),
    )
    for axis, values in _TABLE.items()
    for value, (families, says, fix) in values.items()
}
"""By axis and value."""
