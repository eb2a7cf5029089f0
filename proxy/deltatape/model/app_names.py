"""The event and field names of an application's own streaming endpoint."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AppNames:
    """Names used for the contract `text|tool_call|tool_result|done|error`.

    Of several names of a field the first existing one counts. A name with dots leads into objects.
    """

    type: tuple[str, ...] = ("type",)
    """The field with the type of an event."""
    text: tuple[str, ...] = ("text",)
    """The type of events with a piece of text; the next five are types, too."""
    reasoning: tuple[str, ...] = ("reasoning", "thinking")
    tool_call: tuple[str, ...] = ("tool_call",)
    tool_result: tuple[str, ...] = ("tool_result",)
    done: tuple[str, ...] = ("done",)
    error: tuple[str, ...] = ("error",)
    content: tuple[str, ...] = ("content", "text", "delta")
    """The field with a piece of text, the whole text, or an error's message."""
    id: tuple[str, ...] = ("id", "call_id", "tool_call_id")
    """The field with a call's id, if it has one; the next two are fields of calls, too."""
    name: tuple[str, ...] = ("name", "tool", "tool_name", "function")
    arguments: tuple[str, ...] = ("arguments", "args", "input", "parameters")


CONTRACT = AppNames()
"""The default names."""
