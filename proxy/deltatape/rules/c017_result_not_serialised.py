"""C017: a tool's result that is the name of an object instead of its content."""

import re
from collections.abc import Iterator, Sequence
from typing import ClassVar

from deltatape.model.asked import RepeatedCall
from deltatape.model.digest import Heard
from deltatape.model.finding import Blame, Confidence, Excluded, Finding, Severity
from deltatape.model.turn import Turn
from deltatape.rules._conversation import TurnClaim, turn_finding
from deltatape.rules.evidence import excerpt
from deltatape.rules.settings import Settings
from deltatape.wire.json_value import read_object

_LONGEST = 400
"""Characters of such a text."""
_ADDRESS = r"at 0x[0-9a-fA-F]{4,}"
_REPRS = (
    # JavaScript
    (re.compile(r"\[object [A-Z]\w*\](?:, ?\[object [A-Z]\w*\])*"), "an object turned into text"),
    (re.compile(r"Promise \{.*\}", re.DOTALL), "a promise that nobody awaited"),
    # Python
    (re.compile(rf"<coroutine object .+ {_ADDRESS}>"), "a coroutine that nobody awaited"),
    (re.compile(r"<_?(?:asyncio\.)?(?:Task|Future) .+>", re.DOTALL), "a task that nobody awaited"),
    (
        re.compile(rf"<(?:async_)?generator object .+ {_ADDRESS}>"),
        "a generator that nobody has run through",
    ),
    (re.compile(r"<(?:bound method|function) .+>", re.DOTALL), "a function that nobody called"),
    (re.compile(rf"<[\w.]+(?: object)? {_ADDRESS}>"), "an object without a text of its own"),
    (re.compile(r"<Response \[\d{3}\]>"), "a response instead of its body"),
    # Ruby, Java, .NET
    (
        re.compile(r"#<[A-Z][\w:]*(?::0x[0-9a-f]+)?(?: .*)?>", re.DOTALL),
        "an object turned into text",
    ),
    (re.compile(r"(?:[a-z]\w*\.)+[A-Z][\w$]*@[0-9a-f]{5,8}"), "an object turned into text"),
    (
        re.compile(r"System\.(?:\w+\.)*\w+`\d\[.+\]", re.DOTALL),
        "a .NET object turned into text",
    ),
)
_VAGUE = re.compile(r"undefined|NaN")
"""What tools without a result, and calculators, may say on purpose."""
_RUNS_CODE = re.compile(
    r"code|python|javascript|node|ruby|eval|exec|run|shell|bash|repl|interpret|script|notebook"
    r"|jupyter|terminal|command|console|sandbox|sql|query|read|file|fetch|open|http|curl|cat\b",
    re.IGNORECASE,
)
"""Names of tools whose results may be any text that somebody else wrote."""
_CODE = re.compile(r"[\w\]]\(|=>|console\.|;\\n|\bdef \b|\bawait \b|\bimport \b|\breturn\b")
"""Arguments that hold code."""


class ResultNotSerialised:
    """A tool's result is what a language prints of an object: its kind, and where it lies.

    ## What it does
    Looks at new tool results of which all the text is such a name: `[object Object]`, a promise, a
    coroutine, a generator, a function, an object with its address in memory.

    ## Why is this bad
    The tool ran, or did not even run: nobody awaited it. Either way the model gets no result. It
    calls again, or makes one up.

    ## Innocent explanations
    - The tool runs code, or reads what others wrote, and that text is what it found: a fact.
    - A tool has no result, and `undefined` stands for that; a calculator's result is `NaN`: a fact.
    - The name is a part of a longer text, such as a log or a page: not reported.

    ## Example
    ```
    {"role":"tool","tool_call_id":"c1","content":"[object Object]"}
    {"role":"tool","tool_call_id":"c2","content":"<coroutine object get at 0x7f5c1c0a2b40>"}
    ```

    ## Fix
    Await the tool, and serialise what it returns: `JSON.stringify(result)`, `json.dumps(result)`.

    ## References
    - https://developer.mozilla.org/en-US/docs/Web/JavaScript/Reference/Global_Objects/Object/toString
    - https://docs.python.org/3/library/asyncio-task.html#coroutines
    - https://platform.openai.com/docs/guides/function-calling
    """

    code: ClassVar[str] = "C017"
    name: ClassVar[str] = "result-not-serialised"
    severity: ClassVar[Severity] = Severity.ERROR

    def check(self, turn: Turn, settings: Settings) -> Iterator[Finding]:
        """See `TurnRule.check`."""
        del settings
        history = turn.digest.history
        for place in range(turn.news, len(history)):
            message = history[place]
            if message.call_id is None or not message.text:
                continue
            text = _inner(message.content)
            what = _named(text)
            if what:
                call = _call_of(history, place) or _delivered(turn, message.call_id)
                yield self._finding(turn, message, text, what, call)

    def _finding(
        self, turn: Turn, result: Heard, text: str, what: str, call: RepeatedCall | None
    ) -> Finding:
        name = call.name if call and call.name else result.call_id or "a tool"
        if _VAGUE.fullmatch(text) or (call is not None and _may_be_output(call, text)):
            blame, confidence, severity = None, Confidence.POSSIBLE, Severity.INFO
        else:
            blame, severity = Blame.APP, self.severity
            confidence = Confidence.LIKELY if call is not None else Confidence.POSSIBLE
        because = f"{excerpt(name, 60)} takes no code, and this is all of its result"
        return turn_finding(
            self,
            turn,
            TurnClaim(
                message=f"the result of {excerpt(name, 60)} is {excerpt(text, 80)!r}: {what}",
                hint="await the tool, and serialise what it returns (JSON.stringify, json.dumps)",
                blame=blame,
                confidence=confidence,
                severity=severity,
                evidence=result.content,
                excluded=(Excluded("the tool printed that", because),)
                if confidence is Confidence.LIKELY
                else (),
            ),
        )


def _inner(content: str) -> str:
    """The text of a result, which some interfaces and applications wrap into an object."""
    text = content.strip()
    if len(text) > _LONGEST:
        return text
    if text[0] == '"' and text[-1] == '"':
        return text[1:-1].strip()
    wrapped = read_object(text) if text[0] == "{" else None
    values = list(wrapped.values()) if wrapped else []
    return values[0].strip() if len(values) == 1 and isinstance(values[0], str) else text


def _named(text: str) -> str:
    """What the text is the name of; "" if it is none."""
    if len(text) > _LONGEST:
        return ""
    if _VAGUE.fullmatch(text):
        return "no value"
    return next((what for form, what in _REPRS if form.fullmatch(text)), "")


def _call_of(history: Sequence[Heard], place: int) -> RepeatedCall | None:
    """The call that the result at `place` answers: it stands in the messages right before."""
    wanted = history[place].call_id
    for message in reversed(history[:place]):
        found = [call for call in message.calls if wanted in (call.id, call.name)]
        if found:
            return found[-1]
        if message.call_id is None and not message.calls and message.text:
            return None
    return None


def _delivered(turn: Turn, call_id: str) -> RepeatedCall | None:
    """The call as it was delivered, where the provider keeps the history."""
    calls = turn.continues.reply.calls if turn.continues and turn.continues.stored else ()
    found = next((call for call in calls if call_id in call.answers_to), None)
    if found is None:
        return None
    return RepeatedCall(id=call_id, name=found.name, arguments=found.arguments)


def _may_be_output(call: RepeatedCall, text: str) -> bool:
    """Whether the tool may have found just this text somewhere, or run code that prints it."""
    if _RUNS_CODE.search(call.name or "") or _CODE.search(call.arguments):
        return True
    return text in call.arguments
