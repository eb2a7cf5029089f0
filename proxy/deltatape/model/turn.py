"""A request and its reply, with what the conversation before them tells, in bounded form."""

from dataclasses import dataclass

from deltatape.model.asked import RepeatedCall
from deltatape.model.digest import Digest, ReadBack, SaidCall
from deltatape.model.parser_error import ParserError


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """A call and the reply that delivered it."""

    call: SaidCall
    reply: Digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphan:
    """A tool result to which the same request has no call, or none that is still open."""

    call_id: str
    delivered: Delivered | None
    """The call, if a reply on the tape delivered it."""
    trimmed: bool
    """Whether it looks as if the call had been cut off in front: the history begins with the
    result, or an earlier request still had the call."""
    twice: bool = False
    """Whether the call is there, and has its result already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A call in a history that goes on without its result."""

    call: RepeatedCall
    delivered: Delivered | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """A call of the reply that the conversation has had before."""

    call: SaidCall
    times: int
    """How often since the user last spoke, this time included."""
    first: int | None
    """The exchange that delivered it first, as far as it is on the tape."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint:
    """A parser's error text, and the calls that it may be about."""

    error: ParserError
    logged: bool
    """Whether the application printed it; else the request carries it."""
    t_ns: int | None
    """When it was printed."""
    about: tuple[Delivered, ...]
    """The call that the message answers; of a printed one, all of the reply before it."""
    repeated: RepeatedCall | None
    """What the request makes of that call, where that is known and not the same."""
    sure: bool
    """Whether no other reply could be meant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """An exchange in its conversation.

    What is told of the history is told of messages that no earlier request carried: applications
    send all of it again each time.
    """

    digest: Digest
    before: Digest | None
    """The exchange whose history this one goes on from, the nearest on the tape."""
    news: int
    """From this message of the history on, no earlier request carried it."""
    links: tuple[ReadBack, ...]
    """What the request repeats of earlier replies, for the first time."""
    orphans: tuple[Orphan, ...]
    missing: tuple[Missing, ...]
    again: tuple[Again, ...]
    silent_calls: int
    """How many replies in a row, this one included, called tools and said nothing to the user."""
    offered: int | None
    """The exchange of the same conversation that offered tools last before this one."""
    bare: bool
    """Whether it is the first since then that offers none, with calls or results in its history."""
    forced_again: bool
    """Whether an earlier request of the conversation forced the model to go round, too."""
    attempts: tuple[Digest, ...]
    """Exchanges with the same request right before this one, all of which failed; the last ones."""
    complaints: tuple[Complaint, ...]

    @property
    def forced_to_loop(self) -> bool:
        """Whether the request brings results and forces the reply to call all the same.

        Only if that comes to a call that was made before, or a tool is named that was called
        before: workflows force one tool after the other, and an answer in the form of a call.
        """
        digest = self.digest
        if not (digest.must_call and digest.results and digest.calls):
            return False
        if self.again:
            return True
        named = digest.tool_choice
        before = (call.name for heard in digest.history for call in heard.calls)
        return digest.forced and named in before
