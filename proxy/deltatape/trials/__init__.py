"""`deltatape torture` and `deltatape shrink`: run a command against tapes many times."""
