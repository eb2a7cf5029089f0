"""Decides which output items are tool calls, who runs them, and where their arguments are.

The client runs what it must send an output for: functions and custom tools, which it defined, and
of the tools that the provider defined (BUILT_IN) `computer`, `local_shell`, `apply_patch`, `shell`
unless its environment is one of the provider's containers, and `tool_search` if its execution is
`client`. Everything else the provider runs itself and answers within the same response.

Source: https://platform.openai.com/docs/guides/tools (and the page of each tool), and
https://docs.x.ai/docs/guides/tools/overview for `x_search`.
"""

import enum
from collections.abc import Mapping
from typing import NamedTuple

from deltatape.dialects._json import get_object, get_str
from deltatape.model.reply import CallKind
from deltatape.model.request_summary import RequestSummary

NOT_ON_THE_WIRE = "function_tool_call"
"""A type that wrappers of the API use for `function_call`, and some servers send."""


class ArgumentsForm(enum.Enum):
    """The form of a call's arguments."""

    TEXT = "text"
    """A string: JSON, or the input of a custom tool."""
    VALUE = "value"
    """A JSON object."""
    FREE = "free"
    """A string or value that is not JSON object: code, a list of queries, nothing at all."""


class ItemShape(NamedTuple):
    """The meaning of an item type."""

    kind: CallKind
    name: str
    """The tool; "" where the item names it."""
    field: str
    """The member with the arguments; "" if there is none."""
    form: ArgumentsForm


_FUNCTION = ItemShape(CallKind.FUNCTION, "", "arguments", ArgumentsForm.TEXT)
_SHAPES = {
    "function_call": _FUNCTION,
    NOT_ON_THE_WIRE: _FUNCTION,
    "custom_tool_call": ItemShape(CallKind.CUSTOM, "", "input", ArgumentsForm.TEXT),
    "mcp_call": ItemShape(CallKind.MCP, "", "arguments", ArgumentsForm.TEXT),
    "mcp_approval_request": ItemShape(CallKind.MCP, "", "arguments", ArgumentsForm.TEXT),
    "computer_call": ItemShape(CallKind.BUILT_IN, "computer", "action", ArgumentsForm.VALUE),
    "local_shell_call": ItemShape(CallKind.BUILT_IN, "local_shell", "action", ArgumentsForm.VALUE),
    "shell_call": ItemShape(CallKind.BUILT_IN, "shell", "action", ArgumentsForm.VALUE),
    "apply_patch_call": ItemShape(
        CallKind.BUILT_IN, "apply_patch", "operation", ArgumentsForm.VALUE
    ),
    "tool_search_call": ItemShape(CallKind.SERVER, "tool_search", "arguments", ArgumentsForm.VALUE),
    "web_search_call": ItemShape(CallKind.SERVER, "web_search", "action", ArgumentsForm.VALUE),
    "file_search_call": ItemShape(CallKind.SERVER, "file_search", "queries", ArgumentsForm.FREE),
    "code_interpreter_call": ItemShape(
        CallKind.SERVER, "code_interpreter", "code", ArgumentsForm.FREE
    ),
    "image_generation_call": ItemShape(CallKind.SERVER, "image_generation", "", ArgumentsForm.FREE),
    "program": ItemShape(CallKind.SERVER, "program", "code", ArgumentsForm.FREE),
}
_SUFFIX = "_call"
_SEARCH_ON_X = "x_search"
_BUILT_IN = {"computer_use_preview": "computer", "web_search_preview": "web_search"}


def shape_of(item: Mapping[str, object], request: RequestSummary) -> ItemShape | None:
    """Return the shape of `item` as a call; None if it is not one.

    A type that is not known and ends like a call's is a tool of the provider: new ones appear all
    the time, and what a client is to run is documented first.
    """
    kind = get_str(item, "type") or ""
    shape = _SHAPES.get(kind)
    if shape is None:
        known = kind.endswith(_SUFFIX)
        name = kind.removesuffix(_SUFFIX)
        return ItemShape(CallKind.SERVER, name, "", ArgumentsForm.FREE) if known else None
    if kind == "shell_call" and _is_hosted(item):
        return shape._replace(kind=CallKind.SERVER)
    if kind == "tool_search_call" and item.get("execution") == "client":
        return shape._replace(kind=CallKind.BUILT_IN)
    if kind == "computer_call" and item.get("action") is None and "actions" in item:
        return shape._replace(field="actions", form=ArgumentsForm.FREE)
    if kind == "custom_tool_call" and _is_search_on_x(item, request):
        return shape._replace(kind=CallKind.SERVER, form=ArgumentsForm.FREE)
    return shape


def tool_name(kind: str) -> str:
    """Return the name for calls of a built-in tool, by its type in requests."""
    return _BUILT_IN.get(kind, kind)


def _is_hosted(item: Mapping[str, object]) -> bool:
    return get_str(get_object(item, "environment") or {}, "type") == "container_reference"


def _is_search_on_x(item: Mapping[str, object], request: RequestSummary) -> bool:
    """Check whether a custom call is one of the unnamed tools behind `x_search`."""
    return request.tool(_SEARCH_ON_X) is not None and request.tool(get_str(item, "name")) is None


# What tells the arguments of a call, or a text, and how much it is to be believed.


class SourceRank(enum.IntEnum):
    """Sources of a value, in the order of their authority.

    Pieces that streamed count more than `ADDED`, which is sent before anything is known and is
    mostly empty, and less than all others.
    """

    ADDED = 0
    PART_DONE = 1
    SNAPSHOT = 2
    ITEM_DONE = 3


NAMES = {
    SourceRank.ADDED: "response.output_item.added",
    SourceRank.PART_DONE: "the event that ends the pieces",
    SourceRank.SNAPSHOT: "the final response",
    SourceRank.ITEM_DONE: "response.output_item.done",
}
"""What a message calls a source."""
