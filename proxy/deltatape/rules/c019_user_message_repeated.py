"""C019: the user's message stands twice in a history."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import ClassVar

from deltatape.model.digest import Heard
from deltatape.model.finding import Blame, Confidence, Excluded, Finding, Severity
from deltatape.model.turn import Turn
from deltatape.rules._conversation import TurnClaim, turn_finding
from deltatape.rules.evidence import excerpt
from deltatape.rules.settings import Settings

_USER = "user"
_WORDS = 3
_CHARACTERS = 12
"""A shorter message may well be sent twice: `ok`, `yes`, `continue`."""
_LOOKED_AT = 100
"""Messages of a history that are looked at once one stands there twice."""
_NOTE = re.compile(r"error|invalid|failed|again|retry|did not|must ", re.IGNORECASE)
"""Notes that a library writes in the user's name, each time that it asks for something better."""
_NO_CHANCE = 2
"""So many different messages that all stand twice are no habit of a user."""


class UserMessageRepeated:
    """A history has the same message of the user twice.

    ## What it does
    Looks at new messages of the user that say the same as the one right before, or as the last one
    before the assistant's answer. Short ones are left out.

    Possible where both came with the same request, for then no answer lay between them. Likely once
    each of at least two different messages of the conversation stands there twice: no user sends
    everything twice. Else it is a fact.

    ## Why is this bad
    The model sees a user who repeats himself, and answers to that: it apologises, answers twice, or
    takes the question for a new one. Some providers refuse two messages of the user in a row. The
    usual cause: the application appends the message to the history, and the library that it calls
    does the same.

    ## Innocent explanations
    - The user pressed send twice, or asks again.
    - The answer to the first one failed, or never came.
    - It is a prompt to go on, or a script of tests: these are short, or come one at a time.
    - It is a note of a library that asks for something better each time: those are left out.
    - The messages have the same text and different pictures: possible only.
    - The prompt is repeated on purpose, which helps some models: the latest one, or within one
      message.

    ## Example
    ```
    "messages":[{"role":"user","content":"What is the weather in Gent?"},
                {"role":"user","content":"What is the weather in Gent?"}]
    ```

    ## Fix
    Append the user's message in one place. Libraries that keep the history take the new message
    alone, others the whole list.

    ## References
    - https://github.com/run-llama/create-llama/issues/428
    - https://github.com/firebase/firebase-js-sdk/issues/9938
    """

    code: ClassVar[str] = "C019"
    name: ClassVar[str] = "user-message-repeated"
    severity: ClassVar[Severity] = Severity.WARNING

    def check(self, turn: Turn, settings: Settings) -> Iterator[Finding]:
        """See `TurnRule.check`."""
        del settings
        history, news = turn.digest.history, turn.news
        for place in range(max(news, 1), len(history)):
            if not _is_worth(history[place]):
                continue
            if _same(history[place - 1], history[place]):
                yield from self._in_a_row(turn, place)
                return
            if place == len(history) - 1 and _is_asked_again(history, place, news):
                yield self._finding(
                    turn,
                    place,
                    "the user's message comes again after its answer, and no new one",
                    None,
                )

    def _in_a_row(self, turn: Turn, place: int) -> Iterator[Finding]:
        history = turn.digest.history
        first = place - 1 < turn.news
        found = turn.continues
        if first and (found is None or not any(each.whole for each in found.replies)):
            return  # the answer never came: it was asked for again
        doubled = _all_doubled(history)
        told = "the user's message stands twice in a row"
        if doubled >= _NO_CHANCE:
            because = f"each of the user's last {doubled} messages stands there twice"
            excluded = Excluded("the user sent the message twice", because)
            yield self._finding(
                turn, place, f"{told}, as each of {doubled} does", Blame.APP, excluded
            )
        else:
            yield self._finding(turn, place, told, None if first else Blame.APP)

    def _finding(
        self, turn: Turn, place: int, told: str, blame: Blame | None, *excluded: Excluded
    ) -> Finding:
        text = turn.digest.history[place].content
        fact = blame is None
        unsure = Confidence.PROVEN if fact else Confidence.POSSIBLE
        return turn_finding(
            self,
            turn,
            TurnClaim(
                message=f"{told}: {excerpt(text, 80)!r}",
                hint="append the user's message in one place only",
                blame=blame,
                confidence=Confidence.LIKELY if excluded else unsure,
                severity=Severity.INFO if fact else self.severity,
                evidence=text,
                excluded=excluded,
            ),
        )


def _is_worth(message: Heard) -> bool:
    """Whether it is a message of the user that nobody sends twice without noticing."""
    text = message.content.strip()
    if message.role != _USER or message.call_id is not None or len(text) < _CHARACTERS:
        return False
    if _NOTE.search(text):
        return False
    return len(text.split()) >= _WORDS or not text.isascii()


def _same(one: Heard, other: Heard) -> bool:
    same = one.role == other.role and one.text == other.text and bool(one.text)
    return same and one.call_id is None and one.content == other.content


def _is_asked_again(history: Sequence[Heard], place: int, news: int) -> bool:
    """Whether the message is the user's last one before, which had an answer in text."""
    if place - 2 < 0 or place - 1 < news:
        return False
    answer, before = history[place - 1], history[place - 2]
    return bool(answer.text) and not answer.calls and _same(before, history[place])


def _all_doubled(history: Sequence[Heard]) -> int:
    """How many of the user's last messages stand twice in a row; 0 if some long one does not.

    Messages that differ in anything but their text do not count: they may have different pictures.
    """
    users = [each for each in history[-_LOOKED_AT:] if _is_worth(each)]
    found: set[str] = {
        one.text
        for one, other in pairwise(users)
        if one.text == other.text and one.digest == other.digest
    }
    alone = [each for each in users if each.text not in found]
    return 0 if alone else len(found)
