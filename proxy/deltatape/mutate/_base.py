"""What a mutator is: a defect that was seen in the wild, as a change of a healthy exchange."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from deltatape.model.exchange import Exchange
from deltatape.mutate._chance import Chance
from deltatape.mutate._draft import Draft

OPENAI = ("openai-chat",)
CHAT = (*OPENAI, "mistral")
RESPONSES = ("openai-responses",)
MESSAGES = ("anthropic-messages", "bedrock-invoke")
CONVERSE = ("bedrock-converse",)
GEMINI = ("gemini",)
SDK_UI = ("ai-sdk-ui",)
APP_EVENTS = ("app-events",)

Change: TypeAlias = Callable[[Draft, Chance], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutator:
    """A defect, as a change of a healthy exchange."""

    name: str
    """In words with dashes: `index-missing`."""
    row: int
    """Its number in the table of defects (docs/defects.md)."""
    dialects: tuple[str, ...]
    """Those whose streams it can change."""
    summary: str
    """One sentence: what the wire shows then."""
    change: Change

    def mutate(self, exchange: Exchange, chance: Chance) -> Exchange | None:
        """`exchange` with the defect, all else byte for byte as it was; None if it has no place.

        Args:
            exchange: healthy; of any other, something comes out or None, too.
            chance: chooses where there is a choice.
        """
        draft = Draft.of(exchange)
        if draft is None:
            return None
        self.change(draft, chance)
        return draft.result()


def mutator(name: str, row: int, dialects: tuple[str, ...]) -> Callable[[Change], Mutator]:
    """Makes a mutator of a function, whose docstring becomes the summary."""

    def made(change: Change) -> Mutator:
        return Mutator(
            name=name, row=row, dialects=dialects, summary=change.__doc__ or "", change=change
        )

    return made
