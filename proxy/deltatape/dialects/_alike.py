"""Events that say the same as the one before, but for the text that they add.

Most events of most answers are such: the same members with the same values around a piece of text,
and perhaps padding, or a number that counts them. Parsing each and finding out again what it means
is most of the work of rebuilding a reply; comparing what stands around the text with what stood
there before is a fraction of it.

Strategy: a reducer that has taken an event, and knows that all it did was to append the text of one
member, says so (`learn`). The data is cut where that text begins and ends. There is no doubt where
that is: the data is an object, the member's name stands in it only once, and there is no backslash
that another spelling of the name would need. Whatever string stands there, the object is the same
but for it. The next event is compared; one that is not alike is taken as any other and ends what
was learned, since it may have changed what a text means.
"""

from collections.abc import Callable
from typing import TypeAlias

from deltatape.model.stream import Event
from deltatape.wire.json_value import scan_string

Say: TypeAlias = Callable[[str, Event], object]
"""Appends a text, which an event brought."""

_PADDING = '"obfuscation":"'
"""What a member begins with that nobody reads: it hides how long the text is."""
_COUNTER = '"sequence_number":'
_LONGEST = 4096
"""Characters of an event that is looked at so: a longer one is no delta."""
_TRIES = 4
"""So many events are looked at in vain."""
_BRACKETS = "}]"


class Alike:
    """Recognises events that are like the one before, and takes them.

    Attributes:
        number: of the event that was taken last; None if they are not counted.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self._say: Say | None = None
        """None: nothing has been learned."""
        self._type = ""
        self._pieces = ["", "", ""]
        """What stands before the text, behind it, and behind the padding if there is some."""
        self._padded = False
        self._spaced = False
        """Whether spaces behind the text say nothing: nothing but brackets stands there."""
        self._counter = (0, "", "")
        """Which piece holds the number, and what stands around it there."""
        self._tries = _TRIES

    @property
    def learns(self) -> bool:
        """Whether `learn` is of any use: not if the events of an answer are never alike."""
        return self._tries > 0

    def take(self, event: Event) -> bool:
        """Take `event` if it is like the one before: whether it is."""
        say = self._say
        if say is None:
            return False
        self._say = None
        data, (head, tail, _) = event.data, self._pieces
        if not data.startswith(head) or event.type != self._type or event.exception:
            return False
        try:
            text, end = scan_string(data, len(head))
            rest = data[end:]
            if (rest != tail or self._padded) and not self._is_rest(rest, tail):
                return False
        except ValueError:  # a string without an end
            return False
        if self.number is not None:
            self._count(self.number + 1)
        self._say, self._tries = say, _TRIES
        say(text, event)
        return True

    def _is_rest(self, rest: str, tail: str) -> bool:
        """Whether `rest` is `tail`, but for padding or spaces."""
        if not self._padded:
            return self._spaced and rest.replace(" ", "") == tail
        return rest.startswith(tail) and rest[scan_string(rest, len(tail))[1] :] == self._pieces[2]

    def learn(self, event: Event, say: Say, name: str, number: object = None) -> None:
        """Remember an event that did nothing but append a text, and would do nothing else again.

        Args:
            event: the event, no exception, whose data is an object.
            say: appends the text of such an event.
            name: of the member that is the text, a string.
            number: the `sequence_number` of the event, if the next one has to follow on it.
        """
        if not self._tries or len(event.data) > _LONGEST:
            return
        self._tries -= 1
        cut = _cut(event.data, name)
        if cut is None:
            return
        head, tail = cut
        tail, padding, rest = tail.partition(_PADDING)
        self._padded = padding != ""
        bare = tail.replace(" ", "")
        self._spaced = not self._padded and not bare.strip(_BRACKETS)
        self._pieces = [head, bare if self._spaced else tail + padding, rest.partition('"')[2]]
        self.number = None
        if type(number) is not int or self._finds(number):
            self._type, self._say = event.type, say

    def _finds(self, number: int) -> bool:
        """Whether it is clear where `number` stands; then the next one is expected there."""
        found = None
        for place, piece in enumerate(self._pieces):
            before, mark, rest = piece.partition(_COUNTER)
            if mark:
                bare = rest.removeprefix(" ")
                space, digits = rest[: len(rest) - len(bare)], str(number)
                if found or _COUNTER in bare or not bare.startswith(digits):
                    return False
                found = (place, before + mark + space, bare.removeprefix(digits))
        if found is not None:
            self._counter = found
            self._count(number)
        return found is not None

    def _count(self, number: int) -> None:
        """The last event had `number`; the next one has the next."""
        place, before, behind = self._counter
        self.number = number
        self._pieces[place] = f"{before}{number + 1}{behind}"


def _cut(data: str, name: str) -> tuple[str, str] | None:
    """What stands before and behind the string that is the member `name`; None if in doubt."""
    quoted = f'"{name}"'
    before, mark, rest = data.partition(f"{quoted}:")
    head = f'{before}{mark} "' if rest.startswith(" ") else f'{before}{mark}"'
    if not mark or not data.startswith(head):
        return None
    tail = data[scan_string(data, len(head))[1] :]
    if quoted in before or quoted in tail or "\\" in before or "\\" in tail:
        return None
    return head, tail
