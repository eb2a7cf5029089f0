"""All faults, each with its healthy twin: importing their modules registers them."""

from . import apps, wires  # noqa: F401
from .kit import FAULTS

__all__ = ["FAULTS"]
