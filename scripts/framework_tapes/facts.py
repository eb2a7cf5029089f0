"""What a framework makes of what it was delivered, read from its tapes.

The tapes of a scenario hold one conversation that was streamed and one that was not; each fact is
told of both. Calls and histories are those of deltatape's digests, which keep the text of arguments
as it stands on the wire.
"""

import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import deltatape
from deltatape.diagnose.decode import decode
from deltatape.model.digest import DeliveredCall, Digest
from deltatape.model.exchange import EndReason, Exchange
from deltatape.model.request_summary import RepeatedCall
from framework_tapes.script import CITIES, first_prompts

STREAMED, WHOLE = CITIES
NOTHING = "-"
_ERROR = 400
_SIGNED = re.compile(rb'"(?:signature|thoughtSignature|encrypted_content)": ?"([^"]+)"')
_SHOWN = 70
_OBJECTS = frozenset({"anthropic-messages", "gemini"})
"""Dialects in which arguments are an object of the body and no text of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A request and its answer."""

    exchange: Exchange
    digest: Digest

    @property
    def asked(self) -> str:
        """The request's body."""
        return self.exchange.request.body.decode()

    @property
    def failed(self) -> bool:
        """Whether the answer is an error."""
        return (self.digest.status or 0) >= _ERROR


Conversation = Sequence[Turn]
Tapes = Mapping[str, Sequence[Turn]]
"""All turns by scenario, of one framework and dialect."""


def read_tapes(folder: Path, dialect: str) -> Tapes:
    """The tapes of a framework in a dialect."""
    return {
        path.stem.removeprefix(f"{dialect}-"): [
            Turn(exchange=exchange, digest=deltatape.digest(exchange))
            for exchange in deltatape.open(path)
        ]
        for path in sorted(folder.glob(f"{dialect}-*.tape"))
    }


def conversation(tapes: Tapes, scenario: str, city: str) -> Conversation:
    """The turns of a conversation, in their order."""
    wanted = (scenario, city)
    prompt = next(prompt for prompt, told in first_prompts().items() if told == wanted)
    return [turn for turn in tapes.get(scenario, ()) if prompt in turn.asked]


Tell = Callable[[Tapes], str]


def _of(scenario: str, tell: Callable[[Conversation], str]) -> Tell:
    return lambda tapes: _both(tapes, scenario, tell)


def facts() -> Mapping[str, Mapping[str, Tell]]:
    """By table and column, the test for a fact about a framework in a dialect."""
    return {
        "Calls": {
            "ids": _of("calls", _ids),
            "no arguments": _of("empty", _empty),
            "two equal calls": _of("equal", _equal),
            "text of arguments": _of("calls", _text),
            "defaults": _of("calls", _defaults),
            "numbers": _of("values", _numbers),
            "unicode": _of("values", _unicode),
        },
        "Answers": {
            "text before calls": _of("calls", _messages),
            "reasoning": _of("reasoning", _reasoning),
            "typed answer": _of("structured", _typed),
            "streams": _streams,
        },
        "Errors": {
            "wrong parameter": _of("invalid", _wrong),
            "unknown tool": _of("invalid", _unknown),
            "after 429": lambda tapes: _after(tapes, 429),
            "after 500": lambda tapes: _after(tapes, 500),
        },
    }


def _both(tapes: Tapes, scenario: str, tell: Callable[[Conversation], str]) -> str:
    """A fact of the conversation that was streamed, and of the other if that differs."""
    told = {city: conversation(tapes, scenario, city) for city in CITIES}
    words = [tell(turns) if turns else NOTHING for turns in told.values()]
    if words[0] == words[1]:
        return words[0]
    return f"streamed: {words[0]}; whole: {words[1]}"


def _delivered(turns: Conversation) -> list[DeliveredCall]:
    """The calls of all answers but the last."""
    return [call for turn in turns[:-1] for call in turn.digest.calls]


def _repeated(turns: Conversation) -> list[RepeatedCall]:
    """The calls in the history of the last request."""
    return [call for message in turns[-1].digest.history for call in message.calls]


def _pairs(turns: Conversation) -> Iterator[tuple[DeliveredCall, RepeatedCall]] | None:
    """Delivered calls and what the last request repeats, None if their numbers differ."""
    said, heard = _delivered(turns), _repeated(turns)
    return zip(said, heard, strict=True) if said and len(said) == len(heard) else None


def _ids(turns: Conversation) -> str:
    pairs = _pairs(turns)
    if pairs is None:
        return _count(turns)
    kinds = {_id(said.ids, heard.id) for said, heard in pairs}
    return ", ".join(sorted(kinds))


def _id(said: Sequence[str], heard: str | None) -> str:
    if heard is None:
        return "dropped" if said else "none"
    if not said:
        return "made up"
    return "kept" if heard in said else "renamed"


def _count(turns: Conversation) -> str:
    if len(turns) == 1:
        return "asks no more"
    if turns[-1].digest.previous:
        return "the provider keeps the history"
    said, heard = _delivered(turns), _repeated(turns)
    texts = "".join(message.content for message in turns[-1].digest.history)
    if not heard and all(call.name and call.name in texts for call in said):
        return "calls written as text"
    return f"repeats {len(heard)} of {len(said)} calls"


def _empty(turns: Conversation) -> str:
    pairs = _pairs(turns)
    if pairs is None:
        return _count(turns)
    shown = [f"{_shown(said.arguments)} as {_shown(heard.arguments)}" for said, heard in pairs]
    return ", ".join(dict.fromkeys(shown))


def _shown(arguments: str) -> str:
    return f"`{arguments}`" if arguments else '`""`'


def _equal(turns: Conversation) -> str:
    return "both repeated" if _pairs(turns) else _count(turns)


def _text(turns: Conversation) -> str:
    """Whether arguments come back as the text that was delivered."""
    pairs = _pairs(turns)
    if pairs is None:
        return _count(turns)
    same = [each for each in pairs if _values(each[0]) == _values(each[1])]
    if not same:
        return "other values"
    before, after = (_values(call) for call in same[0])
    order = "same order of keys" if [*before] == [*after] else "other order of keys"
    if turns[-1].digest.dialect in _OBJECTS:
        return order
    # The second call has other spaces than most serialisers write.
    anew = any(said.arguments != heard.arguments for said, heard in same)
    return f"written anew, {order}" if anew else "as delivered"


def _values(call: DeliveredCall | RepeatedCall) -> Mapping[str, object]:
    told: Mapping[str, object] = json.loads(call.arguments or "{}")
    return told


def _defaults(turns: Conversation) -> str:
    """What becomes of arguments without the parameters that have defaults."""
    pairs = _pairs(turns)
    if pairs is None:
        return _count(turns)
    said, heard = list(pairs)[1]
    before, after = _values(said), _values(heard)
    added = [name for name in after if name not in before]
    if added:
        return f"filled in ({', '.join(f'`{name}`' for name in added)})"
    return "left out" if len(before) == 1 else "all parameters required"


def _numbers(turns: Conversation) -> str:
    pairs = _pairs(turns)
    if pairs is None:
        return _count(turns)
    said, heard = list(pairs)[-1]
    before, after = _spelled(said.arguments), _spelled(heard.arguments)
    changed = [
        f"`{number}` as `{after.get(name)}`"
        for name, number in before.items()
        if after.get(name) != number
    ]
    return ", ".join(changed) or "as delivered"


def _spelled(arguments: str) -> Mapping[str, str]:
    """The numbers of an object as they are written."""
    told = json.loads(arguments, parse_int=str, parse_float=str)
    return {name: str(value) for name, value in told.items()}


def _unicode(turns: Conversation) -> str:
    pairs = _pairs(turns)
    if pairs is None:
        return _count(turns)
    said, heard = next(iter(pairs))
    before, after = _values(said), _values(heard)
    if any(after.get(name) != value for name, value in before.items()):
        return f"**changed**: `{heard.arguments}`"
    if "\\u" not in heard.arguments:
        return "escapes resolved"
    return "all escaped" if heard.arguments.isascii() else "as delivered"


def _reasoning(turns: Conversation) -> str:
    """What of the first answer's thinking the next request repeats."""
    if len(turns) == 1:
        return "asks no more"
    first, later = turns[0], turns[1]
    thought = deltatape.rebuild(first.exchange).reasoning
    if not thought:
        return "none delivered"
    signed = {found.decode() for found in _SIGNED.findall(decode(first.exchange).body)} - {""}
    parts = {"text": thought in later.asked}
    if signed:
        parts["signature"] = any(each in later.asked for each in signed)
    if later.digest.previous:
        return "the provider keeps the history"
    kept = [name for name, is_kept in parts.items() if is_kept]
    dropped = [name for name, is_kept in parts.items() if not is_kept]
    if not dropped:
        return f"{' and '.join(kept)} kept"
    return f"{' and '.join(dropped)} dropped" + (f", {' and '.join(kept)} kept" if kept else "")


def _messages(turns: Conversation) -> str:
    """What becomes of the text that stands before calls in the same answer."""
    if len(turns) == 1:
        return "asks no more"
    said = turns[0].digest
    own = [each for each in turns[-1].digest.history if each.role in {"assistant", "model"}]
    with_text = [each for each in own if said.content.strip() in each.content]
    with_calls = [each for each in own if each.calls]
    if not with_text:
        text = "text dropped"
    elif with_text[0].calls:
        text = "with the calls"
    else:
        text = "a message of its own"
    # Where calls are items of their own they cannot be in one message.
    apart = said.dialect == "openai-responses" or len(with_calls) < 2  # noqa: PLR2004
    return text if apart else f"{text}; calls in {len(with_calls)} messages"


def _typed(turns: Conversation) -> str:
    """How the answer's schema is asked for."""
    asked = turns[0].digest
    if asked.forced or asked.must_call:
        return f"a forced tool ({', '.join(f'`{name}`' for name in asked.tools)})"
    if asked.tools:
        return f"a tool ({', '.join(f'`{name}`' for name in asked.tools)})"
    told = json.loads(turns[0].asked)
    fields = {"response_format", "text", "output_config", "output_format", "generationConfig"}
    return "a schema of the answer" if fields & {*told} else "in the prompt"


def _wrong(turns: Conversation) -> str:
    return _complaint(turns, 0)


def _unknown(turns: Conversation) -> str:
    return _complaint(turns, 1)


def _complaint(turns: Conversation, at: int) -> str:
    """What the model is told of its wrong call in the answer number `at`."""
    if len(turns) <= at:
        return NOTHING
    if len(turns) == at + 1:
        return "gives up"
    # Some add their complaint to a message that is there already.
    before, after = (_told(turn.digest) for turn in turns[at : at + 2])
    told = after.removeprefix(before) if after.startswith(before) else after
    if not told:
        return "the call is dropped"
    text = " ".join(told.split()).replace("|", "/").replace("`", "'")
    for city in CITIES:
        text = text.replace(city, "CITY")
    return f"`{text[:_SHOWN]}{'…' if len(text) > _SHOWN else ''}`"


def _told(digest: Digest) -> str:
    """What the request says beside the model's own words."""
    said = [each.content for each in digest.history if each.role not in {"assistant", "model"}]
    return "\n".join(said)


def _after(tapes: Tapes, status: int) -> str:
    """How long after an error it is asked again, in both conversations."""
    told = [conversation(tapes, "retries", city) for city in CITIES]
    pauses = [pause for turns in told for pause in _pauses(turns, status)]
    if not pauses:
        return NOTHING
    if None in pauses:
        return "gives up" if {*pauses} == {None} else "gives up once"
    waited = sorted({f"{pause / 1e9:.1f}" for pause in pauses if pause is not None})
    return f"again after {' to '.join(dict.fromkeys((waited[0], waited[-1])))} s"


def _pauses(turns: Conversation, status: int) -> Iterator[int | None]:
    """How long after such an error the next request came, None if none came."""
    for turn, later in itertools.zip_longest(turns, turns[1:]):
        if turn.digest.status == status:
            end = turn.exchange.end
            yield later.exchange.request.t_ns - end.t_ns if later and end else None


def _streams(tapes: Tapes) -> str:
    """Whether streams are read to their end."""
    ends = [
        turn.exchange.end.reason
        for turns in tapes.values()
        for turn in turns
        if turn.exchange.end and not turn.failed and _is_stream(turn.exchange)
    ]
    left = sum(reason is EndReason.CLIENT_CLOSED for reason in ends)
    if not ends:
        return "none"
    return f"leaves {left} of {len(ends)} before the end" if left else "read to the end"


def _is_stream(exchange: Exchange) -> bool:
    heads = exchange.response.headers if exchange.response else ()
    return any(
        name.lower() == b"content-type" and b"event-stream" in value
        for name, value in heads
        if isinstance(value, bytes)
    )
