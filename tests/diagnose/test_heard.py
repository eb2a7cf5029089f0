import pytest

from deltatape.diagnose import heard
from deltatape.diagnose.heard import HeardHistory, heard_history
from deltatape.model.asked import Message
from deltatape.model.digest import Heard


@pytest.fixture(autouse=True)
def empty_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heard, "_memory", ())


class Ear:
    """Counts the messages that are looked at."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, message: Message) -> Heard:
        self.count += 1
        return Heard(role=message.role, text=message.text, calls=(), call_id=None)


def messages(count: int, name: str = "m") -> list[Message]:
    return [
        Message(role="user", text=f"{name}{at}", calls=(), call_id=None, digest=f"{name}{at}")
        for at in range(count)
    ]


def link(so_far: str, message: Message) -> str:
    return f"{so_far}-{message.digest}"


def heard_by(ear: Ear, history: list[Message], start: str = "") -> tuple[HeardHistory, int]:
    """What is kept, and how many messages were looked at for it."""
    before = ear.count
    made = heard_history(history, ear, link, start)
    assert len(made.heard) == len(history)
    assert [each.text for each in made.heard] == [each.text for each in history]
    so_far = [start]
    for message in history:
        so_far.append(link(so_far[-1], message))
    assert made.prefixes == tuple(so_far)
    return made, ear.count - before


def test_messages_that_an_earlier_history_had_are_not_looked_at_again() -> None:
    ear, history = Ear(), messages(30)
    first, count = heard_by(ear, history[:20])
    second, more = heard_by(ear, history)
    assert (count, more) == (20, 10)
    assert all(one is other for one, other in zip(first.heard, second.heard, strict=False))


def test_equal_messages_that_are_other_objects_are_looked_at() -> None:
    ear = Ear()
    assert [heard_by(ear, messages(20))[1] for _ in range(2)] == [20, 20]


def test_histories_share_as_much_as_they_have_in_common() -> None:
    ear, history = Ear(), messages(20)
    heard_by(ear, history)
    assert heard_by(ear, [*history[:15], *messages(5, "n")])[1] == 5
    assert heard_by(ear, history[5:])[1] == 15


def test_several_conversations_are_remembered_and_not_too_many() -> None:
    ear = Ear()
    every = [messages(20, name) for name in "abcdefgh"]
    for history in every:
        heard_by(ear, history)
    assert [heard_by(ear, history)[1] for history in every] == [0] * 8
    heard_by(ear, messages(20, "i"))
    assert heard_by(ear, every[0])[1] == 20


def test_short_histories_and_other_ears_share_nothing() -> None:
    ear, history = Ear(), messages(7)
    assert [heard_by(ear, history)[1] for _ in range(2)] == [7, 7]
    long = messages(20)
    heard_by(ear, long)
    assert heard_by(Ear(), long)[1] == 20


def test_where_a_history_starts_is_told_apart() -> None:
    ear, history = Ear(), messages(20)
    heard_by(ear, history)
    heard_by(ear, history, start="stored")
