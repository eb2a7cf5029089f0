"""`deltatape torture` and `deltatape shrink`: a command run against tapes, again and again."""
