"""All faults, each with its healthy twin."""

from . import apps, wires
from .kit import FAULTS

__all__ = ["FAULTS"]

MODULES = (apps, wires)
"""Their faults register themselves."""
