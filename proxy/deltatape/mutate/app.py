"""Defects of streams that applications send to their own users."""

from deltatape.mutate._base import APP_EVENTS, SDK_UI, MutationChoices, mutator
from deltatape.mutate._draft import MutableExchange
from deltatape.mutate._units import kinds
from deltatape.wire.json_edit import at


@mutator("agui-order", 93, SDK_UI)
def agui_order(draft: MutableExchange, _: MutationChoices) -> None:
    """The last piece of a tool's input follows the event that ends the input."""
    found = kinds(draft.units)
    for whole in found.get("tool-input-available", ())[:1]:
        id_ = at(whole.value, "toolCallId")
        deltas = [
            unit
            for unit in found.get("tool-input-delta", ())
            if at(unit.value, "toolCallId") == id_
        ]
        for delta in deltas[-1:]:
            draft.add_after(whole, delta.like())
            delta.removed = True


@mutator("ui-no-start", 94, SDK_UI)
def ui_no_start(draft: MutableExchange, _: MutationChoices) -> None:
    """The pieces of a tool's input are not preceded by the event that starts it."""
    for unit in kinds(draft.units).get("tool-input-start", ())[:1]:
        unit.removed = True


@mutator("app-toolcall-per-chunk", 95, APP_EVENTS)
def app_toolcall_per_chunk(draft: MutableExchange, _: MutationChoices) -> None:
    """The application sends one call per fragment, without a name, its arguments a number."""
    for number, unit in enumerate(kinds(draft.units).get("tool_call", ())):
        for piece in range(3):
            new = unit.like()
            new.put(("name",), "null")
            new.put(("arguments",), str(10 * (number + piece)))
            draft.add_after(unit, new)
        unit.removed = True
