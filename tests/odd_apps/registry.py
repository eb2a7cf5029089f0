"""All apps that are odd but right."""

from . import (
    agents,
    beside,
    history,
    ids,
    javascript,
    network,
    people,
    policies,
    shapes,
    switching,
    texts,
)
from .kit import APPS

__all__ = ["APPS"]

MODULES = (
    agents,
    beside,
    history,
    ids,
    javascript,
    network,
    people,
    policies,
    shapes,
    switching,
    texts,
)
"""Their apps register themselves."""
