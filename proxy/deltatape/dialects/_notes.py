"""Observations of a reducer about one subject: a stream, a choice or a call."""

from deltatape.dialects._json import shown
from deltatape.model.reply import Observation
from deltatape.model.stream import Event


class ObservationLog:
    """Collects observations; their choice and call are added at the end."""

    def __init__(self) -> None:
        self._notes: list[tuple[str, str, str, Event]] = []
        self._seen: set[tuple[str, str]] = set()

    def add(self, code: str, detail: str, evidence: object, event: Event) -> None:
        """Note something under the code of the rule that reports it.

        Args:
            code: the finding's code.
            detail: one sentence: what, with the value seen.
            evidence: the JSON value, or the text, that the wire carried.
            event: what carried it.
        """
        text = evidence if isinstance(evidence, str) else shown(evidence)
        self._notes.append((code, detail, text, event))

    def once(self, kind: str, code: str, detail: str, evidence: object, event: Event) -> None:
        """Note something the first time that `kind` occurs under `code`. See `add`."""
        if (kind, code) not in self._seen:
            self._seen.add((kind, code))
            self.add(code, detail, evidence, event)

    def codes(self) -> tuple[str, ...]:
        """Return the noted codes, each once, in order."""
        return tuple(dict.fromkeys(code for code, *_ in self._notes))

    def observations(self, choice: int, call: int | None) -> list[Observation]:
        """Return the observations, for a call (index among the choice's calls) or a choice."""
        return [
            Observation(
                code=code,
                detail=detail,
                evidence=text,
                event=event.number,
                place=event.place,
                choice=choice,
                call=call,
            )
            for code, detail, text, event in self._notes
        ]
