"""Explains an exchange: what happened, whose fault it was, how sure that is, what to do."""

from deltatape.why.explain import explain

__all__ = ["explain"]
