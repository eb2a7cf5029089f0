"""Explains an exchange: what happened, whose fault it was, how sure that is, what to do."""
