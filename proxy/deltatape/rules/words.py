"""Small words that messages are made of."""


def count(number: int, what: str) -> str:
    """`1 event`, `2 events`."""
    return f"{number} {what}{'' if number == 1 else 's'}"
