"""The dialects, in the order in which they are asked whether an exchange is theirs."""

from deltatape.dialects._base import Dialect, Hints, Reducer
from deltatape.dialects._unknown import UNKNOWN, UnknownReducer
from deltatape.dialects.openai_chat import OpenAIChat

DIALECTS: tuple[Dialect, ...] = (OpenAIChat(),)


def detect(hints: Hints, path: str) -> Dialect | None:
    """The dialect of an exchange: the response decides, else the request's path."""
    for dialect in DIALECTS:
        if dialect.claims(hints):
            return dialect
    return next((dialect for dialect in DIALECTS if dialect.serves(path)), None)


__all__ = ["DIALECTS", "UNKNOWN", "Dialect", "Hints", "Reducer", "UnknownReducer", "detect"]
