"""The story of an exchange, and the verdict: whose fault it was, how sure that is, what to do."""

from deltatape.why.tell import tell

__all__ = ["tell"]
