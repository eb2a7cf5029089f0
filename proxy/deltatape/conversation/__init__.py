"""Link replies to the later requests that repeat them, and check what the app made of them."""

from collections.abc import Container, Iterable
from itertools import chain

from deltatape.conversation.parser_errors import with_unread
from deltatape.conversation.read_back import ReadBackSearch, goes_on_without, read_backs
from deltatape.conversation.tool_servers import with_servers
from deltatape.conversation.turns import TurnSearch, turns
from deltatape.conversation.unanswered import unanswered
from deltatape.model.digest import Digest, ReadBack, Unanswered
from deltatape.model.exchange import Tap
from deltatape.model.finding import Finding
from deltatape.model.rule_settings import DEFAULTS, Settings
from deltatape.model.tape_summary import LogEntry
from deltatape.model.turn import Turn
from deltatape.rules import (
    READ_BACK_RULES,
    SILENCE_RULES,
    TURN_RULES,
    SeenSilence,
    SeenTurn,
    ask,
)


def check_conversation(
    digests: Iterable[Digest],
    settings: Settings = DEFAULTS,
    logs: Iterable[LogEntry] = (),
    *,
    told: Container[int] = (),
    goes_on: bool = False,
) -> tuple[Finding, ...]:
    """Return findings on what the application made of replies, as its later requests show.

    Args:
        digests: of any number of conversations and tapes, in the order of their requests. Silences
            are reported only for those that know how long their tape was watched.
        settings: the thresholds.
        logs: what the application printed, in order, if all digests are of the tape that has it.
        told: the numbers of exchanges whose requests are not reported on, where all digests are of
            one tape.
        goes_on: whether further exchanges follow, so that no reply is known to be unanswered.

    Returns:
        Findings in the order of the requests that prove them, then those about replies that no
        request answers.
    """
    digests = tuple(digests)
    # To take them may mean to read the tape again: they matter only where there are calls.
    logs = tuple(logs) if any(digest.calls or digest.text_calls for digest in digests) else ()
    repeated = read_backs(digests)
    silent = () if goes_on else unanswered(digests, repeated, logs, settings)
    about_turns = (
        whole_turn(turn, settings)
        for turn in turns(digests, repeated, logs, settings)
        if turn.digest.exchange not in told
    )
    about_silence = (findings_of_silence(silence, settings) for silence in silent)
    return tuple(chain(*about_turns, *about_silence))


_FULL = 4
"""How many windows are held: rebuilding the indexes takes as long as adding a window."""


class ConversationHistory:
    """Checks exchanges one by one, each against the last ones of any number of conversations.

    The work for an exchange does not depend on how many came before. Memory is bounded: when
    `_FULL * window` exchanges are held, all but the last `window` are dropped and the indexes are
    built anew.

    Args:
        settings: the thresholds.
        window: how many exchanges are compared with at least, >= 1.
    """

    def __init__(self, settings: Settings = DEFAULTS, window: int = 256) -> None:
        self._settings = settings
        self._window = window
        self.digests: list[Digest] = []
        """The exchanges that are held, in the order in which they were added."""
        self._read_backs = ReadBackSearch()
        self._turns = TurnSearch()

    def __len__(self) -> int:
        return len(self.digests)

    def add(self, digest: Digest) -> tuple[Finding, ...]:
        """Return the findings on the request of an exchange, compared with those added before.

        Findings on silences and on what the application printed need the whole tape, and are left
        out.
        """
        turn = self.turn(digest)
        return () if turn is None else whole_turn(turn, self._settings)

    def turn(self, digest: Digest) -> Turn | None:
        """Add an exchange, and return it as a turn of its conversation; see `add`.

        None: it is with the application's own endpoint.
        """
        if len(self.digests) >= _FULL * self._window:
            kept = self.digests[-self._window :]
            self.digests, self._read_backs, self._turns = [], ReadBackSearch(), TurnSearch()
            for each in kept:
                self._turn(each)
        return self._turn(digest)

    def _turn(self, digest: Digest) -> Turn | None:
        self.digests.append(digest)
        if digest.tap is not Tap.PROVIDER:
            return None
        repeated = self._read_backs.decide(self._read_backs.compare(digest))
        unread = with_unread((self._turns.add(digest, repeated),), self.digests)
        (turn,) = with_servers(unread, self.digests)
        return turn


def whole_turn(turn: Turn, settings: Settings) -> tuple[Finding, ...]:
    """Return the findings on a request: on the replies it repeats, and on its turn."""
    read_back = chain(*(findings_of(read_back) for read_back in turn.read_backs))
    return (*read_back, *findings_of_turn(turn, settings))


def findings_of(read_back: ReadBack) -> tuple[Finding, ...]:
    """Return the findings on one read-back, in the order of `READ_BACK_RULES`."""
    return tuple(ask(READ_BACK_RULES, read_back))


def findings_of_silence(silence: Unanswered, settings: Settings) -> tuple[Finding, ...]:
    """Return the findings on an unanswered reply, in the order of `SILENCE_RULES`."""
    return tuple(ask(SILENCE_RULES, SeenSilence(silence, settings)))


def findings_of_turn(turn: Turn, settings: Settings) -> tuple[Finding, ...]:
    """Return the findings on an exchange in its conversation, in the order of `TURN_RULES`."""
    return tuple(ask(TURN_RULES, SeenTurn(turn, settings)))


__all__ = [
    "ConversationHistory",
    "check_conversation",
    "findings_of",
    "findings_of_silence",
    "findings_of_turn",
    "goes_on_without",
    "read_backs",
    "turns",
    "unanswered",
    "whole_turn",
]
