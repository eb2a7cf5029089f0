"""The dialects, in the order in which they are asked whether an exchange is theirs."""

import dataclasses

from deltatape.dialects._base import Dialect, Hints, Reducer
from deltatape.dialects._unknown import UNKNOWN, UnknownReducer
from deltatape.dialects.openai_chat import OpenAIChat

DIALECTS: tuple[Dialect, ...] = (OpenAIChat(),)


def detect(hints: Hints) -> Dialect | None:
    """The dialect that claims `hints`: the response decides, else the request's path."""
    for view in (dataclasses.replace(hints, path=""), hints):
        for dialect in DIALECTS:
            if dialect.claims(view):
                return dialect
    return None


__all__ = ["DIALECTS", "UNKNOWN", "Dialect", "Hints", "Reducer", "UnknownReducer", "detect"]
