"""All apps that are odd but right: importing their modules registers them."""

from . import (  # noqa: F401
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
