"""Defects of how a chat completion finishes, and of the events around its calls."""

from itertools import pairwise
from typing import NamedTuple

from deltatape.mutate._base import CHAT, MESSAGES, RESPONSES, MutationChoices, cut_before, mutator
from deltatape.mutate._calls import CallSite, chat_calls, entries, message_calls, remove_entry
from deltatape.mutate._draft import MutableExchange
from deltatape.mutate._units import MutableEvent, kinds
from deltatape.wire.json_edit import Path, at, listed

_ENDS = ("response.completed", "response.incomplete")


class _Finish(NamedTuple):
    """A choice of an event that has a finish reason or null."""

    unit: MutableEvent
    choice: Path
    reason: str | None

    @property
    def path(self) -> Path:
        """Return the path of the finish reason."""
        return (*self.choice, "finish_reason")


def _finishes(draft: MutableExchange) -> list[_Finish]:
    found = []
    for unit in draft.units:
        for place, told in enumerate(listed(unit.value, "choices")):
            reason = at(told, "finish_reason")
            known = reason if isinstance(reason, str) and reason else None
            found.append(_Finish(unit, ("choices", place), known))
    return found


def _ends(draft: MutableExchange) -> list[_Finish]:
    return [each for each in _finishes(draft) if each.reason]


def _announcing(draft: MutableExchange) -> list[_Finish]:
    """Yield those whose finish reason announces calls."""
    return [end for end in _ends(draft) if end.reason == "tool_calls"]


@mutator("finish-stop-with-calls", 63, CHAT)
def finish_stop_with_calls(draft: MutableExchange, _: MutationChoices) -> None:
    """The reply has calls, and its finish reason is `stop`."""
    if chat_calls(draft):
        for end in _announcing(draft):
            end.unit.put_text(end.path, "stop")


@mutator("finish-calls-without-calls", 64, CHAT + MESSAGES)
def finish_calls_without_calls(draft: MutableExchange, _: MutationChoices) -> None:
    """The finish reason announces calls, but the reply has none."""
    if _announcing(draft):
        for entry in reversed([*entries(draft)]):
            remove_entry(entry)
    for call in message_calls(draft):
        block = at(call.opened.value, "index")
        for unit in draft.units:
            if at(unit.value, "index") == block:
                unit.removed = True


@mutator("finish-masks-length", 65, CHAT)
def finish_masks_length(draft: MutableExchange, _: MutationChoices) -> None:
    """Arguments are cut at the token limit, but the finish reason is a regular one."""
    for call in chat_calls(draft)[-1:]:
        size = len(call.text)
        if size > 1 and _ends(draft):
            call.splice(size // 2, size, "")


@mutator("finish-twice", 66, CHAT)
def finish_twice(draft: MutableExchange, _: MutationChoices) -> None:
    """A second finish reason, `stop`, follows the right one."""
    for end in _announcing(draft)[:1]:
        if chat_calls(draft):
            new = end.unit.like()
            new.put((*end.choice, "delta"), "{}")
            new.put_text(end.path, "stop")
            draft.add_after(end.unit, new)


@mutator("finish-empty-string", 67, CHAT)
def finish_empty_string(draft: MutableExchange, _: MutationChoices) -> None:
    """The finish reason is an empty string until the end."""
    for each in _finishes(draft):
        if each.reason is None:
            each.unit.put_text(each.path, "")


@mutator("finish-always-stop", 68, CHAT)
def finish_always_stop(draft: MutableExchange, _: MutationChoices) -> None:
    """Every event has the finish reason `stop`."""
    if _announcing(draft):
        for each in _finishes(draft):
            each.unit.put_text(each.path, "stop")


@mutator("finish-same-chunk", 69, CHAT)
def finish_same_chunk(draft: MutableExchange, _: MutationChoices) -> None:
    """The finish reason is in the event of the last fragment: legal."""
    ends, last = _ends(draft), [*entries(draft)][-1:]
    if len(ends) != 1 or not last or ends[0].unit is last[0].unit:
        return
    end, entry = ends[0], last[0]
    if at(end.unit.value, *end.choice, "delta", "content") or end.choice[1] != entry.choice:
        return
    entry.unit.put_text((*end.choice, "finish_reason"), end.reason or "")
    if at(end.unit.value, "usage"):
        end.unit.put(("choices",), "[]")
    else:
        end.unit.removed = True


@mutator("no-finish-no-done", 71, CHAT)
def no_finish_no_done(draft: MutableExchange, chance: MutationChoices) -> None:
    """The stream ends inside the arguments, with or without a connection error."""
    places = _inside(draft, [*chat_calls(draft)])
    if places:
        cut_before(draft, places[chance.choose(len(places))], chance)


@mutator("r-no-terminal", 72, RESPONSES)
def r_no_terminal(draft: MutableExchange, chance: MutationChoices) -> None:
    """The stream ends without its terminal event, with or without a connection error."""
    places = [place for place, unit in enumerate(draft.units) if at(unit.value, "type") in _ENDS]
    if places and places[0]:
        cut_before(draft, places[0], chance)


def _inside(draft: MutableExchange, calls: list[CallSite]) -> list[int]:
    """Return the positions before events with the rest of a call's arguments."""
    return [
        draft.units.index(piece.unit)
        for call in calls
        for before, piece in pairwise(call.pieces)
        if before.unit is not piece.unit and piece.text.strip()
    ]


@mutator("err-flat-responses", 79, RESPONSES)
def err_flat_responses(draft: MutableExchange, chance: MutationChoices) -> None:
    """The stream ends with an error in one flat object: `type`, `code` and `message`."""
    deltas = kinds(draft.units).get("response.function_call_arguments.delta", [])
    if not deltas:
        return
    unit = deltas[chance.choose(len(deltas))]
    number = at(unit.value, "sequence_number")
    numbered = f'"sequence_number":{number + 1},' if isinstance(number, int) else ""
    new = unit.like()
    new.rename("error")
    new.text = (
        f'{{"type":"error",{numbered}"code":"server_error","message":"The server had an error"}}'
    )
    draft.cut_after(unit)
    draft.add_after(unit, new)


@mutator("empty-choices", 80, CHAT)
def empty_choices(draft: MutableExchange, _: MutationChoices) -> None:
    """The first event has no choices, like the prompt filter results of Azure: legal."""
    for unit in draft.units[:1]:
        if listed(unit.value, "choices"):
            new = unit.like()
            new.put(("choices",), "[]")
            draft.add_before(unit, new)


@mutator("delta-null", 81, CHAT)
def delta_null(draft: MutableExchange, chance: MutationChoices) -> None:
    """`delta` is null in the last event, or `function` in a fragment."""
    later = [entry for call in chat_calls(draft) for entry in call.later]
    empty = [entry for entry in later if not entry.arguments.text]
    ends = [end for end in _ends(draft) if not any(_values(end))]
    if empty and chance.choose(2):
        empty[chance.choose(len(empty))].put(("function",), "null")
    else:
        for end in ends:
            end.unit.put((*end.choice, "delta"), "null")


def _values(end: _Finish) -> list[object]:
    delta = at(end.unit.value, *end.choice, "delta")
    return (
        [value for key, value in delta.items() if key != "role"] if isinstance(delta, dict) else []
    )


@mutator("function-call-legacy", 83, CHAT)
def function_call_legacy(draft: MutableExchange, _: MutationChoices) -> None:
    """The only call is sent as `function_call`, the predecessor of `tool_calls`."""
    found = chat_calls(draft)
    if len(found) != 1:
        return
    for entry in found[0].entries:
        source = entry.unit.source((*entry.path, "function"))
        entry.unit.drop(entry.path[:-1])
        entry.unit.put((*entry.path[:-2], "function_call"), source or "{}")
    for end in _ends(draft):
        end.unit.put_text(end.path, "function_call")


@mutator("provider-diff-crash", 86, CHAT)
def provider_diff_crash(draft: MutableExchange, chance: MutationChoices) -> None:
    """The server fails inside the arguments, sends an error, and ends the stream."""
    places = _inside(draft, [*chat_calls(draft)])
    if not places:
        return
    unit = draft.units[places[chance.choose(len(places))] - 1]
    new = unit.like()
    new.text = '{"error":{"code":500,"message":"Invalid diff: now finding less tool calls!"}}'
    draft.cut_after(unit)
    draft.add_after(unit, new)
